/*
 * libhaft without libc: the same interface, fibers in static memory and on stacks of other fibers.
 * SIZE bytes are to be enough for a fiber: a kibibyte if program and library are optimised.
 */
#include <haft.h>

#include "system.h"

static void expect(bool holds, const char *what) {
    if (!holds) {
        print("FAILED: ");
        print(what);
        print("\n");
        leave(1);
    }
}
#define TEXT_(...) #__VA_ARGS__
#define TEXT(...) TEXT_(__VA_ARGS__)
#define CHECK(condition) expect(condition, TEXT(__LINE__) ": " #condition)
#define RUN(test)                                                                                  \
    do {                                                                                           \
        test();                                                                                    \
        print("ok   " #test "\n");                                                                 \
    } while (0)

static bool same_text(const char *first, const char *second) {
    for (; *first == *second; first++, second++)
        if (*first == '\0')
            return true;
    return false;
}

/* A fiber in `memory`, an array. */
#define FIBER_IN(memory, function, argument)                                                       \
    haft_fiber_new_with(                                                                           \
        &(haft_fiber_options_t){.memory = (memory), .memory_size = sizeof(memory)}, function,      \
        argument)

static void *result_of(haft_request_t request) {
    CHECK(haft_finished(request));
    return ((haft_payload_return *)request.payload)->result;
}

/* ---- State, handled by requests, in-place clauses and general clauses ---- */

HAFT_EFFECT(get, int64_t, {});
HAFT_EFFECT(put, void, { int64_t new_value; });

static void *count_down(void *steps) {
    int64_t done = 0;
    for (int64_t i = HAFT_PERFORM(get); i > 0; i = HAFT_PERFORM(get)) {
        HAFT_PERFORM(put, i - 1);
        done++;
    }
    *(int64_t *)steps = done;
    return steps;
}

static void state_is_handled_by_requests(void) {
    static _Alignas(64) char memory[SIZE];
    int64_t state = 1000, steps = 0;
    haft_fiber_t *k = FIBER_IN(memory, count_down, &steps);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(get, put));
    while (!haft_finished(request)) {
        HAFT_MATCH(request) {
            HAFT_CASE(get, payload) {
                request = haft_resume(k, HAFT_REPLY(get, state), HAFT_HANDLES(get, put));
            }
            HAFT_CASE(put, payload) {
                state = payload->new_value;
                request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(get, put));
            }
        }
    }
    CHECK(result_of(request) == &steps && steps == 1000 && state == 0);
    haft_fiber_drop(k);
}

static int64_t get_in_place(void *state, HAFT_PAYLOAD(get) * payload) {
    (void)payload;
    return *(int64_t *)state;
}
static void put_in_place(void *state, HAFT_PAYLOAD(put) * payload) {
    *(int64_t *)state = payload->new_value;
}
HAFT_HANDLER(in_place, NULL, HAFT_TAIL(get, get_in_place), HAFT_TAIL(put, put_in_place));

static haft_answer_t get_by_resumption(void *state, HAFT_PAYLOAD(get) * payload,
                                       haft_resumption_t k) {
    (void)payload;
    return haft_tail_resume(k, HAFT_REPLY(get, *(int64_t *)state));
}
static haft_answer_t put_by_resumption(void *state, HAFT_PAYLOAD(put) * payload,
                                       haft_resumption_t k) {
    *(int64_t *)state = payload->new_value;
    return haft_tail_resume(k, HAFT_NO_REPLY);
}
HAFT_HANDLER(by_resumption, NULL, HAFT_GENERAL(get, get_by_resumption),
             HAFT_GENERAL(put, put_by_resumption));

static void state_is_handled_in_place_without_a_fiber(void) {
    int64_t state = 1000, steps = 0;
    CHECK(haft_handle(&in_place, &state, count_down, &steps) == &steps);
    CHECK(steps == 1000 && state == 0);
}

static void state_is_handled_by_resumptions(void) {
    static _Alignas(64) char memory[SIZE];
    int64_t state = 1000, steps = 0;
    const haft_fiber_options_t options = {.memory = memory, .memory_size = sizeof memory};
    CHECK(haft_handle_with(&options, &by_resumption, &state, count_down, &steps) == &steps);
    CHECK(steps == 1000 && state == 0);
}

