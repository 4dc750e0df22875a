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

BENCHMARK_SERIES("seff/round-robin", round_robin_seff, 10, 100, 1000, 10000, 100000) {
    static seff_coroutine_t *coroutines[MOST];
    uint64_t count = (uint64_t)benchmark->parameter;
    for (uint64_t i = 0; i < count; i++)
        if (coroutines[i] == NULL)
            coroutines[i] = seff_coroutine_new(count_turns, &turns[i]);
    benchmark->operations += (count - benchmark->operations % count) % count;
    for (uint64_t i = 0; i < count; i++)
        seff_resume(coroutines[i], NULL, HANDLES(yield));
    benchmark_start(benchmark);
    for (uint64_t done = 0; done < benchmark->operations; done += count)
        for (uint64_t i = 0; i < count; i++)
            seff_resume(coroutines[i], NULL, HANDLES(yield));
    benchmark_stop(benchmark);
}
