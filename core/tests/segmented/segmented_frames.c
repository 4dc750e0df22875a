/* Frames of every kind run on segments as they do on one stack. */
#include "frames.h"
#include "harness.h"

static const frames_t *const copies[] = {&frames_gcc_O0, &frames_gcc_O2, &frames_clang_O0,
                                         &frames_clang_O2};
static const frames_t *only;
static unsigned turn;

const frames_t *next_frames(void) {
    return only ? only : copies[turn++ & 3];
}

HAFT_FOREIGN(haft_segments_statistics_t, statistics, haft_segments_statistics)

typedef struct test {
    const frames_t *frames;
    size_t first; /* size of the first segment */
} test_t;

static mixed_t mixed = {1.5, 7, 2.25L, "twenty characters, +"};
static wide_t wide;

static void one_million_frames(void *argument) {
    const test_t *test = argument;
    haft_segments_statistics_t before = statistics();
    CHECK(test->frames->recurse(1000000) == 1000000);
    CHECK(statistics().taken - before.taken < 400);
    CHECK(test->frames->recurse(1000000) == 1000000);
    CHECK(statistics().taken - before.taken < 400);
    CHECK(hafti_segments_limit() == test_segments.limit);
}

static void frames_of_all_sizes(void *argument) {
    const test_t *test = argument;
    for (unsigned seed = 0; seed < 10; seed++) {
        CHECK(test->frames->recurse_sizes(300, seed) == 300);
    }
}

static void huge_frames(void *argument) {
    const test_t *test = argument;
    CHECK(test->frames->huge_frame(3) == 3);
    CHECK(test->frames->huge_frame(5) == 5);
}

static void arguments_on_the_stack(void *argument) {
    const test_t *test = argument;
    for (int depth = 0; depth < 40; depth++) {
        double on_segments = test->frames->many_arguments(depth, 1, 2, mixed, 3, 4, 5, 6, 7.5L, 8,
                                                          wide, 9, 10, 11, 12, 13, 14, 15, 16);
        double once =
            1 + 2 + 1.5 + 2.25 + 3 + 4 + 5 + 6 + 7.5 + 8 + 9 + 10 + 11 + 12 + 13 + 14 + 15 + 16;
        double expected = 0;
        for (int i = 0; i <= depth; i++) {
            expected += once + 7 + i + i;
        }
        CHECK(on_segments == expected);
    }
}

static void results_of_all_classes(void *argument) {
    const test_t *test = argument;
    for (int depth = 0; depth < 60; depth++) {
        wide_t result = test->frames->return_wide(depth, 5);
        CHECK(result.words[39] == 44 + (depth >= 39));
        CHECK(test->frames->return_extended(depth, 0.125L) == depth + 0.125L);
        _Complex double complex = test->frames->return_complex(depth, 3);
        CHECK(__real__ complex == 3 + depth && __imag__ complex == 6);
        CHECK(test->frames->vectors(depth, 1, 2, 3, 4, 5, 6, 7, 8) ==
              1 + 4 + 9 + 16 + 25 + 36 + 49 + 64);
    }
}

static void memory_from_alloca(void *argument) {
    const test_t *test = argument;
    for (size_t size = 16; size < 20000; size *= 3) {
        for (int depth = 0; depth < 20; depth++) {
            CHECK(test->frames->use_alloca(depth, size) == depth + 1);
        }
    }
    CHECK(test->frames->use_array(5, 2000) == 6 * 1999);
    CHECK(test->frames->loop_alloca(300, 1000) == 300);
}

/* Memory that a finished frame got from alloca is used again. */
static void alloca_does_not_leak(void *argument) {
    const test_t *test = argument;
    for (int i = 0; i < 10000; i++) {
        CHECK(test->frames->alloca_once(3000) == 1);
        CHECK(test->frames->use_alloca(3, 3000) == 4);
    }
    CHECK(test->frames->use_array(0, 10000) == 9999);
    haft_segments_statistics_t end = statistics();
    CHECK(end.taken - end.given < 400);
}

static void variadic_functions(void *argument) {
    const test_t *test = argument;
    for (int depth = 0; test->frames->variadic && depth < 40; depth++) {
        CHECK(test->frames->variadic(depth, 5, 1L, 1.0, 2L, 2.0, 3L, 3.0, 4L, 4.0, 5L, 5.0, 6.0L) ==
              36 + depth);
    }
}

static void nested_functions(void *argument) {
    const test_t *test = argument;
    for (int depth = 0; test->frames->nested && depth < 40; depth++) {
        CHECK(test->frames->nested(depth, 7) == 27);
    }
}

/* A call in a loop that needs a segment each time takes it once. */
static void hot_split_takes_one_segment(void *argument) {
    const test_t *test = argument;
    CHECK(test->frames->call_large(10, test->frames->large_frame) == 10);
    haft_segments_statistics_t before = statistics();
    CHECK(test->frames->call_large(1000000, test->frames->large_frame) == 1000000);
    CHECK(statistics().taken == before.taken);
    CHECK(statistics().given == before.given);
}

/* After large frames needed larger segments than came next, smaller ones use them too: the list
   settles. */
static void small_and_large_take_turns(void *argument) {
    const test_t *test = argument;
    haft_segments_statistics_t before = statistics();
    for (int i = 0; i < 1200; i++) {
        if (i == 200) {
            before = statistics();
        }
        turn = 0;
        CHECK(test->frames->recurse(100) == 100);
        CHECK(test->frames->recurse_sizes(100, 1) == 100);
    }
    CHECK(statistics().taken == before.taken);
}

int main(void) {
    static const struct {
        const char *name;
        void (*run)(void *);
    } tests[] = {{"one million frames", one_million_frames},
                 {"frames of all sizes", frames_of_all_sizes},
                 {"huge frames", huge_frames},
                 {"arguments on the stack", arguments_on_the_stack},
                 {"results of all classes", results_of_all_classes},
                 {"memory from alloca", memory_from_alloca},
                 {"alloca does not leak", alloca_does_not_leak},
                 {"variadic functions", variadic_functions},
                 {"nested functions", nested_functions},
                 {"hot split takes one segment", hot_split_takes_one_segment},
                 {"small and large take turns", small_and_large_take_turns}};
    int count = 0;
    for (size_t t = 0; t < sizeof tests / sizeof *tests; t++) {
        for (size_t copy = 0; copy < 5; copy++) {
            only = copy < 4 ? copies[copy] : NULL;
            test_t test = {copies[copy & 3], 0};
            /* Every first size: a border before every frame. */
            for (size_t size = 1024; size < 4096; size += t == 0 ? 2048 : 64) {
                run_on_new_segments(size, tests[t].run, &test);
            }
        }
        printf("ok %d %s\n", ++count, tests[t].name);
    }
    haft_segments_statistics_t end = statistics();
    CHECK(end.taken == end.given);
    return 0;
}
/* SPDX-License-Identifier: MIT */
