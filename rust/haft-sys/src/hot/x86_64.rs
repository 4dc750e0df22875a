// SPDX-License-Identifier: MIT
//! The hot paths on x86-64: `haft/inner/switch_x86_64.h` and `haft/inner/hot.h`, with the same names.

use super::{
    ANSWER, DISTANCE, ENDED, InPlace, NOBODY, NOT_DONE, PANICKED, PERFORMED, Resumed, Room, UNMADE,
    Word, room_of,
};
use crate::{haft_fiber_t, haft_rust_effect_t, haft_rust_fiber_new, haft_rust_resume};
use core::arch::{asm, global_asm};
use core::ffi::c_void;
use core::mem::offset_of;
use core::ptr;

// ---- Layouts: haft/inner/layout.h ----

#[repr(C)]
struct Clause {
    effect: *mut c_void,
    function: *const c_void,
    kind: u32,
    shape: u32,
}

#[repr(C)]
struct Handles {
    count: u32,
    all: u16,
    number: u16,
    clauses: *const Clause,
}

/// Of the shim: what an effect of Rust is in C.
#[repr(C)]
struct RustEffect {
    request: Handles,
    request_by_c: Handles,
    effect: [u64; 11],
    /// Of its entry in the cache of a scope.
    entry: u32,
    as_request: Clause,
    in_place: Clause,
}

#[repr(C)]
struct Entry {
    key: usize,
    with: usize,
    scope: *mut Scope,
}

#[repr(C)]
struct Scope {
    outer: *mut Scope,
    handles: *const Handles,
    serial: u64,
    state: *mut c_void,
    kind: u8,
    slow: u8,
    filled: u8,
    scratch: u32,
    shot: u64,
    cache: [Entry; 8],
}

#[repr(C)]
struct Context {
    fp: *mut c_void,
    pc: *mut c_void,
    sp: *mut c_void,
    base: *mut c_void,
    control: u32,
    gate_or_room: u32,
}

/// The fields that are used here.
#[repr(C)]
struct Fiber {
    context: Context,
    owner: u64,
    awaits: usize,
    top: *mut Scope,
    resumer: Context,
    scope: Scope,
}

macro_rules! at {
    ($($record:ident.$field:ident = $offset:literal)*) => {
        $(const _: () = assert!(offset_of!($record, $field) == $offset);)*
    };
}
// declarations.c asserts the same of C.
at! {
    Context.pc = 8
    Context.sp = 16
    Context.base = 24
    Context.gate_or_room = 36
    Fiber.owner = 40
    Fiber.awaits = 48
    Fiber.top = 56
    Fiber.resumer = 64
    Fiber.scope = 104
    Scope.outer = 0
    Scope.handles = 8
    Scope.serial = 16
    Scope.state = 24
    Scope.cache = 48
    Entry.with = 8
    Entry.scope = 16
    RustEffect.request = 0
    RustEffect.effect = 32
    RustEffect.entry = 120
    RustEffect.in_place = 152
}

const GATE_CLOSED: u32 = 0;
const GATE_OPEN: u32 = 1;
const CLAUSE_MARK: usize = 1;
const AWAITS_NOTHING: usize = 1;

unsafe extern "C" {
    fn hafti_in_place_moved(performer: *mut Scope, outer: *const Scope);
}

// ---- Where the code runs ----

/// Valid until the next switch.
#[derive(Clone, Copy)]
struct Here {
    /// The distance of the thread's state from the thread pointer.
    thread: usize,
    current: *mut Scope,
}

