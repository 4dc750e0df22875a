/* SPDX-License-Identifier: MIT */
/*
 * Mutexes, read-write locks, spin locks and the locks of streams. The holder of a lock may be a
 * task of the same thread that waits meanwhile, and can give the lock back only if it gets to run.
 * So a task that wants such a lock waits as a task, until an unlock wakes it (waiters.c); for a
 * spin lock it tries again, first after turns of other tasks, later after pauses. The try is the
 * system's, and so is the record of the owner in the lock. For a mutex that another thread holds,
 * the task waits in the system, as threads without tasks do; also for those of libhaft, which are
 * never held across a wait.
 *
 * Callers do not expect these calls to fail, so no cancel ends the wait.
 */
#include "thread_tasks.h"
#include "../../src/own_ids.h"
#include "../../src/system_call.h"

#include <limits.h>

typedef struct acquisition {
    int (*try_once)(void *lock);
    void *lock;
    int64_t deadline;
    int code;
} acquisition_t;

enum { TURNS = 32 };

static bool is_over(int64_t deadline) {
    return deadline != HAFT_IO_FOREVER && HAFT_PERFORM(haft_io_now) >= deadline;
}

static void *acquire_in_turns(void *argument) {
    acquisition_t *a = argument;
    int64_t pause = 0;
    for (int turn = 0; (a->code = a->try_once(a->lock)) == EBUSY; turn++) {
        if (is_over(a->deadline)) {
            a->code = ETIMEDOUT;
            break;
        }
        if (turn < TURNS)
            sched_yield();
        else if (hafti_posix_pause_for_lock(&pause) != 0)
            break;
    }
    return NULL;
}

/* Acquires a lock by tries. EBUSY: the system is to wait. */
static int acquire(int (*try_once)(void *), void *lock, int64_t deadline) {
    acquisition_t a = {try_once, lock, deadline, EBUSY};
    int before = hafti_posix_error();
    if (hafti_posix_on_task())
        haft_io_shield(acquire_in_turns, &a);
    hafti_posix_set_error(before);
    return a.code;
}

/* ---- Waits for an unlock ---- */

/* How many tasks wait for some lock: an unlock has nothing to look for while there are none. */
static unsigned waiting;

static uintptr_t key_of(const void *lock) {
    return (uintptr_t)lock + HAFT_POSIX_LOCK;
}

static __attribute__((noinline, cold)) void wake_one(uintptr_t key) {
    hafti_posix_wake(key, 1, UINT32_MAX);
}

/* Called after an unlock, with the key from before: the lock's memory may be gone. */
static inline void wake_next(uintptr_t key) {
#if !defined(__x86_64__) /* where the unlock is a barrier */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
    if (__builtin_expect(__atomic_load_n(&waiting, __ATOMIC_RELAXED) != 0, false))
        wake_one(key);
}

/* Waits for an unlock. (One that the C library makes inside of a wait for a condition, or of a
   stream, is not seen: so this lasts some milliseconds at most.) Returns the code of a try after it
   was listed. */
static int await_unlock(int (*try_once)(void *), void *lock, int64_t deadline) {
    enum { LONGEST = 32 * HAFT_IO_MILLISECOND };
    int64_t limit = HAFT_PERFORM(haft_io_now) + LONGEST;
    hafti_posix_waiter_t waiter = {.key = key_of(lock), .bits = UINT32_MAX};
    __atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);
    hafti_posix_list(&waiter, NULL, 0);
    int code = try_once(lock);
    if (code == EBUSY)
        hafti_posix_await(&waiter, limit < deadline ? limit : deadline);
    else if (hafti_posix_unlist(&waiter)) /* the wake that it got is passed on */
        wake_one(waiter.key);
    __atomic_fetch_sub(&waiting, 1, __ATOMIC_RELAXED);
    return code;
}

