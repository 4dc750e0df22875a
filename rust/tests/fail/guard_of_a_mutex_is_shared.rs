// SPDX-License-Identifier: MIT
// A guard is shared between threads only where its value may be.
use haft::sync::Mutex;
use std::cell::Cell;

fn main() {
    let mutex = Mutex::new(Cell::new(0));
    haft::run(|| {
        let guard = mutex.lock();
        haft::scope(|s| {
            s.spawn(|| guard.set(1)).join().unwrap();
        });
    });
}
// `Cell<i32>` cannot be shared between threads safely
