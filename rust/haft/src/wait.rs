// SPDX-License-Identifier: MIT
//! Waits: the calls that may suspend the task, and the effect of a cancel on them.

use haft_sys as sys;
use std::any::Any;
use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;
use std::{fmt, io};

/// The payload of the panic that unwinds a task that has been cancelled.
///
/// The task's joiner gets it as the error. Code that catches panics should let it pass, and can
/// only delay it: the next wait raises it again.
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

pub(crate) const ECANCELED: c_int = 125;
pub(crate) const ETIMEDOUT: c_int = 110;
pub(crate) const EPIPE: c_int = 32;

/// The reason why a wait ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupted {
    /// By a cancel, while the thread was panicking: nothing could be raised.
    Cancelled,
    /// By a deadline.
    TimedOut,
    /// By an error number.
    Failed(c_int),
}

/// Makes a call of the C library in which a cancel unwinds nothing.
pub(crate) fn returning_cancels<T>(call: impl FnOnce() -> T) -> T {
    // SAFETY: any thread may call it; it changes a flag of the current task, if there is one.
    let before = unsafe { sys::haft_io_return_cancels(true) };
    let result = call();
    if !before {
        // SAFETY: as above. A task of C gets its own setting back.
        unsafe { sys::haft_io_return_cancels(false) };
    }
    result
}

/// Makes a call of the C library that may suspend the task and returns 0, a count, or a negative
/// error number. Raises [`Cancelled`] if the task has been cancelled.
pub(crate) fn wait(call: impl FnOnce() -> isize) -> Result<usize, Interrupted> {
    let code = returning_cancels(call);
    if let Ok(count) = usize::try_from(code) {
        return Ok(count);
    }
    Err(interrupted(-code as c_int))
}

#[cold]
fn interrupted(number: c_int) -> Interrupted {
    match number {
        ECANCELED => {
            raise_cancelled();
            Interrupted::Cancelled
        }
        ETIMEDOUT => Interrupted::TimedOut,
        number => Interrupted::Failed(number),
    }
}

/// The words of the library for a mistake of the program.
#[derive(Debug)]
struct Refused(String);
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Refused {}

/// The error of a number that a call of the C library has returned just now, without its sign. If
/// the library has refused the call, the text has the reason, and there is no `raw_os_error`.
#[cold]
pub(crate) fn error_of_number(number: c_int) -> io::Error {
    let error = io::Error::from_raw_os_error(number);
    let mut words = [0u8; 400];
    // SAFETY: the buffer has so much room, and is filled with a text that ends with a zero.
    if !unsafe { sys::haft_take_refusal(-number, words.as_mut_ptr().cast(), words.len()) } {
        return error;
    }
    let words = CStr::from_bytes_until_nul(&words).unwrap_or_default();
    io::Error::new(error.kind(), Refused(words.to_string_lossy().into_owned()))
}

/// To be called where a stack is to be unwound: with `panic = "abort"` prints why this ends the
/// process.
pub(crate) fn must_unwind(what: &str) {
    if cfg!(panic = "abort") {
        eprintln!("haft: {what}, and panic = \"abort\" makes it impossible to unwind it");
        std::process::abort();
    }
}

/// Drops the payload of a panic. A payload may panic itself when it is dropped; that panic must not
/// leave a frame that has promised to end a computation first.
pub(crate) fn drop_quietly(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
}

/// Unwinds the task, unless the thread is panicking: a second panic in a destructor would end the
/// process.
pub(crate) fn raise_cancelled() {
    if !std::thread::panicking() {
        must_unwind("a task is cancelled");
        resume_unwind(Box::new(Cancelled(())));
    }
    // The panic may be that of another task, which waits in a destructor. It has to go on, or a
    // loop of cancelled waits here would keep it from that for ever.
    // SAFETY: an ordinary call, which unwinds nothing.
    shielded(|| unsafe { sys::haft_io_yield_or_cancelled() });
}

