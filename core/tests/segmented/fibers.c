/* Segmented fibers: everything that fibers do, from code on small and on many segments. This file
   is -fsplit-stack code; unaware.c is not. */
#include "../check.h"
#include "unaware.h"

#include <haft/observe.h>
#include <haft/segments.h>

#include <pthread.h>
#include <string.h>

HAFT_EFFECT(ask, long, { long question; });
HAFT_EFFECT(tell, void, { long fact; });
HAFT_EFFECT(stop, void, { long why; });
typedef struct table {
    long words[20];
} table_t;
HAFT_EFFECT(large, table_t, { long words[20]; });

HAFT_FOREIGN(long, sum_foreign, unaware_sum, (long, first), (long, second))
HAFT_FOREIGN(long, call_foreign, unaware_call, (long (*)(long), function), (long, argument))
HAFT_FOREIGN(haft_effect_t *, resume_foreign, unaware_resume, (haft_fiber_t *, fiber),
             (const haft_handles_t *, handles))

typedef void *body_t(void *);
enum kind { POOL, FIXED, SEGMENTED, KINDS };

static haft_fiber_t *make(enum kind kind, body_t *body, void *argument, void *memory) {
    enum { SIZE = 64 * 1024 };
    haft_fiber_options_t options = {.segmented = kind == SEGMENTED,
                                    .memory = kind == FIXED ? memory : NULL,
                                    .memory_size = kind == FIXED ? SIZE : 0};
    return haft_fiber_new_with(&options, body, argument);
}

static haft_fiber_t *segmented(body_t *body, void *argument) {
    return make(SEGMENTED, body, argument, NULL);
}

/* Calls function(argument) from so many frames below. */
static __attribute__((noinline)) long at_depth(long depth, long (*function)(long), long argument) {
    volatile char frame[100];
    frame[0] = 1;
    if (depth == 0)
        return function(argument);
    return at_depth(depth - 1, function, argument) + frame[0] - 1;
}

/* Answers every question with ten times itself. */
static long answer_all(haft_fiber_t *fiber) {
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    while (!haft_finished(request)) {
        long question = ((HAFT_PAYLOAD(ask) *)request.payload)->question;
        request = haft_resume(fiber, HAFT_REPLY(ask, question * 10), HAFT_HANDLES(ask));
    }
    return (long)((haft_payload_return *)request.payload)->result;
}

static long run_segmented(body_t *body, void *argument) {
    haft_fiber_t *fiber = segmented(body, argument);
    long answer = answer_all(fiber);
    haft_fiber_drop(fiber);
    return answer;
}

/* ---- Performing ---- */

static long perform_ask(long question) {
    return HAFT_PERFORM(ask, question);
}

static void *asks(void *argument) {
    long sum = 0;
    for (long i = 1; i <= 3; i++)
        sum += HAFT_PERFORM(ask, i);
    return (void *)(sum + (long)argument);
}

static void *asks_at_depths(void *argument) {
    (void)argument;
    long sum = 0;
    for (long depth = 0; depth < 200; depth++)
        sum += at_depth(depth, perform_ask, 1);
    return (void *)sum;
}

static haft_answer_t copy_it(void *state, HAFT_PAYLOAD(ask) * payload, haft_resumption_t k) {
    (void)state;
    (void)haft_resumption_copy(k);
    return haft_tail_resume(k, HAFT_REPLY(ask, payload->question));
}
HAFT_HANDLER(copying, NULL, HAFT_GENERAL(ask, copy_it));
static void copy_segments(void) {
    haft_fiber_options_t options = {.segmented = true};
    (void)haft_handle_with(&options, &copying, NULL, asks, NULL);
}
static void segments_are_not_copied(void) {
    CHECK_ABORTS(copy_segments, "because its stack is segmented.");
}

