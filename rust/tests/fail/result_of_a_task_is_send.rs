// SPDX-License-Identifier: MIT
// A task may be joined on another thread.
fn main() {
    haft::run(|| {
        let task = haft::spawn(|| std::rc::Rc::new(1_i32));
        task.join().unwrap();
    });
}
// `Rc<i32>` cannot be sent between threads safely
