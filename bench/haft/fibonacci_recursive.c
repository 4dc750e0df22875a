/* SPDX-License-Identifier: MIT */
/* fibonacci_recursive, Haft: plain code that happens to run on a fiber. */
#include "../program.h"

#include <haft.h>

static NOINLINE int64_t fibonacci(int64_t n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static void *compute(void *argument) {
    int64_t *number = argument;
    *number = fibonacci(*number);
    return NULL;
}

int main(int argc, char **argv) {
    int64_t number = program_argument(argc, argv, 5);
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(compute, &number);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES());
    return program_result(number);
}
