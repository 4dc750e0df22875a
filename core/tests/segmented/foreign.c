#include "foreign.h"
#include "harness.h"

static void use_stack(void) {
    volatile char frame[200 * 1024];
    for (size_t i = 0; i < sizeof frame; i += 512) {
        frame[i] = 1;
    }
    CHECK(!runs_on_segment());
    CHECK(hafti_segments_limit() == 0);
}

double foreign_many(int a, double b, point_t c, long d, long e, long f, long g, long h,
                    long double i, table_t j, float k, char *l) {
    use_stack();
    double sum = a + b + (double)c.x + (double)c.y + (double)(c.z + d + e + f + g + h) + (double)i +
                 (double)k + *l;
    for (int word = 0; word < 10; word++) {
        sum += (double)j.words[word];
    }
    return sum;
}

table_t foreign_table(long first) {
    table_t table;
    use_stack();
    for (int word = 0; word < 10; word++) {
        table.words[word] = first + word;
    }
    return table;
}

int foreign_nothing(void) {
    use_stack();
    return 42;
}

void foreign_noop(void) {
    use_stack();
}

void foreign_sort(int *values, size_t count, int (*compare)(const void *, const void *)) {
    use_stack();
    qsort(values, count, sizeof *values, compare);
}

void foreign_nest(void *function, int depth) {
    use_stack();
    run_on_new_segments(1024, (test_function_t *)function, (void *)(intptr_t)depth);
}

void stop_here(void) {
    use_stack();
}

int foreign_nothing_anywhere(void) {
    volatile char frame[16 * 1024];
    for (size_t i = 0; i < sizeof frame; i += 512) {
        frame[i] = 1;
    }
    return 42;
}
/* SPDX-License-Identifier: MIT */
