/* SPDX-License-Identifier: MIT */
/*
 * The guards of static local variables of C++: while one task initialises a variable, and waits
 * meanwhile, another task of its thread that reaches the variable waits as a task. The C++
 * library's own guard would suspend the thread, and the initialiser with it.
 *
 * Compilers look at a guard's first byte themselves, and call these functions while it is 0. The
 * second byte shows that a task or a thread initialises the variable. All three functions are
 * replaced for all threads, those without tasks included, so that only this file knows what the
 * second byte means.
 */
#include "internal.h"

typedef struct guard {
    uint8_t is_done;
    uint8_t is_in_hand; /* under the lock */
} guard_t;

typedef struct waiter {
    struct waiter *next;
    const guard_t *guard;
    haft_io_event_t woken;
} waiter_t;

static waiter_t *waiters;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* no holder of it waits */

static void lock_waiters(void) {
    SYSTEM(pthread_mutex_lock)(&lock);
}
static void unlock_waiters(void) {
    SYSTEM(pthread_mutex_unlock)(&lock);
}

/* The threads and tasks that waited are not in a child of fork. */
static void forget_waiters(void) {
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    waiters = NULL;
}
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, forget_waiters);
}

/* Called under the lock, which is released during the wait. */
static void wait_for(const guard_t *guard) {
    waiter_t waiter = {.next = waiters, .guard = guard};
    waiters = &waiter;
    unlock_waiters();
    haft_io_event_wait_to_the_end(&waiter.woken);
    lock_waiters(); /* The waker of this waiter has finished with it. */
}

/* Under the lock. */
static void wake_waiters(const guard_t *guard) {
    for (waiter_t **place = &waiters; *place != NULL;) {
        waiter_t *waiter = *place;
        if (waiter->guard == guard) {
            *place = waiter->next;
            haft_io_event_set(&waiter->woken);
        } else {
            place = &waiter->next;
        }
    }
}

static void let_go(guard_t *guard, bool is_done) {
    lock_waiters();
    __atomic_store_n(&guard->is_done, is_done, __ATOMIC_RELEASE);
    guard->is_in_hand = false;
    wake_waiters(guard);
    unlock_waiters();
}

/* Their names and types are those of the ABI of C++. */
int __cxa_guard_acquire(uint64_t *guard);
void __cxa_guard_release(uint64_t *guard);
void __cxa_guard_abort(uint64_t *guard);

HAFT_POSIX_EXPORT int __cxa_guard_acquire(uint64_t *guard) {
    guard_t *this = (guard_t *)(void *)guard;
    int before = hafti_posix_error();
    lock_waiters();
    while (!this->is_done && this->is_in_hand)
        wait_for(this);
    bool is_ours = !this->is_done;
    this->is_in_hand |= is_ours;
    unlock_waiters();
    hafti_posix_set_error(before);
    return is_ours;
}

HAFT_POSIX_EXPORT void __cxa_guard_release(uint64_t *guard) {
    let_go((guard_t *)(void *)guard, true);
}

HAFT_POSIX_EXPORT void __cxa_guard_abort(uint64_t *guard) {
    let_go((guard_t *)(void *)guard, false);
}
