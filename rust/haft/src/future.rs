// SPDX-License-Identifier: MIT
//! Async code from tasks.

use crate::sync::Event;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

struct Woken(Event);
impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.set();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.set();
    }
}

/// Waits for a future: the task is suspended, not the thread, while the future is pending. It may
/// be woken from any thread. On a thread without tasks, blocks the thread.
///
/// A cancel that reaches the task here drops the future.
///
/// ```
/// async fn double(number: u32) -> u32 {
///     number * 2
/// }
/// assert_eq!(haft::run(|| haft::block_on(double(21))), 42);
/// ```
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let woken = Arc::new(Woken(Event::new()));
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    loop {
        woken.0.clear(); // before the poll, so that no wake is lost
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        // (If the wait cannot be made, since the thread panics, the future is asked again.)
        woken.0.wait();
    }
}
