/* SPDX-License-Identifier: MIT */
/* Many fibers in turn: each counts and yields. One operation is a turn: a resume and a yield. */
#include "../harness.h"

#include <haft.h>

#include <stdlib.h>

HAFT_EFFECT(yield, void, {});

enum { MOST = 100000 };
static uint64_t turns[MOST];

static void *count_turns(void *turn) {
    uint64_t *count = turn;
    for (;;) {
        ++*count;
        HAFT_PERFORM(yield);
    }
    return NULL;
}

static void make(haft_fiber_t **fibers, uint64_t count, const haft_fiber_options_t *options) {
    for (uint64_t i = 0; i < count; i++) {
        if (fibers[i] == NULL)
            fibers[i] = haft_fiber_new_with(options, count_turns, &turns[i]);
        if (fibers[i] == NULL)
            abort();
    }
}

static void run(benchmark_t *benchmark, haft_fiber_t **fibers) {
    uint64_t count = (uint64_t)benchmark->parameter;
    const haft_handles_t *yields = HAFT_HANDLES(yield);
    benchmark->operations += (count - benchmark->operations % count) % count;
    for (uint64_t i = 0; i < count; i++)
        haft_resume(fibers[i], HAFT_NO_REPLY, yields);
    benchmark_start(benchmark);
    for (uint64_t done = 0; done < benchmark->operations; done += count)
        for (uint64_t i = 0; i < count; i++)
            haft_resume(fibers[i], HAFT_NO_REPLY, yields);
    benchmark_stop(benchmark);
}

/* The fibers are kept from slice to slice: what is measured is not how they are made. */
BENCHMARK_SERIES("haft/round-robin", round_robin, 10, 100, 1000, 5000, 10000, 100000) {
    static haft_fiber_t *fibers[MOST];
    make(fibers, (uint64_t)benchmark->parameter, NULL);
    run(benchmark, fibers);
}

BENCHMARK_SERIES("haft/round-robin-dense", round_robin_dense, 10, 100, 1000, 5000, 10000, 100000) {
    static haft_fiber_t *fibers[MOST];
    const haft_fiber_options_t options = {.dense = true};
    make(fibers, (uint64_t)benchmark->parameter, &options);
    run(benchmark, fibers);
}

/* On stacks of other sizes: the default of 1 MiB lies two to a page of the page tables. */
BENCHMARK_SERIES("haft/round-robin-64k", round_robin_64k, 100, 1000, 5000, 10000, 100000) {
    static haft_fiber_t *fibers[MOST];
    const haft_fiber_options_t options = {.stack_size = 64 * 1024};
    make(fibers, (uint64_t)benchmark->parameter, &options);
    run(benchmark, fibers);
}

BENCHMARK_SERIES("haft/round-robin-16k", round_robin_16k, 100, 1000, 5000, 10000, 100000) {
    static haft_fiber_t *fibers[MOST];
    const haft_fiber_options_t options = {.stack_size = 16 * 1024};
    make(fibers, (uint64_t)benchmark->parameter, &options);
    run(benchmark, fibers);
}
