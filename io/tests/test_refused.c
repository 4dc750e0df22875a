/* SPDX-License-Identifier: MIT */
/* System calls that a filter refuses, as containers' filters do that do not know them, and memory
   that an ordinary user may not lock: what they are used for goes on without. */
#define _GNU_SOURCE
#include "check_io.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* For the rest of the process. */
static bool refuse(unsigned number, unsigned error) {
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof program / sizeof program[0], program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static void add_one(void *number) {
    ++*(int *)number;
}
static void *write_later(void *end) {
    haft_io_yield();
    CHECK_EQUAL(haft_io_write(*(const int *)end, "a word", 6), 6);
    return NULL;
}
static haft_io_event_t over;
BODY(wait_long) {
    CHECK_EQUAL(haft_io_event_wait_until(&over, haft_io_now() + 10000 * HAFT_IO_SECOND), 0);
    return NULL;
}
static pid_t slow_child;
BODY(wait_for_slow_child) {
    haft_io_process_wait(slow_child, NULL);
    return NULL;
}
/* A wait for a child that is cancelled ends then, and has not taken the child's status. */
static void cancel_a_wait_for_a_child(void) {
    const char *program[] = {"sleep", "1000", NULL};
    int status = 0;
    slow_child = haft_io_process_start(program, NULL);
    CHECK(slow_child > 0);
    haft_io_scope_options_t options = {.deadline = haft_io_now() + 20 * HAFT_IO_MILLISECOND};
    CHECK_EQUAL(haft_io_scope_with(&options, wait_for_slow_child, NULL, NULL), -ETIMEDOUT);
    kill(slow_child, SIGKILL);
    CHECK_EQUAL(haft_io_process_wait(slow_child, &status), 0);
    CHECK_EQUAL(WTERMSIG(status), SIGKILL);
}
static void read_and_answer(void) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    int client = haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    int server = haft_io_accept(listener);
    const void *bytes = NULL;
    haft_io_spawn(write_later, &client);
    CHECK_EQUAL(haft_io_read_lent(server, &bytes), 6);
    haft_io_spawn(write_later, &client);
    CHECK_EQUAL(haft_io_write_all(server, "a word", 6), 0);
    CHECK_EQUAL(haft_io_read_lent(server, &bytes), 6);
    haft_io_give_back(bytes);
    haft_io_close(server);
    haft_io_close(client);
    haft_io_close(listener);
}
static void write_and_read_a_file(void) {
    char text[8];
    int file = memfd_create("a file", MFD_CLOEXEC);
    CHECK_EQUAL(haft_io_pwrite(file, "a word", 6, 1), 6);
    CHECK_EQUAL(haft_io_pread(file, text, sizeof text, 3), 4);
    haft_io_close(file);
}
BODY(use_everything) {
    int ends[2], number = 0, status = 1;
    over = (haft_io_event_t){0};
    haft_io_spawn(wait_long, NULL); /* a timer is pending */
    read_and_answer();
    cancel_a_wait_for_a_child();
    write_and_read_a_file();
    char text[8];
    for (int blocks = 0; blocks < 2; blocks++) {
        CHECK_EQUAL(blocks ? pipe(ends) : haft_io_pipe(ends), 0);
        haft_io_spawn(write_later, &ends[1]);
        CHECK_EQUAL(haft_io_read(ends[0], text, sizeof text), 6);
        haft_io_close(ends[0]);
        haft_io_close(ends[1]);
    }
    CHECK_EQUAL(haft_io_call_blocking(add_one, &number), 0);
    CHECK_EQUAL(number, 1);
    const char *program[] = {"true", NULL};
    pid_t child = haft_io_process_start(program, NULL);
    CHECK(child > 0);
    CHECK_EQUAL(haft_io_process_wait(child, &status), 0);
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(haft_io_process_wait(child, &status), -ECHILD);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    kill(getpid(), SIGUSR1);
    CHECK_EQUAL(haft_io_signal_wait(&signals), SIGUSR1);
    haft_io_event_set(&over);
    return NULL;
}

/* All that the library calls and can do without. */
static const unsigned calls[] = {SYS_pidfd_open,
                                 SYS_preadv,
                                 SYS_pwritev,
                                 SYS_preadv2,
                                 SYS_pwritev2,
                                 SYS_signalfd4,
                                 SYS_membarrier,
                                 SYS_madvise,
                                 SYS_mlock2,
                                 SYS_mincore,
                                 SYS_io_uring_setup,
                                 SYS_io_uring_enter,
                                 SYS_io_uring_register
#ifdef SYS_epoll_pwait2
                                 ,
                                 SYS_epoll_pwait2
#endif
#if !CHECK_ADDRESS_SANITIZER /* which asks for it, too */
                                 ,
                                 SYS_sched_getaffinity
#endif
};
static const unsigned errors[] = {EPERM, ENOSYS, EINVAL};
enum { NO_FILTER = 77 };

