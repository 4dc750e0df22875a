// SPDX-License-Identifier: MIT
// No type can tell whether frames may be copied.
struct Ask;
impl haft::Effect for Ask {
    type Output = u32;
}

fn main() {
    haft::handle_multi_shot(|Ask, k| k.resume(1) + k.resume(2), || haft::perform(Ask));
}
// error[E0133]
