/* SPDX-License-Identifier: MIT */
/*
 * Closers of a descriptor that a task waits on, or that give its number to another file: an
 * ordinary thread, the pool, a task of another run. The task gets -EBADF, wherever it waits, and
 * never the data of a file that has the number then.
 */
#include "check_io.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The tasks that wait ---- */

static int ends[2], others[2];

static void close_ends(void) { /* but for the first */
    close(ends[1]);
    close(others[0]);
    close(others[1]);
}
static void make_pipes(void) {
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    CHECK_EQUAL(haft_io_pipe(others), 0);
}
static void make_tcp(void) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    ends[1] = haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    ends[0] = haft_io_accept(listener);
    CHECK(ends[0] >= 0 && ends[1] >= 0);
    CHECK_EQUAL(haft_io_pipe(others), 0);
    close(listener);
}
static void make_listener(void) {
    ends[0] = haft_io_listen_tcp("127.0.0.1", 0, 0);
    CHECK(ends[0] >= 0);
    ends[1] = dup(STDERR_FILENO);
    CHECK_EQUAL(haft_io_pipe(others), 0);
}

static ssize_t read_first(void) {
    char byte;
    return haft_io_read(ends[0], &byte, 1);
}
static ssize_t receive_first(void) {
    char byte;
    return haft_io_receive(ends[0], &byte, 1, 0);
}
static ssize_t read_lent(void) {
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    return haft_io_read_lent(ends[0], &bytes);
}
static ssize_t wait_for_first(void) {
    return haft_io_wait_ready(ends[0], POLLIN);
}
static ssize_t accept_one(void) {
    return haft_io_accept(ends[0]);
}
static ssize_t poll_both(void) {
    struct pollfd entries[] = {{others[0], POLLIN, 0}, {ends[0], POLLIN, 0}};
    int ready = haft_io_poll(entries, 2, HAFT_IO_FOREVER);
    CHECK_EQUAL(entries[0].revents, 0);
    return ready == 1 && entries[1].revents == POLLNVAL ? -EBADF : ready;
}

/* Fills a socket, which takes no more until its other end is read. */
static void fill(int descriptor) {
    static const char much[4096];
    while (send(descriptor, much, sizeof much, MSG_DONTWAIT) > 0)
        continue;
}
static void make_full(void) {
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    fill(ends[0]);
    others[0] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    others[1] = dup(STDERR_FILENO);
}
/* Makes a file, the first, that is to be sent to a full socket. */
static void make_file(void) {
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, others), 0);
    fill(others[0]);
    ends[0] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ends[1] = dup(STDERR_FILENO);
}
static ssize_t send_to_first(void) {
    int64_t offset = 0;
    return haft_io_send_file(ends[0], others[0], &offset, 100);
}
static ssize_t send_first(void) {
    int64_t offset = 0;
    return haft_io_send_file(others[0], ends[0], &offset, 100);
}
static ssize_t splice_from_first(void) {
    ssize_t code = haft_io_splice(ends[0], others[1], 100);
    CHECK_EQUAL(haft_io_poll(&(struct pollfd){others[0], POLLIN, 0}, 1, 0), 0);
    return code;
}
static ssize_t splice_to_first(void) {
    return haft_io_splice(others[0], ends[0], 100);
}
static void make_pipe_and_pair(void) {
    CHECK_EQUAL(haft_io_pipe(others), 0);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
}
static void make_pipe_and_full(void) {
    make_pipe_and_pair();
    fill(ends[0]);
    CHECK_EQUAL(write(others[1], "some", 4), 4);
}

static const struct wait {
    void (*make)(void);
    ssize_t (*wait)(void);
    const char *waits_for;
} waits[] = {
    {make_pipes, read_first, "read"},
    {make_tcp, receive_first, "receive"},
    {make_tcp, read_lent, "read"},
    {make_pipes, wait_for_first, "poll"},
    {make_listener, accept_one, "accept"},
    {make_full, send_to_first, "poll"},
    {make_file, send_first, "poll"},
    {make_pipes, splice_from_first, "poll"},
    {make_pipe_and_pair, splice_to_first, "poll"},
    {make_pipe_and_full, splice_to_first, "poll"},
    {make_pipes, poll_both, "poll"},
};
enum { WAITS = sizeof waits / sizeof waits[0] };
static const struct wait *current;

