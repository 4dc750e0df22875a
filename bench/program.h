/* SPDX-License-Identifier: MIT */
/* Code of every benchmark program, whatever peer it is written for: its one argument, its one
 * line of output, and the operator, the tree and the list of the public benchmark set. */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include "optimiser.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
#    define PROGRAM_CAST(type, expression) static_cast<type>(expression)
#else
#    define PROGRAM_CAST(type, expression) ((type)(expression))
#endif

/* The program's argument; without one, the small case of the set's descriptions. */
static inline int64_t program_argument(int argc, char **argv, int64_t small_case) {
    return argc > 1 ? strtoll(argv[1], NULL, 10) : small_case;
}

static inline int program_result(int64_t result) {
    printf("%" PRId64 "\n", result);
    return 0;
}

/* The operator of resume_nontail. */
static inline int64_t program_operator(int64_t x, int64_t y) {
    return llabs(x - 503 * y + 37) % 1009;
}

/* The complete binary tree of a height, as a DAG: both children are the same node. */
typedef struct tree tree_t;
struct tree {
    int64_t value;
    const tree_t *left, *right;
};

static inline const tree_t *tree_new(int64_t height) {
    const tree_t *below = NULL;
    for (int64_t value = 1; value <= height; value++) {
        tree_t *node = PROGRAM_CAST(tree_t *, malloc(sizeof *node));
        if (!node)
            abort();
        node->value = value;
        node->left = node->right = below;
        below = node;
    }
    return below;
}

static inline void tree_free(const tree_t *tree) {
    while (tree) {
        const tree_t *below = tree->left;
        free((void *)(uintptr_t)tree);
        tree = below;
    }
}

/* The list 1000, 999, …, 1, 0 of product_early. */
enum { PRODUCT_LENGTH = 1001 };

typedef struct list list_t;
struct list {
    int64_t head;
    const list_t *tail;
};

static inline const list_t *product_list(list_t cells[PRODUCT_LENGTH]) {
    for (int64_t i = 0; i < PRODUCT_LENGTH; i++) {
        cells[i].head = PRODUCT_LENGTH - 1 - i;
        cells[i].tail = i + 1 < PRODUCT_LENGTH ? &cells[i + 1] : NULL;
    }
    return cells;
}

/* product_early, given how one product is computed: 0 for an aborted one. */
static inline int program_product_early(int argc, char **argv, int64_t (*run)(const list_t *)) {
    static list_t cells[PRODUCT_LENGTH];
    const list_t *list = product_list(cells);
    int64_t sum = 0;
    for (int64_t n = program_argument(argc, argv, 5); n > 0; n--)
        sum += run(list);
    return program_result(sum);
}

#endif
