/*
 * State that a context switch must keep on every architecture: the values in registers on both
 * sides, the floating-point environment of each fiber, stack alignment, frames that need a base
 * pointer, the red zone, and the way from a fiber's frames into its parent's, by unwind tables and
 * by frame pointers (which everything in this repository is compiled with).
 */
#define _GNU_SOURCE
#include <haft.h>

/* Before anything else of this file: in the section that the header leaves behind, where gcc puts
   file-scope assembly without optimisation. */
#ifdef __x86_64__
__asm__(".globl assembled_function\nassembled_function:\n\tmovl $42, %eax\n\tret\n");
#else
__asm__(".globl assembled_function\nassembled_function:\n\tmov w0, #42\n\tret\n");
#endif
int assembled_function(void);

#include "check.h"

#include <alloca.h>
#include <execinfo.h>
#include <fenv.h>

HAFT_EFFECT(tick, uint64_t, { uint64_t count; });
HAFT_EFFECT(stop, void, {});

#define TICKS HAFT_HANDLES(tick, stop)

/* ---- Registers ---- */

/* More values of each kind than there are registers. */
#define VALUES(each)                                                                               \
    each(0) each(1) each(2) each(3) each(4) each(5) each(6) each(7) each(8) each(9) each(10)       \
        each(11) each(12) each(13) each(14) each(15) each(16) each(17) each(18) each(19) each(20)  \
            each(21) each(22) each(23) each(24) each(25) each(26) each(27) each(28) each(29)       \
                each(30) each(31) each(32) each(33)

static volatile uint64_t source;

#define MAKE_VALUE(n)                                                                              \
    uint64_t integer_##n = source * (2 * n + 3);                                                   \
    double real_##n = (double)source * (n + 0.5);                                                  \
    float pair_##n __attribute__((vector_size(16))) = {(float)source, n, (float)source * n, -n};
#define VALUE_IS_KEPT(n)                                                                           \
    (integer_##n == source * (2 * n + 3) && real_##n == (double)source * (n + 0.5) &&              \
     pair_##n[0] == (float)source && pair_##n[1] == n && pair_##n[2] == (float)source * n &&       \
     pair_##n[3] == -n)
#define CHECK_VALUE(n) CHECK(VALUE_IS_KEPT(n));

/* Keeps values that the compiler cannot know alive over `statement`. */
#define KEEPING_VALUES(seed, statement)                                                            \
    do {                                                                                           \
        source = seed;                                                                             \
        VALUES(MAKE_VALUE)                                                                         \
        statement;                                                                                 \
        source = seed;                                                                             \
        VALUES(CHECK_VALUE)                                                                        \
    } while (0)

enum { ROUNDS = 20 };

static void *ticking(void *argument) {
    uint64_t seed = (uint64_t)(uintptr_t)argument;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t reply;
        KEEPING_VALUES(seed + i, reply = HAFT_PERFORM(tick, i));
        CHECK(reply == seed + 2 * i);
    }
    return NULL;
}

static __attribute__((noinline)) haft_request_t resume_in_a_call(haft_fiber_t *fiber,
                                                                 haft_reply_t reply) {
    return haft_resume(fiber, reply, TICKS);
}

static void registers_keep_their_values_on_both_sides(void) {
    haft_fiber_t *one = haft_fiber_new(ticking, (void *)1000);
    haft_fiber_t *two = haft_fiber_new(ticking, (void *)7777777);
    haft_request_t request_one, request_two;
    KEEPING_VALUES(31, request_one = haft_resume(one, HAFT_NO_REPLY, TICKS));
    KEEPING_VALUES(32, request_two = resume_in_a_call(two, HAFT_NO_REPLY));
    for (uint64_t i = 0; i < ROUNDS; i++) {
        CHECK(request_one.effect == HAFT_ID(tick) && request_two.effect == HAFT_ID(tick));
        uint64_t reply_one = 1000 + 2 * i, reply_two = 7777777 + 2 * i;
        KEEPING_VALUES(i, request_one = haft_resume(one, HAFT_REPLY(tick, reply_one), TICKS));
        KEEPING_VALUES(~i, request_two = resume_in_a_call(two, HAFT_REPLY(tick, reply_two)));
    }
    CHECK(haft_finished(request_one) && haft_finished(request_two));
    haft_fiber_drop(one);
    haft_fiber_drop(two);
}

static void *throwing(void *argument) {
    KEEPING_VALUES(5, HAFT_PERFORM(tick, 1));
    HAFT_THROW(stop);
    return argument;
}

