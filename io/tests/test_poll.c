/* Waiting for several descriptors at once. */
#include "check_io.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIPES = 20 };
static int pipes[PIPES][2];
static struct pollfd entries[PIPES];

static void open_pipes(void) {
    for (int i = 0; i < PIPES; i++) {
        CHECK_EQUAL(haft_io_pipe(pipes[i]), 0);
        entries[i] = (struct pollfd){.fd = pipes[i][0], .events = POLLIN};
    }
}
static void close_pipes(void) {
    for (int i = 0; i < PIPES; i++) {
        haft_io_close(pipes[i][0]);
        haft_io_close(pipes[i][1]);
    }
}
static int64_t soon(void) {
    return haft_io_now() + HAFT_IO_MILLISECOND;
}
static int64_t much_later(void) {
    return haft_io_now() + 1000 * HAFT_IO_SECOND;
}

BODY(write_to_the_seventh) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_write(pipes[7][1], "x", 1), 1);
    return NULL;
}
BODY(poll_them) {
    open_pipes();
    CHECK_EQUAL(haft_io_poll(entries, PIPES, 0), 0);
    CHECK_EQUAL(haft_io_poll(entries, PIPES, soon()), 0);
    haft_io_spawn(write_to_the_seventh, NULL);
    CHECK_EQUAL(haft_io_poll(entries, PIPES, HAFT_IO_FOREVER), 1);
    for (int i = 0; i < PIPES; i++)
        CHECK_EQUAL(entries[i].revents, i == 7 ? POLLIN : 0);
    entries[7].fd = -1;
    CHECK_EQUAL(haft_io_poll(entries, PIPES, soon()), 0);
    struct pollfd other[] = {{pipes[7][0], POLLRDNORM, 0}, {pipes[8][1], POLLWRNORM | POLLIN, 0}};
    CHECK_EQUAL(haft_io_poll(other, 2, much_later()), 2);
    close_pipes();
    CHECK_EQUAL(haft_io_poll(entries, 1, much_later()), 1);
    CHECK_EQUAL(entries[0].revents, POLLNVAL);
    return NULL;
}
static void the_one_that_is_ready_is_told_and_a_deadline_ends_the_wait(void) {
    CHECK_RUNS(poll_them);
}

/* Whatever it asks for, an end that is closed is told. */
BODY(close_the_writer) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_close(pipes[0][1]);
    return NULL;
}
BODY(poll_for_nothing) {
    open_pipes();
    CHECK_EQUAL(haft_io_write(pipes[0][1], "x", 1), 1);
    struct pollfd nothing[] = {{pipes[0][0], 0, 0}, {pipes[1][0], POLLIN, 0}};
    haft_io_spawn(close_the_writer, NULL);
    CHECK_EQUAL(haft_io_poll(nothing, 2, much_later()), 1);
    CHECK_EQUAL(nothing[0].revents, POLLHUP);
    close_pipes();
    return NULL;
}
static void an_end_is_told_to_who_asked_for_nothing(void) {
    CHECK_RUNS(poll_for_nothing);
}

BODY(close_one) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_close(pipes[3][0]);
    return NULL;
}
BODY(poll_what_is_closed) {
    open_pipes();
    haft_io_spawn(close_one, NULL);
    CHECK_EQUAL(haft_io_poll(entries, PIPES, much_later()), 1);
    CHECK_EQUAL(entries[3].revents, POLLNVAL);
    close_pipes();
    return NULL;
}
static void closing_one_of_them_ends_the_wait(void) {
    CHECK_RUNS(poll_what_is_closed);
}

/* A foreign library does so with a descriptor that was waited on. */
BODY(poll_two_files_of_one_number) {
    for (int i = 0; i < 3; i++) {
        open_pipes();
        haft_io_spawn(write_to_the_seventh, NULL);
        CHECK_EQUAL(haft_io_poll(entries, PIPES, much_later()), 1);
        for (int j = 0; j < PIPES; j++) {
            close(pipes[j][0]);
            close(pipes[j][1]);
        }
    }
    return NULL;
}
static void a_number_that_was_closed_elsewhere_and_used_again_is_the_new_file(void) {
    CHECK_RUNS(poll_two_files_of_one_number);
}

