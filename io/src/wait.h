/* SPDX-License-Identifier: MIT */
/*
 * What a wait does on the stack of its task, inlined where synchronisation objects wait: so a single frame lies
 * between the program's call and the switch. (The processor does not foresee where a return goes once it has
 * switched stacks.) Other waits, and what is rare here, take haft_io_cell_wait.
 */
#ifndef HAFT_IO_WAIT_H
#define HAFT_IO_WAIT_H

#include "internal.h"

/* Suspends the runner's task until its cell has been won. */
static inline __attribute__((always_inline)) void
haft_io_suspend(haft_io_runner_t *runner, const haft_io_worker_t *worker, const char *waits_for) {
    __atomic_store_n(&runner->waits_since, worker->clock, __ATOMIC_RELAXED);
    __atomic_store_n(&runner->waits_for, waits_for, __ATOMIC_RELAXED);
    HAFT_PERFORM(haft_io_park);
    __atomic_store_n(&runner->waits_for, NULL, __ATOMIC_RELAXED);
}

/* As haft_io_cell_wait. */
static inline __attribute__((always_inline)) uint32_t haft_io_wait_here(haft_io_cell_t *cell,
                                                                        enum haft_io_wait_kind kind,
                                                                        int64_t deadline,
                                                                        const char *waits_for) {
    const haft_io_task_t *task = cell->task;
    if (HAFT_IO_UNLIKELY(deadline != HAFT_IO_FOREVER || task == NULL))
        return haft_io_cell_wait(cell, kind, deadline, waits_for);
    haft_io_runner_t *runner = task->runner;
    const haft_io_worker_t *worker = runner->worker;
    if (HAFT_IO_UNLIKELY(!worker->plain || !runner->listed || runner->gated ||
                         haft_io_is_withdrawn(runner)))
        return haft_io_cell_wait(cell, kind, deadline, waits_for);
    if (kind == HAFT_IO_CANCELLABLE)
        runner->cell = cell;
    haft_io_suspend(runner, worker, waits_for);
    runner->cell = NULL;
    return __atomic_load_n(&cell->word, __ATOMIC_ACQUIRE);
}

#endif
