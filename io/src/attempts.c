/* SPDX-License-Identifier: MIT */
/*
 * The system calls of operations: each is tried and never blocks, whatever the mode of its
 * descriptor; if it has to wait, the back end waits until it may be tried again. The pool makes the
 * calls that cannot be tried.
 */
#include "moment.h"
#include "operations.h"

#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

/* A function of several system calls, of which one may fail, leaves errno alone: errors are
   returned. */

static int poll_now(int descriptor, short events, int milliseconds) {
    if (descriptor < 0) /* which poll(2) passes over */
        return -EBADF;
    struct pollfd entry = {descriptor, events, 0};
    int ready = poll(&entry, 1, milliseconds);
    if (ready < 0)
        return -errno;
    return ready == 0 ? -EAGAIN : entry.revents & POLLNVAL ? -EBADF : entry.revents;
}

/* A read or write as for a socket: it does not block whatever the mode, and sends no signal.
   -ENOTSOCK for other descriptors. */
static ssize_t transfer_by_socket(const hafti_io_operation_t *o) {
    ssize_t done = o->kind == HAFTI_IO_READ
                       ? recv(o->descriptor, o->buffer, o->size, MSG_DONTWAIT)
                       : send(o->descriptor, o->buffer, o->size, MSG_DONTWAIT | MSG_NOSIGNAL);
    return done >= 0 ? done : -errno;
}

static ssize_t transfer_plainly(hafti_io_operation_t *o) {
    ssize_t done = o->kind == HAFTI_IO_READ ? read(o->descriptor, o->buffer, o->size)
                                            : write(o->descriptor, o->buffer, o->size);
    return done >= 0 ? done : -errno;
}

static ssize_t transfer_parts_plainly(const hafti_io_operation_t *o) {
    int count = o->size <= IOV_MAX ? (int)o->size : IOV_MAX + 1;
    ssize_t done = o->kind == HAFTI_IO_READ_PARTS ? readv(o->descriptor, o->buffer, count)
                                                  : writev(o->descriptor, o->buffer, count);
    return done >= 0 ? done : -errno;
}

