// SPDX-License-Identifier: MIT
//! Tasks on threads of their own, for programs whose `main` is no task.

use crate::channels::{Sender, channel};
use crate::run::{Options, run_with, this_run};
use crate::task::{JoinHandle, prepared};
use std::panic::resume_unwind;
use std::{fmt, io, thread};

/// A run on threads of its own, to which any thread gives tasks, also the tasks of an async
/// runtime: a [`JoinHandle`] is a future, too. So an async program calls blocking code, thousands
/// of calls at once, without a pool of threads.
///
/// When it is dropped, it waits for its tasks; unless one of them drops it, when they go on alone.
///
/// ```
/// use std::time::Duration;
///
/// async fn answer(runtime: &haft::Runtime) -> u32 {
///     let slow = runtime.spawn(|| {
///         std::thread::sleep(Duration::from_millis(1)); // blocks neither thread
///         42
///     });
///     slow.await.unwrap()
/// }
///
/// let runtime = haft::Runtime::new(haft::Options::new()).unwrap();
/// // (In place of Tokio's.)
/// assert_eq!(haft::block_on(answer(&runtime)), 42);
/// ```
pub struct Runtime {
    /// The run of its tasks.
    run: u64,
    jobs: Option<Sender<Box<dyn FnOnce() + Send>>>,
    thread: Option<thread::JoinHandle<io::Result<()>>>,
}

impl Runtime {
    /// Starts the threads.
    ///
    /// # Errors
    /// The errors of [`run_with`](crate::run_with), or that the system has no thread.
    ///
    /// # Panics
    /// If there is no memory.
    ///
    /// ```
    /// let runtime = haft::Runtime::new(haft::Options::new().threads(2)).unwrap();
    /// drop(runtime); // its threads end
    /// ```
    pub fn new(options: Options) -> io::Result<Self> {
        let (jobs, received) = channel::<Box<dyn FnOnce() + Send>>(64);
        let (begun, begins) = channel(1);
        let serve = move || {
            run_with(options, move || {
                let _ = begun.send(this_run());
                received.iter().for_each(|job| job());
            })
        };
        let thread = thread::Builder::new().name("haft".into()).spawn(serve)?;
        if let Ok(run) = begins.recv() {
            let (jobs, thread) = (Some(jobs), Some(thread));
            return Ok(Runtime { run, jobs, thread });
        }
        match thread.join() {
            Ok(outcome) => Err(outcome.expect_err("the run has not begun")),
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Starts a task there. Any task or thread may call it; it may wait for a moment.
    ///
    /// # Panics
    /// If the run has ended by a panic, as where there is no memory for a task.
    ///
    /// ```
    /// let runtime = haft::Runtime::new(haft::Options::new()).unwrap();
    /// let task = runtime.spawn(|| 6 * 7); // from a thread that is none of its tasks
    /// assert_eq!(task.join().unwrap(), 42);
    /// ```
    pub fn spawn<F, T>(&self, function: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (handle, start) = prepared(function);
        let jobs = self.jobs.as_ref().expect("it is there until the drop");
        let sent = jobs.send(Box::new(start));
        assert!(sent.is_ok(), "the run has ended by a panic");
        handle
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if this_run() == self.run {
            return; // the run does not end before its task has
        }
        let ended = self.thread.take().map(thread::JoinHandle::join);
        match ended {
            Some(Err(payload)) if !thread::panicking() => resume_unwind(payload),
            _ => {}
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}
