/* SPDX-License-Identifier: MIT */
/* A function is returned from by what it has called (haft_return_t of haft/language.h): its frame
   and all inside are unwound, and its caller goes on with the registers that it had. */
#include "check.h"

#include <haft/language.h>

#include <string.h>

static int cleaned, deep;
static double doubles[8] = {1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5};

static void clean(const int *number) {
    cleaned += *number;
}
#define CLEANED(number) __attribute__((cleanup(clean), unused)) int cleaned_here = number

typedef struct {
    haft_return_t leaving;
    int note;
} frame_t;

/* On a stack on which nothing is left of the frame. */
static intptr_t add(intptr_t first, intptr_t second) {
    char room[2000];
    memset(room, 0xee, sizeof room);
    __asm__ volatile("" : : "r"(room) : "memory");
    CHECK_EQUAL(cleaned, deep != 0 ? 111 : 11);
    return first + second;
}

static __attribute__((noreturn, noinline)) void leave(frame_t *frame) {
    frame->leaving.landing.fiber = NULL;
    frame->leaving.landing.land = NULL;
    frame->leaving.landing.let_go = NULL;
    frame->leaving.landing.sp = (char *)frame + 1;
    frame->leaving.instead = add;
    frame->leaving.words[0] = 40;
    frame->leaving.words[1] = frame->note;
    CHECK(haft_can_unwind_to(&frame->leaving.landing));
    haft_unwind_to(&frame->leaving.landing);
}

static void *leave_on_fiber(void *frame) {
    CLEANED(100);
    leave(frame);
}

static __attribute__((noinline)) int go_in(frame_t *frame) {
    CLEANED(10);
    if (deep != 0) {
        haft_fiber_t *fiber = haft_fiber_new(leave_on_fiber, frame);
        haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES());
    } else {
        leave(frame);
    }
    return -1;
}

static __attribute__((noinline)) int returns(int note) {
    CLEANED(1);
    frame_t frame = {.note = note};
    /* Uses what functions keep for their callers. */
    volatile double sum = 0;
    for (int i = 0; i < 8; i++)
        sum += doubles[i] * note;
    return go_in(&frame) + (int)sum;
}

/* More values than there are registers that calls keep. */
static __attribute__((noinline)) int use_registers(int seed) {
    int a = seed + 1, b = seed * 3, c = seed - 7, d = seed ^ 9, e = seed + 11, f = seed * 13;
    double p = doubles[0] * seed, q = doubles[1] * seed, r = doubles[2] * seed,
           s = doubles[3] * seed;
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    cleaned = 0;
    int result = returns(2);
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    CHECK(a == seed + 1 && b == seed * 3 && c == seed - 7 && d == (seed ^ 9) && e == seed + 11 &&
          f == seed * 13);
    CHECK(p == doubles[0] * seed && q == doubles[1] * seed && r == doubles[2] * seed &&
          s == doubles[3] * seed);
    return result;
}

static void a_function_is_returned_from(void) {
    deep = 0;
    for (int i = 1; i <= 1000; i++)
        CHECK_EQUAL(use_registers(i), 42);
}

static void *use_on_fiber(void *unused) {
    a_function_is_returned_from();
    return unused;
}

static void on_a_fiber_too(void) {
    haft_fiber_t *fiber = haft_fiber_new(use_on_fiber, NULL);
    haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES());
    haft_fiber_drop(fiber);
}

static void from_an_inner_fiber(void) {
    deep = 1;
    for (int i = 1; i <= 100; i++)
        CHECK_EQUAL(use_registers(i), 42);
}

int main(void) {
    RUN(a_function_is_returned_from);
    RUN(on_a_fiber_too);
    RUN(from_an_inner_fiber);
    return check_end();
}
