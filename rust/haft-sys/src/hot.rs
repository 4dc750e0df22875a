// SPDX-License-Identifier: MIT
//! Performing and resuming without a call of C: what `haft/inner/hot.h` inlines into programs of C,
//! for effects of Rust, which are simpler. Where anything is out of the ordinary, C's functions do
//! it all.
//!
//! The invariants are those of hot.h and of the files that it includes; the layouts are compared
//! with C's by `shim/declarations.c`. What is left out here, and why that is right:
//!
//! - A set of effects is compared by its address alone, since each effect of Rust has one set as a
//!   request. `requested`, or the cache of the scope, which has the effect without a mark, says that
//!   the switch need not be made out of line.
//! - A fiber is looked at when C has resumed it: whether its gate is open, its stack has a guard, and
//!   what its resumer handles. Only C changes these. Whether exceptions are pending, who resumes, and
//!   whether it was suspended with further fibers inside of it, is looked at each time.
//! - `owner` is read once: a computation of Rust stays on its thread, so no other thread resumes it
//!   at the same time.
//! - The modes of floating point are not compared. Code of Rust runs with the default ones; what
//!   they were when C last stored them stays in the contexts, and C compares them when C switches.
//! - An effect of Rust has no result for C: the handler writes the answer into the payload. So a
//!   fiber that waits in one waits for any reply.

use crate::{haft_fiber_t, haft_rust_effect_t, haft_rust_perform, haft_rust_resume};
use core::cell::Cell;
use core::ffi::c_void;

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
use x86_64 as arch;

/// Where there is no assembly C does all.
#[cfg(not(target_arch = "x86_64"))]
mod arch {
    use super::{Found, Resumed, c_void, haft_fiber_t, haft_rust_effect_t};
    pub struct Reach(());
    pub struct Suspending(());
    impl Suspending {
        pub unsafe fn suspend(self, _: *mut haft_rust_effect_t, _: *mut c_void) {}
    }
    pub unsafe fn find(_: *mut haft_rust_effect_t) -> Found {
        Found::Other
    }
    pub unsafe fn find_on(_: usize, _: *mut haft_rust_effect_t) -> Found {
        Found::Other
    }
    pub fn current_fiber() -> usize {
        0
    }
    pub unsafe fn is_ordinary(_: *const haft_fiber_t, _: *const haft_rust_effect_t) -> bool {
        false
    }
    pub unsafe fn resume(_: *mut haft_fiber_t) -> Option<Resumed> {
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

/// As `find`, which it calls unless this fiber handles the effect. `fiber` was the
/// [`current_fiber`] of the code that performs, or of any other; it may be gone.
///
/// # Safety
/// As for `find`.
#[inline(always)]
pub unsafe fn find_on(fiber: usize, effect: *mut haft_rust_effect_t) -> Found {
    // SAFETY: as the caller says.
    unsafe {
        match arch::find_on(fiber, effect) {
            Found::Request(suspending) => Found::Request(suspending),
            _ => arch::find(effect),
        }
    }
}

/// The address of the fiber on which the code runs, if no handler is further in.
#[inline(always)]
pub fn current_fiber() -> usize {
    arch::current_fiber()
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

/// What a fiber that has been resumed has come to.
pub struct Resumed {
    /// The fiber: the caller knows it, but would mostly read it from memory, at an address that it
    /// has from its stack. This is there before the stack pointer is.
    pub fiber: *mut haft_fiber_t,
    /// Of the effect that has suspended it; or null: it has ended.
    pub slot: *mut c_void,
}

/// Starts or resumes a fiber: as `haft_rust_resume`.
///
/// Whether the fiber is ordinary, so that little has to be looked at when it is resumed again, is put
/// into `is_ordinary`.
///
/// # Safety
/// The fiber is new or suspended, and was always resumed on this thread. The effect is one of
/// `haft_rust_effect_new`.
#[inline(always)]
pub unsafe fn start(
    fiber: *mut haft_fiber_t,
    effect: *mut haft_rust_effect_t,
    is_ordinary: &Cell<bool>,
) -> Resumed {
    // SAFETY: as the caller says.
    unsafe {
        is_ordinary.set(arch::is_ordinary(fiber, effect));
        resume(fiber, effect, is_ordinary)
    }
}

/// Resumes a fiber. `is_ordinary` is what the last start or resume has left there.
///
/// # Safety
/// As for `start`; and the fiber has been started to handle this effect, and no other since.
#[inline(always)]
pub unsafe fn resume(
    fiber: *mut haft_fiber_t,
    effect: *mut haft_rust_effect_t,
    is_ordinary: &Cell<bool>,
) -> Resumed {
    #[cold]
    unsafe fn by_c(fiber: *mut haft_fiber_t, effect: *mut haft_rust_effect_t) -> Resumed {
        // SAFETY: as the caller says.
        let slot = unsafe { haft_rust_resume(fiber, effect) };
        Resumed { fiber, slot }
    }
    // SAFETY: as the caller says.
    unsafe {
        if is_ordinary.get() {
            if let Some(resumed) = arch::resume(fiber) {
                return resumed;
            }
        }
        let resumed = by_c(fiber, effect);
        is_ordinary.set(arch::is_ordinary(fiber, effect));
        resumed
    }
}
