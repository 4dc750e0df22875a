/* Effects that nobody handles: default handlers, process-wide and typed (§2.5). */
#include <haft.h>

#include <pthread.h>

#include "check.h"

typedef struct pair {
    double first, second;
} pair_t;

HAFT_EFFECT(nothing_but_a_default, int64_t, {});
HAFT_EFFECT(print, int, { const char *text; });
HAFT_EFFECT(two, pair_t, { double value; });
HAFT_EFFECT(inner, int, {});

static int printed;
static int print_default(void *unused, HAFT_PAYLOAD(print) * payload) {
    CHECK(unused == NULL);
    printed += (int)strlen(payload->text);
    return printed;
}
static pair_t two_default(void *unused, HAFT_PAYLOAD(two) * payload) {
    (void)unused;
    return (pair_t){payload->value, payload->value * 2};
}

static void *print_body(void *text) {
    return (void *)(intptr_t)HAFT_PERFORM(print, text);
}

static void an_unhandled_effect_runs_its_default(void) {
    HAFT_SET_DEFAULT(print, print_default);
    printed = 0;
    CHECK_EQUAL(HAFT_PERFORM(print, "four"), 4);
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(print_body, "on a fiber");
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(two));
    CHECK(haft_finished(request));
    CHECK_EQUAL(printed, 14);
    HAFT_SET_DEFAULT(print, NULL);
}

static void a_handler_overrides_the_default(void) {
    HAFT_SET_DEFAULT(print, print_default);
    printed = 0;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(print_body, "text");
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(print));
    CHECK(request.effect == HAFT_ID(print));
    haft_resume(k, HAFT_REPLY(print, -1), HAFT_HANDLES(print));
    CHECK_EQUAL(printed, 0);
    HAFT_SET_DEFAULT(print, NULL);
}

static void a_default_returns_a_result_of_any_type(void) {
    HAFT_SET_DEFAULT(two, two_default);
    pair_t pair = HAFT_PERFORM(two, 1.5);
    CHECK(pair.first == 1.5 && pair.second == 3);
    HAFT_PAYLOAD(two) payload = {2.5};
    haft_perform(HAFT_ID(two), &payload, sizeof payload, &pair, sizeof pair);
    CHECK(pair.first == 2.5 && pair.second == 5);
    HAFT_SET_DEFAULT(two, NULL);
}

static void a_default_can_be_asked_for_replaced_and_taken_away(void) {
    CHECK(haft_default(HAFT_ID(print)) == NULL);
    CHECK(haft_set_default(HAFT_ID(print), (haft_function_t *)print_default) == NULL);
    CHECK(haft_default(HAFT_ID(print)) == (haft_function_t *)print_default);
    CHECK(haft_set_default(HAFT_ID(print), NULL) == (haft_function_t *)print_default);
    CHECK(haft_default(HAFT_ID(print)) == NULL);
}

static int louder(void *unused, HAFT_PAYLOAD(print) * payload) {
    (void)unused;
    return 1000 + (int)strlen(payload->text);
}
static void replaced_defaults_are_seen_at_once(void) {
    HAFT_SET_DEFAULT(print, print_default);
    printed = 0;
    CHECK_EQUAL(HAFT_PERFORM(print, "a"), 1);
    HAFT_SET_DEFAULT(print, louder);
    CHECK_EQUAL(HAFT_PERFORM(print, "a"), 1001);
    HAFT_SET_DEFAULT(print, NULL);
}

static int inner_default(void *unused, HAFT_PAYLOAD(inner) * payload) {
    (void)unused, (void)payload;
    return 5;
}
static int print_with_inner(void *unused, HAFT_PAYLOAD(print) * payload) {
    (void)unused, (void)payload;
    CHECK(haft_fiber_current() == NULL);
    return HAFT_PERFORM(inner);
}

static void a_default_runs_outside_all_handlers(void) {
    HAFT_SET_DEFAULT(print, print_with_inner);
    HAFT_SET_DEFAULT(inner, inner_default);
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(print_body, "text");
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(inner));
    CHECK(haft_finished(request));
    CHECK_EQUAL((intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result, 5);
    HAFT_SET_DEFAULT(print, NULL);
    HAFT_SET_DEFAULT(inner, NULL);
}

static void *print_on_thread(void *unused) {
    (void)unused;
    return (void *)(intptr_t)HAFT_PERFORM(print, "four");
}
static void defaults_are_of_the_whole_process(void) {
    HAFT_SET_DEFAULT(print, louder);
    pthread_t thread;
    void *result = NULL;
    CHECK_EQUAL(pthread_create(&thread, NULL, print_on_thread, NULL), 0);
    pthread_join(thread, &result);
    CHECK_EQUAL((intptr_t)result, 1004);
    HAFT_SET_DEFAULT(print, NULL);
}

static _Noreturn int throw_inner(void *unused, HAFT_PAYLOAD(print) * payload) {
    (void)unused, (void)payload;
    exit(0);
}
static void throw_to_default(void) {
    HAFT_SET_DEFAULT(print, throw_inner);
    HAFT_THROW(print, "text");
}
static void a_throw_that_nobody_handles_runs_the_default(void) {
    CHECK_SUCCEEDS(throw_to_default);
}

static void *see_what_others_left(void *unused) {
    for (int i = 0; i < HAFTI_CACHE_SLOTS; i++)
        CHECK(hafti_here().current->cache[i].key == 0);
    return unused;
}
static void *use_a_default_first(void *effect) {
    int64_t result;
    for (int i = 0; i < 3; i++) /* nothing else starts the thread */
        haft_perform(effect, NULL, 0, &result, sizeof result);
    CHECK_EQUAL(result, 12);
    CHECK(hafti_here().current ==
          &hafti_thread()->root); /* it has started, and finds what it has found */
    return NULL;
}
static int64_t twelve(void *unused, HAFT_PAYLOAD(nothing_but_a_default) * payload) {
    (void)unused, (void)payload;
    return 12;
}
static void threads_whose_first_use_is_a_default_share_nothing(void) {
    HAFT_SET_DEFAULT(nothing_but_a_default, twelve);
    void *(*functions[])(void *) = {use_a_default_first, see_what_others_left, use_a_default_first};
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, functions[i], HAFT_ID(nothing_but_a_default));
        pthread_join(thread, NULL);
    }
}

int main(void) {
    RUN(threads_whose_first_use_is_a_default_share_nothing);
    RUN(an_unhandled_effect_runs_its_default);
    RUN(a_handler_overrides_the_default);
    RUN(a_default_returns_a_result_of_any_type);
    RUN(a_default_can_be_asked_for_replaced_and_taken_away);
    RUN(replaced_defaults_are_seen_at_once);
    RUN(a_default_runs_outside_all_handlers);
    RUN(defaults_are_of_the_whole_process);
    RUN(a_throw_that_nobody_handles_runs_the_default);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