static int performs_told;
static void count_performs(const haft_observed_t *what) {
    performs_told += what->kind == HAFT_OBSERVED_PERFORM && what->effect == HAFT_ID(ask);
}
static void *answer_inside(void *unused) {
    (void)unused;
    return (void *)run_segmented(asks, NULL);
}
static void an_observer_is_told_of_switches_between_segmented_fibers(void) {
    haft_fiber_t *fiber = segmented(answer_inside, NULL);
    haft_observe(count_performs);
    CHECK_EQUAL(answer_all(fiber), 60);
    haft_observe(NULL);
    CHECK_EQUAL(performs_told, 3);
    haft_fiber_drop(fiber);
}

static void effects_are_performed_from_any_segment(void) {
    CHECK_EQUAL(run_segmented(asks, (void *)5), 65);
    CHECK_EQUAL(run_segmented(asks_at_depths, NULL), 2000);
}

static void *asks_once(void *argument) {
    (void)HAFT_PERFORM(ask, 1);
    return argument;
}

static void *resumes_one(void *unused) {
    haft_fiber_t *fiber = segmented(asks_once, NULL);
    haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    haft_resume(fiber, HAFT_REPLY(ask, 1), HAFT_HANDLES(ask));
    haft_fiber_drop(fiber);
    return unused;
}
/* To be called before there is an observer: from then on every switch tells. */
static void a_fiber_that_resumes_another_takes_no_second_segment(void) {
    CHECK_EQUAL(run_segmented(resumes_one, NULL), 0); /* the sets have numbers afterwards */
    size_t segments = haft_segments_statistics().taken;
    CHECK_EQUAL(run_segmented(resumes_one, NULL), 0);
#ifdef __OPTIMIZE__
    CHECK_EQUAL(haft_segments_statistics().taken, segments);
#else
    (void)segments;
#endif
}

static void a_suspended_fiber_takes_little_memory(void) {
    enum { COUNT = 1000 };
    static haft_fiber_t *fibers[COUNT];
    haft_pool_report_t before = haft_pool_report();
    size_t segments = haft_segments_statistics().taken;
    for (int i = 0; i < COUNT; i++) {
        fibers[i] = segmented(asks_once, NULL);
        haft_resume(fibers[i], HAFT_NO_REPLY, HAFT_HANDLES(ask));
    }
    haft_pool_report_t after = haft_pool_report();
    CHECK_EQUAL(after.stacks - before.stacks, COUNT);
    CHECK(check_bare() ? after.resident - before.resident <= COUNT * 1228 : true);
#ifdef __OPTIMIZE__
    CHECK_EQUAL(haft_segments_statistics().taken, segments);
#else
    (void)segments;
#endif
    for (int i = 0; i < COUNT; i++) {
        CHECK(haft_finished(haft_resume(fibers[i], HAFT_REPLY(ask, 1), HAFT_HANDLES(ask))));
        haft_fiber_drop(fibers[i]);
    }
}

static long perform_untyped(long question) {
    HAFT_PAYLOAD(ask) payload = {question};
    long answer = 0;
    haft_perform(HAFT_ID(ask), &payload, sizeof payload, &answer, sizeof answer);
    return answer;
}

static long yield_to_located(long question) {
    return HAFT_YIELD(haft_locate(HAFT_ID(ask)), ask, question);
}

static void *performs_in_every_way(void *argument) {
    (void)argument;
    long sum = 0;
    for (long depth = 0; depth < 50; depth++)
        sum += at_depth(depth, perform_untyped, 1) + at_depth(depth, yield_to_located, 2);
    return (void *)sum;
}

static void untyped_performs_and_yields_work(void) {
    CHECK_EQUAL(run_segmented(performs_in_every_way, NULL), 1500);
}

static void *performs_large(void *argument) {
    (void)argument;
    table_t result = HAFT_PERFORM(large, {1, 2, 3});
    return (void *)(result.words[0] + result.words[19]);
}

static void large_payloads_and_results_travel(void) {
    haft_fiber_t *fiber = segmented(performs_large, NULL);
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(large));
    CHECK_EQUAL(((HAFT_PAYLOAD(large) *)request.payload)->words[1], 2);
    table_t result = {{40}};
    result.words[19] = 2;
    request = haft_resume(fiber, HAFT_REPLY(large, result), HAFT_HANDLES(large));
    CHECK_EQUAL(((haft_payload_return *)request.payload)->result, 42);
    haft_fiber_drop(fiber);
}

