/* Deep handlers: clauses given once, with handler-local state and a return clause. */
#include <haft.h>

#include "check.h"

HAFT_EFFECT(ask, int, { int question; });
HAFT_EFFECT(tell, void, { int value; });
HAFT_EFFECT(stop, int, { int code; });
HAFT_EFFECT(choose, bool, {});

#define NUMBER(value) ((void *)(intptr_t)(value))
#define VALUE(pointer) ((int)(intptr_t)(pointer))

/* ---- One clause of each kind ---- */

static int answer_in_place(void *state, HAFT_PAYLOAD(ask) * payload) {
    *(int *)state += 1;
    return payload->question * 10;
}
static haft_answer_t answer_general(void *state, HAFT_PAYLOAD(ask) * payload, haft_resumption_t k) {
    *(int *)state += 100;
    return haft_answer(haft_resumption_resume(k, HAFT_REPLY(ask, payload->question * 10)));
}
static haft_answer_t answer_tail(void *state, HAFT_PAYLOAD(ask) * payload, haft_resumption_t k) {
    *(int *)state += 1000;
    return haft_tail_resume(k, HAFT_REPLY(ask, payload->question * 10));
}
static void *stop_with_code(void *state, HAFT_PAYLOAD(stop) * payload) {
    *(int *)state += 10000;
    return NUMBER(-payload->code);
}
static void *plus_one(void *state, void *result) {
    *(int *)state += 100000;
    return NUMBER(VALUE(result) + 1);
}

HAFT_HANDLER(in_place_handler, plus_one, HAFT_TAIL(ask, answer_in_place));
HAFT_HANDLER(general_handler, plus_one, HAFT_GENERAL(ask, answer_general));
HAFT_HANDLER(tail_continue_handler, plus_one, HAFT_GENERAL(ask, answer_tail));
HAFT_HANDLER(mixed_handler, plus_one, HAFT_TAIL(ask, answer_in_place),
             HAFT_NEVER(stop, stop_with_code));
HAFT_HANDLER(no_return_clause, NULL, HAFT_GENERAL(ask, answer_general));

static void *ask_three(void *unused) {
    (void)unused;
    return NUMBER(HAFT_PERFORM(ask, 1) + HAFT_PERFORM(ask, 2) + HAFT_PERFORM(ask, 3));
}

static void a_tail_clause_answers_with_what_it_returns(void) {
    int state = 0;
    CHECK_EQUAL(VALUE(haft_handle(&in_place_handler, &state, ask_three, NULL)), 61);
    CHECK_EQUAL(state, 100003);
}

static void a_general_clause_continues(void) {
    int state = 0;
    CHECK_EQUAL(VALUE(haft_handle(&general_handler, &state, ask_three, NULL)), 61);
    CHECK_EQUAL(state, 100300);
}

static void a_general_clause_may_end_by_continuing(void) {
    int state = 0;
    CHECK_EQUAL(VALUE(haft_handle(&tail_continue_handler, &state, ask_three, NULL)), 61);
    CHECK_EQUAL(state, 103000);
}

static void without_a_return_clause_the_answer_is_the_result(void) {
    int state = 0;
    CHECK_EQUAL(VALUE(haft_handle(&no_return_clause, &state, ask_three, NULL)), 60);
}

static void *ask_and_stop(void *unused) {
    HAFT_PERFORM(ask, 1);
    HAFT_PERFORM(stop, 42);
    CHECK(!"a never clause does not come back");
    return unused;
}

static int *local_seen;
static void *stop_after_cleanup(void *state, HAFT_PAYLOAD(stop) * payload) {
    /* The body is gone by now, and the payload is a copy. */
    CHECK_EQUAL(*(int *)state, 1);
    return NUMBER(-payload->code);
}
static void count_cleanup(int **count) {
    ++**count;
}
static void *stop_with_cleanup(void *state) {
    __attribute__((cleanup(count_cleanup))) int *count = state;
    HAFT_PERFORM(stop, 5);
    local_seen = count;
    return NULL;
}
HAFT_HANDLER(after_cleanup, NULL, HAFT_NEVER(stop, stop_after_cleanup));

