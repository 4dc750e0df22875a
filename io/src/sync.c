/* SPDX-License-Identifier: MIT */
/* Mutexes, semaphores, conditions, events, promises: each is a few fields, a lock for them, and the
   list of waiters. A release hands the object to the first waiter; a mutex is not handed over at
   once. */
#include "objects.h"

/* Returns from a wait: one that was cancelled unwinds here, when no lock is held any more. */
static int finish(int code) {
    return HAFTI_IO_LIKELY(code != -ECANCELED) ? code : haft_io_unwind_cancelled();
}

static bool has_its_turn(void) {
    return hafti_io_has_its_turn(HAFTI_IO_CANCELLABLE);
}

/* ---- Mutexes ---- */

/*
 * A release does not give the mutex to the first waiter, but wakes it to try: meanwhile running
 * tasks may take the mutex and give it back, many times, without a switch. If the mutex is held
 * when the waiter tries, it waits at the front, and the next release hands it over. So a waiter is
 * passed over only until its turn to run comes, which it does: a task that takes the mutex again
 * and again lets the others of its thread go first when its turn is over.
 *
 * While the mutex is free and tasks wait, one of them has been woken to try.
 */
enum { HAS_IT = HAFTI_IO_ARMS }; /* the outcome of a waiter to which it was handed */

const char hafti_io_a_mutex[] = "a mutex";

static int await_mutex(haft_io_mutex_t *mutex, int64_t deadline, enum hafti_io_wait_kind kind) {
    hafti_io_mutex_wait_t wait = {hafti_io_cell_to_wait(&mutex->lock), mutex};
    hafti_io_place_t place = {.cell = &wait.cell, .outcome = HAFTI_IO_WOKEN};
    hafti_io_take_place(&mutex->waiting, &place);
    for (;;) {
        hafti_io_unguard(&mutex->lock);
        uint32_t outcome = hafti_io_wait_here(&wait.cell, kind, deadline, hafti_io_a_mutex);
        if (outcome == HAS_IT)
            return 0;
        hafti_io_guard(&mutex->lock);
        if (outcome != HAFTI_IO_WOKEN) {
            hafti_io_leave_place(&place);
            hafti_io_unguard(&mutex->lock);
            return hafti_io_code_of(outcome);
        }
        mutex->called = false;
        if (!mutex->held) {
            mutex->held = true;
            mutex->holder = wait.cell.task;
            hafti_io_unguard(&mutex->lock);
            return 0;
        }
        wait.cell.word = HAFTI_IO_WAITING;
        place.outcome = HAS_IT;
        hafti_io_take_first_place(&mutex->waiting, &place);
    }
}

/* Under the lock. */
static void pass_on(haft_io_mutex_t *mutex) {
    while (mutex->waiting.first != NULL && !mutex->called && !mutex->held) {
        hafti_io_place_t *place = hafti_io_first_leaves(&mutex->waiting);
        bool has_it = place->outcome == HAS_IT;
        haft_io_task_t *task = place->cell->task;
        if (hafti_io_cell_win(place->cell, place->outcome)) {
            mutex->held = has_it;
            mutex->holder = task;
            mutex->called = !has_it;
        }
    }
}

static inline int lock_mutex(haft_io_mutex_t *mutex, int64_t deadline, enum hafti_io_wait_kind kind,
                             haft_io_task_t *task) {
    hafti_io_guard(&mutex->lock);
    if (HAFTI_IO_UNLIKELY(mutex->held))
        return await_mutex(mutex, deadline, kind);
    mutex->held = true;
    mutex->holder = task;
    hafti_io_unguard(&mutex->lock);
    return 0;
}

static HAFTI_IO_COLD int lock_after_others(haft_io_mutex_t *mutex, int64_t deadline) {
    return hafti_io_goes_on_after_others(HAFTI_IO_CANCELLABLE)
               ? finish(lock_mutex(mutex, deadline, HAFTI_IO_CANCELLABLE, hafti_io_this_task()))
               : haft_io_unwind_cancelled();
}

/* Looks the worker up once: it may be another one only after others have gone first. */
int haft_io_mutex_lock_until(haft_io_mutex_t *mutex, int64_t deadline) {
    hafti_io_worker_t *worker = hafti_io_worker();
    haft_io_task_t *task = NULL;
    if (HAFTI_IO_LIKELY(worker != NULL)) {
        if (HAFTI_IO_UNLIKELY(!hafti_io_is_in_turn(worker, HAFTI_IO_LIGHT)))
            return lock_after_others(mutex, deadline);
        const hafti_io_runner_t *runner = worker->running;
        task = HAFTI_IO_LIKELY(runner != NULL) ? runner->task : NULL;
    }
    return finish(lock_mutex(mutex, deadline, HAFTI_IO_CANCELLABLE, task));
}

