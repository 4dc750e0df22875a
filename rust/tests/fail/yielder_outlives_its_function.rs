// SPDX-License-Identifier: MIT
// A later generator of the type would get the element.
use std::cell::RefCell;

thread_local! {
    static KEPT: RefCell<Vec<Box<dyn Fn()>>> = RefCell::default();
}

fn main() {
    let numbers = haft::Generator::<u32>::new(|out| {
        let give: Box<dyn Fn()> = Box::new(move || out.give(1));
        KEPT.with_borrow_mut(|kept| kept.push(give));
    });
    numbers.count();
}
// lifetime may not live long enough
