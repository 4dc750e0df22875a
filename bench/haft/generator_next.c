/* SPDX-License-Identifier: MIT */
/* generator_next, Haft: the program generator, whose elements come from a function that resumes and
 * returns, as libraries of generators have it. */
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

static NOINLINE const int64_t *next(haft_fiber_t *generator) {
    haft_request_t request = haft_resume(generator, HAFT_NO_REPLY, HAFT_HANDLES(emit));
    return haft_finished(request) ? NULL : &((HAFT_PAYLOAD(emit) *)request.payload)->value;
}

int main(int argc, char **argv) {
    const tree_t *tree = tree_new(program_argument(argc, argv, 5));
    haft_fiber_t *generator = haft_fiber_new(values_of, (void *)(uintptr_t)tree);
    int64_t sum = 0;
    for (const int64_t *value; (value = next(generator)) != NULL;)
        sum += *value;
    haft_fiber_drop(generator);
    tree_free(tree);
    return program_result(sum);
}
