/* Handling by requests: the loop around haft_resume (§2.1). */
#include <haft.h>

#include "check.h"

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
    return check_end();
}
/* SPDX-License-Identifier: MIT */
