/* SPDX-License-Identifier: MIT */
/*
 * The system fails at each of its calls in turn, while programs that use everything run: out of
 * memory, of descriptors or of threads, interrupted, not ready after all, with less than was asked
 * for, with a broken connection. The program sees an error, or the call is made again; nothing is
 * left, and nobody waits for ever. No program sees what the system may always do (interrupt, give
 * less, not be ready).
 *
 * The linker puts functions of this file (__wrap_) in the way of the library's calls. A request of
 * io_uring fails by being another one, which does nothing, until its completion.
 */
#include "../src/operations.h"
#include "sample.h"

#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#ifdef FAULTS_IN_URING
#    include <liburing.h>
#endif

/* ---- Which call fails, and how ---- */

enum { SHORT = -1, NO_MEMORY = -2 }; /* or an error number */

/* The traits of a call, besides that it can fail for good. */
enum traits { PLAIN = 0, INTERRUPTIBLE = 1, TRANSFERS = 2, WAITS = 4, ALLOCATES = 8 };

static bool armed;
static int fault;            /* an error number, or what is above */
static long target, counted; /* the number of the call that fails, and of those so far */
static const char *struck;   /* the call that has failed */

static bool concerns(int traits) {
    switch (fault) {
    case SHORT:
        return (traits & TRANSFERS) != 0;
    case NO_MEMORY:
        return (traits & ALLOCATES) != 0;
    case EINTR:
        return (traits & INTERRUPTIBLE) != 0;
    case EAGAIN:
        return (traits & WAITS) != 0;
    case ECONNRESET:
        return (traits & TRANSFERS) != 0;
    default:
        return (traits & ALLOCATES) == 0;
    }
}
/* A thread that starts: libhaft ends the process, with a message, if there is no memory for its
   state. */
static __thread bool starts;
static bool strikes(const char *name, int traits) {
    if (!__atomic_load_n(&armed, __ATOMIC_RELAXED) || starts || !concerns(traits) ||
        __atomic_fetch_add(&counted, 1, __ATOMIC_RELAXED) != target)
        return false;
    __atomic_store_n(&struck, name, __ATOMIC_RELAXED);
    if (fault > 0)
        errno = fault;
    return true;
}

/* ---- Memory ---- */

#define FAILS_TO_ALLOCATE(name, size) strikes(#name, ALLOCATES)
#include "blocks.h"

static void sample_yields(void) {}

