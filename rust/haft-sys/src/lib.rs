// SPDX-License-Identifier: MIT
//! The C libraries of [Haft](https://docs.rs/haft), and the functions of them that the crate `haft`
//! calls.
//!
//! The headers `haft.h` and `haft/io.h` document each function; `shim/declarations.c` has the C
//! compiler compare the declarations here with them. Programs use the crate `haft`.
#![no_std]
#![allow(missing_docs)] // the headers have it
#![allow(non_camel_case_types)]
#![warn(clippy::undocumented_unsafe_blocks)]

use core::ffi::{c_char, c_int, c_short, c_void};

pub mod hot;

macro_rules! opaque {
    ($($name:ident)*) => {$(
        #[repr(C)]
        pub struct $name {
            _private: [u8; 0],
            _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
        }
    )*};
}
opaque! { haft_fiber_t haft_effect_t haft_rust_effect_t haft_rust_shared_t haft_rust_copied_t haft_io_task_t haft_io_scope_t haft_io_channel_t }

pub type haft_body_t = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
pub type haft_rust_clause_t = unsafe extern "C" fn(*mut c_void, *mut c_void);
pub type haft_rust_general_t =
    unsafe extern "C" fn(*mut c_void, *mut c_void, haft_resumption_t) -> haft_answer_t;

