// SPDX-License-Identifier: MIT
//! Runs and their tasks.

use crate::blocking::{guard_panic_hook, this_task};
use crate::local;
use crate::sync::Event;
use crate::wait::{Call, nanoseconds};
use haft_sys as sys;
use std::any::Any;
use std::ffi::{CStr, c_int, c_void};
use std::os::fd::{AsFd, AsRawFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use std::{fmt, io, ptr, thread};

/// The payload of the panic that unwinds a task that has been cancelled.
///
/// Whoever joins the task gets it as the error. Code that catches panics lets it pass, or only
/// delays it: the next wait raises it again.
///
/// ```
/// haft::run(|| {
///     let outcome = haft::scope(|s| {
///         let task = s.spawn(|| haft::sleep(std::time::Duration::from_secs(60)));
///         s.cancel();
///         haft::shield(|| task.join())
///     });
///     assert!(outcome.unwrap_err().is::<haft::Cancelled>());
/// });
/// ```
pub struct Cancelled(pub(crate) ());

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cancelled")
    }
}
impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task was cancelled")
    }
}
impl std::error::Error for Cancelled {}

pub(crate) fn is_cancel(payload: &(dyn Any + Send)) -> bool {
    payload.is::<Cancelled>()
}

// ---- Runs ----

/// How [`run_with`] runs tasks.
///
/// ```
/// let options = haft::Options::new().threads(2).stack_size(256 * 1024);
/// let answer = haft::run_with(options, || 42).unwrap();
/// assert_eq!(answer, 42);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    threads: Option<u16>,
    stack_size: usize,
    backend: Option<&'static CStr>,
    watchdog: Option<Duration>,
}

impl Options {
    /// One thread, and otherwise the library's defaults.
    ///
    /// ```
    /// assert_eq!(haft::run_with(haft::Options::new(), || 42).unwrap(), 42);
    /// ```
    pub fn new() -> Self {
        Options {
            threads: Some(1),
            ..Options::default()
        }
    }
    /// On how many threads tasks run; 0 means one per processor that the process may use. A task
    /// stays on the thread on which it began.
    ///
    /// ```
    /// let options = haft::Options::new().threads(2);
    /// assert_eq!(haft::run_with(options, || haft::spawn(|| 42).join().unwrap()).unwrap(), 42);
    /// ```
    pub fn threads(mut self, threads: u16) -> Self {
        self.threads = Some(threads);
        self
    }
    /// Bytes of addresses for the stack of a task; only what is used takes memory.
    ///
    /// ```
    /// let options = haft::Options::new().stack_size(64 * 1024);
    /// assert_eq!(haft::run_with(options, || 42).unwrap(), 42);
    /// ```
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = bytes;
        self
    }
    /// `c"epoll"`, say; without it, what the system has.
    ///
    /// ```
    /// let unknown = haft::Options::new().backend(c"carrier pigeons");
    /// assert!(haft::run_with(unknown, || ()).is_err());
    /// ```
    pub fn backend(mut self, name: &'static CStr) -> Self {
        self.backend = Some(name);
        self
    }
    /// A task that holds its thread for longer is named on standard error, with a backtrace.
    ///
    /// ```
    /// let options = haft::Options::new().watchdog(std::time::Duration::from_secs(1));
    /// haft::run_with(options, || haft::yield_now()).unwrap();
    /// ```
    pub fn watchdog(mut self, time: Duration) -> Self {
        self.watchdog = Some(time);
        self
    }

    fn for_c(&self) -> sys::haft_io_run_options_t {
        sys::haft_io_run_options_t {
            threads: c_int::from(self.threads.unwrap_or(1)),
            stack_size: self.stack_size,
            backend: self.backend.map_or(ptr::null(), CStr::as_ptr),
            watchdog: self.watchdog.map_or(0, nanoseconds),
            ..sys::haft_io_run_options_t::ZERO
        }
    }
}

/// Its address is the key of a task-local value: the number of the run, which every task inherits.
static RUN: u8 = 0;

/// The number of the run whose task calls this; 0: none of Rust's.
pub(crate) fn this_run() -> usize {
    // SAFETY: any thread may call it, and a key is any address.
    unsafe { sys::haft_io_local_get(ptr::from_ref(&RUN).cast()) as usize }
}

/// The current task and those that it spawns belong to a new run of Rust.
pub(crate) fn begin_run() {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    guard_panic_hook();
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    // SAFETY: as above.
    unsafe { sys::haft_io_return_cancels(true) };
    // SAFETY: as above; the value is a number, which nobody reads through.
    let code = unsafe { sys::haft_io_local_set(ptr::from_ref(&RUN).cast(), number as *mut c_void) };
    assert!(code == 0, "no memory for a task-local value");
}

