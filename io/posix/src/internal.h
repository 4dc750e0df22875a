/* SPDX-License-Identifier: MIT */
/*
 * What the files of libhaft-posix share. Each replaced function has the system's name. On a task it
 * does the same as the system's in three steps: try without blocking; if that says EAGAIN and the
 * caller would block, wait by an effect of libhaft-io; try again.
 *
 * In a simulation a task has two systems below it: the machine's, and the simulation's, which has
 * the descriptors from HAFTI_IO_FIRST_SIMULATED on and, where it simulates a network or files, what
 * is made and named. Both are called in the same way.
 *
 * The effects are performed directly: the functions of haft/io.h would unwind the stack of a
 * cancelled task, and frames of a C library cannot be unwound.
 */
#ifndef HAFT_POSIX_INTERNAL_H
#define HAFT_POSIX_INTERNAL_H

#include "../../src/results.h"
#include "../../src/simulated_calls.h"
#include "haft/io.h"

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

/* Those that a simulation has, too: of sockets and of any descriptor (simulated.c), of files
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
    X(dup)                                                                                         \
    X(fsync)
#define HAFT_POSIX_OF_FILES(X)                                                                     \
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
/* Which glibc has from 2.36 on. */
#if __GLIBC_PREREQ(2, 36)
#    define HAFT_POSIX_OF_NEW_CHANCE(X)                                                            \
        X(arc4random)                                                                              \
        X(arc4random_buf)                                                                          \
        X(arc4random_uniform)
#else
#    define HAFT_POSIX_OF_NEW_CHANCE(X)
#endif
/* All that are replaced, or called. */
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
    X(pthread_rwlock_rdlock)                                                                       \
    X(pthread_rwlock_tryrdlock)                                                                    \
    X(pthread_rwlock_wrlock)                                                                       \
    X(pthread_rwlock_trywrlock)

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
typedef struct haft_posix_system {
#define HAFT_POSIX_FIELD(name) __typeof__(name) *name;
    HAFT_POSIX_FUNCTIONS(HAFT_POSIX_FIELD)
    HAFT_POSIX_CALLED_FUNCTIONS(HAFT_POSIX_FIELD)
#undef HAFT_POSIX_FIELD
} haft_posix_system_t;

/* Available from the first call on, which may come before this library's constructors have run. */
extern haft_posix_system_t haft_posix_functions;
extern bool haft_posix_has_functions;
void haft_posix_find_functions(void);
static inline const haft_posix_system_t *haft_posix_system(void) {
    if (__builtin_expect(!__atomic_load_n(&haft_posix_has_functions, __ATOMIC_ACQUIRE), false))
        haft_posix_find_functions();
    return &haft_posix_functions;
}
#define SYSTEM(name) (haft_posix_system()->name)

/* Those of the system that has the descriptor. On a simulated one none of them waits, whatever its
   mode. */
const haft_posix_system_t *haft_posix_simulated_system(void); /* simulated.c */
void haft_posix_find_simulated(const haft_posix_system_t *system);
static inline bool haft_posix_may_be_simulated(int descriptor) {
    return __builtin_expect(descriptor >= HAFTI_IO_FIRST_SIMULATED, false);
}
static inline const haft_posix_system_t *haft_posix_system_of(int descriptor) {
    return haft_posix_may_be_simulated(descriptor) ? haft_posix_simulated_system()
                                                   : haft_posix_system();
}
#define SYSTEM_OF(descriptor, name) (haft_posix_system_of(descriptor)->name)
/* Whether the caller may be in a simulation at all. */
static inline bool haft_posix_may_simulate(void) {
    return __builtin_expect(__atomic_load_n(&haft_io_simulates, __ATOMIC_RELAXED), false);
}
/* Those by which the caller makes sockets. */
const haft_posix_system_t *haft_posix_network_system_asked(void);
static inline const haft_posix_system_t *haft_posix_network_system(void) {
    return haft_posix_may_simulate() ? haft_posix_network_system_asked() : haft_posix_system();
}
/* Those for a path, in the descriptor of a directory or AT_FDCWD. If they are the simulation's,
   others have gone on first, as they would while the pool works. (paths.c) */
const haft_posix_system_t *haft_posix_path_system_asked(int directory, const char *path);
static inline const haft_posix_system_t *haft_posix_path_system(int directory, const char *path) {
    return haft_posix_may_simulate() ? haft_posix_path_system_asked(directory, path)
                                     : haft_posix_system();
}
/* The same for a path that is to be opened: /dev/random and /dev/urandom are any simulation's own. */
const haft_posix_system_t *haft_posix_opening_system(int directory, const char *path);
#define PATH_SYSTEM(directory, path, name) (haft_posix_path_system(directory, path)->name)
/* Those for paths that do not begin in a descriptor, and name nothing that is the machine's. */
const haft_posix_system_t *haft_posix_file_system(void); /* simulated.c */
void haft_posix_find_simulated_files(haft_posix_system_t *simulated);

/* Whether the caller is a task, and not a thread without tasks, or the scheduler. */
static inline bool haft_posix_on_task(void) {
    return haft_io_runs_here() && haft_io_self() != NULL;
}

