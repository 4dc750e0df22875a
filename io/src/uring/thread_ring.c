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
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

typedef hafti_io_uring_state_t state_t;

enum { ENTRIES = 256 };

static pthread_key_t kept;
static bool has_key;

enum { RINGS_BY_INDEX = 1U << 13 }; /* IORING_FEAT_REG_REG_RING */

/* Sets the ring up in the newest way that the kernel accepts. */
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

/* ---- A descriptor for the loop of another library ---- */

/*
 * The ring itself may have no number. The kernel writes to an eventfd, `signal`, when something is
 * complete; it need not do so where that is the wake of another eventfd, such as the worker's
 * waker. So `signals` is an epoll of both, and of the worker's own.
 */
static bool add_signal(const state_t *state, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN};
    return descriptor < 0 || epoll_ctl(state->signals, EPOLL_CTL_ADD, descriptor, &event) == 0;
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
int hafti_io_uring_descriptor(const hafti_io_worker_t *worker) {
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

/* ---- Beginning and end of a run ---- */

/* Whether no request to the kernel is left. */
static bool is_quiet(state_t *state) {
    return hafti_io_uring_unwatch_both(state) && hafti_io_stop_providing(state);
}

void hafti_io_uring_stop(hafti_io_worker_t *worker) {
    state_t *state = worker->backend_state;
    hafti_io_end_all_arrivals(state);
    end_signal(state);
    bool keeps = !hafti_io_uring_has_number(&state->ring) && is_quiet(state);
    hafti_io_close_edges(worker);
    if (keeps) {
        hafti_io_free_provided(state->provided);
        state->provided = NULL;
        /* Each run in steps has a ring of its own. */
        keeps = pthread_getspecific(kept) == NULL && pthread_setspecific(kept, state) == 0;
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
        .signal = -1,
        .signals = -1,
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
