// SPDX-License-Identifier: MIT
//! Code during which no other task of the thread runs; the panic hook is such code.

use crate::local;
use crate::wait::Call;
use haft_sys as sys;
use std::cell::Cell;
use std::panic::{set_hook, take_hook};
use std::sync::Once;
use std::thread;

thread_local! {
    /// The task that blocks its thread. To C the thread has no task meanwhile; here it still has
    /// its name, and by [`local`] its values.
    static BLOCKED: Cell<Option<*mut sys::haft_io_task_t>> = const { Cell::new(None) };
}

/// The task on whose stack the caller is, or null.
pub(crate) fn this_task() -> *mut sys::haft_io_task_t {
    // SAFETY: any thread may call it.
    BLOCKED
        .get()
        .unwrap_or_else(|| unsafe { sys::haft_rust_self() })
}

/// Restores the task, also when the function panics.
struct Restore {
    task: Option<*mut sys::haft_io_task_t>,
    locals: usize,
}
impl Drop for Restore {
    fn drop(&mut self) {
        BLOCKED.set(self.task);
        local::keep_word(self.locals);
    }
}

/// Calls the function as on a thread without tasks: whatever waits in it blocks the thread, and no
/// other task of the thread runs before it returns.
///
/// It is for code that a thread can run only once at a time, whatever stack it is on: code with the
/// lock of [`std::io::stdout`], a library that has a variable of the thread borrowed while it calls
/// back. The panic hook is called so by itself. No cancel arrives in the function, and it cannot
/// spawn tasks. It must not wait for what only another task of the thread can end.
///
/// ```
/// use std::io::Write;
///
/// haft::run(|| {
///     haft::block_thread(|| {
///         let mut out = std::io::stdout().lock();
///         std::thread::sleep(std::time::Duration::from_millis(1)); // all tasks wait
///         writeln!(out, "in one piece")
///     })
///     .unwrap();
/// });
/// ```
pub fn block_thread<T>(function: impl FnOnce() -> T) -> T {
    let task = this_task();
    let locals = local::word();
    let blocked = (!task.is_null()).then_some(task);
    let mut call = Call::new(|| {
        let _restore = Restore {
            task: BLOCKED.replace(blocked),
            locals: local::keep_word(locals),
        };
        function()
    });
    let (body, argument) = (call.body(), call.argument());
    // SAFETY: the body and its argument live until the call returns, and the body lets no panic
    // out.
    unsafe { sys::haft_io_block_thread(body, argument) };
    call.result()
}

/// Has the panic hook block the thread. std counts for each thread that its hook runs, and ends the
/// process if a second panic comes meanwhile; and it holds a lock. So while one task is in the
/// hook, which reads files for its backtrace, no other task of the thread may run.
pub(crate) fn guard_panic_hook() {
    static ONCE: Once = Once::new();
    if ONCE.is_completed() || thread::panicking() {
        return; // a panicking thread cannot change the hook
    }
    ONCE.call_once(|| {
        let hook = take_hook();
        set_hook(Box::new(move |information| {
            block_thread(|| hook(information));
        }));
    });
}
