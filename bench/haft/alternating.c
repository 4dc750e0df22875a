/* SPDX-License-Identifier: MIT */
/* Alternating effects under one handler: 1, 2, 4, 8, 9, 16, 32 of them.
 *
 *   apart      up to eight have different slots of a scope's cache: the best case
 *   together   all have one slot: the worst
 *
 * each by requests, by tail-resumptive clauses and by general ones; one operation is one perform.
 * And a fiber resumed in turn at 1, 2, 3, 8 places in the program that each write HAFT_HANDLES with
 * the same names (`places`); one operation is one resume.
 */
#include "../harness.h"

#include <haft.h>

#define COUNTS 1, 2, 4, 8, 9, 16, 32

#define EIGHT(X, name, tens)                                                                       \
    X(name##tens##0)                                                                               \
    X(name##tens##1)                                                                               \
    X(name##tens##2)                                                                               \
    X(name##tens##3) X(name##tens##4) X(name##tens##5) X(name##tens##6) X(name##tens##7)
#define ALL(X, name) EIGHT(X, name, 0) EIGHT(X, name, 1) EIGHT(X, name, 2) EIGHT(X, name, 3)

#define DECLARE_TOGETHER(name) HAFT_EFFECT_IN_SLOT(0, name, int64_t, {});
ALL(DECLARE_TOGETHER, together)

/* Names that differ in the last digit have different slots. */
#define DECLARE_APART(name) HAFT_EFFECT(name, int64_t, {});
ALL(DECLARE_APART, apart)

/* ---- Performing ---- */

/* Each effect is performed at a place of its own, in a loop that stops after `count` of them. */
#define PERFORM(name)                                                                              \
    if (at++ == count)                                                                             \
        continue;                                                                                  \
    if (done++ == operations)                                                                      \
        return;                                                                                    \
    (void)HAFT_PERFORM(name);

#define PERFORMER(set)                                                                             \
    static void perform_##set(intptr_t count, uint64_t operations) {                               \
        for (uint64_t done = 0;;) {                                                                \
            intptr_t at = 0;                                                                       \
            ALL(PERFORM, set)                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void *body_##set(void *argument) {                                                      \
        benchmark_t *benchmark = argument;                                                         \
        perform_##set(benchmark->parameter, 64);                                                   \
        benchmark_start(benchmark);                                                                \
        perform_##set(benchmark->parameter, benchmark->operations);                                \
        benchmark_stop(benchmark);                                                                 \
        return NULL;                                                                               \
    }
PERFORMER(apart)
PERFORMER(together)

/* ---- Handling ---- */

#define TAIL_CLAUSE(name)                                                                          \
    static int64_t tail_##name(void *unused, HAFT_PAYLOAD(name) * payload) {                       \
        (void)unused, (void)payload;                                                               \
        return 1;                                                                                  \
    }
#define GENERAL_CLAUSE(name)                                                                       \
    static haft_answer_t general_##name(void *unused, HAFT_PAYLOAD(name) * payload,                \
                                        haft_resumption_t k) {                                     \
        (void)unused, (void)payload;                                                               \
        return haft_tail_resume(k, HAFT_REPLY(name, 1));                                           \
    }
#define TAIL_ENTRY(name) HAFT_TAIL(name, tail_##name),
#define GENERAL_ENTRY(name) HAFT_GENERAL(name, general_##name),

#define HANDLERS(set)                                                                              \
    ALL(TAIL_CLAUSE, set)                                                                          \
    ALL(GENERAL_CLAUSE, set)                                                                       \
    HAFT_HANDLER(tail_handler_##set, NULL, ALL(TAIL_ENTRY, set));                                  \
    HAFT_HANDLER(general_handler_##set, NULL, ALL(GENERAL_ENTRY, set));                            \
    BENCHMARK_SERIES("alternating-tail-" #set, alternating_tail_##set, COUNTS) {                   \
        haft_handle(&tail_handler_##set, NULL, body_##set, benchmark);                             \
    }                                                                                              \
    BENCHMARK_SERIES("alternating-general-" #set, alternating_general_##set, COUNTS) {             \
        haft_handle(&general_handler_##set, NULL, body_##set, benchmark);                          \
    }                                                                                              \
    BENCHMARK_SERIES("alternating-requests-" #set, alternating_requests_##set, COUNTS) {           \
        haft_fiber_t *k = haft_fiber_new(body_##set, benchmark);                                   \
        haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES_ALL);                  \
        int64_t one = 1;                                                                           \
        while (!haft_finished(request))                                                            \
            request =                                                                              \
                haft_resume(k, haft_reply(request.effect, &one, sizeof one), HAFT_HANDLES_ALL);    \
        haft_fiber_drop(k);                                                                        \
    }
HANDLERS(apart)
HANDLERS(together)

/* ---- Places ---- */

static void *perform_for_ever(void *unused) {
    for (;;)
        (void)HAFT_PERFORM(apart00);
    return unused;
}

#define RESUME                                                                                     \
    if (at++ == places)                                                                            \
        continue;                                                                                  \
    if (done++ == operations)                                                                      \
        return;                                                                                    \
    haft_resume(k, HAFT_REPLY(apart00, 1), HAFT_HANDLES(apart00, apart01));

static void resume_by_turns(haft_fiber_t *k, intptr_t places, uint64_t operations) {
    for (uint64_t done = 0;;) {
        intptr_t at = 0;
        RESUME RESUME RESUME RESUME RESUME RESUME RESUME RESUME
    }
}

BENCHMARK_SERIES("places", places, 1, 2, 3, 8) {
    haft_fiber_t *k = haft_fiber_new(perform_for_ever, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(apart00, apart01));
    resume_by_turns(k, benchmark->parameter, 64);
    benchmark_start(benchmark);
    resume_by_turns(k, benchmark->parameter, benchmark->operations);
    benchmark_stop(benchmark);
    haft_fiber_drop(k);
}
