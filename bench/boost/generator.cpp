// SPDX-License-Identifier: MIT
// generator, Boost.Context: the traversal runs on a fiber, in plain recursion.
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

int main(int argc, char **argv) {
    const tree_t *tree = tree_new(program_argument(argc, argv, 5));
    int64_t sum = 0;
    emitter values([tree](emitter &out) { traverse(out, tree); });
    while (values.resume())
        sum += values.request;
    tree_free(tree);
    return program_result(sum);
}
