/* SPDX-License-Identifier: MIT */
/*
 * The rings of threads: how one is set up, kept, and given back.
 *
 * Some time after a ring has gone the kernel interrupts the thread that has used it. A call that
 * the thread waits in then, and that no signal handler restarts, fails with EINTR: epoll_wait,
 * sigtimedwait, recv with a limit. So the thread that calls haft_io_run keeps its ring for its next
 * run, until it ends. Meanwhile the ring has no number that the program could see; it is known by
 * its index in the table that the kernel has for the thread (Linux 6.3). The rings of the other
 * threads end with these.
 */
#include "../backends.h"
#include "uring.h"

#include <stdlib.h>
#include <unistd.h>

typedef hafti_io_uring_state_t state_t;

enum { ENTRIES = 256 };

static pthread_key_t kept;
static bool has_key;

enum { RINGS_BY_INDEX = 1U << 13 }; /* IORING_FEAT_REG_REG_RING */

/* The newest way of setting it up that the kernel takes. */
static int set_up(struct io_uring *ring) {
    static const unsigned ways[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
                                    IORING_SETUP_COOP_TASKRUN, 0};
    int code = -ENOSYS;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct io_uring_params parameters = {.flags = ways[i] | IORING_SETUP_CQSIZE,
                                             .cq_entries = HAFTI_IO_COMPLETIONS};
        code = io_uring_queue_init_params(ENTRIES, ring, &parameters);
        if (code != -EINVAL)
            break;
    }
    if (code != 0)
        return code;
    /* Below that a wait with a limit takes an entry of its own, and completions may be lost. */
    const unsigned needed = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP;
    code = (ring->features & needed) == needed ? io_uring_get_events(ring) : -ENOSYS;
    if (!hafti_io_uring_is_refusal(code))
        return 0;
    io_uring_queue_exit(ring);
    return code;
}

static void give_up_number(struct io_uring *ring) {
    if (has_key && (ring->features & RINGS_BY_INDEX) != 0 && io_uring_register_ring_fd(ring) == 1) {
        close(ring->ring_fd);
        ring->ring_fd = -1;
    }
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
    return hafti_io_uring_unwatch_both(state) && hafti_io_stop_providing(state);
}

void hafti_io_uring_stop(hafti_io_worker_t *worker) {
    state_t *state = worker->backend_state;
    hafti_io_end_all_arrivals(state);
    bool keeps = !hafti_io_uring_has_number(&state->ring) && is_quiet(state);
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
    if (state->process == getpid() && !hafti_io_uring_is_refusal(io_uring_get_events(&state->ring)))
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

int hafti_io_uring_start(hafti_io_worker_t *worker) {
    bool keeps = worker->index == 0;
    state_t *state = keeps ? take_kept() : NULL;
    int code = state != NULL ? 0 : make(&state, keeps);
    if (code != 0)
        return code;
    *state = (state_t){
        .ring = state->ring,
        .process = getpid(),
        .worker = worker,
        .arrived = hafti_io_arrived,
        /* Kernels before 6.1, which have not that, may forget how much of a send was made. */
        .sends_at_once = (state->ring.flags & IORING_SETUP_DEFER_TASKRUN) != 0};
    worker->backend_state = state;
    hafti_io_ring(&state->accepts);
    hafti_io_ring(&state->receives);
    code = hafti_io_open_edges(worker);
    if (code != 0)
        hafti_io_uring_stop(worker);
    return code;
}
