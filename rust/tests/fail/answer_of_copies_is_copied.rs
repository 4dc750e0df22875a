// SPDX-License-Identifier: MIT
// An answer lies in the frames of the computation that gets it, which are copied.
struct Ask;
impl haft::Effect for Ask {
    type Output = String;
}

fn main() {
    unsafe { haft::handle_multi_shot(|Ask, _| 0, || haft::perform(Ask).len()) };
}
// error[E0277]
