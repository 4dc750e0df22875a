/* SPDX-License-Identifier: MIT */
/* Tasks: their making and end, joining, names, values by key. */
#include "internal.h"

#include <stdlib.h>

HAFT_IO_COLD static haft_io_task_t *refill(haft_io_worker_t *worker) {
    /* A task's memory stays a task's, and the worker's, until the run ends. */
    haft_io_block_t *block = malloc(sizeof *block);
    if (block == NULL)
        return NULL;
    block->next = worker->blocks;
    worker->blocks = block;
    for (size_t i = 0; i < HAFT_IO_TASKS_IN_BLOCK; i++) {
        block->tasks[i].state = HAFT_IO_FREE;
        block->tasks[i].next = worker->free;
        worker->free = &block->tasks[i];
    }
    return worker->free;
}

haft_io_task_t *haft_io_task_new(haft_io_worker_t *worker, haft_io_scope_t *scope,
                                 void *(*function)(void *), void *argument) {
    haft_io_task_t *task = worker->free;
    if (HAFTI_UNLIKELY(task == NULL) && (task = refill(worker)) == NULL)
        return NULL;
    worker->free = task->next;
    /* Field by field: clearing the whole costs as much as all the rest of a spawn. */
    task->worker = worker;
    task->runner = NULL;
    task->home = task->scope = scope;
    task->cell = task->joiner = NULL;
    task->waits_for = NULL;
    task->function = function;
    task->argument = argument;
    task->name = NULL;
    task->locals = NULL;
    task->state = HAFT_IO_NEW;
    task->yielded = task->joinable = task->unwinding = task->returns_cancels = false;
    scope->live++;
    haft_io_append(&scope->tasks, &task->link);
    return task;
}

static void release(haft_io_task_t *task) {
    haft_io_worker_t *worker = task->worker;
    task->state = HAFT_IO_FREE;
    task->next = worker->free;
    worker->free = task;
}

static void forget_locals(haft_io_task_t *task) {
    haft_io_binding_t *binding = task->locals;
    while (binding != NULL && --binding->uses == 0) {
        haft_io_binding_t *outer = binding->outer;
        free(binding);
        binding = outer;
    }
    task->locals = NULL;
}

void haft_io_task_end(haft_io_task_t *task, int code) {
    haft_io_scope_t *home = task->home;
    task->code = code;
    task->state = HAFT_IO_ENDED;
    haft_io_unlink(&task->link);
    if (HAFTI_UNLIKELY(task->locals != NULL))
        forget_locals(task);
    if (!task->joinable) {
        release(task);
    } else {
        haft_io_append(&home->ended, &task->link);
        if (task->joiner != NULL) {
            haft_io_task_t *joiner = task->joiner->task;
            if (haft_io_cell_win(task->joiner, HAFT_IO_WOKEN))
                haft_io_favour(joiner);
        }
    }
    if (--home->live == 0 && home->closer != NULL)
        haft_io_cell_win(home->closer, HAFT_IO_WOKEN);
}

void haft_io_task_forget(haft_io_task_t *task) {
    haft_io_unlink(&task->link);
    release(task);
}

void haft_io_task_interrupt(haft_io_task_t *task) {
    if (task->cell != NULL)
        haft_io_cell_win(task->cell, HAFT_IO_CANCELLED);
}

/* ---- Spawning ---- */

static haft_io_task_t *spawn(haft_io_scope_t *scope, const char *name, void *(*function)(void *),
                             void *argument) {
    haft_io_task_t *parent = haft_io_self();
    if (HAFTI_UNLIKELY(parent == NULL))
        haft_io_misuse("A task is spawned outside of a scheduler: call this under haft_io_run.");
    if (HAFTI_UNLIKELY(function == NULL))
        haft_io_misuse("A task needs a function to run (NULL).");
    haft_io_worker_t *worker = parent->worker;
    haft_io_task_t *task =
        haft_io_task_new(worker, scope != NULL ? scope : parent->scope, function, argument);
    if (HAFTI_UNLIKELY(task == NULL))
        return NULL;
    task->name = name != NULL ? name : parent->name;
    if (HAFTI_UNLIKELY(parent->locals != NULL)) {
        task->locals = parent->locals;
        task->locals->uses++;
    }
    haft_io_enqueue(worker, task);
    return task;
}

int haft_io_spawn(void *(*function)(void *), void *argument) {
    return spawn(NULL, NULL, function, argument) != NULL ? 0 : -ENOMEM;
}

haft_io_task_t *haft_io_async(void *(*function)(void *), void *argument) {
    haft_io_task_t *task = spawn(NULL, NULL, function, argument);
    if (task != NULL)
        task->joinable = true;
    return task;
}

haft_io_task_t *haft_io_async_with(const haft_io_task_options_t *options, void *(*function)(void *),
                                   void *argument) {
    haft_io_task_t *task = spawn(options->scope, options->name, function, argument);
    if (task != NULL)
        task->joinable = true;
    return task;
}

int haft_io_join(haft_io_task_t *task, void **result) {
    haft_io_task_t *self = haft_io_self();
    if (self == NULL || self == task || task->state == HAFT_IO_FREE || !task->joinable ||
        task->joiner != NULL)
        haft_io_misuse("The task '%s' cannot be joined: %s.", haft_io_task_name(task),
                       self == NULL                  ? "its joiner is no task"
                       : self == task                ? "it would wait for itself"
                       : task->state == HAFT_IO_FREE ? "it has been joined, or its scope has ended"
                       : task->joiner != NULL        ? "another task joins it"
                                                     : "nobody has asked for its result");
    if (task->state != HAFT_IO_ENDED) {
        haft_io_cell_t cell = {HAFT_IO_WAITING, self};
        task->joiner = &cell;
        if (task->state == HAFT_IO_NEW)
            haft_io_favour(task);
        if (haft_io_cell_wait(&cell, HAFT_IO_CANCELLABLE, HAFT_IO_FOREVER, "a task to end") ==
            HAFT_IO_CANCELLED) {
            if (task->state == HAFT_IO_ENDED) {
                haft_io_task_forget(task);
            } else {
                task->joiner = NULL;
                task->joinable = false;
            }
            return haft_io_cancelled();
        }
    }
    int code = task->code;
    if (result != NULL)
        *result = task->result;
    haft_io_task_forget(task);
    return code;
}

/* ---- Names and values ---- */

const char *haft_io_task_name(const haft_io_task_t *task) {
    return task->name != NULL ? task->name : "";
}

void haft_io_set_task_name(const char *name) {
    haft_io_task_t *task = haft_io_self();
    if (task != NULL)
        task->name = name;
}

void *haft_io_local(const void *key) {
    haft_io_task_t *task = haft_io_self();
    if (task == NULL)
        return NULL;
    for (const haft_io_binding_t *binding = task->locals; binding != NULL; binding = binding->outer)
        if (binding->key == key)
            return binding->value;
    return NULL;
}

int haft_io_set_local(const void *key, void *value) {
    haft_io_task_t *task = haft_io_self();
    if (task == NULL)
        haft_io_misuse("haft_io_set_local was called outside of a task.");
    if (task->locals != NULL && task->locals->key == key && task->locals->uses == 1) {
        task->locals->value = value;
        return 0;
    }
    haft_io_binding_t *binding = malloc(sizeof *binding);
    if (binding == NULL)
        return -ENOMEM;
    *binding = (haft_io_binding_t){task->locals, 1, key, value};
    task->locals = binding;
    return 0;
}
