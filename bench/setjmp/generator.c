/* SPDX-License-Identifier: MIT */
/* generator, setjmp: the traversal runs on its own stack, in plain recursion. */
#include "../program.h"
#include "coroutine.h"

static NOINLINE void traverse(coroutine_t *self, const tree_t *tree) {
    if (!tree)
        return;
    traverse(self, tree->left);
    coroutine_perform(self, tree->value);
    traverse(self, tree->right);
}

static void values_of(coroutine_t *self, void *tree) {
    traverse(self, tree);
}

int main(int argc, char **argv) {
    static int64_t sum;
    static coroutine_t values;
    const tree_t *tree = tree_new(program_argument(argc, argv, 5));
    coroutine_create(&values, values_of, (void *)(uintptr_t)tree, 64 * 1024);
    while (coroutine_resume(&values))
        sum += values.request;
    coroutine_destroy(&values);
    tree_free(tree);
    return program_result(sum);
}
