// SPDX-License-Identifier: MIT
// A runtime's tasks are on another thread, and may outlive the caller's frame.
fn main() {
    let runtime = haft::Runtime::new(haft::Options::new()).unwrap();
    let list = vec![1, 2, 3];
    let task = runtime.spawn(|| list.len());
    task.join().unwrap();
}
// error[E0373]
