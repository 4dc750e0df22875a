/* SPDX-License-Identifier: MIT */
/* Calls that close a number, or give it to another file, while tasks wait on it: these get EBADF,
   and never wait for what the number was, nor have data of what it is. Each call is made by a task
   and by an ordinary thread. */
#include "../../tests/check_io.h"

#include <haft/posix.h>

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The tasks that close ---- */

/* A pipe, or sockets; another pipe, which has something to read. */
static int ends[2], full[2];
static FILE *stream;

static void by_close(void) {
    CHECK_EQUAL(close(ends[0]), 0);
}
static void by_dup2(void) {
    CHECK_EQUAL(dup2(full[0], ends[0]), ends[0]);
    CHECK_EQUAL(fcntl(ends[0], F_GETFD), 0);
}
static void by_dup3(void) {
    CHECK_EQUAL(dup3(full[0], ends[0], O_CLOEXEC), ends[0]);
    CHECK_EQUAL(fcntl(ends[0], F_GETFD), FD_CLOEXEC);
}
static void by_close_range(void) {
    CHECK_EQUAL(close_range((unsigned)ends[0], (unsigned)ends[0], 0), 0);
}
static void by_fclose(void) {
    CHECK_EQUAL(fclose(stream), 0);
}
static void by_freopen(void) {
    CHECK(freopen("/dev/zero", "r", stream) == stream);
    CHECK_EQUAL(fileno(stream), ends[0]);
}
static void by_pclose(void) {
    CHECK_EQUAL(pclose(stream), 0);
}

static void make_stream(void) {
    stream = fdopen(ends[0], "r");
    CHECK(stream != NULL);
}
/* A command that ends when it cannot write any more, which is when it is closed. */
static void make_command(void) {
    close(ends[0]);
    stream = popen("exec cat >&2", "w");
    CHECK(stream != NULL);
    ends[0] = fileno(stream);
}
static void close_stream(void) {
    CHECK_EQUAL(fclose(stream), 0);
}
static void close_number(void) {
    CHECK_EQUAL(close(ends[0]), 0);
}
static void nothing(void) {}

static const struct closer {
    void (*make)(void);
    void (*close)(void);
    void (*clean)(void);
    bool replaces;
} closers[] = {
    {nothing, by_close, nothing, false},      {nothing, by_dup2, close_number, true},
    {nothing, by_dup3, close_number, true},   {nothing, by_close_range, nothing, false},
    {make_stream, by_fclose, nothing, false}, {make_stream, by_freopen, close_stream, true},
};
static const struct closer *closer;
static void *close_by(void *unused) {
    closer->close();
    return unused;
}

/* ---- The tasks that wait ---- */

BODY(read_in_vain) {
    char byte;
    errno = 0;
    CHECK_EQUAL(read(ends[0], &byte, 1), -1);
    CHECK_EQUAL(errno, EBADF);
    return NULL;
}
BODY(poll_in_vain) {
    struct pollfd entries[] = {{ends[0], POLLIN, 0}, {full[1], POLLIN, 0}};
    CHECK_EQUAL(poll(entries, 2, -1), 1);
    CHECK_EQUAL(entries[0].revents, POLLNVAL);
    return NULL;
}
BODY(read_by_io_in_vain) {
    char byte;
    CHECK_EQUAL(haft_io_read(ends[0], &byte, 1), -EBADF);
    return NULL;
}

static void close_while(void *(*wait)(void *), bool sockets, bool by_thread) {
    char byte;
    CHECK_EQUAL(sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends), 0);
    closer->make();
    haft_io_task_t *waiter = haft_io_async(wait, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    errno = ERANGE;
    if (by_thread) {
        pthread_t thread;
        CHECK_EQUAL(pthread_create(&thread, NULL, close_by, NULL), 0);
        CHECK_EQUAL(pthread_join(thread, NULL), 0);
    } else {
        closer->close();
        CHECK_EQUAL(errno, ERANGE);
    }
    haft_io_join(waiter, NULL);
    if (closer->replaces) {
        CHECK_EQUAL(read(ends[0], &byte, 1), 1);
        CHECK_EQUAL(haft_io_read(ends[0], &byte, 1), 1);
    }
    closer->clean();
    close(ends[1]);
}
BODY(close_in_every_way) {
    void *(*const waits[])(void *) = {read_in_vain, poll_in_vain, read_by_io_in_vain};
    CHECK_EQUAL(pipe(full), 0);
    static const char much[4096];
    CHECK_EQUAL(write(full[1], much, sizeof much), (ssize_t)sizeof much);
    int before = check_descriptors();
    for (size_t i = 0; i < sizeof closers / sizeof closers[0]; i++) {
        closer = &closers[i];
        for (int way = 0; way < 12; way++)
            close_while(waits[way % 3], way / 3 % 2 == 1, way / 6 == 1);
    }
    CHECK_EQUAL(check_descriptors(), before);
    close(full[0]);
    close(full[1]);
    return NULL;
}
static void whatever_closes_a_number_ends_the_waits_on_it(void) {
    CHECK_RUNS(close_in_every_way);
}