int haft_io_mutex_lock(haft_io_mutex_t *mutex) {
    return haft_io_mutex_lock_until(mutex, HAFT_IO_FOREVER);
}

bool haft_io_mutex_try_lock(haft_io_mutex_t *mutex) {
    hafti_io_has_its_turn(HAFTI_IO_TO_THE_END);
    hafti_io_guard(&mutex->lock);
    bool was_free = !mutex->held;
    mutex->held = true;
    if (was_free)
        mutex->holder = hafti_io_this_task();
    hafti_io_unguard(&mutex->lock);
    return was_free;
}

/* Takes the mutex's lock, and keeps it; reports a mutex that is not locked. */
static void guard_held(haft_io_mutex_t *mutex) {
    hafti_io_guard(&mutex->lock);
    if (HAFTI_IO_LIKELY(mutex->held))
        return;
    hafti_io_unguard(&mutex->lock);
    hafti_io_misuse("A mutex that is not locked was unlocked.");
}

/* Gives back the mutex, and its lock. */
static void release(haft_io_mutex_t *mutex) {
    mutex->held = false;
    if (HAFTI_IO_UNLIKELY(mutex->waiting.first != NULL))
        pass_on(mutex);
    hafti_io_unguard(&mutex->lock);
}

void haft_io_mutex_unlock(haft_io_mutex_t *mutex) {
    guard_held(mutex);
    release(mutex);
}

/* ---- Semaphores ---- */

int haft_io_semaphore_acquire_until(haft_io_semaphore_t *semaphore, int64_t deadline) {
    if (HAFTI_IO_UNLIKELY(!has_its_turn()))
        return haft_io_unwind_cancelled();
    hafti_io_guard(&semaphore->lock);
    if (semaphore->count == 0)
        return finish(hafti_io_wait_in(&semaphore->lock, &semaphore->waiting, deadline,
                                       HAFTI_IO_CANCELLABLE, "a semaphore", NULL));
    semaphore->count--;
    hafti_io_unguard(&semaphore->lock);
    return 0;
}

int haft_io_semaphore_acquire(haft_io_semaphore_t *semaphore) {
    return haft_io_semaphore_acquire_until(semaphore, HAFT_IO_FOREVER);
}

bool haft_io_semaphore_try_acquire(haft_io_semaphore_t *semaphore) {
    hafti_io_has_its_turn(HAFTI_IO_TO_THE_END);
    hafti_io_guard(&semaphore->lock);
    bool had_one = semaphore->count != 0;
    semaphore->count -= had_one;
    hafti_io_unguard(&semaphore->lock);
    return had_one;
}

void haft_io_semaphore_release(haft_io_semaphore_t *semaphore) {
    hafti_io_guard(&semaphore->lock);
    hafti_io_place_t *first = hafti_io_claim_first(&semaphore->waiting);
    semaphore->count += first == NULL;
    hafti_io_unguard(&semaphore->lock);
    hafti_io_let_go(first);
}

/* ---- Conditions ---- */

/* The waiter takes its place under the mutex's lock: a mistake is reported before anything has
   changed. */
int haft_io_condition_wait_until(haft_io_condition_t *condition, haft_io_mutex_t *mutex,
                                 int64_t deadline) {
    guard_held(mutex);
    hafti_io_cell_t cell = hafti_io_cell_to_wait(&mutex->lock);
    hafti_io_place_t place = {.cell = &cell, .outcome = HAFTI_IO_WOKEN};
    hafti_io_guard(&condition->lock);
    hafti_io_take_place(&condition->waiting, &place);
    hafti_io_unguard(&condition->lock);
    release(mutex);
    uint32_t outcome = hafti_io_cell_wait(&cell, HAFTI_IO_CANCELLABLE, deadline, "a condition");
    if (outcome != HAFTI_IO_WOKEN) {
        hafti_io_guard(&condition->lock);
        hafti_io_leave_place(&place);
        hafti_io_unguard(&condition->lock);
    }
    lock_mutex(mutex, HAFT_IO_FOREVER, HAFTI_IO_TO_THE_END, hafti_io_this_task());
    return finish(hafti_io_code_of(outcome));
}

int haft_io_condition_wait(haft_io_condition_t *condition, haft_io_mutex_t *mutex) {
    return haft_io_condition_wait_until(condition, mutex, HAFT_IO_FOREVER);
}

void haft_io_condition_signal(haft_io_condition_t *condition) {
    hafti_io_guard(&condition->lock);
    hafti_io_place_t *first = hafti_io_claim_first(&condition->waiting);
    hafti_io_unguard(&condition->lock);
    hafti_io_let_go(first);
}

void haft_io_condition_broadcast(haft_io_condition_t *condition) {
    hafti_io_guard(&condition->lock);
    hafti_io_place_t *all = hafti_io_claim_all(&condition->waiting);
    hafti_io_unguard(&condition->lock);
    hafti_io_let_all_go(all);
}