static long default_answer(void *unused, HAFT_PAYLOAD(ask) * payload) {
    (void)unused;
    return payload->question + 1;
}

static void *asks_nobody(void *argument) {
    (void)argument;
    return (void *)at_depth(60, perform_ask, 41);
}

static void default_handlers_run_in_place(void) {
    HAFT_SET_DEFAULT(ask, default_answer);
    haft_fiber_t *fiber = segmented(asks_nobody, NULL);
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(tell));
    CHECK_EQUAL(((haft_payload_return *)request.payload)->result, 42);
    haft_fiber_drop(fiber);
    HAFT_SET_DEFAULT(ask, NULL);
}

static void perform_to_nobody(void) {
    haft_fiber_t *fiber = segmented(asks_nobody, NULL);
    haft_fiber_set_name(fiber, "lonely");
    haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(tell));
}

static void an_unhandled_effect_is_reported(void) {
    CHECK_ABORTS(perform_to_nobody, "Nobody handles the effect 'ask'");
    CHECK_ABORTS(perform_to_nobody, "performed on the fiber 'lonely'");
}

/* ---- Deep handlers ---- */

static long tail_ask(void *state, HAFT_PAYLOAD(ask) * payload) {
    return payload->question + *(long *)state;
}
static haft_answer_t general_tell(void *state, HAFT_PAYLOAD(tell) * payload, haft_resumption_t k) {
    *(long *)state += payload->fact;
    return haft_tail_resume(k, HAFT_NO_REPLY);
}
static void *never_stop(void *state, HAFT_PAYLOAD(stop) * payload) {
    return (void *)(*(long *)state + payload->why);
}
HAFT_HANDLER(in_place_handler, NULL, HAFT_TAIL(ask, tail_ask));
HAFT_HANDLER(full_handler, NULL, HAFT_TAIL(ask, tail_ask), HAFT_GENERAL(tell, general_tell),
             HAFT_NEVER(stop, never_stop));

static int cleaned;
static void clean(int *unused) {
    (void)unused;
    cleaned++;
}

static long throw_stop(long why) {
    __attribute__((cleanup(clean), unused)) int cleanup = 0;
    HAFT_THROW(stop, why);
}

static long perform_stop(long why) {
    __attribute__((cleanup(clean), unused)) int cleanup = 0;
    HAFT_PERFORM(stop, why);
    return 0;
}

static void *handled(void *argument) {
    long sum = 0;
    for (long depth = 0; depth < 30; depth++)
        sum += at_depth(depth, perform_ask, depth);
    HAFT_PERFORM(tell, sum);
    if (argument != NULL)
        at_depth(40, argument == (void *)1 ? throw_stop : perform_stop, 1000000);
    return (void *)sum;
}

static void *handles_on_a_fiber(void *argument) {
    (void)argument;
    long sum = 0;
    for (int i = 0; i < 3; i++) {
        long state = 1;
        sum += (long)haft_handle(&in_place_handler, &state, (body_t *)asks, NULL);
        haft_fiber_options_t options = {.segmented = i == 1};
        state = 0;
        sum += (long)haft_handle_with(&options, &full_handler, &state, handled, NULL);
        sum += state;
        state = 0;
        sum += (long)haft_handle_with(&options, &full_handler, &state, handled, (void *)1);
        state = 0;
        sum += (long)haft_handle_with(&options, &full_handler, &state, handled, (void *)2);
    }
    return (void *)sum;
}

static void deep_handlers_work(void) {
    cleaned = 0;
    long each = 9 + 435 + 435 + 1000435 + 1000435;
    CHECK_EQUAL((long)handles_on_a_fiber(NULL), 3 * each);
    CHECK_EQUAL(run_segmented(handles_on_a_fiber, NULL), 3 * each);
    CHECK_EQUAL(cleaned, 12);
}

/* ---- Fibers in fibers ---- */

