// SPDX-License-Identifier: MIT
// iterator, C++20 coroutines: a generator, kept from being inlined into its consumer.
#include "../program.h"
#include "generator.hpp"

static NOINLINE bench::generator<int64_t> range(int64_t last) {
    for (int64_t value = 0; value <= last; value++)
        co_yield value;
}

int main(int argc, char **argv) {
    int64_t sum = 0;
    bench::generator<int64_t> values = range(program_argument(argc, argv, 5));
    while (values.next())
        sum += values.value();
    return program_result(sum);
}