static int accept_plainly(const hafti_io_operation_t *o) {
    int connection =
        accept4(o->descriptor, o->address, o->address_size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return connection >= 0 ? connection : -errno;
}

/* A connect that was begun goes on by itself, also if a signal has ended the call; it is asked
   again when the socket can be written to. A socket that is already connected is a success from
   then on, and an error at the first call. */
static int connect_plainly(const hafti_io_operation_t *o) {
    bool *begun = o->buffer;
    int code = connect(o->descriptor, o->address, *o->address_size) == 0 ? 0 : -errno;
    if (code == -EISCONN && *begun)
        return 0;
    /* The queue of a local listener is full: unlike the other errors, this one leaves nothing begun
       that could be waited for. */
    if (code == -EAGAIN || (code == -EINTR && o->address->sa_family == AF_UNIX))
        return HAFTI_IO_QUEUE_FULL;
    *begun = true;
    return code == -EINPROGRESS || code == -EALREADY ? -EAGAIN : code;
}

/* Makes the call, which waits if the descriptor blocks. */
static ssize_t operate_plainly(hafti_io_operation_t *o) {
    switch (o->kind) {
    case HAFTI_IO_READ:
    case HAFTI_IO_WRITE:
        return transfer_plainly(o);
    case HAFTI_IO_READ_LENT:
        return hafti_io_read_into_lent(o, transfer_plainly);
    case HAFTI_IO_READ_PARTS:
    case HAFTI_IO_WRITE_PARTS:
        return transfer_parts_plainly(o);
    case HAFTI_IO_ACCEPT:
        return accept_plainly(o);
    case HAFTI_IO_CONNECT:
        return connect_plainly(o);
    default:
        return -EINVAL;
    }
}

/* Whether the error means that preadv2(2) and pwritev2(2), or RWF_NOWAIT for such a file, are
   missing. */
static bool must_do_without(int error) {
    return error == EOPNOTSUPP || hafti_io_is_missing(-error);
}

static size_t size_of_parts(const hafti_io_operation_t *o) {
    const struct iovec *parts = o->buffer;
    size_t size = 0;
    for (size_t i = 0; i < o->size; i++)
        size += parts[i].iov_len;
    return size;
}

/* Size of the first transfer: a read by parts counts whole; writev writes part after part. */
static size_t size_of_first(const hafti_io_operation_t *o) {
    const struct iovec *part = o->buffer;
    if (o->kind == HAFTI_IO_READ || o->kind == HAFTI_IO_WRITE)
        return o->size;
    if (o->kind == HAFTI_IO_READ_PARTS)
        return size_of_parts(o);
    for (size_t left = o->size; left > 1 && part->iov_len == 0; left--)
        part++;
    return part->iov_len;
}

/* Whether a transfer fails on a descriptor of an eight-byte number, such as an eventfd. A timer
   cannot be written. */
static bool fails_as_a_number(const hafti_io_operation_t *o) {
    struct stat status;
    struct itimerspec unused;
    if (fstat(o->descriptor, &status) != 0 || (status.st_mode & S_IFMT) != 0)
        return false;
    bool writes = o->kind == HAFTI_IO_WRITE || o->kind == HAFTI_IO_WRITE_PARTS;
    return size_of_first(o) < sizeof(uint64_t) ||
           (writes && timerfd_gettime(o->descriptor, &unused) == 0);
}

/* Whether the call would return an error at once although poll(2) reports that it is not ready. */
static bool fails_at_once(const hafti_io_operation_t *o) {
    switch (o->kind) {
    case HAFTI_IO_ACCEPT:
        return !hafti_io_listens(o->descriptor);
    case HAFTI_IO_READ:
    case HAFTI_IO_WRITE:
    case HAFTI_IO_READ_PARTS:
    case HAFTI_IO_WRITE_PARTS:
        return fails_as_a_number(o);
    default:
        return false;
    }
}

/* -EAGAIN: not yet. Otherwise the call is to be made; it may block all the same, if another thread
   is faster. */
static int is_ready(const hafti_io_operation_t *o) {
    if (o->kind == HAFTI_IO_CONNECT && !*(bool *)o->buffer)
        return 0;
    int ready = poll_now(o->descriptor, hafti_io_events_of(o), 0);
    return ready == -EAGAIN && fails_at_once(o) ? 0 : ready;
}

/* For calls that no flag keeps from blocking. They take more than one system call with the number,
   which must not become another file's in between. */
static ssize_t in_steps(hafti_io_operation_t *o) {
    HAFTI_IO_USING hafti_io_use_t use = {.descriptor = o->descriptor};
    int code = hafti_io_use(&use);
    if (code != 0)
        return code;
    bool is_socket = o->kind == HAFTI_IO_ACCEPT || o->kind == HAFTI_IO_CONNECT;
    if (!hafti_io_blocks(o->descriptor) && (is_socket || !hafti_io_is_file(o->descriptor)))
        return operate_plainly(o);
    code = is_ready(o);
    return code < 0 ? code : HAFTI_IO_MAY_WAIT;
}

/* Whether writes go through to the disk, for which they wait even with RWF_NOWAIT. */
static bool writes_through(const hafti_io_operation_t *o) {
    if (o->kind != HAFTI_IO_WRITE && o->kind != HAFTI_IO_WRITE_PARTS)
        return false;
    int flags = fcntl(o->descriptor, F_GETFL);
    return flags >= 0 && (flags & O_DSYNC) != 0; /* which O_SYNC has in it */
}

/* For descriptors other than sockets; in a function of its own, so that sockets have a small
   frame. */
static __attribute__((noinline)) ssize_t transfer_by_file(hafti_io_operation_t *o) {
    struct iovec part = {o->buffer, o->size};
    if (o->size == 0) /* it waits for nothing, and not every file takes empty parts */
        return transfer_plainly(o);
    if (writes_through(o))
        return in_steps(o);
    ssize_t done = o->kind == HAFTI_IO_READ ? preadv2(o->descriptor, &part, 1, -1, RWF_NOWAIT)
                                            : pwritev2(o->descriptor, &part, 1, -1, RWF_NOWAIT);
    if (done >= 0)
        return done;
    return must_do_without(errno) ? in_steps(o) : -errno;
}

/* A read of nothing, or a write of no parts or of empty ones, waits for nothing, and neither takes
   nor sends a datagram. (A receive of nothing takes one, and a plain write of nothing sends
   one.) */
static bool moves_nothing(const hafti_io_operation_t *o) {
    bool of_parts = o->kind == HAFTI_IO_READ_PARTS || o->kind == HAFTI_IO_WRITE_PARTS;
    if (of_parts && o->size != 0)
        return o->buffer != NULL && o->size <= IOV_MAX && size_of_parts(o) == 0;
    return (o->kind == HAFTI_IO_READ || of_parts) && o->size == 0;
}

/* Reads or writes without blocking, whether the descriptor blocks or not. */
static ssize_t transfer(hafti_io_operation_t *o) {
    if (HAFTI_IO_UNLIKELY(moves_nothing(o)))
        return transfer_plainly(o);
    ssize_t done = transfer_by_socket(o);
    return HAFTI_IO_LIKELY(done != -ENOTSOCK) ? done : transfer_by_file(o);
}

/* The result of a send that has failed, if it may wait. A send that connects (MSG_FASTOPEN) has
   begun to, and has sent nothing: it only sends from then on. */
static ssize_t after_send(hafti_io_operation_t *o, int error, const struct sockaddr *address) {
    if (hafti_io_must_not_wait(o))
        return -error;
    if (error == EINPROGRESS) {
        o->flags &= ~MSG_FASTOPEN;
        return -EAGAIN;
    }
    return error == EAGAIN && address != NULL && address->sa_family == AF_UNIX ? HAFTI_IO_QUEUE_FULL
                                                                               : -error;
}

static ssize_t transfer_message(const hafti_io_operation_t *o, struct msghdr *message,
                                bool outward) {
    ssize_t done =
        outward ? sendmsg(o->descriptor, message, o->flags | MSG_DONTWAIT | MSG_NOSIGNAL)
                : recvmsg(o->descriptor, message, o->flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    return done >= 0 ? done : -errno;
}

static ssize_t transfer_parts_by_socket(const hafti_io_operation_t *o) {
    if (o->size > IOV_MAX) /* where a message gets another error */
        return transfer_parts_plainly(o);
    struct msghdr message = {.msg_iov = o->buffer, .msg_iovlen = o->size};
    return transfer_message(o, &message, o->kind == HAFTI_IO_WRITE_PARTS);
}

static ssize_t transfer_parts(hafti_io_operation_t *o) {
    if (HAFTI_IO_UNLIKELY(moves_nothing(o)))
        return transfer_parts_plainly(o);
    ssize_t done = transfer_parts_by_socket(o);
    if (done != -ENOTSOCK)
        return done;
    if (writes_through(o))
        return in_steps(o);
    done = o->kind == HAFTI_IO_READ_PARTS
               ? preadv2(o->descriptor, o->buffer, (int)o->size, -1, RWF_NOWAIT)
               : pwritev2(o->descriptor, o->buffer, (int)o->size, -1, RWF_NOWAIT);
    if (done >= 0)
        return done;
    return must_do_without(errno) ? in_steps(o) : -errno;
}

/* Inlined, which saves a call for each operation. */
static inline __attribute__((always_inline)) ssize_t attempt_once(hafti_io_operation_t *o) {
    ssize_t done;
    switch (o->kind) {
    case HAFTI_IO_READ:
    case HAFTI_IO_WRITE:
        return transfer(o);
    case HAFTI_IO_READ_LENT:
        return hafti_io_read_into_lent(o, transfer);
    case HAFTI_IO_READ_PARTS:
    case HAFTI_IO_WRITE_PARTS:
        return transfer_parts(o);
    case HAFTI_IO_RECEIVE_MESSAGE:
        return transfer_message(o, o->buffer, false);
    case HAFTI_IO_SEND_MESSAGE:
        done = transfer_message(o, o->buffer, true);
        return done >= 0
                   ? done
                   : after_send(o, (int)-done,
                                o->buffer != NULL ? ((const struct msghdr *)o->buffer)->msg_name
                                                  : NULL);
    case HAFTI_IO_RECEIVE:
        done = recvfrom(o->descriptor, o->buffer, o->size, o->flags | MSG_DONTWAIT, o->address,
                        o->address_size);
        break;
    case HAFTI_IO_SEND:
        done = sendto(o->descriptor, o->buffer, o->size, o->flags | MSG_DONTWAIT | MSG_NOSIGNAL,
                      o->address, o->address != NULL ? *o->address_size : 0);
        return HAFTI_IO_LIKELY(done >= 0) ? done : after_send(o, errno, o->address);
    case HAFTI_IO_ACCEPT:
    case HAFTI_IO_CONNECT:
        return in_steps(o);
    case HAFTI_IO_POLL:
        return poll_now(o->descriptor, (short)o->flags, 0);
    default:
        return -EINVAL;
    }
    return done >= 0 ? done : -errno;
}

ssize_t hafti_io_attempt(hafti_io_operation_t *operation) {
    int saved = errno;
    ssize_t done;
    do
        done = attempt_once(operation);
    while (done == -EINTR);
    errno = saved;
    return done;
}

/* Whether the operation ends when the peer has ended its output. */
static bool ends_with_input(const hafti_io_operation_t *o) {
    const unsigned inward = 1U << HAFTI_IO_READ | 1U << HAFTI_IO_READ_LENT |
                            1U << HAFTI_IO_READ_PARTS | 1U << HAFTI_IO_RECEIVE |
                            1U << HAFTI_IO_RECEIVE_MESSAGE | 1U << HAFTI_IO_ACCEPT;
    return (inward >> o->kind & 1) != 0 && (o->flags & (MSG_ERRQUEUE | MSG_OOB)) == 0;
}

/* Stores no sender, like the system at an end of the stream. */
static void came_from_nobody(hafti_io_operation_t *o) {
    if (o->kind == HAFTI_IO_RECEIVE_MESSAGE) {
        struct msghdr *message = o->buffer;
        message->msg_namelen = 0;
        message->msg_controllen = 0;
        message->msg_flags = 0;
    } else if (o->kind == HAFTI_IO_RECEIVE && o->address != NULL) {
        *o->address_size = 0;
    }
}

ssize_t hafti_io_attempt_at_end(hafti_io_operation_t *operation) {
    if (!ends_with_input(operation))
        return -EAGAIN;
    int saved = errno, ready = poll_now(operation->descriptor, POLLRDHUP, 0);
    errno = saved;
    if (ready < 0 || (ready & POLLRDHUP) == 0)
        return -EAGAIN;
    ssize_t done = hafti_io_attempt(operation); /* what has come before the end */
    if (done != -EAGAIN)
        return done;
    came_from_nobody(operation);
    return operation->kind == HAFTI_IO_ACCEPT ? -EINVAL : 0;
}

static ssize_t attempt_or_wait(hafti_io_operation_t *operation,
                               ssize_t (*attempt)(hafti_io_operation_t *operation)) {
    ssize_t done = attempt(operation);
    return done == HAFTI_IO_MAY_WAIT ? operate_plainly(operation) : done;
}

static ssize_t operate_blocking(hafti_io_operation_t *operation) {
    if (operation->kind == HAFTI_IO_READ_LENT)
        return hafti_io_read_into_lent(operation, hafti_io_operate_blocking);
    for (unsigned turn = 0;; turn++) {
        if (turn > 1)
            hafti_io_pause(turn - 1);
        ssize_t done = -ENOTSOCK;
        if (operation->kind == HAFTI_IO_READ || operation->kind == HAFTI_IO_WRITE) {
            done = moves_nothing(operation) ? -ENOTSOCK : transfer_by_socket(operation);
            if (done == -ENOTSOCK)
                done = transfer_plainly(operation);
        } else if (operation->kind == HAFTI_IO_READ_PARTS ||
                   operation->kind == HAFTI_IO_WRITE_PARTS) {
            done = moves_nothing(operation) ? -ENOTSOCK : transfer_parts_by_socket(operation);
            if (done == -ENOTSOCK)
                done = transfer_parts_plainly(operation);
        } else {
            done = attempt_or_wait(operation, hafti_io_attempt);
        }
        if (done == -EAGAIN && turn != 0)
            done = attempt_or_wait(operation, hafti_io_attempt_at_end);
        if (done == -EAGAIN && !hafti_io_must_not_wait(operation))
            done = poll_now(operation->descriptor, hafti_io_events_of(operation), -1);
        else if (done != -EINTR)
            return done;
        if (done < 0 && done != -EINTR && done != -EAGAIN)
            return done;
    }
}

ssize_t hafti_io_operate_blocking(hafti_io_operation_t *operation) {
    int saved = errno;
    ssize_t done = operate_blocking(operation);
    errno = saved;
    return done;
}

/* ---- In the pool ---- */

typedef struct in_pool {
    hafti_io_operation_t *operation;
    ssize_t done;
} in_pool_t;

static void call_plainly(void *argument) {
    in_pool_t *call = argument;
    call->done = operate_plainly(call->operation);
}

/* A call on a file waits only for the disk, which no other task can end: it is not interrupted. */
static void call_in_pool(void *argument) {
    in_pool_t *call = argument;
    if (hafti_io_is_file(call->operation->descriptor))
        call_plainly(call);
    else
        haft_io_call_briefly(call_plainly, call);
}

/* A cancelled task may still do operations that need not wait. */
static enum hafti_io_wait_kind kind_of_wait(const hafti_io_runner_t *runner) {
    return hafti_io_is_withdrawn(runner) ? HAFTI_IO_TO_THE_END : HAFTI_IO_CANCELLABLE;
}

ssize_t hafti_io_operate_in_pool(hafti_io_runner_t *runner, hafti_io_operation_t *operation) {
    in_pool_t call = {operation, 0};
    int code = hafti_io_begin_use(runner->worker, operation->descriptor);
    if (code != 0)
        return code;
    code = hafti_io_pool_call(runner, call_in_pool, &call, NULL, kind_of_wait(runner));
    hafti_io_end_use(runner->worker, operation->descriptor);
    if (code != 0)
        return code;
    return call.done == -EINTR || call.done == -EAGAIN ? HAFTI_IO_MAY_WAIT : call.done;
}

int hafti_io_call_for_a_moment(void (*function)(void *), void *argument) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL || task->worker->simulated != NULL || task->worker->forked) {
        function(argument);
        return 0;
    }
    hafti_io_moment_t moment = {function, argument};
    int code = hafti_io_pool_call(task->runner, hafti_io_call_moment, &moment, NULL,
                                  kind_of_wait(task->runner));
    return code != -ECANCELED ? code : haft_io_unwind_cancelled();
}
