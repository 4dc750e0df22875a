/* SPDX-License-Identifier: MIT */
/* skynet: a tree of computations, ten below each, and `size` at the bottom. One at the bottom
 * sleeps for a turn and has its number for a result; any other polls, once a turn, whether the ten
 * below it have finished, and has their sum for a result. So all of them live at the same time.
 *
 * The scheduler and what a computation does. The includer first defines computation_t, whatever a
 * peer keeps of a computation, all zero before it begins, and then the three functions. With
 * SKYNET_CALLS one at the bottom makes a system call when it wakes up. A peer whose stacks have no
 * room for functions of the C library defines how it calls them (SKYNET_ALLOCATE, SKYNET_CALL). */
#ifndef BENCH_SKYNET_H
#define BENCH_SKYNET_H

#include "program.h"

#include <stdbool.h>
#include <unistd.h>

#ifndef SKYNET_ALLOCATE
#    define SKYNET_ALLOCATE calloc
#endif
#ifdef SKYNET_CALLS
#    ifndef SKYNET_CALL
#        define SKYNET_CALL getppid
#    endif
#else
#    undef SKYNET_CALL
#    define SKYNET_CALL() (void)0
#endif

enum { SKYNET_BELOW = 10 };

typedef struct skynet skynet_t;
struct skynet {
    computation_t computation;
    skynet_t *next, *parent;
    int64_t first, size, sum;
    int left; /* of those below it */
};

/* Begins a computation that calls skynet_run. */
static void skynet_begin(skynet_t *one);
/* Lets it run until it yields (true), or has finished and is freed. */
static bool skynet_resume(skynet_t *one);
static void skynet_yield(skynet_t *one);

/* The newest one runs first, those that have yielded run in turn when all others have. */
static skynet_t *skynet_new, *skynet_oldest, **skynet_latest = &skynet_oldest;

/* By itself: on a segment its caller would have room for abort. */
static NOINLINE void skynet_out_of_memory(void) {
    abort();
}

static inline void skynet_add(skynet_t *parent, int64_t first, int64_t size) {
    skynet_t *one = PROGRAM_CAST(skynet_t *, SKYNET_ALLOCATE(1, sizeof *one));
    if (!one)
        skynet_out_of_memory();
    one->parent = parent;
    one->first = first;
    one->size = size;
    one->next = skynet_new;
    skynet_new = one;
}

static inline void skynet_run(skynet_t *one) {
    if (one->size == 1) {
        skynet_yield(one);
        SKYNET_CALL();
        one->sum = one->first;
        return;
    }
    int64_t size = one->size / SKYNET_BELOW;
    one->left = SKYNET_BELOW;
    for (int64_t i = 0; i < SKYNET_BELOW; i++)
        skynet_add(one, one->first + i * size, size);
    while (one->left != 0)
        skynet_yield(one);
}

static inline skynet_t *skynet_take(void) {
    skynet_t *one = skynet_new ? skynet_new : skynet_oldest;
    if (skynet_new) {
        skynet_new = one->next;
        skynet_begin(one);
    } else if (one) {
        skynet_oldest = one->next;
        if (!skynet_oldest)
            skynet_latest = &skynet_oldest;
    }
    return one;
}

static inline int skynet_program(int argc, char **argv) {
    int64_t sum = 0;
    skynet_add(NULL, 0, program_argument(argc, argv, SKYNET_BELOW));
    for (skynet_t *one; (one = skynet_take()) != NULL;) {
        if (skynet_resume(one)) {
            one->next = NULL;
            *skynet_latest = one;
            skynet_latest = &one->next;
            continue;
        }
        if (one->parent)
            one->parent->left--;
        *(one->parent ? &one->parent->sum : &sum) += one->sum;
        free(one);
    }
    return program_result(sum);
}

#endif
