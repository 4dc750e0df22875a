/* SPDX-License-Identifier: MIT */
/* iterator, plain C: each value is emitted by a call through a pointer. */
#include "../program.h"

static int64_t sum;

static void add(int64_t value) {
    sum += value;
}

static void (*volatile emit)(int64_t) = add;

static NOINLINE void range(int64_t last) {
    for (int64_t value = 0; value <= last; value++)
        emit(value);
}

int main(int argc, char **argv) {
    range(program_argument(argc, argv, 5));
    return program_result(sum);
}
