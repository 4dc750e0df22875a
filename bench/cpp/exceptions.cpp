// SPDX-License-Identifier: MIT
/* Exceptions as an effect whose clause never resumes, beside those of the language (figures 10 and
 * 11): an operation installs a handler and, in the cases `raised`, raises. `deep` raises below
 * ten frames, each with a local that has a destructor. */
#include "../harness.h"

#include <haft.hpp>

namespace {

struct Fail : haft::effect<> {
    int64_t value;
};

struct failure {
    int64_t value;
};

struct local {
    local() { BARRIER(); }
    ~local() { BARRIER(); }
};

enum { DEEP = 10 };

template <typename Raise>
NOINLINE void descend(int64_t depth, Raise raise) {
    if (depth == 0)
        return raise();
    local here;
    descend(depth - 1, raise);
    BARRIER();
}

template <typename Operation>
HAFT_DETAIL_INLINE void repeat(benchmark_t *benchmark, Operation operation) {
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        operation();
    benchmark_stop(benchmark);
}

NOINLINE void throw_failure() {
    throw failure{1};
}
NOINLINE void perform_fail() {
    haft::perform<Fail>(1);
}
NOINLINE void do_nothing() {
    BARRIER();
}

template <typename Body>
HAFT_DETAIL_INLINE void native(benchmark_t *benchmark, Body body) {
    int64_t sum = 0;
    repeat(benchmark, [&]() HAFT_DETAIL_INLINE_LAMBDA {
        try {
            body();
        } catch (const failure &caught) {
            sum += caught.value;
        }
    });
    OPAQUE(sum);
}

template <typename Body>
HAFT_DETAIL_INLINE void handled(benchmark_t *benchmark, Body body,
                                const haft_fiber_options_t &options = {}) {
    int64_t sum = 0;
    repeat(benchmark, [&]() HAFT_DETAIL_INLINE_LAMBDA {
        haft::handle(body).on(options).with(haft::never([&](Fail fail) { sum += fail.value; }));
    });
    OPAQUE(sum);
}

BENCHMARK("plain/raised", plain_raised) {
    native(benchmark, throw_failure);
}
BENCHMARK("plain/not-raised", plain_not_raised) {
    native(benchmark, do_nothing);
}
BENCHMARK("plain/raised-deep", plain_raised_deep) {
    native(benchmark, [] { descend(DEEP, throw_failure); });
}
BENCHMARK("cpp/raised", raised) {
    handled(benchmark, perform_fail);
}
BENCHMARK("cpp/not-raised", not_raised) {
    handled(benchmark, do_nothing);
}
BENCHMARK("cpp/raised-deep", raised_deep) {
    handled(benchmark, [] { descend(DEEP, perform_fail); });
}
BENCHMARK("cpp/raised-no-cleanups", raised_no_cleanups) {
    handled(benchmark, perform_fail, {.no_cleanups = true});
}

} // namespace
