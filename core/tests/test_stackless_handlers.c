/* Handlers with only tail-resumptive clauses: no fiber, no switch, the body runs on the caller's
 * stack. */
#include <haft.h>

#include "check.h"

HAFT_EFFECT(ask, int, { int question; });
HAFT_EFFECT(note, void, { int value; });
HAFT_EFFECT(leave, void, { int code; });

static int add_state(void *state, HAFT_PAYLOAD(ask) * payload) {
    return payload->question + *(int *)state;
}
HAFT_HANDLER(adding, NULL, HAFT_TAIL(ask, add_state));

static void *see_stack(void *caller) {
    char here;
    CHECK(haft_fiber_current() == NULL);
    CHECK((uintptr_t)caller - (uintptr_t)&here < 64 * 1024);
    return (void *)(intptr_t)HAFT_PERFORM(ask, 1);
}

static void the_body_runs_on_the_stack_of_the_caller(void) {
    char here;
    int state = 41;
    size_t before = haft_pool_report().stacks;
    CHECK_EQUAL((intptr_t)haft_handle(&adding, &state, see_stack, &here), 42);
    CHECK_EQUAL(haft_pool_report().stacks, before);
}

static int sum_with_outer(void *state, HAFT_PAYLOAD(ask) * payload) {
    int outer = *(int *)state > 1 ? HAFT_PERFORM(ask, payload->question) : 0;
    return outer + *(int *)state;
}
HAFT_HANDLER(summing, NULL, HAFT_TAIL(ask, sum_with_outer));

static int nested;
static void *nest(void *depth) {
    int state = (int)(intptr_t)depth;
    if (state > nested)
        return (void *)(intptr_t)HAFT_PERFORM(ask, 0);
    return haft_handle(&summing, &state, nest, (void *)(intptr_t)(state + 1));
}

/* Handlers of one effect, each of whose clauses performs it again: to the handler that is one
   further out, all the way down. */
static void three_thousand_nested_handlers_of_one_effect_each_perform_it_again(void) {
    nested = check_bare() ? 3000 : 100; /* sanitizers make frames of kilobytes */
    haft_fiber_options_t options = {.stack_size = 64
                                                  << 20}; /* so do compilers that do not optimise */
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new_with(&options, nest, (void *)1);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES());
    CHECK_EQUAL((intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result,
                nested * (nested + 1) / 2);
}

static void note_value(void *state, HAFT_PAYLOAD(note) * payload) {
    *(int *)state += payload->value;
}
HAFT_HANDLER(noting, NULL, HAFT_TAIL(note, note_value));

static int note_and_answer(void *state, HAFT_PAYLOAD(ask) * payload) {
    (void)state;
    HAFT_PERFORM(note, payload->question);
    return payload->question;
}
HAFT_HANDLER(answering, NULL, HAFT_TAIL(ask, note_and_answer));

static void *ask_and_note(void *unused) {
    for (int i = 0; i < 10; i++) {
        CHECK_EQUAL(HAFT_PERFORM(ask, i), i);
        HAFT_PERFORM(note, 100);
    }
    return unused;
}
static void *under_answering(void *unused) {
    return haft_handle(&answering, NULL, ask_and_note, unused);
}

static void after_a_clause_the_performer_is_under_its_handlers_again(void) {
    int noted = 0;
    haft_handle(&noting, &noted, under_answering, NULL);
    CHECK_EQUAL(noted, 45 + 1000);
}

/* A stackless handler between a fiber and its resumer: captured with the fiber, and in force again
   when the fiber goes on. */
static void *suspend_inside(void *unused) {
    int sum = HAFT_PERFORM(ask, 1);
    HAFT_PERFORM(note, 5);
    sum += HAFT_PERFORM(ask, 2);
    (void)unused;
    return (void *)(intptr_t)sum;
}
static void *fiber_with_stackless(void *state) {
    return haft_handle(&adding, state, suspend_inside, NULL);
}

static void a_stackless_handler_is_captured_with_its_fiber(void) {
    int state = 10;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(fiber_with_stackless, &state);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(note, ask));
    CHECK(request.effect == HAFT_ID(note));
    state = 20;
    request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(note));
    CHECK(haft_finished(request));
    CHECK_EQUAL((intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result, 11 + 22);
}

/* A clause in place may suspend: the performer's fiber waits with the clause on it. */
static int suspend_in_clause(void *state, HAFT_PAYLOAD(ask) * payload) {
    HAFT_PERFORM(note, payload->question);
    return *(int *)state;
}
HAFT_HANDLER(suspending, NULL, HAFT_TAIL(ask, suspend_in_clause));
static void *ask_twice(void *unused) {
    (void)unused;
    return (void *)(intptr_t)(HAFT_PERFORM(ask, 1) + HAFT_PERFORM(ask, 2));
}
static void *fiber_with_suspending(void *state) {
    return haft_handle(&suspending, state, ask_twice, NULL);
}

