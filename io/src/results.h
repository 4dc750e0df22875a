/* SPDX-License-Identifier: MIT */
/*
 * Results of system calls as values, without changing errno; and which descriptors make a call
 * block. libhaft-posix includes this file, too.
 */
#ifndef HAFTI_IO_RESULTS_H
#define HAFTI_IO_RESULTS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The function of the system for the descriptor. libhaft-posix defines it before, since it has two
   systems, and replaces these functions itself. */
#ifndef HAFTI_IO_SYSTEM_OF
#    define HAFTI_IO_SYSTEM_OF(descriptor, name) name
#endif

/* The result of a call that sets errno, or the negative error number. Not to be used in a function
   that waits: compilers keep the address of errno, which is another thread's after a wait of a task
   that moves. */
#define HAFTI_IO_RESULT(call)                                                                      \
    __extension__({                                                                                \
        int saved_ = errno;                                                                        \
        __auto_type result_ = (call);                                                              \
        if (result_ < 0) {                                                                         \
            result_ = -errno;                                                                      \
            errno = saved_;                                                                        \
        }                                                                                          \
        result_;                                                                                   \
    })

/*
 * Whether the error means that an optional system call is missing: the kernel does not know the
 * call or its arguments, or a filter refuses it. If the error was a genuine answer, the fallback
 * reports it again.
 */
static inline bool hafti_io_is_missing(int code) {
    return code == -ENOSYS || code == -EPERM || code == -EINVAL;
}

/* The process, or the system, has no descriptor left. Nothing notifies when there is one again. */
static inline bool hafti_io_lacks_descriptor(int code) {
    return code == -EMFILE || code == -ENFILE;
}
/* The time between two tries when descriptors have run out, and between two looks where there is no
   descriptor for a wait. */
#define HAFTI_IO_DESCRIPTOR_PAUSE (10 * HAFT_IO_MILLISECOND)

/* A number from getsockopt(2), or a negative error number. */
static inline __attribute__((cold)) int hafti_io_socket_option(int socket, int option) {
    int value = 0;
    socklen_t size = sizeof value;
    int code = HAFTI_IO_RESULT(
        HAFTI_IO_SYSTEM_OF(socket, getsockopt)(socket, SOL_SOCKET, option, &value, &size));
    return code == 0 ? value : code;
}

static inline bool hafti_io_listens(int socket) {
    return hafti_io_socket_option(socket, SO_ACCEPTCONN) > 0;
}

static inline bool hafti_io_blocks(int descriptor) {
    int flags = HAFTI_IO_SYSTEM_OF(descriptor, fcntl)(descriptor, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK) == 0;
}

/* Whether poll(2) always reports the descriptor as ready although it waits for the disk, whatever
   its mode. */
static inline __attribute__((cold)) bool hafti_io_is_file(int descriptor) {
    struct stat status;
    return HAFTI_IO_SYSTEM_OF(descriptor, fstat)(descriptor, &status) == 0 &&
           (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
}

static inline __attribute__((cold)) bool hafti_io_is_pipe(int descriptor) {
    struct stat status;
    return HAFTI_IO_SYSTEM_OF(descriptor, fstat)(descriptor, &status) == 0 &&
           S_ISFIFO(status.st_mode);
}

#endif