BODY(poll_for_ever) {
    haft_io_return_cancels(true);
    CHECK_EQUAL(haft_io_poll(entries, PIPES, HAFT_IO_FOREVER), -ECANCELED);
    CHECK_EQUAL(haft_io_poll(entries, PIPES, HAFT_IO_FOREVER), -ECANCELED);
    return NULL;
}
BODY(poll_with_a_deadline) {
    CHECK_EQUAL(haft_io_scope_with(&(haft_io_scope_options_t){.deadline = soon()}, poll_for_ever,
                                   NULL, NULL),
                -ETIMEDOUT);
    return NULL;
}
BODY(cancel_polls) {
    open_pipes();
    poll_with_a_deadline(NULL);
    haft_io_spawn(write_to_the_seventh, NULL);
    CHECK_EQUAL(haft_io_poll(entries, PIPES, much_later()), 1);
    close_pipes();
    return NULL;
}
static void a_cancel_withdraws_the_wait_from_all_of_them(void) {
    CHECK_RUNS(cancel_polls);
}

static int done;
BODY(count_to_the_end) {
    while (!done)
        haft_io_yield();
    return NULL;
}
BODY(look_for_ever) {
    open_pipes();
    haft_io_spawn(write_to_the_seventh, NULL);
    while (haft_io_poll(entries, PIPES, 0) == 0)
        continue;
    done = 1;
    close_pipes();
    return NULL;
}
BODY(busy) {
    haft_io_spawn(count_to_the_end, NULL);
    return look_for_ever(NULL);
}
static void who_only_looks_lets_the_others_run(void) {
    CHECK_RUNS(busy);
}

/* ---- On two threads: the tasks that poll, write and close may be on either ---- */

enum { PAIRS = 100 };
static int wires[PAIRS][2];
static unsigned told, closed;

static void *poll_one(void *number) {
    int index = (int)(intptr_t)number;
    struct pollfd both[] = {{wires[index][0], POLLIN, 0}, {pipes[0][0], POLLIN, 0}};
    CHECK_EQUAL(haft_io_poll(both, 2, HAFT_IO_FOREVER), 1);
    CHECK_EQUAL(both[0].revents, index % 2 == 0 ? POLLIN : POLLNVAL);
    __atomic_add_fetch(index % 2 == 0 ? &told : &closed, 1, __ATOMIC_RELAXED);
    return NULL;
}
static void *write_or_close(void *number) {
    int index = (int)(intptr_t)number;
    haft_io_sleep(HAFT_IO_MILLISECOND);
    if (index % 2 == 0)
        CHECK_EQUAL(haft_io_write(wires[index][1], "x", 1), 1);
    else
        CHECK_EQUAL(haft_io_close(wires[index][0]), 0);
    return NULL;
}
BODY(poll_all_wires) {
    for (intptr_t i = 0; i < PAIRS; i++)
        haft_io_spawn(poll_one, check_number(i));
    haft_io_sleep(HAFT_IO_MILLISECOND);
    for (intptr_t i = 0; i < PAIRS; i++)
        haft_io_spawn(write_or_close, check_number(i));
    return NULL;
}
BODY(poll_on_all_threads) {
    open_pipes();
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(haft_io_pipe(wires[i]), 0);
    CHECK_EQUAL(haft_io_scope(poll_all_wires, NULL, NULL), 0);
    CHECK_EQUAL(told, PAIRS / 2);
    CHECK_EQUAL(closed, PAIRS / 2);
    for (int i = 0; i < PAIRS; i++) {
        haft_io_close(wires[i][1]);
        if (i % 2 == 0)
            haft_io_close(wires[i][0]);
    }
    close_pipes();
    return NULL;
}
static void descriptors_are_polled_on_several_threads(void) {
    int before = check_descriptors();
    for (int i = 0; i < 10; i++) {
        told = closed = 0;
        CHECK_EQUAL(
            haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, poll_on_all_threads, NULL), 0);
    }
    CHECK_EQUAL(check_descriptors(), before);
}

/* ---- In the simulation, and without a scheduler ---- */

static int ends[2];
BODY(write_an_end) {
    haft_io_sleep(HAFT_IO_SECOND);
    CHECK_EQUAL(haft_io_write(ends[1], "x", 1), 1);
    return NULL;
}
BODY(poll_an_end) {
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    struct pollfd both[] = {{ends[0], POLLIN, 0}, {-1, POLLIN, 0}};
    int64_t begin = haft_io_now();
    CHECK_EQUAL(haft_io_poll(both, 2, begin + HAFT_IO_SECOND), 0);
    CHECK(haft_io_now() >= begin + HAFT_IO_SECOND);
    haft_io_spawn(write_an_end, NULL);
    CHECK_EQUAL(haft_io_poll(both, 2, HAFT_IO_FOREVER), 1);
    CHECK_EQUAL(both[0].revents, POLLIN);
    open_pipes();
    CHECK_EQUAL(haft_io_poll(entries, PIPES, soon()), 0);
    close_pipes();
    return NULL;
}
static void simulated_ends_are_polled_in_virtual_time(void) {
    CHECK_EQUAL(haft_io_simulate(poll_an_end, NULL), 0);
}

