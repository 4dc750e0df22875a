// SPDX-License-Identifier: MIT
//! The hot paths on x86-64: `haft/inner/switch_x86_64.h` and `haft/inner/hot.h`, with the same names.

use super::{Found, InPlace, Resumed};
use crate::{haft_fiber_t, haft_rust_effect_t};
use core::arch::asm;
use core::ffi::c_void;
use core::mem::offset_of;

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
    effect: [u64; 10],
    /// Not 0: the effect was found to be a request, whose switch need not be made out of line.
    requested: u32,
    spare: u32,
    /// Of its entry in the cache of a scope.
    entry: u32,
    as_request: Clause,
    in_place: Clause,
    request: Handles,
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
    RustEffect.requested = 80
    RustEffect.entry = 88
    RustEffect.in_place = 120
    RustEffect.request = 144
}

const GATE_CLOSED: u32 = 0;
const GATE_OPEN: u32 = 1;
const ROOM_LOOK: u32 = 1;
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

    /// Whether C++ handles exceptions; or anything else has the switch made out of line.
    #[inline(always)]
    fn has_exceptions(self) -> bool {
        let exceptions: *const u8;
        // SAFETY: reads the state of this thread; the object is always there. One comparison reads
        // both fields, as in C.
        unsafe {
            asm!(
                "mov {exceptions}, qword ptr fs:[{thread} + 8]",
                thread = in(reg) self.thread,
                exceptions = out(reg) exceptions,
                options(nostack, preserves_flags, readonly),
            );
            exceptions.add(2).cast::<u64>().read_unaligned() != 0
        }
    }
}

/// # Safety
/// The scope is that of a fiber.
#[inline(always)]
unsafe fn fiber_of(scope: *mut Scope) -> *mut Fiber {
    // SAFETY: the caller says so.
    unsafe { scope.byte_sub(offset_of!(Fiber, scope)).cast() }
}

#[inline(always)]
fn is_on(fiber: *const Fiber) -> bool {
    let mut distance = fiber as usize;
    // SAFETY: reads a register; and the header of a fiber that runs.
    unsafe {
        asm!("sub {}, rsp", inout(reg) distance, options(nomem, nostack));
        distance <= (*fiber).resumer.gate_or_room as usize
    }
}

// ---- The switch ----

/// Stores what runs at `$from` bytes into the fiber, and continues with the context at `$to`. Its value
/// is the fiber, which is the same on both sides.
///
/// Words that come back may be special in C, which the carry says: a fiber is told to unwind or to
/// call something, or it has ended. Nobody tells a fiber of Rust so, and its last resume is C's.
macro_rules! switch {
    ($from:literal, $to:literal, $fiber:expr, $($words:tt)*) => {{
        let fiber: *mut Fiber;
        asm!(
            "lea r8, [rip + 2f]",
            concat!("mov qword ptr [rdi + ", $from, "], rbp"),
            concat!("mov qword ptr [rdi + ", $from, " + 8], r8"),
            concat!("mov qword ptr [rdi + ", $from, " + 16], rsp"),
            concat!("mov qword ptr [rdi + ", $from, " + 24], rbx"),
            concat!("mov rbp, qword ptr [rdi + ", $to, "]"),
            concat!("mov rsp, qword ptr [rdi + ", $to, " + 16]"),
            concat!("mov rbx, qword ptr [rdi + ", $to, " + 24]"),
            "clc", // the words are not special
            concat!("jmp qword ptr [rdi + ", $to, " + 8]"),
            "3: ud2",
            "2: jc 3b",
            inout("rdi") $fiber => fiber,
            $($words)*
            out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            clobber_abi("sysv64"),
        );
        fiber
    }};
}

// ---- The hot paths ----

/// What stands where while a clause runs in place: hafti_in_place_t.
pub(super) struct Reach {
    performer: *mut Scope,
    outer: *mut Scope,
    serial: u64,
}

