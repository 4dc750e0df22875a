// SPDX-License-Identifier: MIT
//! Signals, for which a task waits instead of being interrupted.

use crate::descriptor::done;
use haft_sys as sys;
use std::ffi::c_int;
use std::io;

/// The terminal is gone.
pub const SIGHUP: i32 = 1;
/// The user has pressed the key that interrupts.
pub const SIGINT: i32 = 2;
/// For the program's own use.
pub const SIGUSR1: i32 = 10;
/// For the program's own use.
pub const SIGUSR2: i32 = 12;
/// The program is to end.
pub const SIGTERM: i32 = 15;
/// The terminal's window has another size.
pub const SIGWINCH: i32 = 28;

/// Signals that interrupt nothing any more, and for which tasks wait.
///
/// ```
/// use haft::signal::{SIGHUP, Signals};
///
/// let signals = Signals::block(&[SIGHUP]).unwrap(); // in main(), before there are other threads
/// haft::run(|| {
///     let none = haft::timeout(std::time::Duration::from_millis(1), || signals.wait());
///     assert!(none.is_err());
/// });
/// ```
#[derive(Debug)]
pub struct Signals(Vec<c_int>);

impl Signals {
    /// Blocks the signals for the calling thread and those that it starts: so to be called at the
    /// beginning of `main`, before there are others. They stay blocked.
    ///
    /// # Errors
    /// `InvalidInput` if a number is none of a signal.
    ///
    /// ```
    /// use haft::signal::{SIGUSR1, Signals};
    ///
    /// assert!(Signals::block(&[SIGUSR1]).is_ok());
    /// assert!(Signals::block(&[1000]).is_err());
    /// ```
    pub fn block(signals: &[i32]) -> io::Result<Self> {
        // SAFETY: the numbers live until the call returns.
        done(|| unsafe { sys::haft_rust_signals_block(signals.as_ptr(), signals.len()) as isize })?;
        Ok(Signals(signals.to_vec()))
    }

    /// Waits for one of the signals, and returns its number. One that comes while no task waits is
    /// kept.
    ///
    /// # Errors
    /// The system's.
    ///
    /// ```
    /// use haft::process::Command;
    /// use haft::signal::{SIGUSR2, Signals};
    ///
    /// let signals = Signals::block(&[SIGUSR2]).unwrap();
    /// haft::run(|| {
    ///     let me = std::process::id().to_string();
    ///     haft::spawn(move || Command::new("kill").args(["-USR2", &me]).status()).join().unwrap().unwrap();
    ///     assert_eq!(signals.wait().unwrap(), SIGUSR2);
    /// });
    /// ```
    pub fn wait(&self) -> io::Result<i32> {
        // SAFETY: the numbers live until the call returns.
        done(|| unsafe { sys::haft_rust_signal_wait(self.0.as_ptr(), self.0.len()) as isize })
            .map(|signal| signal as i32)
    }
}
