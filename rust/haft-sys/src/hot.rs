// SPDX-License-Identifier: MIT
//! Performing and resuming without a call of C: the counterpart of `haft/inner/hot.h`, which is
//! inlined into programs of C, for effects of Rust, which are simpler. Where anything is out of the
//! ordinary, functions of C do all the work.
//!
//! A fiber of Rust runs jobs, one after the other. Below its header lies its [`Room`]:
//!
//! ```text
//!   low                                                                      high
//!   | guard | ...free... | frames of the job | Room | first frames | haft_fiber_t |
//! ```
//!
//! Each switch carries three registers: the fiber, a word, and a tag. The first is the address of
//! the fiber's scope where the word is an effect or an answer, and then the tag is not read;
//! otherwise it is the address of the fiber's header. The two differ in a bit, `ORDINARY`.
//!
//! | from, to | fiber | word | tag |
//! |---|---|---|---|
//! | a resumer to an idle fiber | either | the job's function | |
//! | a resumer to a fiber that waits | scope | the answer | |
//! | the same, by C | header | the answer | [`ANSWER`] |
//! | | header | the payload of the panic that is to be raised | [`RAISE`] |
//! | a job that performs to its resumer | scope | the effect | for C: the address of the effect |
//! | the same, by C | header | the address of the performer's slot | that of the descriptor |
//! | a job that ends to its resumer | header | the result | [`ENDED`] |
//! | | header | nothing: the panic is in the room | [`PANICKED`] |
//!
//! Answers, effects and results larger than a word lie in memory: see [`encode`]. A fiber that was
//! suspended here, and not by C, waits for a word.
//!
//! The invariants are those of hot.h and of the files that it includes; the layouts are compared
//! with C's by `shim/declarations.c`. Some steps of C's are left out here, for these reasons:
//!
//! - An effect of Rust has one set of clauses as a request for fibers that switch here, and one for
//!   others: those whose stack has no guard, which C looks at, and those of which a tool is told.
//!   So the address of the current scope's set shows by itself that the effect suspends the fiber
//!   of this scope, and that the switch need not be made out of line.
//! - Whether the code runs on the stack of that fiber, or in a clause in place that a fiber further
//!   in has called, makes no difference. (C checks this because handlers of signals must not
//!   suspend; those of Rust perform nothing.)
//! - `top` is the fiber's own scope wherever a fiber waits for a word: C notes scopes further in
//!   only where it suspends the fiber itself.
//! - `owner` is read once: a computation of Rust stays on its thread, so no other thread resumes it
//!   at the same time. The room has a copy, `NOBODY` in fibers that only C resumes.
//! - The gate of a fiber that may be resumed here stays closed, as if it were claimed: the owner of
//!   the computation has claimed it.
//! - The modes of floating point are not compared. Code of Rust runs with the default ones; the
//!   modes that C stored last stay in the contexts, and C compares them when C switches.
//! - An effect of Rust has no result for C, so a fiber that waits in one waits for any reply.

use crate::{
    haft_fiber_drop, haft_fiber_t, haft_rust_effect_t, haft_rust_fiber_new, haft_rust_perform,
    haft_rust_resume,
};
pub use arch::Here;
use core::cell::Cell;
use core::ffi::c_void;
use core::mem::{ManuallyDrop, MaybeUninit, offset_of};
use core::ptr;
use layout::{
    AWAITS_NOTHING, CLAUSE_MARK, Entry, Fiber, GATE_CLOSED, GATE_OPEN, Handles, RustEffect, Scope,
};

mod layout;

#[cfg_attr(target_arch = "aarch64", path = "hot/aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "hot/x86_64.rs")]
mod arch;

// Written in assembly, in `arch`.
unsafe extern "C" {
    /// The function of a fiber: it is idle, runs the job that it is given, and is idle again.
    fn haft_rust_work(argument: *mut c_void) -> *mut c_void;
    /// The job that ends a fiber.
    fn haft_rust_leave();
}

// ---- The registers of a switch ----

/// A value, or an address. It may have bytes that are not initialised: padding.
pub type Word = MaybeUninit<*mut c_void>;