static void without_a_scheduler_the_thread_waits(void) {
    open_pipes();
    CHECK_EQUAL(haft_io_poll(entries, PIPES, soon()), 0);
    CHECK_EQUAL(haft_io_write(pipes[2][1], "x", 1), 1);
    CHECK_EQUAL(haft_io_poll(entries, PIPES, HAFT_IO_FOREVER), 1);
    close_pipes();
}

BODY(look_where_it_runs) {
    CHECK(haft_io_runs_here());
    if (!check_follows_children())
        return NULL;
    pid_t child = fork();
    if (child == 0)
        _exit(haft_io_runs_here() ? 1 : 0);
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    return NULL;
}
static void a_thread_knows_whether_it_runs_tasks(void) {
    CHECK(!haft_io_runs_here());
    CHECK_RUNS(look_where_it_runs);
    CHECK(!haft_io_runs_here());
}

#ifdef WITH_URING
#    include <liburing.h>

/* The next submission finds its kernel busy, after that has taken all: what it was asked for is
   ready. */
static int submitted_late = -1;

int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring) {
    if (submitted_late < 0)
        return __real_io_uring_submit(ring);
    CHECK_EQUAL(write(submitted_late, "x", 1), 1);
    submitted_late = -1;
    CHECK(__real_io_uring_submit(ring) > 0);
    return -EBUSY;
}

static int polls; /* calls of poll(2), by any thread */
int __real_poll(struct pollfd *which, nfds_t count, int milliseconds);
int __wrap_poll(struct pollfd *which, nfds_t count, int milliseconds);
int __wrap_poll(struct pollfd *which, nfds_t count, int milliseconds) {
    __atomic_fetch_add(&polls, 1, __ATOMIC_RELAXED);
    return __real_poll(which, count, milliseconds);
}
/* It looks once before it waits: the kernel's answer has the rest. */
BODY(wait_for_one) {
    open_pipes();
    haft_io_spawn(write_to_the_seventh, NULL);
    polls = 0;
    CHECK_EQUAL(haft_io_wait_ready(pipes[7][0], POLLIN), POLLIN);
    CHECK_EQUAL(polls, 1);
    close_pipes();
    return NULL;
}
static void a_wait_for_one_descriptor_asks_poll_once(void) {
    if (!RUNNING_ON_VALGRIND)
        haft_io_run_with(&(haft_io_run_options_t){.threads = 1, .backend = "io_uring"},
                         wait_for_one, NULL);
}

BODY(poll_more_than_the_ring_holds) {
    enum { MANY = 1500 };
    static struct pollfd many[MANY];
    int late[2];
    CHECK_EQUAL(haft_io_pipe(late), 0);
    for (int i = 0; i < MANY; i++)
        many[i] = (struct pollfd){.fd = late[0], .events = POLLIN};
    submitted_late = late[1];
    CHECK_EQUAL(haft_io_poll(many, MANY, much_later()), MANY);
    CHECK_EQUAL(submitted_late, -1);
    haft_io_close(late[0]);
    haft_io_close(late[1]);
    return NULL;
}
static void what_is_ready_before_the_task_waits_ends_its_wait(void) {
    const haft_io_run_options_t options[] = {{.threads = 1, .backend = "io_uring"},
                                             {.threads = 2, .backend = "io_uring"},
                                             {.threads = 2, .backend = "io_uring", .moves = true}};
    if (RUNNING_ON_VALGRIND || haft_io_run_with(&options[0], check_nothing, NULL) != 0)
        return;
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(haft_io_run_with(&options[i], poll_more_than_the_ring_holds, NULL), 0);
}
#endif

int main(void) {
    check_backend();
#ifdef WITH_URING
    RUN(what_is_ready_before_the_task_waits_ends_its_wait);
    RUN(a_wait_for_one_descriptor_asks_poll_once);
#endif
    RUN(the_one_that_is_ready_is_told_and_a_deadline_ends_the_wait);
    RUN(an_end_is_told_to_who_asked_for_nothing);
    RUN(closing_one_of_them_ends_the_wait);
    RUN(a_number_that_was_closed_elsewhere_and_used_again_is_the_new_file);
    RUN(a_cancel_withdraws_the_wait_from_all_of_them);
    RUN(who_only_looks_lets_the_others_run);
    RUN(descriptors_are_polled_on_several_threads);
    RUN(simulated_ends_are_polled_in_virtual_time);
    RUN(without_a_scheduler_the_thread_waits);
    RUN(a_thread_knows_whether_it_runs_tasks);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
