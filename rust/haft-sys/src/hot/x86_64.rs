// SPDX-License-Identifier: MIT
//! The hot paths on x86-64: `haft/inner/switch_x86_64.h` and `haft/inner/hot.h`.
//!
//! The registers of a switch: rdi the fiber, rax the word, rdx the tag. The carry, which is clear,
//! marks its words for C as not special. (Here they never are: a fiber of Rust is not told to
//! unwind or to call something, and its last resume is C's.)

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
    /// The distance of the thread's state from the thread pointer.
    thread: usize,
    pub current: *mut Scope,
}

impl Here {
    #[inline(always)]
    pub fn now() -> Here {
        let (thread, current);
        // SAFETY: reads the state of this thread, which always has a current scope. (It is no pure
        // function: what it reads changes at each switch.)
        unsafe {
            asm!(
                "mov {thread}, qword ptr [rip + hafti_thread_state@gottpoff]",
                "mov {current}, qword ptr fs:[{thread}]",
                thread = out(reg) thread,
                current = out(reg) current,
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
                "mov qword ptr fs:[{thread}], {current}",
                thread = in(reg) self.thread,
                current = in(reg) current,
                options(nostack, preserves_flags),
            );
        }
    }
}

// ---- The switch ----

/// Goes to the label 9 where C++ handles exceptions, or anything else has the switch made out of
/// line; else the carry is clear. One comparison reads both fields of the record, as in C.
macro_rules! unless_exceptions {
    () => {
        "mov r9, qword ptr fs:[rcx + 8]\ncmp qword ptr [r9 + 2], 0\njne 9f"
    };
}

/// Continues with the context at `to` bytes from rdi, after it has stored what runs at `from`, to
/// go on at the label 2.
macro_rules! switch {
    () => {
        "lea r9, [rip + 2f]
        mov qword ptr [rdi + {from}], rbp
        mov qword ptr [rdi + {from} + 8], r9
        mov qword ptr [rdi + {from} + 16], rsp
        mov qword ptr [rdi + {from} + 24], rbx
        mov rbp, qword ptr [rdi + {to}]
        mov rsp, qword ptr [rdi + {to} + 16]
        mov rbx, qword ptr [rdi + {to} + 24]
        jmp qword ptr [rdi + {to} + 8]"
    };
}
const CONTEXT: isize = offset_of!(Fiber, context) as isize;
const RESUMER: isize = offset_of!(Fiber, resumer) as isize;
const SCOPE: isize = offset_of!(Fiber, scope) as isize;

/// Distance before the address where a fiber goes on, of the entry by which it goes on if C resumes
/// it, which has no words.
const BY_C: usize = 14;
const LOAD_WORDS: [[u8; 3]; 2] = [[0x48, 0x8b, 0x87], [0x48, 0x8b, 0x97]];
macro_rules! load_words {
    () => {
        "mov rax, qword ptr [rdi - {word}]\nmov rdx, qword ptr [rdi - {tag}]"
    };
}
const WORD: usize = DISTANCE - offset_of!(Room, word);
const TAG: usize = DISTANCE - offset_of!(Room, tag);

/// # Safety
/// The fiber that goes on at `pc` waits for a word, or is idle.
pub unsafe fn entry_by_c(pc: *mut c_void) -> *mut c_void {
    // SAFETY: so it was suspended below.
    unsafe {
        let entry = pc.byte_sub(BY_C);
        let instructions = [0, BY_C / 2].map(|at| entry.byte_add(at).cast::<[u8; 3]>().read());
        assert!(instructions == LOAD_WORDS, "the words are loaded there");
        entry
    }
}

// The function of all fibers: runs jobs. Where it is idle its stack ends in the room.
global_asm!(
    ".pushsection .text.haft_rust_work, \"ax\", @progbits",
    ".p2align 4",
    ".globl haft_rust_work",
    ".hidden haft_rust_work",
    ".type haft_rust_work, @function",
    "haft_rust_work:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov rcx, qword ptr [rip + hafti_thread_state@gottpoff]",
    "mov rdi, qword ptr fs:[rcx]",
    "sub rdi, {scope}",
    "lea rcx, [rdi - {distance} + {size}]",
    "cmp rsp, rcx",
    "jae 4f",
    "ud2", // the first frames are longer than DISTANCE allows
    "4: lea rsp, [rdi - {distance}]",
    "mov qword ptr [rsp + {owner}], {nobody}",
    "mov edx, {ended}",
    "3: mov rcx, qword ptr [rip + hafti_thread_state@gottpoff]",
    "mov r9, qword ptr [rdi + {scope}]",
    "mov qword ptr fs:[rcx], r9",
    "clc",
    switch!(),
    load_words!(),
    "2: mov rdi, rsp",
    "call rax",
    "lea rdi, [rsp + {distance}]",
    "jmp 3b",
    ".globl haft_rust_leave",
    ".hidden haft_rust_leave",
    "haft_rust_leave:", // a job: none is left
    "lea rsp, [rbp - 40]",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
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
    word = const WORD,
    tag = const TAG,
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
            "mov r9, qword ptr [rdi + {outer}]",
            "mov qword ptr fs:[rcx], r9",
            switch!(),
            "9: mov edx, {not_done}",
            "xor edi, edi",
            "jmp 5f",
            load_words!(),
            "2:",
            "5:",
            outer = const offset_of!(Scope, outer),
            from = const CONTEXT - SCOPE,
            to = const RESUMER - SCOPE,
            word = const WORD,
            tag = const TAG,
            not_done = const NOT_DONE,
            in("rcx") here.thread,
            inout("rdi") here.current => from,
            inout("rax") word => answer,
            inout("rdx") effect.addr() => tag,
            out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            clobber_abi("sysv64"),
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
            "mov rcx, qword ptr [rip + hafti_thread_state@gottpoff]",
            "mov r8, qword ptr fs:[rcx]",
            "mov r9, qword ptr [rdi - {owner}]",
            "cmp r9, qword ptr [r8 + {serial}]",
            "jne 9f",
            unless_exceptions!(),
            "mov qword ptr fs:[rcx], rdi",
            switch!(),
            "9: mov edx, {not_done}",
            "sub rdi, {scope}",
            "2:",
            owner = const DISTANCE - offset_of!(Room, owner) + offset_of!(Fiber, scope),
            serial = const offset_of!(Scope, serial),
            scope = const SCOPE,
            from = const RESUMER - SCOPE,
            to = const CONTEXT - SCOPE,
            not_done = const NOT_DONE,
            inout("rdi") fiber.0 => from,
            inout("rax") word => word_back,
            out("rdx") tag,
            out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            clobber_abi("sysv64"),
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
        "mov {result}, [rip + haft_word_of_{key}]"
    };
    (address) => {
        "lea {result}, [rip + haft_word_of_{key}]"
    };
}
