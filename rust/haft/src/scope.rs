// SPDX-License-Identifier: MIT
//! Scopes: no task outlives the scope in which it was spawned.

use crate::blocking::guard_panic_hook;
use crate::names::name_of;
use crate::packet::{Owner, Packet};
use crate::run::this_run;
use crate::sync::Event;
use crate::task::start;
use crate::wait::{
    Call, Cancelled, ECANCELED, ETIMEDOUT, from_now, is_cancel, raise_cancelled, returning_cancels,
    with_tasks,
};
use haft_sys as sys;
use std::any::Any;
use std::ffi::{CStr, c_int};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, mem, ptr, thread};

type Payload = Box<dyn Any + Send>;

/// The number of the caller's run.
fn run_of_scope() -> u64 {
    let run = this_run();
    assert!(run != 0, "a scope is opened outside of haft::run");
    guard_panic_hook(); // a task that C has spawned has not called it yet
    run
}

/// Calls the body in a scope of C. The scope's code, and how the body ended.
fn open<T>(
    options: &sys::haft_io_scope_options_t,
    body: impl FnOnce() -> T,
) -> (c_int, thread::Result<T>) {
    run_of_scope();
    let mut body = Call::new(|| with_tasks(body));
    let (function, argument) = (body.body(), body.argument());
    let code = returning_cancels(|| {
        // SAFETY: the options, the body and its argument live until the call returns, and the body
        // lets no panic out. It runs on this thread, and is called once.
        unsafe { sys::haft_io_scope_with(options, function, argument, ptr::null_mut()) }
    });
    match body.outcome {
        Some(Err(payload)) if !is_cancel(&*payload) => (code, Err(payload)),
        Some(outcome) if [0, -ECANCELED, -ETIMEDOUT].contains(&code) => (code, outcome),
        _ => panic!("no memory for the body or a task of a scope"),
    }
}

/// Returns what the body of a scope has returned, or lets its panic go on.
fn value_of<T>(outcome: thread::Result<T>) -> T {
    outcome.unwrap_or_else(|payload| resume_unwind(payload))
}

/// A scope in which tasks are spawned that borrow from around it. See [`scope`].
///
/// ```
/// haft::run(|| {
///     let words = vec!["one", "three"];
///     let longest = haft::scope(|s| {
///         let lengths: Vec<_> = words.iter().map(|word| s.spawn(|| word.len())).collect();
///         lengths.into_iter().map(|length| length.join().unwrap()).max()
///     });
///     assert_eq!(longest, Some(5));
/// });
/// ```
pub struct Scope<'scope, 'env: 'scope> {
    /// Valid from the beginning of the body to the end of the scope, and so as long as there is a
    /// `&'scope Scope`.
    inner: AtomicPtr<sys::haft_io_scope_t>,
    run: u64,
    spawned: AtomicUsize,
    /// Panics of tasks without a joiner, each with the task's number.
    panics: Mutex<Vec<(usize, Payload)>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Calls the body with a scope, and returns what it returns when all tasks that were spawned in the
/// scope have ended. The tasks may borrow what lives outside of the call, as with
/// [`std::thread::scope`].
///
/// A panic of a task that no join waits for then cancels the body and the other tasks, and goes on
/// here when all have ended. So does a panic of the body, which cancels the tasks. A body that
/// returns cancels nothing, also where it returns early, by `?`: for that there is [`try_scope`]. A
/// cancel of the caller cancels the scope.
///
/// # Panics
/// Outside of [`run`](crate::run); if the body or a task panics.
///
/// ```
/// let mut numbers = vec![1, 2, 3];
/// let sum = haft::run(|| {
///     haft::scope(|s| {
///         let sum = s.spawn(|| numbers.iter().sum::<i32>());
///         let count = s.spawn(|| numbers.len());
///         (sum.join().unwrap(), count.join().unwrap())
///     })
/// });
/// numbers.push(4);
/// assert_eq!(sum, (6, 3));
/// ```
pub fn scope<'env, F, T>(body: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let scope = Scope {
        inner: AtomicPtr::new(ptr::null_mut()),
        run: run_of_scope(),
        spawned: AtomicUsize::new(0),
        panics: Mutex::new(Vec::new()),
        scope: PhantomData,
        env: PhantomData,
    };
    let (_, outcome) = open(&sys::haft_io_scope_options_t::ZERO, || {
        // SAFETY: any thread may call it.
        scope
            .inner
            .store(unsafe { sys::haft_io_this_scope() }, Ordering::Relaxed);
        body(&scope)
    });
    // No reference to it is left: the tasks have ended.
    let panics = scope.panics.lock().map(|mut kept| mem::take(&mut *kept));
    let first = panics.unwrap_or_default().into_iter().next();
    match (outcome, first) {
        (Err(payload), _) if !is_cancel(&*payload) => resume_unwind(payload),
        (_, Some((_, payload))) => resume_unwind(payload),
        (outcome, None) => value_of(outcome),
    }
}

