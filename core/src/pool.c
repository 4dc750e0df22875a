/* SPDX-License-Identifier: MIT */
/*
 * Stacks of reserved addresses, committed by the system as they are touched. A pool serves one
 * size; its stacks lie in slots (slots.c).
 *
 * Where a free stack is:
 *
 *   two batches of a thread: up to 64 stacks each, of the default size; full batches go to the pool
 *        |        ^            and come back whole, so the lock is taken once in 64 times
 *        v        |
 *   full batches of the pool, and a loose one
 *        |
 *        v
 *   slots that nothing uses:  found by their chunk, with or without memory
 *
 * - While a program makes and frees fibers, no single stack is given back to the system. Threads
 *   that use the pool give back batches that have been idle for a period, a few at a time.
 * - When a stack is first freed, and later ever more rarely, the pool checks whether memory far
 *   down the stack can be given back. It does so rarely because the check is a system call. While
 *   it finds nothing, it checks only some of the stacks that are first freed (is_worth_a_look). A
 *   thread's own few stacks may keep more of that memory (KEEP_WARM).
 * - Where no guard can be had, the pool's twin takes over, whose stacks have canaries
 *   (HAFT_KIND_UNGUARDED). Threads keep none of these, nor dense ones, for themselves: every stack
 *   in a thread's lists is guarded.
 */
#include "slots.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    DENSEST_SHIFT = 10,
    DENSE_SHIFT = 11, /* if none is asked for */
    /* Dense slots that share pages lie an odd number of lines apart, so they use all sets of the
       caches. Larger ones have a page between them, from which their colours are taken: header and
       frames of a small fiber stay on one page. */
    DENSE_COLOUR = 64,
    SMALLEST_SHIFT = 14,
    SEGMENTED = DENSEST_SHIFT - 1, /* the pool of first segments, whose size is not a power of
                                      two */
    SHIFTS = 48,
    POOLS = 2 * SHIFTS, /* and their twins */
    GUARD = 64 * 1024,
    /* Slots do not lie a power of two apart: the entries of the page tables for the pages in use
       would all fall into the same few sets of the cache. With large slots, so would the entries of
       the next level: each covers a whole table of the lowest one. */
    ODD_PAGES = 9,
    ODD_TABLES = 9,
    MANY_TABLES = 32,
    KEEP_WARM = 256 * 1024,    /* bytes at the high end that a thread's own free stack keeps */
    KEEP_RESIDENT = 16 * 1024, /* and one of many */
    MOST_USES_UNSEEN = 512,
    PERIOD = 1000, /* milliseconds */
    BATCHES_AT_ONCE = 4,
    SLOTS_AT_ONCE = 256
};

struct haft_pool {
    haft_slots_t slots;
    struct haft_pool *twin;
    haft_batch_t *newest, *oldest; /* that are full */
    size_t batches;
    size_t needless;     /* of the oldest batches: to be given back */
    size_t fewest;       /* batches there were in this period */
    haft_batch_t *loose; /* one that is not, or NULL */
    size_t loose_count;
    haft_batch_t *empty;
    uint32_t shallow; /* stacks in a row that had no memory far down */
};

static struct haft_pool pools[POOLS];
/* Guards all pools. A thread takes it once in a batch. */
static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t pools_once = PTHREAD_ONCE_INIT;
size_t haft_default_size = 1024 * 1024;

static void pools_start(void) {
    for (int i = 0; i < POOLS; i++) {
        struct haft_pool *pool = &pools[i];
        int shift = i % SHIFTS;
        size_t guard = (GUARD + haft_page() - 1) / haft_page() * haft_page();
        size_t beside = guard + ODD_PAGES * haft_page();
        size_t table = haft_page() / sizeof(void *) * haft_page();
        if (((size_t)1 << shift) / MANY_TABLES >= table)
            beside += ODD_TABLES * table;
        pool->slots = (haft_slots_t){.pool = pool,
                                     .size = (size_t)1 << shift,
                                     .stride = ((size_t)1 << shift) + beside,
                                     .kind = HAFT_KIND_UNGUARDED};
        if (shift == SEGMENTED) {
            pool->slots.size = pool->slots.stride = HAFT_SEGMENTED_SIZE;
            pool->slots.kind = HAFT_KIND_SEGMENTED;
        } else if (shift < SMALLEST_SHIFT) {
            size_t between = pool->slots.size < 2 * haft_page() ? DENSE_COLOUR : haft_page();
            pool->slots.stride = pool->slots.size + between;
        } else if (i < SHIFTS) {
            pool->slots.below = beside;
            pool->slots.guard = guard;
            pool->slots.kind = HAFT_KIND_POOL;
            pool->twin = &pools[i + SHIFTS];
        }
    }
}

