/* SPDX-License-Identifier: MIT */
/*
 * The back end on io_uring, through liburing. A receive is submitted to the kernel at once, since
 * most often nothing has come yet; the kernel takes all requests in one system call, the one that
 * waits. Operations that most often can be done at once (sending, accepting) are tried first, and
 * wait for the descriptor to be ready if they cannot. When one poll wakes several tasks, their
 * sends are queued and submitted together.
 *
 * A request lies in the frame of the task that waits. The kernel may write to its buffer until it
 * has completed the request. So a cancelled task asks for the request back, and waits with a second
 * cell until the kernel has answered: with -ECANCELED, or with the result if it had one already.
 *
 * In a run that is alone two things are asked for once, and arrive until the kernel is told to
 * stop:
 *
 *   what arrives    | asked for by a task that waits in | until
 *   TCP connections | haft_io_accept                    | a poll begins, and no task waits for them
 *   bytes of a TCP  | haft_io_read_lent                 | MOST_AHEAD blocks have come that no
 *     connection    |                                   |   task has asked for; the end, an error
 *   both            |                                   | a poll for the descriptor, or another
 *                   |                                   |   read of it: these know only what the
 *                   |                                   |   kernel still has
 *
 * What has arrived waits in a queue for the next such call, and is closed or given back with the
 * descriptor. Bytes arrive in blocks of memory that the kernel has been provided with: it chooses
 * one when something comes. A block that has arrived is the library's as any other that is lent,
 * and another takes its slot.
 */
#include "backends.h"
#include "uring.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES = 256, COMPLETIONS = 8192 };

/*
 * To cancel a request the kernel walks one of its 256 lists of requests (COMPLETIONS / 32, and
 * never more) from the newest on, whereas tasks are cancelled from the oldest on. So no further
 * requests are made while this many tasks wait: further waits are for edges, and every wait is
 * cancelled at the same cost, however many others there are.
 */
enum { MOST_ASKED = COMPLETIONS };

static bool is_crowded(const hafti_io_worker_t *worker) {
    return worker->waiting >= MOST_ASKED;
}

typedef struct request {
    hafti_io_waiter_t waiter;
    int result;
    bool done;
} request_t;

typedef hafti_io_sending_t sending_t;
typedef hafti_io_uring_state_t state_t;
typedef hafti_io_arrivals_t arrivals_t;

/* Completions without a waiting request. */
static int woken, edges, ignored;

static bool is_refusal(int code) {
    return hafti_io_is_missing(code) || code == -EACCES;
}

void hafti_io_uring_check(int code) {
    if (HAFTI_IO_UNLIKELY(is_refusal(code)))
        hafti_io_misuse("The system refuses io_uring to a run that has begun with it (%s): use "
                        "HAFT_IO_BACKEND=epoll, or filter system calls before the run.",
                        strerror(-code));
}

void hafti_io_uring_look(state_t *state) {
    hafti_io_uring_check(io_uring_submit_and_get_events(&state->ring));
    hafti_io_uring_take_completions(state);
}

/* The kernel takes no more while it keeps completions that had no room. */
static void submit(state_t *state) {
    int code = io_uring_submit(&state->ring);
    hafti_io_uring_check(code);
    if (code < 0)
        hafti_io_uring_take_completions(state);
}

struct io_uring_sqe *hafti_io_uring_next_entry(state_t *state) {
    struct io_uring_sqe *entry;
    do {
        submit(state);
        entry = io_uring_get_sqe(&state->ring);
    } while (entry == NULL);
    return entry;
}

/* The kernel is asked for it with the next poll. Until it has answered, the task stays here. */
static void begin_request(haft_io_task_t *task, struct io_uring_sqe *entry, request_t *request) {
    request->done = false;
    io_uring_sqe_set_data(entry, request);
    task->worker->waiting++;
    if (HAFTI_IO_UNLIKELY(task->worker->shared))
        task->runner->stays++;
}

void hafti_io_uring_ask_back(state_t *state, void *data) {
    struct io_uring_sqe *entry = hafti_io_uring_entry(state);
    io_uring_prep_cancel(entry, data, 0);
    io_uring_sqe_set_data(entry, &ignored);
}

/* Until the kernel has answered the first; an answer to the second, which may be the same, wakes
   the task, too. */
static void wait_for_answer(request_t *request, request_t *other, haft_io_task_t *task,
                            enum hafti_io_kind kind) {
    while (!request->done) {
        hafti_io_cell_t last = {HAFTI_IO_WAITING, task};
        request->waiter.cell = other->waiter.cell = &last;
        hafti_io_cell_wait(&last, HAFTI_IO_TO_THE_END, HAFT_IO_FOREVER, hafti_io_kind_name(kind));
    }
}

/* After a cancel, or when its descriptor was closed: until the kernel has done with the buffer. The
   kernel does not find a request (-ENOENT) that is on its way from a poll to one of its threads,
   where it would wait forever. */
