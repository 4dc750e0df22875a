/* SPDX-License-Identifier: MIT */
/* The cost of suspended computations in memory: the process is looked at before and after they are
 * made, and each difference is divided by their number. Page tables are counted apart from
 * resident memory, because the kernel does.
 *
 * Protocol: the argument is the number of computations, the output a line "name value" each for
 * count, resident and page_tables (bytes a computation), mappings (in the whole process), and
 * create and resume_and_free (nanoseconds a computation).
 */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct memory_use {
    int64_t resident, page_tables; /* bytes */
    int64_t mappings;
    int64_t time; /* nanoseconds, from some point in the past */
} memory_use_t;

static inline int64_t memory_status_field(const char *name) {
    FILE *file = fopen("/proc/self/status", "r");
    if (!file)
        return 0;
    char line[256];
    int64_t kilobytes = 0;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            kilobytes = strtoll(line + strlen(name), NULL, 10);
    fclose(file);
    return kilobytes * 1024;
}

static inline int64_t memory_mappings(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    if (!file)
        return 0;
    int64_t lines = 0;
    for (int character; (character = getc(file)) != EOF;)
        lines += character == '\n';
    fclose(file);
    return lines;
}

static inline memory_use_t memory_measure(void) {
    memory_use_t use;
    struct timespec time;
    use.resident = memory_status_field("VmRSS:");
    use.page_tables = memory_status_field("VmPTE:");
    use.mappings = memory_mappings();
    clock_gettime(CLOCK_MONOTONIC, &time);
    use.time = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
    return use;
}

/* `before` and `after` making `count` computations; `freed` after all were resumed and freed. */
static inline void memory_print(int64_t count, memory_use_t before, memory_use_t after,
                                memory_use_t freed) {
    printf("count %" PRId64 "\n", count);
    printf("resident %" PRId64 "\n", (after.resident - before.resident) / count);
    printf("page_tables %" PRId64 "\n", (after.page_tables - before.page_tables) / count);
    printf("mappings %" PRId64 "\n", after.mappings);
    printf("create %" PRId64 "\n", (after.time - before.time) / count);
    printf("resume_and_free %" PRId64 "\n", (freed.time - after.time) / count);
}

/* An array whose own memory is resident before anything is measured. */
static inline void *memory_array(int64_t count, size_t size) {
    void *array = malloc((size_t)count * size);
    if (!array) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    memset(array, 0, (size_t)count * size);
    __asm__ volatile("" : : "r"(array) : "memory");
    return array;
}

#endif
