// SPDX-License-Identifier: MIT
//! Tasks: how one starts, the state that it takes along, and the handle of its end.

use crate::blocking::this_task;
use crate::kept;
use crate::local;
use crate::names::name_of;
use crate::packet::{Owner, Packet};
use crate::run::{own_thread_locals_refused, this_run};
use crate::sync::Event;
use crate::wait::{drop_quietly, error_of_number};
use haft_sys as sys;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_void};
use std::mem::{self, ManuallyDrop};
use std::os::fd::{AsFd, AsRawFd};
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::task::{Context, Poll};
use std::{fmt, io, ptr, thread};

/// A packet, and the state that the task takes when it begins: all that a spawn allocates.
#[repr(C)]
struct Job<F, T> {
    packet: Packet<T>,
    begin: ManuallyDrop<Begin<F>>,
}
struct Begin<F> {
    function: F,
    /// The spawner's.
    locals: Option<Arc<local::List>>,
}

unsafe fn free<F, T>(packet: NonNull<Packet<T>>) {
    /// Gives the memory back, also if the task's result panics when it is dropped.
    struct Memory<J>(NonNull<J>);
    impl<J> Drop for Memory<J> {
        fn drop(&mut self) {
            // SAFETY: it is of `Unstarted::new`, and nobody uses it any more.
            unsafe { kept::give_back(self.0) };
        }
    }
    let _memory = Memory(packet.cast::<Job<F, T>>());
    // SAFETY: the packet begins such a job, and nobody uses it any more.
    unsafe { packet.drop_in_place() };
}

/// The task's part of a job, before there is a task.
pub(crate) struct Unstarted<F, T>(NonNull<Job<F, T>>);
// SAFETY: as of a function, and of a place for what it returns.
unsafe impl<F: Send, T: Send> Send for Unstarted<F, T> {}

impl<F, T> Drop for Unstarted<F, T> {
    fn drop(&mut self) {
        /// Leaves the packet, also if the function panics when it is dropped.
        struct Leaves<T>(NonNull<Packet<T>>);
        impl<T> Drop for Leaves<T> {
            fn drop(&mut self) {
                // SAFETY: this is its task, which leaves.
                unsafe {
                    self.0.as_ref().end_elsewhere();
                    Packet::leave(self.0);
                }
            }
        }
        let _leaves = Leaves(self.0.cast::<Packet<T>>());
        // SAFETY: no task has taken it.
        unsafe { ManuallyDrop::drop(&mut (*self.0.as_ptr()).begin) };
    }
}

impl<F: FnOnce(&Packet<T>), T> Unstarted<F, T> {
    /// Makes a job of a function that reports the end of the task.
    pub(crate) fn new(function: F) -> (Self, Owner<T>) {
        let job = kept::place(Job {
            packet: Packet {
                said: AtomicPtr::new(ptr::null_mut()),
                free: free::<F, T>,
                task: AtomicPtr::new(ptr::null_mut()),
                end: Event::new(),
                outcome: UnsafeCell::new(None),
                has_joiner: AtomicBool::new(false),
            },
            begin: ManuallyDrop::new(Begin {
                function,
                locals: None,
            }),
        });
        (Unstarted(job), Owner(job.cast()))
    }

    /// Starts a task of the scope; null: the current one. The task is valid until it ends.
    ///
    /// # Safety
    /// The function, and what it borrows, is valid until the scope has ended; and if the run has
    /// several threads, it may be sent to another one.
    unsafe fn start(
        self,
        scope: *mut sys::haft_io_scope_t,
        name: Option<&'static CStr>,
        own_thread_locals: bool,
    ) -> *mut sys::haft_io_task_t {
        assert!(this_run() != 0, "a task is spawned outside of haft::run");
        let options = sys::haft_io_task_options_t {
            scope,
            name: name.map_or(ptr::null(), CStr::as_ptr),
            even_without_stack: true,
            own_thread_locals,
            ..sys::haft_io_task_options_t::ZERO
        };
        let job = self.0.as_ptr();
        // SAFETY: there is no task yet, and the handle does not look at this.
        let begin = unsafe { &mut (*job).begin };
        begin.locals = local::current();
        // SAFETY: `enter` takes the job, and lets no panic out; the name is static.
        let task = unsafe { sys::haft_io_spawn_known(&options, Self::enter, job.cast()) };
        assert!(!task.is_null(), "no memory for a task");
        mem::forget(self);
        task
    }