static HAFTI_IO_COLD void withdraw(request_t *request, haft_io_task_t *task,
                                   enum hafti_io_kind kind) {
    request_t back;
    do {
        struct io_uring_sqe *entry = hafti_io_uring_entry(task->worker->backend_state);
        io_uring_prep_cancel(entry, request, 0);
        begin_request(task, entry, &back);
        wait_for_answer(&back, request, task, kind);
    } while (!request->done && back.result == -ENOENT);
    wait_for_answer(request, &back, task, kind);
}

static HAFTI_IO_COLD void learn_nature(hafti_io_descriptor_t *entry, int descriptor) {
    struct stat status;
    if (fstat(descriptor, &status) == 0)
        __atomic_store_n(&entry->nature,
                         S_ISSOCK(status.st_mode)                             ? HAFTI_IO_SOCKET
                         : S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) ? HAFTI_IO_FILE
                                                                              : HAFTI_IO_STREAM,
                         __ATOMIC_RELAXED);
}

static uint8_t nature_of(const hafti_io_descriptor_t *entry) {
    return __atomic_load_n(&entry->nature, __ATOMIC_RELAXED);
}

/* The size, but at most what a system call transfers at once. */
static unsigned at_once(size_t size) {
    enum { MOST = 0x7ffff000 };
    return size < MOST ? (unsigned)size : MOST;
}

static bool sends(const hafti_io_operation_t *o) {
    return o->kind == HAFTI_IO_WRITE || o->kind == HAFTI_IO_SEND;
}

/* Others that the same poll has woken go on after this task, and are likely to send, too, or have
   been asked for something already: one system call then takes what all of them send. */
static bool others_send(const hafti_io_worker_t *worker) {
    const state_t *state = worker->backend_state;
    return !hafti_io_ring_empty(&worker->polled) || io_uring_sq_ready(&state->ring) != 0;
}
/* Sends that are queued leave with the next poll, which waits for the turn of a task that
   computes. */
static bool polls_soon(const hafti_io_worker_t *worker) {
    return worker->unlooked != 1; /* a turn takes less than the time between two polls */
}
/* Not if the result would differ from that of a send that is tried. */
static bool sends_with_others(const hafti_io_runner_t *runner, int flags) {
    return others_send(runner->worker) && polls_soon(runner->worker) &&
           (flags & ~MSG_NOSIGNAL) == 0 && !hafti_io_is_withdrawn(runner);
}

/* Operations that the kernel does itself; all others are tried, and waited for by poll. */
static bool kernel_does(const hafti_io_runner_t *runner, const hafti_io_operation_t *o,
                        int nature) {
    if (nature == HAFTI_IO_SOCKET && o->address == NULL && o->size != 0)
        return sends(o) ? sends_with_others(runner, o->flags)
                        : !is_crowded(runner->worker) && !hafti_io_is_withdrawn(runner) &&
                              (o->kind == HAFTI_IO_RECEIVE || o->kind == HAFTI_IO_READ);
    return nature == HAFTI_IO_FILE && (o->kind == HAFTI_IO_READ || o->kind == HAFTI_IO_WRITE);
}

/* Sends never block for buffer space; they fail with -EAGAIN. A send is complete once the kernel
   accepts it, so a peer's reply may trigger the next send before the first task resumes. */
