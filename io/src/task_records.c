/* SPDX-License-Identifier: MIT */
/* The records of tasks, and the stacks that they are given. */
#include "own_threads.h"
#include "tasks.h"

enum { FRESH_AT_ONCE = 16, MOVED_AT_ONCE = 64 };
_Static_assert((int)HAFTI_IO_MOST_FREE >= 4 * MOVED_AT_ONCE, "some stay");

/* Where one thread spawns and another frees, records go back by way of the crew. */
void hafti_io_give_spare_records(hafti_io_worker_t *worker) {
    haft_io_task_t *first = worker->free, *last = first;
    for (int i = 1; i < MOVED_AT_ONCE; i++)
        last = last->next;
    worker->free = last->next;
    worker->free_count -= MOVED_AT_ONCE;
    hafti_io_guard(&worker->crew->lock);
    last->next = worker->crew->spare;
    worker->crew->spare = first;
    hafti_io_unguard(&worker->crew->lock);
}

static HAFTI_IO_COLD bool take_spare(hafti_io_worker_t *worker) {
    hafti_io_guard(&worker->crew->lock);
    for (int i = 0; i < MOVED_AT_ONCE && worker->crew->spare != NULL; i++) {
        haft_io_task_t *task = worker->crew->spare;
        worker->crew->spare = task->next;
        task->next = worker->free;
        worker->free = task;
        worker->free_count++;
    }
    hafti_io_unguard(&worker->crew->lock);
    return worker->free != NULL;
}

HAFTI_IO_COLD static haft_io_task_t *refill(hafti_io_worker_t *worker) {
    if (worker->shared && take_spare(worker))
        return worker->free;
    for (int i = 0; i < FRESH_AT_ONCE; i++) {
        haft_io_task_t *task = hafti_io_new_record(worker, &worker->tasks, sizeof *task);
        if (task == NULL)
            break;
        task->state = HAFTI_IO_FREE;
        task->queued = (hafti_io_link_t){NULL, NULL};
        task->number = 0;
        task->next = worker->free;
        worker->free = task;
        worker->free_count++;
    }
    return worker->free;
}

haft_io_task_t *hafti_io_task_new(hafti_io_worker_t *worker, haft_io_scope_t *scope,
                                  void *(*function)(void *), void *argument) {
    haft_io_task_t *task = worker->free;
    if (HAFTI_IO_UNLIKELY(task == NULL) && (task = refill(worker)) == NULL)
        return NULL;
    worker->free = task->next;
    /* Field by field: clearing the whole costs as much as all the rest of a spawn. */
    task->worker = worker;
    task->runner = NULL;
    task->home = scope;
    task->joiner = HAFTI_IO_NOT_JOINABLE;
    task->function = function;
    task->argument = argument;
    task->name = NULL;
    task->locals = NULL;
    task->moves = scope->moves;
    task->kept = HAFTI_IO_NOT_KEPT;
    task->even_without_stack = false;
    task->spread = false;
    task->stack = worker->crew->own_thread_locals ? HAFTI_IO_OWN_THREAD : 0;
    task->state = HAFTI_IO_NEW;
    if (HAFTI_IO_UNLIKELY(worker->shared)) {
        worker->free_count--;
        hafti_io_scope_count_up_shared(scope, worker);
    } else {
        scope->live++;
    }
    return task;
}

void hafti_io_task_forget(haft_io_task_t *task, hafti_io_worker_t *worker) {
    haft_io_scope_t *home = task->home;
    if (task->kept != HAFTI_IO_NOT_KEPT) {
        bool here = task->kept == HAFTI_IO_KEPT_HERE;
        if (here && home->worker != worker) {
            hafti_io_set_state(task, HAFTI_IO_FREE);
            hafti_io_scope_return(home, task);
            return;
        }
        if (!here)
            hafti_io_lock_scope(home);
        hafti_io_unlink(&task->queued);
        if (!here)
            hafti_io_unlock_scope(home);
    }
    hafti_io_task_release(task, worker);
}

static HAFTI_IO_COLD __attribute__((noinline)) haft_fiber_t *
fiber_on_own_stack(const haft_io_task_t *task, void *(*function)(void *), void *argument) {
    const int bits = task->stack & ~HAFTI_IO_OWN_THREAD;
    if (bits == 0)
        return haft_fiber_new_with(&task->worker->crew->stacks, function, argument);
    haft_fiber_options_t options = {.stack_size = (size_t)1 << bits,
                                    .name = "a task, see haft_io_task_options_t.stack_size"};
    return haft_fiber_new_with(&options, function, argument);
}

haft_fiber_t *hafti_io_fiber_of(const haft_io_task_t *task, void *(*function)(void *),
                                void *argument) {
    if (HAFTI_IO_UNLIKELY(task->stack != 0))
        return fiber_on_own_stack(task, function, argument);
    return haft_fiber_new_with(&task->worker->crew->stacks, function, argument);
}

void hafti_io_scope_take_returned(haft_io_scope_t *home) {
    if (HAFTI_IO_LIKELY(__atomic_load_n(&home->returned, __ATOMIC_RELAXED) == NULL))
        return;
    haft_io_task_t *task = __atomic_exchange_n(&home->returned, NULL, __ATOMIC_ACQUIRE);
    while (task != NULL) {
        haft_io_task_t *next = task->next;
        hafti_io_task_forget(task, home->worker);
        task = next;
    }
}
