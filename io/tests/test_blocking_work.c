/* SPDX-License-Identifier: MIT */
/* Blocking calls that a cancel leaves: who frees their arguments, whenever it comes. */
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

/* One thread at a time works for those who wait; what was left is not counted, whether the next
   call comes then or waits. */
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

int main(void) {
    check_backend();
    RUN(a_call_that_ends_is_the_callers);
    RUN(a_call_that_has_begun_is_left_and_freed_at_its_end);
    RUN(a_call_that_has_not_begun_is_freed_at_once);
    RUN(calls_that_were_left_keep_no_other_waiting);
    RUN(who_has_been_cancelled_calls_nothing);
    RUN(every_argument_is_freed_once);
    return check_end();
}
