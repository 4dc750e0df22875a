/* For the debugger: a breakpoint in `stop_here` is reached below 30 frames on segments, a foreign
   function on the thread's stack, a callback there and 5 frames on segments again. -fsplit-stack
   code. */
#include "foreign.h"
#include "harness.h"

HAFT_FOREIGN_VOID(on_thread_nest, foreign_nest, (void *, function), (int, depth))
HAFT_FOREIGN_VOID(on_thread_stop, stop_here)

static __attribute__((noinline)) int inner(int depth) {
    volatile char frame[250];
    frame[0] = 0;
    if (depth > 0) {
        return frame[0] + inner(depth - 1);
    }
    on_thread_stop();
    return frame[0];
}

static void on_second_segments(void *argument) {
    (void)argument;
    inner(4);
}

static __attribute__((noinline)) int outer(int depth) {
    volatile char frame[250];
    frame[0] = 0;
    if (depth > 0) {
        return frame[0] + outer(depth - 1);
    }
    on_thread_nest((void *)on_second_segments, 0);
    return frame[0];
}

static void on_first_segments(void *argument) {
    (void)argument;
    outer(29);
}

int main(void) {
    run_on_new_segments(1024, on_first_segments, NULL);
    return 0;
}
/* SPDX-License-Identifier: MIT */
