/* SPDX-License-Identifier: MIT */
/*
 * The back end on io_uring, through liburing. A receive is submitted to the kernel at once, since
 * most often nothing has come yet; the kernel takes all requests in one system call, the one that
 * waits. Operations that most often can be done at once (sending, accepting) are tried first, and
 * wait for the descriptor to be ready if they cannot. When one poll wakes several tasks, their
 * sends are queued and submitted together.
 *
 * In a run that is alone connections, and the bytes of TCP connections, are asked for once, and
 * arrive by themselves (arrivals.c).
 *
 *   uring.c        operations, and what the scheduler calls
 *   thread_ring.c  the rings of threads: how one is set up, kept, given back
 *   arrivals.c     what arrives by itself
 *   providing.c    the memory for that
 *   asking.c       a request of a task, and how it is asked back
 *   ring.c         the ring itself: room, submission, completions
 */
#include "../backends.h"
#include "uring.h"

#include <poll.h>
#include <stdlib.h>

typedef hafti_io_uring_request_t request_t;
typedef hafti_io_sending_t sending_t;
typedef hafti_io_uring_state_t state_t;

/* Whether other tasks are likely to send, too: the same poll has woken them, and they go on after
   this one; or requests are queued already. One system call then submits all of their sends. */
static bool others_send(const hafti_io_worker_t *worker) {
    const state_t *state = worker->backend_state;
    return !hafti_io_ring_empty(&worker->polled) || io_uring_sq_ready(&state->ring) != 0;
}
/* Whether the next poll comes soon: queued sends leave with it, and it would wait for the turn of a
   task that computes. */
static bool polls_soon(const hafti_io_worker_t *worker) {
    return worker->unlooked != 1; /* a turn takes less than the time between two polls */
}
/* False if the result would differ from that of a send that is tried. */
static bool sends_with_others(const hafti_io_runner_t *runner, int flags) {
    return others_send(runner->worker) && polls_soon(runner->worker) &&
           (flags & ~MSG_NOSIGNAL) == 0 && !hafti_io_is_withdrawn(runner);
}

/* Operations that the kernel does itself; all others are tried, and waited for by poll. */
static bool kernel_does(const hafti_io_runner_t *runner, const hafti_io_operation_t *o,
                        int nature) {
    if (nature == HAFTI_IO_SOCKET && o->address == NULL && o->size != 0)
        return hafti_io_uring_sends(o)
                   ? sends_with_others(runner, o->flags)
                   : !hafti_io_uring_is_crowded(runner->worker) && !hafti_io_is_withdrawn(runner) &&
                         (o->kind == HAFTI_IO_RECEIVE || o->kind == HAFTI_IO_READ);
    return nature == HAFTI_IO_FILE && (o->kind == HAFTI_IO_READ || o->kind == HAFTI_IO_WRITE);
}

/* ---- Operations ---- */

/* Returns the events with which the kernel has ended a wait, so that poll(2) need not be asked
   again; or 0. (After an error or a hang-up the kernel may give the event that woke it, which is
   not always what holds: a listener that was shut down gives POLLERR, and poll(2) POLLHUP.) */
static short awaited_events(const hafti_io_operation_t *operation, int ready) {
    bool holds = ready > 0 && (ready & (POLLERR | POLLHUP)) == 0;
    return operation->kind == HAFTI_IO_POLL && holds ? (short)(ready & operation->flags) : 0;
}