/* EBUSY: the caller is no task. */
static int acquire_on_task(int (*try_once)(void *), void *lock, int64_t deadline) {
    if (!hafti_posix_on_task())
        return EBUSY;
    if (haft_io_simulated_calls() != NULL) /* where time does not pass for a lock */
        return acquire(try_once, lock, deadline);
    int before = hafti_posix_error(), code;
    while ((code = try_once(lock)) == EBUSY) {
        if (is_over(deadline)) {
            code = ETIMEDOUT;
            break;
        }
        if ((code = await_unlock(try_once, lock, deadline)) != EBUSY)
            break;
    }
    hafti_posix_set_error(before);
    return code;
}

/* ---- Mutexes ---- */

/* Where the holder of a mutex with inherited priority has ended, the system gives the mutex to the
   caller's thread, under its number; the holder is the task. */
static __attribute__((noinline, cold)) void take_over(pthread_mutex_t *mutex) {
    enum { INHERITS = 32 };
    int *word = &mutex->__data.__lock, number = haft_io_own_thread_id();
    if (number == 0 || (mutex->__data.__kind & INHERITS) == 0)
        return;
    int now = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &now, (int)(now & ~FUTEX_TID_MASK) | number, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
}

static int try_mutex(void *lock) {
    int code = SYSTEM(pthread_mutex_trylock)(lock);
    if (code == EOWNERDEAD)
        take_over(lock);
    return code;
}

/* A mutex that checks errors refuses its holder at once, where that is known: tasks that are no
   threads to the program have one number together. */
static bool refuses_holder(const pthread_mutex_t *mutex) {
    return (mutex->__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK;
}

/* A holder has no number there for a moment, and none as long as it has not mended what the one
   that ended has left. */
static int owner_of(const pthread_mutex_t *mutex) {
    enum { LOOKS = 1000, INCONSISTENT = INT_MAX };
    int owner = 0;
    for (int i = 0; owner == 0 && i < LOOKS; i++)
        owner = __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);
    if (owner == INCONSISTENT)
        owner = __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) & FUTEX_TID_MASK;
    return owner;
}

/* Whether the holder is a task, or may be: of this thread, or with a number of its own, or main. */
static bool may_be_held_by_task(const pthread_mutex_t *mutex) {
    int owner = owner_of(mutex);
    if (owner >= HAFTI_IO_FIRST_OWN_ID && owner <= HAFTI_IO_LAST_OWN_ID)
        return !refuses_holder(mutex) || owner != haft_io_own_thread_id();
    if (owner != 0 && owner == hafti_posix_main_number())
        return !refuses_holder(mutex) || haft_io_own_thread_id() != 0;
    return owner == (int)hafti_io_system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* The code of a lock. */
static inline int note_lock(int code) {
    if (code == 0 || code == EOWNERDEAD)
        hafti_posix_mutexes_held++;
    return code;
}

static __attribute__((noinline, cold)) int acquire_mutex(pthread_mutex_t *mutex) {
    int code =
        may_be_held_by_task(mutex) ? acquire_on_task(try_mutex, mutex, HAFT_IO_FOREVER) : EBUSY;
    return code == EBUSY ? SYSTEM(pthread_mutex_lock)(mutex) : code;
}

HAFT_POSIX_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex) {
    if (!haft_io_runs_here())
        return note_lock(SYSTEM(pthread_mutex_lock)(mutex));
    int code = try_mutex(mutex);
    return note_lock(code == EBUSY ? acquire_mutex(mutex) : code);
}

HAFT_POSIX_EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    int code = note_lock(try_mutex(mutex));
    if (code == EBUSY)
        hafti_posix_take_part();
    return code;
}

HAFT_POSIX_EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    uintptr_t key = key_of(mutex);
    int code = SYSTEM(pthread_mutex_unlock)(mutex);
    wake_next(key);
    hafti_posix_mutexes_held -= code == 0;
    hafti_posix_take_part();
    return code;
}

HAFT_POSIX_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t clock,
                                              const struct timespec *restrict time) {
    int code = haft_io_runs_here() ? try_mutex(mutex) : EBUSY;
    if (code != EBUSY)
        return note_lock(code);
    int64_t deadline = hafti_posix_on_task() && may_be_held_by_task(mutex)
                           ? hafti_posix_deadline_at(clock, time)
                           : -ENOSYS;
    code = deadline < 0 ? EBUSY : acquire_on_task(try_mutex, mutex, deadline);
    return note_lock(code == EBUSY ? SYSTEM(pthread_mutex_clocklock)(mutex, clock, time) : code);
}