BODY(wait_by_epoll) {
    CHECK_SAME_TEXT(haft_io_backend(), "epoll");
    return NULL;
}
static void run_without(unsigned call, unsigned error) {
    sigset_t signals;
    check_failures = 0;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    if (call == SYS_io_uring_setup || call == SYS_io_uring_enter)
        unsetenv("HAFT_IO_BACKEND");
    if (!refuse(call, error))
        _exit(NO_FILTER);
    CHECK_RUNS(use_everything);
    if (call == SYS_io_uring_setup || call == SYS_io_uring_enter)
        CHECK_RUNS(wait_by_epoll);
    if (check_follows_children())
        CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, use_everything, NULL),
                    0);
    if (check_failures != 0)
        printf("where system call %u is refused with %s\n", call, strerror((int)error));
    fflush(stdout);
    _exit(check_failures != 0);
}
static void what_a_filter_refuses_is_done_without(void) {
    enum { ERRORS = sizeof errors / sizeof *errors };
    for (size_t i = 0; i < ERRORS * sizeof calls / sizeof *calls; i++) {
        int status;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            run_without(calls[i / ERRORS], errors[i % ERRORS]);
        CHECK_EQUAL(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER)
            return;
        CHECK_EQUAL(status, 0);
    }
}

/* ---- Threads ---- */

BODY(work_without_threads) {
    struct addrinfo *found;
    int number = 0;
    errno = 0;
    CHECK_EQUAL(haft_io_call_blocking(add_one, &number), -EAGAIN);
    CHECK_EQUAL(number, 0);
    CHECK_EQUAL(haft_io_resolve("localhost", NULL, NULL, &found), -EAGAIN);
    CHECK_EQUAL(haft_io_connect_tcp("localhost", 1), -EAGAIN);
    CHECK_EQUAL(haft_io_open("/dev/null", O_RDONLY, 0), -EAGAIN);
    return NULL;
}
static void run_without_threads(void) {
#ifdef SYS_clone3
    if (!refuse(SYS_clone3, EAGAIN))
        _exit(NO_FILTER);
#endif
    if (!refuse(SYS_clone, EAGAIN))
        _exit(NO_FILTER);
    CHECK_RUNS(work_without_threads);
    fflush(stdout);
    _exit(check_failures != 0);
}
static void without_threads_blocking_work_is_refused(void) {
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        run_without_threads();
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != NO_FILTER)
        CHECK_EQUAL(status, 0);
}

/* ---- Locked memory ---- */

enum { THREADS = 12 };
static int threads_here(void) {
    int count = 0;
    struct dirent **entries = NULL;
    int all = scandir("/proc/self/task", &entries, NULL, NULL);
    for (int i = 0; i < all; i++) {
        count += entries[i]->d_name[0] != '.';
        free(entries[i]);
    }
    free(entries);
    return count;
}
static void *echo_once(void *unused) {
    read_and_answer();
    return unused;
}
static int threads_before;
BODY(use_all_threads) {
    CHECK_EQUAL(threads_here() - threads_before, THREADS - 1);
    for (int i = 0; i < 4 * THREADS; i++)
        haft_io_spawn_with(&(haft_io_task_options_t){.spread = true}, echo_once, NULL);
    return NULL;
}
static void run_with_locked_memory_of(rlim_t kibibytes) {
    struct rlimit limit = {kibibytes << 10, kibibytes << 10};
    check_failures = 0;
    threads_before = threads_here();
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || (getuid() == 0 && setuid(65534) != 0))
        _exit(NO_FILTER);
    int code =
        haft_io_run_with(&(haft_io_run_options_t){.threads = THREADS}, use_all_threads, NULL);
    /* One that has asked for io_uring by its name is told so. */
    CHECK(code == 0 || (code == -ENOMEM && getenv("HAFT_IO_BACKEND") != NULL));
    fflush(stdout);
    _exit(check_failures != 0);
}
static void with_little_locked_memory_a_run_has_the_threads_that_it_asks_for(void) {
    static const rlim_t limits[] = {0, 64, 200, 500, 1000, 4000};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        int status;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            run_with_locked_memory_of(limits[i]);
        CHECK_EQUAL(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != NO_FILTER)
            CHECK_EQUAL(status, 0);
    }
}

int main(void) {
    check_backend();
    if (check_follows_children()) {
        RUN(what_a_filter_refuses_is_done_without);
        RUN(without_threads_blocking_work_is_refused);
        RUN(with_little_locked_memory_a_run_has_the_threads_that_it_asks_for);
    }
    return check_end();
}