static void a_clause_in_place_may_suspend_the_fiber_it_runs_on(void) {
    int state = 3;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(fiber_with_suspending, &state);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(note));
    CHECK_EQUAL(((HAFT_PAYLOAD(note) *)request.payload)->value, 1);
    state = 4;
    request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(note));
    CHECK_EQUAL(((HAFT_PAYLOAD(note) *)request.payload)->value, 2);
    request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(note));
    CHECK_EQUAL((intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result, 8);
}

/* A tail clause of a handler that has a fiber (it has another clause as well) runs in place on an
   inner fiber, and what it performs passes by everything inside its handler. */
static void *leave_with_code(void *state, HAFT_PAYLOAD(leave) * payload) {
    (void)state;
    return (void *)(intptr_t)payload->code;
}
static int ask_or_leave(void *state, HAFT_PAYLOAD(ask) * payload) {
    if (payload->question == 3)
        HAFT_THROW(leave, 7);
    return *(int *)state;
}
HAFT_HANDLER(outer_leaving, NULL, HAFT_NEVER(leave, leave_with_code));
HAFT_HANDLER(inner_leaving, NULL, HAFT_TAIL(ask, ask_or_leave), HAFT_NEVER(leave, leave_with_code));

static int cleanups;
static void count_cleanup(int *unused) {
    cleanups += *unused;
}
static void *ask_upwards(void *unused) {
    __attribute__((cleanup(count_cleanup), unused)) int one = 1;
    for (int i = 0; i < 10; i++)
        HAFT_PERFORM(ask, i);
    return unused;
}
static void *ask_on_a_fiber(void *unused) {
    __attribute__((cleanup(count_cleanup), unused)) int ten = 10;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(ask_upwards, unused);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES());
    return NULL;
}
static void *under_inner(void *state) {
    __attribute__((cleanup(count_cleanup), unused)) int hundred = 100;
    haft_handle(&inner_leaving, state, ask_on_a_fiber, NULL);
    CHECK(!"the clause's throw goes to the outer handler");
    return NULL;
}

static void a_throw_from_a_clause_in_place_unwinds_performer_and_handler(void) {
    int state = 1;
    size_t before = haft_pool_report().stacks;
    CHECK_EQUAL((intptr_t)haft_handle(&outer_leaving, NULL, under_inner, &state), 7);
    CHECK_EQUAL(cleanups, 111);
    CHECK_EQUAL(haft_pool_report().stacks, before);
}

/* A stack with nothing to clean up is left at once, handlers in place and all: what is performed
   afterwards goes to the handlers around it, not to those that were on it. */
static void *throw_under_adding(void *state) {
    (void)state;
    HAFT_THROW(leave, 7);
}
static void *leave_under_adding(void *state) {
    return haft_handle(&adding, state, throw_under_adding, NULL);
}
static void *after_leaving(void *state) {
    intptr_t first = HAFT_PERFORM(ask, 1);
    for (int i = 0; i < 100; i++) {
        int inner = 1000;
        haft_handle(&outer_leaving, NULL, leave_under_adding, &inner);
        haft_fiber_t *suspended = haft_fiber_new(fiber_with_stackless, &inner);
        haft_request_t request = haft_resume(suspended, HAFT_NO_REPLY, HAFT_HANDLES(note));
        CHECK(request.effect == HAFT_ID(note));
        haft_fiber_drop(suspended);
        CHECK_EQUAL(HAFT_PERFORM(ask, 1), first);
    }
    (void)state;
    return NULL;
}

static void stacks_left_at_once_leave_no_handler_behind(void) {
    int state = 5;
    haft_handle(&adding, &state, after_leaving, NULL);
}

/* Scopes at one stack address, one after the other, with different handlers: what was cached for
   one does not serve the next. */
static int minus(void *state, HAFT_PAYLOAD(ask) * payload) {
    return payload->question - *(int *)state;
}
HAFT_HANDLER(subtracting, NULL, HAFT_TAIL(ask, minus));
static void *ask_once(void *unused) {
    (void)unused;
    return (void *)(intptr_t)HAFT_PERFORM(ask, 10);
}

static void scopes_at_one_address_do_not_share_what_they_cached(void) {
    for (int i = 0; i < 100; i++) {
        int state = i;
        const haft_handler_t *handler = i % 3 == 0 ? &subtracting : &adding;
        CHECK_EQUAL((intptr_t)haft_handle(handler, &state, ask_once, NULL),
                    i % 3 == 0 ? 10 - i : 10 + i);
    }
}

int main(void) {
    RUN(the_body_runs_on_the_stack_of_the_caller);
    RUN(three_thousand_nested_handlers_of_one_effect_each_perform_it_again);
    RUN(after_a_clause_the_performer_is_under_its_handlers_again);
    RUN(a_stackless_handler_is_captured_with_its_fiber);
    RUN(a_clause_in_place_may_suspend_the_fiber_it_runs_on);
    RUN(a_throw_from_a_clause_in_place_unwinds_performer_and_handler);
    RUN(stacks_left_at_once_leave_no_handler_behind);
    RUN(scopes_at_one_address_do_not_share_what_they_cached);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
