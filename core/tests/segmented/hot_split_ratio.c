/* Figure 6 of the paper: what a call costs that needs the next segment, against the same call where
   there is room and against code without checks. Prints; asserts nothing. Built three times: as it
   is, and with HOT_SPLIT_LOOP=hot_split_loop (-fsplit-stack) and =unsplit_loop (without). */
#include "harness.h"

#include <time.h>

long hot_split_loop(long count);
long unsplit_loop(long count);

#ifdef HOT_SPLIT_LOOP
static void __attribute__((noinline)) large_frame(void) {
    char frame[0x788 + 128];
    __asm__ volatile("" : : "r"(frame) : "memory");
}

long HOT_SPLIT_LOOP(long count) {
    for (long i = 0; i < count; i++) {
        large_frame();
        __asm__ volatile("");
    }
    return count;
}
#else
enum { CALLS = 20 * 1000 * 1000 };

static double nanoseconds(long (*loop)(long)) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    loop(CALLS);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) /
           CALLS;
}

static void run_hot(void *argument) {
    (void)argument;
    hot_split_loop(CALLS);
}

int main(void) {
    double native_best = 1e9, unhit_best = 1e9, hot_best = 1e9;
    for (int i = 0; i < 9; i++) {
        double native = nanoseconds(unsplit_loop);
        double unhit = nanoseconds(hot_split_loop);
        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        run_on_new_segments(1024, run_hot, NULL);
        clock_gettime(CLOCK_MONOTONIC, &end);
        double hot =
            ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) /
            CALLS;
        native_best = native < native_best ? native : native_best;
        unhit_best = unhit < unhit_best ? unhit : unhit_best;
        hot_best = hot < hot_best ? hot : hot_best;
    }
    printf("unsplit call %.2f ns, with a check %.2f ns, hot split %.2f ns: %.2f x\n", native_best,
           unhit_best, hot_best, hot_best / native_best);
    return 0;
}
#endif
/* SPDX-License-Identifier: MIT */