/* ---- Events and promises ---- */

void haft_io_event_set(haft_io_event_t *event) {
    hafti_io_guard(&event->lock);
    event->set = true;
    hafti_io_place_t *all = hafti_io_claim_all(&event->waiting);
    hafti_io_unguard(&event->lock);
    hafti_io_let_all_go(all);
}

void haft_io_event_clear(haft_io_event_t *event) {
    hafti_io_guard(&event->lock);
    event->set = false;
    hafti_io_unguard(&event->lock);
}

int haft_io_event_wait_as(haft_io_event_t *event, int64_t deadline, const char *waits_for) {
    if (HAFTI_IO_UNLIKELY(!has_its_turn()))
        return haft_io_unwind_cancelled();
    hafti_io_guard(&event->lock);
    if (!event->set)
        return finish(hafti_io_wait_in(&event->lock, &event->waiting, deadline,
                                       HAFTI_IO_CANCELLABLE, waits_for, NULL));
    hafti_io_unguard(&event->lock);
    return 0;
}

int haft_io_event_wait_until(haft_io_event_t *event, int64_t deadline) {
    return haft_io_event_wait_as(event, deadline, "an event");
}

int haft_io_event_wait(haft_io_event_t *event) {
    return haft_io_event_wait_until(event, HAFT_IO_FOREVER);
}

/* While the event is not set and its lock is held, the task is there. One of another run is not
   this thread's to start. */
static int await_task(haft_io_event_t *event, haft_io_task_t *task) {
    hafti_io_cell_t cell = hafti_io_cell_to_wait(&event->lock);
    hafti_io_place_t place = {.cell = &cell, .outcome = HAFTI_IO_WOKEN, .joins = true};
    hafti_io_worker_t *worker = cell.task->worker;
    hafti_io_take_place(&event->waiting, &place);
    bool is_of_run = task->home->worker->crew == worker->crew;
    const int outer_dive = is_of_run ? hafti_io_let_start_first(cell.task, task) : worker->dives_to;
    hafti_io_unguard(&event->lock);
    int code = hafti_io_wait_at(&place, &event->lock, HAFT_IO_FOREVER, HAFTI_IO_CANCELLABLE,
                                "a task to end");
    hafti_io_has_let_start_first(cell.task, worker, outer_dive);
    return finish(code);
}

int haft_io_event_wait_for(haft_io_event_t *event, haft_io_task_t *task) {
    if (task == NULL || hafti_io_this_task() == NULL)
        return haft_io_event_wait(event);
    if (HAFTI_IO_UNLIKELY(!has_its_turn()))
        return haft_io_unwind_cancelled();
    hafti_io_guard(&event->lock);
    if (!event->set)
        return await_task(event, task);
    hafti_io_unguard(&event->lock);
    return 0;
}

void haft_io_event_wait_to_the_end_as(haft_io_event_t *event, const char *waits_for) {
    hafti_io_has_its_turn(HAFTI_IO_TO_THE_END);
    hafti_io_guard(&event->lock);
    if (!event->set)
        hafti_io_wait_in(&event->lock, &event->waiting, HAFT_IO_FOREVER, HAFTI_IO_TO_THE_END,
                         waits_for, NULL);
    else
        hafti_io_unguard(&event->lock);
}

void haft_io_event_wait_to_the_end(haft_io_event_t *event) {
    haft_io_event_wait_to_the_end_as(event, "an event");
}

void haft_io_promise_set(haft_io_promise_t *promise, void *value) {
    hafti_io_guard(&promise->kept.lock);
    bool kept = promise->kept.set;
    hafti_io_place_t *all = NULL;
    if (!kept) {
        promise->value = value;
        promise->kept.set = true;
        all = hafti_io_claim_all(&promise->kept.waiting);
        for (hafti_io_place_t *place = all; place != NULL; place = place->next)
            place->value = value;
    }
    hafti_io_unguard(&promise->kept.lock);
    hafti_io_let_all_go(all);
    if (kept)
        hafti_io_misuse("A promise was kept twice.");
}

/* The promise may be gone when the wait for it has been ended. */
int haft_io_promise_wait_until(haft_io_promise_t *promise, void **value, int64_t deadline) {
    haft_io_event_t *kept = &promise->kept;
    if (HAFTI_IO_UNLIKELY(!has_its_turn()))
        return haft_io_unwind_cancelled();
    hafti_io_guard(&kept->lock);
    if (!kept->set)
        return finish(hafti_io_wait_in(&kept->lock, &kept->waiting, deadline, HAFTI_IO_CANCELLABLE,
                                       "a promise", value));
    if (value != NULL)
        *value = promise->value;
    hafti_io_unguard(&kept->lock);
    return 0;
}

int haft_io_promise_wait(haft_io_promise_t *promise, void **value) {
    return haft_io_promise_wait_until(promise, value, HAFT_IO_FOREVER);
}
