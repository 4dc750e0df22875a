/*
 * Faults of other libraries of this kind, a test each. The end of this file names the faults that
 * other files of this folder test.
 */
#include <haft.h>

#include <fenv.h>
#include <pthread.h>

#include "check.h"

HAFT_EFFECT(ask, int, { int question; });
HAFT_EFFECT(wait, void, {});
HAFT_EFFECT(failed, void, { int code; });

#define NUMBER(value) ((void *)(intptr_t)(value))
#define VALUE(pointer) ((int)(intptr_t)(pointer))

static void *wait_once(void *unused) {
    HAFT_PERFORM(wait);
    return unused;
}

/* ---- Stacks ---- */

/* Segments made to measure for every small frame make recursion forty times slower; a fixed stack
   without a guard overflows into the heap. Here a thousand frames are a thousand frames. */
static __attribute__((noinline)) int at_the_bottom(void) {
    return HAFT_PERFORM(ask, 0); /* apart: instrumented, it makes for a frame of a kilobyte */
}
static __attribute__((noinline)) int descend(int depth) {
    volatile int here = depth;
    return depth == 0 ? at_the_bottom() : descend(depth - 1) + (here == depth);
}
static void *descend_body(void *depth) {
    return NUMBER(descend(VALUE(depth)));
}

static void recursion_a_thousand_frames_deep_needs_no_setting(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(descend_body, NUMBER(1000));
    CHECK(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask)).effect == HAFT_ID(ask));
    haft_request_t request = haft_resume(k, HAFT_REPLY(ask, 1), HAFT_HANDLES(ask));
    CHECK_EQUAL(VALUE(((HAFT_PAYLOAD(return ) *)request.payload)->result), 1001);
}

static volatile uintptr_t nowhere = 8;
static void crash_after_start(void) {
    haft_fiber_drop(haft_fiber_new(wait_once, NULL));
    *(volatile int *)nowhere = 1;
}
static void after_start_up_an_ordinary_crash_still_ends_the_process(void) {
    CHECK_FAULTS(crash_after_start, "");
}

/* ---- Unhandled ---- */

static void *perform_and_go_on(void *unused) {
    int result = HAFT_PERFORM(ask, 1);
    fprintf(stderr, "went on with %d", result);
    return unused;
}
static void perform_unhandled(void) {
    haft_resume(haft_fiber_new(perform_and_go_on, NULL), HAFT_NO_REPLY, HAFT_HANDLES());
}
static void an_effect_nobody_handles_is_no_silent_exit_and_no_null_result(void) {
    check_child_t child = check_child(perform_unhandled);
    CHECK_EQUAL(child.signal, SIGABRT);
    CHECK_CONTAINS(child.output, "Nobody handles the effect 'ask'");
    CHECK(strstr(child.output, "went on") == NULL);
}

/* ---- Finished ---- */

static void resume_finished(void) {
    haft_fiber_t *k = haft_fiber_new(wait_once, NULL);
    for (int i = 0; i < 3; i++)
        haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
static void a_finished_coroutine_that_is_resumed_runs_no_stale_code(void) {
    CHECK_ABORTS(resume_finished, "cannot be resumed: it has finished");
}

/* ---- Dropped ---- */

static int cleaned;
static void count_cleanup(int *one) {
    cleaned += *one;
}
static haft_answer_t keep_nothing(void *state, HAFT_PAYLOAD(ask) * payload, haft_resumption_t k) {
    (void)payload;
    haft_resumption_drop(k);
    return haft_answer(state);
}
HAFT_HANDLER(dropping, NULL, HAFT_GENERAL(ask, keep_nothing));
static void *ask_with_cleanup(void *unused) {
    __attribute__((cleanup(count_cleanup), unused)) int one = 1;
    HAFT_PERFORM(ask, 1);
    return unused;
}

static void a_dropped_resumption_leaks_nothing_and_its_cleanups_run(void) {
    size_t before = haft_pool_report().stacks;
    cleaned = 0;
    for (int i = 0; i < 1000; i++)
        haft_handle(&dropping, NULL, ask_with_cleanup, NULL);
    CHECK_EQUAL(cleaned, 1000);
    CHECK_EQUAL(haft_pool_report().stacks, before);
}

static void *fail_deep(void *level) {
    __attribute__((cleanup(count_cleanup), unused)) int one = 1;
    if (VALUE(level) == 0)
        HAFT_THROW(failed, 3);
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(fail_deep, NUMBER(VALUE(level) - 1));
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
    return NULL;
}
static void throwing_across_coroutines_leaks_none_of_them(void) {
    size_t before = haft_pool_report().stacks;
    cleaned = 0;
    for (int i = 0; i < 100; i++) {
        HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(fail_deep, NUMBER(9));
        haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(failed));
        CHECK(request.effect == HAFT_ID(failed));
    }
    CHECK_EQUAL(cleaned, 1000);
    CHECK_EQUAL(haft_pool_report().stacks, before);
}

/* ---- Number of live computations ---- */

static void live(int count) {
    haft_fiber_t **fibers = malloc((size_t)count * sizeof *fibers);
    for (int i = 0; i < count; i++) {
        fibers[i] = haft_fiber_new(wait_once, NUMBER(i));
        CHECK(haft_resume(fibers[i], HAFT_NO_REPLY, HAFT_HANDLES(wait)).effect == HAFT_ID(wait));
    }
    for (int i = 0; i < count; i++) {
        CHECK(haft_finished(haft_resume(fibers[i], HAFT_NO_REPLY, HAFT_HANDLES(wait))));
        haft_fiber_drop(fibers[i]);
    }
    free(fibers);
}

