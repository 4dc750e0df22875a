/* SPDX-License-Identifier: MIT */
/* Waiting for one of several descriptors: poll, select, epoll_wait, and their variants with a
   signal mask. */
#include "internal.h"

#include <string.h>
#include <sys/signalfd.h>

/* ---- Signals that the mask lets through ---- */

/*
 * The mask belongs to the thread, and cannot be in force for one task while others run. Its purpose
 * is that a signal that is otherwise blocked ends the wait. That is achieved by a descriptor that
 * becomes ready when such a signal is pending; then the system's own call, with the mask and a zero
 * timeout, delivers the signal.
 */

/* -1: the mask lets no blocked signal through. */
static int watch_signals(const sigset_t *mask) {
    sigset_t blocked, let_through;
    bool any = false;
    sigemptyset(&let_through);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    for (int signal = 1; mask != NULL && signal < NSIG; signal++)
        if (sigismember(&blocked, signal) == 1 && sigismember(mask, signal) == 0) {
            sigaddset(&let_through, signal);
            any = true;
        }
    return any ? signalfd(-1, &let_through, SFD_NONBLOCK | SFD_CLOEXEC) : -1;
}

static ssize_t deliver_signals(struct pollfd *entries, size_t count, const sigset_t *mask) {
    return HAFT_POSIX_RESULT(SYSTEM(ppoll)(entries, count, &(struct timespec){0, 0}, mask));
}

/* poll with one more descriptor, which is the last. */
static ssize_t poll_and_signals(struct pollfd *entries, size_t count, int64_t deadline, int signals,
                                const sigset_t *mask) {
    struct pollfd *all = malloc((count + 1) * sizeof *all);
    if (all == NULL)
        return -ENOMEM;
    if (count != 0)
        memcpy(all, entries, count * sizeof *all);
    all[count] = (struct pollfd){signals, POLLIN, 0};
    ssize_t ready;
    do {
        ready = HAFT_PERFORM(haft_io_poll, all, count + 1, deadline, 0);
        if (ready > 0 && all[count].revents != 0)
            ready = deliver_signals(all, count, mask);
        else
            break; /* Another thread may have taken the signal. */
    } while (ready == 0);
    if (ready >= 0 && count != 0)
        memcpy(entries, all, count * sizeof *all);
    free(all);
    return ready;
}

static ssize_t poll_until(struct pollfd *entries, size_t count, int64_t deadline,
                          const sigset_t *mask) {
    int signals = watch_signals(mask);
    if (signals < 0)
        return HAFT_PERFORM(haft_io_poll, entries, count, deadline, 0);
    ssize_t ready = poll_and_signals(entries, count, deadline, signals, mask);
    HAFT_PERFORM(haft_io_close, signals);
    return ready;
}

/* ---- poll ---- */

static int64_t deadline_in(int milliseconds) {
    if (milliseconds < 0)
        return HAFT_IO_FOREVER;
    if (milliseconds == 0)
        return 0;
    return hafti_posix_deadline(
        &(struct timespec){milliseconds / 1000, milliseconds % 1000 * HAFT_IO_MILLISECOND});
}

HAFT_POSIX_EXPORT int poll(struct pollfd *entries, nfds_t count, int milliseconds) {
    if (!hafti_posix_on_task())
        return SYSTEM(poll)(entries, count, milliseconds);
    int before = hafti_posix_error();
    return (int)hafti_posix_answer(poll_until(entries, count, deadline_in(milliseconds), NULL),
                                   before);
}

HAFT_POSIX_EXPORT int ppoll(struct pollfd *entries, nfds_t count, const struct timespec *limit,
                            const sigset_t *mask) {
    if (!hafti_posix_on_task())
        return SYSTEM(ppoll)(entries, count, limit, mask);
    int before = hafti_posix_error();
    int64_t deadline = hafti_posix_deadline(limit);
    ssize_t done = deadline < 0 ? deadline : poll_until(entries, count, deadline, mask);
    return (int)hafti_posix_answer(done, before);
}

