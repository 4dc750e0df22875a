/* Requests of a coroutine that has finished, and for numbers of no effect; and how a switch over
   requests behaves. */
#include "../../core/tests/check.h"
#include <seff.h>

DEFINE_EFFECT(first, 0, int64_t, { int64_t value; });
DEFINE_EFFECT(second, 1, void, {});
DEFINE_EFFECT(last, 63, int64_t, { int64_t value; });

static void *nine(void *argument) {
    (void)argument;
    return (void *)9L;
}
static void *its_argument(void *argument) {
    return argument;
}

static void the_payload_of_a_finished_request_is_the_result(void) {
    seff_coroutine_t *k = seff_coroutine_new(nine, NULL);
    seff_request_t request = seff_resume(k, NULL, 0);
    CHECK_EQUAL(request.payload, 9);
    CHECK(seff_finished(request) && request.effect == RETURN_EFFECT_ID);
    CHECK(request.effect == EFF_ID(return ) && k->state == FINISHED);
    seff_coroutine_delete(k);
}

/* The coroutine's memory is another one's by then. */
static void a_request_outlives_its_coroutine(void) {
    seff_coroutine_t *k = seff_coroutine_new(its_argument, (void *)1);
    seff_request_t kept = seff_resume(k, NULL, 0);
    seff_coroutine_delete(k);
    k = seff_coroutine_new(its_argument, (void *)2);
    seff_resume(k, NULL, 0);
    seff_coroutine_delete(k);
    intptr_t result = 0;
    switch (kept.effect) {
        CASE_RETURN(kept, {
            result = (intptr_t)payload.result;
            break;
        })
    }
    CHECK_EQUAL(result, 1);
}

static void *exits_with_a_result(void *argument) {
    seff_exit(seff_current_coroutine(), EFF_ID(return ), argument);
}
static seff_coroutine_t *around;
static void *exits_two_coroutines(void *argument) {
    seff_exit(around, EFF_ID(return ), argument);
}
static int cleanups;
static void count_cleanup(int *unused) {
    (void)unused;
    cleanups++;
}
static void *runs_another(void *argument) {
    seff_coroutine_t inner;
    CHECK(seff_coroutine_init(&inner, exits_two_coroutines, argument));
    seff_resume(&inner, NULL, 0);
    CHECK(!"reached");
    return NULL;
}
static void *exits_with_cleanups(void *argument) {
    __attribute__((unused, cleanup(count_cleanup))) int place;
    return exits_two_coroutines(argument);
}
static void *runs_a_fiber(void *argument) {
    haft_resume(haft_fiber_new(exits_with_cleanups, argument), HAFT_NO_REPLY, HAFT_HANDLES());
    CHECK(!"reached");
    return NULL;
}

static void exit_with_return_ends_the_coroutine_with_the_value(void) {
    seff_start_fun_t *functions[] = {exits_with_a_result, runs_another, runs_a_fiber};
    for (int i = 0; i < 3; i++) {
        around = seff_coroutine_new(functions[i], (void *)(intptr_t)(50 + i));
        seff_request_t request = seff_resume(around, NULL, HANDLES(first));
        CHECK(seff_finished(request) && around->state == FINISHED);
        CHECK_EQUAL(request.payload, 50 + i);
        seff_coroutine_delete(around);
    }
    CHECK_EQUAL(cleanups, 1);
}

static void ask_while_leaving(int *unused) {
    (void)unused;
    CHECK_EQUAL(PERFORM(first, 4), 5);
}
static void *exits_and_asks(void *argument) {
    __attribute__((unused, cleanup(ask_while_leaving))) int place;
    return exits_two_coroutines(argument);
}
static void *runs_a_fiber_that_asks(void *argument) {
    haft_resume(haft_fiber_new(exits_and_asks, argument), HAFT_NO_REPLY, HAFT_HANDLES());
    CHECK(!"reached");
    return NULL;
}

static void cleanups_on_the_way_out_may_perform(void) {
    around = seff_coroutine_new(runs_a_fiber_that_asks, (void *)60);
    seff_request_t request = seff_resume(around, NULL, HANDLES(first));
    CHECK(request.effect == EFF_ID(first) && around->state == PAUSED);
    request = seff_resume(around, (void *)5, HANDLES(first));
    CHECK(seff_finished(request) && around->state == FINISHED);
    CHECK_EQUAL(request.payload, 60);
    seff_coroutine_delete(around);
}

static void *sends_numbers(void *argument) {
    seff_coroutine_t *k = seff_current_coroutine();
    CHECK_EQUAL(seff_yield(k, 1000, argument), 1);
    CHECK_EQUAL(seff_yield(k, EFF_ID(return ), (void *)77), 2);
    CHECK_EQUAL(seff_yield(k, EFF_ID(second), (void *)88), 3);
    seff_exit(k, 2000, argument);
}