static struct haft_pool *pool_for(size_t size, int shift) {
    pthread_once(&pools_once, pools_start);
    while (shift < SHIFTS && ((size_t)1 << shift) < size)
        shift++;
    return shift < SHIFTS ? &pools[shift] : NULL;
}

static struct haft_pool *guarded_pool_for(size_t size) {
    size_t least = 4 * haft_page();
    return pool_for(size < least ? least : size, SMALLEST_SHIFT);
}

size_t haft_stack_size(void) {
    return __atomic_load_n(&haft_default_size, __ATOMIC_RELAXED);
}

void haft_set_stack_size(size_t bytes) {
    struct haft_pool *pool = guarded_pool_for(bytes);
    if (pool == NULL)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL, "A stack size of %zu bytes is too large.",
                  bytes);
    __atomic_store_n(&haft_default_size, pool->slots.size, __ATOMIC_RELAXED);
}

/* ---- Batches ---- */

static haft_batch_t *new_batch(struct haft_pool *pool) {
    haft_batch_t *batch = pool->empty;
    if (batch == NULL)
        return malloc(sizeof *batch);
    pool->empty = batch->older;
    return batch;
}

static void end_batch(struct haft_pool *pool, haft_batch_t *batch) {
    batch->older = pool->empty;
    pool->empty = batch;
}

static void push_batch(struct haft_pool *pool, haft_batch_t *batch) {
    batch->older = pool->newest;
    batch->newer = NULL;
    *(pool->newest != NULL ? &pool->newest->newer : &pool->oldest) = batch;
    pool->newest = batch;
    pool->batches++;
}

static haft_batch_t *pop_batch(struct haft_pool *pool) {
    haft_batch_t *batch = pool->newest;
    if (batch == NULL)
        return NULL;
    pool->newest = batch->older;
    *(pool->newest != NULL ? &pool->newest->newer : &pool->oldest) = NULL;
    pool->batches--;
    if (pool->fewest > pool->batches)
        pool->fewest = pool->batches;
    if (pool->needless > pool->batches)
        pool->needless = pool->batches;
    return batch;
}

static haft_batch_t *pop_oldest_batch(struct haft_pool *pool) {
    haft_batch_t *batch = pool->oldest;
    pool->oldest = batch->newer;
    *(pool->oldest != NULL ? &pool->oldest->older : &pool->newest) = NULL;
    pool->batches--;
    return batch;
}

static void push_loose(struct haft_pool *pool, haft_fiber_t *fiber) {
    if (pool->loose_count == 0 && pool->loose == NULL && (pool->loose = new_batch(pool)) == NULL) {
        haft_slots_leave(&pool->slots, fiber);
        return;
    }
    pool->loose->fibers[pool->loose_count++] = fiber;
    if (pool->loose_count == HAFT_THREAD_KEEPS) {
        push_batch(pool, pool->loose);
        pool->loose = NULL;
        pool->loose_count = 0;
    }
}

static void leave_all(struct haft_pool *pool, const haft_batch_t *batch, size_t count) {
    for (size_t i = 0; i < count; i++)
        haft_slots_leave(&pool->slots, batch->fibers[i]);
}

/* ---- Giving back idle stacks ---- */

static bool giving_back; /* there is some */

static void end_period(struct haft_pool *pool) {
    pthread_mutex_lock(&pools_lock);
    pool->needless = pool->fewest;
    pool->fewest = pool->batches;
    if (pool->needless != 0)
        __atomic_store_n(&giving_back, true, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&pools_lock);
}

