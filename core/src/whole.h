/* SPDX-License-Identifier: MIT */
/* The top floor: the process, its faults, and looking at all fibers. */
#ifndef HAFT_WHOLE_H
#define HAFT_WHOLE_H

#include "languages.h"

/* leaks.c */
void haft_leaks_watch(void);

/* shown.c: the table for debuggers. */
extern const haft_shown_table_t haft_shown;

/* backtrace.c: prints where the signal's handler has interrupted the thread, to standard error. */
void haft_print_backtrace(const void *context);

/* process.c */
void haft_process_knows(void);

/* overflow.c: the fault handler that recognises a fiber's guard. */
void haft_overflow_watch(void);
void haft_overflow_watch_thread(hafti_thread_t *thread);
void haft_overflow_unwatch_thread(hafti_thread_t *thread);
/* thread_overflow.c: whether a fault is the overflow of a thread's own stack by resumes within
   resumes. `context` is the signal handler's. */
bool haft_thread_overflow(const void *address, const void *context);
/* Whether the fault is where the innermost frame may be, or the next. */
bool haft_faulted_at_sp(const void *address, const void *context);

#endif
