// SPDX-License-Identifier: MIT
// resume_nontail, Boost.Context: the driver resumes first and applies the operator afterwards, so
// the driver recurses.
#include "../program.h"
#include "requester.hpp"

struct nothing {};

using performer = bench::requester<int64_t, nothing>;

static NOINLINE int64_t drive(performer &computation, const int64_t &result) {
    if (!computation.resume())
        return result;
    int64_t operand = computation.request;
    int64_t rest = drive(computation, result);
    return program_operator(operand, rest);
}

static int64_t run(int64_t n, int64_t start) {
    int64_t result = 0;
    performer computation([&](performer &self) {
        for (int64_t i = n; i > 0; i--)
            self.perform(i);
        result = start;
    });
    return drive(computation, result);
}

int main(int argc, char **argv) {
    int64_t n = program_argument(argc, argv, 5), result = 0;
    for (int repeat = 0; repeat < 1000; repeat++)
        result = run(n, result);
    return program_result(result);
}
