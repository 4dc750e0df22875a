// SPDX-License-Identifier: MIT
// A resumption is used once.
struct Ask;
impl haft::Effect for Ask {
    type Output = u32;
}

fn main() {
    haft::handle_general(|Ask, k| k.resume(1) + k.resume(2), || haft::perform(Ask));
}
// error[E0382]
