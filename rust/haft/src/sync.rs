// SPDX-License-Identifier: MIT
//! Objects that tasks and threads wait for: events, mutexes, semaphores, channels.
//!
//! The locks of std suspend a task, too. A wait for one of these, other than for a lock of std,
//! ends when its task is cancelled; and they serve the waiters in the order in which they came.

pub use crate::channels::{Receiver, RecvError, SendError, Sender, TrySendError, channel};
use crate::wait::{Interrupted, shielded, wait};
use haft_sys as sys;
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::RefUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};

/// Something that has happened, or not yet.
///
/// ```
/// use haft::sync::Event;
///
/// let ready = Event::new();
/// haft::run(|| {
///     haft::scope(|s| {
///         s.spawn(|| ready.set());
///         ready.wait();
///     });
/// });
/// assert!(ready.is_set());
/// ```
pub struct Event {
    inner: UnsafeCell<sys::haft_io_event_t>,
    is_set: AtomicBool,
}
// SAFETY: the C library locks it; any thread may set it and wait for it.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}
impl RefUnwindSafe for Event {}

impl Event {
    /// An event that is not set.
    ///
    /// ```
    /// static READY: haft::sync::Event = haft::sync::Event::new();
    /// assert!(!READY.is_set());
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Event {
            inner: UnsafeCell::new(sys::haft_io_event_t::ZERO),
            is_set: AtomicBool::new(false),
        }
    }
    /// Ends all waits, those that begin later, too.
    ///
    /// ```
    /// let event = haft::sync::Event::new();
    /// event.set();
    /// event.wait(); // returns at once
    /// ```
    pub fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        // SAFETY: it is not moved while `self` is borrowed, and the waiters borrow it, too.
        unsafe { sys::haft_io_event_set(self.inner.get()) };
    }
    /// Lets waits that begin from now on wait for the next [`set`](Self::set).
    ///
    /// ```
    /// let event = haft::sync::Event::new();
    /// event.set();
    /// event.clear();
    /// assert!(!event.is_set());
    /// ```
    pub fn clear(&self) {
        self.is_set.store(false, Ordering::Release);
        // SAFETY: as above.
        unsafe { sys::haft_io_event_clear(self.inner.get()) };
    }
    /// Whether it is set.
    ///
    /// ```
    /// let event = haft::sync::Event::new();
    /// event.set();
    /// assert!(event.is_set());
    /// ```
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }
    /// Waits until it is set.
    ///
    /// ```
    /// let event = haft::sync::Event::new();
    /// haft::run(|| {
    ///     haft::scope(|s| {
    ///         s.spawn(|| event.set());
    ///         event.wait();
    ///     });
    /// });
    /// ```
    pub fn wait(&self) {
        let _ = self.try_wait();
    }
    pub(crate) fn try_wait(&self) -> Result<(), Interrupted> {
        // SAFETY: as in `set`; the wait has left the event when it returns.
        wait(|| unsafe { sys::haft_io_event_wait(self.inner.get()) } as isize).map(drop)
    }
    /// Waits for the event by [`wait_on`].
    pub(crate) fn wait_on(&self) {
        // SAFETY: as in `try_wait`.
        acquire(|| unsafe { sys::haft_io_event_wait(self.inner.get()) });
    }
    /// Like `try_wait`, for an event that the task sets before it ends; null: no task. A task that
    /// has not started goes first.
    ///
    /// # Safety
    /// It is such a task.
    pub(crate) unsafe fn try_wait_for(
        &self,
        task: *mut sys::haft_io_task_t,
    ) -> Result<(), Interrupted> {
        // SAFETY: as in `try_wait`; and the caller promises it.
        wait(|| unsafe { sys::haft_io_event_wait_for(self.inner.get(), task) } as isize).map(drop)
    }
    pub(crate) fn for_c(&self) -> *mut sys::haft_io_event_t {
        self.inner.get()
    }
}

impl Default for Event {
    fn default() -> Self {
        Event::new()
    }
}
impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("is_set", &self.is_set())
            .finish_non_exhaustive()
    }
}

/// Makes a wait whose outcome the caller has to return. Where a cancel could only end the wait,
/// since the thread is panicking, the wait is made once more, to its end.
pub(crate) fn wait_on(mut call: impl FnMut() -> isize) -> Result<usize, Interrupted> {
    match wait(&mut call) {
        Err(Interrupted::Cancelled) => shielded(|| wait(call)),
        outcome => outcome,
    }
}

/// Like [`wait_on`], for a call that does not fail.
fn acquire(call: impl Fn() -> c_int) {
    let done = wait_on(|| call() as isize);
    assert!(done.is_ok(), "a wait that no cancel reaches has failed");
}

// ---- Mutexes ----

