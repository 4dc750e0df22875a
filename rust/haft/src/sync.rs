// SPDX-License-Identifier: MIT
//! What tasks and threads wait for: events and channels.

use crate::wait::{Interrupted, wait};
use haft_sys as sys;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::size_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{fmt, ptr};

/// Lies where it does not move while somebody waits.
pub(crate) struct Event {
    inner: UnsafeCell<sys::haft_io_event_t>,
    is_set: AtomicBool,
}
// SAFETY: the C library locks it; any thread may set it and wait for it.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    pub(crate) fn new() -> Self {
        Event {
            inner: UnsafeCell::new(sys::haft_io_event_t::ZERO),
            is_set: AtomicBool::new(false),
        }
    }
    pub(crate) fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        // SAFETY: it is not moved while `self` is borrowed, and the waiters borrow it, too.
        unsafe { sys::haft_io_event_set(self.inner.get()) };
    }
    pub(crate) fn clear(&self) {
        self.is_set.store(false, Ordering::Release);
        // SAFETY: as above.
        unsafe { sys::haft_io_event_clear(self.inner.get()) };
    }
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }
    pub(crate) fn wait(&self) -> Result<(), Interrupted> {
        // SAFETY: as in `set`; the wait has left the event when it returns.
        wait(|| unsafe { sys::haft_io_event_wait(self.inner.get()) } as isize).map(drop)
    }
}

// ---- Channels ----

/// The C library's channel, of pointers to boxed values.
struct Shared<T> {
    channel: *mut sys::haft_io_channel_t,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    values: PhantomData<T>,
}
// SAFETY: the C library locks the channel, and values only pass through it.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// # Safety
    /// `pointer` has come out of the channel, or has not gone in.
    unsafe fn value(pointer: *mut c_void) -> T {
        // SAFETY: the caller says that the box is nobody else's.
        *unsafe { Box::from_raw(pointer.cast::<T>()) }
    }
    fn try_receive(&self) -> Option<T> {
        let mut pointer: *mut c_void = ptr::null_mut();
        // SAFETY: the channel lives as long as `self`, and carries values of a pointer's size.
        let code = unsafe {
            sys::haft_io_channel_try_receive(self.channel, ptr::from_mut(&mut pointer).cast())
        };
        // SAFETY: it has come out.
        (code == 0).then(|| unsafe { Self::value(pointer) })
    }
    fn receive(&self) -> Option<T> {
        let mut pointer: *mut c_void = ptr::null_mut();
        // SAFETY: as above; `pointer` lives until the wait has ended.
        let done = wait(|| unsafe {
            sys::haft_io_channel_receive(self.channel, ptr::from_mut(&mut pointer).cast())
        } as isize);
        // SAFETY: it has come out.
        done.is_ok().then(|| unsafe { Self::value(pointer) })
    }
    fn send(&self, value: T) -> Result<(), T> {
        /// Frees the value if a cancel unwinds the wait: nothing has been sent then.
        struct Unsent<T>(*mut T);
        impl<T> Drop for Unsent<T> {
            fn drop(&mut self) {
                // SAFETY: it has not gone in.
                drop(unsafe { Box::from_raw(self.0) });
            }
        }
        let unsent = Unsent(Box::into_raw(Box::new(value)));
        let pointer: *mut c_void = unsent.0.cast();
        // SAFETY: the channel lives as long as `self`, and carries values of a pointer's size.
        let done = wait(|| unsafe {
            sys::haft_io_channel_send(self.channel, ptr::from_ref(&pointer).cast())
        } as isize);
        std::mem::forget(unsent);
        // SAFETY: after an error it has not gone in.
        done.map(drop).map_err(|_| unsafe { Self::value(pointer) })
    }
    fn close(&self) {
        // SAFETY: the channel lives as long as `self`.
        unsafe { sys::haft_io_channel_close(self.channel) };
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        while self.try_receive().is_some() {}
        // SAFETY: nobody else has it any more.
        unsafe { sys::haft_io_channel_free(self.channel) };
    }
}

/// Makes a channel that holds so many values; with 0, a send waits until its value is taken.
/// Tasks and threads may use it, several at each end.
///
/// ```
/// haft::run(|| {
///     let (sender, receiver) = haft::channel(2);
///     haft::scope(|s| {
///         s.spawn(move || (0..5).for_each(|i| sender.send(i).unwrap()));
///         assert_eq!(receiver.iter().sum::<i32>(), 10);
///     });
/// });
/// ```
///
/// # Panics
/// If there is no memory.
pub fn channel<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    // SAFETY: an ordinary call.
    let channel = unsafe { sys::haft_io_channel_new(size_of::<*mut c_void>(), capacity) };
    assert!(!channel.is_null(), "no memory for a channel");
    let shared = Arc::new(Shared {
        channel,
        senders: AtomicUsize::new(1),
        receivers: AtomicUsize::new(1),
        values: PhantomData,
    });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

/// The sending end of a [`channel`].
pub struct Sender<T>(Arc<Shared<T>>);
/// The receiving end of a [`channel`]; each value is received once.
pub struct Receiver<T>(Arc<Shared<T>>);

impl<T: Send> Sender<T> {
    /// Waits for room, and sends the value.
    ///
    /// # Errors
    /// There is no receiver any more; the error has the value.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.0.send(value).map_err(SendError)
    }
}

impl<T: Send> Receiver<T> {
    /// Waits for the next value.
    ///
    /// # Errors
    /// There is no sender any more, and all values have been received.
    pub fn recv(&self) -> Result<T, RecvError> {
        self.0.receive().ok_or(RecvError)
    }
    /// The next value, if it is there.
    pub fn try_recv(&self) -> Option<T> {
        self.0.try_receive()
    }
    /// The values until there is no sender any more.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        std::iter::from_fn(|| self.0.receive())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.senders.fetch_add(1, Ordering::Relaxed);
        Sender(Arc::clone(&self.0))
    }
}
impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.0.receivers.fetch_add(1, Ordering::Relaxed);
        Receiver(Arc::clone(&self.0))
    }
}
impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.close();
        }
    }
}
impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if self.0.receivers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.close();
        }
    }
}
impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}
impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

/// There is no receiver any more; with the value that was not sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);
/// There is no sender any more, and no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvError;

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}
impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value was sent to a channel without a receiver")
    }
}
impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the channel is empty and has no sender")
    }
}
impl<T> std::error::Error for SendError<T> {}
impl std::error::Error for RecvError {}