/// Like [`scope`], but cancels the tasks if the body returns an error.
///
/// # Errors
/// The error of the body.
///
/// # Panics
/// Like [`scope`].
///
/// ```
/// use std::time::Duration;
///
/// let outcome: Result<u32, std::num::ParseIntError> = haft::run(|| {
///     haft::try_scope(|s| {
///         s.spawn(|| loop {
///             haft::sleep(Duration::from_secs(1)); // looks after something
///         });
///         let number: u32 = "many".parse()?; // ends the task
///         s.cancel();
///         Ok(number)
///     })
/// });
/// assert!(outcome.is_err());
/// ```
pub fn try_scope<'env, F, T, E>(body: F) -> Result<T, E>
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<T, E>,
{
    scope(|s| body(s).inspect_err(|_| s.cancel()))
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts a task of the scope. Its name is as that of [`spawn`](crate::spawn).
    ///
    /// # Panics
    /// If there is no memory, or the caller is no task of the run in which the scope was opened.
    ///
    /// ```
    /// haft::run(|| {
    ///     let greeting = String::from("hello");
    ///     haft::scope(|s| {
    ///         s.spawn(|| assert_eq!(greeting, "hello"));
    ///         s.spawn(|| assert_eq!(greeting.len(), 5));
    ///     });
    /// });
    /// ```
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, function: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.spawn_by(name_of::<F>(), function)
    }

    /// Like [`spawn`](Self::spawn), for a task with a name of its own.
    ///
    /// ```
    /// haft::run(|| {
    ///     haft::scope(|s| {
    ///         let named = s.spawn_named(c"reader", haft::task_name);
    ///         assert_eq!(named.join().unwrap().unwrap(), "reader");
    ///     });
    /// });
    /// ```
    pub fn spawn_named<F, T>(
        &'scope self,
        name: &'static CStr,
        function: F,
    ) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.spawn_by(Some(name), function)
    }

    fn spawn_by<F, T>(
        &'scope self,
        name: Option<&'static CStr>,
        function: F,
    ) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.check_run();
        let number = self.spawned.fetch_add(1, Ordering::Relaxed);
        let function = move |packet: &Packet<T>| match catch_unwind(AssertUnwindSafe(function)) {
            Err(payload) if !is_cancel(&*payload) && !packet.has_joiner() => {
                let mut panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
                panics.push((number, payload));
                drop(panics);
                packet.end_elsewhere(); // before the cancel, so that a joiner gets the payload
                self.cancel();
            }
            // SAFETY: it is called once.
            outcome => unsafe { packet.finish(outcome) },
        };
        // SAFETY: the scope is open, as there is a `&'scope` of it; it ends after the task, before
        // what the task borrows. The function is `Send`.
        let owner = unsafe { start(self.inner.load(Ordering::Relaxed), name, function) };
        ScopedJoinHandle {
            panics: &self.panics,
            number,
            owner,
        }
    }

    /// Cancels the body and the tasks of the scope: their next waits unwind them. A body that has
    /// returned is not unwound, so a scope may end with this.
    ///
    /// ```
    /// let answer = haft::run(|| {
    ///     haft::scope(|s| {
    ///         s.spawn(|| loop {
    ///             haft::sleep(std::time::Duration::from_millis(1));
    ///         });
    ///         s.cancel();
    ///         42
    ///     })
    /// });
    /// assert_eq!(answer, 42);
    /// ```
    ///
    /// # Panics
    /// If the caller is no task of the run in which the scope was opened.
    pub fn cancel(&'scope self) {
        self.check_run();
        // SAFETY: the scope is open, as there is a `&'scope` of it, and this is a task of its run.
        unsafe { sys::haft_io_scope_cancel(self.inner.load(Ordering::Relaxed)) };
    }

    fn check_run(&self) {
        assert!(
            this_run() == self.run,
            "a scope is used outside of the run in which it was opened"
        );
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("spawned", &self.spawned.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

/// A task of a [`Scope`]. If it is dropped, the scope still waits for the task.
///
/// ```
/// haft::run(|| {
///     haft::scope(|s| {
///         let task = s.spawn(|| 42);
///         assert_eq!(task.join().unwrap(), 42);
///     });
/// });
/// ```
pub struct ScopedJoinHandle<'scope, T> {
    panics: &'scope Mutex<Vec<(usize, Payload)>>,
    number: usize,
    owner: Owner<T>,
}

impl<T> ScopedJoinHandle<'_, T> {
    pub(crate) fn end(&self) -> &Event {
        self.owner.end()
    }
    /// Waits for the end of the task and returns what it returned. The error is the payload of its
    /// panic, which is [`Cancelled`] if it was cancelled; the scope does not panic by it then.
    ///
    /// # Errors
    /// The task has panicked, or was cancelled.
    ///
    /// ```
    /// haft::run(|| {
    ///     haft::scope(|s| {
    ///         let fails = s.spawn(|| std::panic::resume_unwind(Box::new("no luck")));
    ///         let payload: Box<dyn std::any::Any + Send> = fails.join().map(|()| ()).unwrap_err();
    ///         assert!(payload.is::<&str>());
    ///     });
    /// });
    /// ```
    pub fn join(self) -> thread::Result<T> {
        self.owner.join_or(|| {
            let mut panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
            let at = panics
                .iter()
                .position(|(number, _)| *number == self.number)?;
            Some(panics.remove(at).1)
        })
    }
    /// Whether the task has ended, so that a join returns at once.
    ///
    /// ```
    /// haft::run(|| {
    ///     haft::scope(|s| {
    ///         let task = s.spawn(|| ());
    ///         assert!(!task.is_finished()); // it begins when this task waits
    ///         haft::yield_now();
    ///         assert!(task.is_finished());
    ///     });
    /// });
    /// ```
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.owner.is_finished()
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle")
            .field("is_finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

// ---- Deadlines, shields, cancel handles ----

/// The error of a [`timeout`]: the deadline has passed.
///
/// ```
/// let error = std::io::Error::from(haft::TimedOut);
/// assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut;

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time has run out")
    }
}
impl std::error::Error for TimedOut {}
impl From<TimedOut> for std::io::Error {
    fn from(error: TimedOut) -> Self {
        std::io::Error::new(std::io::ErrorKind::TimedOut, error)
    }
}