static void a_never_clause_ends_the_computation_and_skips_the_return_clause(void) {
    int state = 0;
    CHECK_EQUAL(VALUE(haft_handle(&mixed_handler, &state, ask_and_stop, NULL)), -42);
    CHECK_EQUAL(state, 10001);
}

static void a_never_clause_runs_after_the_cleanups(void) {
    int count = 0;
    CHECK_EQUAL(VALUE(haft_handle(&after_cleanup, &count, stop_with_cleanup, &count)), -5);
    CHECK(local_seen == NULL);
}

static void *return_five(void *unused) {
    (void)unused;
    return NUMBER(5);
}

static void a_body_that_performs_nothing_goes_through_the_return_clause(void) {
    int state = 0;
    CHECK_EQUAL(VALUE(haft_handle(&general_handler, &state, return_five, NULL)), 6);
    CHECK_EQUAL(VALUE(haft_handle(&in_place_handler, &state, return_five, NULL)), 6);
    CHECK_EQUAL(state, 200000);
}

/* ---- Work after the resumption, state, nesting ---- */

static haft_answer_t sum_on_the_way_back(void *state, HAFT_PAYLOAD(tell) * payload,
                                         haft_resumption_t k) {
    int value = payload->value;
    (void)state;
    return haft_answer(NUMBER(value + VALUE(haft_resumption_resume(k, HAFT_NO_REPLY))));
}
HAFT_HANDLER(summing, NULL, HAFT_GENERAL(tell, sum_on_the_way_back));

static void *tell_ten(void *unused) {
    (void)unused;
    for (int i = 1; i <= 10; i++)
        HAFT_PERFORM(tell, i);
    return NUMBER(1000);
}

static void a_clause_may_work_on_after_the_computation_has_ended(void) {
    CHECK_EQUAL(VALUE(haft_handle(&summing, NULL, tell_ten, NULL)), 1055);
}

static haft_answer_t ask_inside_tell(void *state, HAFT_PAYLOAD(tell) * payload,
                                     haft_resumption_t k) {
    /* Handled further out: a clause is not under its own handler. */
    *(int *)state += HAFT_PERFORM(ask, payload->value);
    return haft_tail_resume(k, HAFT_NO_REPLY);
}
static haft_answer_t tell_again(void *state, HAFT_PAYLOAD(tell) * payload, haft_resumption_t k) {
    *(int *)state += payload->value;
    HAFT_PERFORM(tell, payload->value * 100);
    return haft_tail_resume(k, HAFT_NO_REPLY);
}
HAFT_HANDLER(asking, NULL, HAFT_GENERAL(tell, ask_inside_tell));
HAFT_HANDLER(telling, NULL, HAFT_GENERAL(tell, tell_again));

static int inner_state;
static void *under_asking(void *unused) {
    return haft_handle(&asking, &inner_state, tell_ten, unused);
}
static void *under_telling(void *unused) {
    return haft_handle(&telling, &inner_state, tell_ten, unused);
}

static void a_clause_performs_to_the_handlers_further_out(void) {
    int state = 0;
    inner_state = 0;
    CHECK_EQUAL(VALUE(haft_handle(&in_place_handler, &state, under_asking, NULL)), 1001);
    CHECK_EQUAL(inner_state, 550);
}

static haft_answer_t outer_sum(void *state, HAFT_PAYLOAD(tell) * payload, haft_resumption_t k) {
    *(int *)state += payload->value;
    return haft_tail_resume(k, HAFT_NO_REPLY);
}
HAFT_HANDLER(outer_summing, NULL, HAFT_GENERAL(tell, outer_sum));

static void an_effect_performed_again_in_its_clause_reaches_the_outer_handler(void) {
    int outer = 0;
    inner_state = 0;
    CHECK_EQUAL(VALUE(haft_handle(&outer_summing, &outer, under_telling, NULL)), 1000);
    CHECK_EQUAL(inner_state, 55);
    CHECK_EQUAL(outer, 5500);
}

/* ---- Resumptions ---- */

static haft_resumption_t kept;

