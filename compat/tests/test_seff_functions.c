/* Every function and macro of seff.h once, and the values that travel through them. */
#include "../../core/tests/check.h"
#include <seff.h>

DEFINE_EFFECT(ask, 0, int64_t, { int64_t question; });
DEFINE_EFFECT(tell, 63, void, {
    const char *text;
    double number;
});
DEFINE_EFFECT(name_of, 7, const char *, {});
DEFINE_EFFECT(is_even, 8, bool, { int value; });
DEFINE_EFFECT(small, 9, int16_t, {});

static seff_coroutine_t *outer, *inner;

static void *performs(void *argument) {
    CHECK(argument == &outer);
    CHECK(PERFORM(ask, 20) == 21);
    PERFORM(tell, "text", 1.5);
    CHECK(strcmp(PERFORM(name_of), "name") == 0);
    CHECK(PERFORM(is_even, 2));
    CHECK(!PERFORM(is_even, 3));
    CHECK(PERFORM(small) == -3);
    return "result";
}

static void effects_and_results(void) {
    effect_set all =
        HANDLES(ask) | HANDLES(tell) | HANDLES(name_of) | HANDLES(is_even) | HANDLES(small);
    seff_coroutine_t *k = seff_coroutine_new(performs, &outer);
    CHECK(k->state == PAUSED && k->state == SUSPENDED);
    seff_request_t request = seff_resume(k, NULL, all);
    int requests = 0;
    for (bool done = false; !done; requests++) {
        CHECK(k->state == (seff_finished(request) ? FINISHED : PAUSED));
        switch (request.effect) {
            CASE_EFFECT(request, ask, {
                request = seff_handle(k, (void *)(payload.question + 1), all);
                CHECK(payload.question == 20);
                break;
            })
            CASE_EFFECT(request, tell, {
                CHECK(payload.number == 1.5);
                request = seff_handle(k, NULL, all);
                break;
            })
            CASE_EFFECT(request, name_of, {
                request = seff_handle(k, "name", all);
                break;
            })
            CASE_EFFECT(request, is_even, {
                request = seff_handle(k, (void *)(uintptr_t)(payload.value % 2 == 0), all);
                break;
            })
            CASE_EFFECT(request, small, {
                request = seff_handle(k, (void *)(intptr_t)-3, all);
                break;
            })
            CASE_RETURN(request, {
                CHECK(strcmp(payload.result, "result") == 0);
                done = true;
                break;
            })
        default:
            CHECK(!"reached");
        }
    }
    CHECK(requests == 7 && request.effect == EFF_ID(return ) && seff_finished(request));
    seff_coroutine_delete(k);
    EFF_RET_T(ask) answer = 42;
    EFF_PAYLOAD_T(ask) question = {answer};
    CHECK(question.question == 42 && EFF_ID(tell) == 63);
}

static void *counts(void *count) {
    for (++*(int *)count;; ++*(int *)count)
        PERFORM(tell, "", 0);
    return NULL;
}

static void local_coroutines(void) {
    int count = 0;
    seff_coroutine_t k;
    CHECK(seff_coroutine_init(&k, counts, &count) && k.state == PAUSED);
    for (int i = 1; i <= 3; i++) {
        seff_request_t request = seff_resume_handling_all(&k, NULL);
        CHECK(request.effect == EFF_ID(tell) && count == i && !seff_finished(request));
    }
    seff_coroutine_reset(&k);
    CHECK(k.state == PAUSED);
    seff_resume_handling_all(&k, NULL);
    CHECK(count == 4);
    seff_coroutine_release(&k);
    CHECK(seff_coroutine_init_sized(&k, counts, &count, 100000));
    seff_resume_handling_all(&k, NULL);
    CHECK(count == 5);
    seff_coroutine_release(&k);
    seff_coroutine_t *heap = seff_coroutine_new_sized(counts, &count, 256);
    CHECK(heap != NULL);
    seff_coroutine_delete(heap);
    seff_coroutine_delete(NULL);
}