static haft_io_event_t waiting;

/* The event is set when the dump shows that a task waits. */
static void await_wait(void) {
    char text[2048], awaited[32];
    snprintf(awaited, sizeof awaited, "waits for: %s on ", current->waits_for);
    do {
        haft_io_sleep(100 * HAFT_IO_MICROSECOND);
        int pipe_ends[2];
        CHECK_EQUAL(pipe(pipe_ends), 0);
        CHECK_EQUAL(haft_io_dump(pipe_ends[1]), 0);
        ssize_t size = read(pipe_ends[0], text, sizeof text - 1);
        text[size > 0 ? size : 0] = '\0';
        close(pipe_ends[0]);
        close(pipe_ends[1]);
    } while (strstr(text, awaited) == NULL);
    haft_io_event_set(&waiting);
}
static void *wait_in_vain(void *unused) {
    CHECK_EQUAL(current->wait(), -EBADF);
    return unused;
}

/* ---- The tasks that close ---- */

/* By a function of the program's. */
static bool replaces;
static int replace_first(void *by) {
    return dup2(*(const int *)by, ends[0]);
}
static void close_or_replace(int by) {
    if (replaces) {
        CHECK_EQUAL(haft_io_close_by(ends[0], replace_first, &by), ends[0]);
        CHECK_EQUAL(haft_io_poll(&(struct pollfd){ends[0], POLLIN, 0}, 1, 0), 1);
    }
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
}

/* The next files may get the number at once, and have something to read. */
static void *close_first(void *unused) {
    int full[2], copies[8];
    CHECK_EQUAL(pipe(full), 0);
    CHECK_EQUAL(write(full[1], "wrong", 5), 5);
    haft_io_event_wait(&waiting);
    close_or_replace(full[0]);
    for (int i = 0; i < 8; i++)
        copies[i] = dup(full[0]);
    for (int i = 0; i < 8; i++)
        close(copies[i]);
    close(full[0]);
    close(full[1]);
    return unused;
}
static void close_in_pool(void *unused) {
    close_first(unused);
}
BODY(wait_and_close_in_pool) {
    haft_io_spawn(wait_in_vain, NULL);
    await_wait();
    CHECK_EQUAL(haft_io_call_blocking(close_in_pool, NULL), 0);
    return NULL;
}
BODY(wait_to_be_closed) {
    haft_io_spawn(wait_in_vain, NULL);
    await_wait();
    return NULL;
}

static int closers_threads; /* of the closer's run; 0: it is an ordinary thread */
static void *run_closer(void *options) {
    haft_io_run_options_t own = *(const haft_io_run_options_t *)options;
    own.threads = closers_threads;
    if (closers_threads == 0)
        close_first(NULL);
    else
        CHECK_EQUAL(haft_io_run_with(&own, close_first, NULL), 0);
    return NULL;
}

static void close_by_thread(const haft_io_run_options_t *options) {
    pthread_t closer;
    CHECK_EQUAL(pthread_create(&closer, NULL, run_closer, (void *)(uintptr_t)options), 0);
    CHECK_EQUAL(haft_io_run_with(options, wait_to_be_closed, NULL), 0);
    pthread_join(closer, NULL);
}
static void close_in_each_way(const haft_io_run_options_t *options) {
    for (int i = 0; i < 2 * WAITS; i++) {
        current = &waits[i / 2];
        replaces = i % 2 == 1;
        for (closers_threads = -1; closers_threads <= 2; closers_threads++) {
            int before = check_descriptors();
            haft_io_event_clear(&waiting);
            current->make();
            if (closers_threads < 0)
                CHECK_EQUAL(haft_io_run_with(options, wait_and_close_in_pool, NULL), 0);
            else
                close_by_thread(options);
            close_ends();
            CHECK_EQUAL(check_descriptors(), before);
        }
    }
}
static void who_waits_gets_an_error_whoever_closes(void) {
    check_everywhere(close_in_each_way);
}

