/* SPDX-License-Identifier: MIT */
/*
 * Barriers, for tasks and threads together: of this library, since the C library's own suspends the
 * thread of a task that waits, and with it the tasks that are to come. A pthread_barrier_t has the
 * address of a barrier_t of this file. One that processes share is left to the C library; a task
 * that waits for it waits in the pool.
 */
#include "internal.h"

#include <string.h>

typedef struct barrier {
    pthread_mutex_t lock;
    pthread_cond_t gone; /* a round, or the last waiter */
    unsigned needed, come, inside;
    uint64_t round;
} barrier_t;

/* A barrier has this in memory. The C library's own begins with a count and a round, below 2^31. */
typedef struct place {
    uint64_t mark;
    barrier_t *barrier;
} place_t;
_Static_assert(sizeof(place_t) <= sizeof(pthread_barrier_t), "a barrier has room for it");
static const uint64_t MARK = 0xf4af7ba2f4af7ba2;

static place_t place_in(const pthread_barrier_t *barrier) {
    place_t place;
    memcpy(&place, barrier, sizeof place);
    return place;
}

HAFT_POSIX_EXPORT int pthread_barrier_init(pthread_barrier_t *restrict barrier,
                                           const pthread_barrierattr_t *restrict attributes,
                                           unsigned count) {
    int shared = PTHREAD_PROCESS_PRIVATE;
    if (attributes != NULL)
        pthread_barrierattr_getpshared(attributes, &shared);
    if (count == 0 || count > INT32_MAX || shared != PTHREAD_PROCESS_PRIVATE)
        return SYSTEM(pthread_barrier_init)(barrier, attributes, count);
    barrier_t *made = calloc(1, sizeof *made);
    if (made == NULL)
        return ENOMEM;
    made->needed = count;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->gone, NULL);
    memset(barrier, 0, sizeof *barrier);
    memcpy(barrier, &(place_t){MARK, made}, sizeof(place_t));
    return 0;
}

static int wait_in(barrier_t *barrier) {
    pthread_mutex_lock(&barrier->lock);
    uint64_t round = barrier->round;
    barrier->inside++;
    bool is_last = ++barrier->come == barrier->needed;
    if (is_last) {
        barrier->come = 0;
        barrier->round++;
        pthread_cond_broadcast(&barrier->gone);
    }
    while (barrier->round == round)
        pthread_cond_wait(&barrier->gone, &barrier->lock);
    if (--barrier->inside == 0)
        pthread_cond_broadcast(&barrier->gone); /* one may destroy it */
    pthread_mutex_unlock(&barrier->lock);
    return is_last ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}

HAFT_POSIX_POOLED(
    pthread_barrier_wait, int, { pthread_barrier_t *barrier; }, c->barrier)
HAFT_POSIX_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier) {
    place_t place = place_in(barrier);
    if (place.mark == MARK)
        return wait_in(place.barrier);
    if (!hafti_posix_on_task())
        return SYSTEM(pthread_barrier_wait)(barrier);
    pthread_barrier_wait_call_t call = {{barrier}, 0};
    hafti_posix_call_to_the_end(call_pthread_barrier_wait, &call);
    return call.done;
}

HAFT_POSIX_EXPORT int pthread_barrier_destroy(pthread_barrier_t *barrier) {
    place_t place = place_in(barrier);
    if (place.mark != MARK)
        return SYSTEM(pthread_barrier_destroy)(barrier);
    barrier_t *made = place.barrier;
    pthread_mutex_lock(&made->lock);
    while (made->inside != 0 && made->come == 0) /* of a round that is over */
        pthread_cond_wait(&made->gone, &made->lock);
    bool is_used = made->inside != 0;
    pthread_mutex_unlock(&made->lock);
    if (is_used)
        return EBUSY;
    memset(barrier, 0, sizeof *barrier);
    pthread_cond_destroy(&made->gone);
    pthread_mutex_destroy(&made->lock);
    free(made);
    return 0;
}
