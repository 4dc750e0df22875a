/* Handling by requests: the loop around haft_resume (§2.1). */
#include <haft.h>
#include <haft/turns.h>

#include "check.h"

#include <fenv.h>

HAFT_EFFECT(get, int64_t, {});
HAFT_EFFECT(put, void, { int64_t new_value; });
HAFT_EFFECT(other, int, { int value; });

static void *counter(void *unused) {
    (void)unused;
    for (int64_t i = HAFT_PERFORM(get); i > 0; i = HAFT_PERFORM(get))
        HAFT_PERFORM(put, i - 1);
    return &check_tests;
}

static void the_program_of_the_paper_counts_to_zero(void) {
    int64_t state = 1000;
    void *result = NULL;
    haft_fiber_t *k = haft_fiber_new(counter, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(get, put));
    bool done = false;
    while (!done) {
        HAFT_MATCH(request) {
            HAFT_CASE(get, payload) {
                (void)payload;
                request = haft_resume(k, HAFT_REPLY(get, state), HAFT_HANDLES(get, put));
            }
            HAFT_CASE(put, payload) {
                state = payload->new_value;
                request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(get, put));
            }
            HAFT_RETURN(value) {
                result = value;
                done = true;
            }
        }
    }
    CHECK_EQUAL(state, 0);
    CHECK(result == &check_tests);
    CHECK_EQUAL(haft_fiber_state(k), HAFT_FIBER_FINISHED);
    haft_fiber_drop(k);
}

static void *perform_other(void *value) {
    return (void *)(intptr_t)HAFT_PERFORM(other, (int)(intptr_t)value);
}

static void a_match_runs_one_block_though_the_request_is_assigned_in_it(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(perform_other, (void *)5);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(other));
    int blocks = 0;
    HAFT_MATCH(request) {
        HAFT_CASE(other, payload) {
            blocks++;
            request = haft_resume(k, HAFT_REPLY(other, payload->value + 1), HAFT_HANDLES());
        }
        HAFT_RETURN(result) {
            (void)result;
            blocks += 100;
        }
    }
    CHECK_EQUAL(blocks, 1);
    CHECK(haft_finished(request));
}

static void break_and_continue_leave_the_block(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(perform_other, (void *)5);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(other));
    int steps = 0;
    HAFT_MATCH(request) {
        HAFT_CASE(other, payload) {
            (void)payload;
            steps++;
            if (steps == 1)
                break;
            steps += 100;
        }
    }
    HAFT_MATCH(request) {
        HAFT_CASE(other, payload) {
            (void)payload;
            steps++;
            if (steps == 2)
                continue;
            steps += 100;
        }
    }
    HAFT_MATCH(request) {
        HAFT_OTHERWISE(rest) {
            CHECK(rest.effect == HAFT_ID(other));
            if (++steps == 3)
                break;
            steps += 100;
        }
    }
    CHECK_EQUAL(steps, 3);
}

static void otherwise_takes_what_no_case_names(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(perform_other, (void *)5);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(other));
    int blocks = 0;
    HAFT_MATCH(request) {
        HAFT_CASE(get, payload) {
            (void)payload;
            blocks += 100;
        }
        HAFT_OTHERWISE(rest) {
            CHECK(rest.effect == request.effect && rest.payload == request.payload);
            blocks++;
            request = haft_resume(k, HAFT_REPLY(other, 1), HAFT_HANDLES());
        }
    }
    HAFT_MATCH(request) {
        HAFT_CASE(get, payload) {
            (void)payload;
            blocks += 100;
        }
        HAFT_OTHERWISE(rest) {
            CHECK(haft_finished(rest));
            blocks++;
        }
    }
    CHECK_EQUAL(blocks, 2);
}

static void *inner_then_other(void *unused) {
    HAFT_SCOPED haft_fiber_t *inner = haft_fiber_new(counter, NULL);
    haft_request_t request = haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(put));
    int puts = 0;
    while (!haft_finished(request)) {
        CHECK(request.effect == HAFT_ID(put));
        puts++;
        request = haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(put));
    }
    (void)unused;
    return (void *)(intptr_t)puts;
}

