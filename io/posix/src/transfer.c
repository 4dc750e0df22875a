/* SPDX-License-Identifier: MIT */
/*
 * How bytes are read from sockets, pipes, terminals and files, and written: one function for all,
 * on the parts of a message. The C library's functions that do so are in reading.c.
 *
 * It first tries in a way that does not block, whatever the descriptor's mode: with MSG_DONTWAIT
 * for a socket, otherwise with RWF_NOWAIT, otherwise after poll has reported the descriptor ready.
 * Only if that gives EAGAIN is the descriptor's mode looked up, which decides whether the caller
 * gets EAGAIN or waits.
 *
 * No effect is performed before that. So a signal handler may write to a non-blocking descriptor,
 * wherever it has interrupted the task; and the scheduler, which is not a task, gets the blocking
 * defaults.
 */
#include "transfer.h"

#include "haft/posix.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

enum nature { SOCKET, FILE_ON_DISK, OTHER };
enum { FEW = 8 };

/* ---- One try ---- */

/* The transfer as a message: its own, or `plain`. */
static struct msghdr *message_of(const hafti_posix_transfer_t *t, struct msghdr *plain) {
    struct msghdr *message = t->message != NULL ? t->message : plain;
    message->msg_iov = (struct iovec *)(uintptr_t)t->parts;
    message->msg_iovlen = t->count;
    return message;
}

/* One of two calls of the system that has the descriptor, by the direction: the result, or a
   negative error number. */
#define EITHER(t, out, in, ...)                                                                    \
    ((t)->outward                                                                                  \
         ? HAFT_POSIX_RESULT(SYSTEM_OF((t)->descriptor, out)((t)->descriptor, __VA_ARGS__))        \
         : HAFT_POSIX_RESULT(SYSTEM_OF((t)->descriptor, in)((t)->descriptor, __VA_ARGS__)))

static ssize_t try_socket(const hafti_posix_transfer_t *t) {
    int flags = t->flags | MSG_DONTWAIT;
    if (t->message == NULL && t->count == 1)
        return EITHER(t, send, recv, t->parts->iov_base, t->parts->iov_len, flags);
    struct msghdr plain = {0}, *message = message_of(t, &plain);
    return EITHER(t, sendmsg, recvmsg, message, flags);
}

static ssize_t transfer_plainly(const hafti_posix_transfer_t *t) {
    int count = (int)t->count;
    return t->offset >= 0 ? EITHER(t, pwritev, preadv, t->parts, count, t->offset)
                          : EITHER(t, writev, readv, t->parts, count);
}

typedef struct in_pool {
    const hafti_posix_transfer_t *transfer;
    ssize_t done;
} in_pool_t;

static void transfer_in_pool(void *argument) {
    in_pool_t *call = argument;
    call->done = transfer_plainly(call->transfer);
}

/* A line, which a signal handler may write to a terminal, is written on this thread. */
enum { LINE = 1024 };

/* Tries on a ready descriptor; the call may still block, on a terminal that has not room for all
   for example. */
static ssize_t try_after_poll(const hafti_posix_transfer_t *t) {
    int flags = SYSTEM_OF(t->descriptor, fcntl)(t->descriptor, F_GETFL);
    bool is_refused = flags >= 0 && (flags & O_ACCMODE) == (t->outward ? O_RDONLY : O_WRONLY);
    bool has_no_places = t->offset >= 0 && hafti_io_is_pipe(t->descriptor);
    bool blocks = flags >= 0 && (flags & O_NONBLOCK) == 0;
    if (is_refused || has_no_places || !blocks)
        return transfer_plainly(t);
    for (;;) {
        struct pollfd entry = {t->descriptor, t->outward ? POLLOUT : POLLIN, 0};
        if (SYSTEM_OF(t->descriptor, poll)(&entry, 1, 0) == 0)
            return -EAGAIN;
        in_pool_t call = {t, 0};
        int code = 0;
        if (t->outward && hafti_posix_size_of(t->parts, t->count) <= LINE)
            haft_io_call_briefly(transfer_in_pool, &call);
        else
            code = hafti_posix_call_for_a_moment(transfer_in_pool, &call);
        if (code == -ECANCELED) /* A cleanup, too, does what can be done at once. */
            haft_io_call_briefly(transfer_in_pool, &call);
        else if (code != 0)
            return code;
        if (call.done != -EAGAIN && call.done != -EINTR)
            return call.done;
    }
}

/* Files of /proc: the kernel makes them when they are read, so the pool would only add delay. (A
   few, such as the kernel's log, have to be waited for: poll reports those.) */
