// SPDX-License-Identifier: MIT
// resume_nontail, C++20 coroutines: the driver resumes first and applies the operator afterwards,
// so the driver recurses.
#include "../program.h"
#include "requester.hpp"

struct nothing {};

using outlet = bench::channel<int64_t, nothing>;

static bench::task<int64_t> loop(outlet &out, int64_t n, int64_t start) {
    for (int64_t i = n; i > 0; i--)
        co_await out.perform(i);
    co_return start;
}

static NOINLINE int64_t drive(outlet &out, const bench::task<int64_t> &computation) {
    if (!out.resume(computation))
        return computation.result();
    int64_t operand = out.request;
    int64_t rest = drive(out, computation);
    return program_operator(operand, rest);
}

static int64_t run(int64_t n, int64_t start) {
    outlet out;
    bench::task<int64_t> computation = loop(out, n, start);
    return drive(out, computation);
}

int main(int argc, char **argv) {
    int64_t n = program_argument(argc, argv, 5), result = 0;
    for (int repeat = 0; repeat < 1000; repeat++)
        result = run(n, result);
    return program_result(result);
}
