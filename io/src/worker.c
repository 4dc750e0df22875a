/* SPDX-License-Identifier: MIT */
/* The calling thread's worker, its clock, its tasks' deadlines, and how it is woken: the parts of
   the scheduler's state that all floors above use. */
#include "system_call.h"
#include "workers.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

__thread hafti_io_worker_t *hafti_io_this_worker;

#if !defined(__x86_64__)
__attribute__((noinline)) hafti_io_worker_t *hafti_io_worker(void) {
    __asm__ volatile("" : : : "memory");
    return hafti_io_this_worker;
}
#endif

void hafti_io_set_worker(hafti_io_worker_t *worker) {
    hafti_io_this_worker = worker;
    if (worker != NULL)
        worker->error = &errno;
}

void hafti_io_copy_worker(const char *from, char *to) {
    ptrdiff_t distance = (const char *)&hafti_io_this_worker - from;
    memcpy(to + distance, &hafti_io_this_worker, sizeof hafti_io_this_worker);
}

bool haft_io_runs_here(void) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    return worker != NULL && !worker->forked;
}

uint64_t haft_io_run_number(void) {
    const haft_io_task_t *task = hafti_io_this_task();
    return task != NULL ? task->worker->crew->number : 0;
}

const char *haft_io_backend(void) {
    const haft_io_task_t *task = hafti_io_this_task();
    return task != NULL && !task->worker->forked ? task->worker->backend->name : NULL;
}

int64_t hafti_io_worker_now(const hafti_io_worker_t *worker) {
    return worker->simulated != NULL ? worker->simulated->now : hafti_io_clock();
}

/* Reads the clock roughly if nothing waits for the back end or a time: that costs less, and is
   enough to show how long a task has waited. */
HAFTI_IO_HOT void hafti_io_set_clock(hafti_io_worker_t *worker) {
    bool roughly =
        !hafti_io_is_awaited(worker) && !worker->times_polls && worker->simulated == NULL;
    worker->clock = roughly ? hafti_io_clock_roughly() : hafti_io_worker_now(worker);
}

void hafti_io_arm_all(hafti_io_runner_t *runner) {
    for (hafti_io_limit_t *limit = runner->limits; limit != NULL; limit = limit->outer)
        hafti_io_limit_arm(limit, &runner->worker->timers);
    runner->unarmed = false;
}

/* The worker announces that it sleeps before it checks for news a last time: at least one of waker
   and sleeper sees the other. */
void hafti_io_rouse(hafti_io_worker_t *worker) {
    if (__atomic_exchange_n(&worker->sleeping, 0, __ATOMIC_SEQ_CST) != 0) {
        __atomic_fetch_add(&worker->counters.wakes, 1, __ATOMIC_RELAXED);
        worker->backend->interrupt(worker);
    }
}

HAFTI_IO_COLD void hafti_io_post(hafti_io_worker_t *worker, haft_io_task_t *task) {
    /* The task may run to its end, and so may the run, before this is done with the worker. */
    __atomic_fetch_add(&worker->posting, 1, __ATOMIC_RELAXED);
    haft_io_task_t *first = __atomic_load_n(&worker->inbox, __ATOMIC_RELAXED);
    do {
        task->next = first;
    } while (!__atomic_compare_exchange_n(&worker->inbox, &first, task, true, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED));
    hafti_io_rouse(worker);
    __atomic_fetch_sub(&worker->posting, 1, __ATOMIC_RELEASE);
}

void hafti_io_await_look(hafti_io_crew_t *crew) {
    hafti_io_guard(&crew->look_lock);
    hafti_io_unguard(&crew->look_lock);
}

/* The address may belong to another object by now, whose thread then wakes and looks in vain. */
void hafti_io_wake_thread(hafti_io_cell_t *cell) {
    hafti_io_futex(&cell->word, FUTEX_WAKE, 1, NULL);
}
