// SPDX-License-Identifier: MIT
/* Generators by haft::generator. */
#include "../generators.h"

#include <haft/generator.hpp>

namespace {

BENCHMARK("cpp/counting", counting) {
    haft::generator<const int64_t> numbers([](haft::yielder<const int64_t> yield) {
        for (int64_t i = 0;; i++)
            yield(i);
    });
    int64_t sum = 0;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        sum += *numbers.next();
    benchmark_stop(benchmark);
    OPAQUE(sum);
}

NOINLINE void traverse(const tree_t *tree, haft::yielder<const int64_t> yield) {
    if (is_leaf(tree))
        return yield(tree->value);
    traverse(tree->left, yield);
    traverse(tree->right, yield);
}

BENCHMARK_SERIES("cpp/trees", trees, TREE_DEPTHS) {
    measure_trees(benchmark, [](const tree_t *tree) {
        return haft::generator<const int64_t>(
            [tree](haft::yielder<const int64_t> yield) { traverse(tree, yield); });
    });
}

} // namespace