/// Calls the body, which is cancelled when the time has run out, with the tasks that it has
/// spawned.
///
/// # Errors
/// The deadline has cut short the body or a task.
///
/// ```
/// use std::time::Duration;
///
/// haft::run(|| {
///     let quick = haft::timeout(Duration::from_secs(60), || 42);
///     assert_eq!(quick, Ok(42));
///     let slow = haft::timeout(Duration::from_millis(1), || haft::sleep(Duration::from_secs(60)));
///     assert_eq!(slow, Err(haft::TimedOut));
/// });
/// ```
pub fn timeout<T>(time: Duration, body: impl FnOnce() -> T) -> Result<T, TimedOut> {
    let options = sys::haft_io_scope_options_t {
        deadline: from_now(time).max(1), // 0 would be none
        ..sys::haft_io_scope_options_t::ZERO
    };
    match open(&options, body) {
        (_, Err(payload)) if !is_cancel(&*payload) => resume_unwind(payload),
        (code, _) if code == -ETIMEDOUT => Err(TimedOut),
        (_, outcome) => Ok(value_of(outcome)),
    }
}

/// Calls the body where no cancel from outside reaches it: for cleanups that have to wait.
///
/// ```
/// haft::run(|| haft::shield(|| haft::sleep(std::time::Duration::from_millis(1))));
/// ```
pub fn shield<T>(body: impl FnOnce() -> T) -> T {
    let options = sys::haft_io_scope_options_t {
        shielded: true,
        ..sys::haft_io_scope_options_t::ZERO
    };
    value_of(open(&options, body).1)
}

/// Cancels the body of a [`cancellable`].
///
/// ```
/// haft::run(|| {
///     let outcome = haft::cancellable(|handle| {
///         handle.cancel(); // as another task may, that has a clone
///         haft::yield_now();
///         unreachable!();
///     });
///     assert!(outcome.is_err());
/// });
/// ```
#[derive(Clone, Debug)]
pub struct CancelHandle(Arc<Cancellable>);

#[derive(Debug)]
struct Cancellable {
    run: u64,
    /// Null once it has been cancelled, or has ended. The lock is held while the scope is used.
    scope: Mutex<ScopePointer>,
}
#[derive(Debug)]
struct ScopePointer(*mut sys::haft_io_scope_t);
// SAFETY: it is used in tasks of the scope's run, under the lock, while the scope is open.
unsafe impl Send for ScopePointer {}