/// The current scope is that of the fiber, on whose stack the code runs.
pub struct Suspending {
    here: Here,
    fiber: *mut Fiber,
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

/// Whether the effect suspends the fiber of this scope, the current one, on whose stack the code runs.
///
/// # Safety
/// As for `entry_in`.
#[inline(always)]
unsafe fn is_requested(here: Here, scope: *mut Scope, made: *mut RustEffect) -> bool {
    // SAFETY: only fibers have this set, so the scope is that of a fiber when more is read.
    unsafe {
        let fiber = fiber_of(scope);
        (*scope).handles == &raw const (*made).request
            && ((*made).requested != 0 || entry_in(scope, made).1 == made as usize)
            && (*fiber).awaits == made as usize + AWAITS_NOTHING
            && is_on(fiber)
            && !here.has_exceptions()
    }
}

#[inline(always)]
pub(super) unsafe fn find(effect: *mut haft_rust_effect_t) -> Found {
    // SAFETY: the shim has made the effect, and the chain of scopes is that of this thread.
    unsafe {
        let made = effect.cast::<RustEffect>();
        let here = Here::now();
        let current = here.current;
        if is_requested(here, current, made) {
            let fiber = fiber_of(current);
            return Found::Request(Suspending { here, fiber });
        }
        let (entry, key) = entry_in(current, made);
        if key == effect as usize + CLAUSE_MARK {
            let with = (&raw const (*entry).with).read_volatile();
            let scope = (&raw const (*entry).scope).read_volatile();
            // (A handler of a signal, of C, may have written the entry meanwhile.)
            if with == &raw const (*made).in_place as usize + CLAUSE_MARK
                && (&raw const (*entry).key).read_volatile() == key
            {
                let outer = (*scope).outer;
                let reach = Reach {
                    performer: current,
                    outer,
                    serial: (*outer).serial,
                };
                here.set_current(outer);
                let state = (*scope).state;
                return Found::InPlace(InPlace { state, reach });
            }
        }
        Found::Other
    }
}

/// As `find`, if the effect is handled by whoever has resumed this fiber: then the performer knows the
/// fiber, which is there sooner than what the thread has. `fiber` is an address, maybe of nothing.
#[inline(always)]
pub(super) unsafe fn find_on(fiber: usize, effect: *mut haft_rust_effect_t) -> Found {
    // SAFETY: as in `find`. The fiber is looked at only if its scope is the current one.
    unsafe {
        let made = effect.cast::<RustEffect>();
        let here = Here::now();
        let fiber = core::ptr::with_exposed_provenance_mut::<Fiber>(fiber);
        let scope = fiber
            .wrapping_byte_add(offset_of!(Fiber, scope))
            .cast::<Scope>();
        if here.current == scope && is_requested(here, scope, made) {
            return Found::Request(Suspending { here, fiber });
        }
        Found::Other
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

impl Suspending {
    #[inline(always)]
    pub(super) unsafe fn suspend(self, effect: *mut haft_rust_effect_t, slot: *mut c_void) {
        let Suspending { here, fiber } = self;
        // SAFETY: as `find` or `find_on` has found.
        unsafe {
            let scope = &raw mut (*fiber).scope;
            (*fiber).top = scope;
            // (`awaits` has this effect already: `is_requested`.)
            here.set_current((*scope).outer);
            switch!("0", "64", fiber, inout("rax") slot => _, inout("rdx") effect => _,);
        }
    }
}

/// The fiber of the current scope, which is that of a fiber.
#[inline(always)]
pub(super) fn current_fiber() -> usize {
    // (Only an address.)
    (Here::now().current as usize).wrapping_sub(offset_of!(Fiber, scope))
}

/// Whether nothing but exceptions, another resumer, or further fibers inside of it can keep the fiber
/// from being resumed here; as long as it is resumed to handle this effect.
#[inline(always)]
pub(super) unsafe fn is_ordinary(
    fiber: *const haft_fiber_t,
    effect: *const haft_rust_effect_t,
) -> bool {
    // SAFETY: the caller has the fiber, which nobody else uses; the shim has made the effect.
    unsafe {
        let this = fiber.cast::<Fiber>();
        (*this).context.gate_or_room == GATE_OPEN
            && (*this).scope.handles == &raw const (*effect.cast::<RustEffect>()).request
            && (*this).resumer.gate_or_room & ROOM_LOOK == 0
    }
}

/// None: C has to do it.
///
/// # Safety
/// As for `start`, and the fiber is ordinary.
#[inline(always)]
pub(super) unsafe fn resume(fiber: *mut haft_fiber_t) -> Option<Resumed> {
    // SAFETY: the caller has the fiber, which nobody else uses.
    unsafe {
        let this = fiber.cast::<Fiber>();
        let here = Here::now();
        let scope = &raw mut (*this).scope;
        if (*this).owner != (*here.current).serial || (*this).top != scope || here.has_exceptions()
        {
            return None;
        }
        (*this).context.gate_or_room = GATE_CLOSED;
        here.set_current(scope);
        let slot;
        // (A perform of Rust finds its answer in its slot, and looks at no words.)
        let this = switch!("64", "0", this, lateout("rax") slot, lateout("rdx") _,);
        (*this).context.gate_or_room = GATE_OPEN;
        Some(Resumed {
            fiber: this.cast(),
            slot,
        })
    }
}

/// The word that a function of one type, `make`, has to itself. It is 0 before the first use.
#[macro_export]
#[doc(hidden)]
macro_rules! word_of {
    ($make:path) => {{
        let word: *mut *mut ::core::ffi::c_void;
        ::core::arch::asm!(
            // (Inlined twice into one object, or in several objects, it is one word.)
            ".ifndef haft_word_of_{make}",
            ".pushsection .bss.haft_word_of_{make}, \"awG\", @nobits, haft_word_of_{make}, comdat",
            ".weak haft_word_of_{make}",
            ".hidden haft_word_of_{make}",
            ".balign 8",
            "haft_word_of_{make}: .zero 8",
            ".popsection",
            ".endif",
            "lea {word}, [rip + haft_word_of_{make}]",
            make = sym $make,
            word = out(reg) word,
            options(nostack, preserves_flags, pure, nomem),
        );
        word
    }};
}
