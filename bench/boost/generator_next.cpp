// SPDX-License-Identifier: MIT
// generator_next, Boost.Context: the elements of generator come from a function that resumes and
// returns.
#include "../program.h"
#include "requester.hpp"

struct nothing {};

using emitter = bench::requester<int64_t, nothing>;

static NOINLINE void traverse(emitter &out, const tree_t *tree) {
    if (!tree)
        return;
    traverse(out, tree->left);
    out.perform(tree->value);
    traverse(out, tree->right);
}

static NOINLINE const int64_t *next(emitter &values) {
    return values.resume() ? &values.request : nullptr;
}

int main(int argc, char **argv) {
    const tree_t *tree = tree_new(program_argument(argc, argv, 5));
    int64_t sum = 0;
    emitter values([tree](emitter &out) { traverse(out, tree); });
    while (const int64_t *value = next(values))
        sum += *value;
    tree_free(tree);
    return program_result(sum);
}