int __poll_chk(struct pollfd *entries, nfds_t count, int milliseconds, size_t room);
int __ppoll_chk(struct pollfd *entries, nfds_t count, const struct timespec *limit,
                const sigset_t *mask, size_t room);

HAFT_POSIX_EXPORT int __poll_chk(struct pollfd *entries, nfds_t count, int milliseconds,
                                 size_t room) {
    if (room / sizeof *entries < count)
        __chk_fail();
    return poll(entries, count, milliseconds);
}

HAFT_POSIX_EXPORT int __ppoll_chk(struct pollfd *entries, nfds_t count,
                                  const struct timespec *limit, const sigset_t *mask, size_t room) {
    if (room / sizeof *entries < count)
        __chk_fail();
    return ppoll(entries, count, limit, mask);
}

/* ---- select ---- */

typedef struct sets {
    fd_set *readable, *writable, *exceptional;
} sets_t;

/*
 * A set may be larger than an fd_set: a program that made it so passes a large `count`. But a
 * program may also pass the limit of descriptors together with plain fd_sets. So for a count beyond
 * an fd_set only as many members are looked at as the process's table of descriptors has room for,
 * as in the kernel. Below that it makes a difference only for numbers that are not descriptors:
 * -EBADF if the table has room for them, otherwise they are ignored.
 */

static bool read_status(char *text, size_t size) {
    int status = SYSTEM(open)("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (status < 0)
        return false;
    size_t used = 0;
    ssize_t more;
    while (used + 1 < size && (more = SYSTEM(read)(status, text + used, size - used - 1)) > 0)
        used += (size_t)more;
    SYSTEM(close)(status);
    text[used] = '\0';
    return true;
}

int hafti_posix_room_for_descriptors(void) {
    static const char FIELD[] = "\nFDSize:";
    char text[2048]; /* The field is in the first ones. */
    const char *found = read_status(text, sizeof text) ? strstr(text, FIELD) : NULL;
    return found != NULL ? atoi(found + sizeof FIELD - 1) : FD_SETSIZE;
}

/* Limits the count to the table's size; false: it is within that. */
static bool narrow(int *count) {
    int room = hafti_posix_room_for_descriptors();
    bool narrows = room < *count;
    if (narrows)
        *count = room;
    return narrows;
}

static int count_looked_at(int count) {
    if (count > FD_SETSIZE)
        narrow(&count);
    return count;
}

static bool has(const fd_set *set, int descriptor) {
    return set != NULL && (((const fd_mask *)(const void *)set)[descriptor / NFDBITS] &
                           (fd_mask)(1UL << (descriptor % NFDBITS))) != 0;
}
static void put(fd_set *set, int descriptor) {
    ((fd_mask *)(void *)set)[descriptor / NFDBITS] |= (fd_mask)(1UL << (descriptor % NFDBITS));
}
static void clear(fd_set *set, int count) {
    if (set != NULL)
        memset(set, 0, (size_t)((count + NFDBITS - 1) / NFDBITS) * sizeof(fd_mask));
}

static size_t entries_of(const sets_t *sets, int count, struct pollfd *entries) {
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        short events =
            (short)((has(sets->readable, i) ? POLLIN : 0) | (has(sets->writable, i) ? POLLOUT : 0) |
                    (has(sets->exceptional, i) ? POLLPRI : 0));
        if (events != 0)
            entries[used++] = (struct pollfd){i, events, 0};
    }
    return used;
}

static int put_if(fd_set *set, const struct pollfd *entry, short asked, short events) {
    if ((entry->events & asked) == 0 || (entry->revents & events) == 0)
        return 0;
    put(set, entry->fd);
    return 1;
}