/* What such a child does is the system's, although it seems to be its parent's task. (closing.c) */
bool haft_posix_is_child_of_vfork(void);

/* Whether the task has forked, and does not know yet whether exec has failed in the child.
   (children.c) */
bool haft_posix_has_forked(void);
/* Called when it knows. */
void haft_posix_forget_fork(void);

/* Whether the number is of a call for the time or for chance that the simulation answers, in which the
   caller is a task; then its result, or -1 and errno. (clocks.c) */
bool haft_posix_simulated_call(long number, long first, long second, long third, long *result);

/* ---- Directories of a simulation (directories.c) ---- */

/* Their streams have odd addresses, which no memory of the C library has. */
static inline bool haft_posix_is_simulated_stream(const DIR *stream) {
    return ((uintptr_t)stream & 1) != 0;
}
int haft_posix_close_stream(DIR *stream);

/* ---- errno ---- */

/* Called once by each call that a cancel has cut, an effect having returned -ECANCELED. It lets
   others go first, and never unwinds. Returns -ECANCELED; or -ETIMEDOUT, if a deadline has cut. */
int haft_posix_cancelled(void);

/* Not inlined, so that the address of errno is looked up anew: after a wait it may be another
   thread's. */
int haft_posix_error(void);
void haft_posix_set_error(int error);
void haft_posix_set_host_error(int error);
/* The result of a call that has transferred `done` bytes, or failed with a negative error number.
   `before` is errno as the caller left it, which a success does not change. */
ssize_t haft_posix_answer(ssize_t done, int before);

/* Of bytes to or from an address, or without one: NULL. */
static inline struct msghdr haft_posix_message(struct iovec *bytes, const void *address,
                                               socklen_t address_size) {
    return (struct msghdr){.msg_name = (void *)(uintptr_t)address,
                           .msg_namelen = address != NULL ? address_size : 0,
                           .msg_iov = bytes,
                           .msg_iovlen = 1};
}

/* The result of a system call, whose error is a negative number: -1, and errno. */
static inline long haft_posix_result(long done) {
    if (done >= 0)
        return done;
    haft_posix_set_error((int)-done);
    return -1;
}
/* Such a call of the simulation in which the calling task runs. */
#define SIMULATED(name, ...) haft_posix_result(haft_io_simulated_calls()->name(__VA_ARGS__))

/* The result of a system call, or the negative error number. Only for calls that set errno. */
#define HAFT_POSIX_RESULT(call)                                                                    \
    __extension__({                                                                                \
        __auto_type result_ = (call);                                                              \
        result_ >= 0 ? (ssize_t)result_ : -(ssize_t)haft_posix_error();                            \
    })

/* The name that is resolved in place of this one: in a simulation with a network every name is of
   its one host. (pooled.c) */
const char *haft_posix_host_of(const char *name, int family);

/* ---- Waiting (wait.c) ---- */

/* The deadline by the socket's SO_RCVTIMEO or SO_SNDTIMEO, or HAFT_IO_FOREVER. */
int64_t haft_posix_socket_deadline(int socket, int option);
/* The deadline that is this duration from now, or where the clock ends; HAFT_IO_FOREVER for NULL.
   -EINVAL if it is not a valid time. */
int64_t haft_posix_deadline(const struct timespec *duration);
/* The deadline for a time of the clock, as the clock runs now. -ENOSYS: the clock measures
   processor time, so it does not run steadily. */
int64_t haft_posix_deadline_at(clockid_t clock, const struct timespec *time);
/* Returns 0; -EAGAIN after the deadline; -ECANCELED; -EBADF if the descriptor was closed. `turn` is
   the number of such waits for the same thing that were in vain, without another task having run
   since the caller found out, as for the effect haft_io_poll. */
int haft_posix_wait(int descriptor, short events, int64_t deadline, unsigned turn);
/* The same for data in one descriptor and room in the other. */
int haft_posix_wait_for_both(int from, int to, int64_t deadline, unsigned turn);
/* The same for a descriptor whose creation returned `code`. If the system call is missing, or there
   are no descriptors, this returns 0 after a moment. */
int haft_posix_wait_without(int code, int64_t deadline);
/* The same, but no cancel ends the wait. */
int haft_posix_wait_to_the_end(int descriptor, short events, int64_t deadline, unsigned turn);
/* Sleeps before another try of an operation whose readiness the kernel does not notify; `*pause`, 0
   at first, grows. 0, or -ECANCELED. */
int haft_posix_pause(int64_t *pause);
/* The same for a lock that another task may hold. In a simulation time stands still for it. */
int haft_posix_pause_for_lock(int64_t *pause);
/* Calls the function on a thread of the pool, or here if there is none. 0, or -ECANCELED: it was
   not called. */
int haft_posix_call_blocking(void (*function)(void *), void *argument);
/* The same for a call that may block although its descriptor is ready, because another thread was
   faster: after some milliseconds it fails with EINTR, or returns a partial count. */
