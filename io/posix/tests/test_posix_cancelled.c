/* The calls of the C library in a task that has been cancelled, and goes on. */
#include "../../tests/check_io.h"

#include <haft/io_testing.h>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>

/* ---- Loops that know of no cancel ---- */

static int idle[2], listener, locked, locked_again;
static bool in_simulation;
static const struct timespec second = {1, 0};

static int sleep_for_the_rest(void) {
    struct timespec rest = second;
    return nanosleep(&rest, &rest);
}
static int take_lock(void) {
    return flock(locked_again, LOCK_EX);
}
static int select_idle(void) {
    fd_set readable;
    FD_ZERO(&readable);
    FD_SET(idle[0], &readable);
    return select(idle[0] + 1, &readable, NULL, NULL, NULL);
}
static int resolve(void) {
    struct addrinfo *addresses;
    return getaddrinfo("localhost", "80", NULL, &addresses);
}
static int wait_for_signal(void) {
    sigset_t signals;
    int number;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    return sigwait(&signals, &number);
}
static int by_clock_nanosleep(void) {
    return clock_nanosleep(CLOCK_MONOTONIC, 0, &second, NULL);
}

#define WAY(name, call)                                                                            \
    static int name(void) {                                                                        \
        return (int)(call);                                                                        \
    }
WAY(by_sleep, sleep(1))
WAY(by_usleep, usleep(1000000))
WAY(by_nanosleep, nanosleep(&second, NULL))
WAY(by_thrd_sleep, thrd_sleep(&second, NULL))
WAY(by_read, read(idle[0], (char[1]){0}, 1))
WAY(by_recv, recv(idle[0], (char[1]){0}, 1, 0))
WAY(by_recvmsg,
    recvmsg(idle[0], &(struct msghdr){.msg_iov = &(struct iovec){(char[1]){0}, 1}, .msg_iovlen = 1},
            0))
WAY(by_poll, poll(&(struct pollfd){idle[0], POLLIN, 0}, 1, -1))
WAY(by_ppoll, ppoll(&(struct pollfd){idle[0], POLLIN, 0}, 1, &second, NULL))
WAY(by_accept, accept(listener, NULL, NULL))

/* A simulation has no signals and no room for select's sets, and calls at once what the pool calls
   otherwise. */
static const struct {
    int (*call)(void);
    bool is_simulated;
} ways[] = {
    {by_sleep, true},
    {by_usleep, true},
    {by_nanosleep, true},
    {sleep_for_the_rest, true},
    {by_clock_nanosleep, true},
    {by_thrd_sleep, true},
    {by_read, true},
    {by_recv, true},
    {by_recvmsg, true},
    {by_poll, true},
    {by_ppoll, true},
    {by_accept, true},
    {select_idle, false},
    {resolve, false},
    {wait_for_signal, false},
    {take_lock, false},
};
enum { WAYS = sizeof ways / sizeof *ways };

static int turns, calls;
static bool over;

BODY(take_turns) {
    for (turns = 0; turns < 3; turns++)
        haft_io_yield();
    return NULL;
}
BODY(end_after_a_second) {
    haft_io_sleep(HAFT_IO_SECOND);
    over = true;
    return NULL;
}
static bool goes_on(void) {
    return in_simulation ? !over : turns < 3;
}
static void *call_again_and_again(void *call) {
    int (*function)(void) = *(int (*const *)(void))call;
    haft_io_scope_cancel(haft_io_this_scope());
    for (calls = 0; goes_on(); calls++)
        CHECK(function() != 0);
    return NULL;
}
BODY(call_each) {
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, idle), 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(bind(listener, (struct sockaddr *)&any, sizeof any), 0);
    CHECK_EQUAL(listen(listener, 1), 0);
    for (int i = 0; i < WAYS; i++) {
        if (in_simulation && !ways[i].is_simulated)
            continue;
        over = false;
        turns = 0;
        haft_io_spawn(in_simulation ? end_after_a_second : take_turns, NULL);
        CHECK_EQUAL(haft_io_scope(call_again_and_again, (void *)(uintptr_t)&ways[i].call, NULL),
                    -ECANCELED);
        CHECK(!in_simulation || (calls >= 32 && calls < 200));
    }
    close(idle[0]);
    close(idle[1]);
    close(listener);
    return NULL;
}
static void a_loop_of_calls_lets_others_run_after_a_cancel(void) {
    locked = check_file_with("");
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", locked);
    locked_again = open(path, O_RDWR);
    CHECK_EQUAL(flock(locked, LOCK_EX), 0);
    in_simulation = false;
    CHECK_RUNS(call_each);
    close(locked);
    close(locked_again);
}
static void a_loop_of_calls_takes_time_after_a_cancel(void) {
    in_simulation = true;
    haft_io_simulation_options_t options = {.network = true};
    CHECK_EQUAL(haft_io_simulate_with(&options, call_each, NULL), 0);
}