/* The input of a command takes all bytes; so a task waits for it to break. */
BODY(wait_for_the_end_in_vain) {
    struct pollfd entry = {ends[0], POLLPRI, 0};
    CHECK_EQUAL(poll(&entry, 1, -1), 1);
    CHECK_EQUAL(entry.revents, POLLNVAL);
    return NULL;
}
static const struct closer closes_command = {make_command, by_pclose, nothing, false};
BODY(close_a_command) {
    closer = &closes_command;
    close_while(wait_for_the_end_in_vain, false, false);
    close_while(wait_for_the_end_in_vain, false, true);
    return NULL;
}
static void the_end_of_a_command_ends_the_waits_on_its_stream(void) {
    CHECK_RUNS(close_a_command);
}

/* ---- What closes nothing ---- */

BODY(read_a_byte) {
    char byte = '?';
    CHECK_EQUAL(read(ends[0], &byte, 1), 1);
    CHECK_EQUAL(byte, 'x');
    return NULL;
}
static haft_io_task_t *begin_to_read(void) {
    CHECK_EQUAL(pipe(ends), 0);
    haft_io_task_t *reader = haft_io_async(read_a_byte, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    return reader;
}
static void end_reading(haft_io_task_t *reader) {
    CHECK_EQUAL(write(ends[1], "x", 1), 1);
    haft_io_join(reader, NULL);
    CHECK_EQUAL(close(ends[0]), 0);
    CHECK_EQUAL(close(ends[1]), 0);
}
#define CHECK_FAILS(call, error)                                                                   \
    do {                                                                                           \
        errno = 0;                                                                                 \
        CHECK_EQUAL(call, -1);                                                                     \
        CHECK_EQUAL(errno, error);                                                                 \
    } while (0)
BODY(close_nothing) {
    struct rlimit most;
    haft_io_task_t *reader = begin_to_read();
    CHECK_EQUAL(dup2(ends[0], ends[0]), ends[0]);
    CHECK_FAILS(dup3(ends[0], ends[0], 0), EINVAL);
    CHECK_FAILS(dup3(ends[1], ends[0], O_APPEND), EINVAL);
    CHECK_FAILS(dup2(-1, ends[0]), EBADF);
    CHECK_FAILS(dup3(1 << 20, ends[0], 0), EBADF);
    CHECK_FAILS(dup2(1 << 20, 1 << 20), EBADF);
    CHECK_FAILS(dup2(ends[1], -1), EBADF);
    CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &most), 0);
    struct rlimit less = {(rlim_t)ends[0], most.rlim_max};
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &less), 0);
    CHECK_FAILS(dup2(STDERR_FILENO, ends[0]), EBADF);
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &most), 0);
    CHECK_EQUAL(close_range((unsigned)ends[0], ~0U, CLOSE_RANGE_CLOEXEC), 0);
    CHECK_EQUAL(fcntl(ends[0], F_GETFD), FD_CLOEXEC);
    CHECK_FAILS(close_range(2, 1, 0), EINVAL);
    CHECK(freopen("/none", "r", stdin) == NULL);
    end_reading(reader);
    CHECK_EQUAL(closedir(opendir("/")), 0);
    char memory[8];
    CHECK_EQUAL(fclose(fmemopen(memory, sizeof memory, "w")), 0);
    return NULL;
}
static void what_does_nothing_or_fails_leaves_the_waits_alone(void) {
    CHECK_RUNS(close_nothing);
}

/* In a process of its own, of which only these numbers are to be closed. */
BODY(close_a_range) {
    enum { FIRST = 100, LAST = 110 };
    CHECK_EQUAL(pipe(ends), 0);
    for (int i = FIRST; i <= LAST; i += 2)
        CHECK_EQUAL(dup2(ends[0], i), i);
    CHECK_EQUAL(close_range(FIRST + 1, LAST - 1, 0), 0);
    for (int i = FIRST; i <= LAST; i++)
        CHECK_EQUAL(fcntl(i, F_GETFD) >= 0, i == FIRST || i == LAST);
    closefrom(LAST);
    CHECK_EQUAL(fcntl(LAST, F_GETFD), -1);
    CHECK_EQUAL(fcntl(FIRST, F_GETFD), 0);
    CHECK_EQUAL(close(FIRST), 0);
    end_reading(haft_io_async(read_a_byte, NULL));
    return NULL;
}
static void of_many_numbers_those_in_the_range_are_closed(void) {
    CHECK_RUNS(close_a_range);
}

/* ---- The number is never free ---- */