/// Calls the body where no cancel from outside reaches it; by a task.
pub(crate) fn shielded<T>(body: impl FnOnce() -> T) -> T {
    let options = sys::haft_io_scope_options_t {
        shielded: true,
        ..sys::haft_io_scope_options_t::ZERO
    };
    let mut call = Call::new(body);
    let (function, argument) = (call.body(), call.argument());
    returning_cancels(|| {
        // SAFETY: the options, the body and its argument live until the call returns, and the body
        // lets no panic out. It runs on this thread, and is called once.
        unsafe { sys::haft_io_scope_with(&options, function, argument, std::ptr::null_mut()) }
    });
    call.result()
}

/// Calls the body of a scope. If a panic leaves it, the scope's tasks are cancelled: nothing else
/// would end them, and the scope, which waits for them, would never pass the panic on.
pub(crate) fn with_tasks<T>(body: impl FnOnce() -> T) -> T {
    struct Cancels;
    impl Drop for Cancels {
        fn drop(&mut self) {
            // SAFETY: the scope is open until the body has ended, and this is a task of its run.
            unsafe { sys::haft_io_scope_cancel(sys::haft_io_this_scope()) };
        }
    }
    let cancels = Cancels;
    let result = body();
    std::mem::forget(cancels);
    result
}

/// Lets C call a closure: the panics of the closure are kept here.
pub(crate) struct Call<F, T> {
    function: Option<F>,
    pub(crate) outcome: Option<std::thread::Result<T>>,
}

impl<F: FnOnce() -> T, T> Call<F, T> {
    pub(crate) fn new(function: F) -> Self {
        Call {
            function: Some(function),
            outcome: None,
        }
    }

    pub(crate) fn argument(&mut self) -> *mut c_void {
        std::ptr::from_mut(self).cast()
    }

    pub(crate) fn body(&self) -> sys::haft_body_t {
        Self::enter
    }

    /// Returns the result of the closure; its panic goes on here.
    pub(crate) fn result(self) -> T {
        let outcome = self.outcome.expect("C has called it");
        outcome.unwrap_or_else(|payload| resume_unwind(payload))
    }

    /// # Safety
    /// The argument is what [`Call::argument`] returned of a call that lives, and that nobody else
    /// uses meanwhile.
    unsafe extern "C" fn enter(argument: *mut c_void) -> *mut c_void {
        // SAFETY: the caller promises it.
        let call = unsafe { &mut *argument.cast::<Self>() };
        if let Some(function) = call.function.take() {
            call.outcome = Some(catch_unwind(AssertUnwindSafe(function)));
        }
        std::ptr::null_mut()
    }
}

/// A duration in the C library's unit, which ends after 292 years; `i64::MAX` would be for ever.
pub(crate) fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos())
        .unwrap_or(i64::MAX)
        .min(i64::MAX - 1)
}

/// The time of the library's clock, which is virtual in a simulation.
pub(crate) fn now() -> i64 {
    // SAFETY: any thread may call it.
    unsafe { sys::haft_io_now() }
}

/// The time of the library's clock when so much more time has passed.
pub(crate) fn from_now(duration: Duration) -> i64 {
    now()
        .saturating_add(nanoseconds(duration))
        .min(i64::MAX - 1)
}

/// Suspends the current task for so long. On a thread without tasks, blocks the thread.
///
/// ```
/// haft::run(|| haft::sleep(std::time::Duration::from_millis(1)));
/// ```
pub fn sleep(duration: Duration) {
    // SAFETY: an ordinary call.
    let _ = wait(|| unsafe { sys::haft_io_sleep(nanoseconds(duration)) } as isize);
}

/// Lets every other task that can run go first.
///
/// ```
/// haft::run(|| {
///     let other = haft::spawn(|| println!("I go first"));
///     haft::yield_now();
///     println!("and I second");
///     other.join().unwrap();
/// });
/// ```
#[inline] // With one frame less the processor predicts the returns.
pub fn yield_now() {
    // SAFETY: an ordinary call, which unwinds nothing.
    let code = unsafe { sys::haft_io_yield_or_cancelled() };
    if code != 0 {
        interrupted(-code);
    }
}