static void numbers_that_are_no_effects_pass_through(void) {
    int argument;
    seff_coroutine_t *k = seff_coroutine_new(sends_numbers, &argument);
    seff_request_t request = seff_resume(k, NULL, 0);
    CHECK(request.effect == 1000 && request.payload == &argument && k->state == PAUSED);
    request = seff_resume(k, (void *)1, 0);
    CHECK(request.effect == EFF_ID(return ) && k->state == PAUSED);
    CHECK_EQUAL(request.payload, 77);
    request = seff_resume(k, (void *)2, 0);
    CHECK(request.effect == EFF_ID(second));
    CHECK_EQUAL(request.payload, 88);
    request = seff_resume(k, (void *)3, 0);
    CHECK(request.effect == 2000 && request.payload == &argument && k->state == FINISHED);
    seff_coroutine_delete(k);
}

static void *performs_the_last(void *argument) {
    (void)argument;
    return (void *)PERFORM(last, 5);
}

static void tag_63_is_an_effect(void) {
    seff_coroutine_t *k = seff_coroutine_new(performs_the_last, NULL);
    seff_request_t request = seff_resume(k, NULL, HANDLES(last));
    CHECK(request.effect == 63 && !seff_finished(request));
    intptr_t asked = 0, result = 0;
    for (bool done = false; !done;) {
        switch (request.effect) {
            CASE_EFFECT(request, last, {
                asked = payload.value;
                request = seff_resume_handling_all(k, (void *)6);
                break;
            })
            CASE_RETURN(request, {
                result = (intptr_t)payload.result;
                done = true;
                break;
            })
        default:
            CHECK(!"reached");
            done = true;
        }
    }
    CHECK_EQUAL(asked, 5);
    CHECK_EQUAL(result, 6);
    CHECK(HANDLES(last) == (effect_set)1 << 63 && HANDLES(return ) == 0 && MAX_EFFECTS == 64);
    seff_coroutine_delete(k);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough"
static void a_case_falls_through_as_a_case_does(void) {
    EFF_PAYLOAD_T(first) sent = {3};
    seff_request_t request = {EFF_ID(first), &sent};
    int64_t seen = 0;
    switch (request.effect) {
        CASE_EFFECT(request, first, { seen += payload.value; })
    case EFF_ID(second):
        seen += 10;
        break;
    default:
        seen += 100;
    }
    CHECK_EQUAL(seen, 13);
}
#pragma GCC diagnostic pop

static void the_states_have_the_values_of_the_original(void) {
    CHECK(FINISHED == 0 && PAUSED == 1 && SUSPENDED == PAUSED && RUNNING == 2);
}

static void *its_stack_top(void *inside) {
    char *top = seff_current_stack_top();
    CHECK(top != NULL && top < (char *)&inside);
    return top;
}

static void the_stack_top_is_below_what_the_coroutine_uses(void) {
    CHECK(seff_current_stack_top() == NULL);
    seff_coroutine_t *k = seff_coroutine_new(its_stack_top, NULL);
    CHECK(seff_resume(k, NULL, 0).payload != NULL);
    seff_coroutine_delete(k);
}

static void *performs_twice(void *argument) {
    (void)argument;
    return (void *)(PERFORM(first, 1) + PERFORM(first, 2));
}

static void a_coroutine_runs_again_after_a_reset_wherever_it_was(void) {
    seff_coroutine_t *k = seff_coroutine_new(performs_twice, NULL);
    for (int resumes = 0; resumes <= 3; resumes++) {
        seff_request_t request = {0, NULL};
        for (int i = 0; i < resumes; i++)
            request = seff_resume(k, (void *)10, HANDLES(first));
        CHECK(k->state == (resumes == 3 ? FINISHED : PAUSED));
        CHECK(resumes != 3 || (intptr_t)request.payload == 20);
        seff_coroutine_reset(k);
        CHECK(k->state == PAUSED);
    }
    seff_coroutine_delete(k);
}

int main(void) {
    RUN(the_payload_of_a_finished_request_is_the_result);
    RUN(a_request_outlives_its_coroutine);
    RUN(exit_with_return_ends_the_coroutine_with_the_value);
    RUN(cleanups_on_the_way_out_may_perform);
    RUN(numbers_that_are_no_effects_pass_through);
    RUN(tag_63_is_an_effect);
    RUN(a_case_falls_through_as_a_case_does);
    RUN(the_states_have_the_values_of_the_original);
    RUN(the_stack_top_is_below_what_the_coroutine_uses);
    RUN(a_coroutine_runs_again_after_a_reset_wherever_it_was);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
