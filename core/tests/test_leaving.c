/* Handle every effect; locate and yield; exit and throw (§3.2). */
#include <haft.h>

#include "check.h"

#include <setjmp.h>

HAFT_EFFECT(ask, int, { int question; });
HAFT_EFFECT(unlisted, int64_t, { int64_t value; });
HAFT_EFFECT(failed, void, {
    int code;
    char text[200];
});
HAFT_EFFECT(quiet, void, {});
HAFT_EFFECT(wide, void, { _Alignas(64) int number; });

static int order[16];
static int order_count;
static void note(int *value) {
    order[order_count++] = *value;
}
#define CLEANUP __attribute__((cleanup(note), unused)) int

static int result_of(haft_request_t request) {
    CHECK(haft_finished(request));
    return (int)(intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result;
}

/* ---- Handle every effect ---- */

static void *perform_both(void *unused) {
    (void)unused;
    return (void *)(intptr_t)(HAFT_PERFORM(ask, 1) + HAFT_PERFORM(unlisted, 2));
}

static void handles_all_handles_effects_it_never_heard_of(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(perform_both, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES_ALL);
    CHECK(request.effect == HAFT_ID(ask));
    request = haft_resume(k, HAFT_REPLY(ask, 10), HAFT_HANDLES_ALL);
    CHECK(request.effect == HAFT_ID(unlisted));
    CHECK_EQUAL(*(int64_t *)request.payload, 2);
    CHECK_EQUAL(result_of(haft_resume(k, HAFT_REPLY(unlisted, 20), HAFT_HANDLES_ALL)), 30);
}

/* A wrapper that handles everything and passes it on by yielding the same request further out. */
static void *pass_on(void *inner) {
    haft_request_t request = haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES_ALL);
    while (!haft_finished(request)) {
        uint64_t result[4];
        haft_perform(request.effect, request.payload, request.effect->payload_size, result,
                     request.effect->result_size);
        request =
            haft_resume(inner, haft_reply(request.effect, result, request.effect->result_size),
                        HAFT_HANDLES_ALL);
    }
    return ((HAFT_PAYLOAD(return ) *)request.payload)->result;
}

static void a_handler_of_everything_can_pass_effects_on(void) {
    HAFT_SCOPED haft_fiber_t *inner = haft_fiber_new(perform_both, NULL);
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(pass_on, inner);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask, unlisted));
    CHECK(request.effect == HAFT_ID(ask));
    request = haft_resume(k, HAFT_REPLY(ask, 10), HAFT_HANDLES(ask, unlisted));
    CHECK(request.effect == HAFT_ID(unlisted));
    CHECK_EQUAL(result_of(haft_resume(k, HAFT_REPLY(unlisted, 20), HAFT_HANDLES())), 30);
}

/* ---- Locate, yield ---- */

static void *locate_and_yield(void *unused) {
    (void)unused;
    haft_fiber_t *handler = haft_locate(HAFT_ID(ask));
    int sum = 0;
    for (int i = 0; i < 10; i++)
        sum += HAFT_YIELD(handler, ask, i);
    return (void *)(intptr_t)sum;
}

static void *through_another_fiber(void *unused) {
    HAFT_SCOPED haft_fiber_t *inner = haft_fiber_new(locate_and_yield, unused);
    return (void *)(intptr_t)result_of(haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(failed)));
}

static void yielding_to_a_located_handler_is_performing(void) {
    for (int nested = 0; nested < 2; nested++) {
        HAFT_SCOPED haft_fiber_t *k =
            haft_fiber_new(nested ? through_another_fiber : locate_and_yield, NULL);
        haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
        for (int i = 0; i < 10; i++) {
            CHECK(request.effect == HAFT_ID(ask));
            CHECK_EQUAL(((HAFT_PAYLOAD(ask) *)request.payload)->question, i);
            request = haft_resume(k, HAFT_REPLY(ask, 2 * i), HAFT_HANDLES(ask));
        }
        CHECK_EQUAL(result_of(request), 90);
    }
}

static void *yield_to_self(void *unused) {
    haft_fiber_t *self = haft_fiber_current();
    (void)unused;
    return (void *)(intptr_t)(HAFT_YIELD(self, ask, 1) + HAFT_YIELD(self, unlisted, 2));
}

