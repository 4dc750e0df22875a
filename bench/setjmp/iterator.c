/* SPDX-License-Identifier: MIT */
/* iterator, setjmp: the coroutine emits, its driver sums. */
#include "../program.h"
#include "coroutine.h"

static void range(coroutine_t *self, void *last) {
    for (int64_t value = 0; value <= *(int64_t *)last; value++)
        coroutine_perform(self, value);
}

int main(int argc, char **argv) {
    static int64_t last, sum;
    static coroutine_t values;
    last = program_argument(argc, argv, 5);
    coroutine_create(&values, range, &last, 64 * 1024);
    while (coroutine_resume(&values))
        sum += values.request;
    coroutine_destroy(&values);
    return program_result(sum);
}
