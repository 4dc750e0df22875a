/* Error handlers that leave by longjmp: afterwards everything is as if the mistake had not been
   made, and the same mistake is reported again. */
#include <haft.h>

#include <setjmp.h>
#include <signal.h>

#include "check.h"
#include "teaching.h"

HAFT_EFFECT(ask, int, { int question; });
HAFT_EFFECT(wait, void, {});
HAFT_EFFECT(nobody, int, { int question; });

static jmp_buf place;
static int reported;
static haft_error_code_t code;

static void leave(const haft_error_t *error) {
    reported++;
    code = error->code;
    longjmp(place, 1);
}

/* Whether the function ends in an error. */
static bool fails(void (*function)(void)) {
    if (setjmp(place) != 0)
        return true;
    function();
    return false;
}

static int add_one(void *state, HAFT_PAYLOAD(ask) * payload) {
    (void)state;
    return payload->question + 1;
}
HAFT_HANDLER(adding, NULL, HAFT_TAIL(ask, add_one));

/* ---- An effect that nobody handles ---- */

static void perform_nobody(void) {
    HAFT_PERFORM(nobody, 1);
}
static void perform_untyped(void) {
    int payload = 1;
    int result;
    haft_perform(HAFT_ID(nobody), &payload, sizeof payload, &result, sizeof result);
}
static void throw_nobody(void) {
    HAFT_THROW(nobody, 1);
}

static void (*const performs[])(void) = {perform_nobody, perform_untyped, throw_nobody,
                                         perform_nobody, throw_nobody,    perform_untyped};
enum { PERFORMS = sizeof performs / sizeof performs[0] };

static void nobody_handles(void) {
    haft_fiber_t *before = haft_fiber_current();
    for (int i = 0; i < PERFORMS; i++) {
        reported = 0;
        CHECK(fails(performs[i]));
        CHECK_EQUAL(reported, 1);
        CHECK_EQUAL(code, HAFT_ERROR_UNHANDLED);
        CHECK(haft_fiber_current() == before);
        CHECK_EQUAL(HAFT_PERFORM(ask, i), i + 1);
        CHECK(haft_locate(HAFT_ID(nobody)) == NULL);
    }
}
static void *nobody_handles_it(void *unused) {
    nobody_handles();
    return unused;
}
static void *nobody_handles_on_fibers(void *unused) {
    nobody_handles();
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(nobody_handles_it, NULL);
    CHECK(haft_finished(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait))));
    return haft_handle(&adding, NULL, nobody_handles_it, unused);
}

static void an_unhandled_effect_leaves_the_handlers_as_they_were(void) {
    haft_set_error_handler(leave);
    haft_handle(&adding, NULL, nobody_handles_on_fibers, NULL);
    haft_set_error_handler(NULL);
}

static int answer(void *unused, HAFT_PAYLOAD(nobody) * payload) {
    (void)unused;
    return payload->question + 100;
}
static void *take_the_default_away(void *unused) {
    haft_fiber_t *before = haft_fiber_current();
    for (int i = 0; i < 3; i++) {
        HAFT_SET_DEFAULT(nobody, answer);
        CHECK(haft_default(HAFT_ID(nobody)) == (haft_function_t *)answer);
        CHECK_EQUAL(HAFT_PERFORM(nobody, i), i + 100);
        HAFT_SET_DEFAULT(nobody, NULL);
        CHECK(haft_default(HAFT_ID(nobody)) == NULL);
        nobody_handles();
        CHECK(haft_fiber_current() == before);
    }
    return unused;
}
static void *take_it_away_on_a_fiber(void *unused) {
    take_the_default_away(unused);
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(take_the_default_away, NULL);
    CHECK(haft_finished(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait))));
    return unused;
}

static void a_default_that_was_taken_away_leaves_the_handlers_as_they_were(void) {
    haft_set_error_handler(leave);
    haft_handle(&adding, NULL, take_it_away_on_a_fiber, NULL);
    haft_set_error_handler(NULL);
}

/* ---- Mistakes that a library on top finds ---- */

static char told[64];
static void note_and_leave(const haft_error_t *error) {
    snprintf(told, sizeof told, "%s", error->message);
    leave(error);
}
static void ask_a_library(void) {
    char message[64];
    snprintf(message, sizeof message, "%d sheep are too many.", 1001);
    haft_misused(&(haft_error_t){.code = HAFT_ERROR_OF_LIBRARY, .message = message});
}
static void *ask_on_a_fiber(void *unused) {
    for (int i = 0; i < 3; i++) {
        code = 0;
        CHECK(fails(ask_a_library));
        CHECK_EQUAL(code, HAFT_ERROR_OF_LIBRARY);
        CHECK(strcmp(told, "1001 sheep are too many.") == 0);
    }
    return unused;
}

static void a_library_on_top_reports_mistakes_to_the_same_handler(void) {
    haft_set_error_handler(note_and_leave);
    ask_on_a_fiber(NULL);
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(ask_on_a_fiber, NULL);
    CHECK(haft_finished(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait))));
    haft_set_error_handler(NULL);
}

static void a_refused_call_says_why_and_returns(void) {
    haft_set_error_handler(note_refusal);
    REFUSES(haft_dump_on_signal(SIGSEGV) < 0 ? -errno : 0, EINVAL,
            "haft_dump_on_signal: signal 11 cannot be caught, or a fault sends it: write another, "
            "such as SIGUSR1");
    haft_set_error_handler(NULL);
}

int main(void) {
    RUN(a_refused_call_says_why_and_returns);
    RUN(a_library_on_top_reports_mistakes_to_the_same_handler);
    RUN(an_unhandled_effect_leaves_the_handlers_as_they_were);
    RUN(a_default_that_was_taken_away_leaves_the_handlers_as_they_were);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
