/* SPDX-License-Identifier: MIT */
/* The system below this library: the table of its functions, errno and results (system.c). All
   other files use it. */
#ifndef HAFTI_POSIX_SYSTEM_H
#define HAFTI_POSIX_SYSTEM_H

#include "../../src/calls.h"
#include "haft/io_binding.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <resolv.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define HAFT_POSIX_EXPORT __attribute__((visibility("default")))

/* Functions that a simulation has, too: for sockets and any descriptor (simulated.c), for files
   (simulated_files.c). */
#define HAFT_POSIX_OF_DESCRIPTORS(X)                                                               \
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
    X(recv)                                                                                        \
    X(recvfrom)                                                                                    \
    X(recvmsg)                                                                                     \
    X(recvmmsg)                                                                                    \
    X(send)                                                                                        \
    X(sendto)                                                                                      \
    X(sendmsg)                                                                                     \
    X(sendmmsg)                                                                                    \
    X(socket)                                                                                      \
    X(socketpair)                                                                                  \
    X(bind)                                                                                        \
    X(listen)                                                                                      \
    X(accept)                                                                                      \
    X(accept4)                                                                                     \
    X(connect)                                                                                     \
    X(shutdown)                                                                                    \
    X(getsockname)                                                                                 \
    X(getpeername)                                                                                 \
    X(getsockopt)                                                                                  \
    X(setsockopt)                                                                                  \
    X(poll)                                                                                        \
    X(fcntl)                                                                                       \
    X(ioctl)                                                                                       \
    X(dup)
#define HAFT_POSIX_OF_FILES(X)                                                                     \
    X(fsync)                                                                                       \
    X(openat)                                                                                      \
    X(lseek)                                                                                       \
    X(ftruncate)                                                                                   \
    X(truncate)                                                                                    \
    X(fallocate)                                                                                   \
    X(posix_fallocate)                                                                             \
    X(posix_fadvise)                                                                               \
    X(flock)                                                                                       \
    X(lockf)                                                                                       \
    X(statx)                                                                                       \
    X(faccessat)                                                                                   \
    X(euidaccess)                                                                                  \
    X(fchmod)                                                                                      \
    X(fchmodat)                                                                                    \
    X(fchown)                                                                                      \
    X(fchownat)                                                                                    \
    X(utimensat)                                                                                   \
    X(futimens)                                                                                    \
    X(mkdirat)                                                                                     \
    X(unlinkat)                                                                                    \
    X(remove)                                                                                      \
    X(renameat2)                                                                                   \
    X(linkat)                                                                                      \
    X(symlinkat)                                                                                   \
    X(readlinkat)                                                                                  \
    X(realpath)                                                                                    \
    X(getcwd)                                                                                      \
    X(chdir)                                                                                       \
    X(fchdir)
/* Functions that glibc has from 2.36 on. */
#if __GLIBC_PREREQ(2, 36)
#    define HAFT_POSIX_OF_NEW_CHANCE(X)                                                            \
        X(arc4random)                                                                              \
        X(arc4random_buf)                                                                          \
        X(arc4random_uniform)
