/* SPDX-License-Identifier: MIT */
/* generator_next, Haft, through seff.h. */
#include "../program.h"

#include <seff.h>

DEFINE_EFFECT(emit, 0, void, { int64_t value; });

static NOINLINE void traverse(const tree_t *tree) {
    if (!tree)
        return;
    traverse(tree->left);
    PERFORM(emit, tree->value);
    traverse(tree->right);
}

static void *values_of(void *tree) {
    traverse(tree);
    return NULL;
}

static NOINLINE const int64_t *next(seff_coroutine_t *generator) {
    seff_request_t request = seff_resume(generator, NULL, HANDLES(emit));
    return seff_finished(request) ? NULL : &((EFF_PAYLOAD_T(emit) *)request.payload)->value;
}

int main(int argc, char **argv) {
    const tree_t *tree = tree_new(program_argument(argc, argv, 5));
    seff_coroutine_t *generator = seff_coroutine_new(values_of, (void *)(uintptr_t)tree);
    int64_t sum = 0;
    for (const int64_t *value; (value = next(generator)) != NULL;)
        sum += *value;
    seff_coroutine_delete(generator);
    tree_free(tree);
    return program_result(sum);
}
