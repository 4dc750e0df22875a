/* Functions that know nothing of segments are called on the thread's stack, whatever their
   signature; and what they call back. This file is -fsplit-stack code, foreign.c is not. */
#include "foreign.h"
#include "harness.h"

HAFT_FOREIGN(double, on_thread_many, foreign_many, (int, a), (double, b), (const point_t, c),
             (long, d), (long, e), (long, f), (long, g), (long, h), (long double, i), (table_t, j),
             (float, k), (char *, l))
HAFT_FOREIGN(table_t, on_thread_table, foreign_table, (long, first))
HAFT_FOREIGN(int, on_thread_nothing, foreign_nothing)
HAFT_FOREIGN_VOID(on_thread_sort, foreign_sort, (int *, values), (size_t, count),
                  (int (*)(const void *, const void *), compare))
HAFT_FOREIGN_VOID(on_thread_noop, foreign_noop)
HAFT_FOREIGN(int, print_two, snprintf, (char *, buffer), (size_t, size), (const char *, format),
             (int, first), (double, second))
HAFT_FOREIGN_VOID(on_thread_nest, foreign_nest, (void *, argument), (int, depth))

static __attribute__((noinline)) int deep(int depth) {
    volatile char frame[200];
    frame[0] = 1;
    return depth == 0 ? 0 : frame[0] + deep(depth - 1);
}

static void structs_floats_and_many_arguments(void *argument) {
    point_t point = {1.5F, 2.5F, 3};
    table_t table = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
    char text[] = "a";
    (void)argument;
    CHECK(on_thread_many(1, 2, point, 4, 5, 6, 7, 8, 9.5L, table, 11, text) ==
          1 + 2 + 1.5 + 2.5 + 3 + 4 + 5 + 6 + 7 + 8 + 9.5 + 55 + 11 + 'a');
    CHECK(on_thread_table(10).words[9] == 19);
    CHECK(on_thread_nothing() == 42);
    on_thread_noop();
    CHECK(hafti_segments_limit() != 0);
}

static void variadic_function(void *argument) {
    char buffer[100];
    (void)argument;
    CHECK(print_two(buffer, sizeof buffer, "%d %.3f", 5, 2.5) == 7);
    CHECK(buffer[0] == '5' && buffer[6] == '0');
}

/* Called back on the thread's stack: needs no segments there, however deep. */
static int compare(const void *a, const void *b) {
    CHECK(hafti_segments_limit() == 0);
    CHECK(deep(1000) == 1000);
    CHECK(on_thread_nothing() == 42);
    return *(const int *)a - *(const int *)b;
}

static void callbacks(void *argument) {
    int values[] = {5, 3, 4, 1, 2};
    (void)argument;
    on_thread_sort(values, 5, compare);
    for (int i = 0; i < 5; i++) {
        CHECK(values[i] == i + 1);
    }
    CHECK(deep(1000) == 1000);
}

/* Segments that are run by a function that runs on the thread's stack for other segments. */
static void segments_under_foreign_code(void *argument) {
    int depth = (int)(intptr_t)argument;
    if (depth > 0) {
        on_thread_nest((void *)segments_under_foreign_code, depth - 1);
        CHECK(deep(100) == 100);
    }
}

static void at_every_depth(void *function) {
    for (int depth = 0; depth < 20; depth++) {
        uintptr_t limit = hafti_segments_limit();
        deep(depth);
        ((test_function_t *)function)((void *)(intptr_t)(depth % 4));
        CHECK(limit == hafti_segments_limit());
    }
}

static void outside_of_segments(void) {
    CHECK(on_thread_nothing() == 42);
    CHECK(on_thread_table(10).words[9] == 19);
}

int main(void) {
    static test_function_t *const tests[] = {structs_floats_and_many_arguments, variadic_function,
                                             callbacks, segments_under_foreign_code};
    static const char *const names[] = {"structs, floats and many arguments", "variadic function",
                                        "callbacks", "segments under foreign code"};
    for (int t = 0; t < 4; t++) {
        for (size_t size = 1024; size < 4096; size += 64) {
            run_on_new_segments(size, at_every_depth, (void *)tests[t]);
        }
        printf("ok %d %s\n", t + 1, names[t]);
    }
    outside_of_segments();
    puts("ok 5 outside of segments");
    return 0;
}
/* SPDX-License-Identifier: MIT */
