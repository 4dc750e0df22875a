/* SPDX-License-Identifier: MIT */
/* Records of the actions of tasks and threads; trace.c has the format. */
#ifndef HAFTI_IO_TRACE_H
#define HAFTI_IO_TRACE_H

#include "base.h"

/* The events of a trace. tools/haft-trace has the same numbers. */
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
    HAFTI_IO_EVENT_SPAN_END,   /* text: its name; other: its value */
    HAFTI_IO_EVENT_SPAN_ID,    /* of the innermost span; other: 8 bytes of an id; code: which */
    HAFTI_IO_EVENT_OPERATED,   /* text: its kind; other: the descriptor << 32 | result */
    HAFTI_IO_EVENT_FRAME,      /* where the last hold has ended; code: 0: the innermost */
    /* Events of computations; other: the fiber. */
    HAFTI_IO_EVENT_RESUME,  /* text: the name of its handler, or its own */
    HAFTI_IO_EVENT_PERFORM, /* text: the effect, to the fiber's resumer */
    HAFTI_IO_EVENT_HANDLE,  /* text: the effect, in place; other: 0 */
    HAFTI_IO_EVENT_FINISH,  /* text: the effect that was thrown, or none */
    HAFTI_IO_EVENT_DROP     /* text: the effect whose reply it awaits */
};
/* The codes of HAFTI_IO_EVENT_SPAN_ID. */
enum { HAFTI_IO_TRACE_HIGH, HAFTI_IO_TRACE_LOW, HAFTI_IO_SPAN, HAFTI_IO_SPAN_PARENT };

/* Extra work that is on in this process: a yield checks for all of it at once. The low 16 bits
   count the tools that are attached to the probes (probes.h), which write to them. */
enum hafti_io_watch {
    HAFTI_IO_PROBES = 0xFFFF,
    HAFTI_IO_TRACES = 1 << 16,
    HAFTI_IO_LOOKS_FOR_INITIALISERS = 1 << 17, /* see initialisers.c */
    HAFTI_IO_KEEPS_SPANS = 1 << 18,            /* see spans.c */
    HAFTI_IO_TAPES = 1 << 19,                  /* runs are recorded or replayed (tape/) */
    HAFTI_IO_COUNTS_WAKES = 1 << 20            /* see wakes.c */
};
extern __attribute__((visibility("hidden"))) unsigned hafti_io_watched;
static inline unsigned hafti_io_watches(void) {
    return __atomic_load_n(&hafti_io_watched, __ATOMIC_RELAXED);
}
static inline bool hafti_io_is_traced(void) {
    const unsigned any = HAFTI_IO_TRACES | HAFTI_IO_PROBES | HAFTI_IO_COUNTS_WAKES;
    return HAFTI_IO_UNLIKELY(hafti_io_watches() & any);
}
/* Whether the order of tasks is kept (by a trace or a tape): all of them go by the loop. */
static inline bool hafti_io_is_told(void) {
    return hafti_io_is_traced() || HAFTI_IO_UNLIKELY(hafti_io_watches() & HAFTI_IO_TAPES);
}
/* Keeps an event of the calling thread, and fires the probes. `text` may be NULL; if it `is_new`,
   the same address may have been another text's before. */
void hafti_io_trace(enum hafti_io_event event, const void *task, const char *text, bool is_new,
                    uint64_t other, unsigned code);
/* An operation of the task, which may be NULL, begins; `size`: of what is sent. */
HAFTI_IO_COLD void hafti_io_trace_operation(const void *task, const char *kind, int descriptor,
                                            size_t size);
HAFTI_IO_COLD void hafti_io_trace_result(const void *task, const char *kind, int descriptor,
                                         ssize_t result);
/* Whether the thread's last event has ended the longest hold of a task so far. True means that
   its frames follow, the innermost first. */
bool hafti_io_trace_held_longest(void);
HAFTI_IO_COLD void hafti_io_trace_frames(const void *task, void *const *addresses, int count);
/* wakes.c: how often the tasks of a name were woken, so far, while that is counted (trace.c). */
void hafti_io_count_wakes(bool count);
HAFTI_IO_COLD void hafti_io_count_wake(const haft_io_task_t *task);
uint64_t hafti_io_wakes_of(const char *name);
/* Begins a trace when a run begins, if the environment asks for it. Returns the signal at which a
   trace is to begin or to end, or 0. */
int hafti_io_trace_as_asked(void);
/* Begins a trace in the file that the environment names, or ends it; after the signal. */
HAFTI_IO_COLD void hafti_io_trace_toggle(void);
/* To be called in a child of fork, to which the file does not belong. */
void hafti_io_forget_trace(void);

#endif
