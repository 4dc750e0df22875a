// SPDX-License-Identifier: MIT
// The body of a replay is called more than once.
struct Ask;
impl haft::Effect for Ask {
    type Output = u32;
}

fn main() {
    let text = String::from("once");
    haft::replay(
        |Ask, k: haft::Replay<'_, Ask, String>| k.resume(1),
        || {
            haft::perform(Ask);
            text
        },
    );
}
// error[E0507]
