/* SPDX-License-Identifier: MIT */
/*
 * Conditions of threads. A waiting task is not listed in the condition itself, but in the table of
 * waiters.c, by the condition's address; a signal looks there first.
 *
 * A task enters the table before it gives the mutex back. A thread that changes the condition's
 * predicate holds the mutex after that, so when it signals, with the mutex or later, it finds the
 * task.
 *
 * Callers do not expect these calls to fail, so no cancel ends the wait. A condition shared with
 * other processes is left to the system, because their signals are not seen here.
 */
#include "internal.h"

#include <limits.h>

static uintptr_t key_of_condition(const pthread_cond_t *condition) {
    return (uintptr_t)condition + HAFT_POSIX_CONDITION;
}

static int wait_on_task(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline) {
    hafti_posix_end_if_asked();
    int before = hafti_posix_error();
    hafti_posix_waiter_t waiter = {.key = key_of_condition(condition), .bits = UINT32_MAX};
    hafti_posix_list(&waiter, NULL, 0);
    int code = pthread_mutex_unlock(mutex);
    if (code != 0) {
        hafti_posix_unlist(&waiter);
        return code;
    }
    bool signalled = hafti_posix_await_cut(&waiter, deadline);
    code = pthread_mutex_lock(mutex);
    hafti_posix_end_if_asked();
    hafti_posix_was_interrupted(); /* woken for nothing, as it may be */
    hafti_posix_set_error(before);
    return code != 0 || signalled ? code : ETIMEDOUT;
}

/* The attributes that glibc records in a condition. */
enum { SHARED = 1, MONOTONIC = 2 };
static bool is_for_tasks(const pthread_cond_t *condition) {
    return hafti_posix_on_task() && (condition->__data.__wrefs & SHARED) == 0;
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
    int64_t deadline = is_for_tasks(condition) ? hafti_posix_deadline_at(clock, time) : -ENOSYS;
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
    if (hafti_posix_wake(key_of_condition(condition), 1, UINT32_MAX) != 0)
        return 0;
    return SYSTEM(pthread_cond_signal)(condition);
}

HAFT_POSIX_EXPORT int pthread_cond_broadcast(pthread_cond_t *condition) {
    hafti_posix_wake(key_of_condition(condition), INT_MAX, UINT32_MAX);
    return SYSTEM(pthread_cond_broadcast)(condition);
}
