/* SPDX-License-Identifier: MIT */
/*
 * Which task of a worker goes on next. Two queues take turns: `polled`, of the tasks that the last
 * poll has woken, so that started work ends, and frees its stack, before ever more is started; and
 * `ready`, of the others, in the order in which they became ready. New tasks of a run of several
 * threads are in a queue apart (stealing.c). In a simulation the seed chooses among all that are
 * ready, in a replay the tape.
 *
 * A task that is chosen is in no queue any more. One that has yielded goes behind all others; one
 * that keeps a place in `ready` while it waits is passed over there.
 */
#include "running.h"
#include "tape/replaying.h"
#include "valid.h"

#include <stdlib.h>

static bool polled_turn(const hafti_io_worker_t *worker) {
    return worker->resumed % 2 == 0 && !hafti_io_ring_empty(&worker->polled);
}

static inline __attribute__((always_inline)) void bring(const void *memory, int first, int end) {
#pragma GCC unroll 16
    for (int line = first; line < end; line++)
        __builtin_prefetch((const void *)((uintptr_t)memory + (uintptr_t)(line * HAFTI_IO_LINE)));
}

/* Prefetches. Often many tasks were woken at once, each long after it has used its memory. So a
   task's memory is brought into the processor's caches while some before it run. That saves 0.3 to
   0.7 us of the 9 us of a message (bench/io, echo). */
static void foresee(hafti_io_worker_t *worker) {
    enum { AHEAD = 3 }; /* tasks, with that which is to run */
    /* Cache lines to prefetch: below a task's cell, for the frames of its next calls; above it, for
       its own frames; below its fiber's header, for the scope of its operations; of the header. */
    enum { BELOW = 3, ABOVE = 8, SCOPE = 7, SCOPE_END = 3, HEADER = 4 };
    const hafti_io_link_t *link = worker->polled.next;
    for (unsigned i = 0; i < worker->foreseen && link != &worker->polled; i++)
        link = link->next;
    for (; worker->foreseen < AHEAD && link != &worker->polled; link = link->next) {
        const haft_io_task_t *task = HAFTI_IO_OWNER(link, haft_io_task_t, queued);
        worker->foreseen++;
        if (task->runner->fiber == NULL) { /* it rests */
            bring(task->runner, 0, ABOVE);
            continue;
        }
        bring(task->runner->fiber, 0, HEADER);
        bring(task->runner->fiber, -SCOPE, -SCOPE_END);
        /* A canceller may have it at this moment (cell.c). */
        const void *cell = __atomic_load_n(&task->runner->cell, __ATOMIC_RELAXED);
        bring(cell, -BELOW, ABOVE);
    }
    if (link != &worker->polled)
        __builtin_prefetch(HAFTI_IO_OWNER(link, haft_io_task_t, queued)->runner);
}

static haft_io_task_t *first_ready(hafti_io_worker_t *worker) {
    return hafti_io_ring_empty(&worker->ready)
               ? NULL
               : HAFTI_IO_OWNER(worker->ready.next, haft_io_task_t, queued);
}

static haft_io_task_t *dequeue(hafti_io_worker_t *worker) {
    haft_io_task_t *task = first_ready(worker);
    if (task != NULL)
        hafti_io_unlink(&task->queued);
    return task;
}

static bool has_room(hafti_io_lots_t *lots) {
    if (lots->count < lots->room)
        return true;
    size_t room = lots->room == 0 ? 64 : 2 * lots->room;
    haft_io_task_t **grown = realloc(lots->tasks, room * sizeof(haft_io_task_t *));
    if (grown == NULL)
        return false;
    lots->tasks = grown;
    lots->room = room;
    return true;
}

/* Takes a lot out of the list. */
static haft_io_task_t *take_lot(hafti_io_lots_t *lots, size_t index) {
    haft_io_task_t *task = lots->tasks[index];
    lots->tasks[index] = lots->tasks[--lots->count];
    hafti_io_unlink(&task->queued);
    return task;
}

/* Any of the ready tasks, each with the same chance, in the same time however many there are. */
static HAFTI_IO_COLD haft_io_task_t *dequeue_at_random(hafti_io_worker_t *worker) {
    hafti_io_lots_t *lots = &worker->simulated->lots;
    while (!hafti_io_ring_empty(&worker->ready) && has_room(lots)) {
        haft_io_task_t *task = dequeue(worker);
        hafti_io_append(&lots->ring, &task->queued);
        lots->tasks[lots->count++] = task;
    }
    if (lots->count == 0)
        return dequeue(worker);
    haft_io_task_t *task = take_lot(lots, hafti_io_random(worker->simulated, lots->count));
    if (lots->count != 0 && hafti_io_ring_empty(&worker->ready))
        hafti_io_enqueue(worker, take_lot(lots, lots->count - 1));
    return task;
}

static bool fits_any_runner(const haft_io_task_t *task) {
    return task->runner == NULL && task->stack == 0;
}