int haft_posix_call_for_a_moment(void (*function)(void *), void *argument);
/* The same for a call on the descriptor, which in a simulation cannot block. */
static inline int haft_posix_call_on(int descriptor, void (*function)(void *), void *argument) {
    if (!haft_posix_may_be_simulated(descriptor))
        return haft_posix_call_for_a_moment(function, argument);
    function(argument);
    return 0;
}
/* As haft_posix_call_blocking, but no cancel withdraws the call. */
void haft_posix_block_to_the_end(void (*function)(void *), void *argument);
/* The two, with the caller's errno and h_errno. A call that was not made has set both. */
void haft_posix_call_pooled(void (*function)(void *), void *argument);
void haft_posix_call_to_the_end(void (*function)(void *), void *argument);

/*
 * Called after a cancel has cut a wait that is to run to its end, which has returned -ECANCELED.
 * Makes the wait again where no cancel from outside reaches it, and returns its result; -ECANCELED
 * if there is no memory for that, or if a simulation cancels all tasks because none can go on.
 */
int haft_posix_wait_again(int (*wait)(void *argument), void *argument);

/* ---- What is known of descriptors (modes.c) ---- */

/* Whether reads and writes of the number may wait by libhaft-io's own operations: it is a socket
   that blocks, without limits of time or a mark, as an earlier wait has found out. */
bool haft_posix_is_plain(int number);
/* What was known before a wait looks at the number's mode; and that it blocks without a limit. */
typedef struct haft_posix_look {
    uint64_t word;
    uint32_t changes;
} haft_posix_look_t;
haft_posix_look_t haft_posix_look(int number);
void haft_posix_note_wait(int number, haft_posix_look_t look);
/* Around what closes the number, or gives it to another file. */
void haft_posix_number_changes(int number);
void haft_posix_number_has_changed(int number);
/* After a change of the mode of some descriptor, or of many numbers. */
void haft_posix_mode_has_changed(void);
/* A low-water mark has been set on some socket of the process. */
bool haft_posix_some_low_water(void);

/* ---- Waiters by address (waiters.c) ---- */

/* What is at the address; a key is their sum. Addresses are divisible by four. */
enum { HAFT_POSIX_CONDITION, HAFT_POSIX_FUTEX, HAFT_POSIX_SHARED_FUTEX };

/* In the frame of the task that waits. */
typedef struct haft_posix_waiter {
    struct haft_posix_waiter *next, *previous;
    uintptr_t key;
    uint32_t bits; /* of a wake, one of which it waits for */
    bool woken;
    bool parks;                 /* its thread; see parking.c */
    const haft_io_task_t *task; /* then */
    haft_io_event_t event;
} haft_posix_waiter_t;

/* Lists the task, which is about to wait. With a word: false if that is not of the value, as seen
   before any wake that comes now. */
bool haft_posix_list(haft_posix_waiter_t *waiter, const uint32_t *word, uint32_t value);
/* The task that parks by this key, or NULL. It waits on as long as the caller, a task of its thread,
   does not. */
const haft_io_task_t *haft_posix_first_of(uintptr_t key);
/* Calls the function with the word of each task that parks, and wakes the task if it returns true. Any
   thread may call it. */
void haft_posix_visit_parked(bool (*visit)(uint32_t *word));
/* For a task that is not to wait after all: whether it was woken before. */
bool haft_posix_unlist(haft_posix_waiter_t *waiter);
/* Waits, which no cancel ends. Whether the task was woken. */
bool haft_posix_await(haft_posix_waiter_t *waiter, int64_t deadline);
/* Wakes so many that wait for one of the bits, the first to come first. How many that were. Any
   thread may call it. */
int haft_posix_wake(uintptr_t key, int most, uint32_t bits);
/* Calls the function, which does the same for threads, and then wakes and moves the rest of the
   tasks to the other key. The sum, or the function's error. */
long haft_posix_requeue(uintptr_t key, uintptr_t other, int most_woken, int most_moved,
                        long (*of_threads)(const void *), const void *argument);

/* Whether a wait while the word has this value parks the calling thread, as Rust's std does it. */
bool haft_posix_is_park(const uint32_t *word, uint32_t value);
/* Around the wait of a task for such a word, whose key it is. Returns the task. */
const haft_io_task_t *haft_posix_begin_park(uintptr_t key);
void haft_posix_end_park(void);

/* Defines a system call for the pool: a struct with its arguments, a block of members, and its
   result, `done`; and a function that makes the call, in which `c` is that struct. */
#define HAFT_POSIX_POOLED(name, type, arguments, ...)                                              \
    typedef struct name##_call {                                                                   \
        struct arguments;                                                                          \
        type done;                                                                                 \
    } name##_call_t;                                                                               \
    static void call_##name(void *argument) {                                                      \
        name##_call_t *c = argument;                                                               \
        c->done = SYSTEM(name)(__VA_ARGS__);                                                       \
    }
/* How many numbers the process's table of descriptors has room for; FD_SETSIZE, if that is
   unknown. */
int haft_posix_room_for_descriptors(void);
/* Ends the waits on the descriptor of the stream, which is about to be closed. */
void haft_posix_end_waits(FILE *stream);
/* Lets other tasks run now and then, for calls that may block but never do. */
void haft_posix_take_turns(int descriptor);

#endif
