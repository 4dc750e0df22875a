/* SPDX-License-Identifier: MIT */
/*
 * Waiting without a stack. The function of the task has returned, and its runner with the fiber is
 * for other tasks. What a wait needs lies in the program's haft_io_rest_t: a runner without a
 * fiber, so that whoever cancels, wakes or dumps the task finds there what every waiting task has;
 * the cell, the timer, and the place in the descriptor's list.
 *
 *   the task is | from                   | until
 *   RUNNING     | haft_io_rest           | its function returns
 *   PARKED      | then                   | the cell is won: what comes, a cancel, a close, the deadline
 *   READY       | then, or at once where | the loop of its worker ends the rest, and begins the
 *               |   it cannot rest       |   function on a runner, as it does for a NEW task
 *
 * The function reads, and that wait knows why the rest has ended; it also waits where the rest has
 * ended early. So nothing is handed over.
 */
#include "resting.h"
#include "valid.h"

typedef struct hafti_io_rest {
    hafti_io_runner_t runner; /* the first: it is how the rest is found */
    hafti_io_cell_t cell;
    hafti_io_waiter_t waiter;
    hafti_io_timer_t timer;
    int64_t deadline;
    /* The task has them when its function has returned: until then their place is the result's. */
    void *(*function)(void *);
    void *argument;
    int descriptor;
} rest_t;
_Static_assert(sizeof(rest_t) <= sizeof(haft_io_rest_t) &&
                   _Alignof(rest_t) <= _Alignof(haft_io_rest_t),
               "haft_io_rest_t has room for a rest");

/* Whose frames end before the rest begins. The header of a fiber lies above its frames. */
static bool lies_on_stack(const haft_io_task_t *task, const haft_io_rest_t *given) {
    const haft_fiber_t *fiber = task->runner->fiber;
    return (uintptr_t)given > (uintptr_t)__builtin_frame_address(0) &&
           (uintptr_t)given < (uintptr_t)fiber && haft_fiber_current() == fiber;
}

void haft_io_rest(haft_io_rest_t *given, int descriptor, int64_t deadline,
                  void *(*function)(void *), void *argument) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        hafti_io_misuse("haft_io_rest was called outside of a task.");
    if (function == NULL)
        hafti_io_misuse("A task that rests needs a function to go on with (NULL).");
    if (lies_on_stack(task, given))
        hafti_io_misuse(
            "The task '%s' rests in memory on its own stack, which is given up: keep the "
            "haft_io_rest_t where the argument of its function points to.",
            haft_io_task_name(task));
    hafti_io_check_may_wait(task);
    rest_t *rest = (rest_t *)(void *)given;
    rest->descriptor = descriptor;
    rest->deadline = deadline;
    rest->function = function;
    rest->argument = argument;
    task->runner->rest = rest;
}

static void time_out(hafti_io_timer_t *timer) {
    hafti_io_cell_win(&HAFTI_IO_OWNER(timer, rest_t, timer)->cell, HAFTI_IO_TIMED_OUT);
}

/* False: nothing would wake it. The back end is told first: where it asks the kernel, no other task
   may be waiting. No close by another thread ends between the two, which would be missed. */
static bool waits_for_bytes(rest_t *rest, haft_io_task_t *task) {
    hafti_io_worker_t *worker = task->worker;
    const hafti_io_operation_t read = {.kind = HAFTI_IO_READ_LENT, .descriptor = rest->descriptor};
    hafti_io_descriptor_t *entry =
        hafti_io_descriptor(worker->crew->descriptors, rest->descriptor, true);
    if (entry == NULL || worker->backend->watch == NULL ||
        (worker->shared && hafti_io_begin_use(worker, rest->descriptor) != 0))
        return false;
    bool waits = worker->backend->watch(worker, entry, rest->descriptor) &&
                 hafti_io_enlist(entry, &rest->waiter, &rest->cell, &read, true, false) == 0;
    if (waits)
        hafti_io_count_in(task);
    if (worker->shared)
        hafti_io_end_use(worker, rest->descriptor);
    return waits;
}

/* As a task that waits, until the time at most; nothing else wakes it yet. */
static void begin_to_wait(rest_t *rest, haft_io_task_t *task, int64_t deadline) {
    hafti_io_worker_t *worker = task->worker;
    rest->runner = (hafti_io_runner_t){.task = task,
                                       .worker = worker,
                                       .scope = task->home,
                                       .waits_for = hafti_io_kind_name(HAFTI_IO_READ),
                                       .waits_since = worker->clock,
                                       .stays = 1}; /* with the worker, which has its timer */
    rest->cell = (hafti_io_cell_t){HAFTI_IO_WAITING, task};
    rest->waiter = (hafti_io_waiter_t){.descriptor = NULL};
    rest->timer = (hafti_io_timer_t){.fire = time_out};
    task->runner = &rest->runner;
    hafti_io_scope_list(task->home, &rest->runner);
    if (deadline != HAFT_IO_FOREVER) {
        hafti_io_timer_add(&worker->timers, &rest->timer, deadline);
        rest->runner.timer = &rest->timer;
    }
}

void hafti_io_begin_rest(hafti_io_runner_t *runner) {
    haft_io_task_t *task = runner->task;
    hafti_io_worker_t *worker = runner->worker;
    rest_t *rest = runner->rest;
    hafti_io_check_leaving(task, "rests");
    if (runner->listed) /* it has waited on the stack */
        hafti_io_scope_unlist(task->home, runner);
    task->function = rest->function;
    task->argument = rest->argument;
    begin_to_wait(rest, task, rest->deadline);
    if (!hafti_io_show_to_cancels(&rest->runner, &rest->cell))
        hafti_io_let_go_on(worker, task);
    else if (!waits_for_bytes(rest, task))
        hafti_io_cell_win(&rest->cell, HAFTI_IO_WOKEN);
    if (hafti_io_state(task) == HAFTI_IO_RUNNING) { /* not READY */
        HAFTI_IO_CHECK(waiting, worker, task);
        hafti_io_set_state(task, HAFTI_IO_PARKED);
    }
}

hafti_io_rest_t *hafti_io_end_rest(haft_io_task_t *task) {
    rest_t *rest = (rest_t *)task->runner;
    hafti_io_hide_from_cancels(&rest->runner, &rest->cell);
    hafti_io_scope_unlist(task->home, &rest->runner);
    hafti_io_timer_remove(&task->worker->timers, &rest->timer);
    hafti_io_count_out(task);
    if (rest->waiter.descriptor != NULL)
        hafti_io_delist(&rest->waiter);
    task->runner = NULL;
    return rest;
}

void hafti_io_rest_for_stack(hafti_io_rest_t *rest, haft_io_task_t *task) {
    static const int64_t PAUSE = 100 * HAFT_IO_MILLISECOND;
    begin_to_wait(rest, task, hafti_io_worker_now(task->worker) + PAUSE);
    rest->runner.waits_for = "memory for a stack";
    hafti_io_set_state(task, HAFTI_IO_PARKED);
}
