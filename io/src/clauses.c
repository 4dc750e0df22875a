/* SPDX-License-Identifier: MIT */
/*
 * The handlers of the operations: for each a default, which blocks its thread, and a clause, by
 * which a scheduler handles it in place, on the task's stack. One list at the end names them all.
 */
#include "operations.h"
#include "tape/tape.h"

#include <time.h>

/* ---- Scheduled ---- */

/* A send counts by its size. (A receive may get less than was asked for.) */
static bool is_in_turn(hafti_io_worker_t *worker, size_t sent) {
    enum { HALF_KIBIBYTE_BITS = 9, MOST = 64 };
    size_t halves = sent >> HALF_KIBIBYTE_BITS;
    HAFTI_IO_COUNT(worker->counters.operations);
    return hafti_io_is_in_turn(worker,
                               HAFTI_IO_OF_SYSTEM + (unsigned)(halves < MOST ? halves : MOST));
}
/* Lets others go first, of which one may close the descriptor, so that its number becomes another
   file's. */
static HAFTI_IO_COLD int let_others_go_first(const hafti_io_worker_t *worker, int descriptor) {
    const hafti_io_descriptor_t *entry =
        hafti_io_descriptor(worker->crew->descriptors, descriptor, true);
    uint32_t life = entry != NULL ? __atomic_load_n(&entry->life, __ATOMIC_RELAXED) : 0;
    if (!hafti_io_goes_on_after_others(HAFTI_IO_CANCELLABLE))
        return -ECANCELED;
    return entry != NULL && __atomic_load_n(&entry->life, __ATOMIC_RELAXED) != life ? -EBADF : 0;
}
/* Returns 0, or the error because of which the operation is not made. */
static inline int begin(hafti_io_worker_t *worker, int descriptor, size_t sent) {
    return is_in_turn(worker, sent) ? 0 : let_others_go_first(worker, descriptor);
}
static size_t size_sent(const hafti_io_operation_t *operation) {
    return operation->kind == HAFTI_IO_WRITE || operation->kind == HAFTI_IO_SEND ? operation->size
                                                                                 : 0;
}

/* Makes the operation, without its events in a trace. */
static ssize_t operate(hafti_io_runner_t *runner, hafti_io_operation_t *operation) {
    return hafti_io_uses_uncounted(runner->worker)
               ? runner->worker->backend->operate(runner, operation)
               : hafti_io_operate_counted(runner, operation);
}
static HAFTI_IO_COLD ssize_t operate_traced(hafti_io_runner_t *runner,
                                            hafti_io_operation_t *operation) {
    const char *kind = hafti_io_kind_name(operation->kind);
    int descriptor = operation->descriptor;
    hafti_io_trace_operation(runner->task, kind, descriptor, size_sent(operation));
    ssize_t result = operate(runner, operation);
    hafti_io_trace_result(runner->task, kind, descriptor, result);
    return result;
}
static ssize_t operate_by_backend(hafti_io_runner_t *runner, hafti_io_operation_t *operation) {
    int code = begin(runner->worker, operation->descriptor, size_sent(operation));
    if (HAFTI_IO_UNLIKELY(code != 0))
        return code;
    if (HAFTI_IO_LIKELY(runner->worker->plain))
        return runner->worker->backend->operate(runner, operation);
    return hafti_io_is_traced() ? operate_traced(runner, operation) : operate(runner, operation);
}

/* ---- Each operation: its default, its clause ---- */

/* An operation is made from the payload twice: for the default, and for its clause, or for what a
   clause of its own does if the back end has no other way. */
#define DEFAULT(name, result, ...)                                                                 \
    static result default_##name(void *unused, HAFT_PAYLOAD(haft_io_##name) * p) {                 \
        (void)unused;                                                                              \
        hafti_io_operation_t operation = {__VA_ARGS__};                                            \
        return (result)hafti_io_operate_blocking(&operation);                                      \
    }
#define OPERATION(name, clause, result, ...)                                                       \
    DEFAULT(name, result, __VA_ARGS__)                                                             \
    static result clause##_##name(void *runner, HAFT_PAYLOAD(haft_io_##name) * p) {                \
        hafti_io_operation_t operation = {__VA_ARGS__};                                            \
        return (result)operate_by_backend(runner, &operation);                                     \
    }

DEFAULT(read, ssize_t, HAFTI_IO_READ, p->descriptor, 0, p->buffer, p->size, NULL, NULL)
DEFAULT(write, ssize_t, HAFTI_IO_WRITE, p->descriptor, 0, (void *)(uintptr_t)p->buffer, p->size,
        NULL, NULL)
