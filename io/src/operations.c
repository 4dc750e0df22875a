/* SPDX-License-Identifier: MIT */
/*
 * The operations: the functions of io.h that perform effects, the blocking defaults of these, and the
 * clauses by which a scheduler handles them in place, on the task's stack.
 */
#include "internal.h"

#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Of a connect, or of a datagram for an address, to a local socket whose queue is full: to be tried again later, since
   nothing tells when. (No error of connect(2) or sendto(2).) */
enum { QUEUE_FULL = -ENOSR };

/* ---- The system calls ---- */

/* What is done by several, of which one may fail, leaves errno alone: errors are returned. */

int64_t hafti_io_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * HAFT_IO_SECOND + now.tv_nsec;
}

const char *hafti_io_kind_name(enum hafti_io_kind kind) {
    static const char *const names[] = {"read",    "write", "receive", "read",   "read",    "write",
                                        "receive", "send",  "send",    "accept", "connect", "poll"};
    return names[kind];
}

int hafti_io_close_file(int descriptor) {
    int code = HAFTI_IO_RESULT(close(descriptor));
    return code != -EINTR ? code : 0;
}

static int poll_now(int descriptor, short events, int milliseconds) {
    if (descriptor < 0) /* which poll(2) passes over */
        return -EBADF;
    struct pollfd entry = {descriptor, events, 0};
    int ready = poll(&entry, 1, milliseconds);
    if (ready < 0)
        return -errno;
    return ready == 0 ? -EAGAIN : entry.revents & POLLNVAL ? -EBADF : entry.revents;
}

/* A read or write as of a socket, which needs no mode of its own not to block, nor sends a signal.
   -ENOTSOCK for others. */
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
    ssize_t done = o->kind == HAFTI_IO_READ_PARTS ? readv(o->descriptor, o->buffer, (int)o->size)
                                                  : writev(o->descriptor, o->buffer, (int)o->size);
    return done >= 0 ? done : -errno;
}

