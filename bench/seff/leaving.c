/* SPDX-License-Identifier: MIT */
/* leaving, Haft, through seff.h. */
#include "../harness.h"

#include <seff.h>

DEFINE_EFFECT(raised, 0, void, { int64_t value; });

enum { LEVELS = 100 };

static NOINLINE void *seff_fail(void *argument) {
    THROW(raised, (int64_t)(intptr_t)argument);
}
static NOINLINE int64_t seff_caught(seff_coroutine_t *k) {
    seff_request_t request = seff_resume(k, NULL, HANDLES(raised));
    return ((const EFF_PAYLOAD_T(raised) *)request.payload)->value;
}
BENCHMARK("seff/new", seff_new) {
    int64_t sum = 0;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        seff_coroutine_t *k = seff_coroutine_new(seff_fail, NULL);
        sum += seff_caught(k);
        seff_coroutine_delete(k);
    }
    benchmark_stop(benchmark);
    OPAQUE(sum);
}
BENCHMARK("seff/reused", seff_reused) {
    int64_t sum = 0;
    seff_coroutine_t *k = seff_coroutine_new(seff_fail, NULL);
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        sum += seff_caught(k);
        seff_coroutine_reset(k);
    }
    benchmark_stop(benchmark);
    seff_coroutine_delete(k);
    OPAQUE(sum);
}
static void *seff_rethrow(void *argument) {
    intptr_t level = (intptr_t)argument;
    if (level == 0)
        return seff_fail(NULL);
    seff_coroutine_t *k = seff_coroutine_new(seff_rethrow, (void *)(level - 1));
    int64_t value = seff_caught(k);
    seff_coroutine_delete(k);
    THROW(raised, value + 1);
}
BENCHMARK("seff/rethrow", seff_rethrowing) {
    int64_t sum = 0;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        seff_coroutine_t *k = seff_coroutine_new(seff_rethrow, (void *)(intptr_t)(LEVELS - 1));
        sum += seff_caught(k);
        seff_coroutine_delete(k);
    }
    benchmark_stop(benchmark);
    OPAQUE(sum);
}