OPERATION(receive, general, ssize_t, HAFTI_IO_RECEIVE, p->socket, p->flags, p->buffer, p->size,
          p->address, p->address_size)
OPERATION(send, clause, ssize_t, HAFTI_IO_SEND, p->socket, p->flags, (void *)(uintptr_t)p->buffer,
          p->size, (struct sockaddr *)(uintptr_t)p->address, &p->address_size)
DEFAULT(read_lent, ssize_t, HAFTI_IO_READ_LENT, p->descriptor, 0, p->bytes, 0, NULL, NULL)
OPERATION(readv, clause, ssize_t, HAFTI_IO_READ_PARTS, p->descriptor, 0,
          (void *)(uintptr_t)p->parts, p->count, NULL, NULL)
OPERATION(writev, clause, ssize_t, HAFTI_IO_WRITE_PARTS, p->descriptor, 0,
          (void *)(uintptr_t)p->parts, p->count, NULL, NULL)
OPERATION(receive_message, clause, ssize_t, HAFTI_IO_RECEIVE_MESSAGE, p->socket, p->flags,
          p->message, 0, NULL, NULL)
OPERATION(send_message, clause, ssize_t, HAFTI_IO_SEND_MESSAGE, p->socket, p->flags,
          (void *)(uintptr_t)p->message, 0, NULL, NULL)
OPERATION(accept, general, int, HAFTI_IO_ACCEPT, p->listener, 0, NULL, 0, NULL, NULL)
OPERATION(connect, clause, int, HAFTI_IO_CONNECT, p->socket, 0, &(bool){false}, 0,
          (struct sockaddr *)(uintptr_t)p->address, &p->address_size)
OPERATION(wait_ready, clause, int, HAFTI_IO_POLL, p->descriptor, p->events, NULL, 0, NULL, NULL)

