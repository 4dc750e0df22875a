/* SPDX-License-Identifier: MIT */
/* How a task goes on: in the queue of its worker, by mail from another thread, or, if it moves,
   with any of them. */
#ifndef HAFTI_IO_READY_H
#define HAFTI_IO_READY_H

#include "workers.h"

/* Ends the run when its last task has ended: all workers leave their loops. */
void hafti_io_end_run(hafti_io_crew_t *crew);

/* Offers a task that moves, is suspended, and can go on, to any worker; called by its own. */
void hafti_io_offer_started(hafti_io_worker_t *worker, haft_io_task_t *task);
/* Makes a task that this worker has taken the worker's own. */
void hafti_io_settle(hafti_io_worker_t *worker, haft_io_task_t *task);
/* Adds the timers of its scopes that are still to be added, before it goes on. */
void hafti_io_set_timers(hafti_io_worker_t *worker, const haft_io_task_t *task);

/* Offers a task, new or started, to the other workers; wakes one of them if all sleep. */
void hafti_io_offer(hafti_io_worker_t *worker, haft_io_task_t *task);
/* Gives a new task that lives long and mostly waits, as one that serves a connection, to the least
   loaded worker. */
void hafti_io_spread(hafti_io_worker_t *worker, haft_io_task_t *task);
/* To be called when a joiner waits for the new task: if that is in the worker's queue, the newest
   tasks go first until it is taken. */
void hafti_io_dive_to(hafti_io_worker_t *worker, const haft_io_task_t *task);
/* Takes the next task that can be started, from the worker's queue or from the overflow; NULL:
   there is none. */
haft_io_task_t *hafti_io_take_offered(hafti_io_worker_t *worker);
/* Searches all queues for a while. NULL: there is nothing, or mail has come. */
haft_io_task_t *hafti_io_search(hafti_io_worker_t *worker);
/* Whether there are tasks for hafti_io_take_offered. */
static inline bool hafti_io_has_offered(const hafti_io_worker_t *worker) {
    return hafti_io_queue_count(&worker->queue) != 0 ||
           __atomic_load_n(&worker->crew->overflow_count, __ATOMIC_RELAXED) != 0;
}
/* Announces that the worker sleeps. False: there is something to do. */
bool hafti_io_falls_asleep(hafti_io_worker_t *worker);
void hafti_io_rises(hafti_io_worker_t *worker);
/* Notes that the worker has work, and does not search any more. */
void hafti_io_stops_searching(hafti_io_worker_t *worker);
/* hafti_io_ready for a task that moves, or that another thread than its worker's wakes. */
HAFTI_IO_COLD void hafti_io_ready_elsewhere(haft_io_task_t *task);
/* Wakes the tasks that other threads have put into the worker's inbox; called by its thread. */
void hafti_io_take_mail(hafti_io_worker_t *worker);
/* This many tasks may start before favoured ones go to the end of the queue like all others, so
   that tasks without a joiner do not starve. */
enum { HAFTI_IO_MOST_FAVOURED = 1024 };
/* Whether a task may be favoured: not if others have been passed over too often. */
static inline bool hafti_io_may_favour(const hafti_io_worker_t *worker) {
    return worker->counters.tasks - worker->fair_at < HAFTI_IO_MOST_FAVOURED;
}
/* Moves a task that is in its worker's queue to the front, unless others have been passed over too
   often. */
void hafti_io_favour(haft_io_task_t *task);
/* The same for a task, of any worker, that may not have started; called by its joiner. In a run
   that is alone the joiner is in the queue from now on, and goes on there if it is READY by
   then. */
void hafti_io_favour_new(hafti_io_worker_t *worker, haft_io_task_t *task, haft_io_task_t *waiter);

/* The task that runs may be woken by itself, when it looks at what the kernel has done before it
   waits: it is READY then although its fiber is not suspended yet, and no other thread may take
   it. */
static inline void hafti_io_let_go_on(hafti_io_worker_t *worker, haft_io_task_t *task) {
    hafti_io_set_state(task, HAFTI_IO_READY);
    if (HAFTI_IO_LIKELY(!hafti_io_linked(&task->queued))) /* otherwise it kept a place */
        hafti_io_append(worker->woken, &task->queued);
}
/* The same for a task that may move; called by its worker. */
static inline void hafti_io_let_go_on_anywhere(hafti_io_worker_t *worker, haft_io_task_t *task) {
    if (HAFTI_IO_UNLIKELY(task->moves) && task->runner->stays == 0 &&
        task->runner != worker->running)
        hafti_io_offer_started(worker, task);
    else
        hafti_io_let_go_on(worker, task);
}
/* Whether the task has a worker, which is the caller's, and stays there. */
static inline bool hafti_io_is_of_this_thread(const haft_io_task_t *task) {
    return task != NULL && task->worker == hafti_io_worker() && !task->moves;
}
/* Whether the task's worker is the caller's, and nothing is to be done but to put the task into its
   queue: in a run that is alone no task moves. */
static inline bool hafti_io_goes_on_plainly(const haft_io_task_t *task) {
    const hafti_io_worker_t *worker = task->worker;
    return worker == hafti_io_worker() && worker->plain;
}
/* Keeps in the trace that the caller wakes the task. */
HAFTI_IO_COLD void hafti_io_trace_wake(const haft_io_task_t *task, uint32_t outcome);
/* Lets a task run again whose cell has been won with this outcome; any thread. */
/* Rare cases return first, here and below: gcc treats code after an `else` that calls a cold
   function as cold. */
static inline void hafti_io_ready(haft_io_task_t *task, uint32_t outcome) {
    if (HAFTI_IO_LIKELY(hafti_io_goes_on_plainly(task))) {
        hafti_io_let_go_on(task->worker, task);
        return;
    }
    if (hafti_io_is_traced())
        hafti_io_trace_wake(task, outcome);
    if (HAFTI_IO_UNLIKELY(!hafti_io_is_of_this_thread(task))) {
        hafti_io_ready_elsewhere(task);
        return;
    }
    hafti_io_let_go_on(task->worker, task);
}

/* Puts a new task where it can be started. */
static inline void hafti_io_enqueue_new(hafti_io_worker_t *worker, haft_io_task_t *task) {
    if (HAFTI_IO_LIKELY(!worker->shared))
        hafti_io_enqueue(worker, task);
    else
        hafti_io_offer(worker, task);
}

#endif
