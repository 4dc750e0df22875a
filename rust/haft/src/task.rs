// SPDX-License-Identifier: MIT
//! Runs and their tasks.

use crate::blocking::{guard_panic_hook, this_task};
use crate::effects::outside;
use crate::kept;
use crate::local;
use crate::scope::with_tasks;
use crate::sync::Event;
use crate::wait::{Call, drop_quietly, nanoseconds};
use haft_sys as sys;
use std::any::Any;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_int, c_void};
use std::mem::{self, ManuallyDrop};
use std::os::fd::{AsFd, AsRawFd};
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
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
#[must_use = "options do nothing by themselves"]
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
    /// By what the threads wait for the kernel: `c"epoll"`, or with the feature `io-uring`
    /// `c"io_uring"`. Without this, `HAFT_IO_BACKEND` in the environment decides, and if that is unset
    /// or empty, it is io_uring if the feature is on and the system allows it, otherwise epoll;
    /// [`backend`] says which. (With the feature `system` the installed library decides what it has.)
    ///
    /// ```
    /// let epoll = haft::Options::new().backend(c"epoll");
    /// assert_eq!(haft::run_with(epoll, haft::backend).unwrap(), Some("epoll"));
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

/// The number of the run whose task calls this; 0: the caller is no task.
pub(crate) fn this_run() -> u64 {
    // SAFETY: any thread may call it.
    unsafe { sys::haft_io_run_number() }
}

/// By what the thread of this task waits: `epoll`, `io_uring` or `simulation`. `None`: the caller is
/// no task.
///
/// ```
/// assert!(matches!(haft::run(haft::backend), Some("epoll" | "io_uring")));
/// assert_eq!(haft::simulate(1, haft::backend), Some("simulation"));
/// assert_eq!(haft::backend(), None);
/// ```
#[must_use]
pub fn backend() -> Option<&'static str> {
    // SAFETY: any thread may call it; what it returns is a literal, or null.
    let name = unsafe {
        let name = sys::haft_io_backend();
        (!name.is_null()).then(|| CStr::from_ptr(name))
    };
    name.and_then(|name| name.to_str().ok())
}

pub(crate) fn run_by<T>(
    main: impl FnOnce() -> T,
    call: impl FnOnce(sys::haft_body_t, *mut c_void) -> c_int,
) -> io::Result<T> {
    guard_panic_hook();
    #[cfg(feature = "posix")]
    crate::parking::tell_of_parks();
    #[cfg(debug_assertions)]
    // SAFETY: any thread may call it.
    unsafe {
        sys::haft_io_look_for_initialisers();
    }
    let mut main = Call::new(|| {
        // SAFETY: any thread may call it.
        unsafe { sys::haft_io_return_cancels(true) };
        with_tasks(main)
    });
    let (body, argument) = (main.body(), main.argument());
    // The tasks' code must not call the clause of a handler around the run, which another task may
    // be in, nor suspend the run with all of them.
    let code = outside(|| call(body, argument));
    match main.outcome {
        Some(Ok(value)) if code == 0 => Ok(value),
        Some(Err(payload)) if code == 0 || !is_cancel(&*payload) => resume_unwind(payload),
        _ => Err(io::Error::from_raw_os_error(-code)),
    }
}

/// Runs `main` as a task on this thread, and returns what it returns when it and all tasks spawned
/// below it have ended. A panic of `main` cancels the tasks, and goes on here. Neither `main` nor the
/// tasks reach handlers around the run.
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
/// system's errors where it refuses memory, descriptors, or the back end that the options name.
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

/// What a task and its handle share: the outcome, and which of them is to free the job, which the
/// packet begins.
pub(crate) struct Packet<T> {
    /// What the two have said last, each by a swap: the second to leave frees the job.
    ///
    /// - null: nothing yet.
    /// - A waker, in a box: the handle was polled as a future. Whoever takes it from here has it.
    /// - `TASK_LEFT`: the task has told its end, and uses the packet no more.
    /// - `OWNER_LEFT`: the handle was dropped.
    said: AtomicPtr<Waker>,
    free: unsafe fn(NonNull<Packet<T>>),
    /// Valid until the end is told.
    task: AtomicPtr<sys::haft_io_task_t>,
    end: Event,
    /// The task's until the end is told; then the handle's.
    outcome: UnsafeCell<Option<thread::Result<T>>>,
    has_joiner: AtomicBool,
}

const TASK_LEFT: *mut Waker = ptr::without_provenance_mut(1);
const OWNER_LEFT: *mut Waker = ptr::without_provenance_mut(2);

impl<T> Packet<T> {
    /// Tells the end of the task.
    ///
    /// # Safety
    /// The task calls it, once, and does not call `end_elsewhere`.
    pub(crate) unsafe fn finish(&self, outcome: thread::Result<T>) {
        // SAFETY: the end is not told yet, so nobody else looks at it.
        unsafe { *self.outcome.get() = Some(outcome) };
        self.end.set();
    }
    /// The same for a task whose outcome is elsewhere.
    pub(crate) fn end_elsewhere(&self) {
        self.end.set();
    }
    /// Whether somebody has begun to join the task.
    pub(crate) fn has_joiner(&self) -> bool {
        self.has_joiner.load(Ordering::Relaxed)
    }

