// SPDX-License-Identifier: MIT
// iterator, Boost.Context: the fiber emits, its driver sums.
#include "../program.h"
#include "requester.hpp"

struct nothing {};

using emitter = bench::requester<int64_t, nothing>;

int main(int argc, char **argv) {
    int64_t last = program_argument(argc, argv, 5), sum = 0;
    emitter range([last](emitter &out) {
        for (int64_t value = 0; value <= last; value++)
            out.perform(value);
    });
    while (range.resume())
        sum += range.request;
    return program_result(sum);
}