HAFT_POSIX_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex,
                                              const struct timespec *restrict time) {
    return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, time);
}

/* ---- Read-write locks, whose readers are not recorded ---- */

static int try_to_read(void *lock) {
    int code = SYSTEM(pthread_rwlock_tryrdlock)(lock);
    if (code == 0)
        wake_next(key_of(lock)); /* a reader, which may read at the same time */
    return code;
}
static int try_to_write(void *lock) {
    return SYSTEM(pthread_rwlock_trywrlock)(lock);
}

/* Defines the function that locks, and the system's function that tries. */
#define LOCK_READ_WRITE(name, try_name, try_it)                                                    \
    HAFT_POSIX_EXPORT int name(pthread_rwlock_t *lock) {                                           \
        int code = haft_io_runs_here() ? SYSTEM(try_name)(lock) : EBUSY;                           \
        if (code == EBUSY)                                                                         \
            code = acquire_on_task(try_it, lock, HAFT_IO_FOREVER);                                 \
        return code == EBUSY ? SYSTEM(name)(lock) : code;                                          \
    }
#define LOCK_READ_WRITE_UNTIL(name, timed_name, try_name, try_it)                                  \
    HAFT_POSIX_EXPORT int name(pthread_rwlock_t *restrict lock, clockid_t clock,                   \
                               const struct timespec *restrict time) {                             \
        int code = haft_io_runs_here() ? SYSTEM(try_name)(lock) : EBUSY;                           \
        int64_t deadline = code == EBUSY && hafti_posix_on_task()                                  \
                               ? hafti_posix_deadline_at(clock, time)                              \
                               : -ENOSYS;                                                          \
        if (deadline >= 0)                                                                         \
            code = acquire_on_task(try_it, lock, deadline);                                        \
        return code == EBUSY ? SYSTEM(name)(lock, clock, time) : code;                             \
    }                                                                                              \
    HAFT_POSIX_EXPORT int timed_name(pthread_rwlock_t *restrict lock,                              \
                                     const struct timespec *restrict time) {                       \
        return name(lock, CLOCK_REALTIME, time);                                                   \
    }

LOCK_READ_WRITE(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, try_to_read)
LOCK_READ_WRITE(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, try_to_write)
LOCK_READ_WRITE_UNTIL(pthread_rwlock_clockrdlock, pthread_rwlock_timedrdlock,
                      pthread_rwlock_tryrdlock, try_to_read)
LOCK_READ_WRITE_UNTIL(pthread_rwlock_clockwrlock, pthread_rwlock_timedwrlock,
                      pthread_rwlock_trywrlock, try_to_write)

HAFT_POSIX_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *lock) {
    uintptr_t key = key_of(lock);
    int code = SYSTEM(pthread_rwlock_unlock)(lock);
    wake_next(key);
    return code;
}

/* ---- Spin locks, and the locks of streams ---- */

static int try_to_spin(void *lock) {
    return SYSTEM(pthread_spin_trylock)(lock);
}

HAFT_POSIX_EXPORT int pthread_spin_lock(pthread_spinlock_t *lock) {
    int code = SYSTEM(pthread_spin_trylock)(lock);
    if (code == EBUSY)
        code = acquire(try_to_spin, (void *)(uintptr_t)lock, HAFT_IO_FOREVER);
    return code == EBUSY ? SYSTEM(pthread_spin_lock)(lock) : code;
}

static int try_stream(void *stream) {
    return SYSTEM(ftrylockfile)(stream) == 0 ? 0 : EBUSY;
}

HAFT_POSIX_EXPORT void flockfile(FILE *stream) {
    if (try_stream(stream) != 0 && acquire_on_task(try_stream, stream, HAFT_IO_FOREVER) != 0)
        SYSTEM(flockfile)(stream);
}

HAFT_POSIX_EXPORT void funlockfile(FILE *stream) {
    uintptr_t key = key_of(stream);
    SYSTEM(funlockfile)(stream);
    wake_next(key);
}
