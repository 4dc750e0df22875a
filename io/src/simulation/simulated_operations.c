/* SPDX-License-Identifier: MIT */
/*
 * The operations of libhaft-io in a simulation: each is tried on its object, and waits for that if
 * it has to. The seed may make one fail before it has begun.
 */
#include "simulation.h"

#include <limits.h>

enum { FIRST = HAFTI_IO_FIRST_SIMULATED };
/* The flags of recv(2) and send(2). The last three change nothing here. */
enum { FLAGS = MSG_PEEK | MSG_WAITALL | MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_CMSG_CLOEXEC };

typedef hafti_io_simulated_state_t state_t;
typedef hafti_io_object_t object_t;

static bool sends(const hafti_io_operation_t *operation) {
    return hafti_io_events_of(operation) == POLLOUT;
}

static bool is_message(const hafti_io_operation_t *operation) {
    return operation->kind == HAFTI_IO_RECEIVE_MESSAGE || operation->kind == HAFTI_IO_SEND_MESSAGE;
}

/* 0, or the system's error for such parts; `too_many`: its error for more than it takes. */
static int check_parts(const struct iovec *parts, size_t count, int too_many) {
    if (count > IOV_MAX)
        return too_many;
    if (parts == NULL && count != 0)
        return -EFAULT;
    for (size_t i = 0; i < count; i++)
        if (parts[i].iov_len > SSIZE_MAX)
            return -EINVAL;
    return 0;
}

/* Stores the memory of an operation's bytes: 0, or an error. `*part` is room of the caller's for
   it. */
static int memory_of_operation(const hafti_io_operation_t *operation, struct iovec *part,
                               hafti_io_memory_t *memory) {
    const struct iovec *parts = part;
    size_t count = 1;
    int too_many = -EINVAL;
    *part = (struct iovec){operation->buffer, operation->size};
    if (operation->kind == HAFTI_IO_READ_PARTS || operation->kind == HAFTI_IO_WRITE_PARTS) {
        parts = operation->buffer;
        count = operation->size;
    } else if (is_message(operation)) {
        const struct msghdr *message = operation->buffer;
        if (message == NULL)
            return -EFAULT;
        parts = message->msg_iov;
        count = message->msg_iovlen;
        too_many = -EMSGSIZE;
    } else {
        part->iov_len = part->iov_len < SSIZE_MAX ? part->iov_len : SSIZE_MAX;
    }
    int code = check_parts(parts, count, too_many);
    if (code == 0)
        *memory = hafti_io_memory_of(parts, count);
    return code;
}

static ssize_t attempt(hafti_io_worker_t *worker, object_t *object,
                       const hafti_io_operation_t *operation);

static ssize_t attempt_here(hafti_io_operation_t *operation) {
    hafti_io_worker_t *worker = hafti_io_worker();
    return attempt(worker, hafti_io_object_of(worker->backend_state, operation->descriptor),
                   operation);
}

static bool is_of_sockets(const hafti_io_operation_t *operation) {
    enum hafti_io_kind kind = operation->kind;
    return kind == HAFTI_IO_RECEIVE || kind == HAFTI_IO_SEND || kind == HAFTI_IO_RECEIVE_MESSAGE ||
           kind == HAFTI_IO_SEND_MESSAGE;
}

/* Whether the operation does nothing on a socket if it has no bytes: as in the system, unlike a
   receive, a send and a write. */
static bool moves_nothing(const hafti_io_operation_t *operation) {
    return operation->kind == HAFTI_IO_READ || operation->kind == HAFTI_IO_READ_PARTS ||
           operation->kind == HAFTI_IO_WRITE_PARTS;
}

static ssize_t receive_datagram(state_t *state, object_t *socket,
                                const hafti_io_operation_t *operation,
                                const hafti_io_memory_t *memory, int flags) {
    bool truncated = false;
    if (!is_message(operation))
        return hafti_io_simulated_datagram_receives(
            state, socket, memory, flags, operation->address, operation->address_size, &truncated);
    struct msghdr *message = operation->buffer;
    ssize_t got = hafti_io_simulated_datagram_receives(
        state, socket, memory, flags, message->msg_name, &message->msg_namelen, &truncated);
    if (got >= 0) {
        message->msg_controllen = 0;
        message->msg_flags = truncated ? MSG_TRUNC : 0;
    }
    return got;
}

static ssize_t send_datagram(state_t *state, object_t *socket,
                             const hafti_io_operation_t *operation,
                             const hafti_io_memory_t *memory) {
    if (!is_message(operation))
        return hafti_io_simulated_datagram_sends(
            state, socket, memory, operation->address,
            operation->address != NULL ? *operation->address_size : 0);
    const struct msghdr *message = operation->buffer;
    if (message->msg_controllen != 0)
        return -EOPNOTSUPP;
    return hafti_io_simulated_datagram_sends(state, socket, memory, message->msg_name,
                                             message->msg_namelen);
}

static ssize_t read_end(state_t *state, object_t *end, const hafti_io_operation_t *operation,
                        const hafti_io_memory_t *memory, int flags) {
    hafti_io_passed_t *passed = NULL;
    ssize_t got = hafti_io_simulated_end_reads(state, end, memory, flags, &passed);
    if (is_message(operation) && got >= 0) {
        struct msghdr *message = operation->buffer;
        size_t room = message->msg_control != NULL ? message->msg_controllen : 0;
        message->msg_namelen = 0;
        message->msg_controllen = 0;
        message->msg_flags = 0;
        if (passed != NULL)
            hafti_io_passed_arrive(state, passed, message, room);
    } else if (passed != NULL) {
        hafti_io_passed_drop(state, passed);
    }
    if (got >= 0 && operation->kind == HAFTI_IO_RECEIVE && operation->address_size != NULL)
        *operation->address_size = 0;
    return got;
}

