// SPDX-License-Identifier: MIT
// A clause answers with what the effect returns.
struct Ask;
impl haft::Effect for Ask {
    type Output = u32;
}

fn main() {
    haft::handle(|Ask| "no number", || haft::perform(Ask));
}
// error[E0271]
