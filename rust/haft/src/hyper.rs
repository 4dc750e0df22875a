// SPDX-License-Identifier: MIT
//! hyper's client and server on tasks (feature `hyper`): its connections over this library's
//! sockets, its timers, and its own futures as tasks.
//!
//! ```
//! use haft::hyper::{Executor, Io, Timer};
//! use hyper::rt::{Executor as _, Timer as _};
//!
//! haft::run(|| {
//!     let (sender, receiver) = haft::channel(1);
//!     Executor.execute(async move {
//!         Timer.sleep(std::time::Duration::from_millis(1)).await;
//!         sender.send(42).unwrap();
//!     });
//!     assert_eq!(receiver.recv().unwrap(), 42);
//! });
//! # let _ = Io::new::<haft::net::TcpStream>;
//! ```
//!
//! All of this is polled in [`block_on`] by a task: a connection of a server is
//! `haft::spawn(|| haft::block_on(http1::Builder::new().serve_connection(Io::new(stream),
//! service)))`. A service may wait as any task does, but then its connection waits with it.

use crate::descriptor::Descriptor;
use crate::future::block_on;
use crate::interests::{Interest, forget, wait_for};
use crate::net::shut_down;
use crate::task::spawn_in_run;
use crate::wait::{from_now, now};
use hyper::rt::{self, ReadBufCursor};
use std::future::Future;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A connection, for hyper.
///
/// ```
/// haft::run(|| -> std::io::Result<()> {
///     let (one, other) = haft::net::UnixStream::pair()?;
///     let (_for_client, _for_server) = (haft::hyper::Io::new(one), haft::hyper::Io::new(other));
///     Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct Io(Descriptor);

impl Io {
    /// Makes a connection of a socket of [`net`](crate::net), or of std.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let (one, _other) = std::os::unix::net::UnixStream::pair()?;
    ///     let _io = haft::hyper::Io::new(one);
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn new<S: Into<OwnedFd>>(stream: S) -> Self {
        Io(stream.into().into())
    }
}

/// The outcome, unless it has to be waited for.
fn ready<T>(
    outcome: io::Result<T>,
    interest: Interest,
    context: &Context<'_>,
) -> Poll<io::Result<T>> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            match wait_for(interest, context.waker()) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            }
        }
        outcome => Poll::Ready(outcome),
    }
}

impl rt::Read for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = [0; 8192];
        let size = bytes.len().min(buffer.remaining());
        let outcome = self.0.try_receive(&mut bytes[..size]);
        let interest = Interest::Readable(self.0.raw());
        ready(outcome, interest, context).map_ok(|count| buffer.put_slice(&bytes[..count]))
    }
}

impl rt::Write for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let interest = Interest::Writable(self.0.raw());
        ready(self.0.try_send(bytes), interest, context)
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(shut_down(&self.0, Shutdown::Write))
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        forget(Interest::Readable(self.0.raw()));
        forget(Interest::Writable(self.0.raw()));
    }
}

/// Runs hyper's own futures as tasks of the run: a connection that hyper keeps outlives the scopes
/// and time limits of the request for which it was made. The run ends when such tasks have, so drop
/// the client that keeps the connections.
///
/// ```
/// use hyper::rt::Executor as _;
///
/// haft::run(|| {
///     let (sender, receiver) = haft::channel(1);
///     haft::hyper::Executor.execute(async move { sender.send(42).unwrap() });
///     assert_eq!(receiver.recv(), Ok(42));
/// });
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Executor;

impl<F> rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        drop(spawn_in_run(move || block_on(future)));
    }
}

/// hyper's timers.
///
/// ```
/// use hyper::rt::Timer as _;
/// use std::time::Duration;
///
/// haft::run(|| haft::block_on(haft::hyper::Timer.sleep(Duration::from_millis(1))));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer;

impl rt::Timer for Timer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        Box::pin(Sleep {
            number,
            until: from_now(duration),
        })
    }
    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        self.sleep(deadline.saturating_duration_since(Instant::now()))
    }
}

struct Sleep {
    number: usize,
    /// The time, by the library's clock.
    until: i64,
}

impl Sleep {
    fn interest(&self) -> Interest {
        Interest::Time(self.number, self.until)
    }
}
impl Future for Sleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if now() >= self.until {
            return Poll::Ready(());
        }
        match wait_for(self.interest(), context.waker()) {
            Ok(()) => Poll::Pending,
            Err(error) => panic!("{error}"),
        }
    }
}
impl rt::Sleep for Sleep {}
impl Drop for Sleep {
    fn drop(&mut self) {
        forget(self.interest());
    }
}
