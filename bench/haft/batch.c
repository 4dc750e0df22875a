/* SPDX-License-Identifier: MIT */
/* Fibers that live at the same time: so many are made, then run, then freed. One operation is the
 * life of one. */
#include "../harness.h"

#include <haft.h>

#include <stdlib.h>

static void *return_at_once(void *unused) {
    BARRIER();
    return unused;
}

BENCHMARK_SERIES("haft/batch", batch, 1, 64, 65, 100, 1000, 10000, 100000) {
    uint64_t count = (uint64_t)benchmark->parameter;
    benchmark->operations += (count - benchmark->operations % count) % count;
    haft_fiber_t **fibers = malloc(count * sizeof *fibers);
    if (!fibers)
        abort();
    const haft_handles_t *none = HAFT_HANDLES();
    benchmark_start(benchmark);
    for (uint64_t done = 0; done < benchmark->operations; done += count) {
        for (uint64_t i = 0; i < count; i++)
            fibers[i] = haft_fiber_new(return_at_once, NULL);
        for (uint64_t i = 0; i < count; i++)
            haft_resume(fibers[i], HAFT_NO_REPLY, none);
        for (uint64_t i = 0; i < count; i++)
            haft_fiber_drop(fibers[i]);
    }
    benchmark_stop(benchmark);
    free(fibers);
}

/* A million takes more than 6 GB: with --large only. */
__attribute__((constructor)) static void batch_of_a_million(void) {
    static const int size = 1000000;
    if (getenv("HAFT_BENCH_LARGE") != NULL)
        benchmark_register_series("haft/batch", batch, &size, 1);
}
