/* SPDX-License-Identifier: MIT */
/*
 * Queens on a chessboard: a program that chooses, and a handler that goes on with every choice. The
 * program is written as if it always chose right: `fail` means that it did not. Each choice copies
 * the computation that waits for it.
 */
#include <haft.h>
#include <stdio.h>

HAFT_EFFECT(choose, int, { int count; });
HAFT_EFFECT(fail, void, {});

typedef struct place {
    int column;
    const struct place *before;
} place_t;

static bool attacks(const place_t *placed, int column) {
    for (int distance = 1; placed != NULL; placed = placed->before, distance++)
        if (placed->column == column || placed->column == column + distance ||
            placed->column == column - distance)
            return true;
    return false;
}

static void show(const place_t *placed) {
    if (placed == NULL)
        return;
    show(placed->before);
    printf(" %d", placed->column + 1);
}

/* Returns once for each way in which the rest of the board can be filled. */
static void queens(int size, int row, const place_t *placed) {
    if (row == size) {
        if (size <= 6) {
            show(placed);
            printf("\n");
        }
        return;
    }
    place_t here = {HAFT_PERFORM(choose, size), placed};
    if (attacks(placed, here.column))
        HAFT_PERFORM(fail);
    queens(size, row + 1, &here);
}

static void *board(void *size) {
    queens((int)(intptr_t)size, 0, NULL);
    return (void *)(intptr_t)1;
}

/* ---- How many ways there are ---- */

static haft_answer_t try_each(void *state, HAFT_PAYLOAD(choose) * payload, haft_resumption_t k) {
    (void)state;
    intptr_t found = 0;
    int count = payload->count; /* the payload is gone when the first copy runs */
    for (int i = 1; i < count; i++)
        found +=
            (intptr_t)haft_resumption_resume(haft_resumption_copy(k), HAFT_REPLY(choose, i - 1));
    return haft_answer(
        (void *)(found + (intptr_t)haft_resumption_resume(k, HAFT_REPLY(choose, count - 1))));
}
static void *no_way(void *state, HAFT_PAYLOAD(fail) * payload) {
    (void)state, (void)payload;
    return NULL;
}
HAFT_HANDLER(all_ways, NULL, HAFT_GENERAL(choose, try_each), HAFT_NEVER(fail, no_way));

int main(void) {
    for (intptr_t size = 4; size <= 8; size++) {
        printf("%d queens:\n", (int)size);
        printf("%d ways\n", (int)(intptr_t)haft_handle(&all_ways, NULL, board, (void *)size));
    }
    return 0;
}