/* Not inlined, so that the shorter way has no operation in its frame. */
__attribute__((noinline)) ssize_t hafti_io_transfer_generally(hafti_io_runner_t *runner,
                                                              enum hafti_io_kind kind,
                                                              int descriptor, const void *buffer,
                                                              size_t size) {
    hafti_io_operation_t operation = {
        .kind = kind, .descriptor = descriptor, .buffer = (void *)(uintptr_t)buffer, .size = size};
    return runner->worker->backend->operate(runner, &operation);
}
/* The slow path is apart, so that the fast one saves no registers. */
static HAFTI_IO_COLD ssize_t transfer_after_others(hafti_io_runner_t *runner,
                                                   enum hafti_io_kind kind, int descriptor,
                                                   const void *buffer, size_t size) {
    int code = let_others_go_first(runner->worker, descriptor);
    return code == 0 ? runner->worker->backend->transfer(runner, kind, descriptor, buffer, size)
                     : code;
}
static inline __attribute__((always_inline)) ssize_t transfer(hafti_io_runner_t *runner,
                                                              enum hafti_io_kind kind,
                                                              int descriptor, const void *buffer,
                                                              size_t size) {
    hafti_io_worker_t *worker = runner->worker;
    return HAFTI_IO_LIKELY(is_in_turn(worker, kind == HAFTI_IO_WRITE ? size : 0))
               ? worker->backend->transfer(runner, kind, descriptor, buffer, size)
               : transfer_after_others(runner, kind, descriptor, buffer, size);
}
static ssize_t transfer_traced(hafti_io_runner_t *runner, enum hafti_io_kind kind, int descriptor,
                               const void *buffer, size_t size) {
    const char *name = hafti_io_kind_name(kind);
    hafti_io_trace_operation(runner->task, name, descriptor, kind == HAFTI_IO_WRITE ? size : 0);
    ssize_t result = runner->worker->backend->transfer(runner, kind, descriptor, buffer, size);
    hafti_io_trace_result(runner->task, name, descriptor, result);
    return result;
}
/* Where the worker is not plain: also the shorter way, if it is traced or recorded and no more. */
static __attribute__((noinline)) ssize_t transfer_told(hafti_io_runner_t *runner,
                                                       enum hafti_io_kind kind, int descriptor,
                                                       const void *buffer, size_t size) {
    hafti_io_worker_t *worker = runner->worker;
    if (HAFTI_IO_UNLIKELY(!hafti_io_uses_uncounted(worker))) {
        hafti_io_operation_t operation = {.kind = kind,
                                          .descriptor = descriptor,
                                          .buffer = (void *)(uintptr_t)buffer,
                                          .size = size};
        return operate_by_backend(runner, &operation);
    }
    int code = begin(worker, descriptor, kind == HAFTI_IO_WRITE ? size : 0);
    if (HAFTI_IO_UNLIKELY(code != 0))
        return code;
    return hafti_io_is_traced() ? transfer_traced(runner, kind, descriptor, buffer, size)
                                : worker->backend->transfer(runner, kind, descriptor, buffer, size);
}
static HAFTI_IO_HOT ssize_t clause_read(void *state, HAFT_PAYLOAD(haft_io_read) * p) {
    hafti_io_runner_t *runner = state;
    return HAFTI_IO_LIKELY(runner->worker->plain)
               ? transfer(runner, HAFTI_IO_READ, p->descriptor, p->buffer, p->size)
               : transfer_told(runner, HAFTI_IO_READ, p->descriptor, p->buffer, p->size);
}
static HAFTI_IO_HOT ssize_t clause_receive(void *state, HAFT_PAYLOAD(haft_io_receive) * p) {
    hafti_io_runner_t *runner = state;
    if (HAFTI_IO_UNLIKELY(p->flags != 0 || p->address != NULL))
        return general_receive(runner, p);
    return HAFTI_IO_LIKELY(runner->worker->plain)
               ? transfer(runner, HAFTI_IO_RECEIVE, p->socket, p->buffer, p->size)
               : transfer_told(runner, HAFTI_IO_RECEIVE, p->socket, p->buffer, p->size);
}
static HAFTI_IO_HOT ssize_t clause_read_lent(void *state, HAFT_PAYLOAD(haft_io_read_lent) * p) {
    hafti_io_runner_t *runner = state;
    return HAFTI_IO_LIKELY(runner->worker->plain)
               ? transfer(runner, HAFTI_IO_READ_LENT, p->descriptor, p->bytes, 0)
               : transfer_told(runner, HAFTI_IO_READ_LENT, p->descriptor, p->bytes, 0);
}
static HAFTI_IO_HOT ssize_t clause_write(void *state, HAFT_PAYLOAD(haft_io_write) * p) {
    hafti_io_runner_t *runner = state;
    return HAFTI_IO_LIKELY(runner->worker->plain)
               ? transfer(runner, HAFTI_IO_WRITE, p->descriptor, p->buffer, p->size)
               : transfer_told(runner, HAFTI_IO_WRITE, p->descriptor, p->buffer, p->size);
}

static int clause_accept(void *state, HAFT_PAYLOAD(haft_io_accept) * p) {
    hafti_io_runner_t *runner = state;
    int connection = general_accept(runner, p);
    runner->accepted |= connection >= 0;
    return connection;
}

/* Sends at once, so the number cannot have become another file's. -EAGAIN or -ENOTSOCK: the bytes
   have to be sent otherwise. */
static inline ssize_t send_at_once(const hafti_io_worker_t *worker, int descriptor,
                                   const void *buffer, size_t size) {
    int *error = worker->error, saved = *error;
    ssize_t sent = HAFTI_IO_LIKELY(size != 0)
                       ? send(descriptor, buffer, size, MSG_DONTWAIT | MSG_NOSIGNAL)
                       : 0;
    if (HAFTI_IO_LIKELY(sent > 0))
        return sent;
    int code = sent < 0 ? -*error : -EAGAIN;
    *error = saved;
    return code != -EINTR ? code : -EAGAIN;
}
static inline bool is_sent_otherwise(ssize_t code) {
    return code == -EAGAIN || code == -ENOTSOCK;
}
HAFTI_IO_HOT ssize_t hafti_io_write_at_once(hafti_io_runner_t *runner, enum hafti_io_kind kind,
                                            int descriptor, const void *buffer, size_t size) {
    hafti_io_descriptor_t *known =
        hafti_io_known_descriptor(runner->worker->crew->descriptors, descriptor);
    ssize_t sent = HAFTI_IO_LIKELY(known != NULL && known->nature != HAFTI_IO_STREAM)
                       ? send_at_once(runner->worker, descriptor, buffer, size)
                       : -EAGAIN;
    if (HAFTI_IO_LIKELY(!is_sent_otherwise(sent)))
        return sent;
    if (sent == -ENOTSOCK)
        known->nature = HAFTI_IO_STREAM; /* so the next writes do not try */
    return hafti_io_transfer_generally(runner, kind, descriptor, buffer, size);
}
HAFTI_IO_HOT ssize_t hafti_io_send_last_at_once(hafti_io_worker_t *worker, int descriptor,
                                                hafti_io_sending_t *unused, hafti_io_lent_t *lent,
                                                size_t size) {
    (void)unused;
    return send_at_once(worker, descriptor, lent->bytes, size);
}
static int default_poll(void *unused, HAFT_PAYLOAD(haft_io_poll) * p) {
    (void)unused;
    hafti_io_pause(p->turn);
    return hafti_io_poll_blocking(p->entries, p->count, p->deadline);
}
static int clause_poll(void *state, HAFT_PAYLOAD(haft_io_poll) * p) {
    hafti_io_runner_t *runner = state;
    if (p->entries == NULL && p->count != 0) /* the system returns the error */
        return hafti_io_poll_blocking(NULL, p->count, 0);
    /* A change after the caller's try finds it waiting: no other task runs before that. */
    int code = p->turn != 0 || is_in_turn(runner->worker, 0)
                   ? 0
                   : hafti_io_let_others_close(runner->worker->crew, p->entries, p->count);
    if (HAFTI_IO_UNLIKELY(code != 0))
        return code;
    return runner->worker->backend->poll_several(runner, p->entries, p->count, p->deadline,
                                                 p->turn);
}

