/* SPDX-License-Identifier: MIT */
/* Seeing inside of a run. */
#ifndef HAFTI_IO_INSIDE_H
#define HAFTI_IO_INSIDE_H

#include "objects.h"
#include "spans.h"

/* shown.c: the table for debuggers (haft/shown.h). */
extern const haft_shown_table_t hafti_io_shown;
/* Distance from the thread pointer to a thread's worker; 0 before the first run. */
extern intptr_t hafti_io_worker_offset;
HAFTI_IO_COLD void hafti_io_be_shown(void);

/* ---- report.c: a text of any length. Zeroed, it is empty ---- */

typedef struct hafti_io_text {
    char *bytes;
    size_t size, room;
    bool failed; /* no memory */
} hafti_io_text_t;
__attribute__((format(printf, 2, 3))) void hafti_io_add(hafti_io_text_t *text, const char *format,
                                                        ...);
/* Adds a string of JSON; NULL is empty. */
void hafti_io_add_quoted(hafti_io_text_t *text, const char *words);
/* Writes and frees it. Returns 0, -ENOMEM, or the error of a write. */
int hafti_io_text_write(hafti_io_text_t *text, int descriptor);

/* ---- dump.c ---- */

/* Names the state of a task that does not wait. */
const char *hafti_io_state_name(const haft_io_task_t *task);
/* Visits all tasks below the scope that have waited, under their scopes' locks. Returns how many
   others there are. */
size_t hafti_io_visit_tasks(haft_io_scope_t *root,
                            void (*visit)(void *state, const haft_io_task_t *task), void *state);
/* -ESRCH, with words: the function is called outside of a task. */
HAFTI_IO_COLD int hafti_io_refuse_outside(const char *function);
/* Writes the scopes and tasks of the run; by one of its threads. */
int hafti_io_dump_crew(hafti_io_crew_t *crew, bool backtraces, int descriptor);

/* ---- asked.c: what signals and other threads ask of a run, which its threads do between two
   tasks ---- */

enum { HAFTI_IO_ASKED_DUMP = 1, HAFTI_IO_ASKED_TRACE = 2, HAFTI_IO_ASKED_SUMMARY = 4 };
/* Asks for one of these, and wakes the run's threads; also in a signal handler. */
static inline void hafti_io_ask(hafti_io_crew_t *crew, unsigned what) {
    __atomic_fetch_or(&crew->asked, what, __ATOMIC_SEQ_CST);
    unsigned count = __atomic_load_n(&crew->count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < count; i++)
        crew->workers[i]->backend->interrupt(crew->workers[i]);
}
/* Does what was asked. */
HAFTI_IO_COLD void hafti_io_do_as_asked(hafti_io_crew_t *crew);
/* Whether the signal can be caught, and no fault sends it. */
bool hafti_io_may_catch(int signal);
/* From now on the first signal asks for a dump, and the second for a trace to begin or to end (0:
   none), until the next call. 0, or an error. */
int hafti_io_ask_on_signals(hafti_io_crew_t *crew, int dump, int trace);
void hafti_io_ask_no_more(hafti_io_crew_t *crew);
/* In a child of fork. */
void hafti_io_forget_signals(void);

/* ---- summary.c ---- */

/* Adds a line of JSON, the run in figures. With tasks by one of its threads only. */
void hafti_io_summarize(hafti_io_crew_t *crew, bool with_tasks, hafti_io_text_t *text);

/* ---- top.c ---- */

/* Opens the run's socket at this path, or, for NULL, at that of HAFT_IO_TOP, if it is set. Returns
   0, or the error of the given path. An error of HAFT_IO_TOP's path is reported, and is not
   returned. */
int hafti_io_top_start(hafti_io_crew_t *crew, const char *path);
void hafti_io_top_stop(hafti_io_crew_t *crew);
/* Makes the summary that its thread waits for. */
void hafti_io_top_summarize(hafti_io_crew_t *crew);
/* In a child of fork. */
void hafti_io_forget_top(void);

/* ---- watchdog.c ---- */

/* The processor's time of its thread in nanoseconds, or 0; any thread. */
int64_t hafti_io_processor_time(const hafti_io_worker_t *worker);
/* False: no memory, or no thread. */
bool hafti_io_watchdog_start(hafti_io_crew_t *crew, int64_t limit);
void hafti_io_watchdog_stop(hafti_io_crew_t *crew);
/* Lets the watchdog, or a look at an observed run, interrupt the calling thread, a worker's. */
void hafti_io_watchdog_admit(const hafti_io_crew_t *crew);
/* Catches the signal for that. */
void hafti_io_watchdog_catch(void);

/* A worker's thread, as it was when it was interrupted. */
typedef struct hafti_io_glimpse {
    char name[128];             /* of the task that ran */
    const haft_io_task_t *task; /* NULL: none ran */
    void *addresses[64];        /* of the program's frames, innermost first */
    int count;
    int is_done; /* set last, by the thread */
} hafti_io_glimpse_t;
/* Interrupts a worker of an observed run, from any thread, to take the glimpse; whether it was
   taken in time. One thread at a time may call this. */
bool hafti_io_watchdog_glimpse(hafti_io_worker_t *worker, hafti_io_glimpse_t *glimpse);

#endif