static void a_yield_reaches_the_resumer_whatever_it_handles(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(yield_to_self, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES());
    CHECK(request.effect == HAFT_ID(ask));
    request = haft_resume(k, HAFT_REPLY(ask, 10), HAFT_HANDLES());
    CHECK(request.effect == HAFT_ID(unlisted));
    CHECK_EQUAL(result_of(haft_resume(k, HAFT_REPLY(unlisted, 20), HAFT_HANDLES())), 30);
}

static int in_place(void *state, HAFT_PAYLOAD(ask) * payload) {
    (void)state;
    return payload->question;
}
HAFT_HANDLER(in_place_handler, NULL, HAFT_TAIL(ask, in_place));
static void *locate_ask(void *unused) {
    (void)unused;
    return haft_locate(HAFT_ID(ask));
}

static void locate_finds_nothing_where_no_fiber_would_be_suspended(void) {
    CHECK(haft_locate(HAFT_ID(ask)) == NULL);
    CHECK(haft_handle(&in_place_handler, NULL, locate_ask, NULL) == NULL);
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(locate_ask, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    CHECK(((HAFT_PAYLOAD(return ) *)request.payload)->result == k);
}

/* ---- Throw, exit ---- */

static void throw_from(int depth) {
    CLEANUP here = depth;
    if (depth > 0) {
        throw_from(depth - 1);
    } else if (depth == 0) {
        HAFT_PAYLOAD(failed) payload = {.code = 77};
        memset(payload.text, 'x', sizeof payload.text);
        haft_throw(HAFT_ID(failed), &payload, sizeof payload);
    }
}
static void *throw_body(void *depth) {
    throw_from((int)(intptr_t)depth);
    return NULL;
}

static void a_throw_runs_the_cleanups_innermost_first_and_keeps_the_payload(void) {
    order_count = 0;
    haft_fiber_t *k = haft_fiber_new(throw_body, (void *)3);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(failed));
    CHECK(request.effect == HAFT_ID(failed));
    HAFT_PAYLOAD(failed) *payload = request.payload;
    CHECK_EQUAL(order_count, 4);
    for (int i = 0; i < 4; i++)
        CHECK_EQUAL(order[i], i);
    CHECK_EQUAL(payload->code, 77);
    for (size_t i = 0; i < sizeof payload->text; i++)
        CHECK(payload->text[i] == 'x');
    CHECK_EQUAL(haft_fiber_state(k), HAFT_FIBER_FINISHED);
    haft_fiber_drop(k);
}

static void *throw_quiet(void *unused) {
    (void)unused;
    HAFT_THROW(quiet);
}

static void *throw_wide(void *number) {
    CLEANUP guard = 1;
    HAFT_THROW(wide, (int)(intptr_t)number);
}
static void a_thrown_payload_is_aligned_as_it_asks(void) {
    enum { SEVERAL = 8 };
    haft_fiber_t *fibers[SEVERAL]; /* whose payloads are kept at once */
    for (intptr_t i = 0; i < SEVERAL; i++) {
        fibers[i] = haft_fiber_new(throw_wide, (void *)i);
        order_count = 0;
        haft_request_t request = haft_resume(fibers[i], HAFT_NO_REPLY, HAFT_HANDLES(wide));
        CHECK(request.effect == HAFT_ID(wide));
        CHECK_EQUAL((uintptr_t)request.payload % 64, 0);
        CHECK_EQUAL(((HAFT_PAYLOAD(wide) *)request.payload)->number, i);
    }
    for (int i = 0; i < SEVERAL; i++)
        haft_fiber_drop(fibers[i]);
}

static void an_effect_without_payload_can_be_thrown(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(throw_quiet, NULL);
    CHECK(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(quiet)).effect == HAFT_ID(quiet));
}

/* Three fibers; the innermost throws to the handler around the outermost. */
static void *chain(void *level_word) {
    int level = (int)(intptr_t)level_word;
    CLEANUP here = level;
    if (level == 3)
        HAFT_THROW(failed, .code = 5);
    HAFT_SCOPED haft_fiber_t *inner = haft_fiber_new(chain, (void *)(intptr_t)(level + 1));
    haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    CHECK(!"unwound");
    return NULL;
}

static void a_throw_unwinds_the_fibers_between_and_frees_those_that_are_scoped(void) {
    order_count = 0;
    size_t before = haft_pool_report().stacks;
    haft_fiber_t *k = haft_fiber_new(chain, (void *)1);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(failed));
    CHECK_EQUAL(((HAFT_PAYLOAD(failed) *)request.payload)->code, 5);
    CHECK_EQUAL(order_count, 3);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(order[i], 3 - i);
    CHECK_EQUAL(haft_pool_report().stacks, before + 1);
    haft_fiber_drop(k);
    CHECK_EQUAL(haft_pool_report().stacks, before);
}

