/* SPDX-License-Identifier: MIT */
/* Connections: accepting, connecting. */
#include "internal.h"

#include <netinet/in.h>

/* ---- accept ---- */

/* A listener that blocks is asked only when somebody is there. No flag of the call could keep it from
   blocking, and its mode is other threads' as well. */
static ssize_t accept_when_there(int listener, struct sockaddr *address, socklen_t *size,
                                 int flags) {
    bool is_refused = (flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != 0; /* before anybody comes */
    if (is_refused || !haft_io_blocks(listener))
        return HAFT_POSIX_RESULT(SYSTEM(accept4)(listener, address, size, flags));
    int64_t deadline = haft_posix_socket_deadline(listener, SO_RCVTIMEO);
    haft_posix_take_turns(listener);
    for (unsigned turn = 0;; turn++) {
        struct pollfd entry = {listener, POLLIN, 0};
        /* A socket that does not listen is never ready: the system refuses it at once. */
        if (SYSTEM(poll)(&entry, 1, 0) != 0 || !haft_io_listens(listener)) {
            ssize_t done = HAFT_POSIX_RESULT(SYSTEM(accept4)(listener, address, size, flags));
            if (done != -EAGAIN)
                return done;
        }
        int code = haft_posix_wait(listener, POLLIN, deadline, turn);
        if (code != 0)
            return code;
    }
}

HAFT_POSIX_EXPORT int accept4(int listener, __SOCKADDR_ARG address, socklen_t *restrict size,
                              int flags) {
    if (!haft_posix_on_task())
        return SYSTEM(accept4)(listener, address, size, flags);
    int before = haft_posix_error();
    return (int)haft_posix_answer(accept_when_there(listener, address.__sockaddr__, size, flags),
                                  before);
}

HAFT_POSIX_EXPORT int accept(int listener, __SOCKADDR_ARG address, socklen_t *restrict size) {
    if (!haft_posix_on_task())
        return SYSTEM(accept)(listener, address, size);
    return accept4(listener, address, size, 0);
}

/* ---- connect ---- */

typedef struct connect_call {
    int socket;
    const struct sockaddr *address;
    socklen_t size;
    ssize_t done;
} connect_call_t;

static void connect_in_pool(void *argument) {
    connect_call_t *call = argument;
    call->done = HAFT_POSIX_RESULT(SYSTEM(connect)(call->socket, call->address, call->size));
}

/* Begins to connect, and lets the socket block again. */
static ssize_t begin(const connect_call_t *call) {
    int flags = fcntl(call->socket, F_GETFL);
    fcntl(call->socket, F_SETFL, flags | O_NONBLOCK);
    ssize_t done = HAFT_POSIX_RESULT(SYSTEM(connect)(call->socket, call->address, call->size));
    fcntl(call->socket, F_SETFL, flags);
    return done;
}

/* When it is over. TCP learns that by a further call only: without one the next would have its result. For
   others such a call, after a failure, would begin again. */
static ssize_t finish(const connect_call_t *call) {
    int error = haft_io_socket_option(call->socket, SO_ERROR);
    ssize_t done = 0;
    if (error == 0 || haft_io_socket_option(call->socket, SO_PROTOCOL) == IPPROTO_TCP)
        done = begin(call);
    if (error != 0)
        return error < 0 ? error : -error;
    return done != -EISCONN ? done : 0;
}

static ssize_t connect_waiting(connect_call_t *call) {
    if (!haft_io_blocks(call->socket))
        return HAFT_POSIX_RESULT(SYSTEM(connect)(call->socket, call->address, call->size));
    ssize_t done = begin(call);
    if (done == -EAGAIN) { /* A Unix socket whose listener is busy: nothing tells when it is not. */
        int code = haft_posix_call_blocking(connect_in_pool, call);
        return code == 0 ? call->done : code;
    }
    if (done != -EINPROGRESS && done != -EALREADY)
        return done;
    int64_t deadline = haft_posix_socket_deadline(call->socket, SO_SNDTIMEO);
    unsigned turn = 0;
    do {
        int code = haft_posix_wait(call->socket, POLLOUT, deadline, turn++);
        if (code != 0)
            return code == -EAGAIN ? -EINPROGRESS : code;
        done = finish(call);
    } while (done == -EINPROGRESS || done == -EALREADY);
    return done;
}

HAFT_POSIX_EXPORT int connect(int socket, __CONST_SOCKADDR_ARG address, socklen_t size) {
    if (!haft_posix_on_task())
        return SYSTEM(connect)(socket, address, size);
    int before = haft_posix_error();
    connect_call_t call = {socket, address.__sockaddr__, size, 0};
    return (int)haft_posix_answer(connect_waiting(&call), before);
}

/* ---- glibc's own name ---- */

HAFT_POSIX_ALSO(__connect, connect)