#else
#    define HAFT_POSIX_OF_NEW_CHANCE(X)
#endif
/* All functions that are replaced or called. */
#define HAFT_POSIX_FUNCTIONS(X)                                                                    \
    HAFT_POSIX_OF_DESCRIPTORS(X)                                                                   \
    HAFT_POSIX_OF_FILES(X)                                                                         \
    X(fdatasync)                                                                                   \
    X(close)                                                                                       \
    X(close_range)                                                                                 \
    X(closefrom)                                                                                   \
    X(dup2)                                                                                        \
    X(dup3)                                                                                        \
    X(fopen)                                                                                       \
    X(fdopen)                                                                                      \
    X(fclose)                                                                                      \
    X(freopen)                                                                                     \
    X(closedir)                                                                                    \
    X(sendfile)                                                                                    \
    X(splice)                                                                                      \
    X(tee)                                                                                         \
    X(copy_file_range)                                                                             \
    X(open)                                                                                        \
    X(opendir)                                                                                     \
    X(fdopendir)                                                                                   \
    X(readdir)                                                                                     \
    X(rewinddir)                                                                                   \
    X(seekdir)                                                                                     \
    X(telldir)                                                                                     \
    X(dirfd)                                                                                       \
    X(scandir)                                                                                     \
    X(mkostemps)                                                                                   \
    X(mkdtemp)                                                                                     \
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
    X(clock_gettime)                                                                               \
    X(gettimeofday)                                                                                \
    X(time)                                                                                        \
    X(timespec_get)                                                                                \
    X(getrandom)                                                                                   \
    X(getentropy)                                                                                  \
    HAFT_POSIX_OF_NEW_CHANCE(X)                                                                    \
    X(getaddrinfo)                                                                                 \
    X(getnameinfo)                                                                                 \
    X(gethostbyname)                                                                               \
    X(gethostbyname_r)                                                                             \
    X(gethostbyname2)                                                                              \
    X(gethostbyname2_r)                                                                            \
    X(gethostbyaddr)                                                                               \
    X(gethostbyaddr_r)                                                                             \
    X(getpwnam)                                                                                    \
    X(getpwnam_r)                                                                                  \
    X(getpwuid)                                                                                    \
    X(getpwuid_r)                                                                                  \
    X(getgrnam)                                                                                    \
    X(getgrnam_r)                                                                                  \
    X(getgrgid)                                                                                    \
    X(getgrgid_r)                                                                                  \
    X(getservbyname)                                                                               \
    X(getservbyname_r)                                                                             \
    X(getservbyport)                                                                               \
    X(getservbyport_r)                                                                             \
    X(getprotobyname)                                                                              \
    X(getprotobyname_r)                                                                            \
    X(getprotobynumber)                                                                            \
    X(getprotobynumber_r)                                                                          \
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
    X(pthread_mutex_unlock)                                                                        \
    X(pthread_mutex_trylock)                                                                       \
    X(pthread_mutex_clocklock)                                                                     \
    X(pthread_spin_lock)                                                                           \
    X(pthread_spin_trylock)                                                                        \
    X(flockfile)                                                                                   \
    X(ftrylockfile)                                                                                \
    X(funlockfile)                                                                                 \
    X(sem_wait)                                                                                    \
    X(sem_clockwait)                                                                               \
    X(sem_timedwait)                                                                               \
    X(sem_trywait)                                                                                 \
    X(sem_post)                                                                                    \
    X(pthread_once)                                                                                \
    X(pthread_barrier_init)                                                                        \
    X(pthread_barrier_wait)                                                                        \
    X(pthread_barrier_destroy)                                                                     \
    X(pthread_create)                                                                              \
    X(sigaction)                                                                                   \
    X(signal)                                                                                      \
    X(pthread_exit)                                                                                \
    X(pthread_detach)                                                                              \
    X(pthread_tryjoin_np)                                                                          \
    X(pthread_clockjoin_np)                                                                        \
    X(pthread_rwlock_clockrdlock)                                                                  \
    X(pthread_rwlock_clockwrlock)                                                                  \
    X(pthread_cancel)                                                                              \
    X(pthread_testcancel)                                                                          \
    X(pthread_kill)                                                                                \
    X(pthread_sigqueue)                                                                            \
    X(pthread_setname_np)                                                                          \
    X(pthread_getname_np)                                                                          \
    X(pthread_getattr_np)                                                                          \
    X(pthread_getcpuclockid)                                                                       \
    X(pthread_setaffinity_np)                                                                      \
    X(pthread_getaffinity_np)                                                                      \
    X(pthread_setschedparam)                                                                       \
    X(pthread_getschedparam)                                                                       \
    X(pthread_setschedprio)                                                                        \
    X(thrd_create)                                                                                 \
    X(thrd_detach)                                                                                 \
    X(thrd_exit)                                                                                   \
    X(pthread_rwlock_rdlock)                                                                       \
    X(pthread_rwlock_tryrdlock)                                                                    \
    X(pthread_rwlock_wrlock)                                                                       \
    X(pthread_rwlock_trywrlock)                                                                    \
    X(pthread_rwlock_unlock)

/* Further ones of files, which are asked by a system call: C libraries before glibc 2.33 have other
   names for them. */
#define HAFT_POSIX_CALLED_FUNCTIONS(X)                                                             \
    X(fstat)                                                                                       \
    X(fstatat)                                                                                     \
    X(mknodat)

/* For the fortified forms: glibc's report of a buffer that is too small. */
__attribute__((noreturn)) void __chk_fail(void);