static void *located(void *argument) {
    (void)argument;
    CHECK(seff_current_coroutine() == inner);
    CHECK(inner->state == RUNNING && outer->state == RUNNING);
    CHECK(seff_locate_handler(EFF_ID(ask)) == outer);
    CHECK(seff_locate_handler(EFF_ID(tell)) == inner);
    CHECK(seff_locate_handler(EFF_ID(small)) == NULL);
    CHECK(YIELD(outer, ask, 1) == 10);
    CHECK((intptr_t)seff_yield(inner, EFF_ID(small), NULL) == 11);
    EFF_PAYLOAD_T(ask) question = {2};
    CHECK((intptr_t)seff_perform(EFF_ID(ask), &question) == 12);
    EXIT(outer, tell, "leaving", 2.5);
}

static void *around(void *argument) {
    inner = seff_coroutine_new(located, NULL);
    seff_request_t request = seff_resume(inner, NULL, HANDLES(tell));
    CHECK(request.effect == EFF_ID(small) && inner->state == PAUSED);
    seff_resume(inner, (void *)11, HANDLES(tell));
    CHECK(!"reached");
    return argument;
}

static void located_yields_and_exits(void) {
    CHECK(seff_current_coroutine() == NULL && seff_locate_handler(EFF_ID(ask)) == NULL);
    outer = seff_coroutine_new(around, NULL);
    seff_request_t request = seff_resume(outer, NULL, HANDLES(ask) | HANDLES(tell));
    CHECK(request.effect == EFF_ID(ask));
    request = seff_resume(outer, (void *)10, HANDLES(ask));
    CHECK(request.effect == EFF_ID(ask));
    CHECK(((EFF_PAYLOAD_T(ask) *)request.payload)->question == 2);
    request = seff_resume(outer, (void *)12, HANDLES(ask));
    CHECK(request.effect == EFF_ID(tell) && outer->state == FINISHED);
    CHECK(((EFF_PAYLOAD_T(tell) *)request.payload)->number == 2.5);
    seff_coroutine_delete(inner);
    seff_coroutine_delete(outer);
}

static void *throws(void *argument) {
    if (argument != NULL)
        THROW(tell, "thrown", 3.5);
    EFF_PAYLOAD_T(tell) thrown = {"untyped", 4.5};
    seff_throw(EFF_ID(tell), &thrown);
}

static void throwing(void) {
    for (int typed = 0; typed < 2; typed++) {
        seff_coroutine_t *k = seff_coroutine_new(throws, typed ? &outer : NULL);
        seff_request_t request = seff_resume(k, NULL, HANDLES(tell));
        CHECK(request.effect == EFF_ID(tell) && k->state == FINISHED);
        CHECK(((EFF_PAYLOAD_T(tell) *)request.payload)->number == (typed ? 3.5 : 4.5));
        seff_coroutine_reset(k);
        CHECK(k->state == PAUSED);
        CHECK(seff_resume(k, NULL, HANDLES(tell)).effect == EFF_ID(tell));
        seff_coroutine_delete(k);
    }
}

DEFINE_EFFECT(large, 10, void, { int64_t values[50]; });

static int cleanups;
static void clean_up(int *place) {
    cleanups += *place;
}

static void *throws_large(void *argument) {
    __attribute__((unused, cleanup(clean_up))) int place = 1;
    (void)argument;
    THROW(large, {1, 2, 3});
}
static void *around_native_fiber(void *argument) {
    HAFT_SCOPED haft_fiber_t *native = haft_fiber_new(throws_large, NULL);
    haft_resume(native, HAFT_NO_REPLY, HAFT_HANDLES());
    return argument;
}

/* The fibers of haft.h on the way are unwound, and the payload arrives all the same. */
static void throwing_through_other_fibers(void) {
    seff_coroutine_t k;
    CHECK(seff_coroutine_init(&k, around_native_fiber, NULL));
    for (int i = 1; i <= 2; i++) {
        seff_request_t request = seff_resume(&k, NULL, HANDLES(large));
        CHECK(request.effect == EFF_ID(large) && k.state == FINISHED);
        CHECK_EQUAL(((EFF_PAYLOAD_T(large) *)request.payload)->values[2], 3);
        CHECK_EQUAL(cleanups, i);
        seff_coroutine_reset(&k);
    }
    seff_coroutine_release(&k);
}

