/* SPDX-License-Identifier: MIT */
/* The timers of a thread: a wheel of wheels. */
#ifndef HAFTI_IO_TIMERS_H
#define HAFTI_IO_TIMERS_H

#include "base.h"

typedef struct hafti_io_timer {
    hafti_io_link_t link;
    int64_t tick;
    void (*fire)(struct hafti_io_timer *timer);
} hafti_io_timer_t;

enum { HAFTI_IO_TICK_BITS = 16, HAFTI_IO_LEVEL_BITS = 6, HAFTI_IO_LEVELS = 8 };
/* The latest time for which a timer can be set; later ones fire then, too. */
#define HAFTI_IO_LATEST (INT64_MAX - (INT64_C(2) << HAFTI_IO_TICK_BITS))
enum { HAFTI_IO_SLOTS = 1 << HAFTI_IO_LEVEL_BITS };

typedef struct hafti_io_timers {
    int64_t elapsed; /* the tick up to which all have fired */
    size_t count;
    hafti_io_link_t due;
    uint64_t occupied[HAFTI_IO_LEVELS];
    hafti_io_link_t slots[HAFTI_IO_LEVELS][HAFTI_IO_SLOTS];
} hafti_io_timers_t;

/* A deadline of a block (deadlines.c). */
struct hafti_io_limit {
    hafti_io_timer_t
        timer; /* added when its task is first suspended, before which no time passes */
    int64_t time;
    hafti_io_limit_t *outer;
    hafti_io_runner_t *runner; /* of the task that it belongs to; NULL: it has not begun */
    bool passed;
};
/* Adds its timer, where that is still to be done. */
void hafti_io_limit_arm(hafti_io_limit_t *limit, hafti_io_timers_t *timers);

void hafti_io_timers_start(hafti_io_timers_t *timers, int64_t now);
void hafti_io_timer_add(hafti_io_timers_t *timers, hafti_io_timer_t *timer, int64_t deadline);
void hafti_io_timer_remove(hafti_io_timers_t *timers, hafti_io_timer_t *timer);
/* The time when something has to be done next: not later than the first timer; HAFT_IO_FOREVER for
   none. */
int64_t hafti_io_timers_next(hafti_io_timers_t *timers);
void hafti_io_timers_advance(hafti_io_timers_t *timers, int64_t now);

#endif
