/* SPDX-License-Identifier: MIT */
/* Haft's microbenchmarks: the bare switch of haft.h, a perform with each kind of handler and
 * clause, and a fiber's life. One operation of a round trip is one perform: the fiber is suspended,
 * the request is told apart and answered, the fiber goes on. */
#include "../harness.h"

#include <haft.h>

#include <stdlib.h>

/* ---- The switch alone ----------------------------------------------------------------------- */

static haft_fiber_t sides; /* only the contexts of one */

static NOINLINE __attribute__((noreturn)) void bounce(void) {
    for (hafti_words_t words = {.first = NULL};;)
        words = hafti_switch_out_of(&sides, words.first, 0);
}

/* The floating-point modes as they are, which a switch compares. */
static uint64_t floating_point_control(void) {
    uint64_t control = 0;
#if defined(__x86_64__)
    __asm__ volatile("fnstcw %0" : "=m"(control));
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
#endif
    return control;
}

BENCHMARK("haft/two-switches", two_switches) {
    enum { STACK_SIZE = 64 * 1024 };
    char *stack = malloc(STACK_SIZE);
    if (!stack)
        abort();
    uintptr_t top = ((uintptr_t)stack + STACK_SIZE) & ~(uintptr_t)15;
#if defined(__x86_64__)
    top -= sizeof(void *); /* as if a call had pushed a return address */
#endif
    sides.context = (hafti_context_t){
        .pc = (void *)(uintptr_t)bounce, .sp = (void *)top, .control = floating_point_control()};
    char *counter = stack;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        counter = (char *)hafti_switch_into(&sides, counter + 1).first;
    benchmark_stop(benchmark);
    OPAQUE(counter);
    free(stack);
}

#if defined(__x86_64__)
/* The same if each switch also kept MXCSR apart: stored, compared, and loaded where it differs,
   which it does not here. */
static inline __attribute__((always_inline)) void keep_mxcsr(uint32_t *mine,
                                                             const uint32_t *other) {
    __asm__ volatile("stmxcsr %0" : "=m"(*mine));
    if (*mine != *other)
        __asm__ volatile("ldmxcsr %0" : : "m"(*other));
}

static uint32_t mxcsr_inside, mxcsr_outside;

static NOINLINE __attribute__((noreturn)) void bounce_with_mxcsr(void) {
    for (hafti_words_t words = {.first = NULL};;) {
        keep_mxcsr(&mxcsr_inside, &mxcsr_outside);
        words = hafti_switch_out_of(&sides, words.first, 0);
    }
}

BENCHMARK("haft/two-switches-with-mxcsr", two_switches_with_mxcsr) {
    enum { STACK_SIZE = 64 * 1024 };
    char *stack = malloc(STACK_SIZE);
    if (!stack)
        abort();
    uintptr_t top = (((uintptr_t)stack + STACK_SIZE) & ~(uintptr_t)15) - sizeof(void *);
    sides.context = (hafti_context_t){.pc = (void *)(uintptr_t)bounce_with_mxcsr,
                                      .sp = (void *)top,
                                      .control = floating_point_control()};
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr_inside));
    char *counter = stack;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        keep_mxcsr(&mxcsr_outside, &mxcsr_inside);
        counter = (char *)hafti_switch_into(&sides, counter + 1).first;
    }
    benchmark_stop(benchmark);
    OPAQUE(counter);
    free(stack);
}
#endif

/* ---- Round trips ---------------------------------------------------------------------------- */

HAFT_EFFECT(ask, int64_t, { int64_t value; });
HAFT_EFFECT(unrelated, void, {});

static void *ask_forever(void *unused) {
    (void)unused;
    for (int64_t value = 0;;)
        value = HAFT_PERFORM(ask, value);
    return NULL;
}

static void *yield_forever(void *unused) {
    (void)unused;
    haft_fiber_t *asked = haft_locate(HAFT_ID(ask));
    for (int64_t value = 0;;)
        value = HAFT_YIELD(asked, ask, value);
    return NULL;
}

static inline __attribute__((always_inline)) void measure_answering(benchmark_t *benchmark,
                                                                    void *(*function)(void *)) {
    const haft_handles_t *questions = HAFT_HANDLES(ask);
    haft_fiber_t *k = haft_fiber_new(function, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, questions);
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        if (request.effect != HAFT_ID(ask))
            abort();
        int64_t value = ((HAFT_PAYLOAD(ask) *)request.payload)->value;
        request = haft_resume(k, HAFT_REPLY(ask, value + 1), questions);
    }
    benchmark_stop(benchmark);
    haft_fiber_drop(k);
}

