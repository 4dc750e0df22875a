// SPDX-License-Identifier: MIT
// A resumption does not outlive the handler, whose frame the computation may borrow from.
struct Ask;
impl haft::Effect for Ask {
    type Output = u32;
}

fn main() {
    let kept = std::cell::RefCell::new(Vec::new());
    haft::handle_general(
        |Ask, k| {
            kept.borrow_mut().push(k);
            0
        },
        || haft::perform(Ask),
    );
}
// error[E0521]
