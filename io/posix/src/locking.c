/* SPDX-License-Identifier: MIT */
/*
 * Mutexes and read-write locks of threads. The holder of a lock may be a task of the same thread
 * that waits meanwhile, and can give the lock back only if it gets to run. So a task that wants
 * such a lock tries again, first after turns of other tasks, later after pauses. The try is the
 * system's, and so is the record of the owner in the lock. For a mutex that another thread holds,
 * the task waits in the system, as threads without tasks do; also for those of libhaft, which are
 * never held across a wait.
 *
 * Callers do not expect these calls to fail, so no cancel ends the wait.
 */
#include "internal.h"
#include "../../src/own_ids.h"
#include "../../src/system_call.h"

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
        else if (hafti_posix_pause_for_lock(&pause) != 0)
            break;
    return NULL;
}

/* EBUSY: the system is to wait. */
static int acquire(int (*try_once)(void *), void *lock) {
    acquisition_t a = {try_once, lock, EBUSY};
    int before = hafti_posix_error();
    if (hafti_posix_on_task())
        haft_io_shield(acquire_in_turns, &a);
    hafti_posix_set_error(before);
    return a.code;
}

/* ---- Mutexes ---- */

static int try_mutex(void *lock) {
    return SYSTEM(pthread_mutex_trylock)(lock);
}

/* The holder is a task of this thread, or may be: it has thread-locals, and so a number, of its
   own. A mutex that checks errors refuses its holder at once. */
static bool may_be_held_here(const pthread_mutex_t *mutex) {
    int owner = __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);
    if (owner >= HAFTI_IO_FIRST_OWN_ID && owner <= HAFTI_IO_LAST_OWN_ID)
        return (mutex->__data.__kind & 3) != PTHREAD_MUTEX_ERRORCHECK ||
               owner != haft_io_own_thread_id();
    return owner == (int)hafti_io_system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

static __attribute__((noinline, cold)) int acquire_mutex(pthread_mutex_t *mutex) {
    int code = may_be_held_here(mutex) ? acquire(try_mutex, mutex) : EBUSY;
    return code == EBUSY ? SYSTEM(pthread_mutex_lock)(mutex) : code;
}

HAFT_POSIX_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex) {
    if (!haft_io_runs_here())
        return SYSTEM(pthread_mutex_lock)(mutex);
    int code = SYSTEM(pthread_mutex_trylock)(mutex);
    return code == EBUSY ? acquire_mutex(mutex) : code;
}

/* ---- Read-write locks, whose readers are not recorded ---- */

static int try_to_read(void *lock) {
    return SYSTEM(pthread_rwlock_tryrdlock)(lock);
}
static int try_to_write(void *lock) {
    return SYSTEM(pthread_rwlock_trywrlock)(lock);
}

HAFT_POSIX_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    int code = haft_io_runs_here() ? SYSTEM(pthread_rwlock_tryrdlock)(lock) : EBUSY;
    if (code == EBUSY)
        code = acquire(try_to_read, lock);
    return code == EBUSY ? SYSTEM(pthread_rwlock_rdlock)(lock) : code;
}

HAFT_POSIX_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    int code = haft_io_runs_here() ? SYSTEM(pthread_rwlock_trywrlock)(lock) : EBUSY;
    if (code == EBUSY)
        code = acquire(try_to_write, lock);
    return code == EBUSY ? SYSTEM(pthread_rwlock_wrlock)(lock) : code;
}
