/* SPDX-License-Identifier: MIT */
/* The spans of tasks that take longest, for programs that look at a run while it goes on. */
#ifndef HAFTI_IO_SPANS_H
#define HAFTI_IO_SPANS_H

#include "trace.h"

typedef struct hafti_io_span {
    const char *name;
    bool is_open;
    int64_t duration; /* until now, if it is open */
    int64_t value;    /* 0, if it is open */
} hafti_io_span_t;

/* Visits those that have been open longest, and those of the last seconds that took longest; a few
   of each. `visit` is called under a lock. */
void hafti_io_visit_spans(void (*visit)(void *state, const hafti_io_span_t *span), void *state);
/* To be called in a child of fork, which has none. */
void hafti_io_forget_spans(void);

#endif
