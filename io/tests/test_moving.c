/* SPDX-License-Identifier: MIT */
/* Tasks that move between the threads of a run: what goes with them, and what keeps them. */
#include "check_io.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static int run_moving(int threads, void *(*body)(void *)) {
    return haft_io_run_with(&(haft_io_run_options_t){.threads = threads, .moves = true}, body,
                            NULL);
}
#define CHECK_MOVES(body)                                                                          \
    do {                                                                                           \
        for (int threads = 1; threads <= 4; threads++)                                             \
            CHECK_EQUAL(run_moving(threads, body), 0);                                             \
    } while (0)

/* Each call looks up the thread's state anew: compilers would keep it. */
static __attribute__((noinline)) long this_thread(void) {
    return syscall(SYS_gettid);
}
static __attribute__((noinline)) int read_errno(void) {
    __asm__ volatile("" : : : "memory");
    return errno;
}
static __attribute__((noinline)) void write_errno(int value) {
    __asm__ volatile("" : : : "memory");
    errno = value;
}

/* ---- They move ---- */

static atomic_bool goes_on;
static void *hold_until_it_goes_on(void *unused) {
    while (!atomic_load(&goes_on))
        sched_yield();
    return unused;
}
static void *yield_until_moved(void *unused) {
    long before = this_thread();
    while (this_thread() == before) {
        atomic_store(&goes_on, false);
        haft_io_task_t *holder = haft_io_async(hold_until_it_goes_on, NULL);
        haft_io_yield();
        atomic_store(&goes_on, true);
        haft_io_join(holder, NULL);
    }
    return unused;
}
BODY(move_by_option) {
    haft_io_task_options_t options = {.moves = true};
    haft_io_join(haft_io_async_with(&options, yield_until_moved, NULL), NULL);
    return NULL;
}
static void *spawn_in_scope(void *unused) {
    haft_io_join(haft_io_async(yield_until_moved, NULL), NULL);
    return unused;
}
static void *spawn_in_scope_below(void *unused) {
    haft_io_scope(spawn_in_scope, NULL, NULL);
    return unused;
}
BODY(move_by_scope) {
    haft_io_scope_options_t options = {.moves = true};
    haft_io_scope_with(&options, spawn_in_scope_below, NULL, NULL);
    return NULL;
}
static void a_started_task_goes_on_on_another_thread_if_it_moves(void) {
    CHECK_EQUAL(run_moving(2, yield_until_moved), 0);
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, move_by_option, NULL), 0);
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, move_by_scope, NULL), 0);
}

/* ---- What goes with them ---- */

static void *keep_errno(void *argument) {
    for (int i = 0; i < check_times(200); i++) {
        write_errno((int)(intptr_t)argument);
        if (i % 4 == 0)
            haft_io_sleep(HAFT_IO_MICROSECOND);
        else
            haft_io_yield();
        CHECK_EQUAL(read_errno(), (intptr_t)argument);
    }
    return NULL;
}
BODY(many_errnos) {
    for (int i = 1; i <= 8; i++)
        haft_io_spawn(keep_errno, check_number(i));
    return NULL;
}
static void errno_is_the_tasks_own(void) {
    CHECK_MOVES(many_errnos);
}

static void *yield_for_ever(void *unused) {
    for (;;)
        haft_io_yield();
    return unused;
}
static void *wait_below_a_deadline(void *unused) {
    haft_io_scope_options_t late = {.deadline = haft_io_now() + 1000 * HAFT_IO_SECOND};
    haft_io_scope_with(&late, yield_for_ever, NULL, NULL);
    return unused;
}
static void *spawn_and_leave(void *unused) {
    haft_io_spawn(yield_for_ever, NULL);
    return unused;
}
static void *run_into_deadlines(void *unused) {
    void *(*const bodies[])(void *) = {yield_for_ever, wait_below_a_deadline, spawn_and_leave};
    for (int i = 0; i < check_times(12); i++) {
        haft_io_scope_options_t soon = {.deadline = haft_io_now() + i * HAFT_IO_MILLISECOND / 4};
        CHECK_EQUAL(haft_io_scope_with(&soon, bodies[i % 3], NULL, NULL), -ETIMEDOUT);
        haft_io_yield();
    }
    return unused;
}
BODY(many_deadlines) {
    for (int i = 0; i < 6; i++)
        haft_io_spawn(run_into_deadlines, NULL);
    return NULL;
}
static void the_deadline_of_a_scope_goes_with_its_owner(void) {
    CHECK_MOVES(many_deadlines);
}