BENCHMARK("haft/round-trip", round_trip) {
    measure_answering(benchmark, ask_forever);
}

BENCHMARK("haft/round-trip-located", round_trip_located) {
    measure_answering(benchmark, yield_forever);
}

/* The body of a handler measures itself, so that installing the handler is not counted. */
static void *measure_asking(void *argument) {
    benchmark_t *benchmark = argument;
    int64_t value = HAFT_PERFORM(ask, 0);
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        value = HAFT_PERFORM(ask, value);
    benchmark_stop(benchmark);
    OPAQUE(value);
    return NULL;
}

static haft_answer_t answer_and_resume(void *unused, HAFT_PAYLOAD(ask) * payload,
                                       haft_resumption_t k) {
    (void)unused;
    return haft_tail_resume(k, HAFT_REPLY(ask, payload->value + 1));
}

static int64_t answer_in_place(void *unused, HAFT_PAYLOAD(ask) * payload) {
    (void)unused;
    return payload->value + 1;
}

HAFT_HANDLER(answering_generally, NULL, HAFT_GENERAL(ask, answer_and_resume));
HAFT_HANDLER(answering_in_place, NULL, HAFT_TAIL(ask, answer_in_place));

BENCHMARK("haft/general-clause", general_clause) {
    haft_handle(&answering_generally, NULL, measure_asking, benchmark);
}

BENCHMARK("haft/tail-resumptive", tail_resumptive) {
    haft_handle(&answering_in_place, NULL, measure_asking, benchmark);
}

/* The same on a fiber that handles something else, so that the handler is not the innermost. */
static void *measure_asking_on_fiber(void *benchmark) {
    haft_fiber_t *k = haft_fiber_new(measure_asking, benchmark);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(unrelated));
    haft_fiber_drop(k);
    return NULL;
}

BENCHMARK("haft/tail-resumptive-across-fiber", tail_resumptive_across_fiber) {
    haft_handle(&answering_in_place, NULL, measure_asking_on_fiber, benchmark);
}

BENCHMARK("haft/default-handler", default_handler) {
    HAFT_SET_DEFAULT(ask, answer_in_place);
    measure_asking(benchmark);
    HAFT_SET_DEFAULT(ask, NULL);
}

/* Eight effects in turn: what it costs that a program uses more effects than a cache has room. */
HAFT_EFFECT(ask1, int64_t, { int64_t value; });
HAFT_EFFECT(ask2, int64_t, { int64_t value; });
HAFT_EFFECT(ask3, int64_t, { int64_t value; });
HAFT_EFFECT(ask4, int64_t, { int64_t value; });
HAFT_EFFECT(ask5, int64_t, { int64_t value; });
HAFT_EFFECT(ask6, int64_t, { int64_t value; });
HAFT_EFFECT(ask7, int64_t, { int64_t value; });
HAFT_EFFECT(ask8, int64_t, { int64_t value; });

#define ANSWER(effect)                                                                             \
    static int64_t answer_##effect(void *unused, HAFT_PAYLOAD(effect) * payload) {                 \
        (void)unused;                                                                              \
        return payload->value + 1;                                                                 \
    }
ANSWER(ask1)
ANSWER(ask2)
ANSWER(ask3)
ANSWER(ask4)
ANSWER(ask5)
ANSWER(ask6)
ANSWER(ask7)
ANSWER(ask8)

HAFT_HANDLER(answering_eight, NULL, HAFT_TAIL(ask1, answer_ask1), HAFT_TAIL(ask2, answer_ask2),
             HAFT_TAIL(ask3, answer_ask3), HAFT_TAIL(ask4, answer_ask4),
             HAFT_TAIL(ask5, answer_ask5), HAFT_TAIL(ask6, answer_ask6),
             HAFT_TAIL(ask7, answer_ask7), HAFT_TAIL(ask8, answer_ask8));

static void *measure_eight(void *argument) {
    benchmark_t *benchmark = argument;
    int64_t value = 0;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i += 8) {
        value = HAFT_PERFORM(ask1, value);
        value = HAFT_PERFORM(ask2, value);
        value = HAFT_PERFORM(ask3, value);
        value = HAFT_PERFORM(ask4, value);
        value = HAFT_PERFORM(ask5, value);
        value = HAFT_PERFORM(ask6, value);
        value = HAFT_PERFORM(ask7, value);
        value = HAFT_PERFORM(ask8, value);
    }
    benchmark_stop(benchmark);
    OPAQUE(value);
    return NULL;
}

