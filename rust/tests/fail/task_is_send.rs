// SPDX-License-Identifier: MIT
// A run may have several threads.
fn main() {
    haft::run(|| {
        let shared = std::rc::Rc::new(1);
        let task = haft::spawn(move || *shared);
        task.join().unwrap();
    });
}
// error[E0277]
