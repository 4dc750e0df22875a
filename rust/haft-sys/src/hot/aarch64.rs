// SPDX-License-Identifier: MIT
//! The hot paths on AArch64: `haft/inner/switch_aarch64.h` and `haft/inner/hot.h`.
//!
//! The registers of a switch: x0 the fiber, x2 the word, x3 the tag. x4, which is 0, marks its
//! words for C as not special. (Here they never are: a fiber of Rust is not told to unwind or to
//! call something, and its last resume is C's.) Where C resumes a fiber, x1 is the address of the
//! header, and x0 is not. Each place where a switch may arrive begins with `bti j` (hint 36), as in
//! C.

use super::layout::{Fiber, Scope};
use super::{Arrived, DISTANCE, ENDED, NOBODY, NOT_DONE, Room, Waiting, Word};
use crate::haft_rust_effect_t;
use core::arch::{asm, global_asm};
use core::ffi::c_void;
use core::mem::offset_of;

// ---- Where the code runs ----

/// Valid until the next switch.
#[derive(Clone, Copy)]
pub struct Here {
    /// The thread's state, which begins with the current scope.
    thread: *mut c_void,
    pub current: *mut Scope,
}

/// Loads the address of the thread's state into the register.
macro_rules! thread_into {
    ($register:literal, $spare:literal) => {
        concat!(
            "mrs ",
            $register,
            ", tpidr_el0\nadrp ",
            $spare,
            ", :gottprel:hafti_thread_state\nldr ",
            $spare,
            ", [",
            $spare,
            ", #:gottprel_lo12:hafti_thread_state]\nadd ",
            $register,
            ", ",
            $register,
            ", ",
            $spare
        )
    };
}

impl Here {
    #[inline(always)]
    pub fn now() -> Here {
        let (thread, current);
        // SAFETY: reads the state of this thread, which always has a current scope. (It is no pure
        // function: what it reads changes at each switch.)
        unsafe {
            asm!(
                thread_into!("{thread}", "{spare}"),
                "ldr {spare}, [{thread}]",
                thread = out(reg) thread,
                spare = out(reg) current,
                options(nostack, preserves_flags, readonly),
            );
        }
        Here { thread, current }
    }

    /// # Safety
    /// The same as for the calls of its counterpart in hot.h.
    #[inline(always)]
    pub unsafe fn set_current(self, current: *mut Scope) {
        // SAFETY: the caller promises it.
        unsafe {
            asm!(
                "str {current}, [{thread}]",
                thread = in(reg) self.thread,
                current = in(reg) current,
                options(nostack, preserves_flags),
            );
        }
    }
}

// ---- The switch ----