static bool over;
static void *look_at_it(void *unused) {
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
        CHECK(fcntl(ends[0], F_GETFD) >= 0);
    return unused;
}
BODY(replace_often) {
    pthread_t thread;
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(pipe(full), 0);
    over = false;
    CHECK_EQUAL(pthread_create(&thread, NULL, look_at_it, NULL), 0);
    for (int i = 0; i < 200; i++) {
        haft_io_task_t *waiter = haft_io_async(i % 2 == 0 ? read_in_vain : poll_in_vain, NULL);
        haft_io_sleep(HAFT_IO_MILLISECOND); /* It may yield once before it waits. */
        CHECK_EQUAL(dup2(full[0], ends[0]), ends[0]);
        haft_io_join(waiter, NULL); /* Before the numbers that it polls are closed. */
    }
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(full[i]);
    }
    return NULL;
}
static void a_number_that_is_replaced_is_never_free(void) {
    CHECK_RUNS(replace_often);
}

/* ---- Children ---- */

static void exec_after_vfork(void) {
    pid_t child = vfork();
    if (child == 0) {
        char *const arguments[] = {"cat", NULL};
        dup2(ends[0], STDIN_FILENO);
        dup2(ends[1], ends[0]);
        dup3(ends[1], STDOUT_FILENO, 0);
        close(ends[0]);
        close(ends[1]);
        close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
        closefrom(3);
        execvp("true", arguments);
        _exit(127);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
}
static void exec_after_fork(void) {
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQUAL(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
        CHECK_EQUAL(dup3(ends[1], ends[0], 0), ends[0]);
        CHECK_EQUAL(close(ends[0]), 0);
        FILE *end = fdopen(ends[1], "w");
        CHECK_EQUAL(fclose(end), 0);
        CHECK_EQUAL(close_range(3, ~0U, 0), 0);
        closefrom(3);
        CHECK_EQUAL(fcntl(ends[1], F_GETFD), -1);
        _exit(check_failures);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
}
extern char **environ;
static void exec_by_spawn(void) {
    pid_t child;
    char *const arguments[] = {"true", NULL};
    posix_spawn_file_actions_t actions;
    CHECK_EQUAL(posix_spawn_file_actions_init(&actions), 0);
    CHECK_EQUAL(posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO), 0);
    CHECK_EQUAL(posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, ends[0]), 0);
    CHECK_EQUAL(posix_spawn_file_actions_addclose(&actions, ends[1]), 0);
    CHECK_EQUAL(posix_spawnp(&child, "true", &actions, NULL, arguments, environ), 0);
    CHECK_EQUAL(posix_spawn_file_actions_destroy(&actions), 0);
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
}
static void exec_by_commands(void) {
    char command[64];
    snprintf(command, sizeof command, "exec 3<&%d %d<&- 4>&%d", ends[0], ends[0], ends[1]);
    CHECK_EQUAL(system(command), 0);
    FILE *output = popen(command, "r");
    CHECK(output != NULL);
    CHECK_EQUAL(pclose(output), 0);
}
BODY(have_children) {
    void (*const ways[])(void) = {exec_after_vfork, exec_after_fork, exec_by_spawn,
                                  exec_by_commands};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        haft_io_task_t *reader = begin_to_read();
        ways[i]();
        end_reading(reader);
    }
    return NULL;
}
static void what_a_child_does_with_its_numbers_leaves_the_waits_of_its_parent_alone(void) {
    CHECK_RUNS(have_children);
}

/* ---- Simulated numbers ---- */

BODY(replace_simulated) {
    char byte;
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    CHECK_EQUAL(pipe(full), 0);
    haft_io_task_t *reader = haft_io_async(read_a_byte, NULL);
    haft_io_yield();
    CHECK_FAILS(dup2(ends[0], full[0]), EBADF);
    CHECK_FAILS(dup2(full[0], ends[0]), EBADF);
    CHECK_FAILS(dup2(ends[0], ends[1]), EBADF);
    CHECK_FAILS(dup3(full[0], ends[0], O_CLOEXEC), EBADF);
    CHECK_EQUAL(close_range((unsigned)ends[0], (unsigned)ends[1], 0), 0);
    end_reading(reader);
    /* The system's are replaced there, too. */
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(write(full[1], "x", 1), 1);
    CHECK_EQUAL(dup2(full[0], ends[0]), ends[0]);
    CHECK_EQUAL(read(ends[0], &byte, 1), 1);
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(full[i]);
    }
    return NULL;
}
static void a_simulated_number_is_neither_replaced_nor_given_to_another(void) {
    CHECK_EQUAL(haft_io_simulate(replace_simulated, NULL), 0);
}

int main(void) {
    check_backend();
    RUN(whatever_closes_a_number_ends_the_waits_on_it);
    RUN(the_end_of_a_command_ends_the_waits_on_its_stream);
    RUN(what_does_nothing_or_fails_leaves_the_waits_alone);
    RUN(of_many_numbers_those_in_the_range_are_closed);
    RUN(a_number_that_is_replaced_is_never_free);
    RUN(what_a_child_does_with_its_numbers_leaves_the_waits_of_its_parent_alone);
    RUN(a_simulated_number_is_neither_replaced_nor_given_to_another);
    return check_end();
}
