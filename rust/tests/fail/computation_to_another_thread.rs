// SPDX-License-Identifier: MIT
// A generator, whose frames may hold what is not Send, stays on its thread.
fn main() {
    let numbers = haft::Generator::new(|out| out.give(1));
    std::thread::spawn(move || numbers.count());
}
// error[E0277]
