// SPDX-License-Identifier: MIT
// The floor of the generators: loops and recursion without a generator.
#include "../generators.h"

namespace {

BENCHMARK("plain/counting", counting) {
    int64_t sum = 0;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        sum += static_cast<int64_t>(i);
        OPAQUE(sum);
    }
    benchmark_stop(benchmark);
}

struct total {
    int64_t sum;
    uint64_t left; // elements that are still wanted
};

NOINLINE void traverse(total &so_far, const tree_t *tree) {
    if (so_far.left == 0)
        return;
    if (is_leaf(tree)) {
        so_far.sum += tree->value;
        so_far.left--;
        return;
    }
    traverse(so_far, tree->left);
    traverse(so_far, tree->right);
}

BENCHMARK_SERIES("plain/trees", trees, TREE_DEPTHS) {
    const tree_t *tree = tree_new(benchmark->parameter);
    total so_far = {0, benchmark->operations};
    benchmark_start(benchmark);
    while (so_far.left != 0)
        traverse(so_far, tree);
    benchmark_stop(benchmark);
    OPAQUE(so_far.sum);
    tree_free(tree);
}

} // namespace