static void registers_keep_their_values_when_a_fiber_is_unwound(void) {
    haft_fiber_t *fiber = haft_fiber_new(throwing, NULL);
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, TICKS);
    KEEPING_VALUES(6, request = haft_resume(fiber, HAFT_REPLY(tick, 2), TICKS));
    CHECK(request.effect == HAFT_ID(stop));
    haft_fiber_reset(fiber, throwing, NULL);
    (void)haft_resume(fiber, HAFT_NO_REPLY, TICKS);
    KEEPING_VALUES(7, haft_fiber_drop(fiber));
}

/* ---- The red zone ---- */

/* A function that calls nothing may keep its variables below the stack pointer. So here is the bare
   switch, with none of the library around it. */
static __attribute__((noinline)) bool keeps_values_in_a_leaf(haft_fiber_t *fiber, bool into,
                                                             uint64_t seed, uintptr_t word) {
    bool kept = true;
    source = seed;
    VALUES(MAKE_VALUE)
    hafti_words_t words = into ? hafti_switch_into_specially(fiber, fiber, word)
                               : hafti_switch_out_of(fiber, fiber, word);
    source = seed;
#define LOOK_AT_VALUE(n) kept &= VALUE_IS_KEPT(n);
    VALUES(LOOK_AT_VALUE)
    return kept && words.first == fiber && words.second == ~word && words.special == !into;
}

/* The same with few variables, so that all of them fit in the red zone. */
static __attribute__((noinline)) bool keeps_few_values_in_a_leaf(haft_fiber_t *fiber, bool into,
                                                                 uint64_t seed, uintptr_t word) {
    volatile uint64_t values[8];
    for (unsigned i = 0; i < 8; i++)
        values[i] = seed * i;
    hafti_words_t words = into ? hafti_switch_into_specially(fiber, fiber, word)
                               : hafti_switch_out_of(fiber, fiber, word);
    for (unsigned i = 0; i < 8; i++)
        if (values[i] != seed * i)
            return false;
    return words.first == fiber && words.second == ~word && words.special == !into;
}

static const uintptr_t question = 0x123456789abcdef0;

static void *answering(void *argument) {
    haft_fiber_t *fiber = *(haft_fiber_t **)argument;
    for (uint64_t i = 1; i < ROUNDS; i++) {
        CHECK(keeps_values_in_a_leaf(fiber, false, ~i, ~question));
        CHECK(keeps_few_values_in_a_leaf(fiber, false, ~i, ~question));
    }
    hafti_switch_out_of(fiber, fiber, ~question);
    return NULL;
}

static void leaf_functions_keep_their_values(void) {
    if (!check_bare())
        return;
    haft_fiber_t *fiber;
    fiber = haft_fiber_new(answering, &fiber);
    CHECK(!hafti_switch_into(fiber, NULL).special);
    for (uint64_t i = 1; i < ROUNDS; i++) {
        CHECK(keeps_values_in_a_leaf(fiber, true, i, question));
        CHECK(keeps_few_values_in_a_leaf(fiber, true, i, question));
    }
    haft_fiber_drop(fiber);
}

/* ---- The floating-point environment ---- */

static volatile double one = 1, minus_one = -1, three = 3;
static volatile long double long_one = 1, long_minus_one = -1, long_three = 3;

static int sign(double number) {
    return (number > 0) - (number < 0);
}

/* Whether arithmetic rounds in this mode, in both units that x86-64 has. */
static bool rounds(int mode) {
    int expected = mode == FE_UPWARD ? 1 : mode == FE_DOWNWARD ? -1 : 0;
    if (fegetround() != mode || RUNNING_ON_VALGRIND) /* which always rounds to nearest */
        return fegetround() == mode;
    return sign(one / three + minus_one / three) == expected &&
           sign((double)(long_one / long_three + long_minus_one / long_three)) == expected;
}

static void *rounding(void *argument) {
    int mode = *(int *)argument;
    CHECK(rounds(FE_TOWARDZERO)); /* as its maker */
    CHECK(fesetround(mode) == 0);
    for (uint64_t i = 0; i < 3; i++) {
        HAFT_PERFORM(tick, i);
        CHECK(rounds(mode));
    }
    return NULL;
}

