// SPDX-License-Identifier: MIT
//! Finds the word of a parked thread in std, by which libhaft-posix reports two tasks of a thread
//! that park at once.

use haft_sys as sys;
use std::mem::transmute_copy;
use std::sync::Once;
use std::thread::{self, Thread};

/// More than std has for a thread.
const SIZE: usize = 256;

unsafe extern "C" fn is_of_this_thread(word: *const u32) -> bool {
    const {
        assert!(size_of::<Thread>() == size_of::<usize>());
    }
    let this = thread::current();
    // SAFETY: a handle is an address, by its size, or else a word that is not looked through.
    let place = unsafe { transmute_copy::<Thread, usize>(&this) };
    word.addr().wrapping_sub(place) < SIZE
}

/// To be called before tasks run.
pub(crate) fn tell_of_parks() {
    static ONCE: Once = Once::new();
    // SAFETY: the function may be called by any thread.
    ONCE.call_once(|| unsafe { sys::haft_posix_know_parks(is_of_this_thread) });
}