    /// Says something; what the other one has said last, or the caller itself.
    fn say(&self, word: *mut Waker) -> Said {
        match self.said.swap(word, Ordering::AcqRel) {
            TASK_LEFT | OWNER_LEFT => Said::HasLeft,
            waker if waker.is_null() => Said::Nothing,
            // SAFETY: it is of a box, and nobody else finds it here any more.
            waker => Said::Waker(unsafe { Box::from_raw(waker) }),
        }
    }
    /// For the task, when it has told its end.
    ///
    /// # Safety
    /// The packet begins a job, and the task does not use it any more.
    unsafe fn leave(packet: NonNull<Self>) {
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
pub(crate) struct Owner<T>(NonNull<Packet<T>>);
// SAFETY: the outcome goes from the task's thread to the handle's, by way of the event; the rest is
// any thread's.
unsafe impl<T: Send> Send for Owner<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Owner<T> {}

impl<T> Owner<T> {
    fn packet(&self) -> &Packet<T> {
        // SAFETY: it is not freed before this is dropped.
        unsafe { self.0.as_ref() }
    }
    pub(crate) fn is_finished(&self) -> bool {
        self.end().is_set()
    }
    pub(crate) fn end(&self) -> &Event {
        &self.packet().end
    }
    /// Once the end is told.
    fn take_outcome(&mut self) -> Option<thread::Result<T>> {
        debug_assert!(self.is_finished());
        // SAFETY: then it is the handle's, of which there is one.
        unsafe { (*self.packet().outcome.get()).take() }
    }
    /// `elsewhere` returns the payload of a task that left none here.
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
    fn poll(&mut self, context: &Context<'_>) -> Poll<thread::Result<T>> {
        if !self.is_finished() {
            let waker = Box::into_raw(Box::new(context.waker().clone()));
            match self.packet().say(waker) {
                Said::HasLeft => drop(self.packet().say(TASK_LEFT)), // and nobody is to be woken
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

/// A packet, and what the task takes when it begins: all that a spawn allocates.
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
    /// Also if what the task has returned panics when it is dropped.
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
        /// Also if the function panics when it is dropped.
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
    /// For a function that tells the end of the task.
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
    ) -> *mut sys::haft_io_task_t {
        assert!(this_run() != 0, "a task is spawned outside of haft::run");
        let options = sys::haft_io_task_options_t {
            scope,
            name: name.map_or(ptr::null(), CStr::as_ptr),
            even_without_stack: true,
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
        // SAFETY: no task has taken it, and what it does further is to tell its end again.
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
            // What a task returned has panicked when it was dropped, and nobody is there to be told.
            std::process::abort();
        }
        #[cfg(feature = "tracing")]
        crate::tracing::forget_task();
        ptr::null_mut()
    }
}

/// Starts a task of the scope, null: the current one, by a function that tells its end.
///
/// # Safety
/// As of `Unstarted::start`.
pub(crate) unsafe fn start<F: FnOnce(&Packet<T>), T>(
    scope: *mut sys::haft_io_scope_t,
    name: Option<&'static CStr>,
    function: F,
) -> Owner<T> {
    let (unstarted, owner) = Unstarted::new(function);
    // SAFETY: the caller says so.
    let task = unsafe { unstarted.start(scope, name) };
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

// What a task has left behind by a panic is seen by its joiner as an error, as with threads.
impl<T> UnwindSafe for JoinHandle<T> {}
impl<T> RefUnwindSafe for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    pub(crate) fn end(&self) -> &Event {
        self.0.end()
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
    // SAFETY: the function borrows nothing, and is `Send`.
    JoinHandle(unsafe { start(ptr::null_mut(), name, finishing(function)) })
}

/// As [`spawn`], but in the outermost scope, that of the run: the task outlives the scopes around the
/// caller, and their cancels and deadlines do not reach it. For what a library keeps, such as an idle
/// connection, and others use later. The run ends when the task has.
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
/// As [`spawn`].
pub fn spawn_in_run<F, T>(function: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // SAFETY: the function borrows nothing, and is `Send`; any thread may ask for the scope, which is
    // open as long as this task.
    JoinHandle(unsafe { start(sys::haft_io_run_scope(), None, finishing(function)) })
}

/// The outcome of the task is that of the function.
fn finishing<T>(function: impl FnOnce() -> T + Send) -> impl FnOnce(&Packet<T>) + Send {
    // SAFETY: it is called once.
    move |packet| unsafe { packet.finish(catch_unwind(AssertUnwindSafe(function))) }
}

/// As [`spawn`], by the task that calls the second part.
pub(crate) fn prepared<F, T>(function: F) -> (JoinHandle<T>, impl FnOnce() + Send + 'static)
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (unstarted, owner) = Unstarted::new(finishing(function));
    let start = move || {
        // SAFETY: as above.
        unsafe { unstarted.start(ptr::null_mut(), None) };
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