static HAFTI_IO_HOT haft_io_task_t *dequeue_polled(hafti_io_worker_t *worker) {
    haft_io_task_t *task = HAFTI_IO_OWNER(worker->polled.next, haft_io_task_t, queued);
    foresee(worker);
    worker->foreseen--;
    hafti_io_unlink(&task->queued);
    return task;
}

/* Takes the first task that the last poll has woken, if it rests. */
static HAFTI_IO_HOT haft_io_task_t *take_rested(hafti_io_worker_t *worker) {
    haft_io_task_t *task = HAFTI_IO_OWNER(worker->polled.next, haft_io_task_t, queued);
    if (task->runner->fiber != NULL || task->stack != 0 ||
        worker->resumed - worker->polled_at >= HAFTI_IO_POLLED_BETWEEN_POLLS)
        return NULL;
    dequeue_polled(worker);
    HAFTI_IO_CHECK(next, worker, task);
    hafti_io_end_rest(task);
    HAFTI_IO_COUNT(worker->resumed);
    return task;
}

static inline __attribute__((always_inline)) haft_io_task_t *take_new(hafti_io_worker_t *worker,
                                                                      const bool shared) {
    if (!shared && !hafti_io_ring_empty(&worker->polled) &&
        (polled_turn(worker) || hafti_io_ring_empty(&worker->ready)))
        return take_rested(worker);
    if (hafti_io_is_to_look(worker) || polled_turn(worker)) /* as always in a simulation */
        return NULL;
    haft_io_task_t *task = first_ready(worker);
    if (HAFTI_IO_LIKELY(task != NULL)) {
        if (!fits_any_runner(task))
            return NULL;
        hafti_io_unlink(&task->queued);
    } else {
        task = shared ? hafti_io_take_offered(worker) : NULL;
        if (task == NULL)
            return NULL;
        if (HAFTI_IO_UNLIKELY(!fits_any_runner(task))) { /* for the loop */
            hafti_io_enqueue(worker, task);
            return NULL;
        }
    }
    HAFTI_IO_COUNT(worker->resumed);
    return task;
}
void hafti_io_tell_run(hafti_io_worker_t *worker, const haft_io_task_t *task) {
    if (hafti_io_is_traced())
        hafti_io_trace(HAFTI_IO_EVENT_RUN, task, task->name, false, 0, 0);
    if (worker->tape != NULL)
        hafti_io_tape_goes_on(worker, task);
}
/* hafti_io_take_new, where the worker is not plain. */
static __attribute__((noinline)) haft_io_task_t *take_new_generally(hafti_io_worker_t *worker) {
    haft_io_task_t *task = worker->shared ? take_new(worker, true) : take_new(worker, false);
    if (task != NULL && hafti_io_is_told())
        hafti_io_tell_run(worker, task);
    return task;
}
haft_io_task_t *hafti_io_take_new(hafti_io_worker_t *worker) {
    return HAFTI_IO_LIKELY(worker->plain) ? take_new(worker, false) : take_new_generally(worker);
}

/* The task, the first of the others, or NULL, unless one that the last poll has woken goes before
   it. */
static inline haft_io_task_t *or_polled(hafti_io_worker_t *worker, haft_io_task_t *task) {
    if (HAFTI_IO_LIKELY(hafti_io_ring_empty(&worker->polled)))
        return task;
    if (task != NULL && !hafti_io_has_yielded(task))
        return task;
    if (task != NULL) /* A yielding task lets all others go first. */
        hafti_io_append(&worker->polled, &task->queued);
    return dequeue_polled(worker);
}

HAFTI_IO_HOT haft_io_task_t *hafti_io_dequeue_any(hafti_io_worker_t *worker) {
    if (worker->simulated != NULL)
        return worker->tape != NULL ? hafti_io_tape_next(worker) : dequeue_at_random(worker);
    if (polled_turn(worker))
        return dequeue_polled(worker);
    haft_io_task_t *task = dequeue(worker);
    while (task != NULL && hafti_io_state(task) == HAFTI_IO_PARKED) /* it kept a place in vain */
        task = dequeue(worker);
    return or_polled(worker, task);
}

/* Chooses a task of this worker. In every fourth turn it prefers one that the last poll has not
   woken. */
static haft_io_task_t *dequeue_own(hafti_io_worker_t *worker) {
    bool others_turn =
        hafti_io_ring_empty(&worker->polled) || worker->favours || worker->resumed % 4 == 0;
    return or_polled(worker, others_turn ? dequeue(worker) : NULL);
}

haft_io_task_t *hafti_io_dequeue_shared(hafti_io_worker_t *worker) {
    bool started_first = worker->favours || worker->resumed % 2 == 0;
    haft_io_task_t *task = started_first ? dequeue_own(worker) : NULL;
    worker->favours = false;
    if (task == NULL) {
        task = hafti_io_take_offered(worker);
        worker->offered = task != NULL;
    }
    if (task == NULL)
        task = dequeue_own(worker);
    if (task == NULL)
        task = hafti_io_search(worker);
    return task;
}