void *__real_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset) {
    if (strikes("mmap", ALLOCATES)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(at, size, protection, flags, file, offset);
}

/* ---- Not ready after all, or not all of it: epoll reports again, as if ready later ---- */

enum { MOST_FILES = 1024 };
static struct {
    int epoll;
    struct epoll_event event;
} watched[MOST_FILES];

int __real_epoll_ctl(int epoll, int operation, int file, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int file, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int file, struct epoll_event *event) {
    if (strikes("epoll_ctl", PLAIN))
        return -1;
    if (file < MOST_FILES)
        watched[file].epoll = operation == EPOLL_CTL_DEL ? 0 : epoll;
    if (file < MOST_FILES && event != NULL)
        watched[file].event = *event;
    return __real_epoll_ctl(epoll, operation, file, event);
}
static void tell_again(int file) {
    int error = errno;
    if ((fault == EAGAIN || fault == SHORT) && file >= 0 && file < MOST_FILES &&
        watched[file].epoll != 0)
        __real_epoll_ctl(watched[file].epoll, EPOLL_CTL_MOD, file, &watched[file].event);
    errno = error;
}

/* ---- Transfers ---- */

#define TRANSFER(name, parameters, arguments, shorter, exempt)                                     \
    ssize_t __real_##name parameters;                                                              \
    ssize_t __wrap_##name parameters;                                                              \
    ssize_t __wrap_##name parameters {                                                             \
        if ((exempt) || !strikes(#name, INTERRUPTIBLE | TRANSFERS | WAITS))                        \
            return __real_##name arguments;                                                        \
        ssize_t done = fault == SHORT ? __real_##name shorter : -1;                                \
        tell_again(file);                                                                          \
        return done;                                                                               \
    }
/* A transfer of an eventfd can only be interrupted. */
#define OF_EVENTFD (size == sizeof(uint64_t) && fault != EINTR)
TRANSFER(read, (int file, void *buffer, size_t size), (file, buffer, size), (file, buffer, 1),
         OF_EVENTFD)
TRANSFER(write, (int file, const void *buffer, size_t size), (file, buffer, size),
         (file, buffer, 1), OF_EVENTFD)
TRANSFER(recv, (int file, void *buffer, size_t size, int flags), (file, buffer, size, flags),
         (file, buffer, size != 0, flags), false)
TRANSFER(send, (int file, const void *buffer, size_t size, int flags), (file, buffer, size, flags),
         (file, buffer, size != 0, flags), false)
TRANSFER(recvfrom,
         (int file, void *buffer, size_t size, int flags, struct sockaddr *address,
          socklen_t *address_size),
         (file, buffer, size, flags, address, address_size),
         (file, buffer, size != 0, flags, address, address_size), false)
TRANSFER(sendto,
         (int file, const void *buffer, size_t size, int flags, const struct sockaddr *address,
          socklen_t address_size),
         (file, buffer, size, flags, address, address_size),
         (file, buffer, size != 0, flags, address, address_size), false)
TRANSFER(recvmsg, (int file, struct msghdr *message, int flags), (file, message, flags),
         (file, message, flags), false)
TRANSFER(sendmsg, (int file, const struct msghdr *message, int flags), (file, message, flags),
         (file, message, flags), false)
/* A signal is read whole. */
TRANSFER(preadv2, (int file, const struct iovec *parts, int count, off_t offset, int flags),
         (file, parts, count, offset, flags),
         (file, &(struct iovec){parts->iov_base, parts->iov_len != 0}, 1, offset, flags),
         fault == SHORT && parts->iov_len == sizeof(struct signalfd_siginfo))
TRANSFER(pwritev2, (int file, const struct iovec *parts, int count, off_t offset, int flags),
         (file, parts, count, offset, flags),
         (file, &(struct iovec){parts->iov_base, parts->iov_len != 0}, 1, offset, flags), false)

/* ---- Other calls ---- */

#define CALL(result, name, traits, parameters, arguments, file)                                    \
    result __real_##name parameters;                                                               \
    result __wrap_##name parameters;                                                               \
    result __wrap_##name parameters {                                                              \
        if (!strikes(#name, traits))                                                               \
            return __real_##name arguments;                                                        \
        tell_again(file);                                                                          \
        return -1;                                                                                 \
    }
CALL(ssize_t, pread, INTERRUPTIBLE, (int file, void *buffer, size_t size, off_t offset),
     (file, buffer, size, offset), -1)
CALL(ssize_t, pwrite, INTERRUPTIBLE, (int file, const void *buffer, size_t size, off_t offset),
     (file, buffer, size, offset), -1)
CALL(int, accept4, INTERRUPTIBLE | WAITS,
     (int file, struct sockaddr *address, socklen_t *size, int flags), (file, address, size, flags),
     file)
CALL(int, connect, INTERRUPTIBLE, (int file, const struct sockaddr *address, socklen_t size),
     (file, address, size), file)
CALL(int, socket, PLAIN, (int domain, int type, int protocol), (domain, type, protocol), -1)
CALL(int, socketpair, PLAIN, (int domain, int type, int protocol, int *pair),
     (domain, type, protocol, pair), -1)
CALL(int, pipe2, PLAIN, (int *pair, int flags), (pair, flags), -1)
CALL(int, bind, PLAIN, (int file, const struct sockaddr *address, socklen_t size),
     (file, address, size), -1)
CALL(int, listen, PLAIN, (int file, int backlog), (file, backlog), -1)
CALL(int, getsockname, PLAIN, (int file, struct sockaddr *address, socklen_t *size),
     (file, address, size), -1)
CALL(int, getsockopt, PLAIN, (int file, int level, int name, void *value, socklen_t *size),
     (file, level, name, value, size), -1)
CALL(int, setsockopt, PLAIN, (int file, int level, int name, const void *value, socklen_t size),
     (file, level, name, value, size), -1)
CALL(int, epoll_create1, PLAIN, (int flags), (flags), -1)
CALL(int, epoll_wait, INTERRUPTIBLE, (int file, struct epoll_event *events, int most, int limit),
     (file, events, most, limit), -1)
CALL(int, eventfd, PLAIN, (unsigned count, int flags), (count, flags), -1)
CALL(int, signalfd, PLAIN, (int file, const sigset_t *signals, int flags), (file, signals, flags),
     -1)
CALL(int, poll, INTERRUPTIBLE, (struct pollfd * entries, nfds_t count, int limit),
     (entries, count, limit), -1)
CALL(int, fstat, PLAIN, (int file, struct stat *status), (file, status), -1)
CALL(int, stat, PLAIN, (const char *path, struct stat *status), (path, status), -1)
CALL(int, mkdir, PLAIN, (const char *path, mode_t mode), (path, mode), -1)
CALL(int, fsync, INTERRUPTIBLE, (int file), (file), -1)
CALL(int, scandir, PLAIN,
     (const char *path, struct dirent ***entries, int (*wanted)(const struct dirent *),
      int (*compare)(const struct dirent **, const struct dirent **)),
     (path, entries, wanted, compare), -1)

/* A descriptor is closed also where that was interrupted. */
int __real_close(int file);
int __wrap_close(int file);
int __wrap_close(int file) {
    bool fails = strikes("close", INTERRUPTIBLE);
    int code = __real_close(file);
    if (fails && fault == EINTR)
        errno = EINTR;
    return fails && fault == EINTR ? -1 : code;
}
pid_t __real_waitpid(pid_t process, int *status, int options);
pid_t __wrap_waitpid(pid_t process, int *status, int options);
pid_t __wrap_waitpid(pid_t process, int *status, int options) {
    return fault == EINTR && strikes("waitpid", INTERRUPTIBLE)
               ? -1
               : __real_waitpid(process, status, options);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return strikes("open", INTERRUPTIBLE) ? -1 : __real_open(path, flags, mode);
}
int __real_fcntl(int file, int command, ...);
int __wrap_fcntl(int file, int command, ...);
int __wrap_fcntl(int file, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    long argument = command == F_GETFD || command == F_GETFL ? 0 : va_arg(arguments, int);
    va_end(arguments);
    return strikes("fcntl", PLAIN) ? -1 : __real_fcntl(file, command, argument);
}
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
/* Reads six arguments, though there may be fewer. */
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...) {
    va_list arguments;
    long a[6];
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_pidfd_open && strikes("pidfd_open", PLAIN))
        return -1;
    bool waits = number == SYS_futex && ((int)a[1] & FUTEX_CMD_MASK) != FUTEX_WAKE;
    if (waits && fault == EINTR && strikes("futex", INTERRUPTIBLE))
        return -1;
#ifdef SYS_epoll_pwait2
    if (number == SYS_epoll_pwait2 && strikes("epoll_pwait2", INTERRUPTIBLE))
        return -1;
#endif
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Runs a function that returns its error. */
typedef struct serving {
    void *(*function)(void *);
    void *argument;
} serving_t;
static void *serve(void *argument) {
    serving_t serving = *(serving_t *)argument;
    starts = true;
    haft_fiber_drop(haft_fiber_new(check_nothing, NULL));
    starts = false;
    return serving.function(serving.argument);
}
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument) {
    static serving_t servings[64];
    static unsigned next;
    if (strikes("pthread_create", PLAIN))
        return EAGAIN;
    serving_t *serving = &servings[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % 64];
    *serving = (serving_t){function, argument};
    return __real_pthread_create(thread, attributes, serve, serving);
}
int __real_posix_spawnp(pid_t *process, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const *arguments,
                        char *const *variables);
int __wrap_posix_spawnp(pid_t *process, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const *arguments,
                        char *const *variables);
int __wrap_posix_spawnp(pid_t *process, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const *arguments,
                        char *const *variables) {
    return strikes("posix_spawnp", PLAIN)
               ? fault
               : __real_posix_spawnp(process, file, actions, attributes, arguments, variables);
}
int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result) {
    return strikes("getaddrinfo", PLAIN) ? EAI_SYSTEM
                                         : __real_getaddrinfo(host, service, hints, result);
}

