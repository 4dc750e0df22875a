/* The size that a program gives is a first size: stacks are as large as others. And the text of the
   messages. */
#include "../../core/tests/check.h"
#include <seff.h>

DEFINE_EFFECT(wait_here, 2, void, {});
DEFINE_EFFECT(unanswered, 3, int64_t, {});

enum { COROUTINES = 40, FRAME = 130 * 1024 };

static void *fills_a_large_frame(void *argument) {
    volatile unsigned char frame[FRAME];
    unsigned char mine = (unsigned char)(uintptr_t)argument;
    memset((void *)(uintptr_t)frame, mine, sizeof frame);
    PERFORM(wait_here);
    int wrong = 0;
    for (int i = 0; i < FRAME; i++)
        wrong += frame[i] != mine;
    return (void *)(intptr_t)wrong;
}

static void a_small_size_is_a_first_size(void) {
    seff_coroutine_t *coroutines[COROUTINES];
    for (int i = 0; i < COROUTINES; i++) {
        coroutines[i] =
            seff_coroutine_new_sized(fills_a_large_frame, (void *)(intptr_t)(i + 1), 512);
        seff_resume(coroutines[i], NULL, HANDLES(wait_here));
    }
    for (int i = 0; i < COROUTINES; i++) {
        CHECK_EQUAL(seff_resume(coroutines[i], NULL, HANDLES(wait_here)).payload, 0);
        seff_coroutine_delete(coroutines[i]);
    }
}

static void *recurses(void *argument) {
    volatile char frame[1024];
    frame[0] = 1;
    intptr_t depth = (intptr_t)argument;
    return depth == 0 ? NULL : (void *)((intptr_t)recurses((void *)(depth - 1)) + (frame[0] - 1));
}

static void a_large_size_is_had(void) {
    seff_coroutine_t k;
    CHECK(seff_coroutine_init_sized(&k, recurses, (void *)4000, 32 * 1024 * 1024));
    CHECK(seff_finished(seff_resume(&k, NULL, 0)));
    seff_coroutine_release(&k);
}

static void *waits(void *argument) {
    PERFORM(wait_here);
    return argument;
}

/* Also one that lies elsewhere, whose stack is another after a reset. */
static void dense_stacks_lie_side_by_side(void) {
    enum { DENSE = 8 * 1024, SIDE_BY_SIDE = 16 * 1024 };
    seff_coroutine_t *coroutines[COROUTINES], k;
    size_t unguarded = haft_pool_report().unguarded;
    for (int i = 0; i < COROUTINES; i++) {
        coroutines[i] = seff_coroutine_new_dense(waits, &coroutines[i], DENSE);
        seff_resume(coroutines[i], NULL, HANDLES(wait_here));
    }
    CHECK(seff_coroutine_init_dense(&k, waits, &k, DENSE));
    for (int round = 0; round < 2; round++) {
        seff_resume(&k, NULL, HANDLES(wait_here));
        if (check_bare())
            CHECK_EQUAL(haft_pool_report().unguarded, unguarded + COROUTINES + 1);
        CHECK(seff_resume(&k, NULL, HANDLES(wait_here)).payload == &k);
        seff_coroutine_reset(&k);
    }
    seff_coroutine_release(&k);
    if (check_bare())
        CHECK((char *)coroutines[COROUTINES - 1] - (char *)coroutines[0] <
              COROUTINES * SIDE_BY_SIDE);
    for (int i = 0; i < COROUTINES; i++) {
        CHECK(seff_resume(coroutines[i], NULL, HANDLES(wait_here)).payload == &coroutines[i]);
        seff_coroutine_delete(coroutines[i]);
    }
    CHECK_EQUAL(haft_pool_report().unguarded, unguarded);
}