macro_rules! record {
    ($(#[$meta:meta])* $name:ident, $size:literal { $($field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[repr(C)]
        pub struct $name { $(pub $field: $type,)* }
        // declarations.c asserts the same of C.
        const _: () = assert!(core::mem::size_of::<$name>() == $size);
        impl $name {
            /// A record of zeros, which C takes for defaults and for the initial state.
            // SAFETY: its fields are numbers, pointers and flags, for which zeros are valid.
            pub const ZERO: Self = unsafe { core::mem::zeroed() };
        }
    };
}

record! { haft_io_run_options_t, 88 {
    threads: c_int,
    backend: *const c_char,
    stack_size: usize,
    blocking_threads: c_int,
    dump_signal: c_int,
    watchdog: i64,
    times_polls: bool,
    moves: bool,
    dense: bool,
    own_thread_locals: bool,
    observed: bool,
    record: *const c_char,
    replay: *const c_char,
    keep_requests: *const c_char,
    kept_size: usize,
    top: *const c_char,
}}
record! { haft_io_task_options_t, 32 {
    scope: *mut haft_io_scope_t,
    name: *const c_char,
    moves: bool,
    spread: bool,
    even_without_stack: bool,
    own_thread_locals: bool,
    stack_size: usize,
}}
record! { haft_io_scope_options_t, 64 {
    name: *const c_char,
    deadline: i64,
    shielded: bool,
    failures: *mut c_void,
    moves: bool,
    on_cancel: *mut c_void,
    on_failure: *mut c_void,
    scope_of_spawns: *mut c_void,
}}
record! { haft_io_simulation_options_t, 32 {
    seed: u64,
    short_counts: bool,
    network: bool,
    files: bool,
    faults_one_in: u32,
    switches_one_in: u32,
    date: i64,
}}
record! { haft_io_process_options_t, 32 {
    streams: *const c_int,
    environment: *const *const c_char,
    folder: *const c_char,
    group: bool,
}}
record! { haft_rust_status_t, 24 {
    size: u64,
    modified: i64,
    modified_nanoseconds: u32,
    mode: u32,
}}
record! { haft_request_t, 16 {
    effect: *mut haft_effect_t,
    payload: *mut c_void,
}}
record! {
    /// A computation that waits under a general clause.
    #[derive(Clone, Copy)]
    haft_resumption_t, 16 {
    fiber: *mut haft_fiber_t,
    shot: u64,
}}
record! { haft_answer_t, 16 {
    value: *mut c_void,
    next: usize,
}}
record! { haft_io_waiting_t, 16 {
    first: *mut c_void,
    last: *mut c_void,
}}
record! { haft_io_event_t, 24 {
    lock: u32,
    set: bool,
    waiting: haft_io_waiting_t,
}}
record! { haft_io_mutex_t, 32 {
    lock: u32,
    held: bool,
    called: bool,
    waiting: haft_io_waiting_t,
    holder: *mut haft_io_task_t,
}}
record! { haft_io_semaphore_t, 32 {
    lock: u32,
    count: u64,
    waiting: haft_io_waiting_t,
}}
record! { haft_io_condition_t, 24 {
    lock: u32,
    waiting: haft_io_waiting_t,
}}

record! { haft_io_select_case_t, 56 {
    channel: *mut haft_io_channel_t,
    send: *const c_void,
    receive: *mut c_void,
    code: c_int,
    event: *mut haft_io_event_t,
    descriptor: c_int,
    events: c_short,
    signals: *const c_void,
}}

pub const HAFT_IO_FOREVER: i64 = i64::MAX;

unsafe extern "C" {
    pub fn haft_version() -> *const c_char;
    pub fn haft_fiber_drop(fiber: *mut haft_fiber_t);

    pub fn haft_rust_effect_new(
        name: *const c_char,
        unhandled: haft_rust_clause_t,
        in_place: haft_rust_clause_t,
    ) -> *mut haft_rust_effect_t;
    pub fn haft_rust_perform(effect: *mut haft_rust_effect_t, slot: *mut c_void) -> *mut c_void;
    pub fn haft_resumption_copy(k: haft_resumption_t) -> haft_resumption_t;
    pub fn haft_copy_looked_at(k: haft_resumption_t) -> haft_resumption_t;
    pub fn haft_know_frames_of(function: *const c_void);
    pub fn haft_resumption_drop(k: haft_resumption_t);
    pub fn haft_rust_copied_new(
        effect: *mut haft_rust_effect_t,
        clause: haft_rust_general_t,
    ) -> *mut haft_rust_copied_t;
    pub fn haft_rust_copied_handle(
        effect: *const haft_rust_copied_t,
        state: *mut c_void,
        body: haft_body_t,
        argument: *mut c_void,
    ) -> bool;
    pub fn haft_rust_go_on(
        effect: *mut haft_rust_effect_t,
        k: haft_resumption_t,
        answer: *mut c_void,
    );
    pub fn haft_rust_handle(
        effect: *const haft_rust_effect_t,
        state: *mut c_void,
        body: haft_body_t,
        argument: *mut c_void,
    );
    pub fn haft_perform(
        effect: *mut haft_effect_t,
        payload: *mut c_void,
        size: usize,
        result: *mut c_void,
        result_size: usize,
    );
    pub fn haft_rust_shared_new(
        effect: *mut haft_effect_t,
        clause: *const c_void,
        payload_size: usize,
        result_size: usize,
    ) -> *mut haft_rust_shared_t;
    pub fn haft_rust_shared_handle(
        effect: *const haft_rust_shared_t,
        state: *mut c_void,
        body: haft_body_t,
        argument: *mut c_void,
    );
    pub fn haft_rust_resume(
        fiber: *mut haft_fiber_t,
        effect: *const haft_rust_effect_t,
    ) -> haft_request_t;
    pub fn haft_rust_fiber_new(
        stack_size: usize,
        function: haft_body_t,
        argument: *mut c_void,
    ) -> *mut haft_fiber_t;
    pub fn haft_rust_watch_thread(ends: unsafe extern "C" fn()) -> bool;
    pub fn haft_rust_self() -> *mut haft_io_task_t;

    pub fn haft_io_error_text(code: c_int) -> *const c_char;
    pub fn haft_take_refusal(number: c_int, text: *mut c_char, room: usize) -> bool;
    pub fn haft_io_run_with(
        options: *const haft_io_run_options_t,
        main: haft_body_t,
        argument: *mut c_void,
    ) -> c_int;
    pub fn haft_io_runs_here() -> bool;
    pub fn haft_io_yield_or_cancelled() -> c_int;
    pub fn haft_io_run_number() -> u64;
    pub fn haft_io_backend() -> *const c_char;
    pub fn haft_io_spawn_known(
        options: *const haft_io_task_options_t,
        function: haft_body_t,
        argument: *mut c_void,
    ) -> *mut haft_io_task_t;
    pub fn haft_io_inherited_name() -> *const c_char;
    pub fn haft_io_own_thread_locals_refused() -> *const c_char;
    pub fn haft_io_task_name(task: *const haft_io_task_t) -> *const c_char;
    pub fn haft_io_task_set_name(name: *const c_char);
    pub fn haft_io_local_get(key: *const c_void) -> *mut c_void;
    pub fn haft_io_local_set(key: *const c_void, value: *mut c_void) -> c_int;
    pub fn haft_io_scope_with(
        options: *const haft_io_scope_options_t,
        body: haft_body_t,
        argument: *mut c_void,
        result: *mut *mut c_void,
    ) -> c_int;
    pub fn haft_io_this_scope() -> *mut haft_io_scope_t;
    pub fn haft_io_run_scope() -> *mut haft_io_scope_t;
    pub fn haft_io_scope_cancel(scope: *mut haft_io_scope_t);
    pub fn haft_io_return_cancels(returns: bool) -> bool;
    pub fn haft_io_block_thread(function: haft_body_t, argument: *mut c_void) -> *mut c_void;
    pub fn haft_io_now() -> i64;
    pub fn haft_io_sleep(nanoseconds: i64) -> c_int;
    pub fn haft_io_sleep_until(deadline: i64) -> c_int;
    pub fn haft_io_dump(descriptor: c_int) -> c_int;

    pub fn haft_io_read(descriptor: c_int, buffer: *mut c_void, size: usize) -> isize;
    pub fn haft_io_write(descriptor: c_int, buffer: *const c_void, size: usize) -> isize;
    pub fn haft_io_read_lent(descriptor: c_int, bytes: *mut *const c_void) -> isize;
    pub fn haft_io_give_back(bytes: *const c_void);
    pub fn haft_io_readv(descriptor: c_int, parts: *const c_void, count: usize) -> isize;
    pub fn haft_io_writev(descriptor: c_int, parts: *const c_void, count: usize) -> isize;
    pub fn haft_io_pipe(ends: *mut c_int) -> c_int;
    pub fn haft_io_socket_pair(
        domain: c_int,
        kind: c_int,
        protocol: c_int,
        ends: *mut c_int,
    ) -> c_int;
    pub fn haft_io_listen_unix(path: *const c_char, backlog: c_int) -> c_int;
    pub fn haft_io_connect_unix(path: *const c_char) -> c_int;
    pub fn haft_io_receive(socket: c_int, buffer: *mut c_void, size: usize, flags: c_int) -> isize;
    pub fn haft_io_send(socket: c_int, buffer: *const c_void, size: usize, flags: c_int) -> isize;
    pub fn haft_io_send_descriptor(socket: c_int, descriptor: c_int) -> c_int;
    pub fn haft_io_receive_descriptor(socket: c_int) -> c_int;
    pub fn haft_io_open(path: *const c_char, flags: c_int, mode: u32) -> c_int;
    pub fn haft_io_pread(descriptor: c_int, buffer: *mut c_void, size: usize, offset: i64)
    -> isize;
    pub fn haft_io_pwrite(
        descriptor: c_int,
        buffer: *const c_void,
        size: usize,
        offset: i64,
    ) -> isize;
    pub fn haft_io_fsync(descriptor: c_int) -> c_int;
    pub fn haft_io_mkdir(path: *const c_char, mode: u32) -> c_int;
    pub fn haft_io_remove(path: *const c_char) -> c_int;
    pub fn haft_io_rename(from: *const c_char, to: *const c_char) -> c_int;
    pub fn haft_rust_stat(path: *const c_char, status: *mut haft_rust_status_t) -> c_int;
    pub fn haft_rust_list(path: *const c_char, entries: *mut *mut c_void) -> c_int;
    pub fn haft_rust_entry_name(entries: *mut c_void, index: usize) -> *const c_char;
    pub fn haft_rust_entries_free(entries: *mut c_void, count: usize);
    pub fn haft_io_process_start_with(
        options: *const haft_io_process_options_t,
        arguments: *const *const c_char,
    ) -> c_int;
    pub fn haft_io_process_wait(process: c_int, status: *mut c_int) -> c_int;
    pub fn haft_rust_signals_block(signals: *const c_int, count: usize) -> c_int;
    pub fn haft_rust_signal_wait(signals: *const c_int, count: usize) -> c_int;
    pub fn haft_io_close(descriptor: c_int) -> c_int;
    pub fn haft_io_wait_ready(descriptor: c_int, events: c_short) -> c_int;
    pub fn haft_io_accept(listener: c_int) -> c_int;
    pub fn haft_io_listen_tcp(host: *const c_char, port: u16, backlog: c_int) -> c_int;
    pub fn haft_io_connect_tcp(host: *const c_char, port: u16) -> c_int;
    pub fn haft_io_shutdown(socket: c_int, how: c_int) -> c_int;
    pub fn haft_io_port(socket: c_int) -> c_int;

    pub fn haft_io_event_set(event: *mut haft_io_event_t);
    pub fn haft_io_event_clear(event: *mut haft_io_event_t);
    pub fn haft_io_event_wait(event: *mut haft_io_event_t) -> c_int;
    pub fn haft_io_event_wait_until(event: *mut haft_io_event_t, deadline: i64) -> c_int;
    pub fn haft_io_event_wait_to_the_end(event: *mut haft_io_event_t);
    pub fn haft_io_event_wait_for(event: *mut haft_io_event_t, task: *mut haft_io_task_t) -> c_int;
    pub fn haft_io_channel_new(size: usize, capacity: usize) -> *mut haft_io_channel_t;
    pub fn haft_io_channel_free(channel: *mut haft_io_channel_t);
    pub fn haft_io_channel_send(channel: *mut haft_io_channel_t, value: *const c_void) -> c_int;
    pub fn haft_io_channel_receive(channel: *mut haft_io_channel_t, value: *mut c_void) -> c_int;
    pub fn haft_io_channel_try_send(channel: *mut haft_io_channel_t, value: *const c_void)
    -> c_int;
    pub fn haft_io_channel_try_receive(
        channel: *mut haft_io_channel_t,
        value: *mut c_void,
    ) -> c_int;
    pub fn haft_io_channel_close(channel: *mut haft_io_channel_t);
    pub fn haft_io_select_until(
        choices: *mut haft_io_select_case_t,
        count: usize,
        deadline: i64,
    ) -> c_int;
    pub fn haft_io_mutex_lock(mutex: *mut haft_io_mutex_t) -> c_int;
    pub fn haft_io_mutex_try_lock(mutex: *mut haft_io_mutex_t) -> bool;
    pub fn haft_io_mutex_unlock(mutex: *mut haft_io_mutex_t);
    pub fn haft_io_semaphore_acquire(semaphore: *mut haft_io_semaphore_t) -> c_int;
    pub fn haft_io_semaphore_try_acquire(semaphore: *mut haft_io_semaphore_t) -> bool;
    pub fn haft_io_semaphore_release(semaphore: *mut haft_io_semaphore_t);
    pub fn haft_io_condition_wait(
        condition: *mut haft_io_condition_t,
        mutex: *mut haft_io_mutex_t,
    ) -> c_int;
    pub fn haft_io_condition_signal(condition: *mut haft_io_condition_t);
    pub fn haft_io_condition_broadcast(condition: *mut haft_io_condition_t);

    pub fn haft_io_simulate_with(
        options: *const haft_io_simulation_options_t,
        main: haft_body_t,
        argument: *mut c_void,
    ) -> c_int;
    pub fn haft_io_seed() -> u64;
    pub fn haft_io_simulated_crash();
}

#[cfg(feature = "posix")]
unsafe extern "C" {
    pub fn haft_posix_answers() -> bool;
    pub fn haft_posix_know_parks(is_of_this_thread: unsafe extern "C" fn(*const u32) -> bool);
}
