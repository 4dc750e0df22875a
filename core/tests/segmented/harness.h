/* SPDX-License-Identifier: MIT */
/* Runs code on segments without fibers: what a switch to a segmented fiber does, and no more. */
#ifndef HAFT_TESTS_SEGMENTED_HARNESS_H
#define HAFT_TESTS_SEGMENTED_HARNESS_H

#include "haft/inner/segments.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            report_failure(__FILE__, __LINE__, #condition);                                        \
        }                                                                                          \
    } while (0)

void report_failure(const char *file, int line, const char *condition) __attribute__((noreturn));

/* Runs function(argument) on `segments`, whose first segment ends at `high`. */
void run_on_segments(hafti_segments_t *segments, void *high, void (*function)(void *),
                     void *argument);

/* The same on a first segment of `size` bytes that is made for the call. */
void run_on_new_segments(size_t size, void (*function)(void *), void *argument);

/* True if the caller's stack is a segment, not the thread's stack. */
bool runs_on_segment(void);

/* True if a frame at this address must run with this limit word. */
bool limit_is_right(uintptr_t limit, const void *frame);

/* The segments in use by run_on_new_segments. */
extern hafti_segments_t test_segments;

#ifdef __cplusplus
}
#endif
#endif