static bool is_made_by_kernel(int file) {
    struct statfs status;
    struct pollfd entry = {file, POLLIN, 0};
    return fstatfs(file, &status) == 0 && status.f_type == PROC_SUPER_MAGIC &&
           SYSTEM(poll)(&entry, 1, 0) != 0;
}

/* A thread of the pool accesses the disk; a small write to the system's memory is made at once. */
static ssize_t transfer_file(const hafti_posix_transfer_t *t) {
    enum { LITTLE = 65536 };
    if (t->outward && hafti_posix_size_of(t->parts, t->count) <= LITTLE &&
        (SYSTEM_OF(t->descriptor, fcntl)(t->descriptor, F_GETFL) & (O_SYNC | O_DSYNC | O_DIRECT)) ==
            0)
        return transfer_plainly(t);
    if (!t->outward && is_made_by_kernel(t->descriptor))
        return transfer_plainly(t);
    in_pool_t call = {t, 0};
    hafti_posix_block_to_the_end(transfer_in_pool, &call);
    return call.done;
}

/* (A simulation's files never wait for a disk.) */
static enum nature nature_of(int descriptor) {
    struct stat status;
    if (hafti_posix_may_be_simulated(descriptor) || SYSTEM(fstat)(descriptor, &status) != 0)
        return OTHER;
    return S_ISSOCK(status.st_mode)                             ? SOCKET
           : S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) ? FILE_ON_DISK
                                                                : OTHER;
}

/* ---- A try of either ---- */

static __attribute__((noinline)) ssize_t try_other(const hafti_posix_transfer_t *t) {
    /* A write through to the disk waits for the disk, even with RWF_NOWAIT. */
    if (t->outward && (SYSTEM_OF(t->descriptor, fcntl)(t->descriptor, F_GETFL) & O_DSYNC) != 0 &&
        nature_of(t->descriptor) == FILE_ON_DISK)
        return transfer_file(t);
    ssize_t done = EITHER(t, pwritev2, preadv2, t->parts, (int)t->count, t->offset, RWF_NOWAIT);
    if (done >= 0 || (done != -EAGAIN && done != -EOPNOTSUPP && !hafti_io_is_missing((int)done)))
        return done;
    if (nature_of(t->descriptor) == FILE_ON_DISK)
        return transfer_file(t);
    return done == -EAGAIN ? done : try_after_poll(t);
}

/* -EAGAIN: the call would block. */
static inline ssize_t attempt(const hafti_posix_transfer_t *t) {
    ssize_t done = t->by_socket || t->offset < 0 ? try_socket(t) : -ENOTSOCK;
    return done != -ENOTSOCK || t->by_socket ? done : try_other(t);
}

/* ---- The whole ---- */

/* Control data has come, or had no room: later bytes are for the next call. */
static bool has_control(const struct msghdr *message) {
    return message->msg_controllen != 0 || (message->msg_flags & MSG_CTRUNC) != 0;
}

/* Whether a call that has done a part goes on: a write in full, or a read that asks for all. */
static bool goes_on(const hafti_posix_transfer_t *t) {
    if (t->by_socket && !t->outward)
        return (t->message == NULL || !has_control(t->message)) &&
               (t->flags & (MSG_WAITALL | MSG_PEEK)) == MSG_WAITALL &&
               hafti_io_socket_option(t->descriptor, SO_TYPE) == SOCK_STREAM &&
               hafti_io_blocks(t->descriptor);
    /* (In a simulation a read may be short on purpose.) */
    return t->outward ? hafti_io_blocks(t->descriptor)
                      : !hafti_posix_may_be_simulated(t->descriptor) &&
                            nature_of(t->descriptor) == FILE_ON_DISK;
}

static short events_now(int descriptor, short events) {
    struct pollfd entry = {descriptor, events, 0};
    return SYSTEM_OF(descriptor, poll)(&entry, 1, 0) > 0 ? entry.revents : 0;
}

/* A call that may wait leaves data below the low-water mark unread, unless it asks for less than
   the mark; only poll obeys the mark by itself. */
static bool is_below_mark(const hafti_posix_transfer_t *t) {
    if (!hafti_posix_some_low_water() || t->outward)
        return false;
    int mark = hafti_io_socket_option(t->descriptor, SO_RCVLOWAT);
    return mark > 1 && (size_t)mark <= hafti_posix_size_of(t->parts, t->count) &&
           hafti_io_blocks(t->descriptor) && events_now(t->descriptor, POLLIN) == 0;
}

