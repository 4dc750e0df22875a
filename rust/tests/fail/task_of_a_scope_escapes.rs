// SPDX-License-Identifier: MIT
// Values that a scope's task borrows must live outside of the scope.
fn main() {
    haft::run(|| {
        haft::scope(|s| {
            let list = vec![1, 2, 3];
            s.spawn(|| list.len());
        });
    });
}
// error[E0373]
