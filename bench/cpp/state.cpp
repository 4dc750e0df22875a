// SPDX-License-Identifier: MIT
/* Mutable state (figures 6 and 7): an operation is one turn of a loop that increments a state by
 * put(get() + 1), with the paper's gradation of handlers.
 *
 *   general     both clauses take the resumption; the handler object lives with the computation
 *   static      the same, performed to a handler that is named
 *   unmanaged   the same, the handler being a local of the caller
 *   lambdas     general clauses that are lambdas
 *   plain       clauses without a resumption, run in place
 */
#include "../harness.h"

#include <haft.hpp>

namespace {

struct Get : haft::effect<int64_t> {};
struct Put : haft::effect<> {
    int64_t value;
};

struct stateful : haft::handler<Get, Put> {
    explicit stateful(int64_t initial) : state(initial) {}
    haft::tail<void> operator()(Get, haft::resumption<void(int64_t)> k) {
        return std::move(k).tail_resume(state);
    }
    haft::tail<void> operator()(Put put, haft::resumption<void()> k) {
        state = put.value;
        return std::move(k).tail_resume();
    }
    int64_t state;
};

struct stateful_in_place : haft::handler<Get, Put> {
    explicit stateful_in_place(int64_t initial) : state(initial) {}
    int64_t operator()(Get) noexcept { return state; }
    void operator()(Put put) noexcept { state = put.value; }
    int64_t state;
};

/* The body measures, so that installing the handler is not counted. */
auto incrementing(benchmark_t *benchmark) {
    return [=] {
        haft::perform<Put>(haft::perform<Get>() + 1);
        benchmark_start(benchmark);
        for (uint64_t i = 0; i < benchmark->operations; i++)
            haft::perform<Put>(haft::perform<Get>() + 1);
        benchmark_stop(benchmark);
    };
}

auto incrementing_named(benchmark_t *benchmark) {
    return [=](haft::instance<Get, Put> cell) {
        cell.perform(Put{.value = cell.perform(Get{}) + 1});
        benchmark_start(benchmark);
        for (uint64_t i = 0; i < benchmark->operations; i++)
            cell.perform(Put{.value = cell.perform(Get{}) + 1});
        benchmark_stop(benchmark);
    };
}

BENCHMARK("cpp/state-general", general) {
    haft::handle(incrementing(benchmark)).with_new<stateful>(0);
}
BENCHMARK("cpp/state-static", statically) {
    haft::handle(incrementing_named(benchmark)).with_new<stateful>(0);
}
BENCHMARK("cpp/state-unmanaged", unmanaged) {
    stateful handler(0);
    haft::handle(incrementing(benchmark)).with(handler);
}
BENCHMARK("cpp/state-lambdas", lambdas) {
    int64_t state = 0;
    haft::handle(incrementing(benchmark))
        .with(
            [&](Get, haft::resumption<void(int64_t)> k) { return std::move(k).tail_resume(state); },
            [&](Put put, haft::resumption<void()> k) {
                state = put.value;
                return std::move(k).tail_resume();
            });
}
BENCHMARK("cpp/state-plain", in_place) {
    haft::handle(incrementing(benchmark)).with_new<stateful_in_place>(0);
}
BENCHMARK("cpp/state-plain-lambdas", in_place_lambdas) {
    int64_t state = 0;
    haft::handle(incrementing(benchmark))
        .with([&](Get) { return state; }, [&](Put put) { state = put.value; });
}

} // namespace
