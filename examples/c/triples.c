/* SPDX-License-Identifier: MIT */
/*
 * Triples of numbers with a sum: three choices, and a handler that tries all. A copy of the
 * computation is resumed with each choice.
 */
#include <haft.h>
#include <stdio.h>

HAFT_EFFECT(choose, int, { int most; });
HAFT_EFFECT(fail, void, {});

static void *triple(void *argument) {
    int sum = *(int *)argument;
    int a = HAFT_PERFORM(choose, sum);
    int b = HAFT_PERFORM(choose, a - 1);
    int c = HAFT_PERFORM(choose, b - 1);
    if (a + b + c != sum)
        HAFT_PERFORM(fail);
    printf("%d = %d + %d + %d\n", sum, a, b, c);
    return (void *)(intptr_t)1;
}

static haft_answer_t try_each(void *state, HAFT_PAYLOAD(choose) * payload, haft_resumption_t k) {
    (void)state;
    intptr_t found = 0;
    for (int i = payload->most; i >= 1; i--)
        found += (intptr_t)haft_resumption_resume(haft_resumption_copy(k), HAFT_REPLY(choose, i));
    haft_resumption_drop(k);
    return haft_answer((void *)found);
}
static void *none(void *state, HAFT_PAYLOAD(fail) * payload) {
    (void)state, (void)payload;
    return NULL;
}
HAFT_HANDLER(all, NULL, HAFT_GENERAL(choose, try_each), HAFT_NEVER(fail, none));

int main(void) {
    int sum = 12;
    printf("%d triples\n", (int)(intptr_t)haft_handle(&all, NULL, triple, &sum));
    return 0;
}
