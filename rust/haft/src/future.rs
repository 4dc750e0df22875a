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
/// A cancel that reaches the task here drops the future; in a destructor that runs while the thread
/// is panicking it does not end the wait.
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
    #[cfg(feature = "hyper")]
    let interests = crate::interests::Interests::new();
    loop {
        woken.0.clear(); // before the poll, so that no wake is lost
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        #[cfg(feature = "hyper")]
        interests.wait(&woken.0);
        #[cfg(not(feature = "hyper"))]
        woken.0.wait_on();
    }
}

/// The values of a stream of the crate `futures`, as an iterator, whose `next` waits as
/// [`block_on`] does. (With the feature `futures`.)
///
/// ```
/// # use std::pin::Pin;
/// # use std::task::{Context, Poll};
/// struct Countdown(u32);
/// impl futures_core::Stream for Countdown {
///     type Item = u32;
///     fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<u32>> {
///         let next = self.0.checked_sub(1);
///         self.0 = next.unwrap_or(0);
///         Poll::Ready(next)
///     }
/// }
///
/// let values: Vec<u32> = haft::run(|| haft::iterate(Countdown(3)).collect());
/// assert_eq!(values, [2, 1, 0]);
/// ```
#[cfg(feature = "futures")]
pub fn iterate<S: futures_core::Stream>(stream: S) -> Iterate<S> {
    Iterate(Box::pin(stream))
}

/// Iterator that [`iterate`] returns.
///
/// ```
/// # use std::pin::Pin;
/// # use std::task::{Context, Poll};
/// struct Nothing;
/// impl futures_core::Stream for Nothing {
///     type Item = u32;
///     fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<u32>> {
///         Poll::Ready(None)
///     }
/// }
/// let mut values: haft::Iterate<Nothing> = haft::iterate(Nothing);
/// assert_eq!(values.next(), None);
/// ```
#[cfg(feature = "futures")]
#[derive(Debug)]
#[must_use = "iterators are lazy"]
pub struct Iterate<S>(std::pin::Pin<Box<S>>);

#[cfg(feature = "futures")]
impl<S: futures_core::Stream> Iterator for Iterate<S> {
    type Item = S::Item;
    fn next(&mut self) -> Option<S::Item> {
        block_on(std::future::poll_fn(|context| {
            self.0.as_mut().poll_next(context)
        }))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}
