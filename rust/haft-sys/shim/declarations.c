/* SPDX-License-Identifier: MIT */
/*
 * The declarations of src/lib.rs in C, after the headers and the shim: a function that is declared
 * differently there, or a record of another layout, does not compile.
 */
#include "shim.c"

typedef void *haft_body_t(void *);
typedef void haft_rust_clause_t(void *, void *);
typedef haft_answer_t haft_rust_general_t(void *, void *, haft_resumption_t);

#define SIZE(record, size) _Static_assert(sizeof(record) == (size), #record);
#define FIELD(record, field, after)                                                                \
    _Static_assert(offsetof(record, field) >=                                                      \
                       offsetof(record, after) + sizeof(((record *)0)->after),                     \
                   #record "." #field);

SIZE(haft_io_run_options_t, 88)
FIELD(haft_io_run_options_t, backend, threads)
FIELD(haft_io_run_options_t, stack_size, backend)
FIELD(haft_io_run_options_t, blocking_threads, stack_size)
FIELD(haft_io_run_options_t, dump_signal, blocking_threads)
FIELD(haft_io_run_options_t, watchdog, dump_signal)
FIELD(haft_io_run_options_t, times_polls, watchdog)
FIELD(haft_io_run_options_t, moves, times_polls)
FIELD(haft_io_run_options_t, dense, moves)
FIELD(haft_io_run_options_t, own_thread_locals, dense)
FIELD(haft_io_run_options_t, observed, own_thread_locals)
FIELD(haft_io_run_options_t, record, observed)
FIELD(haft_io_run_options_t, replay, record)
FIELD(haft_io_run_options_t, keep_requests, replay)
FIELD(haft_io_run_options_t, kept_size, keep_requests)
FIELD(haft_io_run_options_t, top, kept_size)

SIZE(haft_io_task_options_t, 32)
FIELD(haft_io_task_options_t, name, scope)
FIELD(haft_io_task_options_t, moves, name)
FIELD(haft_io_task_options_t, spread, moves)
FIELD(haft_io_task_options_t, even_without_stack, spread)
FIELD(haft_io_task_options_t, own_thread_locals, even_without_stack)
FIELD(haft_io_task_options_t, stack_size, own_thread_locals)

SIZE(haft_io_scope_options_t, 64)
FIELD(haft_io_scope_options_t, deadline, name)
FIELD(haft_io_scope_options_t, shielded, deadline)
FIELD(haft_io_scope_options_t, failures, shielded)
FIELD(haft_io_scope_options_t, moves, failures)
FIELD(haft_io_scope_options_t, on_cancel, moves)
FIELD(haft_io_scope_options_t, on_failure, on_cancel)
FIELD(haft_io_scope_options_t, scope_of_spawns, on_failure)

SIZE(haft_io_simulation_options_t, 32)
FIELD(haft_io_simulation_options_t, short_counts, seed)
FIELD(haft_io_simulation_options_t, network, short_counts)
FIELD(haft_io_simulation_options_t, files, network)
FIELD(haft_io_simulation_options_t, faults_one_in, files)
FIELD(haft_io_simulation_options_t, switches_one_in, faults_one_in)
FIELD(haft_io_simulation_options_t, date, switches_one_in)

SIZE(haft_request_t, 16)
FIELD(haft_request_t, payload, effect)

SIZE(haft_resumption_t, 16)
FIELD(haft_resumption_t, shot, fiber)

SIZE(haft_answer_t, 16)
FIELD(haft_answer_t, next, value)

SIZE(haft_io_waiting_t, 16)
FIELD(haft_io_waiting_t, last, first)

SIZE(haft_io_event_t, 24)
FIELD(haft_io_event_t, set, lock)
FIELD(haft_io_event_t, waiting, set)

SIZE(haft_io_mutex_t, 32)
FIELD(haft_io_mutex_t, held, lock)
FIELD(haft_io_mutex_t, called, held)
FIELD(haft_io_mutex_t, waiting, called)
FIELD(haft_io_mutex_t, holder, waiting)

SIZE(haft_io_semaphore_t, 32)
FIELD(haft_io_semaphore_t, count, lock)
FIELD(haft_io_semaphore_t, waiting, count)

SIZE(haft_io_condition_t, 24)
FIELD(haft_io_condition_t, waiting, lock)

SIZE(haft_io_process_options_t, 32)
FIELD(haft_io_process_options_t, environment, streams)
FIELD(haft_io_process_options_t, folder, environment)
FIELD(haft_io_process_options_t, group, folder)

SIZE(haft_rust_status_t, 24)
FIELD(haft_rust_status_t, modified, size)
FIELD(haft_rust_status_t, modified_nanoseconds, modified)
FIELD(haft_rust_status_t, mode, modified_nanoseconds)

SIZE(haft_io_select_case_t, 56)
FIELD(haft_io_select_case_t, send, channel)
FIELD(haft_io_select_case_t, receive, send)
FIELD(haft_io_select_case_t, code, receive)
FIELD(haft_io_select_case_t, event, code)
FIELD(haft_io_select_case_t, descriptor, event)
FIELD(haft_io_select_case_t, events, descriptor)
FIELD(haft_io_select_case_t, signals, events)

/* The fields that src/hot reads and writes. */
#define AT(record, field, offset)                                                                  \
    _Static_assert(offsetof(record, field) == (offset), #record "." #field);

AT(hafti_context_t, fp, 0)
AT(hafti_context_t, pc, 8)
AT(hafti_context_t, sp, 16)
AT(hafti_context_t, base, 24)
AT(hafti_context_t, gate, 36)
AT(hafti_context_t, room, 36)
AT(haft_fiber_t, context, 0)
AT(haft_fiber_t, owner, 40)
AT(haft_fiber_t, awaits, 48)
AT(haft_fiber_t, top, 56)
AT(haft_fiber_t, resumer, 64)
AT(haft_fiber_t, scope, 104)
AT(hafti_scope_t, outer, 0)
AT(hafti_scope_t, handles, 8)
AT(hafti_scope_t, serial, 16)
AT(hafti_scope_t, state, 24)
AT(hafti_scope_t, cache, 48)
AT(hafti_cache_entry_t, key, 0)
AT(hafti_cache_entry_t, found, 8)
AT(hafti_found_t, with, 0)
AT(hafti_found_t, scope, 8)
AT(haft_rust_effect_t, request, 0)
AT(haft_rust_effect_t, effect, 32)
AT(haft_rust_effect_t, entry, 120)
AT(haft_rust_effect_t, in_place, 152)
AT(hafti_thread_t, current, 0)
AT(hafti_thread_t, exceptions, 8)
_Static_assert(_Alignof(haft_fiber_t) % 16 == 0, "the bits of a fiber's address");
_Static_assert(HAFTI_GATE_CLOSED == 0 && HAFTI_GATE_OPEN == 1, "gates");
_Static_assert(HAFTI_ROOM_LOOK == 1 && HAFTI_CLAUSE_MARK == 1 && HAFTI_AWAITS_NOTHING == 1,
               "marks");
_Static_assert(HAFTI_WAKE_REPLY == 0, "words");

const char *haft_version(void);
void haft_fiber_drop(haft_fiber_t *);
haft_rust_effect_t *haft_rust_effect_new(const char *, haft_rust_clause_t *, haft_rust_clause_t *);
void *haft_rust_perform(haft_rust_effect_t *, void *);
haft_resumption_t haft_resumption_copy(haft_resumption_t);
haft_resumption_t haft_copy_looked_at(haft_resumption_t);
void haft_know_frames_of(haft_function_t *);
void haft_resumption_drop(haft_resumption_t);
haft_rust_copied_t *haft_rust_copied_new(haft_rust_effect_t *, haft_rust_general_t *);
bool haft_rust_copied_handle(const haft_rust_copied_t *, void *, haft_body_t *, void *);
void haft_rust_go_on(haft_rust_effect_t *, haft_resumption_t, void *);
void haft_rust_handle(const haft_rust_effect_t *, void *, haft_body_t *, void *);
void haft_perform(haft_effect_t *, void *, size_t, void *, size_t);
haft_rust_shared_t *haft_rust_shared_new(haft_effect_t *, const void *, size_t, size_t);
void haft_rust_shared_handle(const haft_rust_shared_t *, void *, haft_body_t *, void *);
haft_request_t haft_rust_resume(haft_fiber_t *, const haft_rust_effect_t *);
haft_fiber_t *haft_rust_fiber_new(size_t, haft_body_t *, void *);
bool haft_rust_watch_thread(void (*)(void));
haft_io_task_t *haft_rust_self(void);
const char *haft_io_error_text(int);
int haft_io_run_with(const haft_io_run_options_t *, haft_body_t *, void *);
bool haft_io_runs_here(void);
int haft_io_yield_or_cancelled(void);
uint64_t haft_io_run_number(void);
const char *haft_io_backend(void);
haft_io_task_t *haft_io_spawn_known(const haft_io_task_options_t *, haft_body_t *, void *);
const char *haft_io_inherited_name(void);
const char *haft_io_task_name(const haft_io_task_t *);
void haft_io_task_set_name(const char *);
void *haft_io_local_get(const void *);
int haft_io_local_set(const void *, void *);
int haft_io_scope_with(const haft_io_scope_options_t *, haft_body_t *, void *, void **);
haft_io_scope_t *haft_io_this_scope(void);
haft_io_scope_t *haft_io_run_scope(void);
void haft_io_scope_cancel(haft_io_scope_t *);
bool haft_io_return_cancels(bool);
void *haft_io_block_thread(haft_body_t *, void *);
int64_t haft_io_now(void);
int haft_io_sleep(int64_t);
int haft_io_sleep_until(int64_t);
int haft_io_dump(int);
ssize_t haft_io_read(int, void *, size_t);
ssize_t haft_io_write(int, const void *, size_t);
ssize_t haft_io_read_lent(int, const void **);
void haft_io_give_back(const void *);
ssize_t haft_io_readv(int, const struct iovec *, size_t);
ssize_t haft_io_writev(int, const struct iovec *, size_t);
int haft_io_pipe(int[2]);
int haft_io_socket_pair(int, int, int, int[2]);
int haft_io_listen_unix(const char *, int);
int haft_io_connect_unix(const char *);
ssize_t haft_io_receive(int, void *, size_t, int);
ssize_t haft_io_send(int, const void *, size_t, int);
int haft_io_send_descriptor(int, int);
int haft_io_receive_descriptor(int);
int haft_io_open(const char *, int, mode_t);
ssize_t haft_io_pread(int, void *, size_t, int64_t);
ssize_t haft_io_pwrite(int, const void *, size_t, int64_t);
int haft_io_fsync(int);
int haft_io_mkdir(const char *, mode_t);
int haft_io_remove(const char *);
int haft_io_rename(const char *, const char *);
int haft_rust_stat(const char *, haft_rust_status_t *);
int haft_rust_list(const char *, void **);
const char *haft_rust_entry_name(void *, size_t);
void haft_rust_entries_free(void *, size_t);
pid_t haft_io_process_start_with(const haft_io_process_options_t *, const char *const *);
int haft_io_process_wait(pid_t, int *);
int haft_rust_signals_block(const int *, size_t);
int haft_rust_signal_wait(const int *, size_t);
bool haft_take_refusal(int, char *, size_t);
int haft_io_close(int);
int haft_io_wait_ready(int, short);
int haft_io_accept(int);
int haft_io_listen_tcp(const char *, uint16_t, int);
int haft_io_connect_tcp(const char *, uint16_t);
int haft_io_shutdown(int, int);
int haft_io_port(int);
void haft_io_event_set(haft_io_event_t *);
void haft_io_event_clear(haft_io_event_t *);
int haft_io_event_wait(haft_io_event_t *);
int haft_io_event_wait_until(haft_io_event_t *, int64_t);
void haft_io_event_wait_to_the_end(haft_io_event_t *);
int haft_io_event_wait_for(haft_io_event_t *, haft_io_task_t *);
haft_io_channel_t *haft_io_channel_new(size_t, size_t);
void haft_io_channel_free(haft_io_channel_t *);
int haft_io_channel_send(haft_io_channel_t *, const void *);
int haft_io_channel_receive(haft_io_channel_t *, void *);
int haft_io_channel_try_receive(haft_io_channel_t *, void *);
void haft_io_channel_close(haft_io_channel_t *);
int haft_io_select_until(haft_io_select_case_t *, size_t, int64_t);
int haft_io_mutex_lock(haft_io_mutex_t *);
bool haft_io_mutex_try_lock(haft_io_mutex_t *);
void haft_io_mutex_unlock(haft_io_mutex_t *);
int haft_io_semaphore_acquire(haft_io_semaphore_t *);
bool haft_io_semaphore_try_acquire(haft_io_semaphore_t *);
void haft_io_semaphore_release(haft_io_semaphore_t *);
int haft_io_condition_wait(haft_io_condition_t *, haft_io_mutex_t *);
void haft_io_condition_signal(haft_io_condition_t *);
void haft_io_condition_broadcast(haft_io_condition_t *);
int haft_io_simulate_with(const haft_io_simulation_options_t *, haft_body_t *, void *);
uint64_t haft_io_seed(void);
void haft_io_simulated_crash(void);