/* ---- A generator in a kibibyte ---- */

HAFT_EFFECT(produce, void, { int value; });

static void *squares(void *count) {
    for (int i = 0; i < *(int *)count; i++)
        HAFT_PERFORM(produce, i * i);
    return NULL;
}

static void a_generator_lives_in_a_kibibyte_and_is_reset(void) {
    static _Alignas(64) char memory[3 * SIZE];
    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = 0x77;
    int count = 20;
    haft_fiber_t *k = haft_fiber_new_with(
        &(haft_fiber_options_t){.memory = memory + SIZE, .memory_size = SIZE}, squares, &count);
    for (int round = 0; round < 3; round++) {
        int sum = 0;
        haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(produce));
        for (; !haft_finished(request);
             request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(produce)))
            sum += ((HAFT_PAYLOAD(produce) *)request.payload)->value;
        CHECK(sum == 2470);
        haft_fiber_reset(k, squares, &count);
    }
    CHECK(haft_fiber_state(k) == HAFT_FIBER_NEW);
    haft_fiber_drop(k);
    for (int i = 0; i < SIZE; i++)
        CHECK(memory[i] == 0x77 && memory[2 * SIZE + i] == 0x77);
}

/* ---- Fibers within fibers ---- */

static int levels_entered;

/* Every level runs the next in memory of its own frame, and handles nothing of what it performs. */
static void *nest(void *argument) {
    int levels = *(int *)argument;
    levels_entered++;
    if (levels == 0) {
        HAFT_PERFORM(put, HAFT_PERFORM(get) + 1);
        return NULL;
    }
    char memory[levels * 2 * SIZE];
    levels--;
    haft_fiber_t *k = FIBER_IN(memory, nest, &levels);
    void *result = result_of(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(produce)));
    haft_fiber_drop(k);
    return result;
}

static void effects_pass_through_fibers_that_do_not_handle_them(void) {
    static _Alignas(64) char memory[8 * SIZE];
    int levels = 2;
    int64_t state = 41;
    levels_entered = 0;
    haft_fiber_t *k = FIBER_IN(memory, nest, &levels);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(get, put));
    CHECK(request.effect == HAFT_ID(get));
    request = haft_resume(k, HAFT_REPLY(get, state), HAFT_HANDLES(get, put));
    CHECK(request.effect == HAFT_ID(put));
    state = ((HAFT_PAYLOAD(put) *)request.payload)->new_value;
    (void)result_of(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(get, put)));
    CHECK(state == 42 && levels_entered == 3);
    haft_fiber_drop(k);
}

static haft_fiber_t *innermost;

static void *run_in_own_frame(void *function) {
    char memory[2 * SIZE];
    innermost = FIBER_IN(memory, *(void *(**)(void *))function, NULL);
    return result_of(haft_resume(innermost, HAFT_NO_REPLY, HAFT_HANDLES(put)));
}

static void *ask_once(void *unused) {
    (void)unused;
    return (void *)(intptr_t)HAFT_PERFORM(get);
}

static void dropping_a_fiber_forgets_those_in_its_frames(void) {
    static _Alignas(64) char memory[8 * SIZE];
    static void *(*body)(void *) = ask_once;
    for (int i = 0; i < 3; i++) {
        haft_fiber_t *k = FIBER_IN(memory, run_in_own_frame, &body);
        haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(get));
        CHECK(request.effect == HAFT_ID(get));
        CHECK(haft_fiber_state(innermost) == HAFT_FIBER_RUNNING);
        haft_fiber_drop(k);
        CHECK(haft_fiber_state(innermost) == HAFT_FIBER_DROPPED);
        memset(memory, 0xff, sizeof memory);
    }
}

/* ---- Throwing ---- */

HAFT_EFFECT(fail, void, {
    int code;
    const char *reason;
});

static void *throw_fail(void *unused) {
    (void)unused;
    HAFT_THROW(fail, 7, "no reason");
}
static haft_reply_t raise_fail(void *unused) {
    (void)throw_fail(unused);
    return HAFT_NO_REPLY;
}