    /// There is no memory for the stack of the task.
    #[cold]
    fn refuse(self) {
        let payload = Box::new("no memory for the stack of a task");
        // SAFETY: no task has taken it, and it only reports its end again.
        unsafe { self.0.cast::<Packet<T>>().as_ref().finish(Err(payload)) };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(self))) {
            drop_quietly(payload);
        }
    }

    unsafe extern "C" fn enter(argument: *mut c_void) -> *mut c_void {
        let job = argument.cast::<Job<F, T>>();
        if this_run() == 0 {
            // SAFETY: it comes from `start`; a task's function is called once.
            Unstarted(unsafe { NonNull::new_unchecked(job) }).refuse();
            return ptr::null_mut();
        }
        // SAFETY: as above.
        let Begin { function, locals } =
            ManuallyDrop::into_inner(unsafe { (&raw const (*job).begin).read() });
        // SAFETY: any thread may call it. Waits set it, too, but have less to do where it is set.
        unsafe { sys::haft_io_return_cancels(true) };
        let body = move || {
            let _entered = locals.map(local::Entered::new);
            // SAFETY: it is not freed before this leaves.
            let packet = unsafe { NonNull::new_unchecked(job.cast::<Packet<T>>()) };
            // SAFETY: as above.
            function(unsafe { packet.as_ref() });
            // SAFETY: it is the task that leaves.
            unsafe { Packet::leave(packet) };
        };
        if catch_unwind(AssertUnwindSafe(body)).is_err() {
            // The drop of the task's result has panicked, and no joiner can get that panic.
            std::process::abort();
        }
        #[cfg(feature = "tracing")]
        crate::tracing::forget_task();
        ptr::null_mut()
    }
}

/// Starts a task of the scope, null: the current one, by a function that reports its end.
///
/// # Safety
/// The same as for `Unstarted::start`.
pub(crate) unsafe fn start<F: FnOnce(&Packet<T>), T>(
    scope: *mut sys::haft_io_scope_t,
    name: Option<&'static CStr>,
    function: F,
) -> Owner<T> {
    // SAFETY: the caller promises it.
    unsafe { start_with(scope, name, false, function) }
}

/// The same, with the choice of thread-local variables of the task's own.
///
/// # Safety
/// The same as for `Unstarted::start`.
unsafe fn start_with<F: FnOnce(&Packet<T>), T>(
    scope: *mut sys::haft_io_scope_t,
    name: Option<&'static CStr>,
    own_thread_locals: bool,
    function: F,
) -> Owner<T> {
    let (unstarted, owner) = Unstarted::new(function);
    // SAFETY: the caller promises it.
    let task = unsafe { unstarted.start(scope, name, own_thread_locals) };
    owner.packet().task.store(task, Ordering::Release);
    owner
}

/// A task whose end can be waited for, as [`std::thread::JoinHandle`] of a thread.
///
/// It is a future, too, for async code on other threads. If it is dropped, the task goes on. A task
/// that never begins, since its [`Runtime`](crate::Runtime) has ended, ends as a cancelled one.
///
/// ```
/// haft::run(|| {
///     let tasks: Vec<_> = (0..3).map(|i| haft::spawn(move || i * i)).collect();
///     let squares: Vec<i32> = tasks.into_iter().map(|task| task.join().unwrap()).collect();
///     assert_eq!(squares, [0, 1, 4]);
/// });
/// ```
#[must_use = "a task whose handle is dropped goes on, and its panic is seen by nobody"]
pub struct JoinHandle<T>(Owner<T>);