/* ---- Several runs ---- */

/* Tasks of two runs accept from one listener, which a third party closes, or one of them. */
static haft_io_barrier_t both = {.needed = 2};
static bool closes_itself;
static int full_pipe[2];
static void *wait_in_one_run(void *closes) {
    haft_io_spawn(wait_in_vain, NULL);
    haft_io_event_clear(&waiting);
    await_wait();
    haft_io_barrier_wait(&both);
    if (closes != NULL)
        close_or_replace(full_pipe[0]);
    return NULL;
}
static void *run_beside(void *options) {
    CHECK_EQUAL(haft_io_run_with(options, wait_in_one_run, NULL), 0);
    return NULL;
}
static void close_for_two(const haft_io_run_options_t *options) {
    haft_io_run_options_t beside = {.threads = 1};
    CHECK_EQUAL(pipe(full_pipe), 0);
    CHECK_EQUAL(write(full_pipe[1], "wrong", 5), 5);
    for (int i = 0; i < 2 * (WAITS - 1); i++) {
        pthread_t thread;
        /* (Only a listener has several tasks that wait.) */
        current = &waits[i / 2];
        replaces = i % 2 == 1;
        if (current->wait != accept_one && current->wait != wait_for_first)
            continue;
        int before = check_descriptors();
        current->make();
        CHECK_EQUAL(pthread_create(&thread, NULL, run_beside, &beside), 0);
        CHECK_EQUAL(haft_io_run_with(options, wait_in_one_run, &closes_itself), 0);
        pthread_join(thread, NULL);
        close_ends();
        CHECK_EQUAL(check_descriptors(), before);
    }
    close(full_pipe[0]);
    close(full_pipe[1]);
}
static void a_close_ends_the_waits_of_all_runs(void) {
    check_everywhere(close_for_two);
}

/* ---- By a function of the program's ---- */

/* A reader does not miss that the number is another file's, however often it is, nor does the task
   that replaces it miss that the reader has gone: one of them would wait for ever. */
enum { REPLACEMENTS = 200 };
static bool both_ways;
static int
replace_by_call(void *by) { /* The thread sanitizer would take for a mistake what is tested. */
    return (int)syscall(SYS_dup3, *(const int *)by, ends[0], 0);
}
static void *replace_often(void *unused) {
    int silent[2], last[2];
    CHECK_EQUAL(pipe(silent), 0);
    CHECK_EQUAL(pipe(last), 0);
    CHECK_EQUAL(write(last[1], "ee", 2), 2);
    for (int i = 0; i < REPLACEMENTS; i++) {
        CHECK_EQUAL(haft_io_close_by(ends[0], replace_by_call, &silent[0]), ends[0]);
        if (i % 4 == 0)
            haft_io_yield();
    }
    CHECK_EQUAL(haft_io_close_by(ends[0], replace_by_call, &last[0]), ends[0]);
    for (int i = 0; i < 2; i++) {
        close(silent[i]);
        close(last[i]);
    }
    return unused;
}
static void *read_to_the_last(void *unused) {
    char byte = '?';
    ssize_t got;
    do
        got = haft_io_read(ends[0], &byte, 1);
    while (got == -EBADF);
    CHECK_EQUAL(got, 1);
    CHECK_EQUAL(byte, 'e');
    return unused;
}
static void *read_in_one_run(void *replaces_too) {
    haft_io_spawn(read_to_the_last, NULL);
    haft_io_yield();
    return replaces_too != NULL ? replace_often(NULL) : NULL;
}
static void *run_reader(void *options) {
    CHECK_EQUAL(haft_io_run_with(options, read_in_one_run, NULL), 0);
    return NULL;
}
/* By an ordinary thread, by a task beside the reader, by one of another run. */
static void replace_beside(const haft_io_run_options_t *options) {
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        int before = check_descriptors();
        make_pipes();
        if (i != 1)
            CHECK_EQUAL(pthread_create(&thread, NULL, run_reader, (void *)(uintptr_t)options), 0);
        if (i == 0)
            replace_often(NULL);
        else
            CHECK_EQUAL(haft_io_run_with(options, i == 1 ? read_in_one_run : replace_often,
                                         i == 1 ? &both_ways : NULL),
                        0);
        if (i != 1)
            pthread_join(thread, NULL);
        haft_io_close(ends[0]);
        close_ends();
        CHECK_EQUAL(check_descriptors(), before);
    }
}
static void a_number_that_is_replaced_again_and_again_is_missed_by_nobody(void) {
    check_everywhere(replace_beside);
}

