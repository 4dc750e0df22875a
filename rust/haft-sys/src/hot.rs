// SPDX-License-Identifier: MIT
//! Performing and resuming without a call of C: what `haft/inner/hot.h` inlines into programs of C,
//! for effects of Rust, which are simpler. Where anything is out of the ordinary, C's functions do
//! it all.
//!
//! The invariants are those of hot.h and of the files that it includes; the layouts are compared
//! with C's by `shim/declarations.c`. What is left out here, and why that is right:
//!
//! - A set of effects is compared by its address alone, since each effect of Rust has one set as a
//!   request. That the cache of the scope has the effect without a mark says that the switch need
//!   not be made out of line.
//! - `owner` is read once: a computation of Rust stays on its thread, so no other thread resumes it
//!   at the same time.
//! - The modes of floating point are not compared. Code of Rust runs with the default ones; what
//!   they were when C last stored them stays in the contexts, and C compares them when C switches.
//! - An effect of Rust has no result for C: the handler writes the answer into the payload. So a
//!   fiber that waits in one waits for any reply.

use crate::{haft_fiber_t, haft_rust_effect_t, haft_rust_perform, haft_rust_resume};
use core::ffi::c_void;

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
use x86_64 as arch;

/// Where there is no assembly C does all.
#[cfg(not(target_arch = "x86_64"))]
mod arch {
    use super::{Found, c_void, haft_fiber_t, haft_rust_effect_t};
    pub struct Reach(());
    pub struct Suspending(());
    impl Suspending {
        pub unsafe fn suspend(self, _: *mut haft_rust_effect_t, _: *mut c_void) {}
    }
    pub unsafe fn find(_: *mut haft_rust_effect_t) -> Found {
        Found::Other
    }
    pub unsafe fn resume(_: *mut haft_fiber_t, _: *mut haft_rust_effect_t) -> Option<*mut c_void> {
        None
    }
}

/// How a perform goes on, here.
pub enum Found {
    /// A handler of Rust answers in place.
    InPlace(InPlace),
    /// The fiber is suspended on which the code runs.
    Request(Suspending),
    /// C knows.
    Other,
}

/// A handler of Rust that runs in place: its scope, and those inside of it, are out of reach until
/// this is dropped.
pub struct InPlace {
    /// What `haft_rust_handle` was given.
    pub state: *mut c_void,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    reach: arch::Reach,
}

pub use arch::Suspending;

/// Begins to perform the effect.
///
/// # Safety
/// The effect is one of `haft_rust_effect_new`. What is found is used at once: a handler in place
/// is dropped on the stack on which it was found, and before what is found next; a request is made.
#[inline(always)]
pub unsafe fn find(effect: *mut haft_rust_effect_t) -> Found {
    // SAFETY: as the caller says.
    unsafe { arch::find(effect) }
}

/// Performs what was found to be no handler in place.
///
/// # Safety
/// The effect is that for which it was found, and the slot what its handlers take it for. Nothing
/// lets the frames around be unwound by force.
#[inline(always)]
pub unsafe fn perform(found: Found, effect: *mut haft_rust_effect_t, slot: *mut c_void) {
    // SAFETY: as the caller says.
    unsafe {
        match found {
            Found::Request(suspending) => suspending.suspend(effect, slot),
            _ => haft_rust_perform(effect, slot),
        }
    }
}

/// Starts or resumes a fiber: as `haft_rust_resume`.
///
/// # Safety
/// The fiber is new or suspended, and was always resumed on this thread. The effect is one of
/// `haft_rust_effect_new`.
#[inline(always)]
pub unsafe fn resume(fiber: *mut haft_fiber_t, effect: *mut haft_rust_effect_t) -> *mut c_void {
    #[cold]
    unsafe fn by_c(fiber: *mut haft_fiber_t, effect: *mut haft_rust_effect_t) -> *mut c_void {
        // SAFETY: as the caller says.
        unsafe { haft_rust_resume(fiber, effect) }
    }
    // SAFETY: as the caller says.
    unsafe {
        match arch::resume(fiber, effect) {
            Some(slot) => slot,
            None => by_c(fiber, effect),
        }
    }
}
