/* SPDX-License-Identifier: MIT */
/*
 * Which threads of a run sleep, and how many look for work, in one word:
 *
 *   bits 0 to 55: the thread of this index sleeps, or is about to    bits 56 to 63: how many search
 *
 * No wake-up is lost: when a task can be taken and no thread searches, one is woken.
 * - A thread that offers a task puts it into a queue, then calls hafti_io_parking_wake. That does
 *   nothing if a thread searches: every searching thread, before it sleeps, announces that and then
 *   looks into all queues once more; and if the last searching thread finds a task, it checks
 *   whether there are more, and wakes another thread.
 * - A thread that is woken searches from then on: the waker has counted it.
 *
 * HAFTI_IO_STEP as in queue.h.
 */
#ifndef HAFTI_IO_PARKING_H
#define HAFTI_IO_PARKING_H

#include <stdbool.h>
#include <stdint.h>

#ifndef HAFTI_IO_STEP
#    define HAFTI_IO_STEP(object) ((void)0)
#endif

enum { HAFTI_IO_MOST_THREADS = 56 };
typedef uint64_t hafti_io_parking_t;

#define HAFTI_IO_SEARCHER (UINT64_C(1) << HAFTI_IO_MOST_THREADS)

static inline uint64_t hafti_io_parking_look(const hafti_io_parking_t *parking) {
    HAFTI_IO_STEP(*parking);
    return __atomic_load_n(parking, __ATOMIC_SEQ_CST);
}
static inline bool hafti_io_parking_swap(hafti_io_parking_t *parking, uint64_t *seen,
                                         uint64_t wanted) {
    HAFTI_IO_STEP(*parking);
    return __atomic_compare_exchange_n(parking, seen, wanted, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

/* To be called after something was offered: returns the index of the thread to be woken, which now
   counts as searching; -1: none. */
static inline int hafti_io_parking_wake(hafti_io_parking_t *parking) {
    uint64_t seen = hafti_io_parking_look(parking);
    for (;;) {
        uint64_t asleep = seen & (HAFTI_IO_SEARCHER - 1);
        if (seen >= HAFTI_IO_SEARCHER || asleep == 0)
            return -1;
        if (hafti_io_parking_swap(parking, &seen, (seen & (seen - 1)) + HAFTI_IO_SEARCHER))
            return __builtin_ctzll(asleep);
    }
}

static inline void hafti_io_parking_search(hafti_io_parking_t *parking) {
    HAFTI_IO_STEP(*parking);
    __atomic_fetch_add(parking, HAFTI_IO_SEARCHER, __ATOMIC_SEQ_CST);
}

/* Notes that the thread has found work, or looks again by itself. True: no thread searches now, so
   one that has found work checks whether there is more, and wakes another thread. */
static inline bool hafti_io_parking_found(hafti_io_parking_t *parking) {
    HAFTI_IO_STEP(*parking);
    uint64_t before = __atomic_fetch_sub(parking, HAFTI_IO_SEARCHER, __ATOMIC_SEQ_CST);
    return before < 2 * HAFTI_IO_SEARCHER;
}

/* Notes that the thread has searched in vain. The caller looks into all queues once more before it
   sleeps. */
static inline void hafti_io_parking_sleep(hafti_io_parking_t *parking, unsigned index) {
    uint64_t seen = hafti_io_parking_look(parking);
    while (
        !hafti_io_parking_swap(parking, &seen, (seen - HAFTI_IO_SEARCHER) | UINT64_C(1) << index))
        continue;
}

/* Notes that the thread does not sleep any more. True: it was woken to search, and is counted. */
static inline bool hafti_io_parking_rise(hafti_io_parking_t *parking, unsigned index) {
    uint64_t seen = hafti_io_parking_look(parking);
    do {
        if ((seen >> index & 1) == 0)
            return true;
    } while (!hafti_io_parking_swap(parking, &seen, seen & ~(UINT64_C(1) << index)));
    return false;
}

#endif
