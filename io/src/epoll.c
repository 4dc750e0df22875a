/* SPDX-License-Identifier: MIT */
/*
 * The back end on epoll. An operation is tried first; only what would block waits, for an edge of
 * its descriptor, and is tried again. A descriptor is registered once by each thread, when it first
 * waits on it, for both directions, so a wait costs no system call of its own.
 *
 * The back end on io_uring waits for edges, too, where its own wait has ended in vain
 * (hafti_io_await_edge).
 *
 * A read of a TCP connection that got nothing, or fewer bytes than it asked for, has drained the
 * socket: the next read waits for an edge without trying, unless something has come that causes no
 * edge of its own after such a read (the end, an error, urgent data), or it is not to wait. A rest
 * then needs no epoll_ctl to learn of bytes that were there before.
 *
 * Registrations are identified by the descriptor's number. So the number's entry starts a new life
 * when the descriptor is closed here, and events of an earlier life, which carry that life's count,
 * are ignored.
 */
#include "backends.h"
#include "alone.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EVENTS_AT_ONCE = 128 };

enum { EVERYTHING = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI };

static struct epoll_event event_of(uint32_t life, int descriptor, uint32_t events) {
    return (struct epoll_event){.events = events | EPOLLET,
                                .data.u64 = (uint64_t)life << 32 | (uint32_t)descriptor};
}

static int add(int epoll, int descriptor, uint32_t life, uint32_t events) {
    struct epoll_event event = event_of(life, descriptor, events);
    return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 ? 0 : -errno;
}

static void set_left(hafti_io_descriptor_t *entry, enum hafti_io_left left) {
    __atomic_store_n(&entry->left, (uint8_t)left, __ATOMIC_RELAXED);
}

/* Registers the descriptor. 0; -EPERM if epoll cannot watch it. */
static int watch_descriptor(const hafti_io_worker_t *worker, hafti_io_descriptor_t *entry,
                            int descriptor) {
    uint64_t bit = UINT64_C(1) << worker->index;
    if ((__atomic_load_n(&entry->registered, __ATOMIC_RELAXED) & bit) != 0)
        return 0;
    int code = hafti_io_begin_to_wait_on(entry, descriptor);
    if (code != 0)
        return code;
    uint32_t life = __atomic_load_n(&entry->life, __ATOMIC_RELAXED);
    code = add(worker->epoll, descriptor, life, EVERYTHING);
    if (code != 0)
        return code;
    if (__atomic_fetch_or(&entry->registered, bit, __ATOMIC_RELAXED) == 0)
        set_left(entry, hafti_io_is_tcp(descriptor) ? HAFTI_IO_UNLESS_FEWER : HAFTI_IO_MAYBE);
    return 0;
}

/* The same if the number may have become another file's since it was registered; readiness at that
   time counts as an edge. */
static int watch_again(const hafti_io_worker_t *worker, hafti_io_descriptor_t *entry,
                       int descriptor) {
    struct epoll_event event =
        event_of(__atomic_load_n(&entry->life, __ATOMIC_RELAXED), descriptor, EVERYTHING);
    uint64_t bit = UINT64_C(1) << worker->index;
    int saved = errno;
    if (epoll_ctl(worker->epoll, EPOLL_CTL_MOD, descriptor, &event) == 0) {
        set_left(entry, HAFTI_IO_MAYBE);
        __atomic_fetch_or(&entry->registered, bit, __ATOMIC_RELAXED);
        return 0;
    }
    if (errno != ENOENT)
        return -errno;
    errno = saved;
    __atomic_fetch_and(&entry->registered, ~bit, __ATOMIC_RELAXED);
    return watch_descriptor(worker, entry, descriptor);
}

/* ---- Waiting for an edge ---- */

int hafti_io_await_edge(hafti_io_runner_t *runner, hafti_io_descriptor_t *entry,
                        const hafti_io_operation_t *operation, unsigned turn) {
    int code = turn == 1 ? watch_again(runner->worker, entry, operation->descriptor)
                         : watch_descriptor(runner->worker, entry, operation->descriptor);
    if (code == -EPERM && operation->kind != HAFTI_IO_POLL)
        return HAFTI_IO_MAY_WAIT;
    /* A file that is not ready for the requested events never becomes so: only a cancel or a close
       ends the wait. */
    if (code == -EPERM)
        code = 0;
    return code == 0 ? hafti_io_wait_on(entry, operation, runner->task) : code;
}

/* ---- The table ---- */

/* How many bytes a read asks for that may tell by their number whether some are left; 0: another
   operation. */