/* ---- What runs to its end ---- */

static int file, copy, counter, epoll;

BODY(count_later) {
    usleep(1000);
    CHECK_EQUAL(write(counter, &(uint64_t){1}, 8), 8);
    return NULL;
}
static void *use_files(void *unused) {
    char bytes[4];
    uint64_t number = 0;
    struct epoll_event event;
    haft_io_scope_cancel(haft_io_this_scope());
    CHECK_EQUAL(pwrite(file, "text", 4, 0), 4); /* O_DSYNC */
    CHECK_EQUAL(fsync(file), 0);
    CHECK_EQUAL(fdatasync(file), 0);
    CHECK_EQUAL(pread(file, bytes, sizeof bytes, 0), 4);
    CHECK_EQUAL(sendfile(copy, file, &(off_t){0}, 4), 4);
    CHECK(copy_file_range(file, &(off64_t){0}, copy, &(off64_t){0}, 4, 0) == 4 ||
          errno != ECANCELED);
    CHECK_EQUAL(read(counter, &number, 8), 8);
    CHECK_EQUAL(number, 1);
    CHECK_EQUAL(epoll_wait(epoll, &event, 1, -1), 1);
    CHECK_EQUAL(epoll_wait(epoll, &event, 1, -1), 1);
    CHECK_EQUAL(read(counter, &number, 8), 8);
    CHECK_EQUAL(epoll_wait(epoll, &event, 1, 1), 0);
    CHECK_EQUAL(usleep(1000), -1); /* which tells of the cancel */
    CHECK_EQUAL(errno, ECANCELED);
    return unused;
}
BODY(use_files_cancelled) {
    haft_io_spawn(count_later, NULL);
    haft_io_spawn(count_later, NULL);
    CHECK_EQUAL(haft_io_scope(use_files, NULL, NULL), -ECANCELED);
    return NULL;
}
static void files_events_and_counters_are_waited_for_to_the_end(void) {
    file = check_file_with("");
    CHECK_EQUAL(fcntl(file, F_SETFL, O_DSYNC), 0);
    copy = check_file_with("");
    counter = eventfd(0, EFD_SEMAPHORE);
    epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    CHECK_EQUAL(epoll_ctl(epoll, EPOLL_CTL_ADD, counter, &event), 0);
    CHECK_RUNS(use_files_cancelled);
    close(file);
    close(copy);
    close(counter);
    close(epoll);
}

