/* SPDX-License-Identifier: MIT */
/* Many coroutines of seff.h in turn: each counts and yields. One operation is a turn. */
#include "../harness.h"

#include <seff.h>

DEFINE_EFFECT(yield, 0, void, {});

enum { MOST = 100000 };
static uint64_t turns[MOST];

static void *count_turns(void *turn) {
    uint64_t *count = turn;
    for (;;) {
        ++*count;
        PERFORM(yield);
    }
    return NULL;
}

typedef seff_coroutine_t *make_t(uint64_t *turn);

static seff_coroutine_t *make_pooled(uint64_t *turn) {
    return seff_coroutine_new(count_turns, turn);
}

static seff_coroutine_t *make_dense(uint64_t *turn) {
    return seff_coroutine_new_dense(count_turns, turn, 8 * 1024);
}

static void run(benchmark_t *benchmark, seff_coroutine_t **coroutines, make_t *make) {
    uint64_t count = (uint64_t)benchmark->parameter;
    for (uint64_t i = 0; i < count; i++)
        if (coroutines[i] == NULL)
            coroutines[i] = make(&turns[i]);
    benchmark->operations += (count - benchmark->operations % count) % count;
    for (uint64_t i = 0; i < count; i++)
        seff_resume(coroutines[i], NULL, HANDLES(yield));
    benchmark_start(benchmark);
    for (uint64_t done = 0; done < benchmark->operations; done += count)
        for (uint64_t i = 0; i < count; i++)
            seff_resume(coroutines[i], NULL, HANDLES(yield));
    benchmark_stop(benchmark);
}

BENCHMARK_SERIES("seff/round-robin", round_robin_seff, 10, 100, 1000, 5000, 10000, 100000) {
    static seff_coroutine_t *coroutines[MOST];
    run(benchmark, coroutines, make_pooled);
}

BENCHMARK_SERIES("seff/round-robin-dense", round_robin_seff_dense, 10, 100, 1000, 5000, 10000,
                 100000) {
    static seff_coroutine_t *coroutines[MOST];
    run(benchmark, coroutines, make_dense);
}
