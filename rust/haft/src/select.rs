// SPDX-License-Identifier: MIT
//! Parts of the macro [`select!`](crate::select!).

use crate::channels::{Receiver, RecvError, SendError, Sender};
use crate::descriptor::error_of;
use crate::scope::ScopedJoinHandle;
use crate::sync::{Event, wait_on};
use crate::task::JoinHandle;
use crate::wait::{Interrupted, from_now};
use haft_sys as sys;
use std::mem::{self, MaybeUninit};
use std::time::Duration;

/// Waits for the first of several things, and does it: at once if one can be done, and if several
/// can, calls vary their choice.
///
/// - `recv(receiver) -> result`: a value of a [`channel`](crate::channel), as by
///   [`Receiver::recv`].
/// - `send(sender, value) -> result`: as by [`Sender::send`]. The value is dropped if another arm
///   is chosen.
/// - `set(event)`: an [`Event`](crate::sync::Event) is set.
/// - `ended(handle)`: a task has ended, so that its join returns at once.
/// - `default(duration)`: nothing of all that until so much time has passed. It comes last.
///
/// The bodies may use `?`, `break`, `continue` and `return` as around the macro. In a destructor
/// that runs while its thread is panicking a cancel does not end this wait, since then no arm could
/// be chosen: give it a `default` there.
///
/// ```
/// use std::time::Duration;
///
/// haft::run(|| {
///     let (sender, numbers) = haft::channel(1);
///     let stop = haft::sync::Event::new();
///     let sum = haft::scope(|s| {
///         s.spawn(|| {
///             (1..=3).for_each(|i| sender.send(i).unwrap());
///             haft::sleep(Duration::from_millis(1));
///             stop.set();
///         });
///         let mut sum = 0;
///         loop {
///             haft::select! {
///                 recv(numbers) -> number => sum += number.unwrap(),
///                 set(stop) => break sum,
///                 default(Duration::from_secs(60)) => panic!("nothing happens"),
///             }
///         }
///     });
///     assert_eq!(sum, 6);
/// });
/// ```
///
/// # Panics
/// If there is no memory for more than 16 arms.
#[macro_export]
macro_rules! select {
    // Each arm gets a variable of its own. (The names differ, since each comes from another
    // expansion.)
    (@arms [$($arms:tt)*] recv($receiver:expr) -> $result:pat => $body:expr $(, $($rest:tt)*)?) => {
        match $crate::__select::Receives::new(&$receiver) {
            mut arm => $crate::select!(@arms [$($arms)* (arm, $result, $body)] $($($rest)*)?),
        }
    };
    (@arms [$($arms:tt)*] send($sender:expr, $value:expr) -> $result:pat => $body:expr $(, $($rest:tt)*)?) => {
        match $crate::__select::Sends::new(&$sender, $value) {
            mut arm => $crate::select!(@arms [$($arms)* (arm, $result, $body)] $($($rest)*)?),
        }
    };
    (@arms [$($arms:tt)*] set($event:expr) => $body:expr $(, $($rest:tt)*)?) => {
        match $crate::__select::IsSet(&$event) {
            mut arm => $crate::select!(@arms [$($arms)* (arm, (), $body)] $($($rest)*)?),
        }
    };
    (@arms [$($arms:tt)*] ended($handle:expr) => $body:expr $(, $($rest:tt)*)?) => {
        match $crate::__select::IsSet($crate::__select::Ends::end(&$handle)) {
            mut arm => $crate::select!(@arms [$($arms)* (arm, (), $body)] $($($rest)*)?),
        }
    };
    (@arms [$(($arm:ident, $result:pat, $body:expr))+] default($time:expr) => $default:expr $(,)?) => {{
        let limit = ::core::option::Option::Some($time);
        let chosen = $crate::__select::wait_for(&mut [$(&mut $arm),+], limit);
        $crate::select!(@match chosen [$(($arm, $result, $body))+] $default)
    }};
    (@arms [$(($arm:ident, $result:pat, $body:expr))+]) => {{
        let limit = ::core::option::Option::None;
        let chosen = $crate::__select::wait_for(&mut [$(&mut $arm),+], limit);
        $crate::select!(@match chosen [$(($arm, $result, $body))+]
            ::core::unreachable!("a wait without a limit has run out of time"))
    }};
    (@match $chosen:ident [] $default:expr) => { $default };
    (@match $chosen:ident [($arm:ident, $result:pat, $body:expr) $($rest:tt)*] $default:expr) => {
        match $chosen.checked_sub(1) {
            ::core::option::Option::None => {
                let $result = $arm.finish();
                $body
            }
            ::core::option::Option::Some(chosen) => {
                $crate::select!(@match chosen [$($rest)*] $default)
            }
        }
    };
    ($($arms:tt)+) => { $crate::select!(@arms [] $($arms)+) };
}

