/* SPDX-License-Identifier: MIT */
/* generator, plain C: the traversal is turned inside out by hand, with its stack made explicit. */
#include "../program.h"

#include <stdbool.h>

enum { MAXIMUM_HEIGHT = 64 };

typedef struct traversal {
    const tree_t *path[MAXIMUM_HEIGHT]; /* nodes whose left subtree is being emitted */
    int depth;
} traversal_t;

static void descend_left(traversal_t *traversal, const tree_t *tree) {
    for (; tree; tree = tree->left)
        traversal->path[traversal->depth++] = tree;
}

static NOINLINE bool traversal_next(traversal_t *traversal, int64_t *value) {
    if (traversal->depth == 0)
        return false;
    const tree_t *tree = traversal->path[--traversal->depth];
    *value = tree->value;
    descend_left(traversal, tree->right);
    return true;
}

int main(int argc, char **argv) {
    int64_t height = program_argument(argc, argv, 5);
    if (height > MAXIMUM_HEIGHT)
        return 1;
    const tree_t *tree = tree_new(height);
    traversal_t traversal = {.depth = 0};
    descend_left(&traversal, tree);
    int64_t sum = 0, value;
    while (traversal_next(&traversal, &value))
        sum += value;
    tree_free(tree);
    return program_result(sum);
}
