/* SPDX-License-Identifier: MIT */
/* generator, Haft: the traversal runs on a fiber, in plain recursion, and its fiber is the
 * generator that the loop keeps. */
#include "../program.h"

#include <haft.h>

HAFT_EFFECT(emit, void, { int64_t value; });

static NOINLINE void traverse(const tree_t *tree) {
    if (!tree)
        return;
    traverse(tree->left);
    HAFT_PERFORM(emit, tree->value);
    traverse(tree->right);
}

static void *values_of(void *tree) {
    traverse(tree);
    return NULL;
}

int main(int argc, char **argv) {
    const tree_t *tree = tree_new(program_argument(argc, argv, 5));
    int64_t sum = 0;
    const haft_handles_t *emissions = HAFT_HANDLES(emit);
    haft_fiber_t *k = haft_fiber_new(values_of, (void *)(uintptr_t)tree);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, emissions);
    while (!haft_finished(request)) {
        sum += ((HAFT_PAYLOAD(emit) *)request.payload)->value;
        request = haft_resume(k, HAFT_NO_REPLY, emissions);
    }
    haft_fiber_drop(k);
    tree_free(tree);
    return program_result(sum);
}