/* The close may be under way, by the thread of the reader's run, when the number is replaced; it
   must not come after. */
static void *close_and_replace(void *yields) {
    haft_io_event_wait(&waiting);
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
    for (int i = 0; i < *(const int *)yields; i++)
        sched_yield();
    CHECK_EQUAL(haft_io_close_by(ends[0], replace_by_call, &others[0]), ends[0]);
    return NULL;
}
/* To a number that no other thread's open gets while it is free: that is the lowest. */
static void move_up(int *descriptor) {
    enum { HIGH = 500 };
    int low = *descriptor;
    *descriptor = fcntl(low, F_DUPFD_CLOEXEC, HIGH);
    CHECK(*descriptor >= HIGH);
    close(low);
}
static void close_and_replace_beside(const haft_io_run_options_t *options) {
    current = &waits[0];
    for (int i = 0; i < REPLACEMENTS; i++) {
        pthread_t thread;
        int yields = i % 20;
        make_pipes();
        move_up(&ends[0]);
        waiting = (haft_io_event_t){0};
        CHECK_EQUAL(pthread_create(&thread, NULL, close_and_replace, &yields), 0);
        CHECK_EQUAL(haft_io_run_with(options, wait_to_be_closed, NULL), 0);
        pthread_join(thread, NULL);
        CHECK(fcntl(ends[0], F_GETFD) >= 0);
        close(ends[0]);
        close_ends();
    }
}
static void a_number_that_is_closed_and_then_replaced_stays_the_next_files(void) {
    check_everywhere(close_and_replace_beside);
}

/* Where nobody else uses it, no other task goes on in between. */
static bool went_on;
static void *go_on(void *unused) {
    went_on = true;
    return unused;
}
BODY(replace_at_once) {
    make_pipes();
    haft_io_task_t *reader = haft_io_async(wait_in_vain, NULL);
    haft_io_yield();
    went_on = false;
    haft_io_spawn(go_on, NULL);
    CHECK_EQUAL(haft_io_close_by(ends[0], replace_first, &others[0]), ends[0]);
    CHECK(!went_on);
    haft_io_join(reader, NULL);
    CHECK_EQUAL(haft_io_close_by(-1, replace_first, &others[0]), ends[0]);
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
    close_ends();
    return NULL;
}
static void a_number_is_replaced_without_a_wait_where_no_other_thread_uses_it(void) {
    current = &waits[0];
    CHECK_RUNS(replace_at_once);
}

