// SPDX-License-Identifier: MIT
//! Runs: the threads and back ends of tasks, and the wait until all have ended.

use crate::blocking::guard_panic_hook;
use crate::effects::outside;
use crate::wait::{Call, error_of_number, is_cancel, nanoseconds, with_tasks};
use haft_sys as sys;
use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::time::Duration;
use std::{io, ptr};

/// The options of [`run_with`].
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
    top: Option<&'static CStr>,
    record: Option<CString>,
    replay: Option<CString>,
    own_thread_locals: bool,
}

impl Options {
    /// Options for one thread, with the library's defaults.
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
    /// Sets the number of threads on which tasks run; 0 means one per processor that the process
    /// may use. A task stays on the thread on which it began.
    ///
    /// ```
    /// let options = haft::Options::new().threads(2);
    /// assert_eq!(haft::run_with(options, || haft::spawn(|| 42).join().unwrap()).unwrap(), 42);
    /// ```
    pub fn threads(mut self, threads: u16) -> Self {
        self.threads = Some(threads);
        self
    }
    /// Sets the size of a task's stack in bytes of addresses; only the used part takes memory.
    ///
    /// ```
    /// let options = haft::Options::new().stack_size(64 * 1024);
    /// assert_eq!(haft::run_with(options, || 42).unwrap(), 42);
    /// ```
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = bytes;
        self
    }
    /// Sets the back end by which the threads wait for the kernel: `c"epoll"`, or with the feature
    /// `io-uring` `c"io_uring"`. Without this, `HAFT_IO_BACKEND` in the environment decides, and if
    /// that is unset or empty, it is io_uring if the feature is on and the system allows it,
    /// otherwise epoll; [`backend`] returns its name. (With the feature `system` the installed
    /// library decides what it has.)
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
    /// Sets a watchdog: a task that holds its thread for longer is named on standard error, with a
    /// backtrace.
    ///
    /// ```
    /// let options = haft::Options::new().watchdog(std::time::Duration::from_secs(1));
    /// haft::run_with(options, || haft::yield_now()).unwrap();
    /// ```
    pub fn watchdog(mut self, time: Duration) -> Self {
        self.watchdog = Some(time);
        self
    }
    /// Opens a Unix socket at this path, or, if that is a folder, as `haft-top.PID` in it:
    /// `haft-top PID` shows what the tasks do. Only the process's user can connect. `HAFT_IO_TOP`
    /// in the environment does the same.
    ///
    /// ```
    /// let options = haft::Options::new().top(c"/tmp");
    /// assert_eq!(haft::run_with(options, || 42).unwrap(), 42);
    /// ```
    pub fn top(mut self, path: &'static CStr) -> Self {
        self.top = Some(path);
        self
    }
    /// Records the run in this file, which is made anew: each answer that it gets from outside, and
    /// the order of its tasks. A run of several threads cannot be recorded. Without this,
    /// `HAFT_IO_RECORD` in the environment names the file, if any.
    ///
    /// # Panics
    /// If the path has a zero byte in it.
    ///
    /// ```
    /// let file = std::env::temp_dir().join(format!("run.{}.haft", std::process::id()));
    /// let draw = || haft::fs::read("/proc/sys/kernel/random/uuid").unwrap();
    /// let options = haft::Options::new();
    /// let recorded = haft::run_with(options.clone().record(&file), draw).unwrap();
    /// let replayed = haft::run_with(options.replay(&file), draw).unwrap();
    /// assert_eq!(recorded, replayed); // a third run would draw others
    /// # std::fs::remove_file(file).unwrap();
    /// ```
    pub fn record(mut self, file: impl AsRef<Path>) -> Self {
        self.record = Some(for_c(file.as_ref()));
        self
    }
    /// Replays the run that was recorded in this file, without its network, its files and its
    /// waits. Where the program asks for something else than it did then, the process ends with
    /// status 3, after a message. Without this, `HAFT_IO_REPLAY` in the environment names the file,
    /// if any. See [`record`](Self::record).
    ///
    /// # Panics
    /// If the path has a zero byte in it.
    pub fn replay(mut self, file: impl AsRef<Path>) -> Self {
        self.replay = Some(for_c(file.as_ref()));
        self
    }

    /// Gives all tasks of the run thread-local variables of their own, as if each were a thread:
    /// those of [`std::thread_local!`], of std itself, and of the C and C++ libraries of the
    /// program.
    ///
    /// So [`std::thread::current`] is the task, which parks alone; an initialiser of a
    /// [`std::thread_local!`] may wait, a `RefCell` in one may stay borrowed over a wait, and
    /// destructors of such values run at the task's end, where they may wait, too. Crates do with
    /// tasks what they do with threads: [`std::thread::scope`], [`std::sync::mpsc`], locks of
    /// `parking_lot`, channels of `crossbeam` and `flume`, and a Tokio runtime in each task. The
    /// variables begin as on a new thread, also those of `main`.
    ///
    /// A task takes some 5 KiB and about a half microsecond more, and a switch to it some
    /// nanoseconds. [`own_thread_locals_refused`] returns the reason where this cannot be had;
    /// [`spawn_with_own_thread_locals`](crate::spawn_with_own_thread_locals) is for single tasks.
    ///
    /// ```
    /// use std::cell::Cell;
    /// thread_local! { static COUNT: Cell<u32> = const { Cell::new(0) }; }
    ///
    /// let count = || {
    ///     for _ in 0..10 {
    ///         COUNT.set(COUNT.get() + 1);
    ///         haft::yield_now(); // others count meanwhile
    ///     }
    ///     COUNT.get()
    /// };
    /// if haft::own_thread_locals_refused().is_none() {
    ///     let options = haft::Options::new().own_thread_locals();
    ///     let counts = haft::run_with(options, || haft::all([count; 3])).unwrap();
    ///     assert_eq!(counts, [10, 10, 10]);
    /// }
    /// ```
    pub fn own_thread_locals(mut self) -> Self {
        self.own_thread_locals = true;
        self
    }

    fn for_c(&self) -> sys::haft_io_run_options_t {
        sys::haft_io_run_options_t {
            threads: c_int::from(self.threads.unwrap_or(1)),
            stack_size: self.stack_size,
            backend: self.backend.map_or(ptr::null(), CStr::as_ptr),
            watchdog: self.watchdog.map_or(0, nanoseconds),
            top: self.top.map_or(ptr::null(), CStr::as_ptr),
            record: text_or_null(&self.record),
            replay: text_or_null(&self.replay),
            own_thread_locals: self.own_thread_locals,
            ..sys::haft_io_run_options_t::ZERO
        }
    }
}

