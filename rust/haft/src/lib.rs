// SPDX-License-Identifier: MIT
//! Tasks, I/O and effect handlers in direct style, on the C libraries of Haft.
//!
//! ```
//! use std::time::Duration;
//!
//! let sum = haft::run(|| {
//!     let slow = haft::spawn(|| {
//!         std::thread::sleep(Duration::from_millis(2)); // suspends the task, not the thread
//!         40
//!     });
//!     slow.join().unwrap() + 2
//! });
//! assert_eq!(sum, 42);
//! ```
//!
//! - **Tasks**: [`run`], [`spawn`], [`scope`], [`try_scope`], [`timeout`], [`all`], [`first`],
//!   [`shield`], [`channel`], [`select!`], [`sync`]. They wait for the kernel by epoll, or with the
//!   feature `io-uring` by io_uring where the system allows it ([`backend`]).
//! - **Blocking code**: with the feature `posix`, which is on by default, the parts of std that
//!   make blocking calls of the C library (`std::net`, `std::thread::sleep`, `std::process`)
//!   suspend the task, and so do the crates that are built on std.
//! - **Async code**: [`block_on`] suspends the task, not the thread.
//! - **Effects**: [`perform`], [`handle`] and [`handle_general`], [`Computation`], [`Generator`];
//!   computations that go on more than once by [`replay()`] and [`handle_multi_shot`]; effects that
//!   C declares by [`shared_effect!`].
//!
//! # What must not wait on a task
//!
//! An initialiser of [`std::thread_local!`], or of a `thread_local` of C or C++: while it waits
//! another task of the thread may initialise the variable and borrow its value, which is dropped
//! when the first goes on. This breaks memory in safe code, and the compiler does not see it. Let
//! it block the thread, in [`block_thread`]:
//!
//! ```
//! thread_local! {
//!     static NAME: String = haft::block_thread(|| std::fs::read_to_string("/proc/self/comm").unwrap());
//! }
//! haft::run(|| assert!(!NAME.with(String::is_empty)));
//! ```
//!
//! The same goes for a library that keeps a pointer into its caller's frame in a thread-local
//! variable while it calls back, such as `scoped-tls`. The guide, docs/rust.md, has the other
//! differences on tasks.
//!
//! # How unwinding is kept sound
//!
//! Nothing is unwound by force through a frame of Rust, and no panic enters a frame of C.
//!
//! - Every function that C calls catches the panics of the Rust code that it runs, keeps the
//!   payload, and returns; the Rust caller raises it again ([`std::panic::resume_unwind`]) when C
//!   has returned.
//! - Waits are made while `haft_io_return_cancels` is set: the C library then never unwinds a
//!   cancelled task, but lets the wait return an error. The wait's wrapper here raises the panic
//!   [`Cancelled`], an ordinary panic of Rust that runs destructors and that
//!   [`std::panic::catch_unwind`] may catch; the next wait raises it again. While a panic is under
//!   way on the thread, a second one would end the process: then a cancelled wait returns early
//!   instead.
//! - A suspended computation that is dropped is resumed once more, and the `perform` in which it
//!   waits raises the panic [`Discontinued`]: so its frames unwind themselves.
//! - Tasks never move between threads once they have begun, and neither do computations, which are
//!   not `Send`.
//! - The frame of [`scope`] returns when all its tasks have ended, and that of [`handle_general`]
//!   when its computation has. A frame of either is left in no other way: a leaked
//!   [`Computation`] leaks its stack with all that lies there, and as its body is `'static`,
//!   nothing outside of that stack is borrowed.
//!
//! `panic = "abort"` ends the process, with a message, at the first cancel that reaches a task, and
//! at the first computation that is dropped before its end.

#![warn(missing_docs)]
#![warn(clippy::must_use_candidate, clippy::undocumented_unsafe_blocks)]
#![deny(unsafe_op_in_unsafe_fn)]

#[doc(hidden)]
#[path = "select.rs"]
pub mod __select;
#[doc(hidden)]
#[path = "test.rs"]
pub mod __test;
mod blocking;
mod brief;
mod channels;
mod computation;
mod deep;
mod descriptor;
mod effects;
mod fiber;
pub mod fs;
mod future;
mod generator;
#[cfg(feature = "hyper")]
pub mod hyper;
#[cfg(feature = "hyper")]
mod interests;
mod kept;
mod local;
mod multi_shot;
mod names;
pub mod net;
mod numbers;
mod packet;
#[cfg(feature = "posix")]
mod parking;
pub mod process;
mod replay;
mod run;
mod runtime;
mod scope;
mod shared;
pub mod signal;
mod simulation;
pub mod sync;
mod task;
#[cfg(feature = "tracing")]
pub mod tracing;
mod wait;

/// Lent memory, into which the streams of [`net`], [`fs`] and [`process`] read.
pub mod io {
    pub use crate::descriptor::{Lent, LentReader};
}

pub use blocking::block_thread;
pub use channels::{Receiver, RecvError, SendError, Sender, TrySendError, channel};
pub use computation::Computation;
pub use deep::{Resumption, handle_general};
pub use effects::{Discontinued, Effect, handle, perform};
pub use fiber::Step;
pub use future::block_on;
#[cfg(feature = "futures")]
pub use future::{Iterate, iterate};
pub use generator::{Generator, Yielder};
/// A test that runs in a simulation (see [`simulate`]), with the seeds 1 to 10, or up to another
/// number, each on a thread of its own. A failure prints its seed; with `HAFT_IO_SEED` in the
/// environment the test runs with that seed alone. Further options choose faults, and the parts
/// that are not simulated, as in [`Simulation`]: `short_counts`, `faults_one_in = 10`,
/// `switches_one_in = 2`, `network = false`, `files = false`.
///
/// ```
/// #[haft::test(seeds = 20)]
/// fn the_first_answer_counts() -> std::io::Result<()> {
///     let (first, ()) = haft::first([2, 1].map(|time| {
///         move || haft::sleep(std::time::Duration::from_secs(time))
///     }));
///     assert_eq!(first, 1);
///     Ok(())
/// }
/// ```
pub use haft_macros::test;
pub use local::LocalKey;
pub use multi_shot::{MultiShot, handle_multi_shot};
pub use replay::{Replay, replay};
pub use run::{Options, backend, own_thread_locals_refused, run, run_with};
pub use runtime::Runtime;
pub use scope::{
    CancelHandle, Scope, ScopedJoinHandle, TimedOut, all, cancellable, first, scope, shield,
    timeout, try_scope,
};
pub use shared::{SharedEffect, handle_shared, perform_shared};
pub use simulation::{Simulation, simulate, simulate_crash, simulation_seed};
pub use task::{
    JoinHandle, dump, set_task_name, spawn, spawn_in_run, spawn_named,
    spawn_with_own_thread_locals, task_name,
};
pub use wait::{Cancelled, sleep, yield_now};

#[doc(hidden)]
pub use haft_sys as __sys;
