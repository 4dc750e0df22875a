// SPDX-License-Identifier: MIT
// A resumption that may be copied does not outlive its handler either.
struct Ask;
impl haft::Effect for Ask {
    type Output = u32;
}

fn main() {
    let kept = std::cell::RefCell::new(Vec::new());
    let clause = |Ask, k: haft::MultiShot<'_, Ask, u32>| {
        kept.borrow_mut().push(k);
        0
    };
    unsafe { haft::handle_multi_shot(clause, || haft::perform(Ask)) };
}
// error[E0521]
