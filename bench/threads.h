/* SPDX-License-Identifier: MIT */
/* threads: so many threads, sixteen at a time, each of which runs one computation that yields ten
 * times and returns its number; the sum of these. This measures the cost of a thread's first
 * computation, beside the thread's own. */
#ifndef BENCH_THREADS_H
#define BENCH_THREADS_H

#include "program.h"

#include <pthread.h>

enum { THREADS_AT_ONCE = 16, THREADS_TURNS = 10 };

/* Runs a computation that yields THREADS_TURNS times to its end, and frees it. */
static int64_t threads_run(int64_t number);

static void *threads_main(void *number) {
    int64_t *own = PROGRAM_CAST(int64_t *, number);
    *own = threads_run(*own);
    return NULL;
}

static inline int threads_program(int argc, char **argv) {
    int64_t count = program_argument(argc, argv, 5), sum = 0;
    for (int64_t first = 0; first < count; first += THREADS_AT_ONCE) {
        pthread_t threads[THREADS_AT_ONCE];
        int64_t numbers[THREADS_AT_ONCE], some = count - first;
        if (some > THREADS_AT_ONCE)
            some = THREADS_AT_ONCE;
        for (int64_t i = 0; i < some; i++) {
            numbers[i] = first + i;
            if (pthread_create(&threads[i], NULL, threads_main, &numbers[i]) != 0)
                abort();
        }
        for (int64_t i = 0; i < some; i++) {
            pthread_join(threads[i], NULL);
            sum += numbers[i];
        }
    }
    return program_result(sum);
}

#endif
