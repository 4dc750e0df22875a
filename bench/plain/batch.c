/* SPDX-License-Identifier: MIT */
/* The cost of a batch of fibers to its maker: as many lines of memory as the life of a
 * fiber touches, on a page of its own each, a little more than a mebibyte apart, as the stacks
 * of fibers are. */
#include "../harness.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, STRIDE = 281 * PAGE, LINES = 8, LINE = 64 };

BENCHMARK_SERIES("plain/touch-batch", touch_batch, 1, 64, 65, 100, 1000, 10000, 100000) {
    static char *memory;
    enum { MOST = 1000000 };
    if (!memory) {
        memory = mmap(NULL, (size_t)MOST * STRIDE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            abort();
        madvise(memory, (size_t)MOST * STRIDE, MADV_NOHUGEPAGE);
    }
    uint64_t count = (uint64_t)benchmark->parameter;
    benchmark->operations += (count - benchmark->operations % count) % count;
    benchmark_start(benchmark);
    for (uint64_t done = 0; done < benchmark->operations; done += count)
        for (int pass = 0; pass < 3; pass++)
            for (uint64_t i = 0; i < count; i++)
                for (int line = 0; line < LINES; line++)
                    ++*(volatile uint64_t *)(memory + i * STRIDE + i % 8 * 192 +
                                             (size_t)line * LINE);
    benchmark_stop(benchmark);
}

/* A million takes more than 6 GB: with --large only. */
__attribute__((constructor)) static void touch_batch_of_a_million(void) {
    static const int size = 1000000;
    if (getenv("HAFT_BENCH_LARGE") != NULL)
        benchmark_register_series("plain/touch-batch", touch_batch, &size, 1);
}