/// An arm of the macro.
///
/// # Safety
/// The case, and the place of its value, are valid while `self` is neither moved nor dropped; and
/// the values are of the channel's type.
pub unsafe trait Arm {
    /// The case for C to wait for.
    fn case(&mut self) -> sys::haft_io_select_case_t;
    /// Called when the arm was chosen. `done`: C has done it; otherwise it cannot be done.
    ///
    /// # Safety
    /// The arm was chosen, after `case`, and this is called once.
    unsafe fn is_chosen(&mut self, _done: bool) {}
}

/// The place of a value that C takes from there, or puts there, while it waits.
struct Slot<T> {
    value: MaybeUninit<T>,
    is_full: bool,
}
impl<T> Slot<T> {
    fn new(value: Option<T>) -> Self {
        let is_full = value.is_some();
        let value = value.map_or(MaybeUninit::uninit(), MaybeUninit::new);
        Slot { value, is_full }
    }
    fn take(&mut self) -> Option<T> {
        // SAFETY: it is there, and not any more.
        mem::take(&mut self.is_full).then(|| unsafe { self.value.assume_init_read() })
    }
}
impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// `recv(receiver) -> result`.
pub struct Receives<'a, T> {
    receiver: &'a Receiver<T>,
    slot: Slot<T>,
}
impl<'a, T: Send> Receives<'a, T> {
    pub fn new(receiver: &'a Receiver<T>) -> Self {
        let slot = Slot::new(None);
        Receives { receiver, slot }
    }
    pub fn finish(&mut self) -> Result<T, RecvError> {
        self.slot.take().ok_or(RecvError)
    }
}
// SAFETY: the slot has room for a value of the receiver.
unsafe impl<T> Arm for Receives<'_, T> {
    fn case(&mut self) -> sys::haft_io_select_case_t {
        sys::haft_io_select_case_t {
            channel: self.receiver.channel(),
            receive: self.slot.value.as_mut_ptr().cast(),
            ..sys::haft_io_select_case_t::ZERO
        }
    }
    unsafe fn is_chosen(&mut self, done: bool) {
        self.slot.is_full = done;
    }
}

/// `send(sender, value) -> result`.
pub struct Sends<'a, T> {
    sender: &'a Sender<T>,
    slot: Slot<T>,
}
impl<'a, T: Send> Sends<'a, T> {
    pub fn new(sender: &'a Sender<T>, value: T) -> Self {
        let slot = Slot::new(Some(value));
        Sends { sender, slot }
    }
    pub fn finish(&mut self) -> Result<(), SendError<T>> {
        self.slot
            .take()
            .map_or(Ok(()), |value| Err(SendError(value)))
    }
}
// SAFETY: the slot has a value of the sender.
unsafe impl<T> Arm for Sends<'_, T> {
    fn case(&mut self) -> sys::haft_io_select_case_t {
        sys::haft_io_select_case_t {
            channel: self.sender.channel(),
            send: self.slot.value.as_ptr().cast(),
            ..sys::haft_io_select_case_t::ZERO
        }
    }
    unsafe fn is_chosen(&mut self, done: bool) {
        self.slot.is_full = !done; // else the value is the channel's now
    }
}

/// `set(event)` and `ended(handle)`.
pub struct IsSet<'a>(pub &'a Event);
impl IsSet<'_> {
    pub fn finish(&self) {}
}
// SAFETY: the event is borrowed.
unsafe impl Arm for IsSet<'_> {
    fn case(&mut self) -> sys::haft_io_select_case_t {
        sys::haft_io_select_case_t {
            event: self.0.for_c(),
            ..sys::haft_io_select_case_t::ZERO
        }
    }
}

/// A handle that `ended` takes.
pub trait Ends {
    /// Is set at the end.
    fn end(&self) -> &Event;
}
impl<T> Ends for JoinHandle<T> {
    fn end(&self) -> &Event {
        self.end()
    }
}
impl<T> Ends for ScopedJoinHandle<'_, T> {
    fn end(&self) -> &Event {
        self.end()
    }
}

/// The index of the arm that was done; their count: the time has run out.
pub fn wait_for(arms: &mut [&mut dyn Arm], limit: Option<Duration>) -> usize {
    let mut cases: Vec<_> = arms.iter_mut().map(|arm| arm.case()).collect();
    let deadline = limit.map_or(sys::HAFT_IO_FOREVER, from_now);
    // SAFETY: what the cases point to is borrowed by the arms until this has returned.
    let chosen = wait_on(|| unsafe {
        sys::haft_io_select_until(cases.as_mut_ptr(), cases.len(), deadline) as isize
    });
    match chosen {
        Ok(index) => {
            // SAFETY: C has chosen this arm.
            unsafe { arms[index].is_chosen(cases[index].code == 0) };
            index
        }
        Err(Interrupted::TimedOut) => arms.len(),
        Err(interrupted) => panic!("haft::select!: {}", error_of(interrupted)),
    }
}
