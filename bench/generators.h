/* SPDX-License-Identifier: MIT */
/* Generators (figures 8 and 9): consecutive numbers, and the leaves of complete binary trees of
 * depths 1 to 20, summed up by their consumer. One operation is one element; what creating a
 * generator costs is shared by the elements of its tree. */
#ifndef BENCH_GENERATORS_H
#define BENCH_GENERATORS_H

#include "harness.h"
#include "program.h"

#define TREE_DEPTHS 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20

static inline bool is_leaf(const tree_t *tree) {
    return !tree->left;
}

#ifdef __cplusplus
/* Sums elements of what `start(tree)` returns, whose next() points to the next element, and starts
 * afresh after the last. */
template <typename Start>
inline __attribute__((always_inline)) void measure_trees(benchmark_t *benchmark, Start start) {
    const tree_t *tree = tree_new(benchmark->parameter);
    int64_t sum = 0;
    {
        auto leaves = start(tree);
        benchmark_start(benchmark);
        for (uint64_t i = 0; i < benchmark->operations; i++) {
            const int64_t *leaf = leaves.next();
            if (!leaf) {
                leaves = start(tree);
                leaf = leaves.next();
            }
            sum += *leaf;
        }
        benchmark_stop(benchmark);
    }
    OPAQUE(sum);
    tree_free(tree);
}
#endif

#endif
