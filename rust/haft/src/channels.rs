// SPDX-License-Identifier: MIT
//! Channels, over those of the C library.
//!
//! The C library moves values as bytes. A value belongs to its sender until the send has succeeded,
//! then to the channel, then to the one receiver that takes it: so each is dropped once. The ends
//! are counted here; the last of either side closes the channel.

use crate::wait::{EPIPE, wait};
use haft_sys as sys;
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit, size_of};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The C library's channel: values are moved into it and out of it as bytes.
struct Shared<T> {
    channel: *mut sys::haft_io_channel_t,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    /// Invariant in `T`: values go in and come out, so a sender of one lifetime is none of a
    /// shorter one.
    values: PhantomData<UnsafeCell<T>>,
}
// SAFETY: the C library locks the channel, and values only pass through it.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn try_receive(&self) -> Option<T> {
        let mut place = MaybeUninit::<T>::uninit();
        // SAFETY: the channel lives as long as `self`, and carries values of this size.
        let code =
            unsafe { sys::haft_io_channel_try_receive(self.channel, place.as_mut_ptr().cast()) };
        // SAFETY: a value has come out.
        (code == 0).then(|| unsafe { place.assume_init() })
    }
    fn receive(&self) -> Option<T> {
        let mut place = MaybeUninit::<T>::uninit();
        // SAFETY: as above; `place` lives until the wait has ended.
        let done =
            wait(
                || unsafe { sys::haft_io_channel_receive(self.channel, place.as_mut_ptr().cast()) }
                    as isize,
            );
        // SAFETY: a value has come out.
        done.is_ok().then(|| unsafe { place.assume_init() })
    }
    fn send(&self, value: T) -> Result<(), T> {
        /// Drops the value if a cancel unwinds the wait: nothing has been sent then.
        struct Unsent<T>(MaybeUninit<T>);
        impl<T> Drop for Unsent<T> {
            fn drop(&mut self) {
                // SAFETY: it has not gone in.
                unsafe { self.0.assume_init_drop() };
            }
        }
        let unsent = Unsent(MaybeUninit::new(value));
        // SAFETY: the channel lives as long as `self`, and carries values of this size.
        let done =
            wait(
                || unsafe { sys::haft_io_channel_send(self.channel, unsent.0.as_ptr().cast()) }
                    as isize,
            );
        let unsent = ManuallyDrop::new(unsent);
        // SAFETY: after an error it has not gone in.
        done.map(drop)
            .map_err(|_| unsafe { unsent.0.assume_init_read() })
    }
    fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let value = ManuallyDrop::new(value);
        // SAFETY: the channel lives as long as `self`, and carries values of this size.
        let code =
            unsafe { sys::haft_io_channel_try_send(self.channel, (&raw const value).cast()) };
        match -code {
            0 => Ok(()),
            EPIPE => Err(TrySendError::Disconnected(ManuallyDrop::into_inner(value))),
            _ => Err(TrySendError::Full(ManuallyDrop::into_inner(value))),
        }
    }
    fn close(&self) {
        // SAFETY: the channel lives as long as `self`.
        unsafe { sys::haft_io_channel_close(self.channel) };
    }
}

