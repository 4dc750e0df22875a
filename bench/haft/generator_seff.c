/* SPDX-License-Identifier: MIT */
/* generator Haft, through seff.h: the traversal runs on a coroutine, in plain recursion. */
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

int main(int argc, char **argv) {
    const tree_t *tree = tree_new(program_argument(argc, argv, 5));
    int64_t sum = 0;
    seff_coroutine_t *k = seff_coroutine_new(values_of, (void *)(uintptr_t)tree);
    for (bool done = false; !done;) {
        seff_request_t request = seff_resume(k, NULL, HANDLES(emit));
        switch (request.effect) {
            CASE_EFFECT(request, emit, {
                sum += payload.value;
                break;
            })
            CASE_RETURN(request, {
                done = true;
                break;
            })
        }
    }
    seff_coroutine_delete(k);
    tree_free(tree);
    return program_result(sum);
}