static haft_io_mutex_t mutex;
static int inside;
static void *lock_with_patience(void *unused) {
    for (int i = 0; i < check_times(300); i++) {
        int code =
            haft_io_mutex_lock_until(&mutex, haft_io_now() + i % 5 * HAFT_IO_MICROSECOND * 100);
        if (code == -ETIMEDOUT)
            continue;
        CHECK_EQUAL(code, 0);
        CHECK_EQUAL(inside++, 0);
        if (i % 3 == 0)
            haft_io_yield();
        CHECK_EQUAL(--inside, 0);
        haft_io_mutex_unlock(&mutex);
    }
    return unused;
}
BODY(many_lock) {
    for (int i = 0; i < 8; i++)
        haft_io_spawn(lock_with_patience, NULL);
    return NULL;
}
static void a_wait_with_a_deadline_ends_once_wherever_it_goes_on(void) {
    CHECK_MOVES(many_lock);
}

/* ---- Descriptors ---- */

typedef struct line {
    int ends[2];
    int64_t sum;
} line_t;
static void *write_numbers(void *argument) {
    line_t *line = argument;
    HAFT_IO_SCOPED_DESCRIPTOR int end = line->ends[1];
    for (int i = 0; i < check_times(300); i++) {
        CHECK_EQUAL(haft_io_write_all(end, &i, sizeof i), 0);
        if (i % 7 == 0)
            haft_io_yield();
    }
    return NULL;
}
static void *read_numbers(void *argument) {
    line_t *line = argument;
    HAFT_IO_SCOPED_DESCRIPTOR int end = line->ends[0];
    struct pollfd entry = {end, POLLIN, 0};
    int number;
    for (int i = 0; haft_io_read(end, &number, sizeof number) == sizeof number; i++) {
        line->sum += number;
        if (i % 5 == 0)
            CHECK(haft_io_poll(&entry, 1, haft_io_now() + HAFT_IO_SECOND) >= 0);
    }
    return NULL;
}
BODY(pass_numbers) {
    enum { LINES = 8 };
    static line_t lines[LINES];
    haft_io_call_t calls[2 * LINES];
    int64_t count = check_times(300);
    for (int i = 0; i < LINES; i++) {
        lines[i].sum = 0;
        CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, lines[i].ends), 0);
        calls[2 * i] = (haft_io_call_t){write_numbers, &lines[i], NULL};
        calls[2 * i + 1] = (haft_io_call_t){read_numbers, &lines[i], NULL};
    }
    CHECK_EQUAL(haft_io_all(calls, sizeof calls / sizeof calls[0]), 0);
    for (int i = 0; i < LINES; i++)
        CHECK_EQUAL(lines[i].sum, count * (count - 1) / 2);
    return NULL;
}
static void what_waits_for_a_descriptor_moves_when_it_has_come(void) {
    CHECK_MOVES(pass_numbers);
}

static void *read_for_ever(void *argument) {
    char byte;
    struct pollfd entries[2] = {{((int *)argument)[0], POLLIN, 0},
                                {((int *)argument)[1], POLLIN, 0}};
    haft_io_yield();
    if (((int *)argument)[0] % 2 == 0)
        haft_io_poll(entries, 2, haft_io_now() + 1000 * HAFT_IO_SECOND);
    haft_io_read(((int *)argument)[0], &byte, 1);
    CHECK(false);
    return NULL;
}
static void *spawn_readers_and_cancel(void *argument) {
    int(*ends)[2] = argument;
    for (int i = 0; i < 4; i++)
        haft_io_spawn(read_for_ever, ends[i]);
    for (int i = 0; i < ends[0][0] % 5; i++)
        haft_io_yield();
    haft_io_sleep(HAFT_IO_MICROSECOND * (ends[0][0] % 3));
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void *cancel_readers(void *unused) {
    for (int round = 0; round < check_times(50); round++) {
        int ends[4][2];
        for (int i = 0; i < 4; i++)
            CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends[i]), 0);
        CHECK_EQUAL(haft_io_scope(spawn_readers_and_cancel, ends, NULL), -ECANCELED);
        for (int i = 0; i < 8; i++)
            haft_io_close(ends[i / 2][i % 2]);
    }
    return unused;
}
BODY(many_cancel_readers) {
    for (int i = 0; i < 3; i++)
        haft_io_spawn(cancel_readers, NULL);
    return NULL;
}
static void a_cancelled_wait_for_a_descriptor_is_withdrawn_where_it_was_begun(void) {
    CHECK_MOVES(many_cancel_readers);
}

