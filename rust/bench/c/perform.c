/* SPDX-License-Identifier: MIT */
/* A perform that a clause answers in place, in C, with which Rust's is compared. */
#include <haft.h>

HAFT_EFFECT(bench_next, size_t, { size_t value; });

static size_t next(void *state, HAFT_PAYLOAD(bench_next) * payload) {
    (void)state;
    return payload->value + 1;
}
HAFT_HANDLER(nexts, NULL, HAFT_TAIL(bench_next, next));

static void *sum_up(void *argument) {
    const size_t count = (size_t)argument;
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += HAFT_PERFORM(bench_next, i);
    return (void *)sum;
}

size_t bench_perform(size_t count);
size_t bench_perform(size_t count) {
    return (size_t)haft_handle(&nexts, NULL, sum_up, (void *)count);
}
