/* SPDX-License-Identifier: MIT */
/*
 * Tasks that move. One that can go on again is OFFERED: it goes into the queue of what can be stolen, and is
 * resumed by whoever takes it. It is its worker that offers it, between tasks: another thread that wakes it
 * sends it there by mail. So it is suspended by then, and nothing of it is under way on that thread.
 *
 *   what it has with its worker           | when it is offered, and when it is taken
 *   the timer of its wait                 | removed: the wait is over
 *   that the back end is to be polled     | counted out
 *   requests to io_uring that are not     | it is not offered: only its own thread may ask for them back
 *     done, `stays`                       |
 *   timers of the scopes that it has open | removed; added to those of who takes it, before it resumes it
 *   task->worker, runner->worker          | set by who takes it
 */
#include "internal.h"

void hafti_io_offer_started(hafti_io_worker_t *worker, haft_io_task_t *task) {
    hafti_io_count_out(task);
    if (task->runner->timer != NULL)
        hafti_io_timer_remove(&worker->timers, task->runner->timer);
    for (haft_io_scope_t *scope = task->runner->scope; scope != task->home; scope = scope->outer) {
        scope->timed = hafti_io_linked(&scope->timer.link);
        hafti_io_timer_remove(&worker->timers, &scope->timer);
    }
    hafti_io_offer(worker, task);
}

void hafti_io_settle(hafti_io_worker_t *worker, haft_io_task_t *task) {
    task->worker = worker;
    task->runner->worker = worker;
    hafti_io_set_state(task, HAFTI_IO_READY);
}

/* A time that has come counts now: a task that only yields may be OFFERED whenever timers are looked at. */
void hafti_io_set_timers(hafti_io_worker_t *worker, const haft_io_task_t *task) {
    for (haft_io_scope_t *scope = task->runner->scope; scope != task->home; scope = scope->outer) {
        if (!scope->timed)
            continue;
        scope->timed = false;
        if (scope->timer.tick <= worker->clock >> HAFTI_IO_TICK_BITS)
            scope->timer.fire(&scope->timer);
        else
            hafti_io_timer_add(&worker->timers, &scope->timer,
                               scope->timer.tick << HAFTI_IO_TICK_BITS);
    }
}