/* Others end at 32,700: two mappings each. Where the kernel splits mappings at guards, so do we; it
   is then an error with a message. */
static void a_hundred_thousand_computations_live_at_once(void) {
    if (check_bare())
        live(100 * 1000);
}
static bool guards_split(void) {
    long lines = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    for (int c; file != NULL && (c = getc(file)) != EOF;)
        lines += c == '\n';
    if (file != NULL)
        fclose(file);
    return lines > 1000;
}

/* ---- Nested handlers ---- */

static int add_one(void *state, HAFT_PAYLOAD(ask) * payload) {
    return *(int *)state > 1 ? HAFT_PERFORM(ask, payload->question) + 1 : 1;
}
HAFT_HANDLER(adding, NULL, HAFT_TAIL(ask, add_one));
static int nested;
static void *nest(void *level) {
    int state = VALUE(level);
    return state > nested ? NUMBER(HAFT_PERFORM(ask, 0))
                          : haft_handle(&adding, &state, nest, NUMBER(state + 1));
}
static void thousands_of_nested_tail_resumptive_handlers_of_one_effect_end(void) {
    nested = check_bare() ? 3000 : 400;
    /* Compilers that do not optimise make frames of kilobytes. */
    haft_fiber_options_t options = {.stack_size = 64 << 20};
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new_with(&options, nest, NUMBER(1));
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES());
    CHECK_EQUAL(VALUE(((HAFT_PAYLOAD(return ) *)request.payload)->result), nested);
}

/* ---- Floating point ---- */

static void *round_upwards(void *unused) {
    CHECK_EQUAL(fegetround(), FE_TONEAREST);
    fesetround(FE_UPWARD);
    HAFT_PERFORM(wait);
    CHECK_EQUAL(fegetround(), FE_UPWARD);
    volatile double one = 1, three = 3;
    CHECK(one / three * three > 1);
    HAFT_PERFORM(wait);
    CHECK_EQUAL(fegetround(), FE_UPWARD);
    return unused;
}
static void a_rounding_mode_set_in_a_fiber_stays_in_it(void) {
    if (RUNNING_ON_VALGRIND)
        return; /* which rounds to nearest in part */
    HAFT_SCOPED haft_fiber_t *a = haft_fiber_new(round_upwards, NULL);
    HAFT_SCOPED haft_fiber_t *b = haft_fiber_new(round_upwards, NULL);
    for (int i = 0; i < 3; i++) {
        haft_resume(a, HAFT_NO_REPLY, HAFT_HANDLES(wait));
        CHECK_EQUAL(fegetround(), FE_TONEAREST);
        haft_resume(b, HAFT_NO_REPLY, HAFT_HANDLES(wait));
        CHECK_EQUAL(fegetround(), FE_TONEAREST);
    }
    CHECK_EQUAL(haft_fiber_state(a), HAFT_FIBER_FINISHED);
    CHECK_EQUAL(haft_fiber_state(b), HAFT_FIBER_FINISHED);
}

/* ---- The stack's protection ---- */

static void no_memory_of_the_process_is_writable_and_executable(void) {
    live(1);
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512];
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        CHECK(strstr(line, "rwx") == NULL);
    if (file != NULL)
        fclose(file);
}

int main(void) {
    /* Instrumented frames are larger. */
    if (CHECK_THREAD_SANITIZER)
        haft_set_stack_size((size_t)8 << 20);
    RUN(recursion_a_thousand_frames_deep_needs_no_setting);
    RUN(after_start_up_an_ordinary_crash_still_ends_the_process);
    RUN(an_effect_nobody_handles_is_no_silent_exit_and_no_null_result);
    RUN(a_finished_coroutine_that_is_resumed_runs_no_stale_code);
    RUN(a_dropped_resumption_leaks_nothing_and_its_cleanups_run);
    RUN(throwing_across_coroutines_leaks_none_of_them);
    RUN(thousands_of_nested_tail_resumptive_handlers_of_one_effect_end);
    RUN(a_rounding_mode_set_in_a_fiber_stays_in_it);
    if (!RUNNING_ON_VALGRIND)
        RUN(no_memory_of_the_process_is_writable_and_executable);
    live(check_bare() ? 2000 : 100);
    if (!guards_split())
        RUN(a_hundred_thousand_computations_live_at_once);
    return check_end();
}

/*
 * Overflow runs into the heap below           test_stack_overflow
 * More than 64 effects                        test_effects: a_thousand_effects_are_told_apart
 * The same tag in two libraries               test_effect_identity, test_misuse:
 *                                             one_name_declared_in_two_ways_is_reported
 * An exception leaves a coroutine             test_exceptions
 * Caught exceptions are not a coroutine's own test_exceptions: each_fiber_handles_its_own_exception
 * One handler stack for the whole process     test_threads:
 *                                  threads_that_each_use_only_their_own_handlers_do_not_meet
 * The header in two source files              test_effect_identity
 * Tail resumption grows memory                test_deep_handlers:
 *                          general_clauses_that_end_in_continuing_run_in_constant_space
 */
/* SPDX-License-Identifier: MIT */
