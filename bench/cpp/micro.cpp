// SPDX-License-Identifier: MIT
/* The microbenchmarks of haft.hpp: what the C++ face adds to the calls of C (haft/round-trip,
 * haft/create-run-free...), and a lambda as a clause beside a virtual call. One operation is one
 * perform, or one life of a handled computation. */
#include "../harness.h"

#include <haft.hpp>
#include <haft/generator.hpp>

namespace {

struct Ask : haft::effect<int64_t> {
    int64_t value;
};
struct Other : haft::effect<int64_t> {
    int64_t value;
};

/* ---- Round trips: the body measures, so that installing the handler is not counted ---------- */

template <typename Perform>
HAFT_DETAIL_INLINE void measure(benchmark_t *benchmark, Perform perform) {
    int64_t value = perform(0);
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        value = perform(value);
    benchmark_stop(benchmark);
    OPAQUE(value);
}

auto asking(benchmark_t *benchmark) {
    return [=] {
        measure(benchmark,
                [](int64_t value) HAFT_DETAIL_INLINE_LAMBDA { return haft::perform<Ask>(value); });
    };
}
/* To the handler of that instance. */
auto asking_by_name(benchmark_t *benchmark) {
    return [=](haft::instance<Ask> named) {
        measure(benchmark, [=](int64_t value) HAFT_DETAIL_INLINE_LAMBDA {
            return named.perform(Ask{.value = value});
        });
    };
}

using asked = haft::resumption<void(int64_t)>;

auto answer_generally() {
    return [](Ask ask, asked k) { return std::move(k).tail_resume(ask.value + 1); };
}
auto answer_in_place() {
    return [](Ask ask) { return ask.value + 1; };
}

struct answering : haft::handler<Ask> {
    haft::tail<void> operator()(Ask ask, asked k) {
        return std::move(k).tail_resume(ask.value + step);
    }
    int64_t step = 1;
};

BENCHMARK("cpp/general-lambda", general_lambda) {
    haft::handle(asking(benchmark)).with(answer_generally());
}
BENCHMARK("cpp/general-lambda-by-name", general_lambda_by_name) {
    haft::handle(asking_by_name(benchmark)).with(answer_generally());
}
BENCHMARK("cpp/general-object", general_object) {
    haft::handle(asking(benchmark)).with(answering{});
}
BENCHMARK("cpp/general-reference", general_reference) {
    answering handler;
    haft::handle(asking(benchmark)).with(handler);
}
BENCHMARK("cpp/tail-resumptive", tail_resumptive) {
    haft::handle(asking(benchmark)).with(answer_in_place());
}
BENCHMARK("cpp/tail-resumptive-by-name", tail_resumptive_by_name) {
    haft::handle(asking_by_name(benchmark)).with(answer_in_place());
}
/* The same on a fiber that handles something else, so that the handler is not the innermost. */
BENCHMARK("cpp/tail-resumptive-across-fiber", tail_resumptive_across_fiber) {
    haft::handle([=] {
        haft::handle(asking(benchmark)).with([](Other, asked) {});
    }).with(answer_in_place());
}
BENCHMARK("cpp/tail-resumptive-across-fiber-by-name", tail_resumptive_across_fiber_by_name) {
    haft::handle([=](haft::instance<Ask> named) {
        haft::handle([=] { asking_by_name(benchmark)(named); }).with([](Other, asked) {});
    }).with(answer_in_place());
}

/* ---- Generators ----------------------------------------------------------------------------- */
BENCHMARK("cpp/generator-element", generator_element) {
    haft::generator<int64_t> numbers([](haft::yielder<int64_t> yield) {
        for (int64_t i = 0;; i++) {
            int64_t number = i;
            yield(number);
        }
    });
    int64_t sum = *numbers.next();
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        sum += *numbers.next();
    benchmark_stop(benchmark);
    OPAQUE(sum);
}

/* ---- Beside it: a virtual call -------------------------------------------------------------- */

struct answerer {
    virtual int64_t answer(Ask ask) = 0;
    virtual ~answerer() = default;
};
struct adding final : answerer {
    NOINLINE int64_t answer(Ask ask) override { return ask.value + 1; }
};
/* A second descendant: the compiler calls the functions of an only one in its file directly. */
struct subtracting final : answerer {
    NOINLINE int64_t answer(Ask ask) override { return ask.value - 1; }
};

BENCHMARK("plain/virtual-call", virtual_call) {
    adding object;
    subtracting other;
    answerer *known = benchmark->operations > 0 ? static_cast<answerer *>(&object) : &other;
    OPAQUE(known);
    int64_t value = 0;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        value = known->answer(Ask{.value = value});
        OPAQUE(value);
    }
    benchmark_stop(benchmark);
}

/* ---- Lives of computations and handlers ----------------------------------------------------- */

BENCHMARK("cpp/handle-and-return-general", handle_and_return_general) {
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        haft::handle([] { BARRIER(); }).with(answer_generally());
    benchmark_stop(benchmark);
}
BENCHMARK("cpp/handle-and-return-tail", handle_and_return_tail) {
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        haft::handle([] { BARRIER(); }).with(answer_in_place());
    benchmark_stop(benchmark);
}
BENCHMARK("cpp/create-perform-resume-free", create_perform_resume_free) {
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        haft::handle([] { haft::perform<Ask>(0); }).with(answer_generally());
    benchmark_stop(benchmark);
}
BENCHMARK("cpp/create-perform-drop", create_perform_drop) {
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        haft::handle([] { haft::perform<Ask>(0); }).with(haft::never([](Ask) {}));
    benchmark_stop(benchmark);
}

} // namespace
