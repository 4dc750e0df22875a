// SPDX-License-Identifier: MIT
// generator_next, haft::generator: its elements come from a function that resumes and returns.
#include "../program.h"

#include <haft/generator.hpp>

static NOINLINE void traverse(const tree_t *tree, haft::yielder<const int64_t> yield) {
    if (!tree)
        return;
    traverse(tree->left, yield);
    yield(tree->value);
    traverse(tree->right, yield);
}

static NOINLINE const int64_t *next(haft::generator<const int64_t> &values) {
    return values.next();
}

int main(int argc, char **argv) {
    const tree_t *tree = tree_new(program_argument(argc, argv, 5));
    int64_t sum = 0;
    {
        haft::generator<const int64_t> values(
            [tree](haft::yielder<const int64_t> yield) { traverse(tree, yield); });
        while (const int64_t *value = next(values))
            sum += *value;
    }
    tree_free(tree);
    return program_result(sum);
}