typedef struct nest {
    int kinds; /* the kind of every level, a digit each to the base of KINDS */
    int depth;
    char *memory;
} nest_t;

static void *nested(void *argument) {
    nest_t *nest = argument;
    long sum = at_depth(nest->depth * 3, perform_ask, 1);
    if (nest->depth > 0) {
        nest_t inner = {nest->kinds / KINDS, nest->depth - 1, nest->memory + 64 * 1024};
        haft_fiber_t *fiber = make((enum kind)(nest->kinds % KINDS), nested, &inner, nest->memory);
        haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(tell));
        while (!haft_finished(request)) {
            sum += ((HAFT_PAYLOAD(tell) *)request.payload)->fact;
            sum += at_depth(5, perform_ask, 100);
            request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(tell));
        }
        sum += (long)((haft_payload_return *)request.payload)->result;
        haft_fiber_drop(fiber);
    }
    HAFT_PERFORM(tell, 7);
    return (void *)(sum + at_depth(2, perform_ask, 1));
}

static long tail_tell_count;
static void tail_tell(void *state, HAFT_PAYLOAD(tell) * payload) {
    (void)state;
    tail_tell_count += payload->fact;
}
HAFT_HANDLER(tell_handler, NULL, HAFT_TAIL(tell, tail_tell));

static void *nested_under_tell(void *argument) {
    return haft_handle(&tell_handler, NULL, nested, argument);
}

static void fibers_of_all_kinds_nest(void) {
    enum { DEPTH = 3, WAYS = 27 };
    char *memory = malloc(DEPTH * 64 * 1024);
    for (int kinds = 0; kinds < WAYS * KINDS; kinds++) {
        nest_t nest = {kinds / KINDS, DEPTH, memory};
        char *own = malloc(64 * 1024);
        haft_fiber_t *fiber = make((enum kind)(kinds % KINDS), nested_under_tell, &nest, own);
        CHECK_EQUAL(answer_all(fiber), DEPTH * (20 + 7 + 1000) + 20);
        haft_fiber_drop(fiber);
        free(own);
    }
    free(memory);
}

/* A clause that runs in place, on a segmented fiber, resumes a fiber that the thread's own code has
   resumed. */
static haft_fiber_t *shared;
static long clause_resumes(void *state, HAFT_PAYLOAD(ask) * payload) {
    (void)state;
    haft_request_t request = haft_resume(shared, HAFT_NO_REPLY, HAFT_HANDLES(tell));
    return payload->question + ((HAFT_PAYLOAD(tell) *)request.payload)->fact;
}
HAFT_HANDLER(resuming_handler, NULL, HAFT_TAIL(ask, clause_resumes));

static __attribute__((noinline)) void tell_at_depth(long fact) {
    volatile char frame[300];
    frame[0] = 1;
    if (fact < 0)
        tell_at_depth(fact + 1);
    else
        HAFT_PERFORM(tell, fact + frame[0]);
}

static void *tells_for_ever(void *argument) {
    for (;;) {
        tell_at_depth(-20);
        tell_at_depth(0);
    }
    return argument;
}

static void *in_resuming_handler(void *argument) {
    haft_fiber_t *inner = segmented(asks, NULL);
    for (int i = 0; i < 5; i++)
        haft_resume(shared, HAFT_NO_REPLY, HAFT_HANDLES(tell));
    haft_request_t request = haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES());
    *(long *)argument = (long)((haft_payload_return *)request.payload)->result;
    haft_fiber_drop(inner);
    for (int i = 0; i < 5; i++)
        haft_resume(shared, HAFT_NO_REPLY, HAFT_HANDLES(tell));
    return NULL;
}

static void clauses_in_place_resume_fibers_of_the_thread(void) {
    for (int kind = 0; kind < 2; kind++) {
        shared = make(kind == 0 ? POOL : SEGMENTED, tells_for_ever, NULL, NULL);
        for (int i = 0; i < 5; i++)
            haft_resume(shared, HAFT_NO_REPLY, HAFT_HANDLES(tell));
        long result = 0;
        haft_handle(&resuming_handler, NULL, in_resuming_handler, &result);
        CHECK_EQUAL(result, 9);
        haft_fiber_drop(shared);
    }
}

