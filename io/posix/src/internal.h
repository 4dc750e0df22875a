/* SPDX-License-Identifier: MIT */
/*
 * What the files of libhaft-posix share. Each function of the system stands here under its own name; which
 * is called on a task does the same in three steps: try without blocking; if that says EAGAIN and the
 * caller would block, wait by an effect of libhaft-io; try again.
 *
 * The effects are performed raw: the functions of haft/io.h would unwind the stack of a task that is
 * cancelled, and the frames of a library in C have nothing that could be unwound.
 */
#ifndef HAFT_POSIX_INTERNAL_H
#define HAFT_POSIX_INTERNAL_H

#include "../../src/results.h"
#include "haft/io.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define HAFT_POSIX_EXPORT __attribute__((visibility("default")))

#define HAFT_POSIX_FUNCTIONS(X)                                                                    \
    X(read)                                                                                        \
    X(readv)                                                                                       \
    X(pread)                                                                                       \
    X(write)                                                                                       \
    X(writev)                                                                                      \
    X(pwrite)                                                                                      \
    X(fsync)                                                                                       \
    X(fdatasync)                                                                                   \
    X(close)                                                                                       \
    X(recv)                                                                                        \
    X(recvfrom)                                                                                    \
    X(recvmsg)                                                                                     \
    X(send)                                                                                        \
    X(sendto)                                                                                      \
    X(sendmsg)                                                                                     \
    X(accept)                                                                                      \
    X(accept4)                                                                                     \
    X(connect)                                                                                     \
    X(poll)                                                                                        \
    X(ppoll)                                                                                       \
    X(select)                                                                                      \
    X(pselect)                                                                                     \
    X(epoll_wait)                                                                                  \
    X(epoll_pwait)                                                                                 \
    X(sleep)                                                                                       \
    X(usleep)                                                                                      \
    X(nanosleep)                                                                                   \
    X(clock_nanosleep)                                                                             \
    X(thrd_sleep)                                                                                  \
    X(sched_yield)                                                                                 \
    X(getaddrinfo)                                                                                 \
    X(getnameinfo)                                                                                 \
    X(gethostbyname)                                                                               \
    X(gethostbyname_r)                                                                             \
    X(wait)                                                                                        \
    X(waitpid)

/* The system's own functions. */
typedef struct haft_posix_system {
#define HAFT_POSIX_FIELD(name) __typeof__(name) *name;
    HAFT_POSIX_FUNCTIONS(HAFT_POSIX_FIELD)
#undef HAFT_POSIX_FIELD
} haft_posix_system_t;

/* From the first call on, which may come before this library's constructors have run. */
const haft_posix_system_t *haft_posix_system(void);
#define SYSTEM(name) (haft_posix_system()->name)

/* Whether the caller is a task, rather than a thread without any, or the scheduler. */
static inline bool haft_posix_on_task(void) {
    return haft_io_runs_here() && haft_io_self() != NULL;
}

/* ---- errno ---- */

/* The address of errno is looked up afresh: it may be another thread's after a wait. */
int haft_posix_error(void);
void haft_posix_set_error(int error);
/* What a call returns that has done so much, or failed with a negative error number. `before`: errno as the
   caller left it, which a success does not change. */
ssize_t haft_posix_answer(ssize_t done, int before);

/* The result of a system call, or the negative error number. Only for calls that set errno. */
#define HAFT_POSIX_RESULT(call)                                                                    \
    __extension__({                                                                                \
        __auto_type result_ = (call);                                                              \
        result_ >= 0 ? (ssize_t)result_ : -(ssize_t)haft_posix_error();                            \
    })

/* ---- Waiting (wait.c) ---- */

bool haft_posix_blocks(int descriptor);
/* HAFT_IO_FOREVER, or when the socket's SO_RCVTIMEO or SO_SNDTIMEO ends. */
int64_t haft_posix_socket_deadline(int socket, int option);
/* A deadline so much later; HAFT_IO_FOREVER for NULL. -EINVAL for what is no time. */
int64_t haft_posix_deadline(const struct timespec *duration);
/* 0; -EAGAIN after the deadline; -ECANCELED; -EBADF: it was closed. */
int haft_posix_wait(int descriptor, short events, int64_t deadline);
/* Calls it on a thread of the pool; here if there is none. 0, or -ECANCELED: it was not called. */
int haft_posix_call_blocking(void (*function)(void *), void *argument);
/* Lets others run now and then, where a call may block but never does. */
void haft_posix_take_turns(int descriptor);

#endif