static ssize_t operate_on(hafti_io_runner_t *runner, hafti_io_descriptor_t *known,
                          hafti_io_operation_t *operation) {
    if (hafti_io_uring_nature(known) == HAFTI_IO_UNKNOWN)
        hafti_io_uring_learn_nature(known, operation->descriptor);
    if (operation->kind == HAFTI_IO_ACCEPT || operation->kind == HAFTI_IO_READ_LENT)
        return hafti_io_take_arrival(runner, known, operation);
    if (known->arrivals != NULL && hafti_io_events_of(operation) != POLLOUT) {
        ssize_t done = hafti_io_use_arrivals(runner->worker->backend_state, known, operation);
        if (done != -EAGAIN)
            return done;
    }
    if (hafti_io_must_not_wait(operation))
        return hafti_io_attempt(operation);
    uint8_t nature = hafti_io_uring_nature(known);
    if (kernel_does(runner, operation, nature)) {
        ssize_t done;
        do
            done = hafti_io_uring_ask(runner, known, operation, nature);
        while (done == -EINTR);
        if (done > 0 && !hafti_io_uring_sends(operation))
            HAFTI_IO_TELL_VALGRIND(DEFINED, operation->buffer, (size_t)done);
        /* There is no room, the descriptor is non-blocking, or it is another file by now. */
        if (done != -EAGAIN && done != -ENOTSOCK)
            return done;
        hafti_io_uring_learn_nature(known, operation->descriptor);
    }
    for (unsigned turn = 0;;) {
        ssize_t done = hafti_io_uring_attempt(known, operation, turn);
        if (done == -EAGAIN) {
            int ready = hafti_io_uring_await(runner, known, operation, turn++);
            done = awaited_events(operation, ready);
            if (done != 0)
                return done;
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
        io_uring_prep_recv(entry, descriptor, buffer, hafti_io_uring_at_once(size), 0);
    else
        hafti_io_uring_prepare_send(entry, descriptor, buffer, size);
    hafti_io_uring_begin(task, entry, &request);
    hafti_io_wait_here(&cell, HAFTI_IO_CANCELLABLE, HAFT_IO_FOREVER, is_read ? "read" : "write");
    hafti_io_delist_first(&request.waiter, direction);
    return hafti_io_uring_answer(&request, task, is_read ? HAFTI_IO_READ : HAFTI_IO_WRITE,
                                 HAFTI_IO_SOCKET);
}
static inline bool is_done_otherwise(ssize_t done) {
    return done == -EAGAIN || done == -ENOTSOCK || done == -EINTR;
}

static HAFTI_IO_HOT __attribute__((noinline)) ssize_t
read_by_ring(hafti_io_runner_t *runner, enum hafti_io_kind kind, int descriptor, const void *buffer,
             size_t size) {
    hafti_io_descriptor_t *known =
        hafti_io_known_descriptor(runner->worker->crew->descriptors, descriptor);
    if (HAFTI_IO_UNLIKELY(known == NULL) || hafti_io_uring_nature(known) != HAFTI_IO_SOCKET ||
        known->arrivals != NULL || hafti_io_is_closing(known) ||
        !hafti_io_ring_empty(&known->waiters[HAFTI_IO_INWARD]) || size == 0 ||
        hafti_io_uring_is_crowded(runner->worker) || hafti_io_is_withdrawn(runner))
        return hafti_io_transfer_generally(runner, kind, descriptor, buffer, size);
    ssize_t done =
        ask_alone(runner, known, descriptor, (void *)(uintptr_t)buffer, size, HAFTI_IO_INWARD);
    if (HAFTI_IO_LIKELY(done > 0))
        HAFTI_IO_TELL_VALGRIND(DEFINED, buffer, (size_t)done);
    return HAFTI_IO_LIKELY(!is_done_otherwise(done))
               ? done
               : hafti_io_transfer_generally(runner, kind, descriptor, buffer, size);
}

static HAFTI_IO_HOT __attribute__((noinline)) ssize_t
write_by_ring(hafti_io_runner_t *runner, enum hafti_io_kind kind, int descriptor,
              const void *buffer, size_t size) {
    hafti_io_descriptor_t *known =
        hafti_io_known_descriptor(runner->worker->crew->descriptors, descriptor);
    if (HAFTI_IO_UNLIKELY(known == NULL) || hafti_io_uring_nature(known) != HAFTI_IO_SOCKET ||
        hafti_io_is_closing(known) || !hafti_io_ring_empty(&known->waiters[HAFTI_IO_OUTWARD]) ||
        !sends_with_others(runner, 0))
        return hafti_io_transfer_generally(runner, kind, descriptor, buffer, size);
    ssize_t done =
        ask_alone(runner, known, descriptor, (void *)(uintptr_t)buffer, size, HAFTI_IO_OUTWARD);
    if (HAFTI_IO_UNLIKELY(is_done_otherwise(done)))
        return hafti_io_transfer_generally(runner, kind, descriptor, buffer, size);
    return HAFTI_IO_LIKELY(done != -EPIPE) ? done : hafti_io_why_broken(known);
}

static HAFTI_IO_HOT ssize_t transfer_by_ring(hafti_io_runner_t *runner, enum hafti_io_kind kind,
                                             int descriptor, const void *buffer, size_t size) {
    return kind == HAFTI_IO_READ_LENT
               ? hafti_io_uring_read_lent(runner, kind, descriptor, buffer, size)
           : kind == HAFTI_IO_WRITE ? write_by_ring(runner, kind, descriptor, buffer, size)
                                    : read_by_ring(runner, kind, descriptor, buffer, size);
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

static HAFTI_IO_COLD void settle(state_t *state) {
    for (uint64_t before = state->settled; state->settled == before;)
        hafti_io_uring_look(state);
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
        hafti_io_uring_begin(cell->task, entry, &requests[i]);
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
        hafti_io_uring_await_answer(&requests[i], &requests[i], task, HAFTI_IO_POLL);
}

static int await_several(hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                         int64_t deadline, unsigned turn) {
    if (turn != 0 || hafti_io_uring_is_crowded(runner->worker))
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
        hafti_io_uring_watch_both(state);
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
            hafti_io_uring_submit(state);
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

const hafti_io_backend_t hafti_io_uring = {
    .name = "io_uring",
    .start = hafti_io_uring_start,
    .stop = hafti_io_uring_stop,
    .operate = operate_by_ring,
    .transfer = transfer_by_ring,
    .send_last = send_last_by_ring,
    .settle = settle_last,
    .watch = hafti_io_uring_watch,
    .close = close_submitted,
    .forget = hafti_io_forget_edges,
    .poll_several = poll_several_by_ring,
    .poll = poll_completions,
    .interrupt = interrupt_ring,
    .descriptor = hafti_io_uring_descriptor,
};