static void an_effect_that_the_inner_resume_does_not_name_goes_to_the_outer(void) {
    HAFT_SCOPED haft_fiber_t *outer = haft_fiber_new(inner_then_other, NULL);
    haft_request_t request = haft_resume(outer, HAFT_NO_REPLY, HAFT_HANDLES(get, put));
    int64_t gets = 3;
    while (!haft_finished(request)) {
        CHECK(request.effect == HAFT_ID(get));
        request = haft_resume(outer, HAFT_REPLY(get, gets--), HAFT_HANDLES(get, put));
    }
    CHECK_EQUAL((intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result, 3);
}

static void *three_others(void *unused) {
    int sum = 0;
    for (int i = 0; i < 3; i++)
        sum += HAFT_PERFORM(other, i);
    (void)unused;
    return (void *)(intptr_t)sum;
}

static void the_handled_set_may_change_at_every_resume(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(three_others, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(other));
    CHECK_EQUAL(((HAFT_PAYLOAD(other) *)request.payload)->value, 0);
    request = haft_resume(k, HAFT_REPLY(other, 1), HAFT_HANDLES(get, other, put));
    CHECK_EQUAL(((HAFT_PAYLOAD(other) *)request.payload)->value, 1);
    request = haft_resume(k, HAFT_REPLY(other, 2), HAFT_HANDLES_ALL);
    CHECK_EQUAL(((HAFT_PAYLOAD(other) *)request.payload)->value, 2);
    request = haft_resume(k, HAFT_REPLY(other, 4), HAFT_HANDLES());
    CHECK(haft_finished(request));
    CHECK_EQUAL((intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result, 7);
}

static void *current_state(void *unused) {
    (void)unused;
    haft_fiber_t *self = haft_fiber_current();
    CHECK_EQUAL(haft_fiber_state(self), HAFT_FIBER_RUNNING);
    HAFT_PERFORM(other, 0);
    CHECK(haft_fiber_current() == self);
    return self;
}

static void a_fiber_knows_its_state(void) {
    haft_fiber_t *k = haft_fiber_new(current_state, NULL);
    CHECK(haft_fiber_current() == NULL);
    CHECK_EQUAL(haft_fiber_state(k), HAFT_FIBER_NEW);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(other));
    CHECK_EQUAL(haft_fiber_state(k), HAFT_FIBER_SUSPENDED);
    haft_request_t request = haft_resume(k, HAFT_REPLY(other, 0), HAFT_HANDLES(other));
    CHECK(((HAFT_PAYLOAD(return ) *)request.payload)->result == k);
    CHECK_EQUAL(haft_fiber_state(k), HAFT_FIBER_FINISHED);
    haft_fiber_drop(k);
}

static haft_fiber_t *seen[3];

static void *see_parents(void *depth) {
    int level = (int)(intptr_t)depth;
    seen[level] = haft_fiber_current();
    if (level == 2) {
        CHECK(haft_fiber_parent(seen[2]) == seen[1]);
        CHECK(haft_fiber_parent(seen[1]) == seen[0]);
        CHECK(haft_fiber_parent(seen[0]) == NULL);
        return NULL;
    }
    HAFT_SCOPED haft_fiber_t *inner = haft_fiber_new(see_parents, (void *)(intptr_t)(level + 1));
    haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES());
    return NULL;
}

static void the_parent_of_a_running_fiber_is_who_resumed_it(void) {
    haft_fiber_t *k = haft_fiber_new(see_parents, (void *)0);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES());
    haft_fiber_drop(k);
}

static void a_finished_fiber_can_be_freed_and_null_is_ignored(void) {
    haft_fiber_t *k = haft_fiber_new(perform_other, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(other));
    haft_resume(k, HAFT_REPLY(other, 1), HAFT_HANDLES(other));
    haft_fiber_drop(k);
    haft_fiber_drop(NULL);
}

/* A function that performs deep in its own calls is captured with all its frames. */
static int64_t recurse(int depth) {
    volatile char frame[64];
    frame[0] = (char)depth;
    int64_t sum = depth == 0 ? HAFT_PERFORM(get) : recurse(depth - 1);
    return sum + frame[0];
}
static void *recurse_body(void *unused) {
    (void)unused;
    return (void *)(intptr_t)recurse(100);
}

