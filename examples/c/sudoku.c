/* SPDX-License-Identifier: MIT */
/*
 * Sudoku by search: the solver asks for a digit at the square with the fewest candidates, and goes
 * on as if it were right. Its board lies in its frame, so each copy of the solver has a board of
 * its own, and nothing is undone.
 */
#include <haft.h>
#include <stdio.h>

HAFT_EFFECT(choose, int, { unsigned candidates; }); /* a bit for each digit */

typedef struct board {
    unsigned char squares[81];
} board_t;

static unsigned candidates(const board_t *board, int square) {
    unsigned taken = 0;
    int row = square / 9, column = square % 9, corner = row / 3 * 27 + column / 3 * 3;
    for (int i = 0; i < 9; i++)
        taken |= 1u << board->squares[row * 9 + i] | 1u << board->squares[i * 9 + column] |
                 1u << board->squares[corner + i / 3 * 9 + i % 3];
    return ~taken & 0x3feu;
}

/* Returns in each copy that has found a solution. */
static void *solve(void *given) {
    board_t board = *(const board_t *)given;
    for (;;) {
        int best = -1, fewest = 10;
        for (int square = 0; square < 81; square++) {
            int count = __builtin_popcount(candidates(&board, square));
            if (board.squares[square] == 0 && count < fewest) {
                best = square;
                fewest = count;
            }
        }
        if (best < 0)
            break;
        board.squares[best] = (unsigned char)HAFT_PERFORM(choose, candidates(&board, best));
    }
    for (int row = 0; row < 9; row++)
        for (int column = 0; column < 9; column++)
            printf("%d%c", board.squares[row * 9 + column], column < 8 ? ' ' : '\n');
    return (void *)(intptr_t)1;
}

/* Without candidates there is nothing to go on with: the solver is dropped. */
static haft_answer_t try_each(void *tried, HAFT_PAYLOAD(choose) * payload, haft_resumption_t k) {
    intptr_t solutions = 0;
    for (unsigned left = payload->candidates; left != 0; left &= left - 1) {
        ++*(int *)tried;
        solutions += (intptr_t)haft_resumption_resume(haft_resumption_copy(k),
                                                      HAFT_REPLY(choose, __builtin_ctz(left)));
    }
    haft_resumption_drop(k);
    return haft_answer((void *)solutions);
}
HAFT_HANDLER(searching, NULL, HAFT_GENERAL(choose, try_each));

int main(void) {
    static const char text[] = "..53.....8......2..7..1.5..4....53...1..7...6"
                               "..32...8..6.5....9..4....3......97..";
    board_t board;
    int tried = 0;
    for (int square = 0; square < 81; square++)
        board.squares[square] = (unsigned char)(text[square] == '.' ? 0 : text[square] - '0');
    int solutions = (int)(intptr_t)haft_handle(&searching, &tried, solve, &board);
    printf("%d solution, %d digits tried\n", solutions, tried);
    return 0;
}
