/* SPDX-License-Identifier: MIT */
/*
 * What calls of the system say, as values: errno stays what it was. libhaft-posix, which knows nothing else of
 * this folder, includes it, too.
 */
#ifndef HAFT_IO_RESULTS_H
#define HAFT_IO_RESULTS_H

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>

/* The result of a call that sets errno, or the negative error number. Not in a function that waits: compilers keep
   the address of errno, which is another thread's after a wait of a task that moves. */
#define HAFT_IO_RESULT(call)                                                                       \
    __extension__({                                                                                \
        int saved_ = errno;                                                                        \
        __auto_type result_ = (call);                                                              \
        if (result_ < 0) {                                                                         \
            result_ = -errno;                                                                      \
            errno = saved_;                                                                        \
        }                                                                                          \
        result_;                                                                                   \
    })

/* A number that getsockopt(2) tells of the socket, or a negative error number. */
static __attribute__((noinline, unused)) int haft_io_socket_option(int socket, int option) {
    int value = 0;
    socklen_t size = sizeof value;
    int code = HAFT_IO_RESULT(getsockopt(socket, SOL_SOCKET, option, &value, &size));
    return code == 0 ? value : code;
}

static inline bool haft_io_listens(int socket) {
    return haft_io_socket_option(socket, SO_ACCEPTCONN) > 0;
}

#endif
