/* SPDX-License-Identifier: MIT */
/* setjmp's microbenchmarks: a round trip between two stacks, a coroutine's life, and an abort. */
#include "../harness.h"
#include "coroutine.h"

static void echo(coroutine_t *self, void *unused) {
    (void)unused;
    for (int64_t value = 0;;)
        value = coroutine_perform(self, value);
}

static void return_at_once(coroutine_t *self, void *unused) {
    (void)self, (void)unused;
    BARRIER();
}

BENCHMARK("setjmp/round-trip", round_trip) {
    static coroutine_t computation;
    coroutine_create(&computation, echo, NULL, 64 * 1024);
    benchmark_start(benchmark);
    for (volatile uint64_t i = 0; i < benchmark->operations; i++) {
        coroutine_resume(&computation);
        computation.reply = computation.request + 1;
    }
    benchmark_stop(benchmark);
    coroutine_destroy(&computation);
}

BENCHMARK("setjmp/create-run-free", create_run_free) {
    static coroutine_t computation;
    benchmark_start(benchmark);
    for (volatile uint64_t i = 0; i < benchmark->operations; i++) {
        coroutine_create(&computation, return_at_once, NULL, 64 * 1024);
        coroutine_resume(&computation);
        coroutine_destroy(&computation);
    }
    benchmark_stop(benchmark);
}

static jmp_buf handler;

static NOINLINE void leave(void) {
    _longjmp(handler, 1);
}

static void (*volatile abandon)(void) = leave;

BENCHMARK("setjmp/install-and-jump", install_and_jump) {
    benchmark_start(benchmark);
    for (volatile uint64_t i = 0; i < benchmark->operations; i++)
        if (_setjmp(handler) == 0)
            abandon();
    benchmark_stop(benchmark);
}