/* ---- io_uring ---- */

#ifdef FAULTS_IN_URING
static const char *const in_ring = "a request of io_uring";
static uint64_t struck_request;

/* Strikes one of the requests that the kernel has not been handed yet. */
static void strike_requests(struct io_uring *ring) {
    for (unsigned i = ring->sq.sqe_head; i != ring->sq.sqe_tail; i++) {
        struct io_uring_sqe *entry = &ring->sq.sqes[i & ring->sq.ring_mask];
        bool transfers = entry->opcode == IORING_OP_RECV || entry->opcode == IORING_OP_READ ||
                         entry->opcode == IORING_OP_WRITE;
        if (!transfers && entry->opcode != IORING_OP_POLL_ADD)
            continue;
        if (!strikes(in_ring, INTERRUPTIBLE | (transfers ? TRANSFERS | WAITS : 0)))
            continue;
        if (fault == SHORT) {
            entry->len = 1;
            continue;
        }
        struck_request = entry->user_data;
        uint64_t data = entry->user_data;
        io_uring_prep_nop(entry);
        entry->user_data = data;
    }
}
static void strike_completions(struct io_uring *ring) {
    unsigned head;
    struct io_uring_cqe *completion;
    io_uring_for_each_cqe(ring, head, completion) {
        if (struck_request == 0 || completion->user_data != struck_request)
            continue;
        if (completion->res == 0) /* and not withdrawn */
            completion->res = -fault;
        struck_request = 0;
    }
}
#    define IN_RING(name, parameters, arguments)                                                   \
        int __real_##name parameters;                                                              \
        int __wrap_##name parameters;                                                              \
        int __wrap_##name parameters {                                                             \
            if (strikes(#name, INTERRUPTIBLE))                                                     \
                return -fault;                                                                     \
            strike_requests(ring);                                                                 \
            int code = __real_##name arguments;                                                    \
            strike_completions(ring);                                                              \
            return code;                                                                           \
        }
IN_RING(io_uring_submit, (struct io_uring * ring), (ring))
IN_RING(io_uring_submit_and_get_events, (struct io_uring * ring), (ring))
IN_RING(io_uring_get_events, (struct io_uring * ring), (ring))
IN_RING(io_uring_submit_and_wait, (struct io_uring * ring, unsigned count), (ring, count))
IN_RING(io_uring_submit_and_wait_timeout,
        (struct io_uring * ring, struct io_uring_cqe **first, unsigned count,
         struct __kernel_timespec *limit, sigset_t *signals),
        (ring, first, count, limit, signals))
int __real_io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
                                      struct io_uring_params *parameters);
