// SPDX-License-Identifier: MIT
// What the computation gets as an answer lies in its frames, which are copied.
struct Ask;
impl haft::Effect for Ask {
    type Output = String;
}

fn main() {
    unsafe { haft::handle_multi_shot(|Ask, _| 0, || haft::perform(Ask).len()) };
}
// error[E0277]
