/* SPDX-License-Identifier: MIT */
/* fibonacci_recursive, plain C: what the same code costs where no effect library is linked. */
#include "../program.h"

static NOINLINE int64_t fibonacci(int64_t n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

int main(int argc, char **argv) {
    return program_result(fibonacci(program_argument(argc, argv, 5)));
}