static ssize_t write_end(state_t *state, object_t *end, const hafti_io_operation_t *operation,
                         const hafti_io_memory_t *memory) {
    hafti_io_passed_t *passed = NULL;
    int code = is_message(operation) ? hafti_io_passed_of(state, operation->buffer, &passed) : 0;
    if (code != 0)
        return code;
    ssize_t done = hafti_io_simulated_end_writes(state, end, memory, passed);
    if (done <= 0 && passed != NULL)
        hafti_io_passed_drop(state, passed);
    return done;
}

/* The system's error for a socket that is not connected, or listens. */
static int without_connection(const object_t *socket, bool sends) {
    if (hafti_io_simulated_is_connecting(socket))
        return -EAGAIN;
    if (socket->place.family == AF_UNIX)
        return sends ? -ENOTCONN : -EINVAL;
    return sends ? -EPIPE : -ENOTCONN;
}

static ssize_t transfer(hafti_io_worker_t *worker, object_t *object,
                        const hafti_io_operation_t *operation) {
    state_t *state = worker->backend_state;
    int flags = hafti_io_flags_of(operation);
    if (is_of_sockets(operation) && !hafti_io_object_is_socket(object))
        return -ENOTSOCK;
    if ((flags & ~(object->kind == HAFTI_IO_DATAGRAMS ? FLAGS | MSG_TRUNC : FLAGS)) != 0)
        return -EOPNOTSUPP;
    struct iovec part;
    hafti_io_memory_t memory;
    int code = memory_of_operation(operation, &part, &memory);
    if (code != 0)
        return code;
    if (memory.size == 0 && hafti_io_object_is_socket(object) && moves_nothing(operation))
        return 0;
    switch (object->kind) {
    case HAFTI_IO_DATAGRAMS:
        return sends(operation) ? send_datagram(state, object, operation, &memory)
                                : receive_datagram(state, object, operation, &memory, flags);
    case HAFTI_IO_A_STREAM:
    case HAFTI_IO_A_PIPE:
        return sends(operation) ? write_end(state, object, operation, &memory)
                                : read_end(state, object, operation, &memory, flags);
    case HAFTI_IO_A_FILE:
        return hafti_io_simulated_file_transfers(worker->simulated, object, &memory,
                                                 &object->position, sends(operation));
    default:
        return without_connection(object, sends(operation));
    }
}

static ssize_t attempt_really(const object_t *end, const hafti_io_operation_t *operation) {
    hafti_io_operation_t real = *operation;
    real.descriptor = end->real;
    return hafti_io_operate_blocking(&real);
}

static ssize_t attempt(hafti_io_worker_t *worker, object_t *object,
                       const hafti_io_operation_t *operation) {
    if (object->kind == HAFTI_IO_A_REAL_END)
        return attempt_really(object, operation);
    switch (operation->kind) {
    case HAFTI_IO_POLL: {
        int ready = hafti_io_simulated_events(object, (short)operation->flags);
        return ready != 0 ? ready : -EAGAIN;
    }
    case HAFTI_IO_ACCEPT:
        return hafti_io_simulated_accept(worker->backend_state, object);
    case HAFTI_IO_CONNECT:
        return hafti_io_simulated_connect(worker->backend_state, object, operation);
    case HAFTI_IO_READ_LENT:
        return hafti_io_read_into_lent(operation, attempt_here);
    default:
        return transfer(worker, object, operation);
    }
}

static int fault_of(state_t *state, object_t *object, const hafti_io_operation_t *operation) {
    return operation->kind != HAFTI_IO_POLL ? hafti_io_fault_of(state, object, sends(operation))
                                            : 0;
}

ssize_t hafti_io_simulated_attempt(const hafti_io_operation_t *operation) {
    hafti_io_worker_t *worker = hafti_io_worker();
    state_t *state = worker->backend_state;
    object_t *object = hafti_io_object_of(state, operation->descriptor);
    if (object == NULL)
        return -EBADF;
    int code = fault_of(state, object, operation);
    return code != 0 ? code : attempt(worker, object, operation);
}

ssize_t hafti_io_simulated_operate(hafti_io_runner_t *runner, hafti_io_operation_t *operation) {
    if (operation->descriptor < FIRST)
        return hafti_io_operate_blocking(operation);
    state_t *state = runner->worker->backend_state;
    object_t *object = hafti_io_object_of(state, operation->descriptor);
    if (object == NULL)
        return -EBADF;
    ssize_t done = fault_of(state, object, operation);
    if (done != 0)
        return done;
    hafti_io_object_hold(object);
    for (int code = 0; code == 0;) {
        done = hafti_io_object_of(state, operation->descriptor) == object
                   ? attempt(runner->worker, object, operation)
                   : -EBADF;
        if (done != -EAGAIN || hafti_io_must_not_wait(operation))
            break;
        if (object->kind == HAFTI_IO_DATAGRAMS && object->finished && !sends(operation) &&
            operation->kind != HAFTI_IO_POLL) {
            done = 0;
            break;
        }
        code = hafti_io_wait_on(hafti_io_waiters_of(state, operation->descriptor), operation,
                                runner->task);
        done = code;
    }
    if (operation->kind == HAFTI_IO_CONNECT)
        hafti_io_simulated_connect_ends(state, object, operation, done);
    hafti_io_object_release(object);
    return done;
}
