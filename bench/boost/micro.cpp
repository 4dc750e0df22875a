// SPDX-License-Identifier: MIT
// Boost.Context's microbenchmarks: the raw jump, the public fiber, and a fiber's life.
#include "../harness.h"
#include "requester.hpp"

#include <boost/context/detail/fcontext.hpp>

#include <exception>

namespace context = boost::context;

static void bounce(context::detail::transfer_t from) {
    for (;;)
        from = context::detail::jump_fcontext(from.fctx, from.data);
}

BENCHMARK("boost/two-jumps", two_jumps) {
    context::fixedsize_stack stacks(64 * 1024);
    context::stack_context stack = stacks.allocate();
    context::detail::transfer_t from = {
        context::detail::make_fcontext(stack.sp, stack.size, bounce), nullptr};
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        from = context::detail::jump_fcontext(from.fctx, nullptr);
    benchmark_stop(benchmark);
    stacks.deallocate(stack);
}

using performer = bench::requester<int64_t, int64_t>;

BENCHMARK("boost/round-trip", round_trip) {
    performer computation([](performer &self) {
        for (int64_t value = 0;;)
            value = self.perform(value);
    });
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        computation.resume();
        computation.reply = computation.request + 1;
    }
    benchmark_stop(benchmark);
}

BENCHMARK("boost/create-run-free", create_run_free) {
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        performer computation([](performer &) { BARRIER(); });
        computation.resume();
    }
    benchmark_stop(benchmark);
}

BENCHMARK("boost/create-perform-drop", create_perform_drop) {
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        performer computation([](performer &self) { self.perform(0); });
        computation.resume();
    }
    benchmark_stop(benchmark);
}
