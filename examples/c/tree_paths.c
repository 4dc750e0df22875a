/* SPDX-License-Identifier: MIT */
/*
 * Exploring a tree: the walk asks at each node which way to go, and returns what it finds at the
 * end of one path. One handler follows all paths and answers with the largest result; another
 * follows one path that it was told, and the walk is the same.
 */
#include <haft.h>
#include <stdio.h>
#include <stdlib.h>

HAFT_EFFECT(go_left, bool, { int value; });

typedef struct node {
    int value;
    struct node *left, *right;
} node_t;

static node_t *grow(int depth, int value) {
    if (depth == 0)
        return NULL;
    node_t *node = malloc(sizeof *node);
    if (node == NULL)
        abort();
    *node = (node_t){value, grow(depth - 1, value * 3 % 97), grow(depth - 1, value * 7 % 97)};
    return node;
}
static void fell(node_t *node) {
    if (node == NULL)
        return;
    fell(node->left);
    fell(node->right);
    free(node);
}

static void *walk(void *tree) {
    intptr_t sum = 0;
    for (const node_t *node = tree; node != NULL;) {
        sum += node->value;
        node = HAFT_PERFORM(go_left, node->value) ? node->left : node->right;
    }
    return (void *)sum;
}

static haft_answer_t both_ways(void *paths, HAFT_PAYLOAD(go_left) * payload, haft_resumption_t k) {
    (void)payload;
    ++*(int *)paths;
    haft_resumption_t other = haft_resumption_copy(k);
    intptr_t left = (intptr_t)haft_resumption_resume(k, HAFT_REPLY(go_left, true));
    intptr_t right = (intptr_t)haft_resumption_resume(other, HAFT_REPLY(go_left, false));
    return haft_answer((void *)(left > right ? left : right));
}
HAFT_HANDLER(best_path, NULL, HAFT_GENERAL(go_left, both_ways));

static bool as_told(void *state, HAFT_PAYLOAD(go_left) * payload) {
    const char **way = state;
    printf(" %d%c", payload->value, **way);
    return *(*way)++ == 'l';
}
HAFT_HANDLER(one_path, NULL, HAFT_TAIL(go_left, as_told));

int main(void) {
    node_t *tree = grow(10, 5);
    int choices = 0;
    intptr_t best = (intptr_t)haft_handle(&best_path, &choices, walk, tree);
    printf("the largest sum is %d, after %d choices\n", (int)best, choices);
    const char *way = "lrlrlrlrlr";
    printf(": %d\n", (int)(intptr_t)haft_handle(&one_path, &way, walk, tree));
    fell(tree);
    return 0;
}
