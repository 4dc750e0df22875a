/* SPDX-License-Identifier: MIT */
/*
 * Tasks on several threads: one runs and never ends, one holds a lock for reading and writing, one
 * is cancelled, one has ended and is to be joined; and fibers of libhaft alone, nested, with
 * handlers of their own. Ends by abort() when all are where they are to be.
 */
#include <haft/io.h>

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include <pthread.h>
#include <unistd.h>

HAFT_EFFECT(ask_price, int, { const char *what; });
HAFT_EFFECT(tell, void, { int number; });

static haft_io_rwlock_t prices;
static atomic_int arrived, holds;

static void *ask(void *argument) {
    HAFT_PERFORM(tell, 1);
    return (void *)(intptr_t)HAFT_PERFORM(ask_price, argument);
}

static void tell_clause(void *state, HAFT_PAYLOAD(tell) * payload) {
    *(int *)state = payload->number;
}

HAFT_HANDLER(till, NULL, HAFT_TAIL(tell, tell_clause));

static void *inner(void *argument) {
    int number = 0;
    return haft_handle(&till, &number, ask, argument);
}

__attribute__((noinline)) static void compute(void) {
    for (atomic_fetch_add(&arrived, 1);;)
        __asm__ volatile("");
}

static void *count(void *argument) {
    compute();
    return argument;
}

static void *write_prices(void *argument) {
    haft_io_rwlock_write_lock(&prices);
    atomic_store(&holds, 1);
    haft_io_sleep(3600 * HAFT_IO_SECOND);
    return argument;
}

static void *read_prices(void *argument) {
    while (atomic_load(&holds) == 0)
        haft_io_yield();
    atomic_fetch_add(&arrived, 1);
    haft_io_rwlock_read_lock(&prices);
    return argument;
}

static void *nothing(void *argument) {
    return argument;
}

static void *open_shop(void *argument) {
    haft_io_task_options_t counter = {.name = "counter"}, writer = {.name = "writer"};
    haft_io_task_options_t reader = {.name = "reader"}, short_lived = {.name = "short-lived"};
    haft_io_spawn_with(&counter, count, NULL);
    haft_io_spawn_with(&writer, write_prices, NULL);
    haft_io_spawn_with(&reader, read_prices, NULL);
    haft_io_async_with(&short_lived, nothing, NULL);
    haft_fiber_t *fiber = haft_fiber_new(inner, "bread");
    haft_fiber_set_name(fiber, "customer");
    haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ask_price));
    return argument;
}

/* A thread that has no tasks: one of the others is held by a task. */
static void *close_shop(void *argument) {
    while (atomic_load(&arrived) < 2)
        usleep(1000);
    usleep(200000);
    abort();
    return argument;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, close_shop, NULL);
    return haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, open_shop, NULL);
}
