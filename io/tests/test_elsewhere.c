/* SPDX-License-Identifier: MIT */
/* Scopes that are left while tasks of theirs have started on other threads, which they may have to
   stay on. */
#include "check_io.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How the scope is left. */
enum way { RETURNS, FAILS, CANCELS, IS_CANCELLED, IS_LATE, THROWS, WAYS };

typedef struct attempt {
    enum way way;
    bool opener_moves, tasks_move;
    long opened_on;       /* the thread */
    atomic_int elsewhere; /* tasks that have started on another */
    atomic_int begun, ended;
    haft_io_event_t cancelled; /* is to be */
} attempt_t;

/* Each call looks up the thread anew: compilers would keep it. */
static __attribute__((noinline)) long this_thread(void) {
    return syscall(SYS_gettid);
}

/* ---- The tasks ---- */

typedef struct stay {
    attempt_t *attempt;
    long began_on;
} stay_t;

BODY(wait_a_little) {
    haft_io_yield();
    haft_io_sleep(HAFT_IO_MICROSECOND * 50);
    haft_io_yield();
    return NULL;
}
static void check_stayed(const stay_t *stay) {
    if (!stay->attempt->tasks_move)
        CHECK_EQUAL(this_thread(), stay->began_on);
}
/* However the task ends; and on its thread it waits, too. */
static void end_stay(stay_t *stay) {
    haft_io_shield(wait_a_little, NULL);
    check_stayed(stay);
    atomic_fetch_add(&stay->attempt->ended, 1);
}
static void begin_stay(attempt_t *attempt) {
    atomic_fetch_add(&attempt->begun, 1);
    if (this_thread() != attempt->opened_on)
        atomic_fetch_add(&attempt->elsewhere, 1);
}
static void *stay(void *argument) {
    attempt_t *attempt = argument;
    __attribute__((cleanup(end_stay))) stay_t here = {attempt, this_thread()};
    begin_stay(attempt);
    if (attempt->way == RETURNS)
        wait_a_little(NULL);
    else
        haft_io_sleep(1000 * HAFT_IO_SECOND);
    check_stayed(&here);
    return NULL;
}
static void *stay_and_spawn(void *argument) {
    attempt_t *attempt = argument;
    __attribute__((cleanup(end_stay))) stay_t here = {attempt, this_thread()};
    begin_stay(attempt);
    CHECK_EQUAL(haft_io_spawn(stay, attempt), 0);
    haft_io_yield();
    check_stayed(&here);
    return NULL;
}

/* ---- The task that opens the scope, and leaves it ---- */

HAFT_EFFECT(get_out, void, {});

/* It holds its thread until a task has started on another. */
static void *leave_with_tasks_elsewhere(void *argument) {
    attempt_t *attempt = argument;
    attempt->opened_on = this_thread();
    for (int i = 0; i < 4; i++)
        CHECK_EQUAL(haft_io_spawn(i % 2 == 0 ? stay : stay_and_spawn, attempt), 0);
    while (atomic_load(&attempt->elsewhere) == 0)
        sched_yield();
    switch (attempt->way) {
    case FAILS:
        haft_io_fail(-EPROTO, "enough");
    case CANCELS:
        haft_io_scope_cancel(haft_io_this_scope());
        break;
    case IS_CANCELLED:
        haft_io_event_set(&attempt->cancelled);
        break;
    case THROWS:
        HAFT_THROW(get_out);
    default:
        break;
    }
    return NULL;
}
static int open_scope(attempt_t *attempt) {
    haft_io_scope_options_t options = {.moves = attempt->tasks_move};
    if (attempt->way == IS_LATE)
        options.deadline = haft_io_now() + HAFT_IO_MILLISECOND;
    return haft_io_scope_with(&options, leave_with_tasks_elsewhere, attempt, NULL);
}
static void *open_to_throw(void *attempt) {
    open_scope(attempt);
    return NULL;
}
static void *open_to_be_cancelled(void *attempt) {
    open_scope(attempt);
    haft_io_sleep(1000 * HAFT_IO_SECOND); /* The tasks may have ended before this thread went on. */
    CHECK(false);
    return NULL;
}
static void *await_and_cancel(void *argument) {
    attempt_t *attempt = argument;
    haft_io_task_options_t options = {.moves = attempt->opener_moves};
    haft_io_spawn_with(&options, open_to_be_cancelled, attempt);
    haft_io_event_wait(&attempt->cancelled);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static int attempt_to_leave(attempt_t *attempt) {
    switch (attempt->way) {
    case IS_CANCELLED:
        return haft_io_scope(await_and_cancel, attempt, NULL);
    case THROWS: {
        HAFT_SCOPED haft_fiber_t *fiber = haft_fiber_new(open_to_throw, attempt);
        haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(get_out));
        CHECK(request.effect == HAFT_ID(get_out));
        return 0;
    }
    default:
        return open_scope(attempt);
    }
}

static void *leave_in_every_way(void *argument) {
    static const int codes[WAYS] = {0, -EPROTO, -ECANCELED, -ECANCELED, -ETIMEDOUT, 0};
    int rounds = check_times(20);
    for (int i = 0; i < rounds * WAYS; i++) {
        attempt_t attempt = {.way = (enum way)(i % WAYS),
                             .opener_moves = ((int *)argument)[0],
                             .tasks_move = ((int *)argument)[1]};
        CHECK_EQUAL(attempt_to_leave(&attempt), codes[attempt.way]);
        CHECK_EQUAL(atomic_load(&attempt.ended), atomic_load(&attempt.begun));
        CHECK_EQUAL(atomic_load(&attempt.ended), 6);
    }
    return NULL;
}
BODY(leave_by_all) {
    static int choices[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    for (int i = 0; i < 4; i++) {
        haft_io_task_options_t options = {.moves = choices[i][0]};
        haft_io_join(haft_io_async_with(&options, leave_in_every_way, choices[i]), NULL);
    }
    return NULL;
}
static void a_scope_waits_for_tasks_that_stay_on_other_threads_however_it_is_left(void) {
    for (int threads = 2; threads <= 4; threads++)
        CHECK_EQUAL(
            haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, leave_by_all, NULL), 0);
}

int main(void) {
    check_backend();
    RUN(a_scope_waits_for_tasks_that_stay_on_other_threads_however_it_is_left);
    return check_end();
}
