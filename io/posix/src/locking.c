/* SPDX-License-Identifier: MIT */
/*
 * Mutexes and read-write locks of threads. Who holds one may be a task of the same thread that waits meanwhile, and
 * can give it back only if this task lets it run: so a task never blocks its thread for a lock, but tries it again,
 * after turns of others first and pauses then. The try is the system's, and so is what the lock notes of its owner.
 *
 * Nobody expects these calls to fail: no cancel reaches the wait.
 */
#include "internal.h"

typedef struct acquisition {
    int (*try_once)(void *lock);
    void *lock;
    int code;
} acquisition_t;

enum { TURNS = 32 };

static void *acquire_in_turns(void *argument) {
    acquisition_t *a = argument;
    int64_t pause = 0;
    for (int turn = 0; (a->code = a->try_once(a->lock)) == EBUSY; turn++)
        if (turn < TURNS)
            sched_yield();
        else if (haft_posix_pause(&pause) != 0)
            break; /* A simulation in which no task would go on. */
    return NULL;
}

/* EBUSY: the caller is no task, and its thread may block. */
static __attribute__((noinline, cold)) int acquire(int (*try_once)(void *), void *lock) {
    acquisition_t a = {try_once, lock, EBUSY};
    if (!haft_posix_on_task())
        return EBUSY;
    int before = haft_posix_error();
    haft_io_shield(acquire_in_turns, &a);
    haft_posix_set_error(before);
    return a.code;
}

#define ANSWER(function, try_function, type)                                                       \
    static int function##_once(void *lock) {                                                       \
        return SYSTEM(try_function)(lock);                                                         \
    }                                                                                              \
    HAFT_POSIX_EXPORT int function(type *lock) {                                                   \
        if (!haft_io_runs_here())                                                                  \
            return SYSTEM(function)(lock);                                                         \
        int code = SYSTEM(try_function)(lock);                                                     \
        if (code == EBUSY)                                                                         \
            code = acquire(function##_once, lock);                                                 \
        return code == EBUSY ? SYSTEM(function)(lock) : code;                                      \
    }
ANSWER(pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_t)
ANSWER(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t)
ANSWER(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, pthread_rwlock_t)
