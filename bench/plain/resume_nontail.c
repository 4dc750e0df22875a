/* SPDX-License-Identifier: MIT */
/* resume_nontail, plain C: the work left after each resume is a frame of a recursion. */
#include "../program.h"

static NOINLINE int64_t loop(int64_t i, int64_t start) {
    if (i == 0)
        return start;
    int64_t result = loop(i - 1, start);
    OPAQUE(result);
    return program_operator(i, result);
}

int main(int argc, char **argv) {
    int64_t n = program_argument(argc, argv, 5), result = 0;
    for (int repeat = 0; repeat < 1000; repeat++)
        result = loop(n, result);
    return program_result(result);
}
