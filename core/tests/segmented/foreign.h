/* SPDX-License-Identifier: MIT */
#ifndef HAFT_TESTS_SEGMENTED_FOREIGN_H
#define HAFT_TESTS_SEGMENTED_FOREIGN_H

#include <stddef.h>

typedef struct point {
    float x, y;
    long z;
} point_t;

typedef struct table {
    long words[10];
} table_t;

typedef void test_function_t(void *);

/* Each needs more stack than a segment has. */
double foreign_many(int a, double b, point_t c, long d, long e, long f, long g, long h,
                    long double i, table_t j, float k, char *l);
table_t foreign_table(long first);
int foreign_nothing(void);
int foreign_nothing_anywhere(void); /* may run on a segment that has room */
void foreign_noop(void);
void foreign_sort(int *values, size_t count, int (*compare)(const void *, const void *));
void foreign_nest(void *function, int depth);
void stop_here(void);

#endif
