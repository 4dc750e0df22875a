/* SPDX-License-Identifier: MIT */
/*
 * Clauses: deep handlers, each a table of clauses. The clauses of the first, the state of state.c,
 * run in place; those of a transcript resume the computation and then add to its answer; that of a
 * limit never resumes it.
 */
#include <haft.h>
#include <stdint.h>
#include <stdio.h>

HAFT_EFFECT(get, int, {});
HAFT_EFFECT(put, void, { int new_value; });
HAFT_EFFECT(note, void, { const char *text; });
HAFT_EFFECT(give_up, void, { int answer; });

static void *countdown(void *argument) {
    (void)argument;
    for (int i = HAFT_PERFORM(get); i > 0; i = HAFT_PERFORM(get)) {
        HAFT_PERFORM(note, i % 2 == 0 ? "even" : "odd");
        if (i == 2)
            HAFT_PERFORM(give_up, i);
        HAFT_PERFORM(put, i - 1);
    }
    return (void *)(intptr_t)-1;
}

/* Tail-resumptive: plain calls on the performer's stack. */
static int on_get(void *state, HAFT_PAYLOAD(get) * payload) {
    (void)payload;
    return *(int *)state;
}
static void on_put(void *state, HAFT_PAYLOAD(put) * payload) {
    *(int *)state = payload->new_value;
}
HAFT_HANDLER(stateful, NULL, HAFT_TAIL(get, on_get), HAFT_TAIL(put, on_put));

/* General: the clause holds the resumption `k`, and goes on after the computation has ended. */
static haft_answer_t on_note(void *state, HAFT_PAYLOAD(note) * payload, haft_resumption_t k) {
    int *notes = state;
    const char *text = payload->text;
    int number = ++*notes;
    void *answer = haft_resumption_resume(k, HAFT_NO_REPLY);
    printf("note %d of %d: %s\n", number, *notes, text);
    return haft_answer(answer);
}
static void *on_end(void *state, void *result) {
    (void)state;
    puts("The computation has ended; its notes, last first:");
    return result;
}
HAFT_HANDLER(transcript, on_end, HAFT_GENERAL(note, on_note));

/* Never resuming: the computation is unwound, then the clause's value is the answer. */
static void *on_give_up(void *state, HAFT_PAYLOAD(give_up) * payload) {
    (void)state;
    return (void *)(intptr_t)(payload->answer * 100);
}
HAFT_HANDLER(limit, NULL, HAFT_NEVER(give_up, on_give_up));

/* Handlers nest like calls. */
static void *with_limit(void *unused) {
    return haft_handle(&limit, NULL, countdown, unused);
}
static void *with_transcript(void *unused) {
    int notes = 0;
    return haft_handle(&transcript, &notes, with_limit, unused);
}

int main(void) {
    int state = 5;
    void *answer = haft_handle(&stateful, &state, with_transcript, NULL);
    printf("answer %d, state %d\n", (int)(intptr_t)answer, state);
    return 0;
}
