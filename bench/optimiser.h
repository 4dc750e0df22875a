/* SPDX-License-Identifier: MIT */
/* Barriers that keep the optimiser from removing or reshaping what a benchmark measures. */
#ifndef BENCH_OPTIMISER_H
#define BENCH_OPTIMISER_H

/* The call stays a call. */
#define NOINLINE __attribute__((noinline))

/* The compiler must have computed the value, and cannot know it afterwards. After a recursive
 * call it keeps that call from becoming a loop. */
#define OPAQUE(value) __asm__ volatile("" : "+r"(value))

/* The compiler must assume that all memory was read and written here. */
#define BARRIER() __asm__ volatile("" ::: "memory")

#endif
