/* SPDX-License-Identifier: MIT */
/* The invariants that debug builds check: see valid.h. */
#include "valid.h"

#ifndef NDEBUG

/* A canceller may have the task's cell at this moment (cell.c), and puts a mark in its place: then
   there is nothing to look at. */
static bool still_waits(const hafti_io_runner_t *runner) {
    const hafti_io_cell_t *cell = __atomic_load_n(&runner->cell, __ATOMIC_ACQUIRE);
    return cell != NULL && cell != HAFTI_IO_CELL_TAKEN &&
           __atomic_load_n(&cell->word, __ATOMIC_ACQUIRE) <= HAFTI_IO_CLAIMED;
}

const char *hafti_io_invalid_next(const hafti_io_worker_t *worker, const haft_io_task_t *task) {
    enum hafti_io_task_state state = hafti_io_state(task);
    const hafti_io_runner_t *runner = task->runner;
    if (hafti_io_linked(&task->queued))
        return "a task that goes on is in no queue";
    if (runner == NULL)
        return state == HAFTI_IO_NEW ? NULL : "a task that starts is NEW";
    if (state != HAFTI_IO_READY)
        return "a task that goes on is READY";
    if (runner->task != task)
        return "a task that goes on is its runner's";
    if (runner->worker != worker || task->worker != worker)
        return "a task goes on with its worker";
    return still_waits(runner) ? "a task goes on when its cell has been won" : NULL;
}

/* Another thread may have won its cell by now, and put the task into the inbox; everything further
   happens on this thread only. */
const char *hafti_io_invalid_waiting(const hafti_io_worker_t *worker, const haft_io_task_t *task) {
    const hafti_io_runner_t *runner = task->runner;
    if (task->worker != worker || runner->worker != worker || runner->task != task)
        return "a task waits with its worker";
    if (!runner->listed)
        return "a task that waits is found by who cancels its scope";
    if (runner->timer != NULL && !hafti_io_linked(&runner->timer->link) && still_waits(runner))
        return "a wait with a deadline has a timer until its cell has been won";
    return NULL;
}

const char *hafti_io_invalid_idle(const hafti_io_worker_t *worker) {
    if (!hafti_io_ring_empty(&worker->ready) || !hafti_io_ring_empty(&worker->polled))
        return "a worker sleeps only when its own queues are empty";
    if (worker->running != NULL)
        return "a worker sleeps between tasks";
    if (worker->searching != worker->shared)
        return "a worker of a shared run, and no other, is counted as searching before it sleeps";
    return NULL;
}

const char *hafti_io_invalid_risen(const hafti_io_worker_t *worker) {
    if (__atomic_load_n(&worker->sleeping, __ATOMIC_RELAXED) != 0)
        return "a worker that has risen does not say that it sleeps";
    hafti_io_parking_t parking = hafti_io_parking_look(&worker->crew->parking);
    if ((parking >> worker->index & 1) != 0)
        return "a worker that has risen is not to be woken";
    if (worker->searching && parking < HAFTI_IO_SEARCHER)
        return "a worker that searches is counted";
    return NULL;
}

const char *hafti_io_invalid_ended(const hafti_io_worker_t *worker) {
    if (!hafti_io_ring_empty(&worker->ready) || !hafti_io_ring_empty(&worker->polled) ||
        __atomic_load_n(&worker->inbox, __ATOMIC_ACQUIRE) != NULL)
        return "a run ends when no task can go on";
    if (worker->timers.count != 0 &&
        worker->simulated == NULL) /* whose datagrams may be under way */
        return "no timer outlives its task";
    if (worker->waiting != 0)
        return "no wait for the back end outlives its task";
    return NULL;
}

void hafti_io_invalid(const char *invariant) {
    hafti_io_misuse("An invariant of libhaft-io does not hold: %s. Memory of the library has been "
                    "overwritten, or it has a defect.",
                    invariant);
}

#endif
