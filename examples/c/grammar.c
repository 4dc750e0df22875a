/* SPDX-License-Identifier: MIT */
/*
 * A parser that backtracks: where the grammar has alternatives the parser performs `either`, and
 * where it does not fit the input, `fail`. The handler tries the first alternative, and the second
 * in a copy of the parser if the first has failed. An ambiguous grammar has several results; the
 * handler that wants all of them goes on after each.
 */
#include <haft.h>
#include <stdio.h>

HAFT_EFFECT(either, bool, {});
HAFT_EFFECT(fail, void, {});

typedef struct input {
    const char *next;
} input_t;

static void expect(input_t *input, char c) {
    if (*input->next != c)
        HAFT_PERFORM(fail);
    input->next++;
}

/* expression = digit | expression '-' expression, at most `depth` deep.  */
static int expression(input_t *input, int depth) {
    if (depth == 0 || HAFT_PERFORM(either)) {
        if (*input->next < '0' || *input->next > '9')
            HAFT_PERFORM(fail);
        return *input->next++ - '0';
    }
    int left = expression(input, depth - 1);
    expect(input, '-');
    return left - expression(input, depth - 1);
}

static void *parse(void *text) {
    input_t input = {text}; /* in a frame: each copy of the parser has its own */
    int value = expression(&input, 3);
    expect(&input, '\0');
    printf(" %d", value);
    return (void *)(intptr_t)1;
}

static haft_answer_t first(void *state, HAFT_PAYLOAD(either) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    haft_resumption_t other = haft_resumption_copy(k);
    void *found = haft_resumption_resume(k, HAFT_REPLY(either, true));
    if (found == NULL)
        return haft_tail_resume(other, HAFT_REPLY(either, false));
    haft_resumption_drop(other);
    return haft_answer(found);
}
static haft_answer_t every(void *state, HAFT_PAYLOAD(either) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    haft_resumption_t other = haft_resumption_copy(k);
    intptr_t found = (intptr_t)haft_resumption_resume(k, HAFT_REPLY(either, true));
    found += (intptr_t)haft_resumption_resume(other, HAFT_REPLY(either, false));
    return haft_answer((void *)found);
}
static void *nothing(void *state, HAFT_PAYLOAD(fail) * payload) {
    (void)state, (void)payload;
    return NULL;
}
HAFT_HANDLER(first_result, NULL, HAFT_GENERAL(either, first), HAFT_NEVER(fail, nothing));
HAFT_HANDLER(all_results, NULL, HAFT_GENERAL(either, every), HAFT_NEVER(fail, nothing));

int main(void) {
    static char *texts[] = {"7", "9-3", "9-3-2", "9-3-2-1", "9-", "-3"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        printf("%s: first", texts[i]);
        haft_handle(&first_result, NULL, parse, texts[i]);
        printf("; all");
        int found = (int)(intptr_t)haft_handle(&all_results, NULL, parse, texts[i]);
        printf("; %d\n", found);
    }
    return 0;
}