static int accept_plainly(const hafti_io_operation_t *o) {
    int connection =
        accept4(o->descriptor, o->address, o->address_size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return connection >= 0 ? connection : -errno;
}

/* A connect that was begun goes on by itself, also if a signal has ended the call; it is asked again when the socket can
   be written to. That the socket is connected is success then, and an error at the first time. */
static int connect_plainly(const hafti_io_operation_t *o) {
    bool *begun = o->buffer;
    int code = connect(o->descriptor, o->address, *o->address_size) == 0 ? 0 : -errno;
    if (code == -EISCONN && *begun)
        return 0;
    /* A local listener whose queue is full; unlike the others it has begun nothing that could be waited for. */
    if (code == -EAGAIN || (code == -EINTR && o->address->sa_family == AF_UNIX))
        return QUEUE_FULL;
    *begun = true;
    return code == -EINPROGRESS || code == -EALREADY ? -EAGAIN : code;
}

/* Waits as the descriptor does. */
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

/* What preadv2(2) and pwritev2(2) say where they, or RWF_NOWAIT for such a file, are not to be had. */
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

/* Of what the system takes or gives as a whole; a write by parts it makes by one after the other. */
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

/* Of what has a number inside, of eight bytes, as an eventfd. A timer gives its own, and takes none. */
static bool fails_as_a_number(const hafti_io_operation_t *o) {
    struct stat status;
    struct itimerspec unused;
    if (fstat(o->descriptor, &status) != 0 || (status.st_mode & S_IFMT) != 0)
        return false;
    bool writes = o->kind == HAFTI_IO_WRITE || o->kind == HAFTI_IO_WRITE_PARTS;
    return size_of_first(o) < sizeof(uint64_t) ||
           (writes && timerfd_gettime(o->descriptor, &unused) == 0);
}

/* What poll(2) says is not ready, but the call would return at once, and say why. */
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

/* -EAGAIN: not yet. Else the call is to be made, which may wait all the same, when another takes what there is. */
static int is_ready(const hafti_io_operation_t *o) {
    if (o->kind == HAFTI_IO_CONNECT && !*(bool *)o->buffer)
        return 0;
    int ready = poll_now(o->descriptor, hafti_io_events_of(o), 0);
    return ready == -EAGAIN && fails_at_once(o) ? 0 : ready;
}

/* What no flag keeps from waiting. By more than one system call with the number: it is no other file's in between. */
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

/* What is written through to the disk waits for it, whatever RWF_NOWAIT says. */
static bool writes_through(const hafti_io_operation_t *o) {
    if (o->kind != HAFTI_IO_WRITE && o->kind != HAFTI_IO_WRITE_PARTS)
        return false;
    int flags = fcntl(o->descriptor, F_GETFL);
    return flags >= 0 && (flags & O_DSYNC) != 0; /* which O_SYNC has in it */
}

/* Of what is no socket; in a function of its own, for the sake of the frames of those that are. */
static __attribute__((noinline)) ssize_t transfer_by_file(hafti_io_operation_t *o) {
    struct iovec part = {o->buffer, o->size};
    if (o->size == 0) /* which waits for nothing, and of parts that are empty no file would know */
        return transfer_plainly(o);
    if (writes_through(o))
        return in_steps(o);
    ssize_t done = o->kind == HAFTI_IO_READ ? preadv2(o->descriptor, &part, 1, -1, RWF_NOWAIT)
                                            : pwritev2(o->descriptor, &part, 1, -1, RWF_NOWAIT);
    if (done >= 0)
        return done;
    return must_do_without(errno) ? in_steps(o) : -errno;
}

/* A read of nothing, or a write of no parts or of empty ones, waits for nothing, and neither takes a datagram nor sends
   one: unlike a receive of nothing, and a write of nothing by other ways. */
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

/* What a send says that is not done, if it may wait. One that connects (MSG_FASTOPEN) has begun to, and has sent
   nothing: it is one that only sends from then on. */
static ssize_t after_send(hafti_io_operation_t *o, int error, const struct sockaddr *address) {
    if (hafti_io_must_not_wait(o))
        return -error;
    if (error == EINPROGRESS) {
        o->flags &= ~MSG_FASTOPEN;
        return -EAGAIN;
    }
    return error == EAGAIN && address != NULL && address->sa_family == AF_UNIX ? QUEUE_FULL
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
    if (o->size > IOV_MAX)
        return -EINVAL;
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

/* Inline: a call less for each operation. */
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

/* Whether the end of what comes ends it. */
static bool ends_with_input(const hafti_io_operation_t *o) {
    const unsigned inward = 1U << HAFTI_IO_READ | 1U << HAFTI_IO_READ_LENT |
                            1U << HAFTI_IO_READ_PARTS | 1U << HAFTI_IO_RECEIVE |
                            1U << HAFTI_IO_RECEIVE_MESSAGE | 1U << HAFTI_IO_ACCEPT;
    return (inward >> o->kind & 1) != 0 && (o->flags & (MSG_ERRQUEUE | MSG_OOB)) == 0;
}

/* As the system says of an end. */
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

/* What a file takes is what the disk does, which no other task's doing could end. */
static void call_in_pool(void *argument) {
    in_pool_t *call = argument;
    if (hafti_io_is_file(call->operation->descriptor))
        call_plainly(call);
    else
        haft_io_call_briefly(call_plainly, call);
}

/* A cancelled task may do what it can do at once. */
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

typedef struct moment {
    void (*function)(void *);
    void *argument;
} moment_t;

static void call_moment(void *argument) {
    const moment_t *moment = argument;
    haft_io_call_briefly(moment->function, moment->argument);
}

int hafti_io_call_for_a_moment(void (*function)(void *), void *argument) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL || task->worker->simulated != NULL || task->worker->forked) {
        function(argument);
        return 0;
    }
    moment_t moment = {function, argument};
    int code =
        hafti_io_pool_call(task->runner, call_moment, &moment, NULL, kind_of_wait(task->runner));
    return code != -ECANCELED ? code : haft_io_unwind_cancelled();
}