fn for_c(file: &Path) -> CString {
    CString::new(file.as_os_str().as_bytes()).expect("a path has no zero byte")
}

fn text_or_null(text: &Option<CString>) -> *const std::ffi::c_char {
    text.as_ref().map_or(ptr::null(), |text| text.as_ptr())
}

/// Returns the reason why tasks of this program cannot have thread-local variables of their own;
/// `None`: they can. It needs glibc, not linked statically, and neither a sanitizer nor Valgrind.
///
/// ```
/// if let Some(reason) = haft::own_thread_locals_refused() {
///     println!("tasks share the variables of their thread: {reason}");
/// }
/// ```
#[must_use]
pub fn own_thread_locals_refused() -> Option<&'static str> {
    // SAFETY: any thread may call it; what it returns is a text for the process's life, or null.
    let reason = unsafe {
        let reason = sys::haft_io_own_thread_locals_refused();
        (!reason.is_null()).then(|| CStr::from_ptr(reason))
    };
    reason.map(|reason| reason.to_str().unwrap_or("unknown"))
}

/// The number of the run whose task calls this; 0: the caller is no task.
pub(crate) fn this_run() -> u64 {
    // SAFETY: any thread may call it.
    unsafe { sys::haft_io_run_number() }
}

/// The back end by which the thread of this task waits: `epoll`, `io_uring` or `simulation`.
/// `None`: the caller is no task.
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
        _ => Err(error_of_number(-code)),
    }
}

/// Runs `main` as a task on this thread, and returns what it returns when it and all tasks spawned
/// below it have ended. A panic of `main` cancels the tasks, and goes on here. Neither `main` nor
/// the tasks reach handlers around the run.
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

/// Like [`run`], with options; returns an error where `run` would panic.
///
/// # Errors
/// `ResourceBusy` on a thread that runs tasks already, `InvalidInput` for an unknown back end,
/// `Unsupported` for [`Options::own_thread_locals`] where they cannot be had, and the system's
/// errors where it refuses memory, descriptors, or the back end that the options name.
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
