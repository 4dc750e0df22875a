// SPDX-License-Identifier: MIT
// A generator may be leaked with its stack, so it borrows nothing.
fn main() {
    let list = vec![1, 2, 3];
    let numbers = haft::Generator::new(|out| list.iter().for_each(|i| out.give(*i)));
    numbers.count();
}
// error[E0373]