static void a_throw_ends_the_fibers_up_to_its_handler(void) {
    static _Alignas(64) char memory[8 * SIZE];
    static void *(*body)(void *) = throw_fail;
    haft_fiber_t *k = FIBER_IN(memory, run_in_own_frame, &body);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(fail));
    CHECK(request.effect == HAFT_ID(fail));
    const HAFT_PAYLOAD(fail) *payload = request.payload;
    CHECK(payload->code == 7 && same_text(payload->reason, "no reason"));
    CHECK(haft_fiber_state(k) == HAFT_FIBER_FINISHED);
    CHECK(haft_fiber_state(innermost) == HAFT_FIBER_DROPPED);
    haft_fiber_drop(k);
}

static void *code_of(void *unused, HAFT_PAYLOAD(fail) * payload) {
    (void)unused;
    static int code;
    code = payload->code;
    return &code;
}
HAFT_HANDLER(never_resumes, NULL, HAFT_NEVER(fail, code_of));

static void a_clause_that_never_resumes_answers(void) {
    static _Alignas(64) char memory[SIZE];
    const haft_fiber_options_t options = {.memory = memory, .memory_size = sizeof memory};
    for (int i = 0; i < 3; i++) {
        const int *code = haft_handle_with(&options, &never_resumes, NULL, throw_fail, NULL);
        CHECK(*code == 7);
    }
}

static void fail_in_place(void *unused, HAFT_PAYLOAD(fail) * payload) {
    (void)unused;
    HAFT_THROW(produce, payload->code + 1);
}
HAFT_HANDLER(throws_in_place, NULL, HAFT_TAIL(fail, fail_in_place));

static void *throw_under_a_clause_that_throws(void *unused) {
    return haft_handle(&throws_in_place, NULL, throw_fail, unused);
}

static void a_clause_in_place_may_throw(void) {
    static _Alignas(64) char memory[2 * SIZE];
    haft_fiber_t *k = FIBER_IN(memory, throw_under_a_clause_that_throws, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(produce));
    CHECK(request.effect == HAFT_ID(produce));
    CHECK(((HAFT_PAYLOAD(produce) *)request.payload)->value == 8);
    haft_fiber_drop(k);
}

/* ---- Defaults, and calls at the perform ---- */

static int64_t always_five(void *unused, HAFT_PAYLOAD(get) * payload) {
    (void)unused, (void)payload;
    return 5;
}

static void an_effect_that_nobody_handles_has_its_default(void) {
    HAFT_SET_DEFAULT(get, always_five);
    CHECK(HAFT_PERFORM(get) == 5);
    HAFT_SET_DEFAULT(get, NULL);
}

static void a_computation_is_discontinued_where_it_waits(void) {
    static _Alignas(64) char memory[2 * SIZE];
    haft_fiber_t *k = FIBER_IN(memory, ask_once, NULL);
    CHECK(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(get)).effect == HAFT_ID(get));
    haft_request_t request = haft_discontinue(k, raise_fail, NULL, HAFT_HANDLES(fail));
    CHECK(request.effect == HAFT_ID(fail));
    haft_fiber_drop(k);
}

/* ---- Misuse: an error handler may leave the fiber by a throw ---- */

HAFT_EFFECT(mistake, void, { haft_error_code_t code; });

static char message[256];

static void throw_mistake(const haft_error_t *error) {
    size_t size = 0;
    for (; error->message[size] != '\0' && size < sizeof message - 1; size++)
        message[size] = error->message[size];
    message[size] = '\0';
    HAFT_THROW(mistake, error->code);
}

static haft_error_code_t mistake_of(void *(*body)(void *), void *argument) {
    static _Alignas(64) char memory[4 * SIZE];
    haft_error_handler_t *before = haft_set_error_handler(throw_mistake);
    haft_fiber_t *k = FIBER_IN(memory, body, argument);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(mistake));
    CHECK(request.effect == HAFT_ID(mistake));
    haft_error_code_t code = ((HAFT_PAYLOAD(mistake) *)request.payload)->code;
    haft_fiber_drop(k);
    haft_set_error_handler(before);
    return code;
}

static void *resume_it(void *fiber) {
    (void)haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES());
    return NULL;
}
static void *do_nothing(void *unused) {
    return unused;
}
static void *continue_twice(void *k) {
    haft_resumption_resume(*(haft_resumption_t *)k, HAFT_REPLY(get, 1));
    haft_resumption_resume(*(haft_resumption_t *)k, HAFT_REPLY(get, 1));
    return NULL;
}
static haft_answer_t keep(void *k, HAFT_PAYLOAD(get) * payload, haft_resumption_t resumption) {
    (void)payload;
    *(haft_resumption_t *)k = resumption;
    return haft_answer(NULL);
}
HAFT_HANDLER(keeps, NULL, HAFT_GENERAL(get, keep));