pub const ANSWER: usize = 0;
pub const RAISE: usize = 1;
pub const ENDED: usize = 2;
pub const PANICKED: usize = 3;
/// The tag of a call that has done nothing, so that C has to do it. The word is the given one.
pub const NOT_DONE: usize = 4;

/// The bit of a scope's address that a header's does not have.
const ORDINARY: usize = 8;
const _: () = assert!(offset_of!(Fiber, scope) % 16 == ORDINARY);

/// A fiber that waits for a word, or [`nowhere`]; by the address of its scope.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Waiting(*mut Scope);

impl Waiting {
    /// (Where the address is no scope's, the fiber is never resumed by it.)
    #[inline(always)]
    pub fn of(fiber: *mut haft_fiber_t) -> Waiting {
        Waiting(fiber.wrapping_byte_add(offset_of!(Fiber, scope)).cast())
    }
}

/// The result of a switch.
pub struct Arrived {
    /// The fiber that has switched here. Its resumer knows it, too, but would mostly read it from
    /// memory, by way of the stack; this is available before the stack pointer is.
    from: *mut c_void,
    pub word: Word,
    pub tag: usize,
}

impl Arrived {
    /// Whether the word is the effect, or the answer, that was to be expected.
    #[inline(always)]
    pub fn is_ordinary(&self) -> bool {
        self.from.addr() & ORDINARY != 0
    }

    /// The fiber that has performed, in the ordinary case.
    #[inline(always)]
    pub fn waiting(&self) -> Waiting {
        Waiting(self.from.cast())
    }

    /// The fiber, in any other case.
    #[inline(always)]
    pub fn fiber(&self) -> *mut haft_fiber_t {
        self.from.cast()
    }
}

/// Whether a value of this type is its own word.
pub const fn is_word<T>() -> bool {
    size_of::<T>() <= size_of::<Word>() && align_of::<T>() <= align_of::<Word>()
}

/// The value as a word: itself, or its address if it is larger. It is decoded once, by its new
/// owner.
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
    // SAFETY: the caller promises it.
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
    /// The word and the tag of switches through C, which cannot carry these in registers.
    word: Word,
    tag: usize,
    /// Free for the owner of the fiber.
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
        next: Cell::new(ptr::null_mut()),
    },
    rest: [MaybeUninit::uninit(); DISTANCE - size_of::<Room>()],
};

/// A stand-in for a fiber, whose resume does nothing. Only its room exists.
#[inline(always)]
pub fn nowhere() -> Waiting {
    Waiting::of((&raw const NOWHERE).wrapping_add(1).cast_mut().cast())
}

/// A function that runs on the fiber of the room; returns how it has ended.
pub type Job = unsafe extern "C" fn(room: *mut Room) -> Outcome;

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

/// Makes an idle fiber; null: there is no memory.
///
/// # Safety
/// The shim has made the effect.
#[cold]
pub unsafe fn new_fiber(effect: *mut haft_rust_effect_t) -> *mut haft_fiber_t {
    // SAFETY: as the caller promises; the function lets no panic out, and is idle when it has been
    // resumed once.
    unsafe {
        let fiber = haft_rust_fiber_new(0, haft_rust_work, ptr::null_mut());
        if !fiber.is_null() {
            resume_by_c(fiber, effect, None);
        }
        fiber
    }
}

/// # Safety
/// The fiber is idle, and is not used any more.
#[cold]
pub unsafe fn end_fiber(fiber: *mut haft_fiber_t, effect: *mut haft_rust_effect_t) {
    let no_more = Word::new(haft_rust_leave as *mut c_void);
    // SAFETY: as the caller promises.
    unsafe {
        resume_by_c(fiber, effect, Some((no_more, ANSWER)));
        haft_fiber_drop(fiber);
    }
}

// ---- Performing ----

/// A stand-in for an effect that has not been made yet.
pub const UNMADE: *mut haft_rust_effect_t = ptr::without_provenance_mut(1);