static haft_fiber_t *middle;
static void *exit_middle(void *unused) {
    (void)unused;
    CLEANUP here = 1;
    HAFT_EXIT(middle, unlisted, 99);
}
static void *run_inner(void *unused) {
    CLEANUP here = 2;
    HAFT_SCOPED haft_fiber_t *inner = haft_fiber_new(exit_middle, unused);
    haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES_ALL);
    CHECK(!"unwound");
    return NULL;
}

static void an_exit_ends_the_named_fiber_whatever_is_handled_between(void) {
    order_count = 0;
    middle = haft_fiber_new(run_inner, NULL);
    haft_request_t request = haft_resume(middle, HAFT_NO_REPLY, HAFT_HANDLES());
    CHECK(request.effect == HAFT_ID(unlisted));
    CHECK_EQUAL(*(int64_t *)request.payload, 99);
    CHECK_EQUAL(order_count, 2);
    CHECK_EQUAL(order[0], 1);
    CHECK_EQUAL(order[1], 2);
    CHECK_EQUAL(haft_fiber_state(middle), HAFT_FIBER_FINISHED);
    haft_fiber_drop(middle);
}

static void a_fiber_that_threw_can_be_reset(void) {
    haft_fiber_t *k = haft_fiber_new(throw_body, (void *)0);
    for (int i = 0; i < 100; i++) {
        order_count = 0;
        haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(failed));
        CHECK_EQUAL(((HAFT_PAYLOAD(failed) *)request.payload)->code, 77);
        haft_fiber_reset(k, throw_body, (void *)0);
    }
    haft_fiber_drop(k);
}

static void without_cleanups_a_throw_skips_them(void) {
    order_count = 0;
    haft_fiber_t *k =
        haft_fiber_new_with(&(haft_fiber_options_t){.no_cleanups = true}, throw_body, (void *)3);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(failed));
    CHECK_EQUAL(((HAFT_PAYLOAD(failed) *)request.payload)->code, 77);
    CHECK_EQUAL(order_count, 0);
    haft_fiber_drop(k);
}

/* A cleanup that runs while a throw unwinds may perform and be resumed. */
static void ask_in_cleanup(int *value) {
    *value = HAFT_PERFORM(ask, *value);
}
static void *throw_past_performing_cleanup(void *unused) {
    (void)unused;
    __attribute__((cleanup(ask_in_cleanup), unused)) int local = 31;
    HAFT_THROW(failed, .code = 8);
}

static void a_cleanup_during_a_throw_may_perform(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(throw_past_performing_cleanup, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(failed, ask));
    CHECK(request.effect == HAFT_ID(ask));
    CHECK_EQUAL(((HAFT_PAYLOAD(ask) *)request.payload)->question, 31);
    request = haft_resume(k, HAFT_REPLY(ask, 1), HAFT_HANDLES(failed, ask));
    CHECK(request.effect == HAFT_ID(failed));
    CHECK_EQUAL(((HAFT_PAYLOAD(failed) *)request.payload)->code, 8);
}

/* Code of clang aborts when a cleanup that runs during unwinding is itself unwound, as C++
 * terminates. */
#ifndef __clang__
static void a_fiber_that_waits_in_a_cleanup_of_a_throw_can_be_freed(void) {
    haft_fiber_t *k = haft_fiber_new(throw_past_performing_cleanup, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(failed, ask));
    CHECK(request.effect == HAFT_ID(ask));
    haft_fiber_drop(k);
}

static void throw_in_cleanup(int *value) {
    HAFT_THROW(unlisted, *value);
}
static void *throw_past_throwing_cleanup(void *unused) {
    (void)unused;
    CLEANUP outer = 1;
    __attribute__((cleanup(throw_in_cleanup), unused)) int local = 32;
    HAFT_THROW(failed, .code = 8);
}

static void a_cleanup_during_a_throw_may_throw_something_else(void) {
    order_count = 0;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(throw_past_throwing_cleanup, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(failed, unlisted));
    CHECK(request.effect == HAFT_ID(unlisted));
    CHECK_EQUAL(((HAFT_PAYLOAD(unlisted) *)request.payload)->value, 32);
    CHECK_EQUAL(order_count, 1);
}
#endif

