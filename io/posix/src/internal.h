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

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <resolv.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
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
    X(preadv)                                                                                      \
    X(preadv2)                                                                                     \
    X(write)                                                                                       \
    X(writev)                                                                                      \
    X(pwrite)                                                                                      \
    X(pwritev)                                                                                     \
    X(pwritev2)                                                                                    \
    X(fsync)                                                                                       \
    X(fdatasync)                                                                                   \
    X(close)                                                                                       \
    X(close_range)                                                                                 \
    X(closefrom)                                                                                   \
    X(dup2)                                                                                        \
    X(dup3)                                                                                        \
    X(fclose)                                                                                      \
    X(freopen)                                                                                     \
    X(closedir)                                                                                    \
    X(recv)                                                                                        \
    X(recvfrom)                                                                                    \
    X(recvmsg)                                                                                     \
    X(recvmmsg)                                                                                    \
    X(send)                                                                                        \
    X(sendto)                                                                                      \
    X(sendmsg)                                                                                     \
    X(sendmmsg)                                                                                    \
    X(setsockopt)                                                                                  \
    X(accept)                                                                                      \
    X(accept4)                                                                                     \
    X(connect)                                                                                     \
    X(sendfile)                                                                                    \
    X(splice)                                                                                      \
    X(tee)                                                                                         \
    X(copy_file_range)                                                                             \
    X(open)                                                                                        \
    X(openat)                                                                                      \
    X(flock)                                                                                       \
    X(lockf)                                                                                       \
    X(fcntl)                                                                                       \
    X(poll)                                                                                        \
    X(ppoll)                                                                                       \
    X(select)                                                                                      \
    X(pselect)                                                                                     \
    X(epoll_wait)                                                                                  \
    X(epoll_pwait)                                                                                 \
    X(sigsuspend)                                                                                  \
    X(sigwait)                                                                                     \
    X(sigwaitinfo)                                                                                 \
    X(sigtimedwait)                                                                                \
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
    X(gethostbyname2)                                                                              \
    X(gethostbyname2_r)                                                                            \
    X(gethostbyaddr)                                                                               \
    X(gethostbyaddr_r)                                                                             \
    X(res_query)                                                                                   \
    X(res_search)                                                                                  \
    X(res_nquery)                                                                                  \
    X(res_nsearch)                                                                                 \
    X(wait)                                                                                        \
    X(waitpid)                                                                                     \
    X(wait3)                                                                                       \
    X(wait4)                                                                                       \
    X(waitid)                                                                                      \
    X(system)                                                                                      \
    X(popen)                                                                                       \
    X(posix_spawn)                                                                                 \
    X(posix_spawnp)                                                                                \
    X(pclose)                                                                                      \
    X(pthread_join)                                                                                \
    X(pthread_cond_wait)                                                                           \
    X(pthread_cond_timedwait)                                                                      \
    X(pthread_cond_clockwait)                                                                      \
    X(pthread_cond_signal)                                                                         \
    X(pthread_cond_broadcast)                                                                      \
    X(pthread_mutex_lock)                                                                          \
    X(pthread_mutex_trylock)                                                                       \
    X(pthread_rwlock_rdlock)                                                                       \
    X(pthread_rwlock_tryrdlock)                                                                    \
    X(pthread_rwlock_wrlock)                                                                       \
    X(pthread_rwlock_trywrlock)

/* By the fortified forms: glibc's report of a buffer that is too small. */
__attribute__((noreturn)) void __chk_fail(void);

/* Another name of a function. */
#define HAFT_POSIX_ALSO(name, of)                                                                  \
    HAFT_POSIX_EXPORT extern __typeof__(of) name __attribute__((alias(#of)));

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

/* Where an effect has had -ECANCELED: a cancel has cut the task's wait short. Returns that, and never unwinds. */
int haft_posix_cancelled(void);

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

/* HAFT_IO_FOREVER, or when the socket's SO_RCVTIMEO or SO_SNDTIMEO ends. */
int64_t haft_posix_socket_deadline(int socket, int option);
/* A deadline so much later; HAFT_IO_FOREVER for NULL. -EINVAL for what is no time. */
int64_t haft_posix_deadline(const struct timespec *duration);
/* The same for a time of the clock, as the clock runs now. -ENOSYS: it runs only while something does (it counts the
   time of processors). */
int64_t haft_posix_deadline_at(clockid_t clock, const struct timespec *time);
/* 0; -EAGAIN after the deadline; -ECANCELED; -EBADF: it was closed. `turn`: so many such waits for the same thing were in
   vain, and no task has gone on since the caller has found out, as of the effect haft_io_poll. */
int haft_posix_wait(int descriptor, short events, int64_t deadline, unsigned turn);
/* The same for bytes in the one and room in the other. */
int haft_posix_wait_for_both(int from, int to, int64_t deadline, unsigned turn);
/* The same where the call that makes the descriptor has said `code`. 0: a moment has passed, since the call is missing,
   or there are no descriptors. */
int haft_posix_wait_without(int code, int64_t deadline);
/* Sleeps before a further try of what nothing tells when it can be done; `*pause`, 0 at first, grows. 0, or -ECANCELED. */
int haft_posix_pause(int64_t *pause);
/* Calls it on a thread of the pool; here if there is none. 0, or -ECANCELED: it was not called. */
int haft_posix_call_blocking(void (*function)(void *), void *argument);
/* The same for what may wait though it is ready, since another has been there before: then it fails with EINTR, or has done a
   part, after some milliseconds. */
int haft_posix_call_for_a_moment(void (*function)(void *), void *argument);
/* The same, with the caller's errno and h_errno. A call that was not made has set both. */
void haft_posix_call_pooled(void (*function)(void *), void *argument);
/* The same, and no cancel withdraws it. */
void haft_posix_call_to_the_end(void (*function)(void *), void *argument);

/* A call of the system for the pool: its arguments, in a block of members, its result, `done`, and a function that
   makes it, where `c` is the call. */
#define HAFT_POSIX_POOLED(name, type, arguments, ...)                                              \
    typedef struct name##_call {                                                                   \
        struct arguments;                                                                          \
        type done;                                                                                 \
    } name##_call_t;                                                                               \
    static void call_##name(void *argument) {                                                      \
        name##_call_t *c = argument;                                                               \
        c->done = SYSTEM(name)(__VA_ARGS__);                                                       \
    }
/* How many numbers the process's table of descriptors has room for; FD_SETSIZE, if nothing tells. */
int haft_posix_room_for_descriptors(void);
/* Those on the descriptor of the stream, which is about to be closed. */
void haft_posix_end_waits(FILE *stream);
/* Lets others run now and then, where a call may block but never does. */
void haft_posix_take_turns(int descriptor);

#endif