/// The set of effects of fibers that the effect suspends here.
#[inline(always)]
fn request_of(effect: *mut haft_rust_effect_t) -> *const Handles {
    effect.cast()
}

/// To C.
#[inline(always)]
fn descriptor_of(effect: *mut haft_rust_effect_t) -> usize {
    effect.addr().wrapping_add(offset_of!(RustEffect, effect))
}

/// Performs the effect, which may be [`UNMADE`], if the resumer of the innermost fiber handles it,
/// and no handler is further in. Otherwise nothing is done.
///
/// # Safety
/// Handlers of the effect expect such a word. Nothing lets the frames around be unwound by force.
#[inline(always)]
pub unsafe fn perform(effect: *mut haft_rust_effect_t, word: Word) -> Result<Arrived, Here> {
    // SAFETY: only fibers have this set, so the current scope is that of a fiber, whose resumer
    // handles the effect.
    unsafe {
        let here = Here::now();
        if (*here.current).handles != request_of(effect) {
            return Err(here);
        }
        Ok(arch::suspend(here, effect, word))
    }
}

/// A handler of Rust that runs in place: its scope, and those inside of it, are out of reach until
/// this is dropped. The fields but `state` are those of hafti_in_place_t.
pub struct InPlace {
    /// The state that `haft_rust_handle` was given.
    pub state: *mut c_void,
    performer: *mut Scope,
    outer: *mut Scope,
    serial: u64,
}

unsafe extern "C" {
    fn hafti_in_place_moved(performer: *mut Scope, outer: *const Scope);
}

/// The effect's entry in the cache of the scope, and its key.
///
/// # Safety
/// The scope is in the chain of this thread, and the shim has made the effect.
#[inline(always)]
unsafe fn entry_in(scope: *mut Scope, made: *const RustEffect) -> (*mut Entry, usize) {
    // SAFETY: the effect has a place in the cache of all scopes.
    unsafe {
        let entry = scope.byte_add((*made).entry as usize).cast::<Entry>();
        (entry, (&raw const (*entry).key).read_volatile())
    }
}

/// The handler in place of the effect, which may be [`UNMADE`], if it is known here.
///
/// # Safety
/// No switch was made since `here` was read. The result is dropped on the stack on which it was
/// found, and after every one that was found meanwhile.
#[inline(always)]
pub unsafe fn find(here: Here, effect: *mut haft_rust_effect_t) -> Option<InPlace> {
    // SAFETY: the shim has made the effect, unless there is none, and the chain of scopes is that
    // of this thread.
    unsafe {
        if effect == UNMADE {
            return None;
        }
        let performer = here.current;
        let made = effect.cast::<RustEffect>();
        let (entry, key) = entry_in(performer, made);
        if key != descriptor_of(effect) + CLAUSE_MARK {
            return None;
        }
        let with = (&raw const (*entry).with).read_volatile();
        let scope = (&raw const (*entry).scope).read_volatile();
        // (A handler of a signal, of C, may have written the entry meanwhile.)
        if with != &raw const (*made).in_place as usize + CLAUSE_MARK
            || (&raw const (*entry).key).read_volatile() != key
        {
            return None;
        }
        let outer = (*scope).outer;
        let found = InPlace {
            state: (*scope).state,
            performer,
            outer,
            serial: (*outer).serial,
        };
        here.set_current(outer);
        Some(found)
    }
}

impl Drop for InPlace {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the scopes are there, as the frames of their handlers are around this one. In
        // this order, as in C.
        unsafe {
            if (*self.outer).serial != self.serial {
                hafti_in_place_moved(self.performer, self.outer);
            }
            Here::now().set_current(self.performer);
        }
    }
}

/// Performs the effect through C. Returns the address of the answer, for this call to read; or
/// null: it is in the slot.
///
/// # Safety
/// The slot has the type that the handlers of the effect expect. Nothing lets the frames around be
/// unwound by force.
#[cold]
pub unsafe fn perform_by_c(effect: *mut haft_rust_effect_t, slot: *mut c_void) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe { haft_rust_perform(effect, slot) }
}

// ---- Resuming ----