/* ---- Scheduled ---- */

/* What is sent takes time by its size. (What is received may be less than was asked for.) */
static bool may_go_on(hafti_io_worker_t *worker, size_t sent) {
    enum { HALF_KIBIBYTE_BITS = 9, MOST = 64 };
    size_t halves = sent >> HALF_KIBIBYTE_BITS;
    HAFTI_IO_COUNT(worker->counters.operations);
    return hafti_io_is_in_turn(worker,
                               HAFTI_IO_OF_SYSTEM + (unsigned)(halves < MOST ? halves : MOST)) ||
           hafti_io_goes_on_after_others(HAFTI_IO_CANCELLABLE);
}

static ssize_t operate(hafti_io_runner_t *runner, hafti_io_operation_t *operation) {
    bool sends = operation->kind == HAFTI_IO_WRITE || operation->kind == HAFTI_IO_SEND;
    if (!may_go_on(runner->worker, sends ? operation->size : 0))
        return -ECANCELED;
    if (HAFTI_IO_UNLIKELY(!runner->worker->plain))
        return hafti_io_operate_counted(runner, operation);
    return runner->worker->backend->operate(runner, operation);
}

/* ---- Each operation: its default, its clause ---- */

/* An operation is made from the payload twice: for the default, and for its clause, or for what a clause of its own
   does if the back end has no other way. */
#define OPERATION(name, clause, result, ...)                                                       \
    static result default_##name(void *unused, HAFT_PAYLOAD(haft_io_##name) * p) {                 \
        (void)unused;                                                                              \
        hafti_io_operation_t operation = {__VA_ARGS__};                                            \
        return (result)hafti_io_operate_blocking(&operation);                                      \
    }                                                                                              \
    static result clause##_##name(void *runner, HAFT_PAYLOAD(haft_io_##name) * p) {                \
        hafti_io_operation_t operation = {__VA_ARGS__};                                            \
        return (result)operate(runner, &operation);                                                \
    }

OPERATION(read, clause, ssize_t, HAFTI_IO_READ, p->descriptor, 0, p->buffer, p->size, NULL, NULL)
OPERATION(write, general, ssize_t, HAFTI_IO_WRITE, p->descriptor, 0, (void *)(uintptr_t)p->buffer,
          p->size, NULL, NULL)
OPERATION(receive, clause, ssize_t, HAFTI_IO_RECEIVE, p->socket, p->flags, p->buffer, p->size,
          p->address, p->address_size)
OPERATION(send, clause, ssize_t, HAFTI_IO_SEND, p->socket, p->flags, (void *)(uintptr_t)p->buffer,
          p->size, (struct sockaddr *)(uintptr_t)p->address, &p->address_size)
OPERATION(read_lent, general, ssize_t, HAFTI_IO_READ_LENT, p->descriptor, 0, p->bytes, 0, NULL,
          NULL)
OPERATION(readv, clause, ssize_t, HAFTI_IO_READ_PARTS, p->descriptor, 0,
          (void *)(uintptr_t)p->parts, p->count, NULL, NULL)
OPERATION(writev, clause, ssize_t, HAFTI_IO_WRITE_PARTS, p->descriptor, 0,
          (void *)(uintptr_t)p->parts, p->count, NULL, NULL)
OPERATION(receive_message, clause, ssize_t, HAFTI_IO_RECEIVE_MESSAGE, p->socket, p->flags,
          p->message, 0, NULL, NULL)
OPERATION(send_message, clause, ssize_t, HAFTI_IO_SEND_MESSAGE, p->socket, p->flags,
          (void *)(uintptr_t)p->message, 0, NULL, NULL)
OPERATION(accept, general, int, HAFTI_IO_ACCEPT, p->listener, 0, NULL, 0, NULL, NULL)
OPERATION(connect, clause, int, HAFTI_IO_CONNECT, p->socket, 0, &(bool){false}, 0,
          (struct sockaddr *)(uintptr_t)p->address, &p->address_size)
OPERATION(wait_ready, clause, int, HAFTI_IO_POLL, p->descriptor, p->events, NULL, 0, NULL, NULL)