/* The file stays until the pool has done with it, and its number is nobody else's. */
static haft_io_event_t begun, goes_on;
static bool is_over;
static void use_in_pool(void *unused) {
    (void)unused;
    haft_io_event_set(&begun);
    haft_io_event_wait(&goes_on);
}
BODY(occupy) {
    haft_io_call_blocking(use_in_pool, NULL);
    return NULL;
}
BODY(read_by_pool) {
    char byte = '?';
    CHECK_EQUAL(haft_io_pread(ends[0], &byte, 1, 0), 1);
    CHECK_EQUAL(byte, 'o');
    is_over = true;
    return NULL;
}
BODY(let_the_pool_go_on) {
    CHECK(!is_over);
    CHECK_EQUAL(haft_io_read(ends[0], &(char){0}, 1), -EBADF);
    haft_io_event_set(&goes_on);
    return NULL;
}
static int replace_what_is_not_used(void *by) {
    CHECK(is_over);
    return replace_first(by);
}
BODY(replace_what_the_pool_uses) {
    int other = check_file_with("new");
    ends[0] = check_file_with("old");
    is_over = false;
    haft_io_event_clear(&begun);
    haft_io_event_clear(&goes_on);
    haft_io_spawn(occupy, NULL);
    haft_io_event_wait(&begun);
    haft_io_spawn(read_by_pool, NULL);
    haft_io_yield();
    haft_io_spawn(let_the_pool_go_on, NULL);
    CHECK_EQUAL(haft_io_close_by(ends[0], replace_what_is_not_used, &other), ends[0]);
    char byte = '?';
    CHECK_EQUAL(haft_io_pread(ends[0], &byte, 1, 0), 1);
    CHECK_EQUAL(byte, 'n');
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
    CHECK_EQUAL(haft_io_close(other), 0);
    return NULL;
}
static void a_number_that_the_pool_uses_is_replaced_when_that_has_ended(void) {
    haft_io_run_options_t options = {.threads = 1, .blocking_threads = 1};
    CHECK_EQUAL(haft_io_run_with(&options, replace_what_the_pool_uses, NULL), 0);
}

/* Beside a run on another thread, whose task waits. */
static int never_called(void *unused) {
    (void)unused;
    CHECK(false);
    return 0;
}
BODY(replace_in_simulation) {
    int simulated[2], by = others[0];
    CHECK_EQUAL(haft_io_simulated_pair(simulated), 0);
    CHECK_EQUAL(haft_io_close_by(simulated[0], never_called, NULL), -EBADF);
    CHECK_EQUAL(haft_io_write(simulated[0], "x", 1), 1);
    haft_io_close(simulated[0]);
    haft_io_close(simulated[1]);
    CHECK_EQUAL(haft_io_close_by(ends[0], replace_first, &by), ends[0]);
    return NULL;
}
static void *run_beside_simulation(void *unused) {
    CHECK_RUNS(wait_to_be_closed);
    return unused;
}
static void a_simulation_replaces_a_number_that_others_wait_on(void) {
    pthread_t thread;
    current = &waits[0];
    make_pipes();
    haft_io_event_clear(&waiting);
    CHECK_EQUAL(pthread_create(&thread, NULL, run_beside_simulation, NULL), 0);
    haft_io_event_wait(&waiting);
    CHECK_EQUAL(haft_io_simulate(replace_in_simulation, NULL), 0);
    pthread_join(thread, NULL);
    haft_io_close(ends[0]);
    close_ends();
}

