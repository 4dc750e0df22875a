/* SPDX-License-Identifier: MIT */
/* triples, Haft: a flip goes on with true, and in a copy with false. */
#include "../program.h"

#include <haft.h>

HAFT_EFFECT_IN_SLOT(0, flip, bool, {});
HAFT_EFFECT_IN_SLOT(1, fail, int64_t, {});
static const int64_t PRIME = 1000000007;

static int64_t choice(int64_t n) {
    for (; n >= 1; n--)
        if (HAFT_PERFORM(flip))
            return n;
    return HAFT_PERFORM(fail);
}

static void *triple(void *argument) {
    int64_t sum = (intptr_t)argument;
    int64_t a = choice(sum);
    int64_t b = choice(a - 1);
    int64_t c = choice(b - 1);
    return (void *)(intptr_t)(a + b + c == sum ? (53 * a + 2809 * b + 148877 * c) % PRIME
                                               : HAFT_PERFORM(fail));
}

static haft_answer_t on_flip(void *state, HAFT_PAYLOAD(flip) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    haft_resumption_t again = haft_resumption_copy(k);
    intptr_t first = (intptr_t)haft_resumption_resume(k, HAFT_REPLY(flip, true));
    intptr_t second = (intptr_t)haft_resumption_resume(again, HAFT_REPLY(flip, false));
    return haft_answer((void *)((first + second) % PRIME));
}
static haft_answer_t on_fail(void *state, HAFT_PAYLOAD(fail) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    haft_resumption_drop(k);
    return haft_answer(NULL);
}
HAFT_HANDLER(both, NULL, HAFT_GENERAL(flip, on_flip), HAFT_GENERAL(fail, on_fail));

/* Nothing on the stack has to be unwound. */
static const haft_fiber_options_t plain = {.no_cleanups = true};

int main(int argc, char **argv) {
    int64_t sum = program_argument(argc, argv, 10);
    return program_result(
        (intptr_t)haft_handle_with(&plain, &both, NULL, triple, (void *)(intptr_t)sum));
}
