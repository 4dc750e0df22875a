/* SPDX-License-Identifier: MIT */
/* Hot split, plain C: the call as it is without segmented stacks. */
#include "../hotsplit.h"

BENCHMARK_SERIES("hotsplit-plain", hotsplit_plain, HOTSPLIT_MULTIPLICATIONS) {
    void (*function)(void) = hotsplit_function(benchmark->parameter);
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        OPAQUE(function);
        function();
    }
    benchmark_stop(benchmark);
}
