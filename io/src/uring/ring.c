/* SPDX-License-Identifier: MIT */
/*
 * A worker's ring of io_uring: room for requests, their submission, and the completions, each of
 * which wakes a waiter. The files above make the requests, and give each its data, by which its
 * completion is known.
 *
 *   data                 | the completion is of
 *   &woken, &edges       | the worker's waker, or its epoll, which is readable
 *   &ignored             | a request that was only to cancel another
 *   OF_ARRIVALS          | arrivals.c, by `state->arrived`
 *   OF_SENDINGS          | a send before a rest, which has failed (uring.c)
 *   no mark              | a request in the frame of a task that waits (asking.c)
 */
#include "../backends.h"
#include "uring.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef hafti_io_uring_state_t state_t;
typedef hafti_io_sending_t sending_t;
typedef hafti_io_arrivals_t arrivals_t;

/* Completions without a waiting request. */
static int woken, edges, ignored;

bool hafti_io_uring_is_refusal(int code) {
    return hafti_io_is_missing(code) || code == -EACCES;
}

void hafti_io_uring_check(int code) {
    if (HAFTI_IO_UNLIKELY(hafti_io_uring_is_refusal(code)))
        hafti_io_misuse("The system refuses io_uring to a run that has begun with it (%s): use "
                        "HAFT_IO_BACKEND=epoll, or filter system calls before the run.",
                        strerror(-code));
}

void hafti_io_uring_look(state_t *state) {
    hafti_io_uring_check(io_uring_submit_and_get_events(&state->ring));
    hafti_io_uring_take_completions(state);
}

/* The kernel takes no more while it keeps completions that had no room. */
void hafti_io_uring_submit(state_t *state) {
    int code = io_uring_submit(&state->ring);
    hafti_io_uring_check(code);
    if (code < 0)
        hafti_io_uring_take_completions(state);
}

struct io_uring_sqe *hafti_io_uring_next_entry(state_t *state) {
    struct io_uring_sqe *entry;
    do {
        hafti_io_uring_submit(state);
        entry = io_uring_get_sqe(&state->ring);
    } while (entry == NULL);
    return entry;
}

void hafti_io_uring_ask_back(state_t *state, void *data) {
    struct io_uring_sqe *entry = hafti_io_uring_entry(state);
    io_uring_prep_cancel(entry, data, 0);
    io_uring_sqe_set_data(entry, &ignored);
}

/* OPERATION_BY_INDEX: for a ring that has an index and no descriptor (thread_ring.c). */
#define OPERATION_BY_INDEX (1U << 31) /* IORING_REGISTER_USE_REGISTERED_RING */

int hafti_io_uring_register(const struct io_uring *ring, unsigned operation, void *argument,
                            unsigned count) {
    return HAFTI_IO_RESULT(
        hafti_io_uring_has_number(ring)
            ? (int)syscall(SYS_io_uring_register, ring->ring_fd, operation, argument, count)
            : (int)syscall(SYS_io_uring_register, ring->enter_ring_fd,
                           operation | OPERATION_BY_INDEX, argument, count));
}

/* ---- The worker's waker, and its epoll ---- */

static void watch_by_ring(state_t *state, int descriptor, void *data) {
    struct io_uring_sqe *entry = hafti_io_uring_entry(state);
    io_uring_prep_poll_add(entry, descriptor, POLLIN);
    io_uring_sqe_set_data(entry, data);
}

HAFTI_IO_COLD void hafti_io_uring_watch_both(state_t *state) {
    if (!state->watches_waker)
        watch_by_ring(state, state->worker->waker, &woken);
    if (!state->watches_edges)
        watch_by_ring(state, state->worker->epoll, &edges);
    state->watches_waker = state->watches_edges = true;
}

bool hafti_io_uring_unwatch_both(state_t *state) {
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
    return true;
}

/* ---- Completions ---- */

/* Called when every request was answered. */
static void settled(state_t *state) {
    state->settled++;
    for (unsigned i = 0; i < state->lent_count; i++)
        if (HAFTI_IO_LIKELY(state->lent[i] != NULL))
            hafti_io_take_back(state->lent[i]);
    state->lent_count = 0;
}

static HAFTI_IO_COLD void sending_failed(state_t *state, sending_t *sending, int result) {
    sending->failed = true;
    sending->result = result;
    state->lent[sending->place] = NULL;
    hafti_io_cell_win(sending->cell, HAFTI_IO_WOKEN);
}

static void completed(hafti_io_worker_t *worker, const struct io_uring_cqe *completion) {
    state_t *state = worker->backend_state;
    hafti_io_uring_request_t *request = io_uring_cqe_get_data(completion);
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
        state->arrived(state, (arrivals_t *)((uintptr_t)request & ~(uintptr_t)HAFTI_IO_OF_ARRIVALS),
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