static size_t asked_for(const hafti_io_operation_t *operation) {
    switch (operation->kind) {
    case HAFTI_IO_READ:
        return operation->size;
    case HAFTI_IO_READ_LENT:
        return HAFT_IO_LENT_SIZE;
    case HAFTI_IO_RECEIVE:
        return (operation->flags & ~MSG_DONTWAIT) == 0 ? operation->size : 0;
    default:
        return 0;
    }
}

/* Whether this worker gets all its edges, and no other does. */
static bool is_only_here(const hafti_io_worker_t *worker, const hafti_io_descriptor_t *entry) {
    return __atomic_load_n(&entry->registered, __ATOMIC_RELAXED) == UINT64_C(1) << worker->index;
}

static bool is_left(const hafti_io_worker_t *worker, const hafti_io_descriptor_t *entry,
                    enum hafti_io_left left) {
    return __atomic_load_n(&entry->left, __ATOMIC_RELAXED) == left && is_only_here(worker, entry);
}

/* Notes what a read has got of the bytes that it asked for (0: it is no such read). */
static inline void note_read(const hafti_io_worker_t *worker, hafti_io_descriptor_t *entry,
                             size_t asked, ssize_t got) {
    bool drains = (got > 0 && (size_t)got < asked) || (got == -EAGAIN && asked != 0);
    if (HAFTI_IO_LIKELY(drains && is_left(worker, entry, HAFTI_IO_UNLESS_FEWER)))
        set_left(entry, HAFTI_IO_NONE);
}

static ssize_t operate_by_epoll(hafti_io_runner_t *runner, hafti_io_operation_t *operation) {
    hafti_io_descriptor_t *entry =
        hafti_io_descriptor(runner->worker->crew->descriptors, operation->descriptor, true);
    if (HAFTI_IO_UNLIKELY(entry == NULL))
        return hafti_io_without_entry(operation->descriptor);
    size_t asked = asked_for(operation);
    /* A task that is not to wait would otherwise never get what has come since the last poll. */
    bool tries = asked == 0 || !is_left(runner->worker, entry, HAFTI_IO_NONE) ||
                 hafti_io_must_not_wait(operation) || hafti_io_is_withdrawn(runner);
    for (unsigned turn = 0;; turn++, tries = true) {
        ssize_t done = tries ? hafti_io_attempt(operation) : -EAGAIN;
        note_read(runner->worker, entry, asked, done);
        if (done == -EAGAIN && hafti_io_must_not_wait(operation))
            return done;
        if (done == -EAGAIN && (turn != 0 || __atomic_load_n(&entry->ended, __ATOMIC_RELAXED)))
            done = hafti_io_attempt_at_end(operation);
        if (done == -EAGAIN) {
            int code = hafti_io_await_edge(runner, entry, operation, 0);
            if (code == 0)
                continue;
            done = code;
        }
        if (done == HAFTI_IO_MAY_WAIT)
            done = hafti_io_operate_in_pool(runner, operation);
        if (done != HAFTI_IO_MAY_WAIT)
            return done;
    }
}

/* ---- The same in a run that is alone, for the most frequent ---- */

/* Whether the general path has to go on. (-EAGAIN: nothing has come, so it waits.) */
static inline bool is_left_open(ssize_t got) {
    return got == -EAGAIN || got == -EINTR || got == -ENOTSOCK;
}
static inline ssize_t receive(const hafti_io_worker_t *worker, int descriptor, void *buffer,
                              size_t size) {
    int saved = *worker->error;
    ssize_t got = recv(descriptor, buffer, size, MSG_DONTWAIT);
    if (HAFTI_IO_LIKELY(got >= 0))
        return got;
    int code = -*worker->error;
    *worker->error = saved;
    return code;
}
static inline ssize_t receive_lent(hafti_io_worker_t *worker, int descriptor, const void **bytes) {
    hafti_io_lent_t *block = hafti_io_lend_block(worker);
    if (HAFTI_IO_UNLIKELY(block == NULL))
        return -ENOMEM;
    ssize_t got = receive(worker, descriptor, block->bytes, HAFT_IO_LENT_SIZE);
    block->from = 0;
    if (HAFTI_IO_LIKELY(got > 0))
        *bytes = block->bytes;
    else
        hafti_io_take_back(block);
    return got;
}

/* Whether epoll's events suffice to know if something is left, and no other task waits. */
static bool may_be_short(const hafti_io_worker_t *worker, const hafti_io_descriptor_t *entry) {
    return __atomic_load_n(&entry->left, __ATOMIC_RELAXED) != HAFTI_IO_MAYBE &&
           is_only_here(worker, entry) && !__atomic_load_n(&entry->ended, __ATOMIC_RELAXED) &&
           hafti_io_ring_empty(&entry->waiters[HAFTI_IO_INWARD]);
}

