/* SPDX-License-Identifier: MIT */
/*
 * What a wait does on the stack of its task, inlined where synchronisation objects wait: so a single frame lies
 * between the program's call and the switch. (The processor does not foresee where a return goes once it has
 * switched stacks.) Other waits, and what is rare here, take hafti_io_cell_wait.
 */
#ifndef HAFTI_IO_WAIT_H
#define HAFTI_IO_WAIT_H

#include "internal.h"

/* Suspends the runner's task until its cell has been won. */
static inline __attribute__((always_inline)) void hafti_io_suspend(hafti_io_runner_t *runner,
                                                                   const hafti_io_worker_t *worker,
                                                                   const char *waits_for) {
    __atomic_store_n(&runner->waits_since, worker->clock, __ATOMIC_RELAXED);
    __atomic_store_n(&runner->waits_for, waits_for, __ATOMIC_RELAXED);
    HAFT_PERFORM(hafti_io_park);
    __atomic_store_n(&runner->waits_for, NULL, __ATOMIC_RELAXED);
}

/* As hafti_io_cell_wait. */
static inline __attribute__((always_inline)) uint32_t
hafti_io_wait_here(hafti_io_cell_t *cell, enum hafti_io_wait_kind kind, int64_t deadline,
                   const char *waits_for) {
    const haft_io_task_t *task = cell->task;
    if (HAFTI_IO_UNLIKELY(deadline != HAFT_IO_FOREVER || task == NULL))
        return hafti_io_cell_wait(cell, kind, deadline, waits_for);
    hafti_io_runner_t *runner = task->runner;
    const hafti_io_worker_t *worker = runner->worker;
    if (HAFTI_IO_UNLIKELY(!worker->plain || !runner->listed || runner->gated ||
                          hafti_io_is_withdrawn(runner)))
        return hafti_io_cell_wait(cell, kind, deadline, waits_for);
    if (kind == HAFTI_IO_CANCELLABLE)
        runner->cell = cell;
    hafti_io_suspend(runner, worker, waits_for);
    runner->cell = NULL;
    return __atomic_load_n(&cell->word, __ATOMIC_ACQUIRE);
}

#endif