impl CancelHandle {
    /// Cancels the body, which is unwound by its next wait, and the tasks that it has spawned by
    /// theirs. Does nothing if the body has ended, or was cancelled before.
    ///
    /// # Panics
    /// If the caller is no task of the run.
    ///
    /// ```
    /// haft::run(|| {
    ///     let mut ended = None;
    ///     let _ = haft::cancellable(|handle| ended = Some(handle.clone()));
    ///     ended.unwrap().cancel(); // nothing is left to be cancelled
    /// });
    /// ```
    pub fn cancel(&self) {
        assert!(
            this_run() == self.0.run,
            "a cancel handle is used outside of its run"
        );
        let mut scope = self.lock();
        if !scope.0.is_null() {
            // SAFETY: the scope is open as long as this is not null, which changes under the lock;
            // and this is a task of its run.
            unsafe { sys::haft_io_scope_cancel(scope.0) };
            scope.0 = ptr::null_mut();
        }
    }
    fn lock(&self) -> std::sync::MutexGuard<'_, ScopePointer> {
        self.0.scope.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard that takes the scope from the handle, also where the inner scope finds no memory.
struct HandleEnds<'a>(&'a CancelHandle);
impl Drop for HandleEnds<'_> {
    fn drop(&mut self) {
        self.0.lock().0 = ptr::null_mut();
    }
}

/// Calls the body with a handle by which any task of the run cancels it.
///
/// # Errors
/// The body has been cancelled, by the handle or from outside.
///
/// ```
/// haft::run(|| {
///     let outcome = haft::cancellable(|handle| {
///         let handle = handle.clone();
///         let other = haft::spawn(move || handle.cancel());
///         haft::sleep(std::time::Duration::from_secs(60));
///         other.join().unwrap();
///     });
///     assert!(outcome.is_err());
/// });
/// ```
pub fn cancellable<T>(body: impl FnOnce(&CancelHandle) -> T) -> Result<T, Cancelled> {
    let defaults = sys::haft_io_scope_options_t::ZERO;
    let (_, outcome) = open(&defaults, || {
        let handle = CancelHandle(Arc::new(Cancellable {
            run: this_run(),
            // SAFETY: any thread may call it.
            scope: Mutex::new(ScopePointer(unsafe { sys::haft_io_this_scope() })),
        }));
        let _ends = HandleEnds(&handle);
        // The body is in a scope of its own, so that the outer one has no task any more when the
        // handle ends.
        open(&defaults, || body(&handle)).1
    });
    match value_of(outcome) {
        Err(payload) if is_cancel(&*payload) => Err(Cancelled(())),
        outcome => Ok(value_of(outcome)),
    }
}

// ---- Several at once ----

/// Calls the functions as tasks of a new scope, and returns their results in order. A panic of one
/// cancels the others and goes on here.
///
/// ```
/// let squares = haft::run(|| haft::all((1..4).map(|i| move || i * i)));
/// assert_eq!(squares, [1, 4, 9]);
/// ```
pub fn all<F, T>(functions: impl IntoIterator<Item = F>) -> Vec<T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    let functions: Vec<F> = functions.into_iter().collect();
    let mut results: Vec<Option<T>> = functions.iter().map(|_| None).collect();
    scope(|s| {
        for (function, result) in functions.into_iter().zip(&mut results) {
            s.spawn(move || *result = Some(function()));
        }
    });
    if results.iter().any(Option::is_none) {
        raise_cancelled();
    }
    let result_of = |result: Option<T>| result.expect("the task was not cancelled");
    results.into_iter().map(result_of).collect()
}

/// Calls the functions as tasks of a new scope, and returns the number and the result of the one
/// that returned first. The others have been cancelled, and have ended. A panic of any goes on
/// here.
///
/// # Panics
/// If there is no function.
///
/// ```
/// use std::time::Duration;
///
/// let (index, _) = haft::run(|| {
///     haft::first([30_000, 1].map(|time| move || haft::sleep(Duration::from_millis(time))))
/// });
/// assert_eq!(index, 1);
/// ```
pub fn first<F, T>(functions: impl IntoIterator<Item = F>) -> (usize, T)
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    let winner: Mutex<Option<(usize, T)>> = Mutex::new(None);
    let mut count = 0;
    scope(|s| {
        let winner = &winner;
        for (index, function) in functions.into_iter().enumerate() {
            count += 1;
            s.spawn(move || {
                let result = function();
                let mut place = winner.lock().unwrap_or_else(PoisonError::into_inner);
                if place.is_none() {
                    *place = Some((index, result));
                    s.cancel();
                }
            });
        }
    });
    assert!(count != 0, "haft::first needs a function");
    let winner = winner.into_inner().unwrap_or_else(PoisonError::into_inner);
    winner.unwrap_or_else(|| {
        raise_cancelled();
        panic!("the tasks were cancelled while a panic was under way")
    })
}