static void misuse_is_told_to_the_error_handler(void) {
    static _Alignas(64) char memory[2 * SIZE];

    haft_fiber_t *k = haft_fiber_new_with(&(haft_fiber_options_t){.memory = memory,
                                                                  .memory_size = sizeof memory,
                                                                  .name = "short-lived"},
                                          do_nothing, NULL);
    (void)result_of(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES()));
    CHECK(mistake_of(resume_it, k) == HAFT_ERROR_NOT_RESUMABLE);
    CHECK(same_text(message, "the fiber 'short-lived' cannot be resumed: it has finished."));
    haft_fiber_drop(k);
    CHECK(mistake_of(resume_it, k) == HAFT_ERROR_NOT_RESUMABLE);
    CHECK(same_text(message, "the fiber 'short-lived' cannot be resumed: it has been dropped."));

    haft_resumption_t resumption;
    const haft_fiber_options_t options = {.memory = memory, .memory_size = sizeof memory};
    haft_handle_with(&options, &keeps, &resumption, ask_once, NULL);
    CHECK(mistake_of(continue_twice, &resumption) == HAFT_ERROR_USED_RESUMPTION);
}

static haft_error_code_t last_error;
static void note(const haft_error_t *error) {
    last_error = error->code;
}

static void a_fiber_without_memory_is_an_error_and_NULL(void) {
    haft_error_handler_t *before = haft_set_error_handler(note);
    CHECK(haft_fiber_new(do_nothing, NULL) == NULL);
    CHECK(last_error == HAFT_ERROR_NO_MEMORY);
    CHECK(haft_set_error_handler(before) == note);
}

/* ---- Leaving a stack: the last test, for what lies below it is overwritten ---- */

static void *go_deep(void *unused) {
    volatile char frame[2 * SIZE];
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = 1;
    (void)unused;
    return (void *)(intptr_t)(HAFT_PERFORM(get) + frame[0]);
}

static void an_overflow_is_found_by_the_canary(void) {
#ifdef WITHOUT_PANIC
    (void)HAFT_PERFORM(get); /* Nobody handles it. */
#endif
    static _Alignas(64) char memory[8 * SIZE];
    haft_fiber_t *k = haft_fiber_new_with(
        &(haft_fiber_options_t){.memory = memory + 7 * SIZE, .memory_size = SIZE, .name = "small"},
        go_deep, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(get));
}

#ifndef WITHOUT_PANIC
void haft_panic(const char *text) {
    static const char start[] = "the fiber 'small' has overflowed its stack of ";
    for (size_t i = 0; i < sizeof start - 1; i++)
        if (text[i] != start[i]) {
            print(text);
            CHECK(text[i] == start[i]);
        }
    CHECK(text[sizeof start - 1] >= '1' && text[sizeof start - 1] <= '9');
    print("ok   an_overflow_is_found_by_the_canary\n");
    leave(0);
}
#endif

void run_tests(void) {
    RUN(state_is_handled_by_requests);
    RUN(state_is_handled_in_place_without_a_fiber);
    RUN(state_is_handled_by_resumptions);
    RUN(a_generator_lives_in_a_kibibyte_and_is_reset);
    RUN(effects_pass_through_fibers_that_do_not_handle_them);
    RUN(dropping_a_fiber_forgets_those_in_its_frames);
    RUN(a_throw_ends_the_fibers_up_to_its_handler);
    RUN(a_clause_that_never_resumes_answers);
    RUN(a_clause_in_place_may_throw);
    RUN(an_effect_that_nobody_handles_has_its_default);
    RUN(a_computation_is_discontinued_where_it_waits);
    RUN(misuse_is_told_to_the_error_handler);
    RUN(a_fiber_without_memory_is_an_error_and_NULL);
    an_overflow_is_found_by_the_canary();
    print("FAILED: the overflow was not found\n");
    leave(1);
}
/* SPDX-License-Identifier: MIT */