static void all_frames_of_the_performer_are_kept(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(recurse_body, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(get));
    haft_request_t request = haft_resume(k, HAFT_REPLY(get, 7), HAFT_HANDLES(get));
    CHECK_EQUAL((intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result, 7 + 100 * 101 / 2);
}

static haft_reply_t raise_seven(void *argument) {
    CHECK(haft_fiber_current() == argument);
    return HAFT_REPLY(other, 7);
}

static void discontinue_runs_a_function_at_the_perform(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(perform_other, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(other));
    haft_request_t request = haft_discontinue(k, raise_seven, k, HAFT_HANDLES(other));
    CHECK(haft_finished(request));
    CHECK_EQUAL((intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result, 7);
}

/* ---- Turns ---- */

HAFT_EFFECT(turn, int, {});
#define OF_TURNS HAFT_HANDLES(turn, other)

static haft_turn_t turns;
static haft_fiber_t *turning[2];

/* Lets the other go on, at once if that can be done. How often it could. */
static void *take_turns(void *number) {
    haft_fiber_t *next = turning[1 - (intptr_t)number];
    intptr_t handed_over = 0;
    for (int i = 1; i <= 10; i++) {
        haft_reply_t reply = HAFT_REPLY(turn, i);
        int before = fegetround(), result;
        if (HAFT_IS_FOR_LOOP(&turns, turn) && haft_claim_next(&turns, next, reply)) {
            handed_over++;
            result = HAFT_HAND_OVER(&turns, turn, next, reply);
        } else {
            result = HAFT_PERFORM(turn);
        }
        CHECK(result == 0 || result == i || result == i - 1 || result == i + 1);
        CHECK_EQUAL(fegetround(), before);
        CHECK_EQUAL(haft_fiber_state(turning[(intptr_t)number]), HAFT_FIBER_RUNNING);
    }
    return (void *)handed_over;
}

static void make_turning(void *(*function)(void *)) {
    for (int i = 0; i < 2; i++)
        turning[i] = haft_fiber_new(function, (void *)(intptr_t)i);
}
static void drop_turning(void) {
    for (int i = 0; i < 2; i++)
        haft_fiber_drop(turning[i]);
}

/* The fiber whose request it is. */
static haft_request_t resume_turning(int number, haft_reply_t reply, haft_fiber_t **fiber) {
    *fiber = turning[number];
    return haft_resume_turn(&turns, fiber, reply, OF_TURNS);
}

static intptr_t result_of(haft_request_t request) {
    CHECK(haft_finished(request));
    return (intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result;
}

/* Whether nobody gets the hand-over, as where a sanitizer is told of every switch. */
static bool handed_over_to_nobody(haft_request_t request, const haft_fiber_t *fiber) {
    bool nobody = fiber == turning[0] && request.effect == HAFT_ID(turn);
    CHECK(!nobody || !check_bare());
    return nobody;
}

static void a_fiber_hands_over_to_the_next_whose_request_the_loop_gets(void) {
    haft_fiber_t *fiber;
    make_turning(take_turns);
    CHECK(resume_turning(0, HAFT_NO_REPLY, &fiber).effect == HAFT_ID(turn)); /* not by turns yet */
    CHECK(resume_turning(1, HAFT_NO_REPLY, &fiber).effect == HAFT_ID(turn));
    CHECK(fiber == turning[1]);
    haft_request_t request = resume_turning(0, HAFT_REPLY(turn, 0), &fiber);
    if (!handed_over_to_nobody(request, fiber)) {
        intptr_t handed_over = result_of(request);
        int left = fiber == turning[0] ? 1 : 0;
        CHECK(fiber == turning[1 - left] && handed_over >= 8);
        CHECK_EQUAL(haft_fiber_state(turning[1 - left]), HAFT_FIBER_FINISHED);
        CHECK_EQUAL(haft_fiber_state(turning[left]), HAFT_FIBER_SUSPENDED);
        CHECK(result_of(resume_turning(left, HAFT_REPLY(turn, 10), &fiber)) >= 8);
        CHECK(fiber == turning[left]);
    }
    drop_turning();
}

/* It hands over once, and then sends something else to the loop. */
static void *turn_and_perform_other(void *number) {
    haft_fiber_t *next = turning[1 - (intptr_t)number];
    (void)HAFT_PERFORM(turn);
    haft_reply_t reply = HAFT_REPLY(turn, 5);
    if (HAFT_IS_FOR_LOOP(&turns, turn) && haft_claim_next(&turns, next, reply))
        (void)HAFT_HAND_OVER(&turns, turn, next, reply);
    return (void *)(intptr_t)HAFT_PERFORM(other, (int)(intptr_t)number);
}

static void what_a_fiber_performs_that_was_handed_over_to_reaches_the_loop(void) {
    haft_fiber_t *fiber;
    make_turning(turn_and_perform_other);
    for (int i = 0; i < 2; i++)
        CHECK(resume_turning(i, HAFT_NO_REPLY, &fiber).effect == HAFT_ID(turn));
    haft_request_t request = resume_turning(0, HAFT_REPLY(turn, 0), &fiber);
    if (check_bare()) {
        /* The first hands over to the second, that back to the first, which performs. */
        CHECK(fiber == turning[0] && request.effect == HAFT_ID(other));
        CHECK_EQUAL(((HAFT_PAYLOAD(other) *)request.payload)->value, 0);
        CHECK_EQUAL(haft_fiber_state(turning[1]), HAFT_FIBER_SUSPENDED);
        CHECK_EQUAL(result_of(resume_turning(0, HAFT_REPLY(other, 8), &fiber)), 8);
        /* A fiber that waits in a hand-over is dropped like any other that waits. */
    }
    drop_turning();
}

static void *claim_in_vain(void *number) {
    haft_reply_t fits = HAFT_REPLY(turn, 5), misfits = HAFT_REPLY(other, 5);
    haft_fiber_t *next = turning[1 - (intptr_t)number];
    (void)HAFT_PERFORM(turn);
    CHECK(!HAFT_IS_FOR_LOOP(&turns, get)); /* which the loop does not handle */
    if (!HAFT_IS_FOR_LOOP(&turns, turn))
        return NULL;
    CHECK(!haft_claim_next(&turns, next, misfits));
    CHECK(!haft_claim_next(&turns, turning[(intptr_t)number], fits)); /* it runs */
    fesetround(FE_UPWARD);
#ifdef __x86_64__
    CHECK(!haft_claim_next(&turns, next, fits));
#endif
    fesetround(FE_TONEAREST);
    return NULL;
}
static void *look_further_in(void *unused) {
    CHECK(!HAFT_IS_FOR_LOOP(&turns, turn));
    CHECK_EQUAL(HAFT_PERFORM(turn), 3);
    CHECK(!HAFT_IS_FOR_LOOP(&turns, turn));
    return unused;
}
static int answer_three(void *unused, HAFT_PAYLOAD(turn) * payload) {
    (void)unused, (void)payload;
    return 3;
}
HAFT_HANDLER(answers_three, NULL, HAFT_TAIL(turn, answer_three));
static void *look_under_a_handler(void *unused) {
    (void)unused;
    (void)HAFT_PERFORM(turn);
    return haft_handle(&answers_three, NULL, look_further_in, NULL);
}
static void *turn_twice(void *unused) {
    for (int i = 0; i < 2; i++) {
        CHECK(!HAFT_IS_FOR_LOOP(&turns, turn));
        CHECK_EQUAL(HAFT_PERFORM(turn), i);
    }
    return unused;
}
static void *look_under_another_resume(void *unused) {
    HAFT_SCOPED haft_fiber_t *inner = haft_fiber_new(turn_twice, NULL);
    (void)HAFT_PERFORM(turn);
    haft_request_t request = haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(get, turn));
    for (int i = 0; !haft_finished(request); i++)
        request = haft_resume(inner, HAFT_REPLY(turn, i), HAFT_HANDLES(get, turn));
    return unused;
}
static void resume_turning_again(void *(*function)(void *)) {
    haft_fiber_t *fiber;
    make_turning(function);
    for (int i = 0; i < 2; i++)
        (void)resume_turning(i, HAFT_NO_REPLY, &fiber);
    CHECK_EQUAL(result_of(resume_turning(0, HAFT_REPLY(turn, 0), &fiber)), 0);
    CHECK(fiber == turning[0]);
    drop_turning();
}
static void what_cannot_be_handed_over_is_not_claimed(void) {
    resume_turning_again(claim_in_vain);
    resume_turning_again(look_under_a_handler);
    resume_turning_again(look_under_another_resume);
}

static void *hand_over_to_memory_and_back(void *number) {
    haft_reply_t reply = HAFT_REPLY(turn, 5);
    (void)HAFT_PERFORM(turn);
    if (HAFT_IS_FOR_LOOP(&turns, turn)) {
        bool claimed = haft_claim_next(&turns, turning[1 - (intptr_t)number], reply);
        CHECK_EQUAL(claimed, (intptr_t)number == 0);
        if (claimed)
            (void)HAFT_HAND_OVER(&turns, turn, turning[1], reply);
    }
    return NULL;
}
static void the_canary_of_a_fiber_that_was_handed_over_to_is_looked_at(void) {
    static char memory[64 * 1024];
    haft_fiber_options_t options = {.memory = memory, .memory_size = sizeof memory};
    haft_fiber_t *fiber;
    make_turning(hand_over_to_memory_and_back);
    haft_fiber_drop(turning[1]);
    turning[1] = haft_fiber_new_with(&options, hand_over_to_memory_and_back, (void *)1);
    for (int i = 0; i < 2; i++)
        (void)resume_turning(i, HAFT_NO_REPLY, &fiber);
    (void)resume_turning(0, HAFT_REPLY(turn, 0), &fiber);
    CHECK(fiber == turning[1] || !check_bare());
    drop_turning();
}

static void *look_once(void *unused) {
    (void)HAFT_PERFORM(turn);
    CHECK(!HAFT_IS_FOR_LOOP(&turns, turn));
    return unused;
}
static void a_fiber_of_an_ordinary_resume_hands_over_to_nobody(void) {
    make_turning(look_once);
    for (int i = 0; i < 2; i++)
        (void)haft_resume(turning[i], HAFT_NO_REPLY, OF_TURNS);
    CHECK_EQUAL(result_of(haft_resume(turning[0], HAFT_REPLY(turn, 0), OF_TURNS)), 0);
    drop_turning();
}

/* Hands over when the fiber that its loop runs on has been suspended and resumed. */
static void *leave_and_hand_over(void *unused) {
    (void)HAFT_PERFORM(turn);
    HAFT_PERFORM(put, 0);
    haft_reply_t reply = HAFT_REPLY(turn, 5);
    if (HAFT_IS_FOR_LOOP(&turns, turn) && haft_claim_next(&turns, turning[1], reply))
        (void)HAFT_HAND_OVER(&turns, turn, turning[1], reply);
    return unused;
}
static void *ask_before_and_after(void *unused) {
    CHECK_EQUAL(HAFT_PERFORM(get), 1);
    (void)HAFT_PERFORM(turn);
    CHECK_EQUAL(HAFT_PERFORM(get), 2);
    return unused;
}
static void *resume_both(void *unused) {
    haft_fiber_t *fiber;
    turning[0] = haft_fiber_new(leave_and_hand_over, NULL);
    turning[1] = haft_fiber_new(ask_before_and_after, NULL);
    for (int i = 0; i < 2; i++)
        (void)resume_turning(i, HAFT_NO_REPLY, &fiber);
    for (int i = 0; i < 2; i++)
        if (haft_fiber_state(turning[i]) == HAFT_FIBER_SUSPENDED)
            (void)resume_turning(i, HAFT_REPLY(turn, 0), &fiber);
    CHECK_EQUAL(haft_fiber_state(turning[1]), HAFT_FIBER_FINISHED);
    drop_turning();
    return unused;
}
static int64_t answer_number(void *number, HAFT_PAYLOAD(get) * payload) {
    (void)payload;
    return (intptr_t)number;
}
HAFT_HANDLER(answers_number, NULL, HAFT_TAIL(get, answer_number));
static void *go_on_with_loop(void *loop) {
    CHECK(haft_finished(haft_resume(loop, HAFT_NO_REPLY, HAFT_HANDLES(put))));
    return NULL;
}
static void *begin_loop(void *unused) {
    HAFT_SCOPED haft_fiber_t *loop = haft_fiber_new(resume_both, NULL);
    CHECK(haft_resume(loop, HAFT_NO_REPLY, HAFT_HANDLES(put)).effect == HAFT_ID(put));
    haft_handle(&answers_number, (void *)2, go_on_with_loop, loop);
    return unused;
}
static void what_is_handed_over_to_finds_the_handlers_that_the_loop_has_by_then(void) {
    haft_handle(&answers_number, (void *)1, begin_loop, NULL);
}

int main(void) {
    RUN(the_program_of_the_paper_counts_to_zero);
    RUN(a_match_runs_one_block_though_the_request_is_assigned_in_it);
    RUN(break_and_continue_leave_the_block);
    RUN(otherwise_takes_what_no_case_names);
    RUN(an_effect_that_the_inner_resume_does_not_name_goes_to_the_outer);
    RUN(the_handled_set_may_change_at_every_resume);
    RUN(a_fiber_knows_its_state);
    RUN(the_parent_of_a_running_fiber_is_who_resumed_it);
    RUN(a_finished_fiber_can_be_freed_and_null_is_ignored);
    RUN(all_frames_of_the_performer_are_kept);
    RUN(discontinue_runs_a_function_at_the_perform);
    RUN(a_fiber_hands_over_to_the_next_whose_request_the_loop_gets);
    RUN(what_a_fiber_performs_that_was_handed_over_to_reaches_the_loop);
    RUN(what_cannot_be_handed_over_is_not_claimed);
    RUN(the_canary_of_a_fiber_that_was_handed_over_to_is_looked_at);
    RUN(a_fiber_of_an_ordinary_resume_hands_over_to_nobody);
    RUN(what_is_handed_over_to_finds_the_handlers_that_the_loop_has_by_then);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
