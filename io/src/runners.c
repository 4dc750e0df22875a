/* SPDX-License-Identifier: MIT */
/*
 * Runners: each has a fiber, on which it runs tasks one after the other, and a handler of all
 * operations. A runner whose task has ended takes the next one itself if that is new.
 *
 *   a runner is | with a task | what becomes of it, and by what
 *   new         | yes         | running: the loop resumes it for the first time
 *   running     | yes         | suspended: its task waits or yields; idle: it finds no task
 *   suspended   | yes         | running: the loop, or a task that hands over to it
 *   idle        | no          | running: the loop has a task for it; freed: there are too many, or
 *               |             |   the run ends
 *
 * A task that wants another stack, or thread-locals of its own, has a runner for itself, which is
 * freed with the task.
 */
#include "running.h"

/* ---- What runs on a runner's fiber ---- */

static void begin_task(hafti_io_runner_t *runner, haft_io_task_t *task) {
    task->runner = runner;
    task->worker = runner->worker;
    runner->spawned_at = task->spawned_at;
    runner->scope = task->home;
    runner->cell = NULL;
    runner->waits_for = NULL;
    runner->looked_at = 0;
    runner->yielded = runner->listed = false;
    runner->unwinding = runner->returns_cancels = runner->counted = runner->gated = false;
    runner->unarmed = false;
    runner->accepted = false;
    runner->refused = 0;
    runner->stays = 0;
    runner->timer = NULL;
    runner->rest = NULL;
    runner->unsent = NULL;
    runner->own = NULL;
}

static inline __attribute__((always_inline)) void run_task(hafti_io_runner_t *runner) {
    haft_io_task_t *task = runner->task;
    begin_task(runner, task);
    HAFTI_IO_COUNT(runner->worker->counters.tasks);
    hafti_io_set_state(task, HAFTI_IO_RUNNING);
    runner->worker->operations = runner->worker->turn_begins;
    task->result = task->function(task->argument);
    if (runner->rest != NULL)
        hafti_io_begin_rest(runner);
    else
        hafti_io_task_end(task, 0);
}

static void *run_tasks(void *argument) {
    hafti_io_runner_t *runner = argument;
    while (runner->task != NULL) {
        run_task(runner);
        runner->task = hafti_io_take_new(runner->worker);
        if (runner->task == NULL)
            HAFT_PERFORM(hafti_io_park);
    }
    return NULL;
}
static void *run_runner(void *argument) {
    return haft_handle(((const hafti_io_runner_t *)argument)->worker->crew->operations, argument,
                       run_tasks, argument);
}

static void *run_single_task(void *argument) {
    hafti_io_runner_t *runner = argument;
    run_task(runner);
    runner->task = NULL;
    return NULL;
}
static void *run_single_runner(void *argument) {
    return haft_handle(((const hafti_io_runner_t *)argument)->worker->crew->operations, argument,
                       run_single_task, argument);
}

/* ---- Tasks with thread-locals of their own ---- */

/*
 * Each has a runner, a fiber and a thread pointer of its own. The worker's loop is another one once
 * it has such a task: so the loops of other runs have no instruction for them.
 *
 *   on the runner's fiber, under its pointer         in the loop, under the thread's
 *     run_own_task: begins, calls the function,        own_runner_new: storage, fiber
 *       the destructors, and ends the task     ---->   finished: storage and runner are freed
 *     or it was unwound                        ---->   the farewell: the fiber begins anew
 *     farewell: the destructors, and the end   ---->   finished: as above
 *
 * The destructors are shielded from cancels, which must not unwind a destructor of C++.
 */

static void *call_destructors(void *argument) {
    hafti_io_own_thread_end(argument);
    return NULL;
}

static inline void end_own_thread(hafti_io_runner_t *runner) {
    hafti_io_own_thread_t *thread = hafti_io_own_thread_of(runner);
    if (hafti_io_own_thread_has_destructors(thread))
        haft_io_shield(call_destructors, thread);
}

void haft_io_own_thread_destroy(void) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    hafti_io_runner_t *runner = worker != NULL ? worker->running : NULL;
    if (runner != NULL && runner->owns)
        end_own_thread(runner);
}

static void *run_own_task(void *argument) {
    hafti_io_runner_t *runner = argument;
    haft_io_task_t *task = runner->task;
    begin_task(runner, task);
    HAFTI_IO_COUNT(runner->worker->counters.tasks);
    hafti_io_set_state(task, HAFTI_IO_RUNNING);
    runner->worker->operations = runner->worker->turn_begins;
    void *result = task->function(task->argument);
    while (runner->rest != NULL)
        result = hafti_io_go_on_without_rest(runner);
    end_own_thread(runner);
    task->result = result;
    hafti_io_task_end(task, 0);
    runner->task = NULL;
    return NULL;
}
static void *run_own_runner(void *argument) {
    hafti_io_runner_t *runner = ((const hafti_io_own_thread_t *)argument)->runner;
    hafti_io_own_thread_begin();
    return haft_handle(runner->worker->crew->operations, runner, run_own_task, runner);
}