/* For a datagram to the address of a Unix socket: the kernel does not notify when that has room. */
static bool goes_to_a_queue(const hafti_posix_transfer_t *t) {
    const struct sockaddr *address = t->message != NULL ? t->message->msg_name : NULL;
    return t->outward && address != NULL && address->sa_family == AF_UNIX &&
           !hafti_posix_may_be_simulated(t->descriptor);
}

/* A simulation notifies of the first byte, too; but its own peek waits for all. */
static bool peeks_for_all(const hafti_posix_transfer_t *t) {
    return hafti_posix_may_be_simulated(t->descriptor) &&
           (t->flags & (MSG_WAITALL | MSG_PEEK)) == (MSG_WAITALL | MSG_PEEK);
}

static int wait_for_all_to_peek(const hafti_posix_transfer_t *t) {
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)t->parts,
                             .msg_iovlen = t->count};
    ssize_t done = HAFT_PERFORM(haft_io_receive_message, t->descriptor, t->flags, &message);
    return done < 0 ? (int)done : 0;
}

/* The waits of a call: the deadline by the socket's time limit, which holds for all of them (0
   before the first wait); and how many waits have been in vain since the last progress. */
typedef struct waits {
    int64_t deadline, pause;
    unsigned turn;
} waits_t;

static int wait_for_more(const hafti_posix_transfer_t *t, waits_t *waits) {
    hafti_posix_look_t look = hafti_posix_look(t->descriptor);
    if (!hafti_io_blocks(t->descriptor))
        return -EAGAIN;
    if (waits->deadline == 0) {
        waits->deadline =
            hafti_posix_socket_deadline(t->descriptor, t->outward ? SO_SNDTIMEO : SO_RCVTIMEO);
        if (!t->outward && waits->deadline == HAFT_IO_FOREVER)
            hafti_posix_note_wait(t->descriptor, look);
    }
    if (peeks_for_all(t) && waits->deadline == HAFT_IO_FOREVER)
        return wait_for_all_to_peek(t);
    if (goes_to_a_queue(t) || peeks_for_all(t))
        return HAFT_PERFORM(haft_io_now) < waits->deadline ? hafti_posix_pause(&waits->pause)
                                                           : -EAGAIN;
    return hafti_posix_wait(t->descriptor, t->outward ? POLLOUT : POLLIN, waits->deadline,
                            waits->turn++);
}

/* Removes the transferred bytes from the front of the parts. */
static void advance(hafti_posix_transfer_t *t, struct iovec *parts, size_t done) {
    if (t->offset >= 0)
        t->offset += (int64_t)done;
    size_t first = 0;
    while (first < t->count && done >= parts[first].iov_len)
        done -= parts[first++].iov_len;
    memmove(parts, parts + first, (t->count - first) * sizeof *parts);
    t->count -= first;
    if (t->count != 0) {
        parts[0].iov_base = (char *)parts[0].iov_base + done;
        parts[0].iov_len -= done;
    }
    t->parts = parts;
}

/* Receives more of a message, with its control data. */
static ssize_t attempt_to_receive(hafti_posix_transfer_t *t, struct msghdr *message) {
    struct msghdr rest = {.msg_control = message->msg_control, .msg_controllen = t->control_size};
    t->message = &rest;
    ssize_t more = attempt(t);
    t->message = NULL;
    if (more > 0) {
        message->msg_controllen = rest.msg_controllen;
        message->msg_flags |= rest.msg_flags;
    }
    return more;
}

/* Whether a receive would find no bytes: but an error perhaps, which it would take from the next
   call, so that this would find the end of the stream. */
static __attribute__((noinline)) bool lacks_bytes(const hafti_posix_transfer_t *t) {
    int size = 0;
    return t->by_socket && !t->outward && !hafti_posix_may_be_simulated(t->descriptor) &&
           SYSTEM(ioctl)(t->descriptor, FIONREAD, &size) == 0 && size == 0;
}

/* After the first part: as much of the rest as can be done by the deadline, if there is one
   already. */