static HAFTI_IO_HOT ssize_t clause_read_lent(void *state, HAFT_PAYLOAD(haft_io_read_lent) * p) {
    hafti_io_runner_t *runner = state;
    const hafti_io_backend_t *backend = runner->worker->backend;
    if (HAFTI_IO_UNLIKELY(backend->read_lent == NULL || !runner->worker->plain))
        return general_read_lent(runner, p);
    return may_go_on(runner->worker, 0) ? backend->read_lent(runner, p->descriptor, p->bytes)
                                        : -ECANCELED;
}
static HAFTI_IO_HOT ssize_t clause_write(void *state, HAFT_PAYLOAD(haft_io_write) * p) {
    hafti_io_runner_t *runner = state;
    const hafti_io_backend_t *backend = runner->worker->backend;
    if (HAFTI_IO_UNLIKELY(backend->write == NULL || !runner->worker->plain))
        return general_write(runner, p);
    return may_go_on(runner->worker, p->size)
               ? backend->write(runner, p->descriptor, p->buffer, p->size)
               : -ECANCELED;
}

static int clause_accept(void *state, HAFT_PAYLOAD(haft_io_accept) * p) {
    hafti_io_runner_t *runner = state;
    int connection = general_accept(runner, p);
    runner->accepted |= connection >= 0;
    return connection;
}

/* Of memory that may be none, which the system says. */
static inline const void *bytes_after(const void *buffer, size_t sent) {
    return (const void *)((uintptr_t)buffer + sent);
}

/* By the defaults of the two, or by their clauses. */
#define EXCHANGE_BY(kind, state, p, sent)                                                          \
    do {                                                                                           \
        while ((sent) < (p)->size) {                                                               \
            HAFT_PAYLOAD(haft_io_write)                                                            \
            rest = {(p)->descriptor, bytes_after((p)->buffer, sent), (p)->size - (sent)};          \
            ssize_t done = kind##_write(state, &rest);                                             \
            if (done < 0)                                                                          \
                return done;                                                                       \
            (sent) += (size_t)done;                                                                \
        }                                                                                          \
        haft_io_give_back(*(p)->bytes);                                                            \
        *(p)->bytes = NULL;                                                                        \
        HAFT_PAYLOAD(haft_io_read_lent) next = {(p)->descriptor, (p)->bytes};                      \
        return kind##_read_lent(state, &next);                                                     \
    } while (0)

static ssize_t default_exchange(void *unused, HAFT_PAYLOAD(haft_io_exchange) * p) {
    size_t sent = 0;
    EXCHANGE_BY(default, unused, p, sent);
}
ssize_t hafti_io_exchange_rest(hafti_io_runner_t *runner, HAFT_PAYLOAD(haft_io_exchange) * p,
                               size_t sent) {
    EXCHANGE_BY(clause, runner, p, sent);
}
static HAFTI_IO_HOT ssize_t clause_exchange(void *state, HAFT_PAYLOAD(haft_io_exchange) * p) {
    hafti_io_runner_t *runner = state;
    const hafti_io_backend_t *backend = runner->worker->backend;
    if (HAFTI_IO_UNLIKELY(backend->exchange == NULL || !runner->worker->plain))
        return hafti_io_exchange_rest(runner, p, 0);
    return may_go_on(runner->worker, p->size) ? backend->exchange(runner, p) : -ECANCELED;
}

static int default_poll(void *unused, HAFT_PAYLOAD(haft_io_poll) * p) {
    (void)unused;
    hafti_io_pause(p->turn);
    return hafti_io_poll_blocking(p->entries, p->count, p->deadline);
}
static int clause_poll(void *state, HAFT_PAYLOAD(haft_io_poll) * p) {
    hafti_io_runner_t *runner = state;
    /* A change after the caller's try finds it waiting: nobody goes on before. */
    if (p->turn == 0 && !may_go_on(runner->worker, 0))
        return -ECANCELED;
    if (p->entries == NULL && p->count != 0) /* the system says why it cannot be */
        return hafti_io_poll_blocking(NULL, p->count, 0);
    return runner->worker->backend->poll_several(runner, p->entries, p->count, p->deadline,
                                                 p->turn);
}

