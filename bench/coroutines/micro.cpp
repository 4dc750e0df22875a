// SPDX-License-Identifier: MIT
// C++20 coroutines' microbenchmarks: a stackless round trip, and a coroutine's life.
#include "../harness.h"
#include "requester.hpp"

using outlet = bench::channel<int64_t, int64_t>;

static NOINLINE bench::task<void> echo(outlet &out) {
    for (int64_t value = 0;;)
        value = co_await out.perform(value);
}

static NOINLINE bench::task<void> return_at_once() {
    BARRIER();
    co_return;
}

static NOINLINE bench::task<void> perform_once(outlet &out) {
    co_await out.perform(0);
}

BENCHMARK("coroutines/round-trip", round_trip) {
    outlet out;
    bench::task<void> computation = echo(out);
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        out.resume(computation);
        out.reply = out.request + 1;
        BARRIER();
    }
    benchmark_stop(benchmark);
}

BENCHMARK("coroutines/create-run-free", create_run_free) {
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        bench::task<void> computation = return_at_once();
        computation.entry().resume();
    }
    benchmark_stop(benchmark);
}

BENCHMARK("coroutines/create-perform-drop", create_perform_drop) {
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        outlet out;
        bench::task<void> computation = perform_once(out);
        out.resume(computation);
    }
    benchmark_stop(benchmark);
}
