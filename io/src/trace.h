/* SPDX-License-Identifier: MIT */
/* Records of the actions of tasks and threads; trace.c has the format. */
#ifndef HAFTI_IO_TRACE_H
#define HAFTI_IO_TRACE_H

#include "base.h"

/* tools/haft-trace has the same numbers. */
enum hafti_io_event {
    HAFTI_IO_EVENT_NONE,
    HAFTI_IO_EVENT_SPAWN,     /* text: its name; other: the task that spawns it */
    HAFTI_IO_EVENT_RUN,       /* text: its name */
    HAFTI_IO_EVENT_PARK,      /* text: what it waits for */
    HAFTI_IO_EVENT_YIELD,     /* text: none */
    HAFTI_IO_EVENT_WAKE,      /* other: the task that wakes it; code: the outcome of its cell */
    HAFTI_IO_EVENT_STEAL,     /* other: the index of the worker that had it */
    HAFTI_IO_EVENT_OPERATION, /* text: its kind; other: the descriptor << 32 | bytes */
    HAFTI_IO_EVENT_END,       /* other: how it ended, negative: an error */
    HAFTI_IO_EVENT_NAME,      /* text: its new name */
    HAFTI_IO_EVENT_POLL,      /* code: 1: it may sleep */
    HAFTI_IO_EVENT_POLLED,
    HAFTI_IO_EVENT_DEADLINE,   /* of a block of the task has passed */
    HAFTI_IO_EVENT_CANCEL,     /* text: the scope's name; task: the canceller */
    HAFTI_IO_EVENT_SPAN_BEGIN, /* text: its name */
    HAFTI_IO_EVENT_SPAN_END    /* text: its name; other: its value */
};

/* Extra work that is on in this process: a yield checks for all of it at once. */
enum hafti_io_watch {
    HAFTI_IO_TRACES = 1,
    HAFTI_IO_LOOKS_FOR_INITIALISERS = 2, /* see initialisers.c */
    HAFTI_IO_TAPES = 4                   /* runs are recorded or replayed (tape/) */
};
extern __attribute__((visibility("hidden"))) unsigned hafti_io_watched;
static inline unsigned hafti_io_watches(void) {
    return __atomic_load_n(&hafti_io_watched, __ATOMIC_RELAXED);
}
static inline bool hafti_io_is_traced(void) {
    return HAFTI_IO_UNLIKELY(hafti_io_watches() & HAFTI_IO_TRACES);
}
/* Whether the order of tasks is kept: all of them go by the loop. */
static inline bool hafti_io_is_told(void) {
    return HAFTI_IO_UNLIKELY(hafti_io_watches() & (HAFTI_IO_TRACES | HAFTI_IO_TAPES));
}
/* Keeps an event of the calling thread. `text` may be NULL; if it `is_new`, the same address may
   have been another text's before. */
void hafti_io_trace(enum hafti_io_event event, const void *task, const char *text, bool is_new,
                    uint64_t other, unsigned code);
/* If the environment asks for it; when a run begins. */
void hafti_io_trace_as_asked(void);
/* In a child of fork, to which the file does not belong. */
void hafti_io_forget_trace(void);

#endif