/* ---- Ending ---- */

static long ask_with_cleanup(long question) {
    __attribute__((cleanup(clean), unused)) int cleanup = 0;
    return HAFT_PERFORM(ask, question);
}

static void *asks_deep_with_cleanups(void *argument) {
    __attribute__((cleanup(clean), unused)) int cleanup = 0;
    at_depth((long)argument, ask_with_cleanup, 1);
    return NULL;
}

typedef struct chain {
    int kinds, depth;
    char *memory;
} chain_t;

static void *suspended_inside(void *argument) {
    __attribute__((cleanup(clean), unused)) int cleanup = 0;
    chain_t *chain = argument;
    if (chain->depth == 0)
        return asks_deep_with_cleanups((void *)30);
    chain_t inner = {chain->kinds / KINDS, chain->depth - 1, chain->memory + 64 * 1024};
    HAFT_SCOPED haft_fiber_t *fiber =
        make((enum kind)(chain->kinds % KINDS), suspended_inside, &inner, chain->memory);
    haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES());
    return NULL;
}

static void dropping_unwinds_fibers_of_all_kinds(void) {
    enum { DEPTH = 3, WAYS = 27 };
    char *memory = malloc((DEPTH + 1) * 64 * 1024);
    for (int kinds = 0; kinds < WAYS * KINDS; kinds++) {
        cleaned = 0;
        chain_t chain = {kinds / KINDS, DEPTH, memory + 64 * 1024};
        haft_fiber_t *fiber = make((enum kind)(kinds % KINDS), suspended_inside, &chain, memory);
        CHECK(haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ask)).effect == HAFT_ID(ask));
        haft_fiber_drop(fiber);
        CHECK_EQUAL(cleaned, DEPTH + 3);
    }
    free(memory);
}

static void *throws_deep(void *argument) {
    at_depth((long)argument, throw_stop, 5);
    return NULL;
}

static void throwing_unwinds_segments(void) {
    for (long depth = 0; depth < 60; depth += 7)
        for (int no_cleanups = 0; no_cleanups < 2; no_cleanups++) {
            haft_fiber_options_t options = {.segmented = true, .no_cleanups = no_cleanups};
            cleaned = 0;
            haft_fiber_t *fiber = haft_fiber_new_with(&options, throws_deep, (void *)depth);
            haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(stop));
            CHECK(request.effect == HAFT_ID(stop));
            CHECK_EQUAL(((HAFT_PAYLOAD(stop) *)request.payload)->why, 5);
            CHECK_EQUAL(cleaned, !no_cleanups);
            haft_fiber_reset(fiber, asks, (void *)1);
            CHECK_EQUAL(answer_all(fiber), 61);
            haft_fiber_drop(fiber);
        }
}

static haft_reply_t raise_answer(void *argument) {
    return HAFT_REPLY(ask, perform_ask(1) + (long)argument);
}

static void discontinuing_calls_on_the_fiber(void) {
    haft_fiber_t *fiber = segmented(asks, NULL);
    haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    haft_request_t request = haft_discontinue(fiber, raise_answer, (void *)100, HAFT_HANDLES(ask));
    CHECK(request.effect == HAFT_ID(ask));
    haft_resume(fiber, HAFT_REPLY(ask, 1), HAFT_HANDLES(ask));
    haft_resume(fiber, HAFT_REPLY(ask, 1), HAFT_HANDLES(ask));
    request = haft_resume(fiber, HAFT_REPLY(ask, 1), HAFT_HANDLES(ask));
    CHECK_EQUAL(((haft_payload_return *)request.payload)->result, 103);
    haft_fiber_drop(fiber);
}