/* In a child of fork no task waits, and the tasks that wait in its parent go on waiting. */
BODY(replace_in_child) {
    if (!check_follows_children())
        return NULL;
    make_pipes();
    char byte = '?';
    haft_io_task_t *reader = haft_io_async(read_to_the_last, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQUAL(haft_io_close_by(ends[0], replace_first, &others[0]), ends[0]);
        CHECK_EQUAL(write(others[1], "c", 1), 1);
        CHECK_EQUAL(read(ends[0], &byte, 1), 1);
        _exit(byte == 'c' ? check_failures : 1);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(haft_io_write(ends[1], "e", 1), 1);
    haft_io_join(reader, NULL);
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
    close_ends();
    return NULL;
}
static void a_child_of_fork_replaces_its_own_number(void) {
    CHECK_RUNS(replace_in_child);
}

/* However much the function does, no other task of its thread goes on before it returns, which
   would wait for that. */
enum { MUCH = 1000 };
static bool has_replaced;
static int do_much_and_replace(void *by) {
    char byte;
    int pair[2];
    CHECK_EQUAL(haft_io_pipe(pair), 0);
    for (int i = 0; i < MUCH; i++) {
        CHECK_EQUAL(haft_io_write(pair[1], "x", 1), 1);
        CHECK_EQUAL(haft_io_read(pair[0], &byte, 1), 1);
    }
    close(pair[0]);
    close(pair[1]);
    has_replaced = true;
    return dup2(*(const int *)by, ends[0]);
}
static void *accept_later(void *unused) {
    CHECK(has_replaced);
    CHECK_EQUAL(haft_io_accept(ends[0]), -ENOTSOCK);
    return unused;
}
BODY(do_much_in_function) {
    has_replaced = false;
    make_listener();
    haft_io_spawn(accept_later, NULL);
    CHECK_EQUAL(haft_io_close_by(ends[0], do_much_and_replace, &others[0]), ends[0]);
    return NULL;
}
static void a_function_that_does_much_keeps_nobody_waiting_for_ever(void) {
    CHECK_EQUAL(haft_io_run(do_much_in_function, NULL), 0);
    haft_io_close(ends[0]);
    close_ends();
}

/* By the thread's loop, which looks at the timers, and would wait for itself. */
static void replace_at_cancel(haft_io_on_cancel_t *self, bool cancelled) {
    (void)self, (void)cancelled;
    haft_io_close_by(ends[0], replace_first, &others[0]);
}
BODY(sleep_for_ever) {
    haft_io_sleep(HAFT_IO_FOREVER);
    return NULL;
}
BODY(replace_outside_of_a_task) {
    make_pipes();
    haft_io_spawn(wait_in_vain, NULL);
    await_wait();
    haft_io_on_cancel_t on_cancel = {.done = replace_at_cancel};
    haft_io_scope_options_t options = {.deadline = haft_io_now() + HAFT_IO_MILLISECOND,
                                       .on_cancel = &on_cancel};
    haft_io_scope_with(&options, sleep_for_ever, NULL, NULL);
    return NULL;
}
static void run_and_replace_outside_of_a_task(void) {
    current = &waits[0];
    haft_io_run(replace_outside_of_a_task, NULL);
}
static void who_would_wait_for_himself_is_told(void) {
    if (check_follows_children())
        CHECK_ABORTS(run_and_replace_outside_of_a_task,
                     "on a thread of the run that uses it, outside of a task");
}

/* ---- What no task waits on ---- */

static void *close_much(void *unused) {
    for (int i = 0; i < 100; i++) {
        int made[2];
        CHECK_EQUAL(haft_io_pipe(made), 0);
        CHECK_EQUAL(haft_io_close(made[0]), 0);
        CHECK_EQUAL(fcntl(made[0], F_GETFD), -1);
        CHECK_EQUAL(haft_io_close(made[0]), -EBADF);
        CHECK_EQUAL(haft_io_close(made[1]), 0);
    }
    haft_io_event_set(&waiting);
    return unused;
}
BODY(sit_beside) {
    pthread_t thread;
    haft_io_event_clear(&waiting);
    CHECK_EQUAL(pthread_create(&thread, NULL, close_much, NULL), 0);
    haft_io_event_wait(&waiting);
    pthread_join(thread, NULL);
    return NULL;
}
static void what_nobody_waits_on_is_closed_at_once(void) {
    CHECK_RUNS(sit_beside);
}

int main(void) {
    check_backend();
    RUN(who_waits_gets_an_error_whoever_closes);
    RUN(a_close_ends_the_waits_of_all_runs);
    RUN(a_number_that_is_replaced_again_and_again_is_missed_by_nobody);
    RUN(a_number_that_is_closed_and_then_replaced_stays_the_next_files);
    RUN(a_number_is_replaced_without_a_wait_where_no_other_thread_uses_it);
    RUN(a_number_that_the_pool_uses_is_replaced_when_that_has_ended);
    RUN(a_simulation_replaces_a_number_that_others_wait_on);
    RUN(a_child_of_fork_replaces_its_own_number);
    RUN(a_function_that_does_much_keeps_nobody_waiting_for_ever);
    RUN(who_would_wait_for_himself_is_told);
    RUN(what_nobody_waits_on_is_closed_at_once);
    return check_end();
}
