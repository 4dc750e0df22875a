// SPDX-License-Identifier: MIT
//! Descriptors and times for which the futures that a task polls wait, besides being woken. The
//! [`block_on`](crate::block_on) around them waits for all of these, and wakes the futures
//! concerned.
//!
//! C keeps the number of the innermost `block_on` for each task, and copies it to the tasks that it
//! spawns. So it is a number and no address: the thread looks up its `block_on`.

use crate::numbers::ByNumber;
use crate::sync::{Event, wait_on};
use crate::wait::{Interrupted, now};
use haft_sys as sys;
use std::cell::RefCell;
use std::ffi::{c_short, c_void};
use std::io;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    Readable(RawFd),
    Writable(RawFd),
    /// A time of the library's clock; one for each number.
    Time(usize, i64),
}

impl Interest {
    fn replaces(self, other: Interest) -> bool {
        match (self, other) {
            (Interest::Time(one, _), Interest::Time(two, _)) => one == two,
            (one, two) => one == two,
        }
    }
    /// The descriptor, with the events of poll(2).
    fn descriptor(self) -> Option<(RawFd, c_short)> {
        match self {
            Interest::Readable(descriptor) => Some((descriptor, 1)),
            Interest::Writable(descriptor) => Some((descriptor, 4)),
            Interest::Time(..) => None,
        }
    }
    fn time(self) -> Option<i64> {
        match self {
            Interest::Time(_, time) => Some(time),
            _ => None,
        }
    }
}

type List = Vec<(Interest, Waker)>;

thread_local! {
    /// The interests, by the number of the `block_on`.
    static LISTS: RefCell<ByNumber<List>> = RefCell::default();
}

/// The key of the number, by its address.
static KEY: u8 = 0;

fn current() -> usize {
    // SAFETY: any thread may call it, and a key is any address.
    unsafe { sys::haft_io_local_get(ptr::from_ref(&KEY).cast()) as usize }
}

/// # Safety
/// The caller is a task.
unsafe fn set_current(number: usize) {
    // SAFETY: as above; the value is a number, which nobody reads through.
    let code = unsafe { sys::haft_io_local_set(ptr::from_ref(&KEY).cast(), number as *mut c_void) };
    assert!(code == 0, "no memory for a task-local value");
}

/// Lets the interest wake the future that is being polled.
///
/// # Errors
/// It is not polled by a task in `block_on`.
pub(crate) fn wait_for(interest: Interest, waker: &Waker) -> io::Result<()> {
    let waker = waker.clone();
    let replaced = LISTS.with_borrow_mut(|lists| {
        let list = lists.get_mut(&current())?;
        let replaced = take(list, |other| interest.replaces(other));
        list.push((interest, waker));
        Some(replaced)
    });
    match replaced {
        Some(_) => Ok(()),
        None => Err(io::Error::other(
            "what waits by haft is polled outside of haft::block_on in a task",
        )),
    }
}

/// Removes interests from the list and returns them. They are woken or dropped when the list is no
/// longer borrowed, since that may come back here.
fn take(list: &mut List, leaves: impl Fn(Interest) -> bool) -> List {
    let all = std::mem::take(list).into_iter();
    let (left, others) = all.partition(|(interest, _)| leaves(*interest));
    *list = others;
    left
}

/// Called when the object that had the interest is dropped.
pub(crate) fn forget(interest: Interest) {
    // (While the thread's variables are destroyed there is nothing to forget.)
    let _ = LISTS.try_with(|lists| {
        let mut lists = lists.borrow_mut();
        let list = lists.get_mut(&current())?;
        Some(take(list, |other| interest.replaces(other)))
    });
}

/// The interests of one `block_on`. A thread without tasks has none, and its number is 0.
pub(crate) struct Interests {
    number: usize,
    outer: usize,
}

impl Interests {
    pub(crate) fn new() -> Self {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        // SAFETY: any thread may call it.
        if unsafe { sys::haft_rust_self() }.is_null() {
            return Interests {
                number: 0,
                outer: 0,
            };
        }
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let outer = current();
        // SAFETY: this is a task.
        unsafe { set_current(number) };
        LISTS.with_borrow_mut(|lists| lists.insert(number, List::new()));
        Interests { number, outer }
    }

    /// Waits until the event is set or anything of interest has come, and wakes the futures
    /// concerned.
    pub(crate) fn wait(&self, event: &Event) {
        let all: Vec<Interest> = LISTS.with_borrow(|lists| {
            let list = lists.get(&self.number).map_or(&[][..], Vec::as_slice);
            list.iter().map(|(interest, _)| *interest).collect()
        });
        if all.is_empty() {
            return event.wait_on();
        }
        let mut cases = vec![sys::haft_io_select_case_t {
            event: event.for_c(),
            ..sys::haft_io_select_case_t::ZERO
        }];
        for (descriptor, events) in all.iter().filter_map(|interest| interest.descriptor()) {
            let is_same = |case: &&mut sys::haft_io_select_case_t| {
                case.events != 0 && case.descriptor == descriptor
            };
            match cases.iter_mut().find(is_same) {
                Some(case) => case.events |= events,
                None => cases.push(sys::haft_io_select_case_t {
                    descriptor,
                    events,
                    ..sys::haft_io_select_case_t::ZERO
                }),
            }
        }
        let time = all.iter().filter_map(|interest| interest.time()).min();
        let until = time.unwrap_or(sys::HAFT_IO_FOREVER);
        // SAFETY: the cases live until the call returns, and the event, too.
        let chosen = wait_on(|| unsafe {
            sys::haft_io_select_until(cases.as_mut_ptr(), cases.len(), until) as isize
        });
        match chosen {
            Ok(0) => {}
            Ok(case) => self.wake(|of| {
                of.descriptor()
                    .is_some_and(|(descriptor, _)| descriptor == cases[case].descriptor)
            }),
            Err(Interrupted::TimedOut) => {
                let now = now();
                self.wake(|of| of.time().is_some_and(|time| time <= now));
            }
            // A descriptor was closed, for example: the futures that use descriptors find out.
            Err(_) => self.wake(|of| of.descriptor().is_some()),
        }
    }

    fn wake(&self, concerns: impl Fn(Interest) -> bool) {
        let woken = LISTS.with_borrow_mut(|lists| {
            let list = lists.get_mut(&self.number)?;
            Some(take(list, concerns))
        });
        woken
            .into_iter()
            .flatten()
            .for_each(|(_, waker)| waker.wake());
    }
}

impl Drop for Interests {
    fn drop(&mut self) {
        if self.number != 0 {
            let _ = LISTS.try_with(|lists| lists.borrow_mut().remove(&self.number));
            // (A computation that was suspended here may have ended elsewhere.)
            if current() == self.number {
                // SAFETY: so this is the task that has made it.
                unsafe { set_current(self.outer) };
            }
        }
    }
}