static void segments_are_given_back(void) {
    haft_segments_statistics_t before = haft_segments_statistics();
    for (int i = 0; i < 100; i++)
        CHECK_EQUAL(run_segmented(asks_at_depths, NULL), 2000);
    haft_segments_statistics_t after = haft_segments_statistics();
    CHECK(after.taken > before.taken);
    CHECK_EQUAL(after.taken - before.taken, after.given - before.given);
    CHECK_EQUAL(after.mapped, before.mapped);
}

static __attribute__((noinline)) long ask_in_a_wide_frame(void) {
    volatile char frame[70 * 1024];
    frame[0] = 1;
    __asm__ volatile("" : : "r"(frame) : "memory"); /* all of it is used */
    return HAFT_PERFORM(ask, 1) + frame[0];
}

static void *asks_in_a_wide_frame(void *argument) {
    (void)argument;
    return (void *)ask_in_a_wide_frame();
}

static void ask_in_wide_frames_at_once(void) {
    enum { COUNT = 300 };
    haft_fiber_t *fibers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        fibers[i] = segmented(asks_in_a_wide_frame, NULL);
        haft_resume(fibers[i], HAFT_NO_REPLY, HAFT_HANDLES(ask));
    }
    for (int i = 0; i < COUNT; i++)
        haft_fiber_drop(fibers[i]);
}

static void segments_of_fibers_that_are_made_again_wait_for_them(void) {
    ask_in_wide_frames_at_once();
    size_t mapped = haft_segments_statistics().mapped;
    ask_in_wide_frames_at_once();
    CHECK_EQUAL(haft_segments_statistics().mapped, mapped);
    CHECK(mapped >= 300 * 70 * 1024);
}

/* From a stack of so many small frames. */
static __attribute__((noinline)) long ask_below(long frames) {
    volatile char frame = 1;
    return (frames == 0 ? HAFT_PERFORM(ask, 1) : ask_below(frames - 1)) + frame - 1;
}

static void *asks_below(void *frames) {
    return (void *)ask_below((long)frames);
}

/* The first segments of fibers lie side by side. */
static void dropping_writes_to_no_other_fiber(void) {
    enum { COUNT = 64, MOST = 2048 };
    static haft_fiber_t *fibers[COUNT];
    static char before[COUNT][MOST];
    for (long i = 0; i < COUNT; i++) {
        fibers[i] = segmented(asks_below, (void *)(i % 16));
        haft_resume(fibers[i], HAFT_NO_REPLY, HAFT_HANDLES(ask));
    }
    for (int i = 0; i < COUNT; i++) {
        for (int j = i; j < COUNT; j++) {
            size_t size = (size_t)((char *)(fibers[j] + 1) - fibers[j]->low);
            CHECK(size <= MOST);
            memcpy(before[j], fibers[j]->low, size);
        }
        haft_fiber_drop(fibers[i]);
        for (int j = i + 1; j < COUNT; j++)
            CHECK(memcmp(before[j], fibers[j]->low,
                         (size_t)((char *)(fibers[j] + 1) - fibers[j]->low)) == 0);
    }
}

/* ---- Functions that do not check their stack ---- */

static long foreign_call(long depth) {
    return sum_foreign(depth, 1);
}

static void *calls_foreign(void *argument) {
    long sum = 0;
    for (long depth = 0; depth < 100; depth++)
        sum += at_depth(depth, foreign_call, depth) + perform_ask(0);
    return (void *)(sum + (long)argument);
}

static void foreign_functions_run_where_there_is_room(void) {
    CHECK_EQUAL((long)sum_foreign(1, 2), 3);
    CHECK_EQUAL(run_segmented(calls_foreign, NULL), 5050);
}

/* A segmented fiber inside a function called from a segmented fiber, and so on. */
static long nested_foreign(long level) {
    long sum = (long)sum_foreign(level, 0);
    if (level > 0) {
        haft_fiber_t *fiber = segmented(asks, NULL);
        CHECK(resume_foreign(fiber, HAFT_HANDLES(ask)) == HAFT_ID(ask));
        sum += call_foreign(nested_foreign, level - 1);
        haft_fiber_t *inner =
            segmented((body_t *)(void (*)(void))nested_foreign, (void *)(level - 1));
        CHECK(resume_foreign(inner, HAFT_HANDLES(ask)) == HAFT_ID(return ));
        haft_fiber_drop(inner);
        haft_fiber_drop(fiber);
    }
    return sum + (long)sum_foreign(0, 0);
}