/* Where the read before has drained the connection, waits for the next edge. */
static inline int wait_if_drained(hafti_io_runner_t *runner, hafti_io_descriptor_t *entry) {
    if (!is_left(runner->worker, entry, HAFTI_IO_NONE))
        return 0;
    hafti_io_cell_t cell = {HAFTI_IO_WAITING, runner->task};
    hafti_io_waiter_t waiter;
    return hafti_io_wait_to_read(entry, &waiter, &cell);
}

static HAFTI_IO_HOT __attribute__((noinline)) ssize_t
read_by_epoll(hafti_io_runner_t *runner, enum hafti_io_kind kind, int descriptor,
              const void *buffer, size_t size) {
    hafti_io_worker_t *worker = runner->worker;
    void *into = (void *)(uintptr_t)buffer;
    bool lends = kind == HAFTI_IO_READ_LENT;
    size_t asked = lends ? HAFT_IO_LENT_SIZE : size;
    hafti_io_descriptor_t *entry = hafti_io_known_descriptor(worker->crew->descriptors, descriptor);
    if (HAFTI_IO_UNLIKELY(entry == NULL || !may_be_short(worker, entry) || asked == 0 ||
                          hafti_io_is_withdrawn(runner)))
        return hafti_io_transfer_generally(runner, kind, descriptor, buffer, size);
    int code = wait_if_drained(runner, entry);
    if (HAFTI_IO_UNLIKELY(code != 0))
        return code;
    ssize_t got =
        lends ? receive_lent(worker, descriptor, into) : receive(worker, descriptor, into, size);
    note_read(worker, entry, asked, got);
    return HAFTI_IO_UNLIKELY(is_left_open(got))
               ? hafti_io_transfer_generally(runner, kind, descriptor, buffer, size)
               : got;
}

static HAFTI_IO_HOT ssize_t transfer_by_epoll(hafti_io_runner_t *runner, enum hafti_io_kind kind,
                                              int descriptor, const void *buffer, size_t size) {
    return kind == HAFTI_IO_WRITE ? hafti_io_write_at_once(runner, kind, descriptor, buffer, size)
                                  : read_by_epoll(runner, kind, descriptor, buffer, size);
}

/* Data that was there before causes an edge only by a call of epoll_ctl. */
static bool watch_by_epoll(hafti_io_worker_t *worker, hafti_io_descriptor_t *entry,
                           int descriptor) {
    if (is_left(worker, entry, HAFTI_IO_NONE))
        return true;
    uint64_t bit = UINT64_C(1) << worker->index;
    if ((__atomic_load_n(&entry->registered, __ATOMIC_RELAXED) & bit) == 0)
        return watch_descriptor(worker, entry, descriptor) == 0;
    struct epoll_event event =
        event_of(__atomic_load_n(&entry->life, __ATOMIC_RELAXED), descriptor, EVERYTHING);
    return epoll_ctl(worker->epoll, EPOLL_CTL_MOD, descriptor, &event) == 0;
}

/* ---- What happens ---- */

/* Unregisters the file, which would stay registered while it is open by other numbers. */
void hafti_io_forget_edges(hafti_io_worker_t *worker, int descriptor) {
    epoll_ctl(worker->epoll, EPOLL_CTL_DEL, descriptor, NULL);
}

static hafti_io_descriptor_t *find(hafti_io_worker_t *worker, int descriptor) {
    return hafti_io_descriptor(worker->crew->descriptors, descriptor, false);
}

int hafti_io_await_edges(hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                         int64_t deadline, unsigned turn) {
    hafti_io_worker_t *worker = runner->worker;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].fd < 0)
            continue;
        hafti_io_descriptor_t *entry =
            hafti_io_descriptor(worker->crew->descriptors, entries[i].fd, true);
        int code = entry == NULL ? -ENOMEM
                   : turn <= 1   ? watch_again(worker, entry, entries[i].fd)
                                 : watch_descriptor(worker, entry, entries[i].fd);
        if (code == -EBADF) { /* It was closed after poll(2) had been asked. */
            entries[i].revents = POLLNVAL;
            return 1;
        }
        if (code != 0 && code != -EPERM)
            return code;
    }
    return hafti_io_wait_on_several(find, runner, entries, count, deadline);
}

static int poll_several_by_epoll(hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                                 int64_t deadline, unsigned turn) {
    return hafti_io_poll_by(hafti_io_await_edges, runner, entries, count, deadline, turn);
}