impl<T> Shared<T> {
    /// Drops the values that will not be received: one may hold an object for which another task
    /// waits, such as the sender of an answer.
    fn discard(&self) {
        while self.try_receive().is_some() {}
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        self.discard(); // a receiver may have been forgotten
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
#[must_use]
pub fn channel<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    // SAFETY: an ordinary call.
    let channel = unsafe { sys::haft_io_channel_new(size_of::<T>(), capacity) };
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
///
/// ```
/// let (sender, receiver) = haft::channel(2);
/// let other = sender.clone();
/// sender.send(1).unwrap();
/// other.send(2).unwrap();
/// assert_eq!(receiver.try_recv(), Some(1));
/// ```
pub struct Sender<T>(Arc<Shared<T>>);
/// The receiving end of a [`channel`]; each value is received once. When the last one is dropped,
/// so are the values that were not received.
///
/// ```
/// let (sender, receiver) = haft::channel(2);
/// sender.send("hello").unwrap();
/// drop(sender);
/// assert_eq!(receiver.iter().collect::<Vec<_>>(), ["hello"]);
/// ```
pub struct Receiver<T>(Arc<Shared<T>>);

impl<T> Sender<T> {
    pub(crate) fn channel(&self) -> *mut sys::haft_io_channel_t {
        self.0.channel
    }
}
impl<T> Receiver<T> {
    pub(crate) fn channel(&self) -> *mut sys::haft_io_channel_t {
        self.0.channel
    }
}

// A panic leaves no value half in a channel.
impl<T> UnwindSafe for Sender<T> {}
impl<T> RefUnwindSafe for Sender<T> {}
impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}

impl<T: Send> Sender<T> {
    /// Waits for room, and sends the value.
    ///
    /// # Errors
    /// There is no receiver any more; the error has the value.
    ///
    /// ```
    /// let (sender, receiver) = haft::channel(2);
    /// assert!(sender.send(1).is_ok());
    /// drop(receiver);
    /// assert_eq!(sender.send(2).unwrap_err().0, 2);
    /// ```
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.0.send(value).map_err(SendError)
    }
    /// Sends the value, if there is room for it, or a receiver that waits; otherwise it comes back
    /// at once.
    ///
    /// # Errors
    /// There is no room now, or there is no receiver any more; the error has the value.
    ///
    /// ```
    /// use haft::TrySendError;
    ///
    /// let (sender, receiver) = haft::channel(1);
    /// assert!(sender.try_send(1).is_ok());
    /// assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    /// drop(receiver);
    /// assert_eq!(sender.try_send(3), Err(TrySendError::Disconnected(3)));
    /// ```
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.0.try_send(value)
    }
}

impl<T: Send> Receiver<T> {
    /// Waits for the next value.
    ///
    /// # Errors
    /// There is no sender any more, and all values have been received.
    ///
    /// ```
    /// let (sender, receiver) = haft::channel(2);
    /// sender.send(1).unwrap();
    /// drop(sender);
    /// assert_eq!(receiver.recv(), Ok(1));
    /// assert!(receiver.recv().is_err());
    /// ```
    pub fn recv(&self) -> Result<T, RecvError> {
        self.0.receive().ok_or(RecvError)
    }
    /// Returns the next value, if it is there.
    ///
    /// ```
    /// let (sender, receiver) = haft::channel(2);
    /// assert_eq!(receiver.try_recv(), None);
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.try_recv(), Some(1));
    /// ```
    #[must_use]
    pub fn try_recv(&self) -> Option<T> {
        self.0.try_receive()
    }
    /// An iterator over the values, until there is no sender any more.
    ///
    /// ```
    /// let (sender, receiver) = haft::channel(2);
    /// haft::run(|| {
    ///     haft::spawn(move || (0..5).for_each(|i| sender.send(i).unwrap()));
    ///     assert_eq!(receiver.iter().sum::<i32>(), 10);
    /// });
    /// ```
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
            self.0.close(); // so no further value comes
            self.0.discard();
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

/// The error of a send without a receiver, with the value that was not sent.
///
/// ```
/// let (sender, receiver) = haft::channel(2);
/// drop(receiver);
/// let haft::SendError(returned) = sender.send("lost").unwrap_err();
/// assert_eq!(returned, "lost");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);
/// The error of [`Sender::try_send`], with the value that was not sent.
///
/// ```
/// let (sender, _receiver) = haft::channel(0);
/// assert_eq!(sender.try_send("now").unwrap_err().into_inner(), "now");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// There is no room, and no receiver that waits.
    Full(T),
    /// There is no receiver any more.
    Disconnected(T),
}
impl<T> TrySendError<T> {
    /// The value.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(value) | Self::Disconnected(value) => value,
        }
    }
}
/// The error of a receive: there is no sender any more, and no value.
///
/// ```
/// let (sender, receiver) = haft::channel::<u32>(1);
/// drop(sender);
/// assert_eq!(receiver.recv(), Err(haft::RecvError));
/// ```
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
impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Disconnected(_) => "Disconnected(..)",
        })
    }
}
impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "a value was sent to a channel without room",
            Self::Disconnected(_) => "a value was sent to a channel without a receiver",
        })
    }
}
impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the channel is empty and has no sender")
    }
}
impl<T> std::error::Error for SendError<T> {}
impl<T> std::error::Error for TrySendError<T> {}
impl std::error::Error for RecvError {}