static void *nests_foreign(void *argument) {
    return (void *)at_depth(10, nested_foreign, (long)argument);
}

static void foreign_functions_resume_fibers(void) {
    CHECK_EQUAL(run_segmented(nests_foreign, (void *)6), 21);
}

static long stop_anyway(long why) {
    HAFT_THROW(stop, why);
}

static void *thrower(void *argument) {
    at_depth(10, stop_anyway, (long)argument);
    return NULL;
}

static long throw_through(long why) {
    __attribute__((cleanup(clean), unused)) int cleanup = 0;
    haft_fiber_options_t options = {.segmented = why & 1, .no_cleanups = why >= 2};
    haft_fiber_t *fiber = haft_fiber_new_with(&options, thrower, (void *)why);
    resume_foreign(fiber, HAFT_HANDLES());
    return 0;
}

static void *throws_through(void *argument) {
    at_depth(10, throw_through, (long)argument);
    return NULL;
}

static void throwing_passes_through_foreign_functions(void) {
    for (int i = 0; i < 400; i++) {
        long why = i & 3;
        cleaned = 0;
        haft_fiber_options_t options = {.segmented = true, .no_cleanups = why >= 2};
        haft_fiber_t *fiber = haft_fiber_new_with(&options, throws_through, (void *)why);
        CHECK(haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(stop)).effect == HAFT_ID(stop));
        CHECK_EQUAL(cleaned, why < 2);
        haft_fiber_drop(fiber);
    }
    foreign_functions_resume_fibers();
}

static long suspend_from_foreign(long kind) {
    if (kind == 0)
        return call_foreign(perform_ask, 1);
    haft_fiber_t *fiber = make(kind == 1 ? POOL : SEGMENTED, asks, NULL, NULL);
    resume_foreign(fiber, HAFT_HANDLES());
    return 0;
}

/* The fiber's cached handler of `ask`, found without a foreign function in between, does not hold
   inside one. */
static void *suspends_from_foreign(void *argument) {
    perform_ask(0);
    return (void *)at_depth(5, suspend_from_foreign, (long)argument);
}

static long suspending_kind;
static void suspend_in_foreign(void) {
    run_segmented(suspends_from_foreign, (void *)suspending_kind);
}

static void suspending_inside_a_foreign_function_is_an_error(void) {
    for (suspending_kind = 0; suspending_kind < 3; suspending_kind++)
        CHECK_ABORTS(suspend_in_foreign, "called through HAFT_FOREIGN");
}

static void *calls_unaware(void *argument) {
    unaware_fill();
    return (void *)perform_ask((long)argument);
}

static long foreign_without_end(long depth) {
    return call_foreign(foreign_without_end, depth + 1) + 1;
}

static void *calls_without_end(void *argument) {
    return (void *)call_foreign(foreign_without_end, (long)argument);
}

static void overflow_a_segment(void) {
    haft_fiber_t *highest = NULL; /* the others lie below: that memory is not the system's */
    for (int i = 0; i < 8; i++) {
        haft_fiber_t *fiber = segmented(calls_unaware, NULL);
        highest = fiber > highest ? fiber : highest;
    }
    haft_resume(highest, HAFT_NO_REPLY, HAFT_HANDLES(ask));
}

static void recurse_in_foreign(void) {
    run_segmented(calls_without_end, NULL);
}

static void overflows_are_reported(void) {
    check_child_t child = check_child(overflow_a_segment);
    CHECK(child.signal == SIGABRT || child.signal == SIGSEGV);
    CHECK_CONTAINS(child.output, "stack overflow in a segmented fiber");
    CHECK_FAULTS(recurse_in_foreign, "called through HAFT_FOREIGN has overflowed");
}

/* ---- Looking ---- */