/* ---- A throw that is refused ---- */

static haft_answer_t answer_seven(void *state, HAFT_PAYLOAD(ask) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    return haft_tail_resume(k, HAFT_REPLY(ask, 7));
}
HAFT_HANDLER(answering, NULL, HAFT_GENERAL(ask, answer_seven));

HAFT_EFFECT(stop, void, { int code; });

/* A clause that is unwound after its haft_tail_resume. */
static void throw_stop(int *code) {
    HAFT_THROW(stop, *code);
}
static haft_answer_t promise_and_throw(void *state, HAFT_PAYLOAD(ask) * payload,
                                       haft_resumption_t k) {
    __attribute__((cleanup(throw_stop), unused)) int code = 5;
    (void)state, (void)payload;
    return haft_tail_resume(k, HAFT_REPLY(ask, 7));
}
HAFT_HANDLER(promising, NULL, HAFT_GENERAL(ask, promise_and_throw));
static void *ask_with_cleanup(void *unused) {
    CLEANUP scope = 1;
    HAFT_PERFORM(ask, 1);
    return unused;
}
static void *handle_promising(void *unused) {
    return haft_handle(&promising, NULL, ask_with_cleanup, unused);
}
static void a_clause_unwound_after_its_tail_continue_drops_the_computation(void) {
#ifdef __clang__
    return; /* its cleanups let nothing unwind them */
#endif
    order_count = 0;
    size_t stacks = haft_pool_report().stacks;
    haft_fiber_t *k = haft_fiber_new(handle_promising, NULL);
    CHECK(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(stop)).effect == HAFT_ID(stop));
    haft_fiber_drop(k);
    CHECK_EQUAL(order_count, 1);
    CHECK_EQUAL(haft_pool_report().stacks, stacks);
}

static jmp_buf refused;
static void jump(const haft_error_t *error) {
    longjmp(refused, error->code);
}

static __attribute__((noinline)) int refusal(void) {
    int code = setjmp(refused);
    if (code == 0)
        haft_throw(HAFT_ID(ask), &(HAFT_PAYLOAD(ask)){1}, sizeof(HAFT_PAYLOAD(ask)));
    return code;
}
static void *throw_to_general(void *unused) {
    CLEANUP scope = 1;
    CHECK_EQUAL(refusal(), HAFT_ERROR_CAME_BACK);
    CHECK_EQUAL(order_count, 0);
    CHECK_EQUAL(HAFT_PERFORM(ask, 2), 7);
    return unused;
}

static void a_throw_to_a_clause_that_resumes_changes_nothing(void) {
    order_count = 0;
    size_t stacks = haft_pool_report().stacks;
    haft_error_handler_t *before = haft_set_error_handler(jump);
    CHECK(haft_handle(&answering, NULL, throw_to_general, &refused) == &refused);
    haft_set_error_handler(before);
    CHECK_EQUAL(order_count, 1);
    CHECK_EQUAL(haft_pool_report().stacks, stacks);
}

int main(void) {
    RUN(handles_all_handles_effects_it_never_heard_of);
    RUN(a_clause_unwound_after_its_tail_continue_drops_the_computation);
    RUN(a_handler_of_everything_can_pass_effects_on);
    RUN(yielding_to_a_located_handler_is_performing);
    RUN(a_yield_reaches_the_resumer_whatever_it_handles);
    RUN(locate_finds_nothing_where_no_fiber_would_be_suspended);
    RUN(a_throw_runs_the_cleanups_innermost_first_and_keeps_the_payload);
    RUN(a_thrown_payload_is_aligned_as_it_asks);
    RUN(an_effect_without_payload_can_be_thrown);
    RUN(a_throw_unwinds_the_fibers_between_and_frees_those_that_are_scoped);
    RUN(an_exit_ends_the_named_fiber_whatever_is_handled_between);
    RUN(a_fiber_that_threw_can_be_reset);
    RUN(without_cleanups_a_throw_skips_them);
    RUN(a_cleanup_during_a_throw_may_perform);
    RUN(a_throw_to_a_clause_that_resumes_changes_nothing);
#ifndef __clang__
    RUN(a_fiber_that_waits_in_a_cleanup_of_a_throw_can_be_freed);
    RUN(a_cleanup_during_a_throw_may_throw_something_else);
#endif
    return check_end();
}
/* SPDX-License-Identifier: MIT */
