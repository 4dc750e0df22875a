#include "frames.h"

#include <alloca.h>

/* A function of fewer bytes of frame than __morestack is asked about; volatile keeps the frame. */
static long recurse(long depth) {
    volatile long kept = depth;
    if (depth == 0) {
        return 0;
    }
    long below = next_frames()->recurse(depth - 1);
    return below + (kept == depth);
}

static long recurse_sizes(long depth, unsigned seed) {
    if (depth == 0) {
        return 0;
    }
    unsigned next = seed * 1103515245u + 12345u;
    long (*callee)(long, unsigned) = next_frames()->recurse_sizes;
#define FRAME_OF(bytes)                                                                            \
    {                                                                                              \
        volatile char frame[bytes];                                                                \
        frame[0] = (char)depth;                                                                    \
        frame[bytes - 1] = (char)seed;                                                             \
        long below = callee(depth - 1, next);                                                      \
        return below + (frame[0] == (char)depth && frame[bytes - 1] == (char)seed);                \
    }
    switch ((seed >> 16) % 8) {
    case 0:
        FRAME_OF(8)
    case 1:
        FRAME_OF(200)
    case 2:
        FRAME_OF(250)
    case 3:
        FRAME_OF(300)
    case 4:
        FRAME_OF(6000)
    case 5:
        FRAME_OF(70000)
    default:
        return depth % 2 ? next_frames()->recurse(20) - 19 + callee(depth - 1, next)
                         : next_frames()->large_frame(1) + callee(depth - 1, next);
    }
}

static double many_arguments(int depth, long a, double b, mixed_t c, float d, long e, long f,
                             long g, long double h, char i, wide_t j, double k, double l, double m,
                             double n, double o, double p, double q, short r) {
    double sum = (double)a + b + c.real + c.number + (double)c.extended + c.text[20] + (double)d +
                 (double)e + (double)f + (double)g + (double)h + i + (double)j.words[39] + k + l +
                 m + n + o + p + q + r;
    if (depth == 0) {
        return sum;
    }
    c.number++;
    j.words[39]++;
    return sum + next_frames()->many_arguments(depth - 1, a, b, c, d, e, f, g, h, i, j, k, l, m, n,
                                               o, p, q, r);
}

static wide_t return_wide(int depth, long value) {
    if (depth == 0) {
        wide_t wide;
        for (int i = 0; i < 40; i++) {
            wide.words[i] = value + i;
        }
        return wide;
    }
    wide_t wide = next_frames()->return_wide(depth - 1, value);
    wide.words[depth % 40]++;
    return wide;
}

static long double return_extended(int depth, long double value) {
    return depth == 0 ? value : 1 + next_frames()->return_extended(depth - 1, value);
}

static _Complex double return_complex(int depth, double value) {
    return depth == 0 ? value + value * 2 * __extension__ 1.0i
                      : 1 + next_frames()->return_complex(depth - 1, value);
}

static long use_alloca(int depth, size_t size) {
    volatile char *first = alloca(size);
    volatile char *second = alloca(size / 2 + 1);
    first[0] = (char)depth;
    first[size - 1] = 1;
    second[size / 2] = 2;
    second[0] = 2;
    long below = depth == 0 ? 0 : next_frames()->use_alloca(depth - 1, size);
    return below + (first[0] == (char)depth && first[size - 1] == 1 && second[size / 2] == 2);
}

static long use_array(int depth, int size) {
    long sum = 0;
    for (int i = 1; i < size; i++) {
        volatile char array[i];
        array[0] = 0;
        array[i - 1] = 1;
        sum += array[i - 1];
    }
    return sum + (depth == 0 ? 0 : next_frames()->use_array(depth - 1, size));
}

/* All of them live until the function returns. */
static long loop_alloca(int count, size_t size) {
    volatile char *newest = NULL;
    volatile char **link = NULL;
    for (int i = 0; i < count; i++) {
        volatile char **block = alloca(size);
        *block = newest;
        newest = (volatile char *)block;
        ((volatile char *)block)[size - 1] = (char)i;
    }
    long found = 0;
    for (int i = count - 1; newest; i--) {
        link = (volatile char **)newest;
        found += newest[size - 1] == (char)i;
        newest = *link;
    }
    return found;
}

static long alloca_once(size_t size) {
    volatile char *block = alloca(size);
    block[0] = 1;
    block[size - 1] = 1;
    return block[0] + next_frames()->recurse(3) - 3;
}

#ifndef __clang__
static long variadic(int depth, int count, ...) {
    va_list arguments;
    va_start(arguments, count);
    long sum = 0;
    for (int i = 0; i < count; i++) {
        sum += va_arg(arguments, long);
        sum += (long)va_arg(arguments, double);
    }
    sum += (long)va_arg(arguments, long double);
    va_end(arguments);
    return depth == 0 ? sum
                      : 1 + frames_gcc_O0.variadic(depth - 1, 5, 1L, 1.0, 2L, 2.0, 3L, 3.0, 4L, 4.0,
                                                   5L, 5.0, 6.0L);
}

static long nested(int depth, long value) {
    long inner(int levels) {
        volatile char frame[300];
        frame[levels] = 1;
        return levels == 0 ? value : frame[levels] + inner(levels - 1);
    }
    return depth == 0 ? inner(20) : next_frames()->recurse(1) - 1 + nested(depth - 1, value);
}
#else
#    define variadic NULL
#    define nested NULL
#endif

static double vectors(int depth, double a, double b, double c, double d, double e, double f,
                      double g, double h) {
    volatile char frame[100];
    frame[0] = 0;
    return depth == 0 ? a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8
                      : frame[0] + next_frames()->vectors(depth - 1, a, b, c, d, e, f, g, h);
}

/* Larger than any segment that is kept for reuse. */
__attribute__((noinline)) static long huge_frame(long depth) {
    volatile char frame[3000000];
    frame[0] = (char)depth;
    return depth == 0 ? 0
                      : 1 + next_frames()->recurse(10) - 10 + huge_frame(depth - 1) + frame[0] -
                            (char)depth;
}

__attribute__((noinline)) static int large_frame(int value) {
    volatile char frame[0x788];
    frame[0] = (char)value;
    return frame[0];
}

static int call_large(int count, int (*function)(int)) {
    int sum = 0;
    for (int i = 0; i < count; i++) {
        sum += function(1);
    }
    return sum;
}

#define FRAMES_NAME(name) FRAMES_NAME_(name)
#define FRAMES_NAME_(name) #name
const frames_t FRAMES = {
    FRAMES_NAME(FRAMES), recurse,        recurse_sizes, many_arguments, return_wide,
    return_extended,     return_complex, use_alloca,    use_array,      loop_alloca,
    alloca_once,         variadic,       nested,        vectors,        huge_frame,
    large_frame,         call_large};
/* SPDX-License-Identifier: MIT */