static void suspended_segments_can_be_looked_at(void) {
    haft_fiber_t *fiber = segmented(asks_deep_with_cleanups, (void *)100);
    haft_fiber_set_name(fiber, "looked at");
    haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    void *addresses[300];
    int count = haft_fiber_backtrace(fiber, addresses, 300);
    CHECK(count >= 100 && count < 200);
    CHECK(unaware_dump_contains("suspended  waits on ask  'looked at'"));
    haft_fiber_drop(fiber);
}

static void give_memory_and_ask_for_segments(void) {
    static _Alignas(64) char memory[4096];
    haft_fiber_options_t options = {
        .segmented = true, .memory = memory, .memory_size = sizeof memory};
    (void)haft_fiber_new_with(&options, asks, NULL);
}

static void memory_of_the_caller_is_refused(void) {
    CHECK_ABORTS(give_memory_and_ask_for_segments, "cannot lie in memory of the caller");
}

/* ---- Threads ---- */

static long ask_and_work(long question) {
    long sum = 0;
    for (int i = 0; i < 20; i++) {
        sum += HAFT_PERFORM(ask, question);
        sum += sum_foreign(1, 0) - 1;
        sum += at_depth(50, foreign_call, 0) - 1;
    }
    return sum;
}

static void *works_at_depth(void *argument) {
    return (void *)at_depth((long)argument, ask_and_work, 1);
}

static void *resume_once(void *fiber) {
    haft_request_t request = haft_resume(fiber, HAFT_REPLY(ask, 10), HAFT_HANDLES(ask));
    return haft_finished(request) ? ((haft_payload_return *)request.payload)->result : NULL;
}

static void fibers_move_between_threads(void) {
    for (long depth = 0; depth < 100; depth += 30) {
        haft_fiber_t *fiber = segmented(works_at_depth, (void *)depth);
        haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ask));
        void *result = NULL;
        for (int i = 0; i < 20; i++) {
            pthread_t thread;
            if (i % 3 == 0) {
                result = resume_once(fiber);
                continue;
            }
            CHECK(pthread_create(&thread, NULL, resume_once, fiber) == 0);
            pthread_join(thread, &result);
        }
        CHECK_EQUAL(result, 200);
        haft_fiber_drop(fiber);
    }
}

static void *many_at_once(void *argument) {
    for (int i = 0; i < check_times(200); i++) {
        CHECK_EQUAL(run_segmented(asks_at_depths, NULL), 2000);
        CHECK_EQUAL(run_segmented(nests_foreign, (void *)2), 3);
    }
    return argument;
}

static void threads_use_segments_at_once(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, many_at_once, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

int main(void) {
    RUN(a_fiber_that_resumes_another_takes_no_second_segment);
    RUN(effects_are_performed_from_any_segment);
    RUN(an_observer_is_told_of_switches_between_segmented_fibers);
    RUN(a_suspended_fiber_takes_little_memory);
    RUN(untyped_performs_and_yields_work);
    RUN(large_payloads_and_results_travel);
    RUN(default_handlers_run_in_place);
    RUN(an_unhandled_effect_is_reported);
    RUN(deep_handlers_work);
    RUN(fibers_of_all_kinds_nest);
    RUN(clauses_in_place_resume_fibers_of_the_thread);
    RUN(dropping_unwinds_fibers_of_all_kinds);
    RUN(throwing_unwinds_segments);
    RUN(discontinuing_calls_on_the_fiber);
    RUN(segments_are_given_back);
    RUN(segments_of_fibers_that_are_made_again_wait_for_them);
    RUN(dropping_writes_to_no_other_fiber);
    RUN(foreign_functions_run_where_there_is_room);
    RUN(foreign_functions_resume_fibers);
    RUN(throwing_passes_through_foreign_functions);
    RUN(suspending_inside_a_foreign_function_is_an_error);
    RUN(overflows_are_reported);
    RUN(suspended_segments_can_be_looked_at);
    RUN(memory_of_the_caller_is_refused);
    RUN(segments_are_not_copied);
    RUN(fibers_move_between_threads);
    RUN(threads_use_segments_at_once);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
