// SPDX-License-Identifier: MIT
// leaving, Boost.Context: a context that jumps out and is never resumed, on a stack of a pool. So
// nothing is unwound, nor is there a handler to find: the least that leaving a stack may cost.
#include "../harness.h"
#include "requester.hpp"

#include <boost/context/detail/fcontext.hpp>

namespace context = boost::context;

namespace {

enum { LEVELS = 100, SIZE = 16 * 1024 };

/* Runs the function on a stack of its own, which it leaves by a jump; returns what it sends. */
NOINLINE std::int64_t caught(context::stack_context stack,
                             void (*function)(context::detail::transfer_t), std::int64_t *value) {
    auto made = context::detail::make_fcontext(stack.sp, stack.size, function);
    return *static_cast<std::int64_t *>(context::detail::jump_fcontext(made, value).data);
}

void fail(context::detail::transfer_t from) {
    context::detail::jump_fcontext(from.fctx, from.data);
}

void rethrow(context::detail::transfer_t from) {
    std::int64_t level = *static_cast<std::int64_t *>(from.data);
    std::int64_t value = level;
    if (level != 0) {
        std::int64_t next = level - 1;
        context::stack_context stack = bench::stack_pool(SIZE).allocate();
        value = caught(stack, rethrow, &next) + 1;
        bench::stack_pool(SIZE).deallocate(stack);
    }
    context::detail::jump_fcontext(from.fctx, &value);
}

} // namespace

BENCHMARK("boost/new", boost_new) {
    std::int64_t sum = 0, value = 1;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        context::stack_context stack = bench::stack_pool(SIZE).allocate();
        sum += caught(stack, fail, &value);
        bench::stack_pool(SIZE).deallocate(stack);
    }
    benchmark_stop(benchmark);
    OPAQUE(sum);
}
BENCHMARK("boost/reused", boost_reused) {
    std::int64_t sum = 0, value = 1;
    context::stack_context stack = bench::stack_pool(SIZE).allocate();
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        sum += caught(stack, fail, &value);
    benchmark_stop(benchmark);
    bench::stack_pool(SIZE).deallocate(stack);
    OPAQUE(sum);
}
BENCHMARK("boost/rethrow", boost_rethrow) {
    std::int64_t sum = 0, level = LEVELS - 1;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        context::stack_context stack = bench::stack_pool(SIZE).allocate();
        sum += caught(stack, rethrow, &level);
        bench::stack_pool(SIZE).deallocate(stack);
    }
    benchmark_stop(benchmark);
    OPAQUE(sum);
}
