/* SPDX-License-Identifier: MIT */
/* Blocking calls that a cancel leaves: which side frees their arguments, whenever it comes. And
   those for which the thread waits, with all its tasks. */
#include "check_io.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct call {
    int number;
} call_t;

static sem_t begun, may_end;
static atomic_int called, freed;

static void call(void *argument) {
    ((call_t *)argument)->number++;
    called++;
}
static void await(sem_t *told) {
    while (sem_wait(told) != 0)
        continue;
}
static void call_until_told(void *argument) {
    sem_post(&begun);
    await(&may_end);
    call(argument);
}
static void leave(void *argument) {
    free(argument);
    freed++;
}

static void begin(void) {
    sem_init(&begun, 0, 0);
    sem_init(&may_end, 0, 0);
    called = freed = 0;
}

BODY(call_at_once) {
    call_t *own = calloc(1, sizeof *own);
    CHECK_EQUAL(haft_io_call_or_leave(call, own, leave), 0);
    CHECK_EQUAL(own->number, 1);
    free(own);
    return NULL;
}
static void a_call_that_ends_is_the_callers(void) {
    begin();
    CHECK_RUNS(call_at_once);
    call_at_once(NULL); /* outside of a run, too */
    CHECK_EQUAL(called, 2);
    CHECK_EQUAL(freed, 0);
}

