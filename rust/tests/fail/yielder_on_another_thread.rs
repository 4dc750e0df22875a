// SPDX-License-Identifier: MIT
// There the generator is not around.
fn main() {
    let numbers = haft::Generator::<u32>::new(|out| {
        haft::scope(|s| {
            s.spawn(move || out.give(1));
        });
    });
    numbers.count();
}
// error[E0277]