static void prepare_send(struct io_uring_sqe *entry, int descriptor, const void *buffer,
                         size_t size) {
    io_uring_prep_send(entry, descriptor, buffer, at_once(size), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void prepare(struct io_uring_sqe *entry, const hafti_io_operation_t *o, int nature) {
    if (nature == HAFTI_IO_SOCKET && sends(o))
        prepare_send(entry, o->descriptor, o->buffer, o->size);
    else if (nature == HAFTI_IO_SOCKET) /* MSG_WAITALL would repeat a peek, and join packets */
        io_uring_prep_recv(entry, o->descriptor, o->buffer, at_once(o->size),
                           o->flags & ~MSG_WAITALL);
    else if (o->kind == HAFTI_IO_READ)
        io_uring_prep_read(entry, o->descriptor, o->buffer, at_once(o->size), (uint64_t)-1);
    else
        io_uring_prep_write(entry, o->descriptor, o->buffer, at_once(o->size), (uint64_t)-1);
}

/* When it has been waited for. */
static inline int answer_of(request_t *request, haft_io_task_t *task, enum hafti_io_kind kind,
                            uint8_t nature) {
    if (HAFTI_IO_UNLIKELY(!request->done))
        withdraw(request, task, kind);
    /* A success belongs to the file that was asked for, also if its number was closed since. */
    if ((nature == HAFTI_IO_UNKNOWN || request->result < 0) &&
        hafti_io_was_closed(&request->waiter))
        return -EBADF;
    return request->result;
}

/* One request of the kernel: the operation itself, for a descriptor of that nature, or
   (HAFTI_IO_UNKNOWN) that the descriptor be ready. Every task that waits has these frames on its
   stack: they are kept small. */
static __attribute__((noinline)) int ask(hafti_io_runner_t *runner, hafti_io_descriptor_t *known,
                                         const hafti_io_operation_t *operation, uint8_t nature) {
    state_t *state = runner->worker->backend_state;
    if (hafti_io_is_withdrawn(runner))
        return -ECANCELED;
    hafti_io_cell_t cell = {HAFTI_IO_WAITING, runner->task};
    request_t request;
    bool sent_at_once = nature == HAFTI_IO_SOCKET && sends(operation);
    int code = hafti_io_enlist(known, &request.waiter, &cell, operation,
                               operation->kind <= HAFTI_IO_SEND && !sent_at_once, true);
    if (code != 0)
        return code;
    struct io_uring_sqe *entry = hafti_io_uring_entry(state);
    if (nature != HAFTI_IO_UNKNOWN)
        prepare(entry, operation, nature);
    else
        io_uring_prep_poll_add(entry, operation->descriptor,
                               (unsigned)hafti_io_events_of(operation));
    begin_request(runner->task, entry, &request);
    hafti_io_cell_wait(&cell, HAFTI_IO_CANCELLABLE, HAFT_IO_FOREVER,
                       hafti_io_kind_name(operation->kind));
    hafti_io_delist(&request.waiter);
    return answer_of(&request, runner->task, operation->kind, nature);
}

int hafti_io_uring_await(hafti_io_runner_t *runner, hafti_io_descriptor_t *known,
                         const hafti_io_operation_t *operation, unsigned turn) {
    int code = turn == 0 && !is_crowded(runner->worker)
                   ? ask(runner, known, operation, HAFTI_IO_UNKNOWN)
                   : -EINVAL;
    /* Which the kernel says of a file. */
    return code == -EINVAL ? hafti_io_await_edge(runner, known, operation, turn) : code;
}

ssize_t hafti_io_uring_attempt(const hafti_io_descriptor_t *known, hafti_io_operation_t *operation,
                               unsigned turn) {
    ssize_t done = hafti_io_attempt(operation);
    bool may_be_at_end = turn != 0 || __atomic_load_n(&known->ended, __ATOMIC_RELAXED);
    return done == -EAGAIN && may_be_at_end ? hafti_io_attempt_at_end(operation) : done;
}

/* ---- Operations ---- */

static ssize_t operate_on(hafti_io_runner_t *runner, hafti_io_descriptor_t *known,
                          hafti_io_operation_t *operation) {
    if (nature_of(known) == HAFTI_IO_UNKNOWN)
        learn_nature(known, operation->descriptor);
    if (operation->kind == HAFTI_IO_ACCEPT || operation->kind == HAFTI_IO_READ_LENT)
        return hafti_io_take_arrival(runner, known, operation);
    if (known->arrivals != NULL && hafti_io_events_of(operation) != POLLOUT) {
        ssize_t done = hafti_io_use_arrivals(runner->worker->backend_state, known, operation);
        if (done != -EAGAIN)
            return done;
    }
    if (hafti_io_must_not_wait(operation))
        return hafti_io_attempt(operation);
    uint8_t nature = nature_of(known);
    if (kernel_does(runner, operation, nature)) {
        ssize_t done;
        do
            done = ask(runner, known, operation, nature);
        while (done == -EINTR);
        if (done > 0 && !sends(operation))
            HAFTI_IO_TELL_VALGRIND(DEFINED, operation->buffer, (size_t)done);
        /* There is no room, the descriptor is non-blocking, or it is another file by now. */
        if (done != -EAGAIN && done != -ENOTSOCK)
            return done;
        learn_nature(known, operation->descriptor);
    }
    for (unsigned turn = 0;;) {
        ssize_t done = hafti_io_uring_attempt(known, operation, turn);
        if (done == -EAGAIN) {
            int ready = hafti_io_uring_await(runner, known, operation, turn++);
            if (ready >= 0 || ready == -EINTR)
                continue;
            done = ready;
        }
        if (done == HAFTI_IO_MAY_WAIT)
            done = hafti_io_operate_in_pool(runner, operation);
        if (done != HAFTI_IO_MAY_WAIT)
            return done;
    }
}

static ssize_t operate_by_ring(hafti_io_runner_t *runner, hafti_io_operation_t *operation) {
    hafti_io_descriptor_t *known =
        hafti_io_descriptor(runner->worker->crew->descriptors, operation->descriptor, true);
    if (known == NULL)
        return hafti_io_without_entry(operation->descriptor);
    ssize_t done = operate_on(runner, known, operation);
    return HAFTI_IO_LIKELY(done != -EPIPE) ? done : hafti_io_why_broken(known);
}

/* ---- The same in a run that is alone, for the most frequent ---- */

/* Asks the kernel to receive or send, for a task beside which no other waits in that direction.
   Inlined, so that few frames lie between the program's call and the switch. */
static inline __attribute__((always_inline)) ssize_t
ask_alone(hafti_io_runner_t *runner, hafti_io_descriptor_t *known, int descriptor, void *buffer,
          size_t size, enum hafti_io_direction direction) {
    bool is_read = direction == HAFTI_IO_INWARD;
    haft_io_task_t *task = runner->task;
    hafti_io_cell_t cell = {HAFTI_IO_WAITING, task};
    request_t request;
    if (HAFTI_IO_UNLIKELY(hafti_io_begin_to_wait_on(known, descriptor) != 0))
        return -EBADF;
    hafti_io_enlist_first(known, &request.waiter, &cell, direction);
    request.waiter.asks = true;
    struct io_uring_sqe *entry = hafti_io_uring_entry(runner->worker->backend_state);
    if (is_read)
        io_uring_prep_recv(entry, descriptor, buffer, at_once(size), 0);
    else
        prepare_send(entry, descriptor, buffer, size);
    begin_request(task, entry, &request);
    hafti_io_wait_here(&cell, HAFTI_IO_CANCELLABLE, HAFT_IO_FOREVER, is_read ? "read" : "write");
    hafti_io_delist_first(&request.waiter, direction);
    return answer_of(&request, task, is_read ? HAFTI_IO_READ : HAFTI_IO_WRITE, HAFTI_IO_SOCKET);
}
static inline bool is_done_otherwise(ssize_t done) {
    return done == -EAGAIN || done == -ENOTSOCK || done == -EINTR;
}

static HAFTI_IO_HOT ssize_t read_by_ring(hafti_io_runner_t *runner, int descriptor, void *buffer,
                                         size_t size) {
    hafti_io_descriptor_t *known =
        hafti_io_known_descriptor(runner->worker->crew->descriptors, descriptor);
    if (HAFTI_IO_UNLIKELY(known == NULL) || nature_of(known) != HAFTI_IO_SOCKET ||
        known->arrivals != NULL || hafti_io_is_closing(known) ||
        !hafti_io_ring_empty(&known->waiters[HAFTI_IO_INWARD]) || size == 0 ||
        is_crowded(runner->worker) || hafti_io_is_withdrawn(runner))
        return -EAGAIN;
    ssize_t done = ask_alone(runner, known, descriptor, buffer, size, HAFTI_IO_INWARD);
    if (HAFTI_IO_LIKELY(done > 0))
        HAFTI_IO_TELL_VALGRIND(DEFINED, buffer, (size_t)done);
    return HAFTI_IO_LIKELY(!is_done_otherwise(done)) ? done : -EAGAIN;
}

static HAFTI_IO_HOT ssize_t write_by_ring(hafti_io_runner_t *runner, int descriptor,
                                          const void *buffer, size_t size) {
    hafti_io_descriptor_t *known =
        hafti_io_known_descriptor(runner->worker->crew->descriptors, descriptor);
    if (HAFTI_IO_UNLIKELY(known == NULL) || nature_of(known) != HAFTI_IO_SOCKET ||
        hafti_io_is_closing(known) || !hafti_io_ring_empty(&known->waiters[HAFTI_IO_OUTWARD]) ||
        !sends_with_others(runner, 0))
        return hafti_io_transfer_generally(runner, HAFTI_IO_WRITE, descriptor, buffer, size);
    ssize_t done =
        ask_alone(runner, known, descriptor, (void *)(uintptr_t)buffer, size, HAFTI_IO_OUTWARD);
    if (HAFTI_IO_UNLIKELY(is_done_otherwise(done)))
        return hafti_io_transfer_generally(runner, HAFTI_IO_WRITE, descriptor, buffer, size);
    return HAFTI_IO_LIKELY(done != -EPIPE) ? done : hafti_io_why_broken(known);
}

/* ---- An answer, and a rest until the next message ---- */

/*
 * The kernel sends when it takes what it is asked for, which is when the next poll begins, or not
 * at all (MSG_DONTWAIT). It reports only failed or partial sends (MSG_WAITALL,
 * IOSQE_CQE_SKIP_SUCCESS).
 * So a send before a rest takes one completion, that of what arrives, and one system call, with the
 * others'. The sending_t lies with the rest, and stays there until `settled` has gone on.
 *
 *   state->settled | the kernel                         | what wakes the task
 *   as it was      | may not have taken the send, or    | a cancel, or a close of the descriptor:
 *                  |   not have told that it has failed |   then the task lets the kernel settle it
 *   has gone on    | has sent it, unless `failed`       | what arrives; the failure
 *
 * The memory that was lent for the last message is given back when `settled` goes on, not when the
 * next has come.
 */

/* Everything was answered that there was to answer. */
static void settled(state_t *state) {
    state->settled++;
    for (unsigned i = 0; i < state->lent_count; i++)
        if (HAFTI_IO_LIKELY(state->lent[i] != NULL))
            hafti_io_take_back(state->lent[i]);
    state->lent_count = 0;
}

static HAFTI_IO_COLD void settle(state_t *state) {
    for (uint64_t before = state->settled; state->settled == before;)
        hafti_io_uring_look(state);
}

static HAFTI_IO_COLD void sending_failed(state_t *state, sending_t *sending, int result) {
    sending->failed = true;
    sending->result = result;
    state->lent[sending->place] = NULL;
    hafti_io_cell_win(sending->cell, HAFTI_IO_WOKEN);
}

/* False: there is no room. */
static bool send_with_next_poll(state_t *state, int descriptor, const void *buffer, size_t size,
                                sending_t *sending) {
    /* Making room consumes completions, and so may deliver what is to be waited for. */
    struct io_uring_sqe *entry = io_uring_get_sqe(&state->ring);
    if (HAFTI_IO_UNLIKELY(entry == NULL))
        return false;
    io_uring_prep_send(entry, descriptor, buffer, size, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_WAITALL);
    io_uring_sqe_set_flags(entry, IOSQE_CQE_SKIP_SUCCESS);
    io_uring_sqe_set_data64(entry, (uintptr_t)sending | HAFTI_IO_OF_SENDINGS);
    sending->failed = false;
    sending->settled = state->settled;
    sending->place = state->lent_count++;
    state->lent[sending->place] = sending->lent;
    return true;
}

/* The send is submitted with those of others, or no other task runs before the next poll. */
static bool sends_with_next_poll(const hafti_io_worker_t *worker,
                                 const hafti_io_descriptor_t *known, size_t size) {
    const state_t *state = worker->backend_state;
    return known != NULL && hafti_io_may_arrive_for(known) && size - 1 < HAFT_IO_LENT_SIZE &&
           state->sends_at_once && state->lent_count < HAFTI_IO_MOST_SENT && polls_soon(worker) &&
           (others_send(worker) || hafti_io_ring_empty(&worker->ready));
}

static HAFTI_IO_HOT ssize_t send_last_by_ring(hafti_io_worker_t *worker, int descriptor,
                                              sending_t *sending, hafti_io_lent_t *lent,
                                              size_t size) {
    const hafti_io_descriptor_t *known =
        hafti_io_known_descriptor(worker->crew->descriptors, descriptor);
    sending->lent = lent;
    return HAFTI_IO_LIKELY(
               sends_with_next_poll(worker, known, size) &&
               send_with_next_poll(worker->backend_state, descriptor, lent->bytes, size, sending))
               ? HAFTI_IO_LATER
               : hafti_io_send_last_at_once(worker, descriptor, sending, lent, size);
}

static HAFTI_IO_HOT void settle_last(hafti_io_worker_t *worker, const sending_t *sending) {
    state_t *state = worker->backend_state;
    if (HAFTI_IO_UNLIKELY(state->settled == sending->settled))
        settle(state);
}

/* ---- Several descriptors at once ---- */

static int prepare_polls(const struct pollfd *entries, request_t *requests, size_t count,
                         hafti_io_cell_t *cell) {
    hafti_io_worker_t *worker = cell->task->worker;
    int code = 0;
    for (size_t i = 0; i < count; i++) {
        requests[i] = (request_t){.done = true};
        hafti_io_descriptor_t *known =
            hafti_io_descriptor(worker->crew->descriptors, entries[i].fd, true);
        if (known == NULL || code != 0)
            continue;
        hafti_io_operation_t operation = hafti_io_operation_of(&entries[i]);
        code = hafti_io_enlist(known, &requests[i].waiter, cell, &operation, false, true);
        if (code != 0) {
            requests[i].waiter.closed = code == -EBADF;
            continue;
        }
        struct io_uring_sqe *entry = hafti_io_uring_entry(worker->backend_state);
        io_uring_prep_poll_add(entry, entries[i].fd, (unsigned short)entries[i].events);
        begin_request(cell->task, entry, &requests[i]);
    }
    return code;
}

/* Returns when the kernel has answered them all, and knows none any more. */
static void withdraw_polls(state_t *state, request_t *requests, size_t count,
                           haft_io_task_t *task) {
    for (size_t i = 0; i < count; i++) {
        if (requests[i].waiter.descriptor != NULL)
            hafti_io_delist(&requests[i].waiter);
        if (!requests[i].done)
            hafti_io_uring_ask_back(state, &requests[i]);
    }
    for (size_t i = 0; i < count; i++)
        wait_for_answer(&requests[i], &requests[i], task, HAFTI_IO_POLL);
}

static int await_several(hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                         int64_t deadline, unsigned turn) {
    if (turn != 0 || is_crowded(runner->worker))
        return hafti_io_await_edges(runner, entries, count, deadline, turn);
    if (hafti_io_is_withdrawn(runner))
        return -ECANCELED;
    request_t few[HAFTI_IO_FEW];
    request_t *requests = count <= HAFTI_IO_FEW ? few : malloc(count * sizeof *requests);
    if (requests == NULL)
        return -ENOMEM;
    hafti_io_cell_t own = {HAFTI_IO_WAITING, runner->task};
    hafti_io_cell_t *cell = runner->poll_cell != NULL ? runner->poll_cell : &own;
    state_t *state = runner->worker->backend_state;
    int code = prepare_polls(entries, requests, count, cell);
    code = hafti_io_await_poll(runner, cell, code, deadline);
    withdraw_polls(state, requests, count, runner->task);
    int closed = 0;
    for (size_t i = 0; i < count; i++)
        closed += hafti_io_mark_closed(&entries[i], &requests[i].waiter);
    if (requests != few)
        free(requests);
    return closed != 0 ? closed : code;
}

static int poll_several_by_ring(hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                                int64_t deadline, unsigned turn) {
    state_t *state = runner->worker->backend_state;
    hafti_io_descriptors_t *table = runner->worker->crew->descriptors;
    if (hafti_io_ring_empty(&state->accepts) && hafti_io_ring_empty(&state->receives))
        return hafti_io_poll_by(await_several, runner, entries, count, deadline, turn);
    bool some = false;
    for (size_t i = 0; i < count; i++) {
        const hafti_io_descriptor_t *known = hafti_io_descriptor(table, entries[i].fd, false);
        some |= hafti_io_stop_arrivals(state, known) &&
                hafti_io_arrived_events(known, entries[i].events) != 0;
    }
    int ready = hafti_io_poll_by(await_several, runner, entries, count,
                                 some ? hafti_io_worker_now(runner->worker) : deadline, turn);
    for (size_t i = 0; i < count && some && ready >= 0; i++) {
        const hafti_io_descriptor_t *known = hafti_io_descriptor(table, entries[i].fd, false);
        short arrived = known != NULL ? hafti_io_arrived_events(known, entries[i].events) : 0;
        ready += arrived != 0 && entries[i].revents == 0;
        entries[i].revents |= arrived;
    }
    return ready;
}

static void watch_by_ring(state_t *state, int descriptor, void *data) {
    struct io_uring_sqe *entry = hafti_io_uring_entry(state);
    io_uring_prep_poll_add(entry, descriptor, POLLIN);
    io_uring_sqe_set_data(entry, data);
}

static HAFTI_IO_COLD void watch_for_both(state_t *state) {
    if (!state->watches_waker)
        watch_by_ring(state, state->worker->waker, &woken);
    if (!state->watches_edges)
        watch_by_ring(state, state->worker->epoll, &edges);
    state->watches_waker = state->watches_edges = true;
}

static void completed(hafti_io_worker_t *worker, const struct io_uring_cqe *completion) {
    state_t *state = worker->backend_state;
    request_t *request = io_uring_cqe_get_data(completion);
    if ((void *)request == &ignored)
        return;
    if ((void *)request == &woken) {
        hafti_io_waker_reset(worker->waker);
        state->watches_waker = false;
        return;
    }
    if ((void *)request == &edges) {
        hafti_io_take_edges(worker, 0);
        state->watches_edges = false;
        return;
    }
    if (((uintptr_t)request & HAFTI_IO_OF_ARRIVALS) != 0) {
        hafti_io_arrived(state,
                         (arrivals_t *)((uintptr_t)request & ~(uintptr_t)HAFTI_IO_OF_ARRIVALS),
                         completion);
        return;
    }
    if (HAFTI_IO_UNLIKELY(((uintptr_t)request & HAFTI_IO_OF_SENDINGS) != 0)) {
        sending_failed(state, (sending_t *)((uintptr_t)request & ~(uintptr_t)HAFTI_IO_OF_SENDINGS),
                       completion->res);
        return;
    }
    request->result = completion->res;
    request->done = true;
    worker->waiting--;
    if (HAFTI_IO_UNLIKELY(worker->shared))
        request->waiter.cell->task->runner->stays--;
    hafti_io_cell_win(request->waiter.cell, HAFTI_IO_WOKEN);
}

/* ---- Completions ---- */

HAFTI_IO_HOT void hafti_io_uring_take_completions(state_t *state) {
    struct io_uring *ring = &state->ring;
    for (unsigned count; (count = io_uring_cq_ready(ring)) != 0;) {
        unsigned head = *ring->cq.khead;
        for (unsigned i = 0; i < count; i++)
            completed(state->worker, &ring->cq.cqes[(head + i) & ring->cq.ring_mask]);
        io_uring_cq_advance(ring, count);
    }
    /* The kernel keeps what had no room. */
    if (HAFTI_IO_LIKELY(io_uring_sq_ready(ring) == 0 && !io_uring_cq_has_overflow(ring)))
        settled(state);
}

static __attribute__((noinline)) int wait_until(state_t *state, int64_t nanoseconds) {
    struct __kernel_timespec limit = {nanoseconds / HAFT_IO_SECOND, nanoseconds % HAFT_IO_SECOND};
    struct io_uring_cqe *first;
    return io_uring_submit_and_wait_timeout(&state->ring, &first, 1, &limit, NULL);
}

static HAFTI_IO_HOT void poll_completions(hafti_io_worker_t *worker, int64_t nanoseconds) {
    state_t *state = worker->backend_state;
    int code;
    if (HAFTI_IO_UNLIKELY(state->accept_ended))
        hafti_io_stop_needless_arrivals(state);
    if (HAFTI_IO_UNLIKELY(!state->watches_waker || !state->watches_edges))
        watch_for_both(state);
    bool provides_many = hafti_io_provides_many(state);
    if (HAFTI_IO_UNLIKELY(provides_many) && (nanoseconds < 0 || nanoseconds > HAFT_IO_SECOND))
        nanoseconds = HAFT_IO_SECOND;
    if (nanoseconds < 0)
        code = io_uring_submit_and_wait(&state->ring, 1);
    else if (nanoseconds == 0)
        code = io_uring_submit_and_get_events(&state->ring);
    else
        code = wait_until(state, nanoseconds);
    hafti_io_uring_check(code);
    hafti_io_uring_take_completions(state);
    if (HAFTI_IO_UNLIKELY(provides_many))
        hafti_io_provide_no_more_than_needed(state);
}

/* A request names its descriptor by the number until the kernel has taken the request, which it
   does before the number becomes another file's. (In a shared run no thread closes the descriptor
   until then.) */
static int close_submitted(hafti_io_worker_t *worker, int descriptor) {
    state_t *state = worker->backend_state;
    hafti_io_descriptor_t *known =
        hafti_io_descriptor(worker->crew->descriptors, descriptor, false);
    if (!worker->shared && hafti_io_is_waited_on(worker->crew->descriptors, descriptor))
        while (io_uring_sq_ready(&state->ring) != 0)
            submit(state);
    if (known != NULL && known->arrivals != NULL) {
        hafti_io_wake(known, HAFTI_IO_INWARD, true,
                      false); /* before they are told of anything else */
        hafti_io_close_arrivals(state, known->arrivals);
    }
    return hafti_io_close_descriptor(worker, descriptor);
}

static void interrupt_ring(hafti_io_worker_t *worker) {
    hafti_io_waker_wake(worker->waker);
}

/* ---- A descriptor for the loop of another library ---- */

/*
 * The ring itself may have no number. The kernel writes to an eventfd, `signal`, when something is
 * complete; it need not do so where that is the wake of another eventfd, such as the worker's waker.
 * So `signals` is an epoll of both, and of the worker's own.
 */
static bool add_signal(const state_t *state, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN};
    return descriptor < 0 ||
           epoll_ctl(state->signals, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

static void end_signal(state_t *state) {
    if (state->signal >= 0) {
        hafti_io_uring_register(&state->ring, IORING_UNREGISTER_EVENTFD, NULL, 0);
        close(state->signal);
    }
    if (state->signals >= 0)
        close(state->signals);
    state->signal = state->signals = -1;
}

static int make_signal(state_t *state) {
    const hafti_io_worker_t *worker = state->worker;
    state->signals = HAFTI_IO_RESULT(epoll_create1(EPOLL_CLOEXEC));
    state->signal = HAFTI_IO_RESULT(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    int code = state->signal < 0 ? state->signal : state->signals < 0 ? state->signals : 0;
    if (code == 0)
        code = hafti_io_uring_register(&state->ring, IORING_REGISTER_EVENTFD, &state->signal, 1);
    if (code == 0 && (!add_signal(state, state->signal) || !add_signal(state, worker->waker) ||
                      !add_signal(state, worker->epoll)))
        code = -errno;
    if (code != 0)
        end_signal(state);
    return code;
}

/* It is made unreadable before a last look: what completes afterwards makes it readable again. */
static int descriptor_of_ring(const hafti_io_worker_t *worker) {
    state_t *state = worker->backend_state;
    uint64_t count;
    int code = state->signal < 0 ? make_signal(state) : 0;
    if (code != 0)
        return code;
    if (HAFTI_IO_RESULT(read(state->signal, &count, sizeof count)) < 0)
        count = 0;
    hafti_io_uring_check(io_uring_get_events(&state->ring));
    count = 1;
    if (io_uring_cq_ready(&state->ring) != 0 &&
        HAFTI_IO_RESULT(write(state->signal, &count, sizeof count)) < 0)
        count = 0;
    return state->signals;
}

/* The newest way of setting it up that the kernel takes. */
static int set_up(struct io_uring *ring) {
    static const unsigned ways[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
                                    IORING_SETUP_COOP_TASKRUN, 0};
    int code = -ENOSYS;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct io_uring_params parameters = {.flags = ways[i] | IORING_SETUP_CQSIZE,
                                             .cq_entries = COMPLETIONS};
        code = io_uring_queue_init_params(ENTRIES, ring, &parameters);
        if (code != -EINVAL)
            break;
    }
    if (code != 0)
        return code;
    /* Below that a wait with a limit takes an entry of its own, and completions may be lost. */
    const unsigned needed = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP;
    code = (ring->features & needed) == needed ? io_uring_get_events(ring) : -ENOSYS;
    if (!is_refusal(code))
        return 0;
    io_uring_queue_exit(ring);
    return code;
}

/* ---- The thread's ring ---- */

/*
 * Some time after a ring has gone the kernel interrupts the thread that has used it. A call that
 * the thread waits in then, and that no signal handler restarts, fails with EINTR: epoll_wait,
 * sigtimedwait, recv with a limit. So the thread that calls haft_io_run keeps its ring for its next
 * run, until it ends. Meanwhile the ring has no number that the program could see; it is known by
 * its index in the table that the kernel has for the thread (Linux 6.3). The rings of the other
 * threads end with these.
 */
static pthread_key_t kept;
static bool has_key;

enum { RINGS_BY_INDEX = 1U << 13 };   /* IORING_FEAT_REG_REG_RING */
#define OPERATION_BY_INDEX (1U << 31) /* IORING_REGISTER_USE_REGISTERED_RING */

static bool has_number(const struct io_uring *ring) {
    return ring->ring_fd >= 0;
}

static void give_up_number(struct io_uring *ring) {
    if (has_key && (ring->features & RINGS_BY_INDEX) != 0 && io_uring_register_ring_fd(ring) == 1) {
        close(ring->ring_fd);
        ring->ring_fd = -1;
    }
}

int hafti_io_uring_register(const struct io_uring *ring, unsigned operation, void *argument,
                            unsigned count) {
    return HAFTI_IO_RESULT(
        has_number(ring)
            ? (int)syscall(SYS_io_uring_register, ring->ring_fd, operation, argument, count)
            : (int)syscall(SYS_io_uring_register, ring->enter_ring_fd,
                           operation | OPERATION_BY_INDEX, argument, count));
}

static void state_free(void *value) {
    state_t *state = value;
    io_uring_queue_exit(&state->ring);
    hafti_io_free_provided(state->provided);
    free(state);
}

__attribute__((constructor)) static void make_key(void) {
    has_key = pthread_key_create(&kept, state_free) == 0;
}

/* Nothing that the kernel was asked for is left. */
static bool is_quiet(state_t *state) {
    if (state->watches_waker)
        hafti_io_uring_ask_back(state, &woken);
    if (state->watches_edges)
        hafti_io_uring_ask_back(state, &edges);
    while (state->watches_waker || state->watches_edges) {
        int code = io_uring_submit_and_wait(&state->ring, 1);
        if (code < 0 && code != -EINTR)
            return false;
        hafti_io_uring_take_completions(state);
    }
    return hafti_io_stop_providing(state);
}

static void stop_ring(hafti_io_worker_t *worker) {
    state_t *state = worker->backend_state;
    hafti_io_end_all_arrivals(state);
    end_signal(state);
    bool keeps = !has_number(&state->ring) && is_quiet(state);
    hafti_io_close_edges(worker);
    if (keeps) {
        hafti_io_free_provided(state->provided);
        state->provided = NULL;
        keeps = pthread_setspecific(kept, state) == 0;
    }
    if (!keeps)
        state_free(state);
}

/* NULL: the thread has none, or it is of no use: after a fork, or by a filter of system calls. */
static state_t *take_kept(void) {
    state_t *state = has_key ? pthread_getspecific(kept) : NULL;
    if (state == NULL)
        return NULL;
    pthread_setspecific(kept, NULL);
    if (state->process == getpid() && !is_refusal(io_uring_get_events(&state->ring)))
        return state;
    state_free(state);
    return NULL;
}

static int make(state_t **made, bool keeps) {
    *made = calloc(1, sizeof **made);
    if (*made == NULL)
        return -ENOMEM;
    int code = set_up(&(*made)->ring);
    if (code != 0)
        free(*made);
    else if (keeps)
        give_up_number(&(*made)->ring);
    return code;
}

static int start_ring(hafti_io_worker_t *worker) {
    bool keeps = worker->index == 0;
    state_t *state = keeps ? take_kept() : NULL;
    int code = state != NULL ? 0 : make(&state, keeps);
    if (code != 0)
        return code;
    *state = (state_t){
        .ring = state->ring,
        .process = getpid(),
        .signal = -1,
        .signals = -1,
        .worker = worker,
        /* Kernels before 6.1, which have not that, may forget how much of a send was made. */
        .sends_at_once = (state->ring.flags & IORING_SETUP_DEFER_TASKRUN) != 0};
    worker->backend_state = state;
    hafti_io_ring(&state->accepts);
    hafti_io_ring(&state->receives);
    code = hafti_io_open_edges(worker);
    if (code != 0)
        stop_ring(worker);
    return code;
}

const hafti_io_backend_t hafti_io_uring = {
    .name = "io_uring",
    .start = start_ring,
    .stop = stop_ring,
    .operate = operate_by_ring,
    .read_lent = hafti_io_uring_read_lent,
    .write = write_by_ring,
    .read = read_by_ring,
    .send_last = send_last_by_ring,
    .settle = settle_last,
    .watch = hafti_io_uring_watch,
    .close = close_submitted,
    .forget = hafti_io_forget_edges,
    .poll_several = poll_several_by_ring,
    .poll = poll_completions,
    .interrupt = interrupt_ring,
    .descriptor = descriptor_of_ring,
};