/// Goes to the label 9 where C++ handles exceptions, or anything else has the switch made out of
/// line. One comparison reads both fields of the record, as in C. The thread's state is in x9.
macro_rules! unless_exceptions {
    () => {
        "ldr x10, [x9, #8]
        ldur x10, [x10, #2]
        cbnz x10, 9f"
    };
}

/// Continues with the context at `to` bytes from x0, after it has stored what runs at `from`, to go
/// on at the label 2.
macro_rules! switch {
    () => {
        "adr x10, 2f
        mov x11, sp
        stp x29, x10, [x0, #{from}]
        stp x11, x19, [x0, #{from} + 16]
        mov x4, #0
        ldp x29, x10, [x0, #{to}]
        ldp x11, x19, [x0, #{to} + 16]
        mov sp, x11
        br x10"
    };
}
const CONTEXT: isize = offset_of!(Fiber, context) as isize;
const RESUMER: isize = offset_of!(Fiber, resumer) as isize;
const SCOPE: isize = offset_of!(Fiber, scope) as isize;

/// Distance before the address where a fiber goes on, of the entry by which it goes on if C resumes
/// it, which has no words.
const BY_C: usize = 16;
const LOAD_WORDS: [u32; 2] = [0xd503_249f, 0xaa01_03e0];
macro_rules! load_words {
    () => {
        "hint #36
        sub x5, x1, #{words}
        ldp x2, x3, [x5]
        mov x0, x1"
    };
}
const WORDS: usize = DISTANCE - offset_of!(Room, word);
const _: () = assert!(offset_of!(Room, tag) == offset_of!(Room, word) + 8);

/// # Safety
/// The fiber that goes on at `pc` waits for a word, or is idle.
pub unsafe fn entry_by_c(pc: *mut c_void) -> *mut c_void {
    // SAFETY: so it was suspended below.
    unsafe {
        let entry = pc.byte_sub(BY_C);
        let instructions = [0, BY_C - 4].map(|at| entry.byte_add(at).cast::<u32>().read());
        assert!(instructions == LOAD_WORDS, "the words are loaded there");
        entry
    }
}

// The function of all fibers: runs jobs. Where it is idle its stack ends in the room.
global_asm!(
    ".pushsection .text.haft_rust_work, \"ax\", %progbits",
    ".p2align 4",
    ".globl haft_rust_work",
    ".hidden haft_rust_work",
    ".type haft_rust_work, %function",
    "haft_rust_work:",
    ".cfi_startproc",
    "hint #34",
    "stp x29, x30, [sp, #-160]!",
    ".cfi_def_cfa_offset 160",
    ".cfi_offset x29, -160",
    ".cfi_offset x30, -152",
    "mov x29, sp",
    ".cfi_def_cfa_register x29",
    "stp x19, x20, [sp, #16]",
    "stp x21, x22, [sp, #32]",
    "stp x23, x24, [sp, #48]",
    "stp x25, x26, [sp, #64]",
    "stp x27, x28, [sp, #80]",
    "stp d8, d9, [sp, #96]",
    "stp d10, d11, [sp, #112]",
    "stp d12, d13, [sp, #128]",
    "stp d14, d15, [sp, #144]",
    thread_into!("x9", "x10"),
    "ldr x0, [x9]",
    "sub x0, x0, #{scope}",
    "sub x11, x0, #{distance}",
    "add x12, x11, #{size}",
    "mov x10, sp",
    "cmp x10, x12",
    "b.hs 4f",
    "brk #1", // the first frames are longer than DISTANCE allows
    "4: mov sp, x11",
    "mov x10, #{nobody}",
    "str x10, [x11, #{owner}]",
    "mov x3, #{ended}",
    "3:",
    thread_into!("x9", "x10"),
    "ldr x10, [x0, #{scope}]",
    "str x10, [x9]",
    switch!(),
    load_words!(),
    "2: hint #36",
    "mov x0, sp",
    "blr x2",
    "mov x2, x0",
    "mov x3, x1",
    "add x0, sp, #{distance}",
    "b 3b",
    ".globl haft_rust_leave",
    ".hidden haft_rust_leave",
    "haft_rust_leave:", // a job: none is left
    "hint #34",
    "mov sp, x29",
    "ldp x19, x20, [sp, #16]",
    "ldp x21, x22, [sp, #32]",
    "ldp x23, x24, [sp, #48]",
    "ldp x25, x26, [sp, #64]",
    "ldp x27, x28, [sp, #80]",
    "ldp d8, d9, [sp, #96]",
    "ldp d10, d11, [sp, #112]",
    "ldp d12, d13, [sp, #128]",
    "ldp d14, d15, [sp, #144]",
    "ldp x29, x30, [sp], #160",
    ".cfi_def_cfa sp, 0",
    "ret",
    ".cfi_endproc",
    ".size haft_rust_work, . - haft_rust_work",
    ".popsection",
    from = const CONTEXT,
    to = const RESUMER,
    scope = const SCOPE,
    distance = const DISTANCE,
    size = const size_of::<Room>(),
    owner = const offset_of!(Room, owner),
    nobody = const NOBODY as i64,
    ended = const ENDED,
    words = const WORDS,
);

// ---- The hot paths ----

/// Suspends the fiber of the current scope, whose resumer handles the effect.
///
/// # Safety
/// Like `super::perform`.
#[inline(always)]
pub unsafe fn suspend(here: Here, effect: *mut haft_rust_effect_t, word: Word) -> Arrived {
    let (from, answer, tag);
    // SAFETY: the caller promises it.
    unsafe {
        asm!(
            unless_exceptions!(),
            "ldr x10, [x0, #{outer}]",
            "str x10, [x9]",
            switch!(),
            "9: mov x3, #{not_done}",
            "mov x0, #0",
            "b 5f",
            load_words!(),
            "2: hint #36",
            "5:",
            outer = const offset_of!(Scope, outer),
            from = const CONTEXT - SCOPE,
            to = const RESUMER - SCOPE,
            words = const WORDS,
            not_done = const NOT_DONE,
            in("x9") here.thread,
            inout("x0") here.current => from,
            inout("x2") word => answer,
            inout("x3") effect.addr() => tag,
            out("x20") _, out("x21") _, out("x22") _, out("x23") _, out("x24") _,
            out("x25") _, out("x26") _, out("x27") _, out("x28") _,
            clobber_abi("C"),
        );
    }
    Arrived {
        from,
        word: answer,
        tag,
    }
}

/// Like `super::resume`, also for an idle fiber whose scope handles the effect already.
#[inline(always)]
pub unsafe fn resume(fiber: Waiting, word: Word) -> Arrived {
    let (from, word_back, tag);
    // SAFETY: the caller has the fiber, which nobody else uses.
    unsafe {
        asm!(
            thread_into!("x9", "x10"),
            "ldr x10, [x9]",
            "sub x11, x0, #{owner}",
            "ldr x11, [x11]",
            "ldr x12, [x10, #{serial}]",
            "cmp x11, x12",
            "b.ne 9f",
            unless_exceptions!(),
            "str x0, [x9]",
            switch!(),
            "9: mov x3, #{not_done}",
            "sub x0, x0, #{scope}",
            "2: hint #36",
            owner = const DISTANCE - offset_of!(Room, owner) + offset_of!(Fiber, scope),
            serial = const offset_of!(Scope, serial),
            scope = const SCOPE,
            from = const RESUMER - SCOPE,
            to = const CONTEXT - SCOPE,
            not_done = const NOT_DONE,
            inout("x0") fiber.0 => from,
            inout("x2") word => word_back,
            out("x3") tag,
            out("x20") _, out("x21") _, out("x22") _, out("x23") _, out("x24") _,
            out("x25") _, out("x26") _, out("x27") _, out("x28") _,
            clobber_abi("C"),
        );
    }
    Arrived {
        from,
        word: word_back,
        tag,
    }
}

/// Instructions of `word_of!`.
#[macro_export]
#[doc(hidden)]
macro_rules! word_of_by {
    (value) => {
        "adrp {result}, haft_word_of_{key}\nldr {result}, [{result}, :lo12:haft_word_of_{key}]"
    };
    (address) => {
        "adrp {result}, haft_word_of_{key}\nadd {result}, {result}, :lo12:haft_word_of_{key}"
    };
}