static void a_fiber_keeps_its_rounding_mode_to_itself(void) {
    int up = FE_UPWARD, down = FE_DOWNWARD, zero = FE_TOWARDZERO;
    CHECK(fesetround(FE_TOWARDZERO) == 0);
    haft_fiber_t *fibers[] = {haft_fiber_new(rounding, &up), haft_fiber_new(rounding, &down),
                              haft_fiber_new(rounding, &zero)};
    CHECK(fesetround(FE_TONEAREST) == 0);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            (void)haft_resume(fibers[j], i == 0 ? HAFT_NO_REPLY : HAFT_REPLY(tick, 0), TICKS);
            CHECK(rounds(FE_TONEAREST));
        }
    /* The way out does not matter: return, being freed, or throwing. */
    CHECK(haft_resume(fibers[0], HAFT_REPLY(tick, 0), TICKS).effect == HAFT_ID(return ));
    CHECK(rounds(FE_TONEAREST));
    for (int j = 0; j < 3; j++) {
        haft_fiber_drop(fibers[j]);
        CHECK(rounds(FE_TONEAREST));
    }
}

static void *trapping(void *argument) {
    CHECK(feenableexcept(FE_DIVBYZERO) != -1);
    HAFT_PERFORM(tick, 0);
    CHECK(fegetexcept() == FE_DIVBYZERO);
    return argument;
}

static void a_fiber_keeps_its_exception_masks_to_itself(void) {
    int before = feenableexcept(FE_DIVBYZERO);
    bool can_trap = before != -1 && fegetexcept() == (before | FE_DIVBYZERO);
    fedisableexcept(FE_ALL_EXCEPT);
    if (!can_trap)
        return;
    haft_fiber_t *fiber = haft_fiber_new(trapping, NULL);
    (void)haft_resume(fiber, HAFT_NO_REPLY, TICKS);
    CHECK(fegetexcept() == 0);
    volatile double zero = 0;
    CHECK(one / zero > 1);
    CHECK(haft_finished(haft_resume(fiber, HAFT_REPLY(tick, 0), TICKS)));
    CHECK(fegetexcept() == 0);
    CHECK(one / zero > 1);
    haft_fiber_drop(fiber);
}

/* ---- Frames ---- */

static bool aligned(const void *address, uintptr_t to) {
    /* The compiler knows what it has aligned and would answer without looking. */
    __asm__("" : "+r"(address));
    return ((uintptr_t)address & (to - 1)) == 0;
}

static void *looks_at_its_frame(void *argument) {
    _Alignas(16) char local[16];
    char text[32];
    CHECK(aligned(__builtin_frame_address(0), 16));
    CHECK(aligned(local, 16));
    /* Saves vector registers in its frame. */
    snprintf(text, sizeof text, "%.2f", 1.5 * *(double *)argument);
    CHECK(strcmp(text, "3.00") == 0);
    return NULL;
}

static void the_stack_is_aligned_at_entry(void) {
    enum { FIBERS = 20 };
    static char memory[FIBERS][65536];
    double two = 2;
    haft_fiber_t *fibers[2 * FIBERS];
    for (size_t i = 0; i < FIBERS; i++) {
        haft_fiber_options_t odd = {.memory = memory[i] + i, .memory_size = 65000 - 3 * i};
        fibers[i] = haft_fiber_new_with(&odd, looks_at_its_frame, &two);
        fibers[FIBERS + i] = haft_fiber_new(looks_at_its_frame, &two);
    }
    for (int i = 0; i < 2 * FIBERS; i++) {
        CHECK(haft_finished(haft_resume(fibers[i], HAFT_NO_REPLY, TICKS)));
        haft_fiber_drop(fibers[i]);
    }
}

/* A frame of unknown size with an aligned variable: reached through a base pointer. */
#define KEEPING_A_FRAME(alignment, size, statement)                                                \
    do {                                                                                           \
        _Alignas(alignment) volatile unsigned char fixed[alignment];                               \
        volatile unsigned char *variable = alloca(size);                                           \
        for (size_t n = 0; n < alignment; n++)                                                     \
            fixed[n] = (unsigned char)(n ^ alignment);                                             \
        for (size_t n = 0; n < size; n++)                                                          \
            variable[n] = (unsigned char)(n * size);                                               \
        statement;                                                                                 \
        CHECK(aligned((const void *)(uintptr_t)fixed, alignment));                                 \
        for (size_t n = 0; n < alignment; n++)                                                     \
            CHECK(fixed[n] == (unsigned char)(n ^ alignment));                                     \
        for (size_t n = 0; n < size; n++)                                                          \
            CHECK(variable[n] == (unsigned char)(n * size));                                       \
    } while (0)

static void *ticking_in_a_frame(void *argument) {
    size_t size = (size_t)argument;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t reply;
        KEEPING_A_FRAME(64, (size + i), reply = HAFT_PERFORM(tick, i));
        CHECK(reply == i);
    }
    return NULL;
}

