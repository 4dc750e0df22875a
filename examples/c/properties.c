/* SPDX-License-Identifier: MIT */
/*
 * Testing a property by choice: the test asks for each of its inputs, and the handler runs it with
 * all small ones, in an order in which the first failure is the smallest. The part of the test that
 * comes before a choice runs once for all that come after it.
 */
#include <haft.h>
#include <stdio.h>
#include <string.h>

HAFT_EFFECT(choose, int, {
    const char *what;
    int count;
});

enum { MOST = 4 };

/* Sorts, and is wrong for one input in hundreds. */
static void sort(int *numbers, int count) {
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && numbers[j - 1] > numbers[j]; j--) {
            if (i == 3 && j == 1) /* the mistake */
                break;
            int number = numbers[j];
            numbers[j] = numbers[j - 1];
            numbers[j - 1] = number;
        }
}

static void *sorted_numbers_grow(void *runs) {
    int numbers[MOST], sorted[MOST];
    int count = HAFT_PERFORM(choose, "length", MOST + 1);
    for (int i = 0; i < count; i++)
        numbers[i] = HAFT_PERFORM(choose, "number", MOST);
    memcpy(sorted, numbers, sizeof sorted);
    sort(sorted, count);
    ++*(int *)runs;
    for (int i = 1; i < count; i++)
        if (sorted[i - 1] > sorted[i]) {
            printf("fails for");
            for (int j = 0; j < count; j++)
                printf(" %d", numbers[j]);
            printf("\n");
            return "failed";
        }
    return NULL;
}

/* Goes on with each choice until the test fails. */
static haft_answer_t each(void *state, HAFT_PAYLOAD(choose) * payload, haft_resumption_t k) {
    (void)state;
    void *failed = NULL;
    int count = payload->count;
    for (int i = 0; i < count && failed == NULL; i++)
        failed = haft_resumption_resume(haft_resumption_copy(k), HAFT_REPLY(choose, i));
    haft_resumption_drop(k);
    return haft_answer(failed);
}
HAFT_HANDLER(all_small, NULL, HAFT_GENERAL(choose, each));

int main(void) {
    int runs = 0;
    void *failed = haft_handle(&all_small, NULL, sorted_numbers_grow, &runs);
    printf("%s after %d runs\n", failed != NULL ? "failed" : "passed", runs);
    return 0;
}
