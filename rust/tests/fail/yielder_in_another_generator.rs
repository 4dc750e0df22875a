// SPDX-License-Identifier: MIT
// The innermost generator of the type would get the element.
fn main() {
    let outer = haft::Generator::new(|outer| {
        haft::Generator::<u32>::new(move |_own| outer.give(1)).count();
    });
    outer.count();
}
// error[E0521]