/* Another name of a function. */
#define HAFT_POSIX_ALSO(name, of)                                                                  \
    HAFT_POSIX_EXPORT extern __typeof__(of) name __attribute__((alias(#of)));
/* The name for large files, whose types are others in C and the same in memory. */
#define HAFT_POSIX_ALSO_64(of)                                                                     \
    HAFT_POSIX_EXPORT extern __typeof__(of) haft_posix_##of##64 __asm__(#of "64") __THROW          \
        __attribute__((alias(#of)));

/* The system's own functions. */
typedef struct hafti_posix_system {
#define HAFT_POSIX_FIELD(name) __typeof__(name) *name;
    HAFT_POSIX_FUNCTIONS(HAFT_POSIX_FIELD)
    HAFT_POSIX_CALLED_FUNCTIONS(HAFT_POSIX_FIELD)
#undef HAFT_POSIX_FIELD
} hafti_posix_system_t;

/* Available from the first call on, which may come before this library's constructors have run. */
extern hafti_posix_system_t haft_posix_functions;
extern bool hafti_posix_has_functions;
void hafti_posix_find_functions(void);
static inline const hafti_posix_system_t *hafti_posix_system(void) {
    if (__builtin_expect(!__atomic_load_n(&hafti_posix_has_functions, __ATOMIC_ACQUIRE), false))
        hafti_posix_find_functions();
    return &haft_posix_functions;
}
#define SYSTEM(name) (hafti_posix_system()->name)

/* Whether the caller is a task, and not a thread without tasks, or the scheduler. */
static inline bool hafti_posix_on_task(void) {
    return haft_io_runs_here() && haft_io_self() != NULL;
}

/* Whether the caller is a child of vfork. Its calls are the system's, although it seems to be its
   parent's task. */
bool hafti_posix_is_child_of_vfork(void);
/* Whether the process is a child of fork, or a later descendant. */
bool hafti_posix_is_child(void);

/* ---- Messages at run time ---- */

/* Messages that are written at most once in a process. */
enum hafti_posix_told {
    HAFT_POSIX_TOLD_POLICY,
    HAFT_POSIX_TOLD_SIGNAL,
    HAFT_POSIX_TOLD_CANCEL,
    HAFT_POSIX_TOLD_STACK,
    HAFT_POSIX_TOLD_COUNT
};
/* Writes "haft-posix: " and the text to standard error. */
void hafti_posix_tell_once(enum hafti_posix_told what, const char *text);
/* The same, and ends the process. */
__attribute__((noreturn)) void hafti_posix_end_process(const char *text);
/* Starts a thread of the library's own, on which all signals are blocked. */
void hafti_posix_make_thread(void *(*function)(void *));

/* ---- pthread_cancel of a thread that is a task ---- */

typedef struct hafti_posix_cut {
    bool is_asked;       /* to end; any thread may set it */
    bool is_interrupted; /* by a signal (interrupting.c); until the call that waits has noticed */
    uint32_t lock;       /* for `waiter`; no holder waits */
    void *waiter;        /* of a wait for a condition or semaphore, which it may end (waiters.c) */
    void (*end)(void);   /* does not return */
} hafti_posix_cut_t;

/* Sets the record of the calling task, until its end. */
void hafti_posix_set_cut(hafti_posix_cut_t *cut);
hafti_posix_cut_t *hafti_posix_cut(void);
/* Whether the calling task is asked to end, and lets itself be asked (pthread_setcancelstate). */
bool hafti_posix_is_asked_to_end(void);
/* Whether a signal has interrupted the wait that the calling task was in. */
bool hafti_posix_was_interrupted(void);
/* Ends the calling task if it is. */
void hafti_posix_end_if_asked(void);

/* ---- errno ---- */

/* To be called once by each call that a cancel has cut, after its effect has returned -ECANCELED.
   Lets others go first, and never unwinds. Returns -ECANCELED; or -ETIMEDOUT, if a deadline has
   cut; or
   -EINTR, if a signal has. */
int hafti_posix_cancelled(void);

/* Not inlined, so that the address of errno is looked up anew: after a wait it may be another
   thread's. */
int hafti_posix_error(void);
void hafti_posix_set_error(int error);
void hafti_posix_set_host_error(int error);
/* The result of a call that has transferred `done` bytes, or failed with a negative error number.
   `before` is errno as the caller left it, which a success does not change. */
ssize_t hafti_posix_answer(ssize_t done, int before);

/* A message of bytes to or from an address, or without one: NULL. */
static inline struct msghdr hafti_posix_message(struct iovec *bytes, const void *address,
                                                socklen_t address_size) {
    return (struct msghdr){.msg_name = (void *)(uintptr_t)address,
                           .msg_namelen = address != NULL ? address_size : 0,
                           .msg_iov = bytes,
                           .msg_iovlen = 1};
}

/* The result of a system call, whose error is a negative number: -1, and errno. */
static inline long hafti_posix_result(long done) {
    if (done >= 0)
        return done;
    hafti_posix_set_error((int)-done);
    return -1;
}
/* The result of a system call, or the negative error number. Only for calls that set errno. */
#define HAFT_POSIX_RESULT(call)                                                                    \
    __extension__({                                                                                \
        __auto_type result_ = (call);                                                              \
        result_ >= 0 ? (ssize_t)result_ : -(ssize_t)hafti_posix_error();                           \
    })

#endif