int __wrap_io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
                                      struct io_uring_params *parameters);
int __wrap_io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
                                      struct io_uring_params *parameters) {
    return strikes("io_uring_queue_init_params", PLAIN)
               ? -fault
               : __real_io_uring_queue_init_params(entries, ring, parameters);
}
#endif

/* ---- One run ---- */

static int code_of_sample;
static uint64_t first_seed;

BODY(run_sample) {
    code_of_sample = haft_io_scope(sample->body, NULL, NULL);
    int pair[2];
    if (haft_io_pipe(pair) == 0)
        CHECK(haft_io_close(pair[0]) == 0 && haft_io_close(pair[1]) == 0);
    if (how == NULL)
        CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}

static void who_hangs(int signal) {
    (void)signal;
    fprintf(stderr, "%s: hangs after the fault %d in %s (call %ld)\n", sample_place(), fault,
            struck != NULL ? struck : "nothing", target);
    abort();
}

/* True: there was such a call. */
static bool run_once(int wanted, long call) {
    int before = check_failures, descriptors = check_descriptors();
    sample_reset();
    fault = wanted;
    target = call;
    counted = 0;
    struck = NULL;
    memset(watched, 0, sizeof watched);
    code_of_sample = 1;
    seed = first_seed;
    alarm(20);
    __atomic_store_n(&armed, true, __ATOMIC_RELAXED);
    int code = sample_run(run_sample);
    __atomic_store_n(&armed, false, __ATOMIC_RELAXED);
    alarm(0);
    bool is_usual = fault == EINTR || fault == EAGAIN || fault == SHORT;
    CHECK(code <= 0 && code_of_sample <= 1);
    CHECK(struck == NULL || !is_usual || (code == 0 && code_of_sample == 0));
    CHECK(struck != NULL || (code == 0 && code_of_sample == 0));
    CHECK(code_of_sample == 1 || sample_is_idle());
    CHECK_EQUAL(check_descriptors(), descriptors);
    CHECK_EQUAL(haft_pool_report().stacks, 0);
    if (check_failures != before)
        fprintf(stderr, "%s: the fault %d in %s (call %ld); the run gave %d, the sample %d\n",
                sample_place(), fault, struck != NULL ? struck : "nothing", call, code,
                code_of_sample);
    return struck != NULL;
}

