/* SPDX-License-Identifier: MIT */
/*
 * How a turn of a task begins and ends: shared by the loop (scheduler.c), the choice of the next
 * task (choosing.c), the runners of tasks (runners.c) and yields (yielding.c).
 */
#ifndef HAFTI_IO_RUNNING_H
#define HAFTI_IO_RUNNING_H

#include "scheduler.h"
#include "own_threads.h"
#include "resting.h"

/* ---- Choosing (choosing.c) ---- */

/* A task of a run of one thread, and of one of several; NULL: there is none. */
haft_io_task_t *hafti_io_dequeue_any(hafti_io_worker_t *worker);
haft_io_task_t *hafti_io_dequeue_shared(hafti_io_worker_t *worker);
/* Reports to the trace and to the tape that the task runs. */
HAFTI_IO_COLD void hafti_io_tell_run(hafti_io_worker_t *worker, const haft_io_task_t *task);

/* Upper limit while woken tasks are still queued; polling sooner would wake further tasks before
   these have run. */
enum { HAFTI_IO_POLLED_BETWEEN_POLLS = 256 };

static inline bool hafti_io_is_to_look(const hafti_io_worker_t *worker) {
    return (int)(worker->resumed - worker->look_at) >= 0;
}
/* Whether only the queue of ready tasks has to be looked at, as mostly. */
static inline bool hafti_io_is_plain_turn(const hafti_io_worker_t *worker) {
    return HAFTI_IO_LIKELY(!hafti_io_is_to_look(worker) && hafti_io_ring_empty(&worker->polled));
}
static inline bool hafti_io_has_yielded(const haft_io_task_t *task) {
    return task->runner != NULL && task->runner->yielded;
}

/* ---- A turn ---- */

/* The effects that suspend a task. */
#define HAFTI_IO_FROM_TASKS HAFT_HANDLES(hafti_io_park, haft_io_yield, hafti_io_unwind)

static inline hafti_io_own_thread_t *hafti_io_own_thread_of(const hafti_io_runner_t *runner) {
    return runner->fiber->argument;
}

/* Sets the runner that the watchdog finds. */
static inline void hafti_io_set_running(hafti_io_worker_t *worker, hafti_io_runner_t *runner) {
    __atomic_store_n(&worker->running, runner, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* To be called before the task is resumed. */
static inline void hafti_io_begin_turn(hafti_io_worker_t *worker, hafti_io_runner_t *runner,
                                       const bool shared, const bool owns) {
    hafti_io_set_state(runner->task, HAFTI_IO_RUNNING);
    hafti_io_set_running(worker, runner);
    /* A thread that walks stacks has seen that the task runs, or is seen here: dump.c has the
       barrier between. */
    if (shared && HAFTI_IO_UNLIKELY(__atomic_load_n(&worker->crew->looked_at, __ATOMIC_ACQUIRE)))
        hafti_io_await_look(worker->crew);
    worker->operations = worker->turn_begins;
    if (!owns || !runner->owns) /* whose errno nobody else changes */
        *worker->error = runner->saved_errno;
    runner->yielded = false;
}

/* To be called when the task is suspended, or about to be. */
static inline void hafti_io_note_yield(const hafti_io_worker_t *worker, hafti_io_runner_t *runner) {
    runner->yielded = true;
    runner->saved_errno = *worker->error;
    hafti_io_arm_deadlines(runner);
}

static inline int hafti_io_reply_to_yield(const hafti_io_runner_t *runner) {
    return HAFTI_IO_UNLIKELY(hafti_io_is_withdrawn(runner)) ? -ECANCELED : 0;
}

/* ---- Runners (runners.c) ---- */

/* Makes a runner; NULL: no memory, or the worker needs the loop for tasks with thread-locals of
   their own. */
hafti_io_runner_t *hafti_io_runner_new(hafti_io_worker_t *worker, haft_io_task_t *task);
static inline hafti_io_runner_t *hafti_io_runner_for(hafti_io_worker_t *worker,
                                                     haft_io_task_t *task) {
    hafti_io_runner_t *runner = worker->idle;
    if (HAFTI_IO_UNLIKELY(task->stack != 0) || runner == NULL)
        return hafti_io_runner_new(worker, task);
    worker->idle = runner->next;
    worker->idle_count--;
    return runner;
}
/* Ends a runner that has found no task and returns. */
void hafti_io_runner_ends(hafti_io_runner_t *runner);
enum { HAFTI_IO_MOST_IDLE_RUNNERS = 64 };
static inline void hafti_io_runner_rests(hafti_io_worker_t *worker, hafti_io_runner_t *runner) {
    if (worker->idle_count == HAFTI_IO_MOST_IDLE_RUNNERS) {
        hafti_io_runner_ends(runner);
        return;
    }
    runner->next = worker->idle;
    worker->idle = runner;
    worker->idle_count++;
}
void hafti_io_runner_free(hafti_io_runner_t *runner);
/* The same for one with thread-locals of its own. */
void hafti_io_own_runner_free(hafti_io_runner_t *runner);
/* Called when the runner's task was unwound: the fiber has ended with it, and begins anew for the
   next task, or for the destructors of the task's thread-locals. */
void hafti_io_task_was_unwound(hafti_io_worker_t *worker, hafti_io_runner_t *runner,
                               const haft_payload_hafti_io_unwind *unwound);
HAFTI_IO_COLD void hafti_io_begin_farewell(hafti_io_worker_t *worker, hafti_io_runner_t *runner,
                                           const haft_payload_hafti_io_unwind *unwound);
/* Lets the task fail before it has run: there is no stack for it. */
HAFTI_IO_COLD void hafti_io_task_has_no_stack(haft_io_task_t *task);

#endif
