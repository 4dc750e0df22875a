/* SPDX-License-Identifier: MIT */
/*
 * How a task that has waited goes on: in the queue of its worker, to which another thread sends it
 * by mail; or, if it moves, in a queue that any worker takes from.
 *
 * Tasks that move. A moving task that can go on is OFFERED: it goes into the queue from which tasks
 * are stolen, and the thread that takes it resumes it. Its worker offers it, between tasks; another
 * thread that wakes it sends it to that worker's inbox. So it is suspended by then, and none of its
 * work is under way on that thread.
 *
 *   what it has with its worker           | when it is offered, and when it is taken
 *   the timer of its wait                 | removed: the wait is over
 *   that the back end is to be polled     | counted out
 *   requests to io_uring that are not     | it is not offered: only its own thread may ask for them
 *     done, `stays`                       |   back
 *   timers of the scopes that it has open | removed; added to those of the taker, before the resume
 *   task->worker, runner->worker          | set by the taker
 */
#include "ready.h"

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

/* A time that has come counts now: a task that only yields may be OFFERED whenever timers are
   looked at. */
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

void hafti_io_trace_wake(const haft_io_task_t *task, uint32_t outcome) {
    hafti_io_trace(HAFTI_IO_EVENT_WAKE, task, NULL, false, (uintptr_t)hafti_io_this_task(),
                   outcome);
}

void hafti_io_ready_elsewhere(haft_io_task_t *task) {
    hafti_io_worker_t *worker = task->worker;
    if (worker == hafti_io_worker())
        hafti_io_let_go_on_anywhere(worker, task);
    else
        hafti_io_post(worker, task);
}

void hafti_io_take_mail(hafti_io_worker_t *worker) {
    if (__atomic_load_n(&worker->inbox, __ATOMIC_SEQ_CST) == NULL)
        return;
    haft_io_task_t *task = __atomic_exchange_n(&worker->inbox, NULL, __ATOMIC_ACQUIRE);
    haft_io_task_t *in_order = NULL;
    while (task != NULL) {
        haft_io_task_t *next = task->next;
        task->next = in_order;
        in_order = task;
        task = next;
    }
    while (in_order != NULL) {
        haft_io_task_t *next = in_order->next;
        if (in_order->runner == NULL)
            hafti_io_enqueue(worker, in_order);
        else
            hafti_io_let_go_on_anywhere(worker, in_order);
        in_order = next;
    }
}

void hafti_io_favour(haft_io_task_t *task) {
    hafti_io_worker_t *worker = task->worker;
    if (!hafti_io_may_favour(worker))
        return;
    hafti_io_unlink(&task->queued);
    hafti_io_append(worker->ready.next, &task->queued);
    worker->favours = true;
}

/*
 * Turns the queue until the task is its first. The waiter keeps a place at the end of what it has
 * spawned meanwhile, which most often are the tasks that it waits for next: they run by one switch.
 *
 *   ..., older tasks, `task`, siblings    becomes    `task`, siblings, `waiter`, ..., older tasks
 */
static void turn_queue(hafti_io_worker_t *worker, haft_io_task_t *task, haft_io_task_t *waiter) {
    hafti_io_link_t *head = &worker->ready;
    hafti_io_append(head, &waiter->queued);
    hafti_io_unlink(head);
    hafti_io_append(&task->queued, head);
}

/* Goes depth first: a task that joins a new one lets it go first, and continues when it has ended.
   So a tree of tasks needs stacks for a branch, not for a level. */
void hafti_io_favour_new(hafti_io_worker_t *worker, haft_io_task_t *task, haft_io_task_t *waiter) {
    if (worker->shared)
        hafti_io_dive_to(worker, task);
    else if (!hafti_io_may_favour(worker))
        worker->fair_at = worker->counters.tasks;
    else if (worker->simulated == NULL)
        turn_queue(worker, task, waiter);
}