static HAFTI_IO_HOT __attribute__((noinline)) void wake(const hafti_io_worker_t *worker,
                                                        hafti_io_descriptor_t *entry,
                                                        enum hafti_io_direction direction) {
    if (HAFTI_IO_LIKELY(!worker->shared))
        hafti_io_wake_alone(entry, direction);
    else
        hafti_io_wake(entry, direction, false, true);
}

static HAFTI_IO_HOT void happened(hafti_io_worker_t *worker, const struct epoll_event *event) {
    int descriptor = (int)(uint32_t)event->data.u64;
    if (descriptor == worker->waker) {
        hafti_io_waker_reset(descriptor);
        return;
    }
    hafti_io_descriptor_t *entry = hafti_io_known_descriptor(worker->crew->descriptors, descriptor);
    if (entry == NULL ||
        __atomic_load_n(&entry->life, __ATOMIC_RELAXED) != (uint32_t)(event->data.u64 >> 32))
        return;
    const uint32_t end = EPOLLERR | EPOLLHUP;
    if ((event->events & EPOLLRDHUP) != 0)
        __atomic_store_n(&entry->ended, true, __ATOMIC_RELAXED);
    if ((event->events & (EPOLLPRI | EPOLLRDHUP | end)) != 0)
        set_left(entry, HAFTI_IO_MAYBE);
    else if ((event->events & EPOLLIN) != 0 && is_left(worker, entry, HAFTI_IO_NONE))
        set_left(entry, HAFTI_IO_UNLESS_FEWER);
    if ((event->events & (EPOLLIN | EPOLLPRI | EPOLLRDHUP | end)) != 0)
        wake(worker, entry, HAFTI_IO_INWARD);
    /* Nearly every event includes this; seldom does a task wait for it. */
    if ((event->events & (EPOLLOUT | end)) != 0 &&
        (worker->shared || !hafti_io_ring_empty(&entry->waiters[HAFTI_IO_OUTWARD])))
        wake(worker, entry, HAFTI_IO_OUTWARD);
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
    static bool missing; /* before Linux 5.11; by a filter of before that */
    if (nanoseconds > 0 && !__atomic_load_n(&missing, __ATOMIC_RELAXED)) {
        struct timespec limit = {nanoseconds / HAFT_IO_SECOND, nanoseconds % HAFT_IO_SECOND};
        int count = (int)syscall(SYS_epoll_pwait2, epoll, events, EVENTS_AT_ONCE, &limit, NULL, 0);
        if (count >= 0 || !hafti_io_is_missing(-errno))
            return count;
        __atomic_store_n(&missing, true, __ATOMIC_RELAXED);
    }
#endif
    return epoll_wait(epoll, events, EVENTS_AT_ONCE, milliseconds(nanoseconds));
}

HAFTI_IO_HOT void hafti_io_take_edges(hafti_io_worker_t *worker, int64_t nanoseconds) {
    struct epoll_event events[EVENTS_AT_ONCE];
    int count = wait_for_events(worker->epoll, events, nanoseconds);
    for (int i = 0; i < count; i++)
        happened(worker, &events[i]);
}

static void interrupt_epoll(hafti_io_worker_t *worker) {
    hafti_io_waker_wake(worker->waker);
}

int hafti_io_open_edges(hafti_io_worker_t *worker) {
    worker->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (worker->epoll < 0)
        return -errno;
    worker->waker = hafti_io_waker_open();
    return worker->waker >= 0 ? 0 : worker->waker;
}

void hafti_io_close_edges(const hafti_io_worker_t *worker) {
    if (worker->epoll >= 0)
        close(worker->epoll);
    if (worker->waker >= 0)
        close(worker->waker);
}

static void stop_epoll(hafti_io_worker_t *worker) {
    hafti_io_close_edges(worker);
}

static int start_epoll(hafti_io_worker_t *worker) {
    int code = hafti_io_open_edges(worker);
    if (code == 0)
        code = add(worker->epoll, worker->waker, 0, EPOLLIN);
    if (code != 0)
        stop_epoll(worker);
    return code;
}

static int descriptor_of_epoll(const hafti_io_worker_t *worker) {
    return worker->epoll;
}

const hafti_io_backend_t hafti_io_epoll = {
    .name = "epoll",
    .start = start_epoll,
    .stop = stop_epoll,
    .operate = operate_by_epoll,
    .transfer = transfer_by_epoll,
    .send_last = hafti_io_send_last_at_once,
    .watch = watch_by_epoll,
    .close = hafti_io_close_descriptor,
    .forget = hafti_io_forget_edges,
    .poll_several = poll_several_by_epoll,
    .poll = hafti_io_take_edges,
    .interrupt = interrupt_epoll,
    .descriptor = descriptor_of_epoll,
};