static int default_close(void *unused, HAFT_PAYLOAD(haft_io_close) * payload) {
    (void)unused;
    return hafti_io_close_elsewhere(NULL, payload->descriptor);
}
static int clause_close(void *state, HAFT_PAYLOAD(haft_io_close) * payload) {
    hafti_io_runner_t *runner = state;
    if (!hafti_io_is_in_turn(runner->worker, HAFTI_IO_OF_SYSTEM))
        hafti_io_goes_on_after_others(HAFTI_IO_TO_THE_END);
    return runner->worker->backend->close(runner->worker, payload->descriptor);
}

static int default_sleep_until(void *unused, HAFT_PAYLOAD(haft_io_sleep_until) * payload) {
    (void)unused;
    int64_t deadline = payload->deadline > 0 ? payload->deadline : 0;
    struct timespec until = {deadline / HAFT_IO_SECOND, deadline % HAFT_IO_SECOND};
    int code;
    do
        code = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    while (code == EINTR);
    return -code;
}
/* A time that had passed when the worker last looked at its clock is not waited for: no timer, and no stack of its
   own for a task that does nothing else before. Not too often in a row, so that all others go on. */
static bool is_over(hafti_io_runner_t *runner, int64_t deadline) {
    hafti_io_worker_t *worker = runner->worker;
    return deadline < worker->clock && !hafti_io_is_withdrawn(runner) &&
           hafti_io_is_in_turn(worker, HAFTI_IO_LIGHT);
}
static int clause_sleep_until(void *state, HAFT_PAYLOAD(haft_io_sleep_until) * payload) {
    hafti_io_runner_t *runner = state;
    if (is_over(runner, payload->deadline))
        return 0;
    hafti_io_cell_t cell = {HAFTI_IO_WAITING, runner->task};
    return hafti_io_cell_wait(&cell, HAFTI_IO_CANCELLABLE, payload->deadline, "a time") ==
                   HAFTI_IO_CANCELLED
               ? -ECANCELED
               : 0;
}

static int64_t default_now(void *unused, HAFT_PAYLOAD(haft_io_now) * payload) {
    (void)unused, (void)payload;
    return hafti_io_clock();
}

static int64_t clause_now(void *state, HAFT_PAYLOAD(haft_io_now) * payload) {
    (void)payload;
    return hafti_io_worker_now(((hafti_io_runner_t *)state)->worker);
}

static int default_call_blocking(void *unused, HAFT_PAYLOAD(haft_io_call_blocking) * payload) {
    (void)unused;
    int saved = errno;
    payload->function(payload->argument);
    errno = saved; /* as where the pool calls it */
    return 0;
}
static int clause_call_blocking(void *state, HAFT_PAYLOAD(haft_io_call_blocking) * payload) {
    hafti_io_runner_t *runner = state;
    if (runner->worker->simulated != NULL || runner->worker->forked)
        return default_call_blocking(NULL, payload);
    return hafti_io_pool_call(runner, payload->function, payload->argument, payload->left,
                              HAFTI_IO_CANCELLABLE);
}

static int default_spawn(void *unused, HAFT_PAYLOAD(haft_io_spawn) * payload) {
    (void)unused, (void)payload;
    return -ESRCH;
}

static int default_yield(void *unused, HAFT_PAYLOAD(haft_io_yield) * payload) {
    (void)unused, (void)payload;
    return 0;
}

static haft_io_task_t *default_self(void *unused, HAFT_PAYLOAD(haft_io_self) * payload) {
    (void)unused, (void)payload;
    return NULL;
}
static haft_io_task_t *clause_self(void *state, HAFT_PAYLOAD(haft_io_self) * payload) {
    (void)payload;
    return ((hafti_io_runner_t *)state)->task;
}

