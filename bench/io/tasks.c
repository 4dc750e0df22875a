/* Tasks of libhaft-io: what each step costs, beside a perform-resume round trip of core. One run of the
 * scheduler does a slice. */
#include "../harness.h"

#include <haft/io.h>

#include <stdlib.h>

static void run(benchmark_t *benchmark, void *(*body)(void *)) {
    if (haft_io_run(body, benchmark, NULL) != 0)
        abort();
}

/* ---- The measure: one perform, handled and resumed ---- */

HAFT_EFFECT(io_ask, int64_t, { int64_t value; });

static void *ask_forever(void *unused) {
    (void)unused;
    for (int64_t value = 0;;)
        value = HAFT_PERFORM(io_ask, value);
    return NULL;
}

BENCHMARK("haft/round-trip", round_trip) {
    haft_fiber_t *k = haft_fiber_new(ask_forever, NULL);
    haft_request_t request = haft_resume(k, NULL, HAFT_HANDLES(io_ask));
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        if (request.effect != HAFT_ID(io_ask))
            abort();
        int64_t value = ((HAFT_PAYLOAD(io_ask) *)request.payload)->value;
        request = haft_resume(k, HAFT_REPLY(io_ask, value + 1), HAFT_HANDLES(io_ask));
    }
    benchmark_stop(benchmark);
    haft_fiber_free(k);
}

/* ---- Tasks ---- */

static void *do_nothing(void *argument) {
    return argument;
}

static void *spawn_and_join(void *argument) {
    benchmark_t *benchmark = argument;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        if (haft_io_join(haft_io_async(do_nothing, NULL), NULL) != 0)
            abort();
    benchmark_stop(benchmark);
    return NULL;
}
BENCHMARK("haft/io-spawn-join", spawn_join) {
    run(benchmark, spawn_and_join);
}

/* Spawned by the hundred, joined afterwards: no switch for each. */
static void *spawn_in_batches(void *argument) {
    enum { BATCH = 100 };
    benchmark_t *benchmark = argument;
    haft_io_task_t *tasks[BATCH];
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations;) {
        int count = 0;
        for (; count < BATCH && i < benchmark->operations; count++, i++)
            tasks[count] = haft_io_async(do_nothing, NULL);
        while (count > 0)
            haft_io_join(tasks[--count], NULL);
    }
    benchmark_stop(benchmark);
    return NULL;
}
BENCHMARK("haft/io-spawn-join-batch", spawn_join_batch) {
    run(benchmark, spawn_in_batches);
}

static void *yield_half(void *argument) {
    benchmark_t *benchmark = argument;
    for (uint64_t i = 0; i < benchmark->operations; i += 2)
        haft_io_yield();
    return NULL;
}
static void *yield_by_two(void *argument) {
    benchmark_t *benchmark = argument;
    haft_io_task_t *other = haft_io_async(yield_half, benchmark);
    benchmark_start(benchmark);
    yield_half(benchmark);
    haft_io_join(other, NULL);
    benchmark_stop(benchmark);
    return NULL;
}
BENCHMARK("haft/io-yield", yield) {
    run(benchmark, yield_by_two);
}

static void *return_at_once(void *argument) {
    return argument;
}
static void *open_scopes(void *argument) {
    benchmark_t *benchmark = argument;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        haft_io_scope(return_at_once, NULL, NULL);
    benchmark_stop(benchmark);
    return NULL;
}
BENCHMARK("haft/io-scope", scope) {
    run(benchmark, open_scopes);
}

static void *who_am_i(void *argument) {
    benchmark_t *benchmark = argument;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        haft_io_task_t *self = haft_io_self();
        OPAQUE(self);
    }
    benchmark_stop(benchmark);
    return NULL;
}
BENCHMARK("haft/io-self", self) {
    run(benchmark, who_am_i);
}
