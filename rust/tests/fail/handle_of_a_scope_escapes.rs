// SPDX-License-Identifier: MIT
// A task's handle does not leave its scope.
fn main() {
    haft::run(|| {
        let task = haft::scope(|s| s.spawn(|| 1));
        task.join().unwrap();
    });
}
// error: lifetime may not live long enough
