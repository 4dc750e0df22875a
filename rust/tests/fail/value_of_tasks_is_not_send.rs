// SPDX-License-Identifier: MIT
// A task-local value is shared with the tasks that inherit it.
use std::rc::Rc;

haft::task_local! {
    static SHARED: Rc<i32>;
}

fn main() {
    haft::run(|| SHARED.set(Rc::new(1), || ()));
}
// `Rc<i32>` cannot be sent between threads safely
