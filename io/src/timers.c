/* SPDX-License-Identifier: MIT */
/*
 * Timers: a hierarchy of wheels. Time is counted in ticks of 2^16 ns. A timer stands at the level
 * of the highest digit, to the base 64, in which its tick differs from `elapsed`, in the slot of
 * that digit:
 *
 *   level 7 ... level 1: 64 slots of 64 ticks   level 0: 64 slots of one tick   due: at `elapsed`
 *                                                                                  or before
 *
 * So adding and removing are a few stores, whatever the number of timers, and each moves down at
 * most once a level. Invariants:
 * - at every level the occupied slots lie after the digit of `elapsed`; so the lowest occupied
 *   slot of the lowest occupied level holds the first timers;
 * - a bit of `occupied` is set if its slot has timers; it may still be set when the last has been
 *   removed, and is then cleared by the next visit.
 */
#include "workers.h"

enum { FEW = 8 };

static int64_t tick_after(int64_t time) {
    time = time < 0 ? 0 : time > HAFTI_IO_LATEST ? HAFTI_IO_LATEST : time;
    int64_t tick = time >> HAFTI_IO_TICK_BITS;
    return (tick << HAFTI_IO_TICK_BITS) < time ? tick + 1 : tick;
}

void hafti_io_timers_start(hafti_io_timers_t *timers, int64_t now) {
    timers->elapsed = now >> HAFTI_IO_TICK_BITS;
    timers->count = 0;
    hafti_io_ring(&timers->due);
    for (int level = 0; level < HAFTI_IO_LEVELS; level++) {
        timers->occupied[level] = 0;
        for (int slot = 0; slot < HAFTI_IO_SLOTS; slot++)
            hafti_io_ring(&timers->slots[level][slot]);
    }
}

static void place(hafti_io_timers_t *timers, hafti_io_timer_t *timer) {
    if (timer->tick <= timers->elapsed) {
        hafti_io_append(&timers->due, &timer->link);
        return;
    }
    int digit = 63 - __builtin_clzll((uint64_t)(timer->tick ^ timers->elapsed));
    int level = digit / HAFTI_IO_LEVEL_BITS;
    unsigned slot = (unsigned)(timer->tick >> (level * HAFTI_IO_LEVEL_BITS)) % HAFTI_IO_SLOTS;
    timers->occupied[level] |= UINT64_C(1) << slot;
    hafti_io_append(&timers->slots[level][slot], &timer->link);
}

void hafti_io_timer_add(hafti_io_timers_t *timers, hafti_io_timer_t *timer, int64_t deadline) {
    timer->tick = tick_after(deadline);
    timers->count++;
    place(timers, timer);
}

void hafti_io_timer_remove(hafti_io_timers_t *timers, hafti_io_timer_t *timer) {
    if (!hafti_io_linked(&timer->link))
        return;
    hafti_io_unlink(&timer->link);
    timers->count--;
}

void hafti_io_limit_arm(hafti_io_limit_t *limit, hafti_io_timers_t *timers) {
    if (!limit->passed && limit->time != HAFT_IO_FOREVER && !hafti_io_linked(&limit->timer.link))
        hafti_io_timer_add(timers, &limit->timer, limit->time);
}

/* The first occupied slot and the tick at which it begins. */
static bool first_slot(const hafti_io_timers_t *timers, int *level, unsigned *slot, int64_t *tick) {
    for (int l = 0; l < HAFTI_IO_LEVELS; l++) {
        if (timers->occupied[l] == 0)
            continue;
        int shift = l * HAFTI_IO_LEVEL_BITS;
        unsigned s = (unsigned)__builtin_ctzll(timers->occupied[l]);
        int64_t above = timers->elapsed >> shift >> HAFTI_IO_LEVEL_BITS;
        *level = l;
        *slot = s;
        *tick = ((above << HAFTI_IO_LEVEL_BITS) + s) << shift;
        return true;
    }
    return false;
}

/* The first of a slot's timers. */
static int64_t first_tick(const hafti_io_link_t *head) {
    int64_t first = INT64_MAX;
    for (const hafti_io_link_t *link = head->next; link != head; link = link->next) {
        int64_t tick = HAFTI_IO_OWNER(link, hafti_io_timer_t, link)->tick;
        first = tick < first ? tick : first;
    }
    return first;
}

/* A thread with many timers wakes up for each slot that has to move down, too. One with few wakes
   up for them only, since nothing else may be going on. */
int64_t hafti_io_timers_next(hafti_io_timers_t *timers) {
    if (!hafti_io_ring_empty(&timers->due))
        return timers->elapsed << HAFTI_IO_TICK_BITS;
    int level;
    unsigned slot;
    int64_t tick;
    while (timers->count != 0 && first_slot(timers, &level, &slot, &tick)) {
        const hafti_io_link_t *head = &timers->slots[level][slot];
        if (hafti_io_ring_empty(head)) {
            timers->occupied[level] &= ~(UINT64_C(1) << slot);
            continue;
        }
        if (timers->count <= FEW)
            tick = first_tick(head);
        return tick << HAFTI_IO_TICK_BITS;
    }
    return HAFT_IO_FOREVER;
}

/* The timers lie on the stacks of their tasks, and so each on another page: the next comes into the
   processor's caches while this one is seen to. */
static hafti_io_timer_t *first_of(const hafti_io_link_t *head) {
    __builtin_prefetch(head->next->next, 1);
    return HAFTI_IO_OWNER(head->next, hafti_io_timer_t, link);
}

/* Makes all timers of a slot of level 0 due at once. */
static void make_due(hafti_io_timers_t *timers, hafti_io_link_t *head) {
    if (hafti_io_ring_empty(head))
        return;
    hafti_io_link_t *due = &timers->due;
    head->next->previous = due->previous;
    head->previous->next = due;
    due->previous->next = head->next;
    due->previous = head->previous;
    hafti_io_ring(head);
}

static void fire_due(hafti_io_timers_t *timers) {
    while (!hafti_io_ring_empty(&timers->due)) {
        hafti_io_timer_t *timer = first_of(&timers->due);
        hafti_io_timer_remove(timers, timer);
        timer->fire(timer);
    }
}

void hafti_io_timers_advance(hafti_io_timers_t *timers, int64_t now) {
    int64_t tick_now = now >> HAFTI_IO_TICK_BITS;
    fire_due(timers);
    int level;
    unsigned slot;
    int64_t tick;
    while (first_slot(timers, &level, &slot, &tick) && tick <= tick_now) {
        timers->elapsed = tick;
        timers->occupied[level] &= ~(UINT64_C(1) << slot);
        hafti_io_link_t *head = &timers->slots[level][slot];
        if (level == 0)
            make_due(timers, head);
        while (!hafti_io_ring_empty(head)) {
            hafti_io_timer_t *timer = first_of(head);
            hafti_io_unlink(&timer->link);
            place(timers, timer);
        }
        fire_due(timers);
    }
    if (tick_now > timers->elapsed)
        timers->elapsed = tick_now;
}