static void *answer_by_default(void *payload) {
    /* A plain call: what it performs goes to the handlers around the perform. */
    return (void *)(PERFORM(small) + ((EFF_PAYLOAD_T(ask) *)payload)->question);
}
static void *asks(void *argument) {
    (void)argument;
    return (void *)PERFORM(ask, 5);
}

static void default_handlers(void) {
    CHECK(seff_get_default_handler(EFF_ID(ask)) == NULL);
    CHECK(seff_set_default_handler(EFF_ID(ask), answer_by_default) == NULL);
    CHECK(seff_get_default_handler(EFF_ID(ask)) == answer_by_default);
    seff_coroutine_t *k = seff_coroutine_new(asks, NULL);
    seff_request_t request = seff_resume(k, NULL, HANDLES(small));
    CHECK(request.effect == EFF_ID(small));
    request = seff_resume(k, (void *)100, HANDLES(small));
    CHECK(seff_finished(request));
    CHECK_EQUAL(request.payload, 105);
    seff_coroutine_delete(k);
    CHECK(seff_set_default_handler(EFF_ID(ask), NULL) == answer_by_default);
    CHECK(seff_get_default_handler(EFF_ID(ask)) == NULL);
}

int many_arguments(int a, int b, int c, int d, int e, int f, int g, double h, int i);
int many_arguments(int a, int b, int c, int d, int e, int f, int g, double h, int i) {
    return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + (int)h * 8 + i * 9;
}
MAKE_SYSCALL_WRAPPER(int, many_arguments, int a, int b, int c, int d, int e, int f, int g, double h,
                     int i);
MAKE_SYSCALL_WRAPPER(int, puts, const char *s);
MAKE_SYSCALL_WRAPPER(int, snprintf, char *text, size_t size, const char *format, ...);

static void *calls_wrappers(void *argument) {
    char text[32];
    CHECK(snprintf_syscall_wrapper(text, sizeof text, "%d %g %s", 1, 2.5, "three") == 11);
    CHECK(strcmp(text, "1 2.5 three") == 0);
    CHECK(puts_syscall_wrapper("wrapped") >= 0);
    CHECK(many_arguments_syscall_wrapper(1, 0, 0, 0, 0, 0, 10, 100, 1000) == 9871);
    return argument;
}

static void wrappers(void) {
    seff_coroutine_t k;
    CHECK(seff_coroutine_init(&k, calls_wrappers, NULL));
    CHECK(seff_finished(seff_resume(&k, NULL, 0)) && k.state == FINISHED);
    seff_coroutine_release(&k);
    calls_wrappers(NULL);
}

static void *passes_many_masks(void *argument) {
    for (intptr_t i = 0; i < (intptr_t)argument; i++)
        CHECK(PERFORM(ask, i) == i);
    return NULL;
}

/* The set of handled effects may be another at every resume. */
static void changing_sets(void) {
    enum { COUNT = 1000 };
    seff_coroutine_t *k = seff_coroutine_new(passes_many_masks, (void *)COUNT);
    seff_request_t request = seff_resume(k, NULL, HANDLES(ask));
    for (uint64_t i = 0; i < COUNT; i++) {
        CHECK(request.effect == EFF_ID(ask));
        request = seff_resume(k, (void *)i, HANDLES(ask) | (i % 50) * i << 10);
    }
    CHECK(seff_finished(request));
    seff_coroutine_delete(k);
}

int main(void) {
    RUN(effects_and_results);
    RUN(local_coroutines);
    RUN(located_yields_and_exits);
    RUN(throwing);
    RUN(throwing_through_other_fibers);
    RUN(default_handlers);
    RUN(wrappers);
    RUN(changing_sets);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
