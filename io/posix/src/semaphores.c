/* SPDX-License-Identifier: MIT */
/*
 * Semaphores. A task that waits for one is listed by its address (waiters.c), and tries again when
 * a post has woken it, since the count is the C library's: any thread may be faster. Posts of other
 * processes are not seen here, so a task looks at a semaphore that processes share after pauses.
 *
 * A signal handler may post, and may have interrupted a thread that changes a list. Where signals
 * are blocked, as in a handler, another thread does the waking: it is made when a task waits for a
 * semaphore for the first time, and sleeps until then.
 *
 * Callers do not expect these calls to fail, so no cancel ends the wait.
 */
#include "thread_tasks.h"
#include "../../src/system_call.h"

#include <limits.h>
#include <semaphore.h>
#include <string.h>

/* ---- The thread that wakes for signal handlers ---- */

static uint32_t posts; /* of handlers, which it has not seen */
static pthread_once_t has_waker = PTHREAD_ONCE_INIT;

static void *wake_after_handlers(void *unused) {
    for (;;) {
        if (__atomic_exchange_n(&posts, 0, __ATOMIC_SEQ_CST) == 0)
            hafti_io_futex(&posts, FUTEX_WAIT, 0, NULL);
        else
            hafti_posix_wake_kind(HAFT_POSIX_SEMAPHORE);
    }
    return unused;
}

static void make_waker(void) {
    hafti_posix_make_thread(wake_after_handlers);
}

static bool may_be_in_handler(void) {
    sigset_t blocked, none;
    sigemptyset(&none);
    haft_io_signal_mask(&blocked);
    return memcmp(&blocked, &none, _NSIG / CHAR_BIT) != 0;
}

static void wake(uintptr_t key) {
    if (!may_be_in_handler()) {
        hafti_posix_wake(key, 1, UINT32_MAX);
        return;
    }
    __atomic_store_n(&posts, 1, __ATOMIC_SEQ_CST);
    hafti_io_futex(&posts, FUTEX_WAKE, 1, NULL);
}

/* A child of fork has no such thread. */
static void forget(void) {
    has_waker = (pthread_once_t)PTHREAD_ONCE_INIT;
}
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, forget);
}

/* ---- Waits ---- */

static uintptr_t key_of(const sem_t *semaphore) {
    return (uintptr_t)semaphore + HAFT_POSIX_SEMAPHORE;
}

/* The place where the C library notes that processes share a semaphore; SIZE_MAX: it is not
   known. */
static size_t place_of_sharing;
static void find_sharing(void) {
    sem_t one, other;
    memset(&one, 0, sizeof one);
    memset(&other, 0, sizeof other);
    sem_init(&one, 0, 0);
    sem_init(&other, 1, 0);
    place_of_sharing = SIZE_MAX;
    for (size_t i = 0; i < sizeof one; i++)
        if (((const char *)&one)[i] != ((const char *)&other)[i])
            place_of_sharing = place_of_sharing == SIZE_MAX ? i : SIZE_MAX - 1;
    sem_destroy(&one);
    sem_destroy(&other);
}

static bool may_be_shared(const sem_t *semaphore) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    SYSTEM(pthread_once)(&once, find_sharing);
    return place_of_sharing >= sizeof *semaphore ||
           ((const char *)semaphore)[place_of_sharing] != 0;
}

typedef struct attempt {
    sem_t *semaphore;
    bool is_shared;
    int64_t pause;
} attempt_t;

/* Waits for a post until the deadline, or for as long as may be without a look at the count. 0;
   -EAGAIN: the count is to be looked at; -EINTR: a signal has interrupted the wait. */
static int await_post(attempt_t *attempt, int64_t deadline) {
    enum { LONGEST = 16 * HAFT_IO_MILLISECOND };
    hafti_posix_waiter_t waiter = {.key = key_of(attempt->semaphore), .bits = UINT32_MAX};
    hafti_posix_list(&waiter, NULL, 0);
    if (SYSTEM(sem_trywait)(attempt->semaphore) == 0) { /* posted before it was listed */
        if (hafti_posix_unlist(&waiter))
            hafti_posix_wake(waiter.key, 1, UINT32_MAX); /* passes the post on */
        return 0;
    }
    int64_t limit = deadline;
    if (attempt->is_shared) {
        attempt->pause = attempt->pause < LONGEST / 2 ? 2 * attempt->pause : LONGEST;
        int64_t now = HAFT_PERFORM(haft_io_now);
        limit = now + attempt->pause < deadline ? now + attempt->pause : deadline;
    }
    hafti_posix_await_cut(&waiter, limit);
    hafti_posix_end_if_asked();
    return hafti_posix_was_interrupted() ? -EINTR : -EAGAIN;
}

static int wait_on_task(sem_t *semaphore, int64_t deadline) {
    int before = hafti_posix_error();
    SYSTEM(pthread_once)(&has_waker, make_waker);
    attempt_t attempt = {semaphore, may_be_shared(semaphore), HAFT_IO_MILLISECOND};
    while (SYSTEM(sem_trywait)(semaphore) != 0) {
        if (hafti_posix_error() != EAGAIN)
            return -1;
        if (deadline != HAFT_IO_FOREVER && HAFT_PERFORM(haft_io_now) >= deadline) {
            hafti_posix_set_error(ETIMEDOUT);
            return -1;
        }
        int code = await_post(&attempt, deadline);
        if (code == 0)
            break;
        if (code == -EINTR && SYSTEM(sem_trywait)(semaphore) != 0) {
            hafti_posix_set_error(EINTR);
            return -1;
        }
        if (code == -EINTR)
            break;
    }
    hafti_posix_set_error(before);
    return 0;
}

HAFT_POSIX_EXPORT int sem_wait(sem_t *semaphore) {
    if (!hafti_posix_on_task())
        return SYSTEM(sem_wait)(semaphore);
    return wait_on_task(semaphore, HAFT_IO_FOREVER);
}

HAFT_POSIX_EXPORT int sem_clockwait(sem_t *restrict semaphore, clockid_t clock,
                                    const struct timespec *restrict time) {
    if (!hafti_posix_on_task())
        return SYSTEM(sem_clockwait)(semaphore, clock, time);
    if (SYSTEM(sem_trywait)(semaphore) == 0) /* whatever the time is */
        return 0;
    int64_t deadline = hafti_posix_deadline_at(clock, time);
    if (deadline < 0)
        return SYSTEM(sem_clockwait)(semaphore, clock, time);
    return wait_on_task(semaphore, deadline);
}

HAFT_POSIX_EXPORT int sem_timedwait(sem_t *restrict semaphore,
                                    const struct timespec *restrict time) {
    if (!hafti_posix_on_task())
        return SYSTEM(sem_timedwait)(semaphore, time);
    return sem_clockwait(semaphore, CLOCK_REALTIME, time);
}

HAFT_POSIX_EXPORT int sem_post(sem_t *semaphore) {
    uintptr_t key = key_of(semaphore); /* whose memory may be gone when the post is done */
    int code = SYSTEM(sem_post)(semaphore);
    if (code == 0 && hafti_posix_has_waiters(key))
        wake(key);
    hafti_posix_take_part();
    return code;
}
