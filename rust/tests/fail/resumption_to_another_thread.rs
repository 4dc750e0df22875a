// SPDX-License-Identifier: MIT
// A resumption stays on its thread.
struct Ask;
impl haft::Effect for Ask {
    type Output = u32;
}

fn main() {
    haft::handle_general(
        |Ask, k| std::thread::scope(|s| s.spawn(move || k.resume(1)).join().unwrap()),
        || haft::perform(Ask),
    );
}
// error[E0277]
