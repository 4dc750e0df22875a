// SPDX-License-Identifier: MIT
// The result of a clause outlives the computation, so it has no resumption in it.
use std::fmt::Debug;

struct Ask;
impl haft::Effect for Ask {
    type Output = ();
}

fn main() {
    let kept: Option<Box<dyn Debug>> =
        haft::handle_general(|Ask, k| Some(Box::new(k) as Box<dyn Debug>), || None);
    drop(kept);
}
// error: lifetime may not live long enough