// The joiner gets a panic of the task as an error, as with threads.
impl<T> UnwindSafe for JoinHandle<T> {}
impl<T> RefUnwindSafe for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    pub(crate) fn end(&self) -> &Event {
        self.0.end()
    }
    /// Waits for the end of the task and returns what it returned. The error is the payload of its
    /// panic, which is [`Cancelled`](crate::Cancelled) if it was cancelled. On a thread without
    /// tasks, blocks the thread.
    ///
    /// # Errors
    /// The task has panicked, or was cancelled.
    ///
    /// ```
    /// haft::run(|| {
    ///     let task = haft::spawn(|| -> u32 { std::panic::resume_unwind(Box::new("no luck")) });
    ///     let payload = task.join().unwrap_err();
    ///     assert_eq!(*payload.downcast::<&str>().unwrap(), "no luck");
    /// });
    /// ```
    pub fn join(self) -> thread::Result<T> {
        self.0.join_or(|| None)
    }
    /// Whether the task has ended, so that a join returns at once.
    ///
    /// ```
    /// haft::run(|| {
    ///     let task = haft::spawn(|| ());
    ///     assert!(!task.is_finished()); // it begins when this task waits
    ///     haft::yield_now();
    ///     assert!(task.is_finished());
    /// });
    /// ```
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = thread::Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().0.poll(context)
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("is_finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

/// Starts a task of the innermost scope, or of the run. It begins when the caller waits next, or on
/// another thread of the run. It does not inherit the handlers around the caller.
///
/// Dumps, traces and debuggers call it by the caller's name ([`set_task_name`]), or, if that has
/// been given none, by the function and the place of this call, `shop::serve (main.rs:31)`.
///
/// # Panics
/// Outside of [`run`](crate::run), and if there is no memory.
///
/// ```
/// haft::run(|| {
///     let task = haft::spawn(|| 42);
///     assert_eq!(task.join().unwrap(), 42);
/// });
/// ```
#[track_caller]
pub fn spawn<F, T>(function: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    spawn_by(name_of::<F>(), function)
}

/// Like [`spawn`], for a task with a name of its own, which dumps and messages show.
///
/// ```
/// haft::run(|| {
///     let task = haft::spawn_named(c"cleaner", haft::task_name);
///     assert_eq!(task.join().unwrap().unwrap(), "cleaner");
/// });
/// ```
///
/// # Panics
/// Like [`spawn`].
pub fn spawn_named<F, T>(name: &'static CStr, function: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    spawn_by(Some(name), function)
}

fn spawn_by<F, T>(name: Option<&'static CStr>, function: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // SAFETY: the function borrows nothing, and is `Send`.
    JoinHandle(unsafe { start(ptr::null_mut(), name, finishing(function)) })
}

/// Like [`spawn`], but in the outermost scope, that of the run: the task outlives the scopes around
/// the caller, and their cancels and deadlines do not reach it. So a library can keep an idle
/// connection, for example, for later callers. The run does not end before the task.
///
/// ```
/// use std::time::Duration;
///
/// haft::run(|| {
///     let (sender, receiver) = haft::channel(1);
///     let outcome = haft::timeout(Duration::from_secs(60), || {
///         haft::spawn_in_run(move || receiver.iter().sum::<u32>())
///     });
///     sender.send(42).unwrap(); // the scope of the timeout has ended, the task has not
///     drop(sender);
///     assert_eq!(outcome.unwrap().join().unwrap(), 42);
/// });
/// ```
///
/// # Panics
/// Like [`spawn`].
#[track_caller]
pub fn spawn_in_run<F, T>(function: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // SAFETY: the function borrows nothing, and is `Send`; any thread may ask for the scope, which
    // is open as long as this task.
    JoinHandle(unsafe {
        start(
            sys::haft_io_run_scope(),
            name_of::<F>(),
            finishing(function),
        )
    })
}

/// Like [`spawn`], for a task with thread-local variables of its own, in a run whose other tasks
/// share those of their thread: see
/// [`Options::own_thread_locals`](crate::Options::own_thread_locals). A join may return before the
/// destructors of the variables have run; the scope does not end before.
///
/// # Errors
/// `Unsupported`, where they cannot be had: see
/// [`own_thread_locals_refused`](crate::own_thread_locals_refused).
///
/// # Panics
/// Like [`spawn`].
///
/// ```
/// haft::run(|| {
///     let this = std::thread::current().id();
///     let other = haft::spawn_with_own_thread_locals(|| std::thread::current().id());
///     match other {
///         Ok(other) => assert_ne!(other.join().unwrap(), this),
///         Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::Unsupported),
///     }
/// });
/// ```
#[track_caller]
pub fn spawn_with_own_thread_locals<F, T>(function: F) -> io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    if let Some(reason) = own_thread_locals_refused() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
    }
    let name = name_of::<F>();
    // SAFETY: the function borrows nothing, and is `Send`.
    let owner = unsafe { start_with(ptr::null_mut(), name, true, finishing(function)) };
    Ok(JoinHandle(owner))
}