static int default_close(void *unused, HAFT_PAYLOAD(haft_io_close) * payload) {
    (void)unused;
    return hafti_io_close_elsewhere(NULL, payload->descriptor);
}
static int clause_close(void *state, HAFT_PAYLOAD(haft_io_close) * payload) {
    hafti_io_runner_t *runner = state;
    if (!hafti_io_is_in_turn(runner->worker, HAFTI_IO_OF_SYSTEM))
        hafti_io_goes_on_after_others(HAFTI_IO_TO_THE_END);
    return runner->worker->backend->close(runner->worker, payload->descriptor);
}

static int default_sleep_until(void *unused, HAFT_PAYLOAD(haft_io_sleep_until) * payload) {
    (void)unused;
    int64_t deadline = payload->deadline > 0 ? payload->deadline : 0;
    struct timespec until = {deadline / HAFT_IO_SECOND, deadline % HAFT_IO_SECOND};
    int code;
    do
        code = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    while (code == EINTR);
    return -code;
}
/* If the time had passed when the worker last read its clock there is no wait: no timer, and no
   stack of its own for a task that does nothing else before. The number of such sleeps in a row is
   limited, so that all other tasks go on. */
static bool is_over(hafti_io_runner_t *runner, int64_t deadline) {
    hafti_io_worker_t *worker = runner->worker;
    return deadline < worker->clock && !hafti_io_is_withdrawn(runner) &&
           hafti_io_is_in_turn(worker, HAFTI_IO_LIGHT);
}
static int clause_sleep_until(void *state, HAFT_PAYLOAD(haft_io_sleep_until) * payload) {
    hafti_io_runner_t *runner = state;
    if (is_over(runner, payload->deadline))
        return 0;
    hafti_io_cell_t cell = {HAFTI_IO_WAITING, runner->task};
    return hafti_io_cell_wait(&cell, HAFTI_IO_CANCELLABLE, payload->deadline, "a time") ==
                   HAFTI_IO_CANCELLED
               ? -ECANCELED
               : 0;
}

static int64_t default_now(void *unused, HAFT_PAYLOAD(haft_io_now) * payload) {
    (void)unused, (void)payload;
    return hafti_io_clock();
}

static int64_t clause_now(void *state, HAFT_PAYLOAD(haft_io_now) * payload) {
    (void)payload;
    return hafti_io_worker_now(((hafti_io_runner_t *)state)->worker);
}

static int default_call_blocking(void *unused, HAFT_PAYLOAD(haft_io_call_blocking) * payload) {
    (void)unused;
    int saved = errno;
    payload->function(payload->argument);
    errno = saved; /* as where the pool calls it */
    return 0;
}
static int clause_call_blocking(void *state, HAFT_PAYLOAD(haft_io_call_blocking) * payload) {
    hafti_io_runner_t *runner = state;
    if (runner->worker->simulated != NULL || runner->worker->forked)
        return default_call_blocking(NULL, payload);
    return hafti_io_pool_call(runner, payload->function, payload->argument, payload->left,
                              HAFTI_IO_CANCELLABLE);
}

