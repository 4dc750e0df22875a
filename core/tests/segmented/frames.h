/* SPDX-License-Identifier: MIT */
/* -fsplit-stack code that frames.c is built from several times, by each compiler and at each
   optimisation level, under names with the suffix FRAMES. The copies call each other. */
#ifndef HAFT_TESTS_SEGMENTED_FRAMES_H
#define HAFT_TESTS_SEGMENTED_FRAMES_H

#include <stdarg.h>
#include <stddef.h>

typedef struct haft_wide {
    long words[40];
} wide_t;

typedef struct haft_mixed {
    double real;
    int number;
    long double extended;
    char text[21];
} mixed_t;

typedef struct frames {
    const char *name;
    long (*recurse)(long depth);
    long (*recurse_sizes)(long depth, unsigned seed);
    double (*many_arguments)(int depth, long a, double b, mixed_t c, float d, long e, long f,
                             long g, long double h, char i, wide_t j, double k, double l, double m,
                             double n, double o, double p, double q, short r);
    wide_t (*return_wide)(int depth, long value);
    long double (*return_extended)(int depth, long double value);
    _Complex double (*return_complex)(int depth, double value);
    long (*use_alloca)(int depth, size_t size);
    long (*use_array)(int depth, int size);
    long (*loop_alloca)(int count, size_t size);
    long (*alloca_once)(size_t size);
    long (*variadic)(int depth, int count, ...); /* NULL: the compiler does not support it */
    long (*nested)(int depth, long value);       /* NULL: no such functions */
    double (*vectors)(int depth, double a, double b, double c, double d, double e, double f,
                      double g, double h);
    long (*huge_frame)(long depth);
    int (*large_frame)(int value);
    int (*call_large)(int count, int (*function)(int));
} frames_t;

extern const frames_t frames_gcc_O0, frames_gcc_O2, frames_clang_O0, frames_clang_O2;

/* The next copy to call: recursion goes through all copies in turn. */
extern const frames_t *next_frames(void);

#endif
