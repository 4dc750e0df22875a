// SPDX-License-Identifier: MIT
// What the computation gets as an answer lies in its frames, which are copied.
struct Ask;
impl haft::Effect for Ask {
    type Output = String;
}

fn main() {
    let clause = |Ask, k: haft::MultiShot<'_, Ask, usize>| k.resume("one".to_owned());
    unsafe { haft::handle_multi_shot(clause, || haft::perform(Ask).len()) };
}
// error[E0277]