static void *farewell(void *argument) {
    hafti_io_runner_t *runner = argument;
    haft_io_task_t *task = runner->task;
    begin_task(runner, task);
    hafti_io_set_state(task, HAFTI_IO_RUNNING);
    end_own_thread(runner);
    hafti_io_task_end(task, hafti_io_own_thread_of(runner)->unwound_with);
    runner->task = NULL;
    return NULL;
}
static void *run_farewell(void *argument) {
    hafti_io_runner_t *runner = ((const hafti_io_own_thread_t *)argument)->runner;
    return haft_handle(runner->worker->crew->operations, runner, farewell, runner);
}

void hafti_io_begin_farewell(hafti_io_worker_t *worker, hafti_io_runner_t *runner,
                             const haft_payload_hafti_io_unwind *unwound) {
    haft_io_task_t *task = runner->task;
    hafti_io_drop_unsent(runner);
    hafti_io_check_leaving(task, "has ended");
    if (runner->listed)
        hafti_io_scope_unlist(task->home, runner);
    runner->listed = false;
    hafti_io_own_thread_of(runner)->unwound_with = unwound->code;
    runner->yielded = false;
    haft_fiber_reset(runner->fiber, run_farewell, hafti_io_own_thread_of(runner));
    hafti_io_set_state(task, HAFTI_IO_READY);
    hafti_io_enqueue(worker, task);
}

/* ---- Making and ending them ---- */

static void runner_forget(hafti_io_runner_t *runner) {
    runner->next = runner->worker->free_runners;
    runner->worker->free_runners = runner;
}

/* Makes a runner whose fiber calls the function, with `own_thread` or else with the runner. */
static hafti_io_runner_t *runner_with(hafti_io_worker_t *worker, haft_io_task_t *task,
                                      void *(*function)(void *),
                                      hafti_io_own_thread_t *own_thread) {
    hafti_io_runner_t *runner = worker->free_runners;
    if (runner != NULL)
        worker->free_runners = runner->next;
    else if ((runner = hafti_io_new_record(worker, &worker->runners, sizeof *runner)) == NULL)
        return NULL;
    *runner = (hafti_io_runner_t){.worker = worker, .single = task->stack != 0};
    runner->fiber =
        hafti_io_fiber_of(task, function, own_thread != NULL ? (void *)own_thread : runner);
    if (runner->fiber != NULL)
        return runner;
    runner_forget(runner);
    return NULL;
}

void hafti_io_runner_free(hafti_io_runner_t *runner) {
    haft_fiber_drop(runner->fiber);
    runner_forget(runner);
}

void hafti_io_own_runner_free(hafti_io_runner_t *runner) {
    hafti_io_own_thread_free(hafti_io_own_thread_of(runner));
    hafti_io_runner_free(runner);
}

static __attribute__((noinline)) hafti_io_runner_t *own_runner_new(hafti_io_worker_t *worker,
                                                                   haft_io_task_t *task) {
    hafti_io_own_thread_t *thread = hafti_io_own_thread_new();
    if (thread == NULL)
        return NULL;
    hafti_io_runner_t *runner = runner_with(worker, task, run_own_runner, thread);
    if (runner == NULL) {
        hafti_io_own_thread_free(thread);
        return NULL;
    }
    thread->runner = runner;
    runner->owns = true;
    hafti_io_own_thread_set_stack(thread, runner->fiber->low,
                                  (size_t)(runner->fiber->high - runner->fiber->low));
    return runner;
}

/* Makes a runner with a stack that only this task has. */
static __attribute__((noinline)) hafti_io_runner_t *single_runner_new(hafti_io_worker_t *worker,
                                                                      haft_io_task_t *task) {
    if (!hafti_io_has_own_thread(task))
        return runner_with(worker, task, run_single_runner, NULL);
    return worker->owns ? own_runner_new(worker, task) : NULL;
}

void hafti_io_task_was_unwound(hafti_io_worker_t *worker, hafti_io_runner_t *runner,
                               const haft_payload_hafti_io_unwind *unwound) {
    hafti_io_drop_unsent(runner);
    hafti_io_task_end(runner->task, unwound->code);
    if (worker->idle_count == HAFTI_IO_MOST_IDLE_RUNNERS || runner->single) {
        hafti_io_runner_free(runner);
        return;
    }
    haft_fiber_reset(runner->fiber, run_runner, runner);
    runner->task = NULL;
    hafti_io_runner_rests(worker, runner);
}

void hafti_io_task_has_no_stack(haft_io_task_t *task) {
    if (task->even_without_stack)
        task->function(task->argument);
    hafti_io_scope_fail(task->home, -ENOMEM, "no stack for a task", task);
    hafti_io_task_end(task, -ENOMEM);
}

hafti_io_runner_t *hafti_io_runner_new(hafti_io_worker_t *worker, haft_io_task_t *task) {
    return HAFTI_IO_UNLIKELY(task->stack != 0) ? single_runner_new(worker, task)
                                               : runner_with(worker, task, run_runner, NULL);
}

void hafti_io_runner_ends(hafti_io_runner_t *runner) {
    haft_resume(runner->fiber, HAFT_NO_REPLY, HAFTI_IO_FROM_TASKS);
    hafti_io_runner_free(runner);
}

void hafti_io_free_runners(hafti_io_worker_t *worker) {
    while (worker->idle != NULL) {
        hafti_io_runner_t *runner = worker->idle;
        worker->idle = runner->next;
        hafti_io_runner_ends(runner);
    }
}