HAFT_HANDLER(operations, NULL, HAFT_TAIL(haft_io_self, clause_self),
             HAFT_TAIL(haft_io_read, clause_read), HAFT_TAIL(haft_io_write, clause_write),
             HAFT_TAIL(haft_io_receive, clause_receive), HAFT_TAIL(haft_io_send, clause_send),
             HAFT_TAIL(haft_io_read_lent, clause_read_lent),
             HAFT_TAIL(haft_io_exchange, clause_exchange), HAFT_TAIL(haft_io_readv, clause_readv),
             HAFT_TAIL(haft_io_writev, clause_writev),
             HAFT_TAIL(haft_io_receive_message, clause_receive_message),
             HAFT_TAIL(haft_io_send_message, clause_send_message),
             HAFT_TAIL(haft_io_accept, clause_accept), HAFT_TAIL(haft_io_connect, clause_connect),
             HAFT_TAIL(haft_io_wait_ready, clause_wait_ready), HAFT_TAIL(haft_io_poll, clause_poll),
             HAFT_TAIL(haft_io_close, clause_close),
             HAFT_TAIL(haft_io_sleep_until, clause_sleep_until), HAFT_TAIL(haft_io_now, clause_now),
             HAFT_TAIL(haft_io_call_blocking, clause_call_blocking));
const haft_handler_t *const hafti_io_operations = &operations;

__attribute__((constructor)) static void set_defaults(void) {
    HAFT_SET_DEFAULT(haft_io_self, default_self);
    HAFT_SET_DEFAULT(haft_io_yield, default_yield);
    HAFT_SET_DEFAULT(haft_io_spawn, default_spawn);
    HAFT_SET_DEFAULT(haft_io_read, default_read);
    HAFT_SET_DEFAULT(haft_io_write, default_write);
    HAFT_SET_DEFAULT(haft_io_receive, default_receive);
    HAFT_SET_DEFAULT(haft_io_send, default_send);
    HAFT_SET_DEFAULT(haft_io_read_lent, default_read_lent);
    HAFT_SET_DEFAULT(haft_io_exchange, default_exchange);
    HAFT_SET_DEFAULT(haft_io_readv, default_readv);
    HAFT_SET_DEFAULT(haft_io_writev, default_writev);
    HAFT_SET_DEFAULT(haft_io_receive_message, default_receive_message);
    HAFT_SET_DEFAULT(haft_io_send_message, default_send_message);
    HAFT_SET_DEFAULT(haft_io_accept, default_accept);
    HAFT_SET_DEFAULT(haft_io_connect, default_connect);
    HAFT_SET_DEFAULT(haft_io_wait_ready, default_wait_ready);
    HAFT_SET_DEFAULT(haft_io_poll, default_poll);
    HAFT_SET_DEFAULT(haft_io_close, default_close);
    HAFT_SET_DEFAULT(haft_io_sleep_until, default_sleep_until);
    HAFT_SET_DEFAULT(haft_io_now, default_now);
    HAFT_SET_DEFAULT(haft_io_call_blocking, default_call_blocking);
}

/* ---- The functions ---- */

#define OR_CANCELLED(type, operation)                                                              \
    do {                                                                                           \
        type done = operation;                                                                     \
        return HAFTI_IO_LIKELY(done != -ECANCELED) ? done : (type)haft_io_unwind_cancelled();      \
    } while (0)

HAFTI_IO_HOT ssize_t haft_io_read(int descriptor, void *buffer, size_t size) {
    OR_CANCELLED(ssize_t, HAFT_PERFORM(haft_io_read, descriptor, buffer, size));
}

static inline ssize_t write_some(int descriptor, const void *buffer, size_t size) {
    OR_CANCELLED(ssize_t, HAFT_PERFORM(haft_io_write, descriptor, buffer, size));
}

HAFTI_IO_HOT ssize_t haft_io_write(int descriptor, const void *buffer, size_t size) {
    return write_some(descriptor, buffer, size);
}

