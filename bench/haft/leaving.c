/* SPDX-License-Identifier: MIT */
/* Exceptions as an effect that is thrown, without cleanups: an operation makes a fiber, which throws
 * out of it (`new`), or resets the one that threw before (`reused`), or throws through a hundred
 * fibers, whose resumers throw it again (`rethrow`). */
#include "../harness.h"

#include <haft.h>

HAFT_EFFECT(failed, void, { int64_t value; });

enum { LEVELS = 100 };

static const haft_fiber_options_t plain = {.no_cleanups = true};

static NOINLINE void *fail(void *argument) {
    HAFT_THROW(failed, (int64_t)(intptr_t)argument);
}
static NOINLINE int64_t caught(haft_fiber_t *fiber) {
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(failed));
    return ((const HAFT_PAYLOAD(failed) *)request.payload)->value;
}

BENCHMARK("haft/new", haft_new) {
    int64_t sum = 0;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        haft_fiber_t *fiber = haft_fiber_new_with(&plain, fail, NULL);
        sum += caught(fiber);
        haft_fiber_drop(fiber);
    }
    benchmark_stop(benchmark);
    OPAQUE(sum);
}
BENCHMARK("haft/reused", haft_reused) {
    int64_t sum = 0;
    haft_fiber_t *fiber = haft_fiber_new_with(&plain, fail, NULL);
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        sum += caught(fiber);
        haft_fiber_reset(fiber, fail, NULL);
    }
    benchmark_stop(benchmark);
    haft_fiber_drop(fiber);
    OPAQUE(sum);
}

static void *rethrow(void *argument) {
    intptr_t level = (intptr_t)argument;
    if (level == 0)
        return fail(NULL);
    haft_fiber_t *fiber = haft_fiber_new_with(&plain, rethrow, (void *)(level - 1));
    int64_t value = caught(fiber);
    haft_fiber_drop(fiber);
    HAFT_THROW(failed, value + 1);
}
BENCHMARK("haft/rethrow", haft_rethrow) {
    int64_t sum = 0;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        haft_fiber_t *fiber = haft_fiber_new_with(&plain, rethrow, (void *)(intptr_t)(LEVELS - 1));
        sum += caught(fiber);
        haft_fiber_drop(fiber);
    }
    benchmark_stop(benchmark);
    OPAQUE(sum);
}
