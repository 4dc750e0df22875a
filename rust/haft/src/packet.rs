// SPDX-License-Identifier: MIT
//! State that a task and its handle share: it passes the outcome on, and decides which of the two
//! frees it.

use crate::sync::Event;
use crate::wait::Cancelled;
use haft_sys as sys;
use std::any::Any;
use std::cell::UnsafeCell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;

/// State that a task and its handle share: the outcome, and which of them is to free the job. The
/// packet is the beginning of the job.
pub(crate) struct Packet<T> {
    /// The last word of the two, each stored by a swap: the second to leave frees the job.
    ///
    /// - null: nothing yet.
    /// - A waker, in a box: the handle was polled as a future. The swap that takes it out owns it.
    /// - `TASK_LEFT`: the task has reported its end, and uses the packet no more.
    /// - `OWNER_LEFT`: the handle was dropped.
    pub(crate) said: AtomicPtr<Waker>,
    pub(crate) free: unsafe fn(NonNull<Packet<T>>),
    /// Valid until the end is reported.
    pub(crate) task: AtomicPtr<sys::haft_io_task_t>,
    pub(crate) end: Event,
    /// Belongs to the task until the end is reported; then to the handle.
    pub(crate) outcome: UnsafeCell<Option<thread::Result<T>>>,
    pub(crate) has_joiner: AtomicBool,
}

const TASK_LEFT: *mut Waker = ptr::without_provenance_mut(1);
const OWNER_LEFT: *mut Waker = ptr::without_provenance_mut(2);

impl<T> Packet<T> {
    /// Reports the end of the task.
    ///
    /// # Safety
    /// The task calls it, once, and does not call `end_elsewhere`.
    pub(crate) unsafe fn finish(&self, outcome: thread::Result<T>) {
        // SAFETY: the end is not reported yet, so the handle does not look at it.
        unsafe { *self.outcome.get() = Some(outcome) };
        self.end.set();
    }
    /// The same for a task whose outcome is elsewhere.
    pub(crate) fn end_elsewhere(&self) {
        self.end.set();
    }
    /// Whether a join of the task has begun.
    pub(crate) fn has_joiner(&self) -> bool {
        self.has_joiner.load(Ordering::Relaxed)
    }

    /// Stores a word; returns the word before, of the other side or of the caller.
    fn say(&self, word: *mut Waker) -> Said {
        match self.said.swap(word, Ordering::AcqRel) {
            TASK_LEFT | OWNER_LEFT => Said::HasLeft,
            waker if waker.is_null() => Said::Nothing,
            // SAFETY: it is of a box, and nobody else finds it here any more.
            waker => Said::Waker(unsafe { Box::from_raw(waker) }),
        }
    }
    /// To be called by the task when it has reported its end.
    ///
    /// # Safety
    /// The packet begins a job, and the task does not use it any more.
    pub(crate) unsafe fn leave(packet: NonNull<Self>) {
        // SAFETY: it is not freed before both have left.
        match unsafe { packet.as_ref() }.say(TASK_LEFT) {
            // SAFETY: the handle has left.
            Said::HasLeft => unsafe { Packet::free(packet) },
            Said::Waker(waker) => waker.wake(),
            Said::Nothing => {}
        }
    }
    /// # Safety
    /// Nobody uses it any more.
    unsafe fn free(packet: NonNull<Self>) {
        // SAFETY: it is what frees this one.
        unsafe { (packet.as_ref().free)(packet) };
    }
}

enum Said {
    Nothing,
    Waker(Box<Waker>),
    HasLeft,
}

/// The handle's part of a packet.
pub(crate) struct Owner<T>(pub(crate) NonNull<Packet<T>>);
// SAFETY: the outcome goes from the task's thread to the handle's, by way of the event; the rest is
// any thread's.
unsafe impl<T: Send> Send for Owner<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Owner<T> {}

impl<T> Owner<T> {
    pub(crate) fn packet(&self) -> &Packet<T> {
        // SAFETY: it is not freed before this is dropped.
        unsafe { self.0.as_ref() }
    }
    pub(crate) fn is_finished(&self) -> bool {
        self.end().is_set()
    }
    pub(crate) fn end(&self) -> &Event {
        &self.packet().end
    }
    /// Takes the outcome, once the end is reported.
    fn take_outcome(&mut self) -> Option<thread::Result<T>> {
        debug_assert!(self.is_finished());
        // SAFETY: then it is the handle's, of which there is one.
        unsafe { (*self.packet().outcome.get()).take() }
    }
    /// Joins the task. `elsewhere` returns the payload of a task that left none here.
    pub(crate) fn join_or(
        mut self,
        elsewhere: impl FnOnce() -> Option<Box<dyn Any + Send>>,
    ) -> thread::Result<T> {
        if !self.is_finished() {
            let packet = self.packet();
            let _joining = Joining::begin(&packet.has_joiner);
            let task = packet.task.load(Ordering::Acquire);
            // SAFETY: the task sets the event before it ends.
            if unsafe { packet.end.try_wait_for(task) }.is_err() {
                return Err(Box::new(Cancelled(())));
            }
        }
        self.take_outcome()
            .unwrap_or_else(|| Err(elsewhere().unwrap_or_else(|| Box::new(Cancelled(())))))
    }
    pub(crate) fn poll(&mut self, context: &Context<'_>) -> Poll<thread::Result<T>> {
        if !self.is_finished() {
            let waker = Box::into_raw(Box::new(context.waker().clone()));
            match self.packet().say(waker) {
                Said::HasLeft => drop(self.packet().say(TASK_LEFT)), // and no waker is left
                Said::Nothing | Said::Waker(_) => return Poll::Pending,
            }
        }
        let outcome = self.take_outcome();
        Poll::Ready(outcome.unwrap_or_else(|| Err(Box::new(Cancelled(())))))
    }
}

impl<T> Drop for Owner<T> {
    fn drop(&mut self) {
        // (The load saves a swap: most often the task has left.)
        if self.packet().said.load(Ordering::Acquire) == TASK_LEFT
            || matches!(self.packet().say(OWNER_LEFT), Said::HasLeft)
        {
            // SAFETY: the task has left.
            unsafe { Packet::free(self.0) };
        }
    }
}

/// A guard: a join is under way, until it is done or unwound.
struct Joining<'a>(&'a AtomicBool);
impl<'a> Joining<'a> {
    fn begin(flag: &'a AtomicBool) -> Self {
        flag.store(true, Ordering::Relaxed);
        Joining(flag)
    }
}
impl Drop for Joining<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
