// SPDX-License-Identifier: MIT
//! A lock that is held for a few instructions, and for which a thread spins.
//!
//! In a task a wait for a lock of std suspends the task. In a simulation nobody would wake it: the
//! thread that holds the lock may be none of the simulation's, and the simulation takes the wait
//! for a deadlock. So what the library keeps once for the process is under a lock of this kind.
//! A thread that holds it must not wait, and must not call code of the program.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct Brief<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}
// SAFETY: one thread at a time gets to the value.
unsafe impl<T: Send> Sync for Brief<T> {}

/// Unlocks when it is dropped.
struct Held<'a>(&'a AtomicBool);
impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<T> Brief<T> {
    pub(crate) const fn new(value: T) -> Self {
        Brief {
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    pub(crate) fn with<R>(&self, function: impl FnOnce(&mut T) -> R) -> R {
        while self.held.swap(true, Ordering::Acquire) {
            while self.held.load(Ordering::Relaxed) {
                spin_loop();
            }
        }
        let _held = Held(&self.held);
        // SAFETY: nobody else has it until `_held` is dropped.
        function(unsafe { &mut *self.value.get() })
    }
}

#[cfg(test)]
mod tests {
    use super::Brief;
    use std::thread;

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        static COUNT: Brief<(u64, u64)> = Brief::new((0, 0));
        thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for _ in 0..10_000 {
                        COUNT.with(|(first, second)| {
                            *first += 1;
                            assert_eq!(*first, *second + 1);
                            *second = *first;
                        });
                    }
                });
            }
        });
        assert_eq!(COUNT.with(|both| *both), (40_000, 40_000));
    }
}
