/* SPDX-License-Identifier: MIT */
/* The memory that a turn of a fiber touches, and nothing else: two lines of each of as many pages
 * as there are fibers, as far apart as the stacks of fibers are, or side by side. */
#include "../harness.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, MOST = 100000, STACK = 281, COLOURS = 16, COLOUR = 192, LINE = 64 };

static void touch(benchmark_t *benchmark, char *memory, size_t stride) {
    uint64_t count = (uint64_t)benchmark->parameter;
    benchmark->operations += (count - benchmark->operations % count) % count;
    benchmark_start(benchmark);
    for (uint64_t done = 0; done < benchmark->operations; done += count)
        for (uint64_t i = 0; i < count; i++) {
            char *lines = memory + i * stride + i % COLOURS * COLOUR;
            ++*(volatile uint64_t *)lines;
            ++*(volatile uint64_t *)(lines + LINE);
        }
    benchmark_stop(benchmark);
}

static char *reserve(size_t size) {
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    madvise(memory, size, MADV_NOHUGEPAGE);
    return memory;
}

BENCHMARK_SERIES("plain/two-lines-apart", two_lines_apart, 10, 100, 1000, 5000, 10000, 100000) {
    static char *memory;
    if (memory == NULL)
        memory = reserve((size_t)MOST * STACK * PAGE);
    touch(benchmark, memory, (size_t)STACK * PAGE);
}

BENCHMARK_SERIES("plain/two-lines", two_lines, 10, 100, 1000, 5000, 10000, 100000) {
    static char *memory;
    if (memory == NULL)
        memory = reserve((size_t)MOST * PAGE);
    touch(benchmark, memory, PAGE);
}