static int default_spawn(void *unused, HAFT_PAYLOAD(haft_io_spawn) * payload) {
    (void)unused, (void)payload;
    return -ESRCH;
}

static int default_yield(void *unused, HAFT_PAYLOAD(haft_io_yield) * payload) {
    (void)unused, (void)payload;
    return 0;
}

static haft_io_task_t *default_self(void *unused, HAFT_PAYLOAD(haft_io_self) * payload) {
    (void)unused, (void)payload;
    return NULL;
}
static haft_io_task_t *clause_self(void *state, HAFT_PAYLOAD(haft_io_self) * payload) {
    (void)payload;
    return ((hafti_io_runner_t *)state)->task;
}

static void *default_block_thread(void *unused, HAFT_PAYLOAD(haft_io_block_thread) * payload) {
    (void)unused;
    return payload->function(payload->argument);
}
/* The operations are out of reach, as in every clause, so that their defaults answer. The scheduler
   answers a yield, and everything else that waits looks up its task, which is none meanwhile. */
HAFT_HANDLER(goes_on_alone, NULL, HAFT_TAIL(haft_io_yield, default_yield));
static void run_again(hafti_io_runner_t **runner) {
    __atomic_store_n(&(*runner)->worker->running, *runner, __ATOMIC_RELAXED);
}
static void *clause_block_thread(void *state, HAFT_PAYLOAD(haft_io_block_thread) * payload) {
    __attribute__((cleanup(run_again))) hafti_io_runner_t *runner = state;
    __atomic_store_n(&runner->worker->running, NULL, __ATOMIC_RELAXED);
    return haft_handle(&goes_on_alone, NULL, payload->function, payload->argument);
}

/* The clock of a run that is recorded or replayed. */
static int64_t taped_now(void *state, HAFT_PAYLOAD(haft_io_now) * payload) {
    hafti_io_runner_t *runner = state;
    hafti_io_tape_t *tape = runner->worker->tape;
    if (runner->taped || tape->keeps || runner->worker->forked)
        return clause_now(state, payload);
    return hafti_io_tape_number(tape, HAFTI_IO_TAPED_NOW,
                                tape->replays ? 0 : hafti_io_worker_now(runner->worker));
}
static int taped_call_blocking(void *state, HAFT_PAYLOAD(haft_io_call_blocking) * payload) {
    const hafti_io_runner_t *runner = state;
    if (runner->worker->forked)
        return default_call_blocking(NULL, payload);
    return runner->taped || runner->worker->tape->keeps ? clause_call_blocking(state, payload)
                                                        : hafti_io_call_taped(state, payload);
}

/* All of them. (A spawn and a yield are the scheduler's: these have a default only.) Two have
   another clause in a run with a tape; the others meet it elsewhere, if at all (tape/tape.h). */
#define OF_TAPES(one, then) one(now) then one(call_blocking)
#define OPERATIONS(one, then)                                                                      \
    one(self) then one(read)                                                                       \
    then one(write)                                                                                \
    then one(receive)                                                                              \
    then one(send)                                                                                 \
    then one(read_lent)                                                                            \
    then one(readv)                                                                                \
    then one(writev)                                                                               \
    then one(receive_message)                                                                      \
    then one(send_message)                                                                         \
    then one(accept)                                                                               \
    then one(connect)                                                                              \
    then one(wait_ready)                                                                           \
    then one(poll)                                                                                 \
    then one(close)                                                                                \
    then one(sleep_until)                                                                          \
    then one(block_thread)

#define COMMA ,
#define BY_CLAUSE(name) HAFT_TAIL(haft_io_##name, clause_##name)
#define BY_TAPE(name) HAFT_TAIL(haft_io_##name, taped_##name)
HAFT_HANDLER(operations, NULL, OF_TAPES(BY_CLAUSE, COMMA), OPERATIONS(BY_CLAUSE, COMMA));
HAFT_HANDLER(taped, NULL, OF_TAPES(BY_TAPE, COMMA), OPERATIONS(BY_CLAUSE, COMMA));
const haft_handler_t *const hafti_io_operations = &operations;
const haft_handler_t *const hafti_io_taped_operations = &taped;

#define SET_DEFAULT(name) HAFT_SET_DEFAULT(haft_io_##name, default_##name)
__attribute__((constructor)) static void set_defaults(void) {
    OF_TAPES(SET_DEFAULT, ;);
    OPERATIONS(SET_DEFAULT, ;);
    SET_DEFAULT(yield);
    SET_DEFAULT(spawn);
}
