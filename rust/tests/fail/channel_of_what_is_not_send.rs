// SPDX-License-Identifier: MIT
// The ends of a channel may be on two threads.
fn main() {
    let (_sender, _receiver) = haft::channel::<std::rc::Rc<i32>>(1);
}
// `Rc<i32>` cannot be sent between threads safely