/* Starts a child like Python and std::process of Rust: -1, with errno, if exec fails. */
static int start(const char *path, bool by_pipe, pid_t *child) {
    int report[2], error = 0;
    if (by_pipe)
        CHECK_EQUAL(pipe2(report, O_CLOEXEC), 0);
    else
        CHECK_EQUAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report), 0);
    *child = fork();
    if (*child == 0) {
        execl(path, path, (char *)NULL);
        error = errno;
        _exit(write(report[1], &error, sizeof error) != sizeof error);
    }
    close(report[1]);
    ssize_t got =
        by_pipe ? read(report[0], &error, sizeof error) : recv(report[0], &error, sizeof error, 0);
    CHECK(got == 0 || got == sizeof error);
    if (by_pipe) /* Python reads up to the end */
        CHECK_EQUAL(read(report[0], &error, sizeof error), 0);
    close(report[0]);
    if (got == 0)
        return 0;
    CHECK_EQUAL(waitpid(*child, NULL, 0), *child);
    errno = error;
    return -1;
}
static void *start_cancelled(void *unused) {
    pid_t child;
    char byte;
    haft_io_scope_cancel(haft_io_this_scope());
    for (int by_pipe = 0; by_pipe < 2; by_pipe++) {
        CHECK_EQUAL(start("/nowhere/at/all", by_pipe, &child), -1);
        CHECK_EQUAL(errno, ENOENT);
    }
    CHECK_EQUAL(start("/bin/cat", true, &child), 0); /* which waits for what it reads */
    CHECK_EQUAL(read(idle[0], &byte, 1), -1);
    CHECK_EQUAL(errno, ECANCELED);
    CHECK_EQUAL(waitpid(child, NULL, 0), -1);
    CHECK_EQUAL(errno, ECANCELED);
    kill(child, SIGKILL);
    siginfo_t information;
    while (waitid(P_PID, (id_t)child, &information, WEXITED) != 0)
        CHECK_EQUAL(errno, ECANCELED);
    return unused;
}
BODY(start_programs) {
    CHECK_EQUAL(haft_io_scope(start_cancelled, NULL, NULL), -ECANCELED);
    return NULL;
}
static void a_program_is_started_in_spite_of_a_cancel(void) {
    int input[2];
    CHECK_EQUAL(pipe2(idle, O_CLOEXEC), 0);
    CHECK_EQUAL(pipe2(input, O_CLOEXEC), 0);
    int before = dup(0);
    dup2(input[0], 0);
    CHECK_RUNS(start_programs);
    dup2(before, 0);
    close(before);
    close(input[0]);
    close(input[1]);
    close(idle[0]);
    close(idle[1]);
}

/* A fork without such a report is a program's own. */
static void *wait_for_a_child(void *unused) {
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    haft_io_scope_cancel(haft_io_this_scope());
    CHECK_EQUAL(waitpid(child, NULL, 0), -1);
    CHECK_EQUAL(errno, ECANCELED);
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) != child)
        CHECK_EQUAL(errno, ECANCELED);
    return unused;
}
BODY(fork_and_wait) {
    CHECK_EQUAL(haft_io_scope(wait_for_a_child, NULL, NULL), -ECANCELED);
    return NULL;
}
static void a_cancel_cuts_the_wait_for_a_child_that_reports_nothing(void) {
    CHECK_RUNS(fork_and_wait);
}

/* ---- Deadlines ---- */

BODY(look_up_late) {
    struct hostent host, *found;
    char room[500];
    int error = 0;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, 1);
    CHECK(gethostbyname("127.0.0.1") == NULL);
    CHECK_EQUAL(errno, ETIMEDOUT);
    CHECK_EQUAL(h_errno, TRY_AGAIN);
    CHECK_EQUAL(gethostbyname_r("127.0.0.1", &host, room, sizeof room, &found, &error), ETIMEDOUT);
    CHECK_EQUAL(error, TRY_AGAIN);
    CHECK_EQUAL(resolve(), EAI_SYSTEM);
    CHECK_EQUAL(errno, ETIMEDOUT);
    return NULL;
}
static void lookups_of_hosts_tell_a_deadline_from_a_cancel(void) {
    CHECK_RUNS(look_up_late);
}

int main(void) {
    check_backend();
    RUN(a_loop_of_calls_lets_others_run_after_a_cancel);
    RUN(a_loop_of_calls_takes_time_after_a_cancel);
    RUN(files_events_and_counters_are_waited_for_to_the_end);
    RUN(a_program_is_started_in_spite_of_a_cancel);
    RUN(a_cancel_cuts_the_wait_for_a_child_that_reports_nothing);
    RUN(lookups_of_hosts_tell_a_deadline_from_a_cancel);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