BODY(call_for_long) {
    haft_io_call_or_leave(call_until_told, malloc(sizeof(call_t)), leave);
    CHECK(!"it was cancelled");
    return NULL;
}
BODY(cancel_what_has_begun) {
    haft_io_spawn(call_for_long, NULL);
    haft_io_yield();
    await(&begun);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(leave_what_has_begun) {
    CHECK_EQUAL(haft_io_scope(cancel_what_has_begun, NULL, NULL), -ECANCELED);
    CHECK_EQUAL(called + freed, 0); /* while it still blocks */
    sem_post(&may_end);
    return NULL;
}
static void a_call_that_has_begun_is_left_and_freed_at_its_end(void) {
    for (int threads = 1; threads <= 2; threads++) {
        begin();
        haft_io_run_options_t options = {.threads = threads};
        CHECK_EQUAL(haft_io_run_with(&options, leave_what_has_begun, NULL), 0);
        CHECK_EQUAL(called, 1); /* The run has waited for it. */
        CHECK_EQUAL(freed, 1);
    }
}

BODY(call_to_the_end) {
    call_t own = {0};
    CHECK_EQUAL(haft_io_call_blocking(call_until_told, &own), 0);
    CHECK_EQUAL(own.number, 1);
    return NULL;
}
BODY(cancel_what_is_queued) {
    haft_io_spawn_with(&(haft_io_task_options_t){.scope = argument}, call_to_the_end, NULL);
    haft_io_yield();
    await(&begun);
    for (int i = 0; i < 9; i++)
        haft_io_spawn(call_for_long, NULL);
    haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(leave_what_is_queued) {
    CHECK_EQUAL(haft_io_scope(cancel_what_is_queued, haft_io_this_scope(), NULL), -ECANCELED);
    CHECK_EQUAL(freed, 9);
    sem_post(&may_end);
    return NULL;
}
/* The pool's only thread is in a call that is not left. */
static void a_call_that_has_not_begun_is_freed_at_once(void) {
    begin();
    haft_io_run_options_t options = {.threads = 1, .blocking_threads = 1};
    CHECK_EQUAL(haft_io_run_with(&options, leave_what_is_queued, NULL), 0);
    CHECK_EQUAL(called, 1);
    CHECK_EQUAL(freed, 9);
}

/* One thread at a time works for the tasks that wait; what was left is not counted, whether the
   next call comes then or waits. */
BODY(call_beside_the_left) {
    CHECK_EQUAL(haft_io_scope(cancel_what_has_begun, NULL, NULL), -ECANCELED);
    call_at_once(NULL);
    sem_post(&may_end);
    return NULL;
}
BODY(call_behind_what_is_left) {
    haft_io_spawn(call_for_long, NULL);
    haft_io_yield();
    await(&begun);
    CHECK_EQUAL(
        haft_io_spawn_with(&(haft_io_task_options_t){.scope = argument}, call_at_once, NULL), 0);
    haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(wait_behind_what_is_left) {
    CHECK_EQUAL(haft_io_scope(call_behind_what_is_left, haft_io_this_scope(), NULL), -ECANCELED);
    while (called == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    sem_post(&may_end);
    return NULL;
}
static void calls_that_were_left_keep_no_other_waiting(void) {
    haft_io_run_options_t options = {.threads = 1, .blocking_threads = 1};
    void *(*bodies[])(void *) = {call_beside_the_left, wait_behind_what_is_left};
    for (int i = 0; i < 2; i++) {
        begin();
        CHECK_EQUAL(haft_io_run_with(&options, bodies[i], NULL), 0);
        CHECK_EQUAL(called, 2);
        CHECK_EQUAL(freed, 1);
    }
}

BODY(call_when_cancelled) {
    haft_io_return_cancels(true);
    haft_io_scope_cancel(haft_io_this_scope());
    CHECK_EQUAL(haft_io_call_or_leave(call, malloc(sizeof(call_t)), leave), -ECANCELED);
    return NULL;
}
static void who_has_been_cancelled_calls_nothing(void) {
    begin();
    CHECK_EQUAL(haft_io_run(call_when_cancelled, NULL), -ECANCELED);
    CHECK_EQUAL(called, 0);
    CHECK_EQUAL(freed, 1);
}

/* Cancels come at every moment of a call: each argument is freed once, by somebody. */
BODY(call_and_free) {
    call_t *own = malloc(sizeof *own);
    haft_io_return_cancels(true);
    if (haft_io_call_or_leave(call, own, leave) == 0)
        leave(own);
    return NULL;
}
BODY(call_many_and_cancel) {
    for (int i = 0; i < 50; i++)
        haft_io_spawn(call_and_free, NULL);
    for (int i = 0; i < *(int *)argument; i++)
        haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void every_argument_is_freed_once(void) {
    int runs = check_times(200);
    for (int threads = 1; threads <= 2; threads++)
        for (int i = 0; i < runs; i++) {
            begin();
            haft_io_run_options_t options = {.threads = threads, .blocking_threads = 4};
            int code = haft_io_run_with(&options, call_many_and_cancel, &(int){i});
            CHECK(code == -ECANCELED);
            CHECK_EQUAL(freed, 50);
        }
}

/* ---- On the task's own thread ---- */

static int turns;
static haft_io_event_t told;
BODY(take_a_turn) {
    turns++;
    return NULL;
}
static void *set_later(void *unused) {
    usleep(2000);
    haft_io_event_set(&told);
    return unused;
}
/* A wait of each kind: for a time, for others, for a thread, for the pool, for a descriptor. */
static void *wait_on_thread(void *argument) {
    int pipe_ends[2];
    pthread_t setter;
    CHECK(haft_io_self() == NULL);
    CHECK_EQUAL(haft_io_sleep(HAFT_IO_MILLISECOND), 0);
    CHECK_EQUAL(haft_io_yield(), 0);
    CHECK_EQUAL(pthread_create(&setter, NULL, set_later, NULL), 0);
    CHECK_EQUAL(haft_io_event_wait(&told), 0);
    CHECK_EQUAL(pthread_join(setter, NULL), 0);
    haft_io_event_clear(&told);
    call_t call_here = {0};
    CHECK_EQUAL(haft_io_call_blocking(call, &call_here), 0);
    CHECK_EQUAL(call_here.number, 1);
    CHECK_EQUAL(pipe(pipe_ends), 0);
    CHECK_EQUAL(haft_io_write(pipe_ends[1], "x", 1), 1);
    CHECK_EQUAL(haft_io_read(pipe_ends[0], &(char){0}, 1), 1);
    CHECK_EQUAL(close(pipe_ends[0]) + close(pipe_ends[1]), 0);
    return haft_io_block_thread(take_a_turn, NULL) == NULL ? argument : NULL; /* in each other */
}
BODY(block_the_thread) {
    int result;
    turns = 0;
    haft_io_spawn(take_a_turn, NULL);
    CHECK(haft_io_block_thread(wait_on_thread, &result) == &result);
    CHECK_EQUAL(turns, 1);
    CHECK(haft_io_self() != NULL);
    CHECK_EQUAL(haft_io_sleep(HAFT_IO_MILLISECOND), 0);
    CHECK_EQUAL(turns, 2);
    return NULL;
}
static void no_other_task_runs_while_one_blocks_the_thread(void) {
    CHECK_RUNS(block_the_thread);
    turns = 0;
    CHECK(haft_io_block_thread(wait_on_thread, &turns) == &turns); /* outside of a run, too */
    CHECK_EQUAL(turns, 1);
}

/* A cancel that has come meanwhile is seen by the next wait after it. */
BODY(sleep_on_thread) {
    CHECK_EQUAL(haft_io_sleep(2 * HAFT_IO_MILLISECOND), 0);
    turns++;
    return NULL;
}
BODY(block_and_wait) {
    haft_io_block_thread(sleep_on_thread, NULL);
    haft_io_sleep(HAFT_IO_SECOND);
    CHECK(!"it was cancelled");
    return NULL;
}
BODY(block_under_a_deadline) {
    turns = 0;
    haft_io_scope_options_t options = {.deadline = haft_io_now() + HAFT_IO_MILLISECOND};
    CHECK_EQUAL(haft_io_scope_with(&options, block_and_wait, NULL, NULL), -ETIMEDOUT);
    CHECK_EQUAL(turns, 1);
    return NULL;
}
static void no_cancel_ends_a_wait_of_the_thread(void) {
    CHECK_RUNS(block_under_a_deadline);
}

int main(void) {
    check_backend();
    RUN(a_call_that_ends_is_the_callers);
    RUN(a_call_that_has_begun_is_left_and_freed_at_its_end);
    RUN(a_call_that_has_not_begun_is_freed_at_once);
    RUN(calls_that_were_left_keep_no_other_waiting);
    RUN(who_has_been_cancelled_calls_nothing);
    RUN(every_argument_is_freed_once);
    RUN(no_other_task_runs_while_one_blocks_the_thread);
    RUN(no_cancel_ends_a_wait_of_the_thread);
    return check_end();
}