static __attribute__((noinline)) void resume_in_a_frame(size_t size) {
    haft_fiber_t *first = haft_fiber_new(ticking_in_a_frame, (void *)size);
    haft_fiber_t *second = haft_fiber_new(ticking_in_a_frame, (void *)(3 * size));
    haft_request_t request;
    (void)haft_resume(first, HAFT_NO_REPLY, TICKS);
    KEEPING_A_FRAME(128, size, (void)haft_resume(second, HAFT_NO_REPLY, TICKS));
    for (uint64_t i = 0; i < ROUNDS; i++) {
        KEEPING_A_FRAME(32, (size + i), request = haft_resume(first, HAFT_REPLY(tick, i), TICKS));
        KEEPING_A_FRAME(64, (size + i), request = haft_resume(second, HAFT_REPLY(tick, i), TICKS));
    }
    CHECK(haft_finished(request));
    haft_fiber_drop(first);
    haft_fiber_drop(second);
}

static void frames_of_unknown_size_are_found_again(void) {
    for (size_t size = 1; size < 200; size += 37)
        resume_in_a_frame(size);
}

/* ---- From a fiber into its parent ---- */

enum { DEPTH = 4, ADDRESSES = 128 };

typedef struct trace {
    int depth;
    void *addresses[ADDRESSES]; /* of the innermost fiber */
    int count;
    uintptr_t frames[ADDRESSES];
    int frame_count;
} trace_t;

static __attribute__((noinline)) void follow_frame_pointers(trace_t *trace, uintptr_t last) {
    uintptr_t *frame = __builtin_frame_address(0);
    while (frame != NULL && trace->frame_count < ADDRESSES) {
        trace->frames[trace->frame_count++] = (uintptr_t)frame;
        if ((uintptr_t)frame == last)
            return;
        frame = (uintptr_t *)frame[0];
    }
}

static uintptr_t frame_of_the_test;

static void *nesting(void *argument) {
    trace_t *trace = argument;
    if (trace->depth++ < DEPTH) {
        haft_fiber_t *inner = haft_fiber_new(nesting, trace);
        CHECK(haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES()).effect == HAFT_ID(return ));
        haft_fiber_drop(inner);
    } else {
        HAFT_PERFORM(tick, 0); /* suspends the whole chain: the addresses are as after a switch */
        trace->count = backtrace(trace->addresses, ADDRESSES);
        follow_frame_pointers(trace, frame_of_the_test);
    }
    return NULL;
}

static __attribute__((noinline)) void run_nested(trace_t *trace) {
    haft_fiber_t *fiber = haft_fiber_new(nesting, trace);
    (void)haft_resume(fiber, HAFT_NO_REPLY, TICKS);
    (void)haft_resume(fiber, HAFT_REPLY(tick, 0), TICKS);
    haft_fiber_drop(fiber);
}

static void backtraces_lead_through_nested_fibers(void) {
    static trace_t trace;
    void *here[ADDRESSES];
    int count = backtrace(here, ADDRESSES);
    frame_of_the_test = (uintptr_t)__builtin_frame_address(0);
    run_nested(&trace);
    /* Outwards from the callers all is the same; further in are three frames a fiber or more. */
    CHECK(count > 2 && trace.count >= count + 3 * (DEPTH + 1));
    for (int i = 1; i < count - 1; i++)
        CHECK(trace.addresses[trace.count - i] == here[count - i]);
}

static void frame_pointers_lead_through_nested_fibers(void) {
    static trace_t trace;
    frame_of_the_test = (uintptr_t)__builtin_frame_address(0);
    run_nested(&trace);
    CHECK(trace.frame_count > 3 * DEPTH && trace.frame_count < ADDRESSES);
    CHECK(trace.frames[trace.frame_count - 1] == frame_of_the_test);
}

/* ---- The header ---- */

static void file_scope_assembly_after_the_header_is_code(void) {
    CHECK(assembled_function() == 42);
}

int main(void) {
    RUN(registers_keep_their_values_on_both_sides);
    RUN(registers_keep_their_values_when_a_fiber_is_unwound);
    RUN(leaf_functions_keep_their_values);
    RUN(a_fiber_keeps_its_rounding_mode_to_itself);
    RUN(a_fiber_keeps_its_exception_masks_to_itself);
    RUN(the_stack_is_aligned_at_entry);
    RUN(frames_of_unknown_size_are_found_again);
    RUN(backtraces_lead_through_nested_fibers);
    RUN(frame_pointers_lead_through_nested_fibers);
    RUN(file_scope_assembly_after_the_header_is_code);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
