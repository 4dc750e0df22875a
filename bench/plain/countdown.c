/* SPDX-License-Identifier: MIT */
/* countdown, plain C: the state's two operations are calls through pointers. */
#include "../program.h"

static int64_t state;

static int64_t state_get(void) {
    return state;
}
static void state_put(int64_t value) {
    state = value;
}

static int64_t (*volatile get)(void) = state_get;
static void (*volatile put)(int64_t) = state_put;

static NOINLINE int64_t countdown(void) {
    for (;;) {
        int64_t value = get();
        if (value == 0)
            return value;
        put(value - 1);
    }
}

int main(int argc, char **argv) {
    state = program_argument(argc, argv, 5);
    return program_result(countdown());
}
