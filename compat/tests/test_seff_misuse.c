/* Misuse that is undefined in libseff is an error here, whose message has what is wrong. */
#include "../../core/tests/check.h"
#include <seff.h>

DEFINE_EFFECT(pause_here, 3, void, {});
DEFINE_EFFECT(elsewhere, 4, int64_t, { int value; });
HAFT_EFFECT(unnumbered, void, {});

static seff_coroutine_t *k;

static void *pauses(void *argument) {
    PERFORM(pause_here);
    return argument;
}
static void *resumes_itself(void *argument) {
    (void)argument;
    seff_resume(k, NULL, 0);
    return NULL;
}
static void *deletes_itself(void *argument) {
    seff_coroutine_delete(k);
    return argument;
}
static void *performs_elsewhere(void *argument) {
    PERFORM(elsewhere, 1);
    return argument;
}
static void *throws_elsewhere(void *argument) {
    (void)argument;
    THROW(elsewhere, 1);
}
static void *yields_unnumbered(void *argument) {
    HAFT_YIELD(k->fiber, unnumbered);
    return argument;
}

static void run(seff_start_fun_t *function) {
    k = seff_coroutine_new(function, NULL);
    seff_resume(k, NULL, HANDLES(pause_here));
}

static void resume_running(void) {
    run(resumes_itself);
}
static void resume_finished(void) {
    run(pauses);
    seff_resume(k, NULL, HANDLES(pause_here));
    seff_resume(k, NULL, HANDLES(pause_here));
}
static void *exits(void *argument) {
    (void)argument;
    EXIT(k, pause_here);
}
static void resume_exited(void) {
    run(exits);
    seff_resume(k, NULL, HANDLES(pause_here));
}
static void resume_released(void) {
    seff_coroutine_t local;
    seff_coroutine_init(&local, pauses, NULL);
    seff_coroutine_release(&local);
    seff_resume(&local, NULL, 0);
}
static void delete_twice(void) {
    run(pauses);
    seff_coroutine_delete(k);
    seff_coroutine_delete(k);
}
static void resume_deleted(void) {
    run(pauses);
    seff_coroutine_delete(k);
    seff_resume(k, NULL, 0);
}
static void resume_null(void) {
    seff_coroutine_t *volatile none = NULL; /* of which the compiler knows nothing */
    seff_resume(none, NULL, 0);
}
static void yield_null(void) {
    seff_yield(NULL, EFF_ID(pause_here), NULL);
}
static void delete_running(void) {
    run(deletes_itself);
}
static void yield_not_around(void) {
    run(pauses);
    seff_yield(k, EFF_ID(pause_here), NULL);
}
static void exit_not_around(void) {
    run(pauses);
    seff_exit(k, EFF_ID(pause_here), NULL);
}
static void perform_unhandled(void) {
    run(performs_elsewhere);
}
static void throw_unhandled(void) {
    run(throws_elsewhere);
}
/* Not constants: compilers warn of what they can see. */
static volatile effect_id wrong_number = 64, number_of_return = EFF_ID(return );
static void perform_wrong_number(void) {
    seff_perform(wrong_number, NULL);
}
static void perform_return(void) {
    seff_perform(number_of_return, NULL);
}
static void default_for_wrong_number(void) {
    seff_set_default_handler(100, NULL);
}
static void yield_without_a_number(void) {
    run(yields_unnumbered);
}
static void *comes_back(void *payload) {
    return payload;
}
static void default_comes_back(void) {
    seff_set_default_handler(EFF_ID(elsewhere), comes_back);
    run(throws_elsewhere);
}
static void no_function(void) {
    seff_coroutine_new(NULL, NULL);
}
static void *native(void *argument) {
    int payload = 1;
    seff_throw(EFF_ID(elsewhere), &payload);
    return argument;
}
static void *around_native(void *argument) {
    haft_resume(haft_fiber_new(native, NULL), HAFT_NO_REPLY, HAFT_HANDLES());
    return argument;
}
static void throw_through_native(void) {
    k = seff_coroutine_new(around_native, NULL);
    seff_resume(k, NULL, HANDLES(elsewhere));
}

/* The program's own error handler is told as well. */
static void says(const haft_error_t *error) {
    fprintf(stderr, "told of error %d\n", error->code);
}
static void error_handler_is_told(void) {
    haft_set_error_handler(says);
    seff_perform(wrong_number, NULL);
}

static void misuse_is_reported(void) {
    CHECK_ABORTS(resume_running, "cannot be resumed: it is running");
    CHECK_ABORTS(resume_finished, "cannot be resumed: it has finished");
    CHECK_ABORTS(resume_exited, "cannot be resumed: it has finished");
    CHECK_ABORTS(resume_released, "a coroutine that has been released or deleted");
    CHECK_ABORTS(resume_deleted, "a coroutine that has been released or deleted");
    CHECK_ABORTS(delete_twice, "a coroutine that has been released or deleted");
    CHECK_FAULTS(resume_null, "");
    CHECK_ABORTS(yield_null, "seff_yield was given no coroutine (NULL)");
    CHECK_ABORTS(delete_running, "it is running");
    CHECK_ABORTS(yield_not_around, "The effect 'pause_here' cannot be sent out of");
    CHECK_ABORTS(exit_not_around, "The effect 'pause_here' cannot end");
    CHECK_ABORTS(perform_unhandled, "Nobody handles the effect 'elsewhere'");
    CHECK_ABORTS(throw_unhandled, "test_seff_misuse.c:6");
    CHECK_ABORTS(default_comes_back, "The effect 'elsewhere'");
    CHECK_ABORTS(perform_wrong_number, "64 is not the number of an effect");
    CHECK_ABORTS(perform_return, "18446744073709551615 is not the number of an effect");
    CHECK_ABORTS(default_for_wrong_number, "100 is not the number of an effect");
    CHECK_ABORTS(yield_without_a_number, "the effect 'unnumbered'");
    CHECK_ABORTS(no_function, "needs a function");
    CHECK_ABORTS(throw_through_native, "Use EXIT or THROW");
    CHECK_ABORTS(error_handler_is_told, "told of error");
}

int main(void) {
    RUN(misuse_is_reported);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