pub(crate) fn run_by<T>(
    main: impl FnOnce() -> T,
    call: impl FnOnce(sys::haft_body_t, *mut c_void) -> c_int,
) -> io::Result<T> {
    let mut main = Call::new(|| {
        begin_run();
        main()
    });
    let code = call(main.body(), main.argument());
    match main.outcome {
        Some(Ok(value)) if code == 0 => Ok(value),
        Some(Err(payload)) if code == 0 || !is_cancel(&*payload) => resume_unwind(payload),
        _ => Err(io::Error::from_raw_os_error(-code)),
    }
}

/// Runs `main` as a task on this thread, and returns what it returns when it and all tasks spawned
/// below it have ended. A panic of `main` goes on here.
///
/// # Panics
/// If this thread runs tasks already, or the system refuses memory or descriptors.
///
/// ```
/// assert_eq!(haft::run(|| 6 * 7), 42);
/// let read: std::io::Result<String> = haft::run(|| {
///     let text = std::fs::read_to_string("/proc/self/comm")?;
///     Ok(text)
/// });
/// read.unwrap();
/// ```
pub fn run<T>(main: impl FnOnce() -> T) -> T {
    let options = Options::new().for_c();
    // SAFETY: the body and its argument live until the call returns, and the body lets no panic
    // out. With one thread, all runs on this one: so nothing has to be `Send`.
    run_by(main, |body, argument| unsafe {
        sys::haft_io_run_with(&options, body, argument)
    })
    .unwrap_or_else(|error| panic!("haft::run: {error}"))
}

/// As [`run`], with options, and with an error where it would panic.
///
/// # Errors
/// `ResourceBusy` on a thread that runs tasks already, `InvalidInput` for an unknown back end, and the
/// system's errors where it refuses memory or descriptors.
///
/// ```
/// let total = haft::run_with(haft::Options::new().threads(2), || {
///     let parts: Vec<_> = (0..10).map(|i| haft::spawn(move || i)).collect();
///     parts.into_iter().map(|part| part.join().unwrap()).sum::<i32>()
/// });
/// assert_eq!(total.unwrap(), 45);
/// ```
pub fn run_with<T: Send>(options: Options, main: impl FnOnce() -> T + Send) -> io::Result<T> {
    let options = options.for_c();
    // SAFETY: as in `run`; here `main` may begin on another thread, and is `Send`.
    run_by(main, |body, argument| unsafe {
        sys::haft_io_run_with(&options, body, argument)
    })
}

// ---- Tasks ----

/// What a task leaves to those who join it.
pub(crate) struct Packet<T> {
    left: Mutex<Left<T>>,
    done: Event,
    has_joiner: AtomicBool,
}

struct Left<T> {
    outcome: Option<thread::Result<T>>,
    waker: Option<Waker>,
}

impl<T> Packet<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Packet {
            left: Mutex::new(Left {
                outcome: None,
                waker: None,
            }),
            done: Event::new(),
            has_joiner: AtomicBool::new(false),
        })
    }
    fn lock(&self) -> std::sync::MutexGuard<'_, Left<T>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn finish(&self, outcome: thread::Result<T>) {
        let mut left = self.lock();
        left.outcome = Some(outcome);
        let waker = left.waker.take();
        drop(left);
        self.done.set();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
    /// Whether somebody has begun to join the task.
    pub(crate) fn has_joiner(&self) -> bool {
        self.has_joiner.load(Ordering::Relaxed)
    }
    /// For a task whose outcome is elsewhere.
    pub(crate) fn set_done(&self) {
        self.done.set();
    }
    pub(crate) fn is_finished(&self) -> bool {
        self.done.is_set()
    }
    pub(crate) fn end(&self) -> &Event {
        &self.done
    }
    /// `elsewhere` returns the payload of a task that left none here.
    pub(crate) fn join_or(
        &self,
        elsewhere: impl FnOnce() -> Option<Box<dyn Any + Send>>,
    ) -> thread::Result<T> {
        let _joining = Joining::begin(&self.has_joiner);
        if self.done.try_wait().is_err() {
            return Err(Box::new(Cancelled(())));
        }
        let outcome = self.lock().outcome.take();
        outcome.unwrap_or_else(|| Err(elsewhere().unwrap_or_else(|| Box::new(Cancelled(())))))
    }
}

/// That somebody joins, until the join is done, or unwound.
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

/// What a task begins with: its function, and its spawner's local values.
struct Start<F>(F, Option<Arc<local::List>>);