/* Leaves all before it gives any back, because slots side by side are given back by one call. */
static bool give_back_some(struct haft_pool *pool) {
    pthread_mutex_lock(&pools_lock);
    bool some = pool->needless != 0 || pool->slots.dirty != 0;
    if (pool->needless == 0 && some)
        (void)haft_slots_give_back(&pool->slots, SLOTS_AT_ONCE, false);
    for (int i = 0; i < BATCHES_AT_ONCE && pool->needless != 0; i++) {
        pool->needless--;
        haft_batch_t *batch = pop_oldest_batch(pool);
        leave_all(pool, batch, HAFT_THREAD_KEEPS);
        free(batch);
    }
    if (pool->fewest > pool->batches)
        pool->fewest = pool->batches;
    pthread_mutex_unlock(&pools_lock);
    return some;
}

/* Called now and then, without a lock. */
static void tend(void) {
    static uint64_t period_ends;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    uint64_t now = (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
    uint64_t end = __atomic_load_n(&period_ends, __ATOMIC_RELAXED);
    if (now >= end && __atomic_compare_exchange_n(&period_ends, &end, now + PERIOD, false,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        for (int i = 0; i < POOLS; i++)
            end_period(&pools[i]);
    if (HAFTI_LIKELY(!__atomic_load_n(&giving_back, __ATOMIC_RELAXED)))
        return;
    for (int i = 0; i < POOLS; i++)
        if (give_back_some(&pools[i]))
            return;
    __atomic_store_n(&giving_back, false, __ATOMIC_RELAXED);
}

/* ---- Taking ---- */

static haft_fiber_t *take_loose(struct haft_pool *pool) {
    if (pool->loose_count == 0) {
        haft_batch_t *batch = pop_batch(pool);
        if (batch == NULL)
            return NULL;
        if (pool->loose != NULL)
            end_batch(pool, pool->loose);
        pool->loose = batch;
        pool->loose_count = HAFT_THREAD_KEEPS;
    }
    return pool->loose->fibers[--pool->loose_count];
}

/* A free stack, and a batch for a thread that has none left. */
static haft_fiber_t *take_free(hafti_thread_t *thread, struct haft_pool *pool) {
    haft_batch_t *batch = thread->pool == pool && thread->idle_count == 0 ? pop_batch(pool) : NULL;
    if (batch == NULL)
        return take_loose(pool);
    end_batch(pool, thread->idle);
    thread->idle = batch;
    thread->idle_count = HAFT_THREAD_KEEPS - 1;
    return batch->fibers[HAFT_THREAD_KEEPS - 1];
}

static haft_fiber_t *take_from_twin(hafti_thread_t *thread, struct haft_pool *twin,
                                    bool used_before) {
    if (twin == NULL)
        return NULL;
    haft_fiber_t *fiber = take_free(thread, twin);
    if (fiber == NULL && !used_before)
        fiber = haft_slots_take(&twin->slots);
    return fiber;
}

static HAFTI_COLD haft_fiber_t *take_slow(hafti_thread_t *thread, struct haft_pool *pool) {
    pthread_mutex_lock(&pools_lock);
    haft_fiber_t *fiber = take_free(thread, pool);
    if (fiber == NULL)
        fiber = take_from_twin(thread, pool->twin, true);
    if (fiber == NULL)
        fiber = haft_slots_take(&pool->slots);
    if (fiber == NULL)
        fiber = take_from_twin(thread, pool->twin, false);
    pthread_mutex_unlock(&pools_lock);
    tend();
    if (fiber != NULL && fiber->kind == HAFT_KIND_UNGUARDED)
        haft_place_canary(fiber);
    return fiber;
}

static void hand_over(hafti_thread_t *thread) {
    struct haft_pool *pool = thread->pool;
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pools_lock);
    if (thread->other_full)
        push_batch(pool, thread->other);
    else
        end_batch(pool, thread->other);
    while (thread->idle_count != 0)
        push_loose(pool, thread->idle->fibers[--thread->idle_count]);
    end_batch(pool, thread->idle);
    pthread_mutex_unlock(&pools_lock);
    thread->other_full = false;
    thread->pool = NULL;
    thread->idle_size = 0;
}

void haft_pool_thread_exit(hafti_thread_t *thread) {
    hand_over(thread);
    tend();
}

/* From now on the thread keeps stacks of this pool. */
static void keep_from(hafti_thread_t *thread, struct haft_pool *pool) {
    hand_over(thread);
    pthread_mutex_lock(&pools_lock);
    thread->idle = new_batch(pool);
    thread->other = new_batch(pool);
    if (thread->idle != NULL && thread->other != NULL) {
        thread->pool = pool;
        thread->idle_size = pool->slots.size;
    } else {
        free(thread->idle);
        free(thread->other);
    }
    pthread_mutex_unlock(&pools_lock);
}

static void swap_batches(hafti_thread_t *thread) {
    haft_batch_t *batch = thread->other;
    thread->other = thread->idle;
    thread->idle = batch;
}

haft_fiber_t *haft_pool_take_slow(hafti_thread_t *thread, size_t size) {
    if (HAFTI_UNLIKELY(thread->home != NULL))
        return haft_pool_take(thread->home, size);
    if (thread->idle_size == size && thread->other_full) {
        swap_batches(thread);
        thread->idle_count = HAFT_THREAD_KEEPS;
        thread->other_full = false;
        return haft_pool_take_kept(thread, size);
    }
    struct haft_pool *pool = guarded_pool_for(size);
    if (pool == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    if (pool != thread->pool && pool->slots.size == haft_stack_size())
        keep_from(thread, pool);
    return take_slow(thread, pool);
}

haft_fiber_t *haft_pool_take_dense(hafti_thread_t *thread, size_t size) {
    thread = haft_home(thread);
    struct haft_pool *pool = pool_for(size != 0 ? size : (size_t)1 << DENSE_SHIFT, DENSEST_SHIFT);
    return pool == NULL || pool >= &pools[SMALLEST_SHIFT] ? haft_pool_take(thread, size)
                                                          : take_slow(thread, pool);
}

haft_fiber_t *haft_pool_take_segmented(hafti_thread_t *thread) {
    pthread_once(&pools_once, pools_start);
    return take_slow(thread, &pools[SEGMENTED]);
}

haft_fiber_t *haft_pool_exhausted(size_t size) {
    haft_report(HAFT_ERROR_NO_MEMORY, NULL, NULL, "No memory for a fiber's stack of %zu bytes: %s.",
                size, strerror(errno));
    errno = ENOMEM;
    return NULL;
}

/* ---- Giving ---- */

/* While only shallow stacks are freed, one in 16 is looked at, at distances of 8, 13 and 21: so no
   program can free its deep stacks always between two looks. A deep stack that is missed is found
   when it is next freed, or goes back with its batch. Large stacks could hold too much until
   then. */
static bool is_worth_a_look(const struct haft_pool *pool, uint32_t shallow) {
    enum { LARGE = 1024 * 1024, ALL_SHALLOW = 64 };
    static const uint32_t golden_ratio = 0x9e3779b1u;
    return pool->slots.size > LARGE || shallow < ALL_SHALLOW || shallow * golden_ratio >> 28 == 0;
}

/* `uses` counts down to the next look; its upper half holds how many uses the last count was. */
static HAFTI_COLD void look(const hafti_thread_t *thread, haft_fiber_t *fiber) {
    uint32_t count = fiber->uses >> 16;
    count = count == 0 ? 1 : count >= MOST_USES_UNSEEN ? MOST_USES_UNSEEN : count * 2;
    fiber->uses = count << 16 | count;
    if (fiber->kind != HAFT_KIND_POOL)
        return;
    struct haft_pool *pool = fiber->pool;
    uint32_t shallow = __atomic_load_n(&pool->shallow, __ATOMIC_RELAXED);
    bool one_of_few = pool == thread->pool && !thread->other_full;
    bool deep = (count != 1 || is_worth_a_look(pool, shallow)) &&
                haft_slots_give_back_depth(fiber, one_of_few ? KEEP_WARM : KEEP_RESIDENT);
    __atomic_store_n(&pool->shallow, deep ? 0 : shallow + 1, __ATOMIC_RELAXED);
    tend();
}

static void give_to_pool(struct haft_pool *pool, haft_fiber_t *fiber) {
    pthread_mutex_lock(&pools_lock);
    push_loose(pool, fiber);
    pthread_mutex_unlock(&pools_lock);
    tend();
}

/* Turns a full batch into an empty one, unless there is no memory for that. */
static HAFTI_COLD void make_room(hafti_thread_t *thread, struct haft_pool *pool) {
    if (thread->other_full) {
        pthread_mutex_lock(&pools_lock);
        haft_batch_t *batch = new_batch(pool);
        if (batch != NULL) {
            push_batch(pool, thread->other);
            thread->other = batch;
            thread->other_full = false;
        }
        pthread_mutex_unlock(&pools_lock);
        tend();
    }
    if (!thread->other_full) {
        swap_batches(thread);
        thread->other_full = true;
        thread->idle_count = 0;
    }
}

void haft_pool_give_slow(hafti_thread_t *thread, haft_fiber_t *fiber) {
    thread = haft_home(thread);
    struct haft_pool *pool = fiber->pool;
    if ((fiber->uses & 0xffff) == 0)
        look(thread, fiber);
    if (pool != thread->pool) {
        give_to_pool(pool, fiber);
        return;
    }
    if (thread->idle_count == HAFT_THREAD_KEEPS)
        make_room(thread, pool);
    if (thread->idle_count < HAFT_THREAD_KEEPS)
        thread->idle->fibers[thread->idle_count++] = fiber;
    else
        give_to_pool(pool, fiber);
}

size_t haft_pool_trim(void) {
    size_t given = 0;
    pthread_once(&pools_once, pools_start);
    hand_over(haft_home(haft_thread_ready()));
    for (int i = 0; i < POOLS; i++) {
        struct haft_pool *pool = &pools[i];
        pthread_mutex_lock(&pools_lock);
        for (haft_batch_t *batch; (batch = pop_batch(pool)) != NULL; end_batch(pool, batch))
            leave_all(pool, batch, HAFT_THREAD_KEEPS);
        if (pool->loose != NULL)
            leave_all(pool, pool->loose, pool->loose_count);
        pool->loose_count = 0;
        while (pool->slots.dirty != 0)
            given += haft_slots_give_back(&pool->slots, SIZE_MAX, true);
        for (haft_batch_t *batch; (batch = pool->empty) != NULL; free(batch))
            pool->empty = batch->older;
        pthread_mutex_unlock(&pools_lock);
    }
    return given;
}

/* ---- A child of fork ---- */

void haft_pool_before_fork(void) {
    pthread_mutex_lock(&pools_lock);
    haft_slots_before_fork();
}

void haft_pool_after_fork(void) {
    haft_slots_after_fork();
    pthread_mutex_unlock(&pools_lock);
}

/* ---- Looking ---- */

typedef struct visitor {
    const struct haft_pool *pool;
    void (*visit)(haft_fiber_t *fiber, void *argument);
    void *argument;
} visitor_t;

static void visit_live(haft_fiber_t *fiber, const struct haft_chunk *chunk, size_t index,
                       void *argument) {
    const visitor_t *visitor = argument;
    (void)chunk, (void)index;
    /* A header over which another fiber has written is left out. */
    if (fiber != NULL && fiber->pool == visitor->pool &&
        haft_fiber_state(fiber) != HAFT_FIBER_DROPPED)
        visitor->visit(fiber, visitor->argument);
}

void haft_pool_each(void (*visit)(haft_fiber_t *fiber, void *argument), void *argument) {
    for (int i = 0; i < POOLS; i++) {
        visitor_t visitor = {&pools[i], visit, argument};
        haft_slots_each(&pools[i].slots, visit_live, &visitor);
    }
}

size_t haft_pool_reserved(const haft_fiber_t *fiber) {
    return fiber->pool->slots.size;
}

static void count_in(haft_fiber_t *fiber, const struct haft_chunk *chunk, size_t index,
                     void *argument) {
    haft_pool_report_t *report = argument;
    bool live = fiber != NULL && haft_fiber_state(fiber) != HAFT_FIBER_DROPPED;
    report->stacks += live;
    report->idle += !live;
    report->unguarded += live && fiber->kind == HAFT_KIND_UNGUARDED;
    report->resident += haft_slot_resident(chunk, index);
}

void hafti_pool_report_sized(haft_pool_report_t *asked, size_t size) {
    haft_pool_report_t report = {0};
    for (int i = 0; i < POOLS; i++) {
        size_t bytes;
        report.mappings += haft_slots_chunks(&pools[i].slots, &bytes);
        report.reserved += bytes;
        haft_slots_each(&pools[i].slots, count_in, &report);
    }
    memset(asked, 0, size);
    memcpy(asked, &report, size < sizeof report ? size : sizeof report);
}
