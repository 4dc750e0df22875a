/* SPDX-License-Identifier: MIT */
/* nqueens, Haft: each row is tried in a copy of the computation, the last one in place. */
#include "../program.h"

#include <haft.h>

HAFT_EFFECT_IN_SLOT(0, pick, int64_t, { int64_t size; });
HAFT_EFFECT_IN_SLOT(1, fail, int64_t, {});

typedef struct queen {
    int64_t row;
    const struct queen *before;
} queen_t;

static bool is_safe(int64_t row, const queen_t *placed) {
    for (int64_t distance = 1; placed != NULL; placed = placed->before, distance++)
        if (row == placed->row || row == placed->row + distance || row == placed->row - distance)
            return false;
    return true;
}

static int64_t place(int64_t size, int64_t column, const queen_t *placed) {
    if (column == 0)
        return 1;
    int64_t row = HAFT_PERFORM(pick, size);
    if (!is_safe(row, placed))
        return HAFT_PERFORM(fail);
    queen_t queen = {row, placed};
    return place(size, column - 1, &queen);
}

static void *board(void *size) {
    return (void *)(intptr_t)place((intptr_t)size, (intptr_t)size, NULL);
}

static haft_answer_t on_pick(void *state, HAFT_PAYLOAD(pick) * payload, haft_resumption_t k) {
    (void)state;
    intptr_t solutions = 0;
    int64_t size = payload->size;
    for (int64_t row = 1; row < size; row++)
        solutions +=
            (intptr_t)haft_resumption_resume(haft_resumption_copy(k), HAFT_REPLY(pick, row));
    return haft_answer(
        (void *)(solutions + (intptr_t)haft_resumption_resume(k, HAFT_REPLY(pick, size))));
}
static haft_answer_t on_fail(void *state, HAFT_PAYLOAD(fail) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    haft_resumption_drop(k);
    return haft_answer(NULL);
}
HAFT_HANDLER(all, NULL, HAFT_GENERAL(pick, on_pick), HAFT_GENERAL(fail, on_fail));

/* Nothing on the stack has to be unwound. */
static const haft_fiber_options_t plain = {.no_cleanups = true};

int main(int argc, char **argv) {
    int64_t size = program_argument(argc, argv, 5);
    return program_result(
        (intptr_t)haft_handle_with(&plain, &all, NULL, board, (void *)(intptr_t)size));
}