/* Threads that have ended may leave some memory for the next ones; what is lost is lost every
   time. */
static bool run_with(int wanted, long call) {
    enum { TIMES = 6 };
    for (int i = 0;; i++) {
        long before = blocks;
        bool was_struck = run_once(wanted, call);
        if (blocks <= before || check_failures != 0)
            return was_struck;
        if (i == TIMES) {
            CHECK_EQUAL(blocks, before);
            fprintf(stderr, "%s: the fault %d in %s (call %ld)\n", sample_place(), fault,
                    struck != NULL ? struck : "nothing", call);
            return was_struck;
        }
    }
}

/* ---- All runs ---- */

static void fail_everywhere(const haft_io_run_options_t *options) {
    static const int faults[] = {NO_MEMORY, ENOMEM, EMFILE, EINTR, EAGAIN, ECONNRESET, SHORT};
    how = options;
    for (int i = 0; i < SAMPLES; i++) {
        sample = &samples[i];
        if (how == NULL && !sample->simulated)
            continue;
        run_once(NO_MEMORY, -1);
        printf("%s:", sample_place());
        for (size_t f = 0; f < sizeof faults / sizeof faults[0]; f++) {
            /* (What tells epoll again knows one thread's.) */
            if (faults[f] == EAGAIN && !sample_has_one_thread())
                continue;
            /* (For the sanitizers' own state libhaft needs memory.) */
            if (faults[f] == NO_MEMORY && !check_bare())
                continue;
            long call = 0;
            while (check_failures == 0 && run_with(faults[f], call))
                call += check_bare() ? 1 : 1 + rand() % 8;
            printf(" %ld times %s", call,
                   faults[f] == SHORT       ? "short"
                   : faults[f] == NO_MEMORY ? "no memory"
                                            : strerror(faults[f]));
            printf("%s", faults[f] == SHORT ? "\n" : ",");
        }
        fflush(stdout);
    }
}

static void a_call_of_the_system_that_fails_is_an_error_or_made_again(void) {
    check_everywhere(fail_everywhere);
}

static void so_is_one_in_a_simulation(void) {
    for (first_seed = 1; first_seed <= 8; first_seed++)
        fail_everywhere(NULL);
}

/* There may be no stack: the call that wants one fails with -ENOMEM. */
static void go_on(const haft_error_t *error) {
    (void)error;
}

int main(void) {
    sample_begin();
    signal(SIGALRM, who_hangs);
    signal(SIGPIPE, SIG_IGN);
    haft_set_error_handler(go_on);
    RUN(so_is_one_in_a_simulation);
    RUN(a_call_of_the_system_that_fails_is_an_error_or_made_again);
    return check_end();
}
