// SPDX-License-Identifier: MIT
// generator, haft::generator: the traversal is plain recursion, and the loop takes its elements.
#include "../program.h"

#include <haft/generator.hpp>

static NOINLINE void traverse(const tree_t *tree, haft::yielder<const std::int64_t> yield) {
    if (!tree)
        return;
    traverse(tree->left, yield);
    yield(tree->value);
    traverse(tree->right, yield);
}

int main(int argc, char **argv) {
    const tree_t *tree = tree_new(program_argument(argc, argv, 5));
    std::int64_t sum = 0;
    haft::generator<const std::int64_t> values(
        [tree](haft::yielder<const std::int64_t> yield) { traverse(tree, yield); });
    for (const std::int64_t &value : values)
        sum += value;
    tree_free(tree);
    return program_result(sum);
}