/// A value for one task at a time, which may wait meanwhile. A panic does not poison it.
///
/// ```
/// use haft::sync::Mutex;
///
/// let log = Mutex::new(Vec::new());
/// haft::run(|| {
///     haft::all((0..3).map(|i| {
///         let log = &log;
///         move || {
///             let mut log = log.lock();
///             haft::yield_now(); // the others wait
///             log.push(i);
///         }
///     }))
/// });
/// assert_eq!(log.into_inner(), [0, 1, 2]);
/// ```
pub struct Mutex<T: ?Sized> {
    inner: UnsafeCell<sys::haft_io_mutex_t>,
    value: UnsafeCell<T>,
}
// SAFETY: the C library's mutex lets one task at a time have the value, on any thread.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// A mutex with this value, which is not locked.
    ///
    /// ```
    /// static TOTAL: haft::sync::Mutex<u32> = haft::sync::Mutex::new(0);
    /// *TOTAL.lock() += 1;
    /// assert_eq!(*TOTAL.lock(), 1);
    /// ```
    pub const fn new(value: T) -> Self {
        Mutex {
            inner: UnsafeCell::new(sys::haft_io_mutex_t::ZERO),
            value: UnsafeCell::new(value),
        }
    }
    /// Returns the value.
    ///
    /// ```
    /// assert_eq!(haft::sync::Mutex::new(42).into_inner(), 42);
    /// ```
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until the mutex is free, and locks it.
    ///
    /// ```
    /// let names = haft::sync::Mutex::new(vec!["ada"]);
    /// names.lock().push("grace");
    /// assert_eq!(names.lock().len(), 2);
    /// ```
    pub fn lock(&self) -> MutexGuard<'_, T> {
        // SAFETY: it is not moved while `self` is borrowed, and the waiters borrow it, too.
        acquire(|| unsafe { sys::haft_io_mutex_lock(self.inner.get()) });
        self.guard()
    }
    /// Locks the mutex without a wait; `None` if it is locked.
    ///
    /// ```
    /// let mutex = haft::sync::Mutex::new(());
    /// let held = mutex.lock();
    /// assert!(mutex.try_lock().is_none());
    /// drop(held);
    /// assert!(mutex.try_lock().is_some());
    /// ```
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        // SAFETY: as above.
        unsafe { sys::haft_io_mutex_try_lock(self.inner.get()) }.then(|| self.guard())
    }
    /// The value, to which this is the only reference.
    ///
    /// ```
    /// let mut mutex = haft::sync::Mutex::new(41);
    /// *mutex.get_mut() += 1;
    /// assert_eq!(mutex.into_inner(), 42);
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
    fn guard(&self) -> MutexGuard<'_, T> {
        MutexGuard {
            mutex: self,
            value: PhantomData,
        }
    }
}

impl<T: ?Sized> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

/// The value of a [`Mutex`], until this is dropped.
///
/// ```
/// let mutex = haft::sync::Mutex::new(String::new());
/// let mut text = mutex.lock();
/// text.push_str("hello");
/// assert_eq!(text.len(), 5);
/// ```
#[must_use = "the mutex is unlocked at once if its guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// So it is `Sync` only where the value is.
    value: PhantomData<&'a mut T>,
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the owner of the guard has the mutex, and so the value.
        unsafe { &*self.mutex.value.get() }
    }
}
impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.mutex.value.get() }
    }
}
impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: it is locked, and any task or thread may unlock it.
        unsafe { sys::haft_io_mutex_unlock(self.mutex.inner.get()) };
    }
}
impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

// ---- Semaphores ----

/// A number of permits, for work that only so many tasks may do at once.
///
/// ```
/// use haft::sync::Semaphore;
///
/// let connections = Semaphore::new(2);
/// haft::run(|| {
///     let first = connections.acquire();
///     let _second = connections.acquire();
///     assert!(connections.try_acquire().is_none());
///     drop(first);
///     assert!(connections.try_acquire().is_some());
/// });
/// ```
pub struct Semaphore {
    inner: UnsafeCell<sys::haft_io_semaphore_t>,
}
// SAFETY: the C library locks it.
unsafe impl Send for Semaphore {}
// SAFETY: as above.
unsafe impl Sync for Semaphore {}
impl RefUnwindSafe for Semaphore {}

impl Semaphore {
    /// A semaphore with so many permits.
    ///
    /// ```
    /// static CONNECTIONS: haft::sync::Semaphore = haft::sync::Semaphore::new(10);
    /// let _one = CONNECTIONS.acquire();
    /// ```
    #[must_use]
    pub const fn new(permits: u32) -> Self {
        Semaphore {
            inner: UnsafeCell::new(sys::haft_io_semaphore_t {
                count: permits as u64,
                ..sys::haft_io_semaphore_t::ZERO
            }),
        }
    }
    /// Waits for a permit.
    ///
    /// ```
    /// let permits = haft::sync::Semaphore::new(1);
    /// let first = permits.acquire();
    /// drop(first);
    /// let _second = permits.acquire();
    /// ```
    pub fn acquire(&self) -> Permit<'_> {
        // SAFETY: it is not moved while `self` is borrowed, and the waiters borrow it, too.
        acquire(|| unsafe { sys::haft_io_semaphore_acquire(self.inner.get()) });
        Permit(self)
    }
    /// Takes a permit without a wait; `None` if there is none.
    ///
    /// ```
    /// let permits = haft::sync::Semaphore::new(1);
    /// let first = permits.try_acquire();
    /// assert!(first.is_some() && permits.try_acquire().is_none());
    /// ```
    pub fn try_acquire(&self) -> Option<Permit<'_>> {
        // SAFETY: as above.
        unsafe { sys::haft_io_semaphore_try_acquire(self.inner.get()) }.then(|| Permit(self))
    }
    /// Adds a permit.
    ///
    /// ```
    /// let permits = haft::sync::Semaphore::new(1);
    /// permits.release();
    /// assert!(permits.try_acquire().is_some_and(|_first| permits.try_acquire().is_some()));
    /// ```
    pub fn release(&self) {
        // SAFETY: as above.
        unsafe { sys::haft_io_semaphore_release(self.inner.get()) };
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").finish_non_exhaustive()
    }
}

/// A permit of a [`Semaphore`], which is given back when this is dropped; by [`std::mem::forget`],
/// never.
///
/// ```
/// let permits = haft::sync::Semaphore::new(1);
/// let permit = permits.acquire();
/// assert!(permits.try_acquire().is_none());
/// drop(permit);
/// ```
#[must_use = "the permit is given back at once if this is dropped"]
#[derive(Debug)]
pub struct Permit<'a>(&'a Semaphore);
impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}
