/* SPDX-License-Identifier: MIT */
/*
 * The back end on epoll. An operation is tried first; only what would block waits, for an edge of its
 * descriptor, and is tried again. A descriptor is registered once, when it is first waited on, for
 * both directions, so a wait costs no system call of its own.
 *
 * No edge is missed: the task has tried before it waits, epoll is asked on the same thread afterwards,
 * and an edge that came between stays with epoll until then.
 *
 * What is registered is known by the descriptor's number. So the number's entry starts a new life when
 * the descriptor is closed here, and events of an earlier life, which carry its count, are ignored.
 */
#include "internal.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EVENTS_AT_ONCE = 128 };

typedef struct state {
    int epoll;
    int wake; /* an eventfd, by which other threads end a poll */
    haft_io_descriptors_t descriptors;
} state_t;

/* 0; -EPERM for what epoll does not watch. */
static int watch(state_t *state, haft_io_descriptor_t *entry, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET,
                                .data.u64 = (uint64_t)entry->life << 32 | (uint32_t)descriptor};
    if (epoll_ctl(state->epoll, EPOLL_CTL_ADD, descriptor, &event) != 0)
        return -errno;
    entry->registered = true;
    return 0;
}

/* ---- Files: always ready, and yet they may block ---- */

typedef struct in_pool {
    haft_io_operation_t *operation;
    ssize_t done;
} in_pool_t;

static void call_in_pool(void *argument) {
    in_pool_t *call = argument;
    call->done = haft_io_operate_blocking(call->operation);
}

static ssize_t operate_in_pool(haft_io_runner_t *runner, haft_io_operation_t *operation) {
    in_pool_t call = {operation, 0};
    int code = haft_io_pool_call(runner, call_in_pool, &call);
    return code == 0 ? call.done : code;
}

/* ---- The table ---- */

static ssize_t operate(haft_io_runner_t *runner, haft_io_operation_t *operation) {
    state_t *state = runner->worker->backend_state;
    for (;;) {
        ssize_t done = haft_io_attempt(operation);
        if (done != -EAGAIN)
            return done;
        haft_io_descriptor_t *entry =
            haft_io_descriptor(&state->descriptors, operation->descriptor, true);
        if (entry == NULL)
            return -ENOMEM;
        if (!entry->registered) {
            int code = watch(state, entry, operation->descriptor);
            if (code == -EPERM)
                return operate_in_pool(runner, operation);
            if (code != 0)
                return code;
        }
        int code = haft_io_wait_on(entry, operation, runner->task);
        if (code != 0)
            return code;
    }
}

static int close_descriptor(haft_io_worker_t *worker, int descriptor) {
    state_t *state = worker->backend_state;
    haft_io_descriptor_t *entry = haft_io_descriptor(&state->descriptors, descriptor, false);
    if (entry != NULL) {
        haft_io_wake(entry, HAFT_IO_INWARD, true);
        haft_io_wake(entry, HAFT_IO_OUTWARD, true);
        /* The file may be open by other numbers, and would stay registered. */
        if (entry->registered)
            epoll_ctl(state->epoll, EPOLL_CTL_DEL, descriptor, NULL);
        entry->registered = false;
        entry->life++;
    }
    return close(descriptor) == 0 ? 0 : -errno;
}

static void happened(state_t *state, const struct epoll_event *event) {
    int descriptor = (int)(uint32_t)event->data.u64;
    if (descriptor == state->wake) {
        uint64_t count;
        while (read(state->wake, &count, sizeof count) < 0 && errno == EINTR)
            continue;
        return;
    }
    haft_io_descriptor_t *entry = haft_io_descriptor(&state->descriptors, descriptor, false);
    if (entry == NULL || entry->life != (uint32_t)(event->data.u64 >> 32))
        return;
    const uint32_t end = EPOLLERR | EPOLLHUP;
    if ((event->events & (EPOLLIN | EPOLLPRI | EPOLLRDHUP | end)) != 0)
        haft_io_wake(entry, HAFT_IO_INWARD, false);
    if ((event->events & (EPOLLOUT | end)) != 0)
        haft_io_wake(entry, HAFT_IO_OUTWARD, false);
}

/* The system counts in milliseconds: a little late rather than often too early. */
static int milliseconds(int64_t nanoseconds) {
    if (nanoseconds < 0)
        return -1;
    int64_t rounded = (nanoseconds + HAFT_IO_MILLISECOND - 1) / HAFT_IO_MILLISECOND;
    return rounded < INT32_MAX ? (int)rounded : INT32_MAX;
}

static int wait_for_events(int epoll, struct epoll_event *events, int64_t nanoseconds) {
#ifdef SYS_epoll_pwait2
    static bool unknown; /* to a kernel before 5.11 */
    if (nanoseconds > 0 && !__atomic_load_n(&unknown, __ATOMIC_RELAXED)) {
        struct timespec limit = {nanoseconds / HAFT_IO_SECOND, nanoseconds % HAFT_IO_SECOND};
        int count = (int)syscall(SYS_epoll_pwait2, epoll, events, EVENTS_AT_ONCE, &limit, NULL, 0);
        if (count >= 0 || errno != ENOSYS)
            return count;
        __atomic_store_n(&unknown, true, __ATOMIC_RELAXED);
    }
#endif
    return epoll_wait(epoll, events, EVENTS_AT_ONCE, milliseconds(nanoseconds));
}

static void poll_events(haft_io_worker_t *worker, int64_t nanoseconds) {
    state_t *state = worker->backend_state;
    struct epoll_event events[EVENTS_AT_ONCE];
    int count = wait_for_events(state->epoll, events, nanoseconds);
    for (int i = 0; i < count; i++)
        happened(state, &events[i]);
}

static void interrupt(haft_io_worker_t *worker) {
    state_t *state = worker->backend_state;
    uint64_t one = 1;
    while (write(state->wake, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

static void stop(haft_io_worker_t *worker) {
    state_t *state = worker->backend_state;
    if (state->epoll >= 0)
        close(state->epoll);
    if (state->wake >= 0)
        close(state->wake);
    haft_io_descriptors_free(&state->descriptors);
    free(state);
}

static int start(haft_io_worker_t *worker) {
    state_t *state = calloc(1, sizeof *state);
    if (state == NULL)
        return -ENOMEM;
    worker->backend_state = state;
    state->epoll = epoll_create1(EPOLL_CLOEXEC);
    state->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = (uint32_t)state->wake};
    if (state->epoll >= 0 && state->wake >= 0 &&
        epoll_ctl(state->epoll, EPOLL_CTL_ADD, state->wake, &event) == 0)
        return 0;
    int code = -errno;
    stop(worker);
    return code;
}

const haft_io_backend_t haft_io_epoll = {
    .name = "epoll",
    .start = start,
    .stop = stop,
    .operate = operate,
    .close = close_descriptor,
    .poll = poll_events,
    .interrupt = interrupt,
};
