// SPDX-License-Identifier: MIT
// The body of a replay is called more than once.
struct Ask;
impl haft::Effect for Ask {
    type Output = u32;
}

fn main() {
    let text = String::from("once");
    haft::replay(|Ask, k| k.resume(1).max(k.resume(2)), || {
        haft::perform(Ask);
        text
    });
}
// error[E0507]
