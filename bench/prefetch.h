/* SPDX-License-Identifier: MIT */
/* Data of all prefetching binary searches (§4.2.2, figure 10): a sorted array far larger than
 * the caches, and the keys to look for. Every peer answers the same keys in the same order of
 * arrival with `streams` searches in flight; one operation is one search.
 *
 * The array holds the even numbers, so half of the keys are found.
 */
#ifndef BENCH_PREFETCH_H
#define BENCH_PREFETCH_H

#include "harness.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PREFETCH_STREAMS 1, 2, 4, 8, 12, 16, 24, 32, 48, 64

enum { PREFETCH_MAXIMUM_STREAMS = 64 };

typedef struct prefetch_data {
    const int *array;
    size_t length;
} prefetch_data_t;

/* The array, made at the first call. */
prefetch_data_t prefetch_load(void);

/* The key number i. */
int prefetch_key(const prefetch_data_t *data, uint64_t i);

/* Ends the process unless as many keys were found as the same keys' sequential search finds. */
void prefetch_check(const prefetch_data_t *data, uint64_t keys, uint64_t found);

static inline void prefetch_hint(const void *address) {
    __builtin_prefetch(address, 0, 3);
}

#ifdef __cplusplus
}
#endif

#endif
