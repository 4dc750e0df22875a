// SPDX-License-Identifier: MIT
// A task may outlive its spawner's frame; one that borrows is spawned in a scope.
fn main() {
    haft::run(|| {
        let list = vec![1, 2, 3];
        let task = haft::spawn(|| list.len());
        task.join().unwrap();
    });
}
// error[E0373]
