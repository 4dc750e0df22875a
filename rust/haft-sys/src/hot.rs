// SPDX-License-Identifier: MIT
//! Performing and resuming without a call of C: what `haft/inner/hot.h` inlines into programs of C,
//! for effects of Rust, which are simpler. Where anything is out of the ordinary, C's functions do
//! it all.
//!
//! A fiber of Rust runs jobs, one after the other. Below its header lies its [`Room`]:
//!
//! ```text
//!   low                                                                      high
//!   | guard | ...free... | frames of the job | Room | first frames | haft_fiber_t |
//! ```
//!
//! Two registers go along with each switch, a word and a tag:
//!
//! | from, to | word | tag |
//! |---|---|---|
//! | a resumer to an idle fiber | the job's function | |
//! | a resumer to a fiber that waits | the answer | [`ANSWER`] |
//! | | the payload of the panic that is to be raised | [`RAISE`] |
//! | a job that performs to its resumer | the effect | [`PERFORMED`] |
//! | the same, by C | the address of the performer's slot | that of the effect's descriptor |
//! | a job that ends to its resumer | the result | [`ENDED`] |
//! | | nothing: the panic is in the room | [`PANICKED`] |
//!
//! Answers, effects and results larger than a word lie in memory: see [`encode`]. A fiber that was
//! suspended here, and not by C, waits for a word.
//!
//! The invariants are those of hot.h and of the files that it includes; the layouts are compared
//! with C's by `shim/declarations.c`. What is left out here, and why that is right:
//!
//! - An effect of Rust has one set of clauses as a request for fibers that switch here, and one for
//!   others: those whose stack has no guard, which C looks at, and those of which a tool is told. So
//!   the set of the current scope says by its address alone that the effect suspends the fiber of
//!   this scope, and that the switch need not be made out of line.
//! - Whether the code runs on the stack of that fiber, or in a clause in place that a fiber further in
//!   has called, makes no difference. (C asks because handlers of signals must not suspend; those of
//!   Rust perform nothing.)
//! - `top` is the fiber's own scope wherever a fiber waits for a word: C notes scopes further in only
//!   where it suspends the fiber itself.
//! - `owner` is read once: a computation of Rust stays on its thread, so no other thread resumes it
//!   at the same time. The room has a copy, [`NOBODY`] in fibers that only C resumes.
//! - The gate of a fiber that may be resumed here stays closed, as if somebody had claimed it: the
//!   owner of the computation has.
//! - The modes of floating point are not compared. Code of Rust runs with the default ones; what
//!   they were when C last stored them stays in the contexts, and C compares them when C switches.
//! - An effect of Rust has no result for C, so a fiber that waits in one waits for any reply.

use crate::{haft_fiber_drop, haft_fiber_t, haft_rust_effect_t, haft_rust_perform};
use core::cell::Cell;
use core::ffi::c_void;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr;

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
use x86_64 as arch;
#[cfg(not(target_arch = "x86_64"))]
mod by_c;
#[cfg(not(target_arch = "x86_64"))]
use by_c as arch;

// ---- What goes along with a switch ----

/// A value, or an address. It may have bytes that are not initialised: padding.
pub type Word = MaybeUninit<*mut c_void>;

pub const ANSWER: usize = 0;
pub const RAISE: usize = 1;
pub const PERFORMED: usize = 2;
pub const ENDED: usize = 3;
pub const PANICKED: usize = 4;
/// Instead: nothing has been done, C has to. The word is that which was given.
pub const NOT_DONE: usize = 5;

/// Whether a value of this type is its own word.
pub const fn is_word<T>() -> bool {
    size_of::<T>() <= size_of::<Word>() && align_of::<T>() <= align_of::<Word>()
}

/// The value as a word: itself, or its address if it is larger. Whoever decodes it, once, owns the
/// value.
#[inline(always)]
pub fn encode<T>(value: &ManuallyDrop<T>) -> Word {
    if is_word::<T>() {
        let mut word = Word::uninit();
        // SAFETY: it has the size and alignment.
        unsafe {
            ptr::copy_nonoverlapping(
                ptr::from_ref(value).cast(),
                word.as_mut_ptr().cast::<T>(),
                1,
            )
        };
        word
    } else {
        Word::new(ptr::from_ref(value).cast_mut().cast())
    }
}

/// # Safety
/// The word is that of a value of this type, which is still there, and has not been decoded.
#[inline(always)]
pub unsafe fn decode<T>(word: Word) -> T {
    // SAFETY: the caller says so.
    unsafe {
        if is_word::<T>() {
            word.as_ptr().cast::<T>().read()
        } else {
            word.assume_init().cast::<T>().read()
        }
    }
}

// ---- Rooms ----

/// Room for a computation until it begins, and for what is left of it when it has ended.
#[repr(C)]
pub struct Room {
    pub content: [MaybeUninit<u128>; 8],
    /// The serial of the scope that may resume the fiber here.
    owner: u64,
    /// What C cannot carry in registers.
    word: Word,
    tag: usize,
    /// By which the fiber is idle, where C suspends it.
    #[cfg(not(target_arch = "x86_64"))]
    effect: *mut haft_rust_effect_t,
    /// For whoever has the fiber.
    pub next: Cell<*mut haft_fiber_t>,
}

/// An owner that no scope is.
const NOBODY: u64 = u64::MAX;