/// The outcome of the task is that of the function.
fn finishing<T>(function: impl FnOnce() -> T + Send) -> impl FnOnce(&Packet<T>) + Send {
    // SAFETY: it is called once.
    move |packet| unsafe { packet.finish(catch_unwind(AssertUnwindSafe(function))) }
}

/// Like [`spawn`], but the task that calls the second part starts it.
pub(crate) fn prepared<F, T>(function: F) -> (JoinHandle<T>, impl FnOnce() + Send + 'static)
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (unstarted, owner) = Unstarted::new(finishing(function));
    let start = move || {
        // SAFETY: as above.
        unsafe { unstarted.start(ptr::null_mut(), None, false) };
    };
    (JoinHandle(owner), start)
}

/// Names the current task, for dumps and messages. Tasks that it spawns inherit the name. Outside
/// of a run, nothing.
///
/// ```
/// haft::run(|| {
///     haft::set_task_name(c"server");
///     assert_eq!(haft::task_name().unwrap(), "server");
/// });
/// ```
pub fn set_task_name(name: &'static CStr) {
    // SAFETY: the name is static.
    unsafe { sys::haft_io_task_set_name(name.as_ptr()) };
}

/// Writes to a descriptor, such as `std::io::stderr()`, the scopes and tasks of the run: for each
/// task its name, what it waits for, and for how long.
///
/// # Errors
/// `ESRCH` outside of a run; the system's, where it cannot be written.
///
/// ```
/// haft::run(|| {
///     let file = std::fs::File::create("/dev/null").unwrap();
///     haft::dump(&file).unwrap();
/// });
/// ```
pub fn dump(descriptor: impl AsFd) -> io::Result<()> {
    let descriptor = descriptor.as_fd();
    // SAFETY: the descriptor is open as long as it is borrowed.
    match unsafe { sys::haft_io_dump(descriptor.as_raw_fd()) } {
        code if code < 0 => Err(error_of_number(-code)),
        _ => Ok(()),
    }
}

/// The name of the current task, `Some("")` if it has none; `None` outside of a run.
///
/// ```
/// assert_eq!(haft::task_name(), None); // no task
/// haft::run(|| assert_eq!(haft::task_name().unwrap(), ""));
/// ```
#[must_use]
pub fn task_name() -> Option<String> {
    let task = this_task();
    if task.is_null() {
        return None;
    }
    // SAFETY: it is the current task, whose name lives as long as it is the task's.
    let name = unsafe { CStr::from_ptr(sys::haft_io_task_name(task)) };
    Some(name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::Cancelled;
    use std::task::Waker;

    #[test]
    fn a_task_that_never_begins_is_an_error_of_its_future() {
        let (mut handle, start) = prepared(|| 42);
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = || Pin::new(&mut handle).poll(&mut context);
        assert!(poll().is_pending());
        drop(start);
        assert!(matches!(poll(), Poll::Ready(Err(payload)) if payload.is::<Cancelled>()));
    }
}
