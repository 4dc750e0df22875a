/* SPDX-License-Identifier: MIT */
/* Skynet: a tree of tasks, each the parent of ten, with a million leaves whose numbers are summed up.
 *
 *     skynet [--quick] [THREADS]
 */
#include <haft/io.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t first, size;
} range_t;

static void *sum(void *argument) {
    const range_t *range = argument;
    if (range->size == 1)
        return (void *)(intptr_t)range->first;
    range_t parts[10];
    haft_io_task_t *tasks[10];
    for (int i = 0; i < 10; i++) {
        parts[i] = (range_t){range->first + i * (range->size / 10), range->size / 10};
        tasks[i] = haft_io_async(sum, &parts[i]);
    }
    int64_t total = 0;
    for (int i = 0; i < 10; i++) {
        void *part;
        if (haft_io_join(tasks[i], &part) != 0)
            abort();
        total += (intptr_t)part;
    }
    return (void *)(intptr_t)total;
}

static void *skynet(void *argument) {
    range_t *range = argument;
    int64_t before = haft_io_now();
    int64_t total = (intptr_t)sum(range);
    printf("%lld in %lld ms\n", (long long)total,
           (long long)((haft_io_now() - before) / HAFT_IO_MILLISECOND));
    return total == range->size * (range->size - 1) / 2 ? NULL : (abort(), NULL);
}

int main(int count, char **arguments) {
    bool quick = count > 1 && strcmp(arguments[1], "--quick") == 0;
    int threads = count > 1 + quick ? atoi(arguments[1 + quick]) : 1;
    return haft_io_run(skynet, &(range_t){0, quick ? 1000 : 1000000},
                       &(haft_io_options_t){.threads = threads});
}