extern "C" fn enter<F: FnOnce()>(argument: *mut c_void) -> *mut c_void {
    // SAFETY: it comes from `start`, which made it of a box; a task's function is called once.
    let start = unsafe { Box::from_raw(argument.cast::<Start<F>>()) };
    let Start(function, locals) = *start;
    // SAFETY: any thread may call it. Waits set it, too, but have less to do where it is set.
    unsafe { sys::haft_io_return_cancels(true) };
    let body = || {
        let _entered = locals.map(local::Entered::new);
        function();
    };
    if catch_unwind(AssertUnwindSafe(body)).is_err() {
        // What a task returned has panicked when it was dropped, and nobody is there to be told.
        std::process::abort();
    }
    #[cfg(feature = "tracing")]
    crate::tracing::forget_task();
    ptr::null_mut()
}

/// Starts a task of the scope; null: the current one.
///
/// # Safety
/// The function, and what it borrows, is valid until the scope has ended; and if the run has
/// several threads, it may be sent to another one.
pub(crate) unsafe fn start<F: FnOnce()>(
    scope: *mut sys::haft_io_scope_t,
    name: Option<&'static CStr>,
    function: F,
) {
    // SAFETY: any thread may call it.
    let outside = unsafe { sys::haft_io_this_scope() }.is_null();
    assert!(!outside, "a task is spawned outside of haft::run");
    let options = sys::haft_io_task_options_t {
        scope,
        name: name.map_or(ptr::null(), CStr::as_ptr),
        ..sys::haft_io_task_options_t::ZERO
    };
    let start = Box::into_raw(Box::new(Start(function, local::current())));
    // SAFETY: `enter` takes the box back, and lets no panic out; the name is static.
    let code = unsafe { sys::haft_io_spawn_with(&options, enter::<F>, start.cast()) };
    if code != 0 {
        // SAFETY: no task has got it.
        drop(unsafe { Box::from_raw(start) });
        panic!("no memory for a task");
    }
}

/// A task whose end can be waited for, as [`std::thread::JoinHandle`] of a thread.
///
/// It is a future, too, for async code on other threads. If it is dropped, the task goes on.
///
/// ```
/// haft::run(|| {
///     let tasks: Vec<_> = (0..3).map(|i| haft::spawn(move || i * i)).collect();
///     let squares: Vec<i32> = tasks.into_iter().map(|task| task.join().unwrap()).collect();
///     assert_eq!(squares, [0, 1, 4]);
/// });
/// ```
#[must_use = "a task whose handle is dropped goes on, and its panic is seen by nobody"]
pub struct JoinHandle<T>(Arc<Packet<T>>);

impl<T> JoinHandle<T> {
    pub(crate) fn of(packet: Arc<Packet<T>>) -> Self {
        JoinHandle(packet)
    }
    pub(crate) fn packet(&self) -> &Packet<T> {
        &self.0
    }
    /// Waits for the end of the task and returns what it returned. The error is the payload of its
    /// panic, which is [`Cancelled`] if it was cancelled. On a thread without tasks, blocks the
    /// thread.
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
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = thread::Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut left = self.0.lock();
        if let Some(outcome) = left.outcome.take() {
            return Poll::Ready(outcome);
        }
        left.waker = Some(context.waker().clone());
        Poll::Pending
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
/// # Panics
/// Outside of [`run`], and if there is no memory.
///
/// ```
/// haft::run(|| {
///     let task = haft::spawn(|| 42);
///     assert_eq!(task.join().unwrap(), 42);
/// });
/// ```
pub fn spawn<F, T>(function: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    spawn_by(None, function)
}

/// As [`spawn`], for a task with a name of its own, by which dumps and messages call it.
///
/// ```
/// haft::run(|| {
///     let task = haft::spawn_named(c"cleaner", haft::task_name);
///     assert_eq!(task.join().unwrap().unwrap(), "cleaner");
/// });
/// ```
///
/// # Panics
/// As [`spawn`].
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
    let packet = Packet::new();
    spawn_for(Arc::clone(&packet), name, function);
    JoinHandle(packet)
}

pub(crate) fn spawn_for<F, T>(packet: Arc<Packet<T>>, name: Option<&'static CStr>, function: F)
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let function = move || packet.finish(catch_unwind(AssertUnwindSafe(function)));
    // SAFETY: the function borrows nothing, and is `Send`.
    unsafe { start(ptr::null_mut(), name, function) };
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
        code if code < 0 => Err(io::Error::from_raw_os_error(-code)),
        _ => Ok(()),
    }
}

/// The name of the current task, `Some("")` if it has none; `None` outside of a run.
///
/// ```
/// assert_eq!(haft::task_name(), None); // no task
/// haft::run(|| assert_eq!(haft::task_name().unwrap(), ""));
/// ```
pub fn task_name() -> Option<String> {
    let task = this_task();
    if task.is_null() {
        return None;
    }
    // SAFETY: it is the current task, whose name lives as long as it is the task's.
    let name = unsafe { CStr::from_ptr(sys::haft_io_task_name(task)) };
    Some(name.to_string_lossy().into_owned())
}