/* Makes the sets of members that are ready. Returns their number, or -EBADF. */
static int sets_of(const struct pollfd *entries, size_t used, int count, sets_t *sets) {
    for (size_t i = 0; i < used; i++)
        if ((entries[i].revents & POLLNVAL) != 0)
            return -EBADF;
    clear(sets->readable, count);
    clear(sets->writable, count);
    clear(sets->exceptional, count);
    int members = 0;
    for (size_t i = 0; i < used; i++) {
        members += put_if(sets->readable, &entries[i], POLLIN, POLLIN | POLLHUP | POLLERR);
        members += put_if(sets->writable, &entries[i], POLLOUT, POLLOUT | POLLERR);
        members += put_if(sets->exceptional, &entries[i], POLLPRI, POLLPRI);
    }
    return members;
}

static ssize_t select_until(int count, sets_t *sets, int64_t deadline, const sigset_t *mask) {
    if (count < 0 || deadline < 0)
        return -EINVAL;
    count = count_looked_at(count);
    struct pollfd *entries = malloc(((size_t)count + 1) * sizeof *entries);
    if (entries == NULL)
        return -ENOMEM;
    size_t used = entries_of(sets, count, entries);
    ssize_t ready;
    for (;;) {
        ready = poll_until(entries, used, deadline, mask);
        if (ready < 0)
            break;
        ssize_t polled = ready;
        ready = sets_of(entries, used, count, sets);
        if (ready == -EBADF && narrow(&count)) {
            used = entries_of(sets, count, entries);
            continue;
        }
        if (polled == 0 || ready != 0)
            break;
        /* The event may be one that select does not report, such as one on an end that is only
           written to. */
        HAFT_PERFORM(haft_io_yield);
        if (deadline <= HAFT_PERFORM(haft_io_now))
            break;
    }
    free(entries);
    return ready;
}

HAFT_POSIX_EXPORT int select(int count, fd_set *restrict readable, fd_set *restrict writable,
                             fd_set *restrict exceptional, struct timeval *restrict limit) {
    if (!hafti_posix_on_task())
        return SYSTEM(select)(count, readable, writable, exceptional, limit);
    int before = hafti_posix_error();
    sets_t sets = {readable, writable, exceptional};
    int64_t deadline = HAFT_IO_FOREVER;
    if (limit != NULL)
        deadline = limit->tv_usec < 0 ? -EINVAL
                                      : hafti_posix_deadline(&(struct timespec){
                                            limit->tv_sec + limit->tv_usec / 1000000,
                                            limit->tv_usec % 1000000 * HAFT_IO_MICROSECOND});
    ssize_t done = select_until(count, &sets, deadline, NULL);
    if (limit != NULL && done >= 0 && deadline != HAFT_IO_FOREVER) { /* Linux does so. */
        int64_t left = deadline - HAFT_PERFORM(haft_io_now);
        left = left > 0 ? left : 0;
        *limit =
            (struct timeval){left / HAFT_IO_SECOND, left % HAFT_IO_SECOND / HAFT_IO_MICROSECOND};
    }
    return (int)hafti_posix_answer(done, before);
}

HAFT_POSIX_EXPORT int pselect(int count, fd_set *restrict readable, fd_set *restrict writable,
                              fd_set *restrict exceptional, const struct timespec *restrict limit,
                              const sigset_t *restrict mask) {
    if (!hafti_posix_on_task())
        return SYSTEM(pselect)(count, readable, writable, exceptional, limit, mask);
    int before = hafti_posix_error();
    sets_t sets = {readable, writable, exceptional};
    return (int)hafti_posix_answer(select_until(count, &sets, hafti_posix_deadline(limit), mask),
                                   before);
}

/* ---- epoll ---- */

typedef struct epoll_call {
    int epoll;
    struct epoll_event *events;
    int most;
    int64_t deadline;
    const sigset_t *mask;
} epoll_call_t;

/* An epoll is itself a descriptor that can be polled. */
static int epoll_until(void *argument) {
    const epoll_call_t *c = argument;
    for (;;) {
        ssize_t done = HAFT_POSIX_RESULT(SYSTEM(epoll_wait)(c->epoll, c->events, c->most, 0));
        if (done != 0)
            return (int)done;
        struct pollfd entry = {c->epoll, POLLIN, 0};
        done = poll_until(&entry, 1, c->deadline, c->mask);
        if (done <= 0)
            return (int)done;
    }
}