/// Starts a job on an idle fiber, to handle the effect. Or does nothing, and returns [`NOT_DONE`]:
/// C has to do it, by [`resume_by_c`].
///
/// # Safety
/// The fiber is idle, and the job may run on it.
#[inline(always)]
pub unsafe fn start(
    fiber: *mut haft_fiber_t,
    effect: *mut haft_rust_effect_t,
    job: Job,
) -> Arrived {
    let word = Word::new(job as *mut c_void);
    // SAFETY: the caller has the fiber.
    unsafe {
        if (*fiber.cast::<Fiber>()).scope.handles == request_of(effect) {
            arch::resume(Waiting::of(fiber), word)
        } else {
            Arrived {
                from: fiber.cast(),
                word,
                tag: NOT_DONE,
            }
        }
    }
}

/// Resumes a fiber that waits for a word. Or does nothing, and returns [`NOT_DONE`]: C has to do
/// it, by [`resume_by_c`], or the fiber was [`nowhere`].
///
/// # Safety
/// The answer is what the performer expects.
#[inline(always)]
pub unsafe fn resume(fiber: Waiting, answer: Word) -> Arrived {
    // SAFETY: as the caller promises.
    unsafe { arch::resume(fiber, answer) }
}

/// Starts or resumes a fiber through C, to handle the effect. Words are for a fiber that is idle or
/// waits for a word, and only for such.
///
/// # Safety
/// The fiber is idle or suspended, and was always resumed on this thread. The words are what the
/// fiber expects.
#[cold]
pub unsafe fn resume_by_c(
    fiber: *mut haft_fiber_t,
    effect: *mut haft_rust_effect_t,
    words: Option<(Word, usize)>,
) -> Arrived {
    let this = fiber.cast::<Fiber>();
    let room = room_of(fiber);
    // SAFETY: the caller has the fiber. One that expects words has stored its context here.
    unsafe {
        if (*this).context.gate_or_room == GATE_CLOSED {
            (*this).context.gate_or_room = GATE_OPEN;
        }
        if let Some((word, tag)) = words {
            ((*room).word, (*room).tag) = (word, tag);
            (*this).context.pc = arch::entry_by_c((*this).context.pc);
        }
        let request = haft_rust_resume(fiber, effect);
        let tag = request.effect.addr();
        let by_c = tag == descriptor_of(effect);
        let here = tag == effect.addr();
        if by_c || here || tag <= PANICKED {
            if !by_c {
                (*this).top = &raw mut (*this).scope; // scopes further in have ended
                (*this).awaits = descriptor_of(effect) + AWAITS_NOTHING;
            }
            let is_ordinary = (*this).context.gate_or_room == GATE_OPEN
                && (*this).scope.handles == request_of(effect);
            (*room).owner = NOBODY;
            if is_ordinary {
                (*this).context.gate_or_room = GATE_CLOSED;
                (*room).owner = (*this).owner;
            }
        } // else the fiber has ended, and its stack may be gone
        Arrived {
            from: if here {
                Waiting::of(fiber).0.cast()
            } else {
                fiber.cast()
            },
            word: Word::new(request.payload),
            tag,
        }
    }
}

/// The word that a function of one type, `key`, has to itself, if no other function is the same:
/// its `value`, or its `address`. It is 1 before the first use.
#[macro_export]
#[doc(hidden)]
macro_rules! word_of {
    ($key:path, $what:ident, $result:ty) => {{
        let result: $result;
        ::core::arch::asm!(
            // (Inlined twice into one object, or in several objects, it is one word.)
            ".ifndef haft_word_of_{key}",
            ".pushsection .data.haft_word_of_{key}, \"awG\", %progbits, haft_word_of_{key}, comdat",
            ".weak haft_word_of_{key}",
            ".hidden haft_word_of_{key}",
            ".balign 8",
            "haft_word_of_{key}: .quad 1",
            ".popsection",
            ".endif",
            $crate::word_of_by!($what),
            key = sym $key,
            result = out(reg) result,
            options(nostack, preserves_flags, pure, readonly),
        );
        result
    }};
}
