// SPDX-License-Identifier: MIT
// Generators on Boost.Context fibers.
#include "../generators.h"
#include "requester.hpp"

namespace {

struct nothing {};

using emitter = bench::requester<const int64_t *, nothing>;

BENCHMARK("boost/counting", counting) {
    emitter numbers([](emitter &out) {
        for (int64_t i = 0;; i++)
            out.perform(&i);
    });
    int64_t sum = 0;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        numbers.resume();
        sum += *numbers.request;
    }
    benchmark_stop(benchmark);
    OPAQUE(sum);
}

NOINLINE void traverse(emitter &out, const tree_t *tree) {
    if (is_leaf(tree)) {
        out.perform(&tree->value);
        return;
    }
    traverse(out, tree->left);
    traverse(out, tree->right);
}

// A requester's body refers to it, so it stays where it is.
struct leaves {
    std::unique_ptr<emitter> values;
    const int64_t *next() { return values->resume() ? values->request : nullptr; }
};

BENCHMARK_SERIES("boost/trees", trees, TREE_DEPTHS) {
    measure_trees(benchmark, [](const tree_t *tree) {
        return leaves{std::make_unique<emitter>([tree](emitter &out) { traverse(out, tree); })};
    });
}

} // namespace