static __attribute__((noinline)) void *fills_and_waits(void *argument) {
    volatile char frame[13000];
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = 1;
    PERFORM(wait_here);
    return argument;
}
static void overflows_a_dense_stack(void) {
    seff_resume(seff_coroutine_new_dense(waits, NULL, 8192), NULL, HANDLES(wait_here));
    seff_resume(seff_coroutine_new_dense(fills_and_waits, NULL, 8192), NULL, HANDLES(wait_here));
}
static void an_overflow_of_a_dense_stack_is_reported(void) {
    CHECK_ABORTS(overflows_a_dense_stack, "which has no guard page");
}

static void *returns(void *argument) {
    return argument;
}
static void *exits(void *argument) {
    seff_exit(argument, EFF_ID(wait_here), NULL);
}

static void a_coroutine_that_has_finished_keeps_no_stack(void) {
    size_t stacks = haft_pool_report().stacks;
    for (int i = 0; i < COROUTINES; i++) {
        seff_coroutine_t k;
        seff_coroutine_init(&k, i % 2 ? returns : exits, &k);
        seff_resume(&k, NULL, HANDLES(wait_here));
        CHECK(k.state == FINISHED);
        CHECK_EQUAL(haft_pool_report().stacks, stacks);
        if (i % 4 == 0)
            seff_coroutine_release(&k);
    }
}

static void a_coroutine_that_has_finished_can_be_reset(void) {
    seff_coroutine_t k;
    seff_coroutine_init_sized(&k, recurses, (void *)4000, 32 * 1024 * 1024);
    for (int i = 0; i < 3; i++) {
        CHECK(seff_finished(seff_resume(&k, NULL, 0)));
        seff_coroutine_reset(&k);
        CHECK(k.state == PAUSED);
    }
    seff_coroutine_release(&k);
}

static void resumes_finished(void) {
    seff_coroutine_t k;
    seff_coroutine_init(&k, returns, NULL);
    seff_resume(&k, NULL, 0);
    seff_resume(&k, NULL, 0);
}
static void releases_twice(void) {
    seff_coroutine_t k;
    seff_coroutine_init(&k, returns, NULL);
    seff_resume(&k, NULL, 0);
    seff_coroutine_release(&k);
    seff_coroutine_release(&k);
}
static void the_use_of_one_without_a_stack_is_reported(void) {
    CHECK_ABORTS(resumes_finished, "seff_resume was given a coroutine that has finished");
    CHECK_ABORTS(releases_twice, "a coroutine that has been released or deleted");
}

static void overflows(void) {
    seff_resume(seff_coroutine_new(recurses, (void *)1000000), NULL, 0);
}
static void an_overflow_says_how_to_have_more(void) {
    CHECK_FAULTS(overflows, check_bare() ? "LIBSEFF_DEFAULT_FRAME_SIZE" : "");
}

static void *performs_unanswered(void *argument) {
    (void)argument;
    return (void *)PERFORM(unanswered);
}
static void performs_alone(void) {
    PERFORM(unanswered);
}
static void performs_in_a_coroutine(void) {
    seff_resume(seff_coroutine_new(performs_unanswered, NULL), NULL, HANDLES(wait_here));
}
static void throws_alone(void) {
    THROW(unanswered);
}
static void an_effect_that_nobody_handles_is_told_in_the_words_of_libseff(void) {
    CHECK_ABORTS(performs_alone, "default with seff_set_default_handler");
    CHECK_ABORTS(performs_in_a_coroutine, "HANDLES(unanswered)");
    CHECK_ABORTS(throws_alone, "test_seff_stacks.c:7");
}

int main(void) {
    RUN(a_small_size_is_a_first_size);
    RUN(a_large_size_is_had);
    RUN(dense_stacks_lie_side_by_side);
    if (check_bare())
        RUN(an_overflow_of_a_dense_stack_is_reported);
    RUN(a_coroutine_that_has_finished_keeps_no_stack);
    RUN(a_coroutine_that_has_finished_can_be_reset);
    RUN(the_use_of_one_without_a_stack_is_reported);
    RUN(an_overflow_says_how_to_have_more);
    RUN(an_effect_that_nobody_handles_is_told_in_the_words_of_libseff);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