HAFT_POSIX_EXPORT int epoll_pwait(int epoll, struct epoll_event *events, int most, int milliseconds,
                                  const sigset_t *mask) {
    if (milliseconds == 0 || !hafti_posix_on_task())
        return SYSTEM(epoll_pwait)(epoll, events, most, milliseconds, mask);
    int before = hafti_posix_error();
    epoll_call_t call = {epoll, events, most, deadline_in(milliseconds), mask};
    int done = epoll_until(&call);
    if (done == -ECANCELED) /* Event loops expect no such error. */
        done = hafti_posix_wait_again(epoll_until, &call);
    return (int)hafti_posix_answer(done, before);
}

HAFT_POSIX_EXPORT int epoll_wait(int epoll, struct epoll_event *events, int most,
                                 int milliseconds) {
    if (milliseconds == 0 || !hafti_posix_on_task())
        return SYSTEM(epoll_wait)(epoll, events, most, milliseconds);
    return epoll_pwait(epoll, events, most, milliseconds, NULL);
}

/* ---- Signals ---- */

/* Like a poll of no descriptors. A signal that the thread does not block reaches its handler
   whichever task runs, and this function does not notice. */
HAFT_POSIX_EXPORT int sigsuspend(const sigset_t *mask) {
    if (!hafti_posix_on_task())
        return SYSTEM(sigsuspend)(mask);
    return ppoll(NULL, 0, NULL, mask);
}

/* The signal's number. */
static ssize_t take_signal(const sigset_t *signals, siginfo_t *information, int64_t deadline) {
    static const struct timespec NO_TIME = {0, 0};
    int descriptor = -1;
    ssize_t number;
    unsigned turn = 0;
    while ((number = HAFT_POSIX_RESULT(SYSTEM(sigtimedwait)(signals, information, &NO_TIME))) ==
           -EAGAIN) {
        if (descriptor < 0)
            descriptor = (int)HAFT_POSIX_RESULT(signalfd(-1, signals, SFD_NONBLOCK | SFD_CLOEXEC));
        int code = descriptor < 0 ? hafti_posix_wait_without(descriptor, deadline)
                                  : hafti_posix_wait(descriptor, POLLIN, deadline, turn++);
        if (code != 0) {
            number = code;
            break;
        }
    }
    if (descriptor >= 0)
        HAFT_PERFORM(haft_io_close, descriptor);
    return number;
}

HAFT_POSIX_EXPORT int sigtimedwait(const sigset_t *restrict signals,
                                   siginfo_t *restrict information,
                                   const struct timespec *restrict limit) {
    if (!hafti_posix_on_task())
        return SYSTEM(sigtimedwait)(signals, information, limit);
    int before = hafti_posix_error();
    int64_t deadline = hafti_posix_deadline(limit);
    ssize_t done = deadline < 0 ? deadline : take_signal(signals, information, deadline);
    return (int)hafti_posix_answer(done, before);
}

HAFT_POSIX_EXPORT int sigwaitinfo(const sigset_t *restrict signals,
                                  siginfo_t *restrict information) {
    if (!hafti_posix_on_task())
        return SYSTEM(sigwaitinfo)(signals, information);
    return sigtimedwait(signals, information, NULL);
}

/* Unlike the others, returns the error. */
HAFT_POSIX_EXPORT int sigwait(const sigset_t *restrict signals, int *restrict signal) {
    if (!hafti_posix_on_task())
        return SYSTEM(sigwait)(signals, signal);
    int before = hafti_posix_error();
    ssize_t number = take_signal(signals, NULL, HAFT_IO_FOREVER);
    if (number == -ECANCELED)
        number = hafti_posix_cancelled();
    hafti_posix_set_error(before);
    if (number < 0)
        return (int)-number;
    *signal = (int)number;
    return 0;
}

/* ---- glibc's own names ---- */

HAFT_POSIX_ALSO(__poll, poll)
HAFT_POSIX_ALSO(__select, select)
HAFT_POSIX_ALSO(__sigsuspend, sigsuspend)
