/* SPDX-License-Identifier: MIT */
/* The lists of a scope's tasks: how many have not ended, which of them wait, and which wait to be
   joined. */
#include "waits.h"

/* Locks the list `tasks_here`, or `tasks` and `ended`. */
static void lock_list(haft_io_scope_t *scope, bool here) {
    if (here)
        hafti_io_guard(&scope->lock_here);
    else
        hafti_io_lock_scope(scope);
}

static void unlock_list(haft_io_scope_t *scope, bool here) {
    if (here)
        hafti_io_unguard(&scope->lock_here);
    else
        hafti_io_unlock_scope(scope);
}

void hafti_io_scope_list(haft_io_scope_t *scope, hafti_io_runner_t *runner) {
    runner->here = scope->split && scope->worker == runner->worker;
    lock_list(scope, runner->here);
    hafti_io_append(runner->here ? &scope->tasks_here : &scope->tasks, &runner->link);
    unlock_list(scope, runner->here);
    runner->listed = true;
}

void hafti_io_scope_unlist(haft_io_scope_t *scope, hafti_io_runner_t *runner) {
    lock_list(scope, runner->here);
    hafti_io_unlink(&runner->link);
    unlock_list(scope, runner->here);
    runner->listed = false;
}

/* Counts down without the lock, except for the last task: the task that leaves the scope holds the
   lock when it sees that none is left. */
void hafti_io_scope_count_down_shared(haft_io_scope_t *home, hafti_io_worker_t *worker) {
    if (home->split && home->worker == worker && !home->merged) {
        __atomic_store_n(&home->live_here, home->live_here - 1, __ATOMIC_RELAXED);
        return;
    }
    size_t live = __atomic_load_n(&home->live, __ATOMIC_RELAXED);
    while (live > 1)
        if (__atomic_compare_exchange_n(&home->live, &live, live - 1, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
            return;
    hafti_io_guard(&home->lock);
    hafti_io_cell_t *closer = NULL;
    bool last = __atomic_sub_fetch(&home->live, 1, __ATOMIC_ACQ_REL) == 0;
    if (last && home->closer != NULL && hafti_io_cell_claim(home->closer))
        closer = home->closer;
    bool ends_run = last && home->outer == NULL;
    hafti_io_unguard(&home->lock);
    if (closer != NULL)
        hafti_io_cell_finish(closer, HAFTI_IO_WOKEN);
    if (ends_run)
        hafti_io_end_run(worker->crew);
}

void hafti_io_scope_merge(haft_io_scope_t *scope) {
    if (!scope->split || scope->merged)
        return;
    scope->merged = true;
    __atomic_fetch_add(&scope->live, scope->live_here - HAFTI_IO_UNMERGED, __ATOMIC_RELAXED);
}

void hafti_io_scope_return(haft_io_scope_t *home, haft_io_task_t *task) {
    task->next = __atomic_load_n(&home->returned, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&home->returned, &task->next, task, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        continue;
}
