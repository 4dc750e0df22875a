// SPDX-License-Identifier: MIT
//! Layouts: `haft/inner/layout.h`, as far as it is used here.

use core::ffi::c_void;
use core::mem::offset_of;

#[repr(C)]
pub struct Clause {
    pub effect: *mut c_void,
    pub function: *const c_void,
    pub kind: u32,
    pub shape: u32,
}

#[repr(C)]
pub struct Handles {
    pub count: u32,
    pub all: u16,
    pub number: u16,
    pub clauses: *const Clause,
}

/// An effect of Rust, as the shim declares it in C.
#[repr(C)]
pub struct RustEffect {
    pub request: Handles,
    pub request_by_c: Handles,
    pub effect: [u64; 11],
    /// The offset from a scope to the effect's entry in its cache.
    pub entry: u32,
    pub as_request: Clause,
    pub in_place: Clause,
}

#[repr(C)]
pub struct Entry {
    pub key: usize,
    pub with: usize,
    pub scope: *mut Scope,
}

#[repr(C)]
pub struct Scope {
    pub outer: *mut Scope,
    pub handles: *const Handles,
    pub serial: u64,
    pub state: *mut c_void,
    pub kind: u8,
    pub slow: u8,
    pub filled: u8,
    pub scratch: u32,
    pub shot: u64,
    pub cache: [Entry; 8],
}

#[repr(C)]
pub struct Context {
    pub fp: *mut c_void,
    pub pc: *mut c_void,
    pub sp: *mut c_void,
    pub base: *mut c_void,
    pub control: u32,
    pub gate_or_room: u32,
}

/// The fields that are used here.
#[repr(C)]
pub struct Fiber {
    pub context: Context,
    pub owner: u64,
    pub awaits: usize,
    pub top: *mut Scope,
    pub resumer: Context,
    pub scope: Scope,
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

pub const GATE_CLOSED: u32 = 0;
pub const GATE_OPEN: u32 = 1;
pub const CLAUSE_MARK: usize = 1;
pub const AWAITS_NOTHING: usize = 1;
