/* SPDX-License-Identifier: MIT */
/* The microbenchmark harness.
 *
 * An executable is harness.c linked with any number of files that each register loops. The loops
 * of all peers then run in one process, round robin: a round times one slice of each, so that
 * whatever disturbs the machine disturbs neighbours alike, and the ratio of two loops is taken
 * within a round (run.py does that). A figure in nanoseconds means little on a shared machine.
 *
 *     BENCHMARK("plain/indirect-call", indirect_call) {
 *         set up, untimed;
 *         benchmark_start(benchmark);
 *         for (uint64_t i = 0; i < benchmark->operations; i++) one operation;
 *         benchmark_stop(benchmark);
 *         tear down, untimed;
 *     }
 *
 * Invariant: a loop performs exactly benchmark->operations operations between start and stop.
 */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include "optimiser.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct benchmark benchmark_t;

struct benchmark {
    const char *name; /* "peer/what", or "peer/what/size" for a series */
    void (*loop)(benchmark_t *);
    intptr_t parameter;  /* the size of a series: depth, streams, multiplications */
    uint64_t operations; /* in one slice; the harness chooses it */
    /* The harness's own. */
    uint64_t started, elapsed; /* nanoseconds */
    double *samples;           /* nanoseconds an operation, one a round */
    benchmark_t *next;
};

/* The harness keeps the benchmark; it must live until exit. */
void benchmark_register(benchmark_t *);

/* One benchmark for every size, named "name/size". */
void benchmark_register_series(const char *name, void (*loop)(benchmark_t *), const int *sizes,
                               int count);

void benchmark_start(benchmark_t *);
void benchmark_stop(benchmark_t *);

/* True for a smoke run: set up small data, the figures are thrown away. */
bool benchmark_is_quick(void);

#ifdef __cplusplus
}
#endif

#define BENCHMARK(full_name, function)                                                             \
    static void function(benchmark_t *benchmark);                                                  \
    __attribute__((constructor)) static void function##_register(void) {                           \
        static benchmark_t itself;                                                                 \
        itself.name = full_name;                                                                   \
        itself.loop = function;                                                                    \
        benchmark_register(&itself);                                                               \
    }                                                                                              \
    static void function(benchmark_t *benchmark)

#define BENCHMARK_SERIES(base_name, function, ...)                                                 \
    static void function(benchmark_t *benchmark);                                                  \
    __attribute__((constructor)) static void function##_register(void) {                           \
        static const int sizes[] = {__VA_ARGS__};                                                  \
        benchmark_register_series(base_name, function, sizes, sizeof sizes / sizeof *sizes);       \
    }                                                                                              \
    static void function(benchmark_t *benchmark)

#endif