BENCHMARK("haft/tail-resumptive-eight-effects", tail_resumptive_eight_effects) {
    haft_handle(&answering_eight, NULL, measure_eight, benchmark);
}

/* ---- Lives of fibers and handlers ----------------------------------------------------------- */

static void *return_at_once(void *unused) {
    BARRIER();
    return unused;
}

static void *ask_once(void *unused) {
    HAFT_PERFORM(ask, 0);
    return unused;
}

static void *throw_once(void *unused) {
    (void)unused;
    HAFT_THROW(ask, 0);
}

static inline __attribute__((always_inline)) void
measure_lives(benchmark_t *benchmark, bool no_cleanups, void *(*function)(void *)) {
    const haft_fiber_options_t options = {.no_cleanups = no_cleanups};
    const haft_handles_t *questions = HAFT_HANDLES(ask);
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        haft_fiber_t *k = haft_fiber_new_with(&options, function, NULL);
        haft_resume(k, HAFT_NO_REPLY, questions);
        haft_fiber_drop(k);
    }
    benchmark_stop(benchmark);
}

BENCHMARK("haft/create-run-free", create_run_free) {
    const haft_handles_t *questions = HAFT_HANDLES(ask);
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        haft_fiber_t *k = haft_fiber_new(return_at_once, NULL);
        haft_resume(k, HAFT_NO_REPLY, questions);
        haft_fiber_drop(k);
    }
    benchmark_stop(benchmark);
}

BENCHMARK("haft/create-perform-resume-free", create_perform_resume_free) {
    const haft_handles_t *questions = HAFT_HANDLES(ask);
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        haft_fiber_t *k = haft_fiber_new(ask_once, NULL);
        haft_resume(k, HAFT_NO_REPLY, questions);
        haft_resume(k, HAFT_REPLY(ask, 1), questions);
        haft_fiber_drop(k);
    }
    benchmark_stop(benchmark);
}

BENCHMARK("haft/create-perform-drop", create_perform_drop) {
    measure_lives(benchmark, false, ask_once);
}

BENCHMARK("haft/create-perform-drop-no-cleanups", create_perform_drop_no_cleanups) {
    measure_lives(benchmark, true, ask_once);
}

BENCHMARK("haft/create-throw-free", create_throw_free) {
    measure_lives(benchmark, false, throw_once);
}

BENCHMARK("haft/create-throw-free-no-cleanups", create_throw_free_no_cleanups) {
    measure_lives(benchmark, true, throw_once);
}

static inline __attribute__((always_inline)) void measure_handling(benchmark_t *benchmark,
                                                                   const haft_handler_t *handler) {
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        haft_handle(handler, NULL, return_at_once, NULL);
    benchmark_stop(benchmark);
}

BENCHMARK("haft/handle-and-return-general", handle_and_return_general) {
    measure_handling(benchmark, &answering_generally);
}

BENCHMARK("haft/handle-and-return-tail", handle_and_return_tail) {
    measure_handling(benchmark, &answering_in_place);
}

/* ---- A copy --------------------------------------------------------------------------------- */

HAFT_EFFECT(keep, int64_t, {});
static haft_resumption_t kept;
static haft_answer_t keep_it(void *state, HAFT_PAYLOAD(keep) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    kept = k;
    return haft_answer(NULL);
}
HAFT_HANDLER(keeping, NULL, HAFT_GENERAL(keep, keep_it));

/* With what the library has there, some 256 bytes. */
static void *keep_frames(void *unused) {
    char frame[64], *low = frame;
    (void)unused;
    OPAQUE(low);
    return (void *)(intptr_t)(HAFT_PERFORM(keep) + 1);
}

BENCHMARK("haft/copy-and-resume", copy_and_resume) {
    intptr_t sum = 0;
    haft_handle(&keeping, NULL, keep_frames, NULL);
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        sum += (intptr_t)haft_resumption_resume(haft_resumption_copy(kept),
                                                HAFT_REPLY(keep, (int64_t)i));
    benchmark_stop(benchmark);
    OPAQUE(sum);
    haft_resumption_drop(kept);
}
