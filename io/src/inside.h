/* SPDX-License-Identifier: MIT */
/* Seeing inside of a run. */
#ifndef HAFTI_IO_INSIDE_H
#define HAFTI_IO_INSIDE_H

#include "objects.h"

/* shown.c: the table for debuggers (haft/shown.h). */
extern const haft_shown_table_t hafti_io_shown;
/* From the thread pointer to where a thread has its worker; 0 before the first run. */
extern intptr_t hafti_io_worker_offset;
HAFTI_IO_COLD void hafti_io_be_shown(void);

/* Writes the dump that a signal has asked for. */
HAFTI_IO_COLD void hafti_io_dump_as_asked(hafti_io_crew_t *crew);
/* From now on the signal asks for a dump, until the second call. 0, or -EINVAL. */
int hafti_io_dump_on_signal(hafti_io_crew_t *crew, int signal);
void hafti_io_dump_no_more(hafti_io_crew_t *crew);
/* In a child of fork. */
void hafti_io_forget_dumps(void);
/* False: no memory, or no thread. */
bool hafti_io_watchdog_start(hafti_io_crew_t *crew, int64_t limit);
void hafti_io_watchdog_stop(hafti_io_crew_t *crew);
/* Lets it interrupt the calling thread, a worker's; and so for looks at an observed run. */
void hafti_io_watchdog_admit(const hafti_io_crew_t *crew);
/* Catches the signal for that. */
void hafti_io_watchdog_catch(void);

/* What a worker's thread was doing when it was interrupted. */
typedef struct hafti_io_glimpse {
    char name[128]; /* of the task that ran */
    const haft_io_task_t *task; /* NULL: none ran */
    void *addresses[64];        /* of the program's frames, innermost first */
    int count;
    int is_done; /* set last, by the thread */
} hafti_io_glimpse_t;
/* Interrupts a worker of an observed run for it, on any thread: whether it has come in time. One
   thread at a time asks. */
bool hafti_io_watchdog_glimpse(hafti_io_worker_t *worker, hafti_io_glimpse_t *glimpse);

#endif