int haft_io_write_all(int descriptor, const void *buffer, size_t size) {
    for (size_t sent = 0; sent < size;) {
        ssize_t done = write_some(descriptor, bytes_after(buffer, sent), size - sent);
        if (done < 0)
            return (int)done;
        sent += (size_t)done;
    }
    return 0;
}

ssize_t haft_io_read_all(int descriptor, void *buffer, size_t size) {
    haft_io_reader_t none_ahead = {.descriptor = descriptor};
    return haft_io_reader_read_all(&none_ahead, buffer, size);
}

HAFTI_IO_HOT ssize_t haft_io_read_lent(int descriptor, const void **bytes) {
    haft_io_give_back(*bytes);
    *bytes = NULL;
    OR_CANCELLED(ssize_t, HAFT_PERFORM(haft_io_read_lent, descriptor, bytes));
}

HAFTI_IO_HOT ssize_t haft_io_exchange(int descriptor, const void *buffer, size_t size,
                                      const void **bytes) {
    ssize_t done = HAFT_PERFORM(haft_io_exchange, descriptor, buffer, size, bytes);
    if (HAFTI_IO_LIKELY(done > 0))
        return done;
    haft_io_give_back(*bytes);
    *bytes = NULL;
    return done != -ECANCELED ? done : haft_io_unwind_cancelled();
}

int haft_io_wait_ready(int descriptor, short events) {
    OR_CANCELLED(int, HAFT_PERFORM(haft_io_wait_ready, descriptor, events));
}

int haft_io_poll(struct pollfd *entries, size_t count, int64_t deadline) {
    OR_CANCELLED(int, HAFT_PERFORM(haft_io_poll, entries, count, deadline, 0));
}

int haft_io_close(int descriptor) {
    return HAFT_PERFORM(haft_io_close, descriptor);
}

/*
 * What MSG_WAITALL promises is more than one operation, which ends with what there is: the first has got so many bytes
 * of the message's parts. A cancel, or an error, is for the next, as it is of recvmsg(2); and so is what comes after
 * descriptors, or other control data, that have come along. `control_size` is the room for these, if none have.
 */
static HAFTI_IO_COLD ssize_t receive_all(int socket, struct msghdr *message, int flags,
                                         ssize_t first, size_t control_size) {
    size_t got = (size_t)first, skipped = 0;
    if (!hafti_io_is_stream(socket))
        return first;
    for (size_t i = 0; i < message->msg_iovlen && message->msg_controllen == 0;) {
        struct iovec part = message->msg_iov[i];
        if (skipped + part.iov_len <= got) {
            skipped += message->msg_iov[i++].iov_len;
            continue;
        }
        part.iov_base = (char *)part.iov_base + (got - skipped);
        part.iov_len -= got - skipped;
        struct msghdr rest = {.msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = message->msg_control,
                              .msg_controllen = control_size};
        ssize_t more = HAFT_PERFORM(haft_io_receive_message, socket, flags, &rest);
        if (more <= 0)
            break;
        got += (size_t)more;
        message->msg_controllen = rest.msg_controllen;
        message->msg_flags |= rest.msg_flags;
    }
    return (ssize_t)got;
}

static inline bool wants_all(int flags) {
    return HAFTI_IO_UNLIKELY((flags & (MSG_WAITALL | MSG_PEEK)) == MSG_WAITALL);
}

ssize_t haft_io_receive_from(int socket, void *buffer, size_t size, int flags,
                             struct sockaddr *address, socklen_t *address_size) {
    ssize_t done =
        HAFT_PERFORM(haft_io_receive, socket, flags, buffer, size, address, address_size);
    if (wants_all(flags) && done > 0 && (size_t)done < size) {
        struct msghdr message = {.msg_iov = &(struct iovec){buffer, size}, .msg_iovlen = 1};
        return receive_all(socket, &message, flags, done, 0);
    }
    return HAFTI_IO_LIKELY(done != -ECANCELED) ? done : haft_io_unwind_cancelled();
}

ssize_t haft_io_receive(int socket, void *buffer, size_t size, int flags) {
    return haft_io_receive_from(socket, buffer, size, flags, NULL, NULL);
}

