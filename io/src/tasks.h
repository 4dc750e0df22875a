/* SPDX-License-Identifier: MIT */
/* Tasks and scopes: their making, their ends, cancels, and deadlines. */
#ifndef HAFTI_IO_TASKS_H
#define HAFTI_IO_TASKS_H

#include "waits.h"

/* NULL: no memory. The task is not in the ready queue yet. */
haft_io_task_t *hafti_io_task_new(hafti_io_worker_t *worker, haft_io_scope_t *scope,
                                  void *(*function)(void *), void *argument);
void hafti_io_task_end(haft_io_task_t *task, int code);
/* Reports a scope or a deadline that the task has not left; `what` it does. */
void hafti_io_check_leaving(const haft_io_task_t *task, const char *what);
/* Makes a fiber with a stack as the task has it, for the task and for the bodies of its scopes.
   NULL: no memory. */
haft_fiber_t *hafti_io_fiber_of(const haft_io_task_t *task, void *(*function)(void *),
                                void *argument);
/* Gives up the record of a task that has ended and was to be joined; to this worker, the
   caller's. */
void hafti_io_task_forget(haft_io_task_t *task, hafti_io_worker_t *worker);

/* Gives some records to the crew, when more are free than a worker keeps. */
HAFTI_IO_COLD void hafti_io_give_spare_records(hafti_io_worker_t *worker);
enum { HAFTI_IO_MOST_FREE = 256 };
/* Calls hafti_io_task_forget for tasks that other workers have given back; called by the home's
   worker. */
void hafti_io_scope_take_returned(haft_io_scope_t *home);

/* The scope of a task that is spawned here and names no scope; NULL: no memory. */
haft_io_scope_t *hafti_io_scope_of_spawns(haft_io_scope_t *here);
void hafti_io_scope_start(haft_io_scope_t *scope, hafti_io_worker_t *worker, haft_io_scope_t *outer,
                          const haft_io_scope_options_t *options, bool opener_moves);
/* Waits for the tasks, except in a child of fork, and takes the scope out of its outer one. True:
   there were tasks to wait for. */
bool hafti_io_scope_finish(haft_io_scope_t *scope);
/* The scope after `at` on a walk from `top`, with or without those below `at`; NULL: there is none.
   The locks of the scopes on the way down are taken by this function, and that of `top` is by the
   caller; no stack is, however deep they are. `*depth`, of `at`, becomes that of the next. */
haft_io_scope_t *hafti_io_next_scope(haft_io_scope_t *at, const haft_io_scope_t *top, bool down,
                                     unsigned *depth);

/* HAFT_IO_FOREVER: there is none. */
int64_t hafti_io_earliest_deadline(const hafti_io_limit_t *limits);
/* Called when the task opens a scope, and when it has left that. */
hafti_io_limit_t *hafti_io_put_deadlines_aside(hafti_io_runner_t *runner);
void hafti_io_take_deadlines_up(hafti_io_runner_t *runner, hafti_io_limit_t *limits);
/* To be called after what may have ended the last cancel, or the last deadline, that reached the
   task. */
static inline void hafti_io_count_refusals_anew(hafti_io_runner_t *runner) {
    if (HAFTI_IO_UNLIKELY(runner->refused != 0) && !hafti_io_is_withdrawn(runner))
        runner->refused = 0;
}

void hafti_io_scope_cancel(haft_io_scope_t *scope, int code);
/* Sets the scope's timer, when the deadlines that it has to heed are set; on its owner's thread. */
void hafti_io_scope_set_timer(haft_io_scope_t *scope);
/* Notes a failure of the scope by a task that is in it, or has opened it. */
void hafti_io_scope_fail(haft_io_scope_t *scope, int code, const char *message,
                         const haft_io_task_t *task);

static inline void hafti_io_task_release(haft_io_task_t *task, hafti_io_worker_t *worker) {
    hafti_io_set_state(task, HAFTI_IO_FREE);
    task->next = worker->free;
    worker->free = task;
    if (HAFTI_IO_UNLIKELY(worker->shared) && ++worker->free_count > HAFTI_IO_MOST_FREE)
        hafti_io_give_spare_records(worker);
}

#endif