#[repr(C, align(16))]
struct Nowhere {
    room: Room,
    rest: [MaybeUninit<u8>; DISTANCE - size_of::<Room>()],
}
// SAFETY: nobody writes to it.
unsafe impl Sync for Nowhere {}
static NOWHERE: Nowhere = Nowhere {
    room: Room {
        content: [MaybeUninit::uninit(); 8],
        owner: NOBODY,
        word: Word::uninit(),
        tag: NOT_DONE,
        #[cfg(not(target_arch = "x86_64"))]
        effect: UNMADE,
        next: Cell::new(ptr::null_mut()),
    },
    rest: [MaybeUninit::uninit(); DISTANCE - size_of::<Room>()],
};

/// In place of a fiber: one whose resume does nothing. Only its room is there.
#[inline(always)]
pub fn nowhere() -> *mut haft_fiber_t {
    (&raw const NOWHERE).wrapping_add(1).cast_mut().cast()
}

/// What runs on a fiber; returns how it has ended.
pub type Job = unsafe extern "C" fn(fiber: *mut haft_fiber_t) -> Outcome;

#[repr(C)]
pub struct Outcome {
    pub word: Word,
    /// [`ENDED`] or [`PANICKED`].
    pub tag: usize,
}

/// How far below the fiber's header its room begins: there the first frames are at their end.
const DISTANCE: usize = 512;

/// The room of a fiber of [`new_fiber`].
#[inline(always)]
pub fn room_of(fiber: *mut haft_fiber_t) -> *mut Room {
    fiber.wrapping_byte_sub(DISTANCE).cast()
}

/// An idle fiber; or null: there is no memory.
///
/// # Safety
/// The shim has made the effect.
#[cold]
pub unsafe fn new_fiber(effect: *mut haft_rust_effect_t) -> *mut haft_fiber_t {
    // SAFETY: as the caller says.
    unsafe { arch::new_fiber(effect) }
}

/// # Safety
/// The fiber is idle, and is not used any more.
#[cold]
pub unsafe fn end_fiber(fiber: *mut haft_fiber_t, effect: *mut haft_rust_effect_t) {
    // SAFETY: as the caller says.
    unsafe {
        resume_by_c(fiber, effect, Some((arch::leave(), ANSWER)));
        haft_fiber_drop(fiber);
    }
}

// ---- Performing ----

/// A handler of Rust that runs in place: its scope, and those inside of it, are out of reach until
/// this is dropped.
pub struct InPlace {
    /// What `haft_rust_handle` was given.
    pub state: *mut c_void,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    reach: arch::Reach,
}

/// In place of an effect's descriptor: there is none yet.
pub const UNMADE: *mut haft_rust_effect_t = ptr::without_provenance_mut(1);

/// Performs the effect, which may be [`UNMADE`], if whoever has resumed the innermost fiber handles it,
/// and no handler is further in; returns the words of the answer. Or does nothing, and says so.
///
/// # Safety
/// Handlers of the effect expect such a word. Nothing lets the frames around be unwound by force.
#[inline(always)]
pub unsafe fn perform(effect: *mut haft_rust_effect_t, word: Word) -> (Word, usize) {
    // SAFETY: as the caller says.
    unsafe { arch::perform(effect, word) }
}

/// The handler in place of the effect, which may be [`UNMADE`], if it is known here.
///
/// # Safety
/// What is found is dropped on the stack on which it was found, and before what is found next.
#[inline(always)]
pub unsafe fn find(effect: *mut haft_rust_effect_t) -> Option<InPlace> {
    // SAFETY: as the caller says.
    unsafe { arch::find(effect) }
}

/// Performs the effect through C.
///
/// # Safety
/// The slot is what the handlers of the effect take it for. Nothing lets the frames around be unwound
/// by force.
#[cold]
pub unsafe fn perform_by_c(effect: *mut haft_rust_effect_t, slot: *mut c_void) {
    // SAFETY: as the caller says.
    unsafe { haft_rust_perform(effect, slot) }
}

// ---- Resuming ----

/// What a fiber that has been resumed has come to.
pub struct Resumed {
    /// The fiber: the caller knows it, but would mostly read it from memory, at an address that it
    /// has from its stack. This is there before the stack pointer is.
    pub fiber: *mut haft_fiber_t,
    pub word: Word,
    pub tag: usize,
}

/// Starts a job on an idle fiber, to handle the effect. Or does nothing, and says so: C has to, by
/// [`resume_by_c`].
///
/// # Safety
/// The fiber is idle, and the job may run on it.
#[inline(always)]
pub unsafe fn start(
    fiber: *mut haft_fiber_t,
    effect: *mut haft_rust_effect_t,
    job: Job,
) -> Resumed {
    let word = Word::new(job as *mut c_void);
    // SAFETY: as the caller says.
    unsafe {
        if arch::handles(fiber, effect) {
            return arch::resume(fiber, word);
        }
    }
    let tag = NOT_DONE;
    Resumed { fiber, word, tag }
}

/// Resumes a fiber that waits for a word. Or does nothing, and says so: C has to, by [`resume_by_c`],
/// or the fiber was [`nowhere`].
///
/// # Safety
/// The answer is what the performer expects.
#[inline(always)]
pub unsafe fn resume(fiber: *mut haft_fiber_t, answer: Word) -> Resumed {
    // SAFETY: as the caller says.
    unsafe { arch::resume(fiber, answer) }
}

/// Starts or resumes a fiber through C, to handle the effect. Words are for a fiber that is idle or
/// waits for a word, and only for such.
///
/// # Safety
/// The fiber is idle or suspended, and was always resumed on this thread. The words are what the fiber
/// expects.
#[cold]
pub unsafe fn resume_by_c(
    fiber: *mut haft_fiber_t,
    effect: *mut haft_rust_effect_t,
    words: Option<(Word, usize)>,
) -> Resumed {
    // SAFETY: as the caller says.
    unsafe { arch::resume_by_c(fiber, effect, words) }
}
