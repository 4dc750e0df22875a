/* SPDX-License-Identifier: MIT */
/* tree_explore, Haft: at each node the path goes on to the left, and in a copy to the right. */
#include "../program.h"

#include <haft.h>

HAFT_EFFECT_IN_SLOT(0, choose, bool, {});

typedef struct exploration {
    const tree_t *tree;
    int64_t state;
} exploration_t;

static int64_t path(exploration_t *exploration, const tree_t *tree) {
    if (tree == NULL)
        return exploration->state;
    const tree_t *below = HAFT_PERFORM(choose) ? tree->left : tree->right;
    exploration->state = program_operator(exploration->state, tree->value);
    return program_operator(tree->value, path(exploration, below));
}

static void *explore(void *argument) {
    exploration_t *exploration = argument;
    return (void *)(intptr_t)path(exploration, exploration->tree);
}

static haft_answer_t on_choose(void *state, HAFT_PAYLOAD(choose) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    haft_resumption_t again = haft_resumption_copy(k);
    intptr_t left = (intptr_t)haft_resumption_resume(k, HAFT_REPLY(choose, true));
    intptr_t right = (intptr_t)haft_resumption_resume(again, HAFT_REPLY(choose, false));
    return haft_answer((void *)(left > right ? left : right));
}
HAFT_HANDLER(both, NULL, HAFT_GENERAL(choose, on_choose));

/* Nothing on the stack has to be unwound. */
static const haft_fiber_options_t plain = {.no_cleanups = true};

int main(int argc, char **argv) {
    exploration_t exploration = {tree_new(program_argument(argc, argv, 5)), 0};
    for (int repeat = 0; repeat < 10; repeat++)
        exploration.state = (intptr_t)haft_handle_with(&plain, &both, NULL, explore, &exploration);
    tree_free(exploration.tree);
    return program_result(exploration.state);
}
