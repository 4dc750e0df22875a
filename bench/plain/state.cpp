// SPDX-License-Identifier: MIT
// The floors of the state benchmark: a loop that increments a variable in memory, and one that does
// it through two virtual calls.
#include "../harness.h"

namespace {

BENCHMARK("plain/state-loop", loop) {
    volatile int64_t state = 0;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        state = state + 1;
    benchmark_stop(benchmark);
}

struct cell {
    virtual int64_t get() = 0;
    virtual void put(int64_t value) = 0;
    virtual ~cell() = default;
};
struct variable final : cell {
    NOINLINE int64_t get() override { return state; }
    NOINLINE void put(int64_t value) override { state = value; }
    int64_t state = 0;
};
/* A second descendant: the compiler calls the functions of an only one in its file directly. */
struct constant final : cell {
    NOINLINE int64_t get() override { return 1; }
    NOINLINE void put(int64_t) override {}
};

BENCHMARK("plain/state-virtual-calls", virtual_calls) {
    variable object;
    constant other;
    cell *known = benchmark->operations > 0 ? static_cast<cell *>(&object) : &other;
    OPAQUE(known);
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        known->put(known->get() + 1);
    benchmark_stop(benchmark);
}

} // namespace
