/* SPDX-License-Identifier: MIT */
/*
 * pthread_once: while a task initialises, and waits meanwhile, another task of its thread that
 * comes to the same once waits as a task. The C library's own would suspend the thread, and the
 * initialiser with it. It makes the call, so threads without tasks wait in it as ever.
 */
#include "internal.h"

#include <limits.h>

typedef struct initialiser {
    struct initialiser *next;
    const pthread_once_t *once;
} initialiser_t;

static initialiser_t *initialisers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* no holder of it waits */

static void forget(void) {
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    initialisers = NULL;
}
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, forget);
}

static uintptr_t key_of(const pthread_once_t *once) {
    return (uintptr_t)once + HAFT_POSIX_LOCK;
}

static bool is_in_hand(const pthread_once_t *once) {
    const initialiser_t *initialiser = initialisers;
    while (initialiser != NULL && initialiser->once != once)
        initialiser = initialiser->next;
    return initialiser != NULL;
}

/* Takes the once in hand. False: another task has had it until now. */
static bool take(initialiser_t *own) {
    SYSTEM(pthread_mutex_lock)(&lock);
    if (!is_in_hand(own->once)) {
        own->next = initialisers;
        initialisers = own;
        SYSTEM(pthread_mutex_unlock)(&lock);
        return true;
    }
    hafti_posix_waiter_t waiter = {.key = key_of(own->once), .bits = UINT32_MAX};
    hafti_posix_list(&waiter, NULL, 0);
    SYSTEM(pthread_mutex_unlock)(&lock);
    hafti_posix_await(&waiter, HAFT_IO_FOREVER);
    return false;
}

/* Gives the once back, also when the initialiser has thrown, or its thread has ended in it. */
static void give(initialiser_t **given) {
    const initialiser_t *own = *given;
    SYSTEM(pthread_mutex_lock)(&lock);
    initialiser_t **place = &initialisers;
    while (*place != NULL && *place != own) /* (a child of fork has forgotten it) */
        place = &(*place)->next;
    if (*place != NULL)
        *place = own->next;
    SYSTEM(pthread_mutex_unlock)(&lock);
    hafti_posix_wake(key_of(own->once), INT_MAX, UINT32_MAX);
}

static int call_on_task(pthread_once_t *once, void (*function)(void)) {
    initialiser_t own = {NULL, once};
    while (!take(&own)) {
    }
    __attribute__((cleanup(give))) initialiser_t *given = &own;
    (void)given;
    return SYSTEM(pthread_once)(once, function);
}

HAFT_POSIX_EXPORT int pthread_once(pthread_once_t *once, void (*function)(void)) {
    enum { DONE = 2 };
    if (__atomic_load_n(once, __ATOMIC_ACQUIRE) == DONE || !hafti_posix_on_task())
        return SYSTEM(pthread_once)(once, function);
    int before = hafti_posix_error();
    int code = call_on_task(once, function);
    hafti_posix_set_error(before);
    return code;
}
