/* SPDX-License-Identifier: MIT */
/*
 * Deadlines of a block: a time limit for what a task does itself, without a scope and so without a
 * second stack.
 *
 * A task's deadlines are a list, the innermost first. When the time of one comes, the task is
 * `late`: the wait that it is in is withdrawn as by a cancel, and further waits are refused, until
 * that deadline ends or is set anew. haft_io_unwind_cancelled() alone decides what a cancelled wait
 * does next: if the scope of the task was cancelled, the task is unwound; if the task is only late,
 * the wait returns -ETIMEDOUT.
 *
 * Most blocks end before their task has waited: so a deadline has its timer from the first wait or
 * yield on, before which timers are not looked at.
 *
 * A scope that is opened inside of the block inherits the earliest time as its own deadline, unless
 * it is shielded, and puts the list aside (hafti_io_put_deadlines_aside): so its tasks are
 * cancelled, too, and each wait has one reason to end early. If the body of that scope sets the
 * deadline anew, the scope's timer follows. A deadline is touched by its task's thread only; the
 * task stays on that thread meanwhile.
 */
#include "tasks.h"

_Static_assert(sizeof(hafti_io_limit_t) <= sizeof(haft_io_deadline_t) &&
                   _Alignof(hafti_io_limit_t) <= _Alignof(haft_io_deadline_t),
               "haft_io_deadline_t has room for a hafti_io_limit_t");

static hafti_io_limit_t *limit_of(haft_io_deadline_t *deadline) {
    return (hafti_io_limit_t *)(void *)deadline;
}

static bool has_passed(const hafti_io_limit_t *limits) {
    for (const hafti_io_limit_t *limit = limits; limit != NULL; limit = limit->outer)
        if (limit->passed)
            return true;
    return false;
}

static bool is_among(const hafti_io_limit_t *limit, const hafti_io_limit_t *limits) {
    while (limits != NULL && limits != limit)
        limits = limits->outer;
    return limits != NULL;
}

/* Its list may have been put aside: the scope that did so has a timer of its own. */
static void time_has_come(hafti_io_timer_t *timer) {
    hafti_io_limit_t *limit = HAFTI_IO_OWNER(timer, hafti_io_limit_t, timer);
    hafti_io_runner_t *runner = limit->runner;
    limit->passed = true;
    if (!is_among(limit, runner->limits))
        return;
    runner->late = true;
    if (hafti_io_is_traced())
        hafti_io_trace(HAFTI_IO_EVENT_DEADLINE, runner->task, NULL, false, 0, 0);
    hafti_io_cell_cancel(runner, runner->worker->shared);
}

static bool has_come(int64_t time, const hafti_io_runner_t *runner) {
    return time <= runner->worker->clock;
}

static void begin_limit(hafti_io_limit_t *limit, int64_t time, hafti_io_runner_t *runner) {
    *limit = (hafti_io_limit_t){.timer.fire = time_has_come,
                                .time = time,
                                .outer = runner->limits,
                                .runner = runner,
                                .passed = has_come(time, runner)};
    runner->limits = limit;
    runner->late |= limit->passed;
    runner->unarmed = true;
    runner->stays++;
}

/* NULL: no scope of the task has put it aside. */
static haft_io_scope_t *scope_inside_of(const hafti_io_limit_t *limit, const haft_io_task_t *task) {
    haft_io_scope_t *scope = task->runner->scope;
    while (scope != task->home && !is_among(limit, scope->owner_limits))
        scope = scope->outer;
    return scope != task->home ? scope : NULL;
}

static void set_anew(hafti_io_limit_t *limit, int64_t time, const haft_io_task_t *task) {
    hafti_io_runner_t *runner = limit->runner;
    if (HAFTI_IO_UNLIKELY(task == NULL || runner != task->runner))
        hafti_io_misuse("haft_io_deadline_set was given a deadline that another task has begun.");
    hafti_io_timer_remove(&runner->worker->timers, &limit->timer);
    limit->time = time;
    limit->passed = has_come(time, runner);
    runner->late = has_passed(runner->limits);
    hafti_io_count_refusals_anew(runner);
    runner->unarmed = true;
    haft_io_scope_t *inside = scope_inside_of(limit, task);
    if (HAFTI_IO_UNLIKELY(inside != NULL)) {
        hafti_io_limit_arm(limit, &runner->worker->timers);
        hafti_io_scope_set_timer(inside);
    }
}

HAFTI_IO_HOT void haft_io_deadline_set(haft_io_deadline_t *deadline, int64_t time) {
    hafti_io_limit_t *limit = limit_of(deadline);
    const haft_io_task_t *task = hafti_io_this_task();
    if (limit->runner != NULL)
        set_anew(limit, time, task);
    else if (task != NULL)
        begin_limit(limit, time, task->runner);
}

bool haft_io_deadline_passed(const haft_io_deadline_t *deadline) {
    return ((const hafti_io_limit_t *)(const void *)deadline)->passed;
}

HAFTI_IO_HOT void haft_io_deadline_end(haft_io_deadline_t *deadline) {
    hafti_io_limit_t *limit = limit_of(deadline);
    hafti_io_runner_t *runner = limit->runner;
    if (runner == NULL)
        return;
    const haft_io_task_t *task = hafti_io_this_task();
    if (HAFTI_IO_UNLIKELY(task == NULL || task->runner != runner || runner->limits != limit))
        hafti_io_misuse(
            "A deadline is ended that is not the innermost of the current task: a block "
            "that has one ends before the block around it, in the task that began it.");
    if (HAFTI_IO_UNLIKELY(hafti_io_linked(&limit->timer.link)))
        hafti_io_timer_remove(&runner->worker->timers, &limit->timer);
    runner->limits = limit->outer;
    if (HAFTI_IO_UNLIKELY(runner->late)) {
        runner->late = has_passed(runner->limits);
        hafti_io_count_refusals_anew(runner);
    }
    runner->stays--;
    limit->runner = NULL;
}

/* ---- Scopes inside of the block ---- */

int64_t hafti_io_earliest_deadline(const hafti_io_limit_t *limits) {
    int64_t earliest = HAFT_IO_FOREVER;
    for (const hafti_io_limit_t *limit = limits; limit != NULL; limit = limit->outer)
        earliest = limit->time < earliest ? limit->time : earliest;
    return earliest;
}

hafti_io_limit_t *hafti_io_put_deadlines_aside(hafti_io_runner_t *runner) {
    hafti_io_arm_deadlines(runner);
    hafti_io_limit_t *limits = runner->limits;
    runner->limits = NULL;
    runner->late = false;
    return limits;
}

void hafti_io_take_deadlines_up(hafti_io_runner_t *runner, hafti_io_limit_t *limits) {
    runner->limits = limits;
    runner->late = has_passed(limits);
}

/* Its own, or that of a block around it. */
static int64_t deadline_of(const haft_io_scope_t *scope) {
    if (HAFTI_IO_LIKELY(scope->owner_limits == NULL) || scope->shielded)
        return scope->deadline;
    int64_t around = hafti_io_earliest_deadline(scope->owner_limits);
    return around < scope->deadline ? around : scope->deadline;
}

void hafti_io_scope_set_timer(haft_io_scope_t *scope) {
    hafti_io_timers_t *timers = &scope->owner->worker->timers;
    int64_t deadline = deadline_of(scope);
    hafti_io_timer_remove(timers, &scope->timer);
    if (deadline != HAFT_IO_FOREVER)
        hafti_io_timer_add(timers, &scope->timer, deadline);
}
