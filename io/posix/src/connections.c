/* SPDX-License-Identifier: MIT */
/* Connections: accepting, connecting. */
#include "internal.h"

#include <netinet/in.h>

/* ---- accept ---- */

typedef struct accept_call {
    int listener;
    struct sockaddr *address;
    socklen_t *size;
    int flags;
    ssize_t done;
} accept_call_t;

static void accept_now(void *argument) {
    accept_call_t *call = argument;
    call->done = HAFT_POSIX_RESULT(
        SYSTEM_OF(call->listener, accept4)(call->listener, call->address, call->size, call->flags));
}

/* No flag keeps the call from blocking, and the listener's mode is shared with other threads. So a
   blocking listener accepts in the pool, once a connection is there, which another thread may have
   taken by then. */
static ssize_t accept_when_there(accept_call_t *call) {
    int listener = call->listener;
    bool is_refused =
        (call->flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != 0; /* refused before a connection
                                                                 comes */
    if (is_refused || !hafti_io_blocks(listener)) {
        accept_now(call);
        return call->done;
    }
    int64_t deadline = hafti_posix_socket_deadline(listener, SO_RCVTIMEO);
    hafti_posix_take_turns(listener);
    for (unsigned turn = 0;;) {
        struct pollfd entry = {listener, POLLIN, 0};
        /* A socket that does not listen is never ready: the system refuses it at once. */
        bool is_ready = SYSTEM_OF(listener, poll)(&entry, 1, 0) != 0 || !hafti_io_listens(listener);
        int code = is_ready ? hafti_posix_call_on(listener, accept_now, call)
                            : hafti_posix_wait(listener, POLLIN, deadline, turn++);
        if (code != 0)
            return code;
        if (is_ready && call->done != -EAGAIN && call->done != -EINTR)
            return call->done;
    }
}

HAFT_POSIX_EXPORT int accept4(int listener, __SOCKADDR_ARG address, socklen_t *restrict size,
                              int flags) {
    if (!hafti_posix_on_task())
        return SYSTEM_OF(listener, accept4)(listener, address, size, flags);
    int before = hafti_posix_error();
    accept_call_t call = {listener, address.__sockaddr__, size, flags, -1};
    return (int)hafti_posix_answer(accept_when_there(&call), before);
}

HAFT_POSIX_EXPORT int accept(int listener, __SOCKADDR_ARG address, socklen_t *restrict size) {
    if (!hafti_posix_on_task())
        return SYSTEM_OF(listener, accept)(listener, address, size);
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
    call->done = HAFT_POSIX_RESULT(
        SYSTEM_OF(call->socket, connect)(call->socket, call->address, call->size));
}

/* Begins to connect, or asks for the state, for some milliseconds only. A connect that a signal
   interrupts goes on by itself, except for a Unix socket whose listener is busy: it has begun
   nothing. */
static ssize_t begin(connect_call_t *call) {
    int code = hafti_posix_call_on(call->socket, connect_in_pool, call);
    if (code != 0)
        return code;
    if (call->done != -EINTR)
        return call->done;
    return hafti_io_socket_option(call->socket, SO_DOMAIN) == AF_UNIX ? -EAGAIN : -EINPROGRESS;
}

/* The kernel does not notify when a busy listener has room; a simulation does. */
static ssize_t begin_in_turn(connect_call_t *call, int64_t deadline) {
    int64_t pause = 0;
    ssize_t done;
    while ((done = begin(call)) == -EAGAIN && HAFT_PERFORM(haft_io_now) < deadline) {
        if (hafti_posix_may_be_simulated(call->socket) && deadline == HAFT_IO_FOREVER)
            return HAFT_PERFORM(haft_io_connect, call->socket, call->address, call->size);
        int code = hafti_posix_pause(&pause);
        if (code != 0)
            return code;
    }
    return done;
}

/* Returns the result when the connect is over. TCP gives the result up only to a further call;
   without that, the program's next connect would get it. For other protocols such a call, after a
   failure, would begin again. */
static ssize_t finish(connect_call_t *call) {
    int error = hafti_io_socket_option(call->socket, SO_ERROR);
    ssize_t done = 0;
    if (error == 0 || hafti_io_socket_option(call->socket, SO_PROTOCOL) == IPPROTO_TCP)
        done = begin(call);
    if (error != 0)
        return error < 0 ? error : -error;
    return done != -EISCONN ? done : 0;
}

static ssize_t connect_waiting(connect_call_t *call) {
    if (!hafti_io_blocks(call->socket))
        return HAFT_POSIX_RESULT(
            SYSTEM_OF(call->socket, connect)(call->socket, call->address, call->size));
    int64_t deadline = hafti_posix_socket_deadline(call->socket, SO_SNDTIMEO);
    ssize_t done = begin_in_turn(call, deadline);
    if (done != -EINPROGRESS && done != -EALREADY)
        return done;
    unsigned turn = 0;
    do {
        int code = hafti_posix_wait(call->socket, POLLOUT, deadline, turn++);
        if (code != 0)
            return code == -EAGAIN ? -EINPROGRESS : code;
        done = finish(call);
    } while (done == -EINPROGRESS || done == -EALREADY);
    return done;
}

HAFT_POSIX_EXPORT int connect(int socket, __CONST_SOCKADDR_ARG address, socklen_t size) {
    if (!hafti_posix_on_task())
        return SYSTEM_OF(socket, connect)(socket, address, size);
    int before = hafti_posix_error();
    connect_call_t call = {socket, address.__sockaddr__, size, 0};
    return (int)hafti_posix_answer(connect_waiting(&call), before);
}

/* ---- glibc's own name ---- */

HAFT_POSIX_ALSO(__connect, connect)
