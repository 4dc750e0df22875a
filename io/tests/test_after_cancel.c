/* A task that goes on after its cancel, and calls what waits again and again. */
#include "check_io.h"

#include <haft/io_sync.h>
#include <haft/io_testing.h>

#include <poll.h>

static int end; /* of a pair: nothing comes */
static haft_io_mutex_t held;
static haft_io_event_t never;

static void *nothing(void *argument) {
    return argument;
}
static int call_nothing(void) {
    return haft_io_call_blocking((void (*)(void *))(void (*)(void))nothing, NULL);
}
static int open_a_scope(void) {
    return haft_io_scope(nothing, NULL, NULL) == 0 ? haft_io_sleep(HAFT_IO_SECOND) : -ECANCELED;
}

static void *sleep_long(void *unused) {
    haft_io_sleep(HAFT_IO_SECOND);
    return unused;
}
static int waits_for_one_of_two(void) {
    return haft_io_first((haft_io_call_t[]){{.function = sleep_long}, {.function = sleep_long}}, 2);
}

#define WAY(name, call)                                                                            \
    static int name(void) {                                                                        \
        return (int)(call);                                                                        \
    }
WAY(sleeps, haft_io_sleep(HAFT_IO_SECOND))
WAY(yields, haft_io_yield())
WAY(reads, haft_io_read(end, (char[1]){0}, 1))
WAY(polls, haft_io_poll(&(struct pollfd){end, POLLIN, 0}, 1, HAFT_IO_FOREVER))
WAY(locks, haft_io_mutex_lock(&held))
WAY(waits_for_an_event, haft_io_event_wait(&never))

static int (*const ways[])(void) = {sleeps,       yields,       reads,
                                    polls,        locks,        waits_for_an_event,
                                    call_nothing, open_a_scope, waits_for_one_of_two};
enum { WAYS = sizeof ways / sizeof *ways };

static int turns, calls;
static bool over;

BODY(take_turns) {
    for (turns = 0; turns < 3; turns++)
        haft_io_yield();
    return NULL;
}
static void *call_until_others_had_turns(void *way) {
    haft_io_return_cancels(true);
    haft_io_scope_cancel(haft_io_this_scope());
    while (turns < 3)
        CHECK_EQUAL((*(int (*const *)(void))way)(), -ECANCELED);
    return NULL;
}
static void set_up(int (*make)(int ends[2]), int ends[2]) {
    CHECK_EQUAL(make(ends), 0);
    end = ends[0];
    CHECK_EQUAL(haft_io_mutex_lock(&held), 0);
}
static void tear_down(const int ends[2]) {
    haft_io_mutex_unlock(&held);
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
}
BODY(starve_by_each) {
    int ends[2];
    set_up(haft_io_pipe, ends);
    for (int i = 0; i < WAYS; i++) {
        turns = 0;
        haft_io_spawn(take_turns, NULL);
        CHECK_EQUAL(haft_io_scope(call_until_others_had_turns, (void *)(uintptr_t)&ways[i], NULL),
                    -ECANCELED);
    }
    tear_down(ends);
    return NULL;
}
static void a_cancelled_task_that_waits_again_and_again_lets_others_run(void) {
    CHECK_RUNS(starve_by_each);
}

/* ---- In a simulation, where time passes only if no task can go on ---- */

BODY(end_after_a_second) {
    haft_io_sleep(HAFT_IO_SECOND);
    over = true;
    return NULL;
}
static void *call_until_it_is_over(void *way) {
    haft_io_return_cancels(true);
    haft_io_scope_cancel(haft_io_this_scope());
    for (calls = 0; !over; calls++)
        CHECK_EQUAL((*(int (*const *)(void))way)(), -ECANCELED);
    return NULL;
}
static void *call_late_until_it_is_over(void *way) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t past = {0};
    haft_io_deadline_set(&past, haft_io_now() - 1);
    for (calls = 0; !over; calls++)
        CHECK_EQUAL((*(int (*const *)(void))way)(), -ETIMEDOUT);
    return NULL;
}
static void check_calls(void *(*body)(void *), int (*const *way)(void)) {
    over = false;
    haft_io_spawn(end_after_a_second, NULL);
    haft_io_scope(body, (void *)(uintptr_t)way, NULL);
    CHECK(calls >= 64 && calls < 64 + 100);
}
BODY(spin_by_each) {
    int ends[2];
    set_up(haft_io_simulated_pair, ends);
    for (int i = 0; i < WAYS; i++) {
        if (ways[i] == call_nothing) /* is called at once */
            continue;
        check_calls(call_until_it_is_over, &ways[i]);
        if (ways[i] != yields && ways[i] != open_a_scope)
            check_calls(call_late_until_it_is_over, &ways[i]);
    }
    tear_down(ends);
    return NULL;
}
static void a_cancelled_or_late_task_that_waits_again_and_again_pauses_more_and_more(void) {
    CHECK_EQUAL(haft_io_simulate(spin_by_each, NULL), 0);
}

/* Refusals of one cancel are no matter of the next. */
static void *call_often(void *unused) {
    haft_io_return_cancels(true);
    haft_io_scope_cancel(haft_io_this_scope());
    for (int i = 0; i < 60; i++)
        CHECK_EQUAL(sleeps(), -ECANCELED);
    return unused;
}
BODY(be_cancelled_often) {
    int64_t before = haft_io_now();
    for (int i = 0; i < 10; i++)
        CHECK_EQUAL(haft_io_scope(call_often, NULL, NULL), -ECANCELED);
    for (int i = 0; i < 10; i++) {
        HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t past = {0};
        haft_io_deadline_set(&past, haft_io_now() - 1);
        for (int k = 0; k < 60; k++)
            CHECK_EQUAL(sleeps(), -ETIMEDOUT);
    }
    CHECK_EQUAL(haft_io_now(), before);
    return NULL;
}
static void each_cancel_is_counted_for_itself(void) {
    CHECK_EQUAL(haft_io_simulate(be_cancelled_often, NULL), 0);
}

/* A cleanup may have much to do, and ends by itself. */
static int refused;
static void wait_often(const int *unused) {
    (void)unused;
    for (int i = 0; i < 1000; i++)
        refused += haft_io_sleep(HAFT_IO_SECOND) == -ECANCELED;
}
static void *be_unwound(void *unused) {
    __attribute__((cleanup(wait_often))) int guard = 0;
    (void)guard;
    haft_io_scope_cancel(haft_io_this_scope());
    haft_io_sleep(HAFT_IO_SECOND);
    return unused;
}
BODY(clean_up) {
    int64_t before = haft_io_now();
    CHECK_EQUAL(haft_io_scope(be_unwound, NULL, NULL), -ECANCELED);
    CHECK_EQUAL(refused, 1000);
    CHECK_EQUAL(haft_io_now(), before);
    return NULL;
}
static void a_cleanup_is_not_paused(void) {
    CHECK_EQUAL(haft_io_simulate(clean_up, NULL), 0);
}

int main(void) {
    check_backend();
    RUN(a_cancelled_task_that_waits_again_and_again_lets_others_run);
    RUN(a_cancelled_or_late_task_that_waits_again_and_again_pauses_more_and_more);
    RUN(each_cancel_is_counted_for_itself);
    RUN(a_cleanup_is_not_paused);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
