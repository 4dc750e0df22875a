/* SPDX-License-Identifier: MIT */
/* The microbenchmark harness: see harness.h for what it promises.
 *
 *     executable [--rounds N] [--slice MILLISECONDS] [--only PREFIX]... [--samples] [--quick]
 *
 * prints a line "name median minimum p90" a loop, in nanoseconds an operation; with --samples a
 * line "name sample sample …" instead, one sample a round, which is what run.py reads.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAXIMUM_PREFIXES = 32 };

static benchmark_t *benchmarks;
static bool quick;

bool benchmark_is_quick(void) {
    return quick;
}

void benchmark_register(benchmark_t *benchmark) {
    benchmark_t **place = &benchmarks;
    while (*place && strcmp((*place)->name, benchmark->name) <= 0)
        place = &(*place)->next;
    benchmark->next = *place;
    *place = benchmark;
}

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

void benchmark_register_series(const char *name, void (*loop)(benchmark_t *), const int *sizes,
                               int count) {
    for (int i = 0; i < count; i++) {
        benchmark_t *benchmark = allocate(1, sizeof *benchmark);
        size_t length = strlen(name) + 16;
        char *full_name = allocate(length, 1);
        snprintf(full_name, length, "%s/%03d", name, sizes[i]);
        benchmark->name = full_name;
        benchmark->loop = loop;
        benchmark->parameter = sizes[i];
        benchmark_register(benchmark);
    }
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void benchmark_start(benchmark_t *benchmark) {
    benchmark->started = now();
}

void benchmark_stop(benchmark_t *benchmark) {
    benchmark->elapsed = now() - benchmark->started;
}

static double run_slice(benchmark_t *benchmark) {
    benchmark->loop(benchmark);
    return (double)benchmark->elapsed / (double)benchmark->operations;
}

/* Doubles the operations until a slice takes its time. Warms caches and pools on the way. */
static void calibrate(benchmark_t *benchmark, double slice_nanoseconds) {
    benchmark->operations = quick ? 10 : 1;
    if (quick)
        return;
    (void)run_slice(benchmark); /* The first operation may make hundreds of stacks. */
    for (;;) {
        double nanoseconds = run_slice(benchmark);
        double total = nanoseconds * (double)benchmark->operations;
        if (total >= slice_nanoseconds * 0.7)
            return;
        double wanted = total > 0 ? slice_nanoseconds / nanoseconds : 0;
        uint64_t doubled = benchmark->operations * 2;
        benchmark->operations = total > slice_nanoseconds * 0.1 ? (uint64_t)wanted + 1 : doubled;
    }
}

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void print(const benchmark_t *benchmark, size_t rounds, bool samples) {
    printf("%s", benchmark->name);
    if (samples) {
        for (size_t i = 0; i < rounds; i++)
            printf(" %.4g", benchmark->samples[i]);
    } else {
        qsort(benchmark->samples, rounds, sizeof(double), compare);
        printf(" %.4g %.4g %.4g", benchmark->samples[rounds / 2], benchmark->samples[0],
               benchmark->samples[rounds * 9 / 10]);
    }
    printf("\n");
}

static bool is_wanted(const char *name, const char **prefixes, int count) {
    for (int i = 0; i < count; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return count == 0;
}

static void drop_unwanted(const char **prefixes, int count) {
    benchmark_t **place = &benchmarks;
    while (*place) {
        if (is_wanted((*place)->name, prefixes, count))
            place = &(*place)->next;
        else
            *place = (*place)->next;
    }
}

int main(int argc, char **argv) {
    const char *prefixes[MAXIMUM_PREFIXES];
    int prefix_count = 0;
    size_t rounds = 51;
    double slice_milliseconds = 1;
    bool samples = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--samples") == 0) {
            samples = true;
        } else if (strcmp(argv[i], "--quick") == 0) {
            quick = true;
            rounds = 2;
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            rounds = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--slice") == 0 && i + 1 < argc) {
            slice_milliseconds = strtod(argv[++i], NULL);
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc &&
                   prefix_count < MAXIMUM_PREFIXES) {
            prefixes[prefix_count++] = argv[++i];
        } else {
            fprintf(stderr, "%s: what is %s?\n", argv[0], argv[i]);
            return 2;
        }
    }
    if (rounds == 0)
        rounds = 1;
    drop_unwanted(prefixes, prefix_count);
    for (benchmark_t *benchmark = benchmarks; benchmark; benchmark = benchmark->next) {
        benchmark->samples = allocate(rounds, sizeof(double));
        calibrate(benchmark, slice_milliseconds * 1e6);
    }
    for (size_t round = 0; round < rounds; round++)
        for (benchmark_t *benchmark = benchmarks; benchmark; benchmark = benchmark->next)
            benchmark->samples[round] = run_slice(benchmark);
    for (benchmark_t *benchmark = benchmarks; benchmark; benchmark = benchmark->next)
        print(benchmark, rounds, samples);
    return 0;
}
