/* SPDX-License-Identifier: MIT */
/*
 * Conditions of threads. A waiting task is not listed in the condition itself, but in a table of
 * this library, by the condition's address; a signal looks there first.
 *
 * A task enters the table, and is counted in `waiting`, before it gives the mutex back. A thread
 * that changes the condition's predicate holds the mutex after that, so when it signals, with the
 * mutex or later, it sees the count. Without waiting tasks a signal costs one look at the count.
 *
 * Callers do not expect these calls to fail, so no cancel ends the wait. A condition shared with
 * other processes is left to the system, because their signals are not seen here.
 */
#include "internal.h"

typedef struct waiter {
    struct waiter *next, *previous;
    const pthread_cond_t *condition;
    haft_io_event_t woken;
    bool signalled;
} waiter_t;

enum { ROWS = 64 };
static struct { waiter_t *first, *last; } rows[ROWS];
static pthread_mutex_t rows_lock = PTHREAD_MUTEX_INITIALIZER; /* no holder of it waits */
static int waiting;                                           /* any thread reads */

static void lock_rows(void) {
    SYSTEM(pthread_mutex_lock)(&rows_lock);
}
static void unlock_rows(void) {
    pthread_mutex_unlock(&rows_lock);
}

/* In a child of fork no tasks can go on. */
static void forget_waiters(void) {
    rows_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    __atomic_store_n(&waiting, 0, __ATOMIC_RELAXED);
    for (int i = 0; i < ROWS; i++)
        rows[i].first = rows[i].last = NULL;
}
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, forget_waiters);
}

static size_t row_of(const pthread_cond_t *condition) {
    return (uintptr_t)condition / sizeof *condition % ROWS;
}

static void enter(waiter_t *waiter) {
    size_t row = row_of(waiter->condition);
    lock_rows();
    __atomic_store_n(&waiting, waiting + 1, __ATOMIC_RELAXED);
    waiter->previous = rows[row].last;
    *(waiter->previous != NULL ? &waiter->previous->next : &rows[row].first) = waiter;
    rows[row].last = waiter;
    unlock_rows();
}

static void take_out(waiter_t *waiter) {
    size_t row = row_of(waiter->condition);
    __atomic_store_n(&waiting, waiting - 1, __ATOMIC_RELAXED);
    *(waiter->previous != NULL ? &waiter->previous->next : &rows[row].first) = waiter->next;
    *(waiter->next != NULL ? &waiter->next->previous : &rows[row].last) = waiter->previous;
}

/* Whether it was signalled before. */
static bool leave(waiter_t *waiter) {
    lock_rows();
    if (!waiter->signalled)
        take_out(waiter);
    unlock_rows();
    return waiter->signalled;
}

/* Whether there was one. */
static __attribute__((noinline, cold)) bool wake(const pthread_cond_t *condition, bool all) {
    bool any = false;
    lock_rows();
    waiter_t *next;
    for (waiter_t *waiter = rows[row_of(condition)].first; waiter != NULL; waiter = next) {
        next = waiter->next;
        if (waiter->condition != condition)
            continue;
        take_out(waiter);
        waiter->signalled = any = true;
        haft_io_event_set(&waiter->woken); /* The waiter takes the lock before it leaves. */
        if (!all)
            break;
    }
    unlock_rows();
    return any;
}

/* ---- Waiting ---- */

typedef struct timed_wait {
    haft_io_event_t *event;
    int64_t deadline;
} timed_wait_t;

static void *wait_until(void *argument) {
    const timed_wait_t *wait = argument;
    haft_io_event_wait_until(wait->event, wait->deadline);
    return NULL;
}

static int wait_on_task(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline) {
    int before = haft_posix_error();
    waiter_t waiter = {.condition = condition};
    enter(&waiter);
    int code = pthread_mutex_unlock(mutex);
    if (code != 0) {
        leave(&waiter);
        return code;
    }
    if (deadline == HAFT_IO_FOREVER)
        haft_io_event_wait_to_the_end(&waiter.woken);
    else
        haft_io_shield(wait_until, &(timed_wait_t){&waiter.woken, deadline});
    bool signalled = leave(&waiter);
    code = pthread_mutex_lock(mutex);
    haft_posix_set_error(before);
    return code != 0 || signalled ? code : ETIMEDOUT;
}

/* The attributes that glibc records in a condition. */
enum { SHARED = 1, MONOTONIC = 2 };
static bool is_for_tasks(const pthread_cond_t *condition) {
    return haft_posix_on_task() && (condition->__data.__wrefs & SHARED) == 0;
}

HAFT_POSIX_EXPORT int pthread_cond_wait(pthread_cond_t *restrict condition,
                                        pthread_mutex_t *restrict mutex) {
    if (!is_for_tasks(condition))
        return SYSTEM(pthread_cond_wait)(condition, mutex);
    return wait_on_task(condition, mutex, HAFT_IO_FOREVER);
}

HAFT_POSIX_EXPORT int pthread_cond_clockwait(pthread_cond_t *restrict condition,
                                             pthread_mutex_t *restrict mutex, clockid_t clock,
                                             const struct timespec *restrict time) {
    int64_t deadline = is_for_tasks(condition) ? haft_posix_deadline_at(clock, time) : -ENOSYS;
    if (deadline < 0)
        return SYSTEM(pthread_cond_clockwait)(condition, mutex, clock, time);
    return wait_on_task(condition, mutex, deadline);
}

HAFT_POSIX_EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict condition,
                                             pthread_mutex_t *restrict mutex,
                                             const struct timespec *restrict time) {
    if (!is_for_tasks(condition))
        return SYSTEM(pthread_cond_timedwait)(condition, mutex, time);
    bool monotonic = (condition->__data.__wrefs & MONOTONIC) != 0;
    return pthread_cond_clockwait(condition, mutex, monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME,
                                  time);
}

/* ---- Signalling ---- */

HAFT_POSIX_EXPORT int pthread_cond_signal(pthread_cond_t *condition) {
    if (__atomic_load_n(&waiting, __ATOMIC_RELAXED) != 0 && wake(condition, false))
        return 0;
    return SYSTEM(pthread_cond_signal)(condition);
}

HAFT_POSIX_EXPORT int pthread_cond_broadcast(pthread_cond_t *condition) {
    if (__atomic_load_n(&waiting, __ATOMIC_RELAXED) != 0)
        wake(condition, true);
    return SYSTEM(pthread_cond_broadcast)(condition);
}
