/* SPDX-License-Identifier: MIT */
/*
 * Deadlines of a block: a time limit for what a task does itself, without a scope and so without a second stack.
 *
 * A task's deadlines are a list, the innermost first. When the time of one comes, the task is `late`: the wait that
 * it is in is withdrawn as by a cancel, and further waits are refused, until that deadline ends or is set anew. What a
 * cancelled wait does next is decided in one place, haft_io_cancelled(): if the scope of the task was cancelled, the
 * task is unwound; if the task is only late, the wait returns -ETIMEDOUT.
 *
 * A scope that is opened inside of the block inherits the earliest time as its own deadline, unless it is shielded,
 * and puts the list aside (haft_io_put_deadlines_aside): so its tasks are cancelled, too, and each wait has one reason
 * to end early. If the body of that scope sets the deadline anew, the scope's timer follows. A deadline is touched by its task's thread only; the task stays on that thread meanwhile.
 */
#include "internal.h"

struct haft_io_limit {
    haft_io_timer_t timer;
    int64_t time;
    haft_io_limit_t *outer;
    haft_io_runner_t *runner; /* of the task that it belongs to; NULL: it has not begun */
    bool passed;
};
_Static_assert(sizeof(haft_io_limit_t) <= sizeof(haft_io_deadline_t) &&
                   _Alignof(haft_io_limit_t) <= _Alignof(haft_io_deadline_t),
               "haft_io_deadline_t has room for a haft_io_limit_t");

static haft_io_limit_t *limit_of(haft_io_deadline_t *deadline) {
    return (haft_io_limit_t *)(void *)deadline;
}

static bool has_passed(const haft_io_limit_t *limits) {
    for (const haft_io_limit_t *limit = limits; limit != NULL; limit = limit->outer)
        if (limit->passed)
            return true;
    return false;
}

static bool is_among(const haft_io_limit_t *limit, const haft_io_limit_t *limits) {
    while (limits != NULL && limits != limit)
        limits = limits->outer;
    return limits != NULL;
}

/* Its list may have been put aside: the scope that did so has a timer of its own. */
static void time_has_come(haft_io_timer_t *timer) {
    haft_io_limit_t *limit = HAFT_IO_OWNER(timer, haft_io_limit_t, timer);
    haft_io_runner_t *runner = limit->runner;
    limit->passed = true;
    if (!is_among(limit, runner->limits))
        return;
    runner->late = true;
    haft_io_cell_cancel(runner, runner->worker->shared);
}

static void begin(haft_io_limit_t *limit, haft_io_runner_t *runner) {
    *limit =
        (haft_io_limit_t){.timer.fire = time_has_come, .outer = runner->limits, .runner = runner};
    runner->limits = limit;
    runner->stays++;
}

/* NULL: no scope of the task has put it aside. */
static haft_io_scope_t *scope_inside_of(const haft_io_limit_t *limit, const haft_io_task_t *task) {
    haft_io_scope_t *scope = task->runner->scope;
    while (scope != task->home && !is_among(limit, scope->owner_limits))
        scope = scope->outer;
    return scope != task->home ? scope : NULL;
}

void haft_io_deadline_set(haft_io_deadline_t *deadline, int64_t time) {
    haft_io_limit_t *limit = limit_of(deadline);
    const haft_io_task_t *task = haft_io_this_task();
    if (task == NULL && limit->runner == NULL)
        return;
    if (limit->runner == NULL)
        begin(limit, task->runner);
    if (HAFT_IO_UNLIKELY(task == NULL || limit->runner != task->runner))
        haft_io_misuse("haft_io_deadline_set was given a deadline that another task has begun.");
    haft_io_timers_t *timers = &task->worker->timers;
    haft_io_timer_remove(timers, &limit->timer);
    limit->time = time;
    limit->passed = time <= task->worker->clock;
    task->runner->late = has_passed(task->runner->limits);
    if (!limit->passed && time != HAFT_IO_FOREVER)
        haft_io_timer_add(timers, &limit->timer, time);
    haft_io_scope_t *inside = scope_inside_of(limit, task);
    if (HAFT_IO_UNLIKELY(inside != NULL))
        haft_io_scope_set_timer(inside);
}

bool haft_io_deadline_passed(const haft_io_deadline_t *deadline) {
    return ((const haft_io_limit_t *)(const void *)deadline)->passed;
}

void haft_io_deadline_end(haft_io_deadline_t *deadline) {
    haft_io_limit_t *limit = limit_of(deadline);
    haft_io_runner_t *runner = limit->runner;
    if (runner == NULL)
        return;
    const haft_io_task_t *task = haft_io_this_task();
    if (HAFT_IO_UNLIKELY(task == NULL || task->runner != runner || runner->limits != limit))
        haft_io_misuse("A deadline is ended that is not the innermost of the current task: a block "
                       "that has one ends before the block around it, in the task that began it.");
    haft_io_timer_remove(&runner->worker->timers, &limit->timer);
    runner->limits = limit->outer;
    runner->late = has_passed(runner->limits);
    runner->stays--;
    limit->runner = NULL;
}

/* ---- Scopes inside of the block ---- */

int64_t haft_io_earliest_deadline(const haft_io_limit_t *limits) {
    int64_t earliest = HAFT_IO_FOREVER;
    for (const haft_io_limit_t *limit = limits; limit != NULL; limit = limit->outer)
        earliest = limit->time < earliest ? limit->time : earliest;
    return earliest;
}

haft_io_limit_t *haft_io_put_deadlines_aside(haft_io_runner_t *runner) {
    haft_io_limit_t *limits = runner->limits;
    runner->limits = NULL;
    runner->late = false;
    return limits;
}

void haft_io_take_deadlines_up(haft_io_runner_t *runner, haft_io_limit_t *limits) {
    runner->limits = limits;
    runner->late = has_passed(limits);
}