/* ---- Scopes with tasks that stay ---- */

static void *stay(void *unused) {
    long before = this_thread();
    for (int i = 0; i < check_times(50); i++) {
        haft_io_yield();
        CHECK_EQUAL(this_thread(), before);
    }
    return unused;
}
static void *spawn_some_that_stay(void *unused) {
    for (int i = 0; i < 4; i++)
        haft_io_spawn(stay, NULL);
    haft_io_yield();
    return unused;
}
static void *open_scopes(void *unused) {
    for (int i = 0; i < check_times(20); i++)
        CHECK_EQUAL(haft_io_scope(spawn_some_that_stay, NULL, NULL), 0);
    return unused;
}
BODY(move_around_those_who_stay) {
    haft_io_task_options_t options = {.moves = true};
    for (int i = 0; i < 4; i++)
        haft_io_async_with(&options, open_scopes, NULL);
    return NULL;
}
static void a_task_that_moves_leaves_a_scope_whose_tasks_stay_on_other_threads(void) {
    for (int threads = 1; threads <= 4; threads++)
        CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = threads},
                                     move_around_those_who_stay, NULL),
                    0);
}

/* ---- They take turns ---- */

/* Two tasks of each thread, of which the first is awaited when others have been spawned. */
enum { ENOUGH_YIELDS = 5000000 };
static atomic_int have_run[2];
static atomic_bool starved;
static void *note_that_it_runs(void *number) {
    atomic_fetch_add(&have_run[(intptr_t)number], 1);
    return NULL;
}
static void *yield_until_they_have_run(void *number) {
    for (int i = 0; atomic_load(&have_run[(intptr_t)number]) < 2; i++) {
        if (i == ENOUGH_YIELDS)
            atomic_store(&starved, true);
        if (atomic_load(&starved))
            break;
        haft_io_yield();
    }
    return NULL;
}
static void *join_the_first(void *number) {
    haft_io_task_t *first = haft_io_async(note_that_it_runs, number);
    haft_io_task_t *second = haft_io_async(note_that_it_runs, number);
    haft_io_spawn(yield_until_they_have_run, number);
    haft_io_join(first, NULL);
    haft_io_join(second, NULL);
    return NULL;
}
BODY(join_where_the_newest_yields) {
    for (int round = 0; round < 20; round++) {
        haft_io_call_t calls[2];
        for (int i = 0; i < 2; i++) {
            atomic_store(&have_run[i], 0);
            calls[i] = (haft_io_call_t){join_the_first, (void *)(intptr_t)i, NULL};
        }
        CHECK_EQUAL(haft_io_all(calls, 2), 0);
    }
    return NULL;
}
static void a_task_that_yields_lets_those_go_first_that_are_older_than_it(void) {
    CHECK_MOVES(join_where_the_newest_yields);
    CHECK(!atomic_load(&starved));
}

int main(void) {
    check_backend();
    RUN(a_started_task_goes_on_on_another_thread_if_it_moves);
    RUN(errno_is_the_tasks_own);
    RUN(the_deadline_of_a_scope_goes_with_its_owner);
    RUN(a_wait_with_a_deadline_ends_once_wherever_it_goes_on);
    RUN(what_waits_for_a_descriptor_moves_when_it_has_come);
    RUN(a_cancelled_wait_for_a_descriptor_is_withdrawn_where_it_was_begun);
    RUN(a_task_that_moves_leaves_a_scope_whose_tasks_stay_on_other_threads);
    RUN(a_task_that_yields_lets_those_go_first_that_are_older_than_it);
    return check_end();
}