/* How long to wait before asking again whether a queue has room. */
static const int64_t QUEUE_PAUSE = HAFT_IO_MILLISECOND, LONGEST_PAUSE = 16 * HAFT_IO_MILLISECOND;

#define UNTIL_QUEUED(type, operation)                                                              \
    for (int64_t pause = QUEUE_PAUSE;; pause += pause < LONGEST_PAUSE ? pause : 0) {               \
        type done = operation;                                                                     \
        if (HAFTI_IO_LIKELY(done != QUEUE_FULL))                                                   \
            return HAFTI_IO_LIKELY(done != -ECANCELED) ? done : (type)haft_io_unwind_cancelled();  \
        int code = haft_io_sleep(pause);                                                           \
        if (code != 0)                                                                             \
            return code;                                                                           \
    }

ssize_t haft_io_send_to(int socket, const void *buffer, size_t size, int flags,
                        const struct sockaddr *address, socklen_t address_size){
    UNTIL_QUEUED(ssize_t,
                 HAFT_PERFORM(haft_io_send, socket, flags, buffer, size, address, address_size))}

ssize_t haft_io_send(int socket, const void *buffer, size_t size, int flags) {
    return haft_io_send_to(socket, buffer, size, flags, NULL, 0);
}

ssize_t haft_io_readv(int descriptor, const struct iovec *parts, size_t count) {
    OR_CANCELLED(ssize_t, HAFT_PERFORM(haft_io_readv, descriptor, parts, count));
}

ssize_t haft_io_writev(int descriptor, const struct iovec *parts, size_t count) {
    OR_CANCELLED(ssize_t, HAFT_PERFORM(haft_io_writev, descriptor, parts, count));
}

ssize_t haft_io_receive_message(int socket, struct msghdr *message, int flags) {
    size_t control_size = message != NULL ? message->msg_controllen : 0;
    ssize_t done = HAFT_PERFORM(haft_io_receive_message, socket, flags, message);
    if (wants_all(flags) && done > 0)
        return receive_all(socket, message, flags, done, control_size);
    return HAFTI_IO_LIKELY(done != -ECANCELED) ? done : haft_io_unwind_cancelled();
}

ssize_t haft_io_send_message(int socket, const struct msghdr *message, int flags) {
    UNTIL_QUEUED(ssize_t, HAFT_PERFORM(haft_io_send_message, socket, flags, message))
}

int haft_io_accept(int listener) {
    for (;;) {
        int connection = HAFT_PERFORM(haft_io_accept, listener);
        if (HAFTI_IO_UNLIKELY(hafti_io_lacks_descriptor(connection))) {
            int code = haft_io_sleep(HAFTI_IO_DESCRIPTOR_PAUSE);
            if (code != 0)
                return code;
        } else if (connection != -ECONNABORTED) {
            return connection != -ECANCELED ? connection : haft_io_unwind_cancelled();
        }
    }
}

int haft_io_connect(int socket, const struct sockaddr *address, socklen_t address_size){
    UNTIL_QUEUED(int, HAFT_PERFORM(haft_io_connect, socket, address, address_size))}

int64_t haft_io_now(void) {
    return HAFT_PERFORM(haft_io_now);
}

int haft_io_sleep_until(int64_t deadline) {
    OR_CANCELLED(int, HAFT_PERFORM(haft_io_sleep_until, deadline));
}

int haft_io_sleep(int64_t nanoseconds) {
    int64_t now = haft_io_now();
    return haft_io_sleep_until(nanoseconds < HAFT_IO_FOREVER - now ? now + nanoseconds
                                                                   : HAFT_IO_FOREVER);
}

int haft_io_call_blocking(void (*function)(void *), void *argument) {
    OR_CANCELLED(int, HAFT_PERFORM(haft_io_call_blocking, function, argument, NULL));
}
int haft_io_call_or_leave(void (*function)(void *), void *argument, void (*left)(void *)) {
    OR_CANCELLED(int, HAFT_PERFORM(haft_io_call_blocking, function, argument, left));
}