impl Here {
    #[inline(always)]
    fn now() -> Here {
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
    /// As in hot.h, where this is called.
    #[inline(always)]
    unsafe fn set_current(self, current: *mut Scope) {
        // SAFETY: the caller says so.
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

/// Where the code runs: the distance of the thread's state from the thread pointer into rcx, and the
/// current scope into r8.
macro_rules! here {
    () => {
        "mov rcx, qword ptr [rip + hafti_thread_state@gottpoff]\nmov r8, qword ptr fs:[rcx]"
    };
}

/// Goes to the label 9 where C++ handles exceptions, or anything else has the switch made out of line;
/// else the carry is clear. One comparison reads both fields of the record, as in C.
macro_rules! unless_exceptions {
    () => {
        "mov r9, qword ptr fs:[rcx + 8]\ncmp qword ptr [r9 + 2], 0\njne 9f"
    };
}

/// Continues with the context at `$to` bytes of the fiber in rdi, after it has stored what runs at
/// `$from`, to go on at the label 2. The carry, which is clear, says to C that its words are not
/// special. (Here they never are: a fiber of Rust is not told to unwind or to call something, and its
/// last resume is C's.)
#[rustfmt::skip]
macro_rules! switch {
    ($from:literal, $to:literal) => {
        concat!(
            "lea r9, [rip + 2f]\n",
            "mov qword ptr [rdi + ", $from, "], rbp\n",
            "mov qword ptr [rdi + ", $from, " + 8], r9\n",
            "mov qword ptr [rdi + ", $from, " + 16], rsp\n",
            "mov qword ptr [rdi + ", $from, " + 24], rbx\n",
            "mov rbp, qword ptr [rdi + ", $to, "]\n",
            "mov rsp, qword ptr [rdi + ", $to, " + 16]\n",
            "mov rbx, qword ptr [rdi + ", $to, " + 24]\n",
            "jmp qword ptr [rdi + ", $to, " + 8]",
        )
    };
}

/// Before the address where a fiber goes on: where it goes on if C resumes it, which has no words.
const BY_C: usize = 14;
const LOAD_WORDS: [[u8; 3]; 2] = [[0x48, 0x8b, 0x87], [0x48, 0x8b, 0x97]];
macro_rules! load_words {
    () => {
        "mov rax, qword ptr [rdi - {word}]\nmov rdx, qword ptr [rdi - {tag}]"
    };
}
const WORD: usize = DISTANCE - offset_of!(Room, word);
const TAG: usize = DISTANCE - offset_of!(Room, tag);

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
    here!(),
    "lea rdi, [r8 - {scope}]",
    "lea rcx, [rdi - {distance} + {size}]",
    "cmp rsp, rcx",
    "jae 4f",
    "ud2", // the first frames are longer than was thought
    "4: lea rsp, [rdi - {distance}]",
    "mov qword ptr [rsp + {owner}], {nobody}",
    "mov edx, {ended}",
    "3: mov rcx, qword ptr [rip + hafti_thread_state@gottpoff]",
    "mov r9, qword ptr [rdi + {scope}]",
    "mov qword ptr fs:[rcx], r9",
    "clc",
    switch!("0", "64"),
    load_words!(),
    "2: call rax",
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
    scope = const offset_of!(Fiber, scope),
    distance = const DISTANCE,
    size = const size_of::<Room>(),
    owner = const offset_of!(Room, owner),
    nobody = const NOBODY as i64,
    ended = const ENDED,
    word = const WORD,
    tag = const TAG,
);

unsafe extern "C" {
    fn haft_rust_work(argument: *mut c_void) -> *mut c_void;
    fn haft_rust_leave();
}

/// The job that ends a fiber.
pub(super) fn leave() -> Word {
    Word::new(haft_rust_leave as *mut c_void)
}

/// As `super::new_fiber`.
pub(super) unsafe fn new_fiber(effect: *mut haft_rust_effect_t) -> *mut haft_fiber_t {
    // SAFETY: the function lets no panic out, and is idle when it has been resumed once.
    unsafe {
        let fiber = haft_rust_fiber_new(0, haft_rust_work, ptr::null_mut());
        if !fiber.is_null() {
            resume_by_c(fiber, effect, None);
        }
        fiber
    }
}

// ---- The hot paths ----

/// What stands where while a clause runs in place: hafti_in_place_t.
pub(super) struct Reach {
    performer: *mut Scope,
    outer: *mut Scope,
    serial: u64,
}

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

/// As `super::perform`.
#[inline(always)]
pub(super) unsafe fn perform(effect: *mut haft_rust_effect_t, word: Word) -> (Word, usize) {
    // SAFETY: only fibers have this set, so the current scope is that of a fiber, whose resumer handles
    // the effect.
    unsafe {
        let here = Here::now();
        if (*here.current).handles != request_of(effect) {
            return (word, NOT_DONE);
        }
        let (answer, tag);
        asm!(
            unless_exceptions!(),
            "mov r9, qword ptr [r8 + {outer}]",
            "lea rdi, [r8 - {scope}]",
            "mov qword ptr fs:[rcx], r9",
            switch!("0", "64"),
            "9: mov edx, {not_done}",
            "jmp 5f",
            load_words!(),
            "2:",
            "5:",
            outer = const offset_of!(Scope, outer),
            scope = const offset_of!(Fiber, scope),
            word = const WORD,
            tag = const TAG,
            not_done = const NOT_DONE,
            in("rcx") here.thread,
            in("r8") here.current,
            inout("rax") word => answer,
            inout("rdx") PERFORMED => tag,
            out("rdi") _, out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            clobber_abi("sysv64"),
        );
        (answer, tag)
    }
}

/// As `super::find`.
#[inline(always)]
pub(super) unsafe fn find(effect: *mut haft_rust_effect_t) -> Option<InPlace> {
    // SAFETY: the shim has made the effect, unless there is none, and the chain of scopes is that of
    // this thread.
    unsafe {
        if effect == UNMADE {
            return None;
        }
        let here = Here::now();
        let current = here.current;
        let made = effect.cast::<RustEffect>();
        let (entry, key) = entry_in(current, made);
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
        let reach = Reach {
            performer: current,
            outer,
            serial: (*outer).serial,
        };
        here.set_current(outer);
        let state = (*scope).state;
        Some(InPlace { state, reach })
    }
}

impl Drop for InPlace {
    #[inline(always)]
    fn drop(&mut self) {
        let reach = &self.reach;
        // SAFETY: the scopes are there, as the frames of their handlers are around this one. In this
        // order, as in C.
        unsafe {
            if (*reach.outer).serial != reach.serial {
                hafti_in_place_moved(reach.performer, reach.outer);
            }
            Here::now().set_current(reach.performer);
        }
    }
}

/// Whether the fiber can be resumed here to handle the effect, and is made to handle it.
///
/// # Safety
/// The caller has the fiber.
#[inline(always)]
pub(super) unsafe fn handles(fiber: *mut haft_fiber_t, effect: *mut haft_rust_effect_t) -> bool {
    // SAFETY: the caller says so.
    unsafe { (*fiber.cast::<Fiber>()).scope.handles == request_of(effect) }
}

/// As `super::resume`; the fiber handles what it is to handle.
#[inline(always)]
pub(super) unsafe fn resume(fiber: *mut haft_fiber_t, word: Word) -> Resumed {
    // SAFETY: the caller has the fiber, which nobody else uses.
    unsafe {
        let (fiber_back, word_back, tag);
        asm!(
            here!(),
            "mov r9, qword ptr [rdi - {owner}]",
            "cmp r9, qword ptr [r8 + {serial}]",
            "jne 9f",
            unless_exceptions!(),
            "lea r8, [rdi + {scope}]",
            "mov qword ptr fs:[rcx], r8",
            switch!("64", "0"),
            "9: mov edx, {not_done}",
            "2:",
            owner = const DISTANCE - offset_of!(Room, owner),
            serial = const offset_of!(Scope, serial),
            scope = const offset_of!(Fiber, scope),
            not_done = const NOT_DONE,
            inout("rdi") fiber => fiber_back,
            inout("rax") word => word_back,
            inout("rdx") ANSWER => tag,
            out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            clobber_abi("sysv64"),
        );
        Resumed {
            fiber: fiber_back,
            word: word_back,
            tag,
        }
    }
}

/// As `super::resume_by_c`.
pub(super) unsafe fn resume_by_c(
    fiber: *mut haft_fiber_t,
    effect: *mut haft_rust_effect_t,
    words: Option<(Word, usize)>,
) -> Resumed {
    let this = fiber.cast::<Fiber>();
    let room = room_of(fiber);
    // SAFETY: the caller has the fiber. One that expects words has stored its context here.
    unsafe {
        if (*this).context.gate_or_room == GATE_CLOSED {
            (*this).context.gate_or_room = GATE_OPEN;
        }
        if let Some((word, tag)) = words {
            ((*room).word, (*room).tag) = (word, tag);
            let pc = (*this).context.pc.byte_sub(BY_C);
            let instructions = [0, BY_C / 2].map(|at| pc.byte_add(at).cast::<[u8; 3]>().read());
            assert!(instructions == LOAD_WORDS, "the words are loaded there");
            (*this).context.pc = pc;
        }
        let request = haft_rust_resume(fiber, effect);
        let tag = request.effect.addr();
        let by_c = tag == descriptor_of(effect);
        if by_c || tag <= PANICKED {
            if !by_c {
                (*this).top = &raw mut (*this).scope; // what was further in has ended
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
        Resumed {
            fiber,
            word: Word::new(request.payload),
            tag,
        }
    }
}

/// The word that a function of one type, `key`, has to itself, if no other function is the same: is
/// read (`mov`), or its address is (`lea`). It is 1 before the first use.
#[macro_export]
#[doc(hidden)]
macro_rules! word_of {
    ($key:path, $instruction:literal, $result:ty) => {{
        let result: $result;
        ::core::arch::asm!(
            // (Inlined twice into one object, or in several objects, it is one word.)
            ".ifndef haft_word_of_{key}",
            ".pushsection .data.haft_word_of_{key}, \"awG\", @progbits, haft_word_of_{key}, comdat",
            ".weak haft_word_of_{key}",
            ".hidden haft_word_of_{key}",
            ".balign 8",
            "haft_word_of_{key}: .quad 1",
            ".popsection",
            ".endif",
            concat!($instruction, " {result}, [rip + haft_word_of_{key}]"),
            key = sym $key,
            result = out(reg) result,
            options(nostack, preserves_flags, pure, readonly),
        );
        result
    }};
}
