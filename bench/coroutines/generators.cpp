// SPDX-License-Identifier: MIT
// Generators by C++20 coroutines: a plain one for the numbers, whose frame the compiler may elide,
// and one in the manner of std::generator for the trees.
#include "../generators.h"
#include "generator.hpp"
#include "recursive_generator.hpp"

namespace {

bench::generator<int64_t> count() {
    for (int64_t i = 0;; i++)
        co_yield i;
}

BENCHMARK("coroutines/counting", counting) {
    bench::generator<int64_t> numbers = count();
    int64_t sum = 0;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        numbers.next();
        sum += numbers.value();
    }
    benchmark_stop(benchmark);
    OPAQUE(sum);
}

bench::recursive_generator<int64_t> traverse(const tree_t *tree) {
    if (is_leaf(tree)) {
        co_yield tree->value;
        co_return;
    }
    co_yield bench::elements_of(traverse(tree->left));
    co_yield bench::elements_of(traverse(tree->right));
}

BENCHMARK_SERIES("coroutines/trees", trees, TREE_DEPTHS) {
    measure_trees(benchmark, traverse);
}

} // namespace