static haft_answer_t keep(void *state, HAFT_PAYLOAD(ask) * payload, haft_resumption_t k) {
    (void)state;
    kept = k;
    return haft_answer(NUMBER(payload->question));
}
HAFT_HANDLER(keeping, plus_one, HAFT_GENERAL(ask, keep));

static void a_kept_resumption_outlives_haft_handle_and_takes_its_handler_along(void) {
    int state = 0;
    CHECK_EQUAL(VALUE(haft_handle(&keeping, &state, ask_three, NULL)), 1);
    CHECK(haft_resumption_effect(kept) == HAFT_ID(ask));
    CHECK_EQUAL(VALUE(haft_resumption_resume(kept, HAFT_REPLY(ask, 5))), 2);
    CHECK_EQUAL(VALUE(haft_resumption_resume(kept, HAFT_REPLY(ask, 6))), 3);
    haft_resumption_t last = kept;
    CHECK_EQUAL(VALUE(haft_resumption_resume(last, HAFT_REPLY(ask, 7))), 19);
    CHECK(haft_resumption_effect(last) == NULL);
    CHECK_EQUAL(state, 100000);
}

static void *count_and_ask(void *count) {
    __attribute__((cleanup(count_cleanup))) int *owned = count;
    HAFT_PERFORM(ask, 1);
    (void)owned;
    return NULL;
}

static void a_dropped_resumption_runs_the_cleanups(void) {
    int state = 0, count = 0;
    haft_handle(&keeping, &state, count_and_ask, &count);
    CHECK_EQUAL(count, 0);
    haft_resumption_drop(kept);
    CHECK_EQUAL(count, 1);
    CHECK(haft_resumption_effect(kept) == NULL);
    CHECK_EQUAL(state, 0);
}

static haft_reply_t raise_reply(void *argument) {
    return HAFT_REPLY(ask, *(int *)argument);
}

static void a_resumption_can_be_continued_by_a_call_at_the_perform(void) {
    int state = 0, value = 9;
    haft_handle(&keeping, &state, ask_three, NULL);
    haft_resumption_resume(kept, HAFT_REPLY(ask, 1));
    haft_resumption_resume(kept, HAFT_REPLY(ask, 1));
    CHECK_EQUAL(VALUE(haft_resumption_discontinue(kept, raise_reply, &value)), 12);
}

/* Two computations that hand over to each other: each clause continues the other's resumption. */
static haft_resumption_t waiting;
static bool somebody_waits;
static int handovers;

static haft_answer_t hand_over(void *state, HAFT_PAYLOAD(tell) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    handovers++;
    if (!somebody_waits) {
        somebody_waits = true;
        waiting = k;
        return haft_answer(NULL);
    }
    haft_resumption_t next = waiting;
    waiting = k;
    return haft_tail_resume(next, HAFT_NO_REPLY);
}
HAFT_HANDLER(swapping, NULL, HAFT_GENERAL(tell, hand_over));

static void a_clause_may_continue_another_resumption_than_its_own(void) {
    somebody_waits = false;
    handovers = 0;
    haft_handle(&swapping, NULL, tell_ten, NULL);
    CHECK_EQUAL(handovers, 1);
    /* The second runs until the first has told all; then its own resumption is left. */
    CHECK_EQUAL(VALUE(haft_handle(&swapping, NULL, tell_ten, NULL)), 1000);
    CHECK(haft_resumption_effect(waiting) == HAFT_ID(tell));
    CHECK_EQUAL(handovers, 20);
    CHECK_EQUAL(VALUE(haft_resumption_resume(waiting, HAFT_NO_REPLY)), 1000);
}

/* ---- Constant space ---- */

static void *ask_many(void *count) {
    int sum = 0;
    for (int i = 0; i < VALUE(count); i++)
        sum += HAFT_PERFORM(ask, 0);
    return NUMBER(sum);
}

static long resident_kilobytes(void) {
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &pages, &resident) != 2)
        resident = 0;
    if (file != NULL)
        fclose(file);
    return resident * 4;
}