static ssize_t transfer_rest(hafti_posix_transfer_t *t, size_t done, size_t size, waits_t waits) {
    struct iovec few[FEW];
    struct iovec *parts = t->count <= FEW ? few : malloc(t->count * sizeof *parts);
    if (parts == NULL)
        return (ssize_t)done;
    memcpy(parts, t->parts, t->count * sizeof *parts);
    advance(t, parts, done);
    struct msghdr *received = t->outward ? NULL : t->message;
    t->message = NULL; /* Its control data have been sent. */
    while (done < size && (received == NULL || !has_control(received))) {
        bool is_empty = lacks_bytes(t);
        if (is_empty && events_now(t->descriptor, POLLIN) != 0) {
            if (lacks_bytes(t))
                break; /* at the end, or before an error */
            is_empty = false;
        }
        ssize_t more = is_empty           ? -EAGAIN
                       : received == NULL ? attempt(t)
                                          : attempt_to_receive(t, received);
        if (more > 0) {
            done += (size_t)more;
            waits.turn = 0;
            advance(t, parts, (size_t)more);
        } else if (more == 0 || more != -EAGAIN || wait_for_more(t, &waits) != 0) {
            break;
        }
    }
    if (parts != few)
        free(parts);
    return (ssize_t)done;
}

/* A send that connects (MSG_FASTOPEN), and may wait, has begun to connect and sent nothing: from
   then on it only sends. A datagram socket that was shut down reports this only to a call that
   waits. */
static ssize_t attempt_or_end(hafti_posix_transfer_t *t, unsigned turn) {
    ssize_t done = is_below_mark(t) ? -EAGAIN : attempt(t);
    if (done == -EINPROGRESS && hafti_io_blocks(t->descriptor)) {
        t->flags &= ~MSG_FASTOPEN;
        return -EAGAIN;
    }
    if (done != -EAGAIN || turn == 0 || t->outward || (t->flags & MSG_OOB) != 0 ||
        (events_now(t->descriptor, POLLRDHUP) & POLLRDHUP) == 0)
        return done;
    done = attempt(t); /* what has come before */
    return done == -EAGAIN ? 0 : done;
}

uint32_t hafti_posix_blocking_writes;

void haft_posix_block_writes(int descriptor) {
    if (descriptor >= 0 && descriptor < 32)
        __atomic_fetch_or(&hafti_posix_blocking_writes, UINT32_C(1) << descriptor,
                          __ATOMIC_RELAXED);
}

/* ---- Waits that no cancel cuts ---- */

/* Whether the transfer is one by which a task that has forked learns whether the child's exec has
   failed. */
static bool tells_of_exec(const hafti_posix_transfer_t *t) {
    return !t->outward && hafti_posix_awaits_report() &&
           (hafti_io_is_pipe(t->descriptor) ||
            hafti_io_socket_option(t->descriptor, SO_TYPE) == SOCK_SEQPACKET) &&
           (SYSTEM(fcntl)(t->descriptor, F_GETFD) & FD_CLOEXEC) != 0;
}

static bool is_event_counter(int descriptor) {
    static const char NAME[] = "anon_inode:[eventfd]";
    char path[64], name[sizeof NAME];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    ssize_t length = SYSTEM(readlinkat)(AT_FDCWD, path, name, sizeof name);
    return length == sizeof NAME - 1 && memcmp(name, NAME, sizeof NAME - 1) == 0;
}

typedef struct further_wait {
    const hafti_posix_transfer_t *transfer;
    waits_t *waits;
} further_wait_t;

static int wait_again(void *argument) {
    const further_wait_t *further = argument;
    return wait_for_more(further->transfer, further->waits);
}

static int wait_as_callers_expect(const hafti_posix_transfer_t *t, waits_t *waits) {
    int code = wait_for_more(t, waits);
    if (code != -ECANCELED || (!tells_of_exec(t) && !is_event_counter(t->descriptor)))
        return code;
    return hafti_posix_wait_again(wait_again, &(further_wait_t){t, waits});
}

/* ---- The whole call ---- */

ssize_t hafti_posix_finish_transfer(hafti_posix_transfer_t *t, int before, ssize_t done) {
    waits_t waits = {0};
    while (done == -EAGAIN) {
        int code = wait_as_callers_expect(t, &waits);
        if (code != 0) {
            done = code;
            break;
        }
        done = attempt_or_end(t, waits.turn);
    }
    if (done != -EAGAIN && tells_of_exec(t))
        hafti_posix_note_report(done);
    size_t size = hafti_posix_size_of(t->parts, t->count);
    if (done > 0 && (size_t)done < size && goes_on(t))
        done = transfer_rest(t, (size_t)done, size, waits);
    return hafti_posix_answer(done, before);
}

ssize_t hafti_posix_transfer(hafti_posix_transfer_t *t) {
    int before = hafti_posix_error();
    if (t->outward && !t->by_socket && hafti_posix_write_blocks(t->descriptor))
        return hafti_posix_answer(transfer_plainly(t), before);
    hafti_posix_take_turns(t->descriptor);
    return hafti_posix_finish_transfer(t, before, attempt_or_end(t, 0));
}