static haft_answer_t note_stack(void *state, HAFT_PAYLOAD(ask) * payload, haft_resumption_t k) {
    char here;
    uintptr_t *lowest = state;
    (void)payload;
    if ((uintptr_t)&here < *lowest)
        *lowest = (uintptr_t)&here;
    return haft_tail_resume(k, HAFT_REPLY(ask, 1));
}
HAFT_HANDLER(noting_stack, NULL, HAFT_GENERAL(ask, note_stack));

static void general_clauses_that_end_in_continuing_run_in_constant_space(void) {
    int count = check_times(20 * 1000 * 1000);
    uintptr_t first = UINTPTR_MAX, lowest = UINTPTR_MAX;
    haft_handle(&noting_stack, &first, ask_many, NUMBER(1));
    long before = resident_kilobytes();
    CHECK_EQUAL(VALUE(haft_handle(&noting_stack, &lowest, ask_many, NUMBER(count))), count);
    CHECK(lowest == first);
    if (check_bare())
        CHECK(resident_kilobytes() - before < 1024);
}

/* ---- Options ---- */

static void *see_name(void *unused) {
    (void)unused;
    CHECK_SAME_TEXT(haft_fiber_name(haft_fiber_current()), "worker");
    return NUMBER(HAFT_PERFORM(ask, 1));
}

static void haft_handle_with_runs_the_body_on_the_fiber_that_the_options_describe(void) {
    static _Alignas(16) char memory[32 * 1024];
    int state = 0;
    CHECK_EQUAL(VALUE(haft_handle_with(&(haft_fiber_options_t){.name = "worker"}, &general_handler,
                                       &state, see_name, NULL)),
                11);
    CHECK_EQUAL(VALUE(haft_handle_with(&(haft_fiber_options_t){.name = "worker",
                                                               .memory = memory,
                                                               .memory_size = sizeof memory},
                                       &general_handler, &state, see_name, NULL)),
                11);
}

static haft_answer_t choose_both(void *state, HAFT_PAYLOAD(choose) * payload, haft_resumption_t k) {
    (void)payload;
    bool reply = ++*(int *)state % 2 == 0;
    return haft_answer(haft_resumption_resume(k, HAFT_REPLY(choose, reply)));
}
HAFT_HANDLER(choosing, NULL, HAFT_GENERAL(choose, choose_both));

static int nested_handlers(int depth) {
    return depth == 0 ? HAFT_PERFORM(choose) : HAFT_PERFORM(choose) + nested_handlers(depth - 1);
}
static void *nest(void *depth) {
    int state = 0;
    if (VALUE(depth) == 0)
        return NUMBER(nested_handlers(10));
    return haft_handle(VALUE(depth) % 2 ? &choosing : &general_handler, &state, nest,
                       NUMBER(VALUE(depth) - 1));
}

static void deep_handlers_nest(void) {
    CHECK_EQUAL(VALUE(nest(NUMBER(101))), 5 + 50);
}

int main(void) {
    RUN(a_tail_clause_answers_with_what_it_returns);
    RUN(a_general_clause_continues);
    RUN(a_general_clause_may_end_by_continuing);
    RUN(without_a_return_clause_the_answer_is_the_result);
    RUN(a_never_clause_ends_the_computation_and_skips_the_return_clause);
    RUN(a_never_clause_runs_after_the_cleanups);
    RUN(a_body_that_performs_nothing_goes_through_the_return_clause);
    RUN(a_clause_may_work_on_after_the_computation_has_ended);
    RUN(a_clause_performs_to_the_handlers_further_out);
    RUN(an_effect_performed_again_in_its_clause_reaches_the_outer_handler);
    RUN(a_kept_resumption_outlives_haft_handle_and_takes_its_handler_along);
    RUN(a_dropped_resumption_runs_the_cleanups);
    RUN(a_resumption_can_be_continued_by_a_call_at_the_perform);
    RUN(a_clause_may_continue_another_resumption_than_its_own);
    RUN(general_clauses_that_end_in_continuing_run_in_constant_space);
    RUN(haft_handle_with_runs_the_body_on_the_fiber_that_the_options_describe);
    RUN(deep_handlers_nest);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
