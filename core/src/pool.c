/*
 * Stacks of reserved addresses, committed by the system as they are touched.
 *
 * A pool serves one size, a power of two. It asks the system for chunks of many stacks in one
 * mapping:
 *
 *   chunk:  | slot 0 | slot 1 | ... | slot n-1 |     slots from `used` on were never touched
 *   slot:   | guard | ...stack... | header | colour |
 *
 * - The guard is installed with MADV_GUARD_INSTALL where the kernel has it (6.13), which does not
 * split the mapping: a million stacks are a few dozen mappings. Elsewhere with mprotect, which
 * does: the system then ends the number of stacks at about 32,000 (vm.max_map_count), by an error.
 * - The guard is a sixteenth of the slot, so that a frame of some size cannot step over it.
 * - Headers lie at the high end, on the page of the first frames: a small fiber has one page
 * resident. The colour varies their offset, so that fibers do not compete for the same sets of the
 * cache.
 * - Free stacks are kept by the thread that freed them, up to a number, then by the pool.
 * - A stack that has gone deep gives its memory back when it is freed. To look costs a system call,
 * so a stack is looked at on its first free and then ever more rarely while it is found shallow,
 * and each look also takes one other idle stack of the pool in turn. A stack that its thread keeps
 * may keep some depth (KEEP_WARM): a program that goes deep again and again does not fault every
 * time.
 * - The slots of first segments are smaller than a page, side by side, without guards and colours.
 * - Slots do not lie a power of two apart: the entries of the page tables for the pages in use
 * would all fall into the same few sets of the cache.
 * - Chunks are never unmapped: an address that was once a fiber stays one, so that a stale pointer
 * is recognised.
 */
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_GUARD_INSTALL
#    define MADV_GUARD_INSTALL 102
#endif

enum {
    SMALLEST_SHIFT = 14,
    SEGMENTED = SMALLEST_SHIFT - 1, /* the pool of first segments: their size is no power of two */
    SHIFTS = 48,
    COLOURS = 8,
    COLOUR_STEP = 192,
    THREAD_TAKES = 16,
    FEWEST_SLOTS = 16,
    MOST_SLOTS = 16384,
    ODD_PAGES = 9,             /* between large slots; part of the guard */
    KEEP_WARM = 256 * 1024,    /* bytes at the high end that a thread's own free stack keeps */
    KEEP_RESIDENT = 16 * 1024, /* and one of the pool */
    MOST_USES_UNSEEN = 512
};

typedef struct haft_chunk {
    struct haft_chunk *next; /* older */
    struct haft_pool *pool;
    char *base;
    size_t slots;
    size_t used;
} haft_chunk_t;

struct haft_pool {
    pthread_mutex_t lock;
    size_t size;
    size_t stride;        /* from slot to slot */
    haft_fiber_t *idle;   /* free, perhaps with memory that could be given back */
    haft_fiber_t *seen;   /* free, looked at since */
    haft_chunk_t *chunks; /* newest first; written under the lock, read by anybody */
};

static struct haft_pool pools[SHIFTS];
static pthread_once_t pools_once = PTHREAD_ONCE_INIT;
static size_t page; /* bytes */
size_t haft_default_size = 1024 * 1024;
static enum { GUARDS_UNKNOWN, GUARDS_ADVISED, GUARDS_SPLIT } guards; /* SPLIT: by mprotect */

HAFT_INLINE void list_push(haft_fiber_t **list, haft_fiber_t *fiber) {
    fiber->next = *list;
    *list = fiber;
}

HAFT_INLINE haft_fiber_t *list_pop(haft_fiber_t **list) {
    haft_fiber_t *fiber = *list;
    if (fiber != NULL)
        *list = fiber->next;
    return fiber;
}

static void pools_start(void) {
    page = (size_t)sysconf(_SC_PAGESIZE);
    for (int shift = 0; shift < SHIFTS; shift++) {
        pthread_mutex_init(&pools[shift].lock, NULL);
        pools[shift].size = (size_t)1 << shift;
        pools[shift].stride = pools[shift].size + (shift >= 18 ? ODD_PAGES * page : 0);
    }
    pools[SEGMENTED].size = pools[SEGMENTED].stride = HAFT_SEGMENTED_SIZE;
}

static struct haft_pool *pool_for(size_t size) {
    pthread_once(&pools_once, pools_start);
    int shift = SMALLEST_SHIFT;
    while (shift < SHIFTS && (((size_t)1 << shift) < size || ((size_t)1 << shift) < 4 * page))
        shift++;
    return shift < SHIFTS ? &pools[shift] : NULL;
}

size_t haft_stack_size(void) {
    return __atomic_load_n(&haft_default_size, __ATOMIC_RELAXED);
}

void haft_set_stack_size(size_t bytes) {
    struct haft_pool *pool = pool_for(bytes);
    if (pool == NULL)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL, "A stack size of %zu bytes is too large.",
                  bytes);
    __atomic_store_n(&haft_default_size, pool->size, __ATOMIC_RELAXED);
}

static bool is_segmented(const struct haft_pool *pool) {
    return pool == &pools[SEGMENTED];
}

static size_t guard_of(const struct haft_pool *pool) {
    if (is_segmented(pool))
        return 0;
    size_t part = pool->size / 16 < page ? page : pool->size / 16;
    return part + (pool->stride - pool->size);
}

static char *slot_at(const haft_chunk_t *chunk, size_t index) {
    return chunk->base + index * chunk->pool->stride;
}

static haft_fiber_t *fiber_of_slot(const haft_chunk_t *chunk, size_t index) {
    char *end = slot_at(chunk, index + 1);
    if (is_segmented(chunk->pool))
        return (haft_fiber_t *)(void *)(end - sizeof(haft_fiber_t));
    end -= index % COLOURS * COLOUR_STEP;
    return (haft_fiber_t *)(((uintptr_t)end - sizeof(haft_fiber_t)) & ~(uintptr_t)63);
}

/* ---- New slots ---- */

static bool grow(struct haft_pool *pool) {
    size_t slots = pool->chunks == NULL ? FEWEST_SLOTS : pool->chunks->slots * 2;
    if (slots > MOST_SLOTS)
        slots = MOST_SLOTS;
    haft_chunk_t *chunk = malloc(sizeof *chunk);
    char *base = MAP_FAILED;
    while (chunk != NULL && slots > 0 && base == MAP_FAILED) {
        base = mmap(NULL, slots * pool->stride, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (base == MAP_FAILED)
            slots /= 2;
    }
    if (base == MAP_FAILED) {
        free(chunk);
        errno = ENOMEM;
        return false;
    }
    /* A huge page would make every stack in it resident. */
    madvise(base, slots * pool->stride, MADV_NOHUGEPAGE);
    *chunk = (haft_chunk_t){pool->chunks, pool, base, slots, 0};
    __atomic_store_n(&pool->chunks, chunk, __ATOMIC_RELEASE);
    return true;
}

/* Emulators have been seen to accept an advice that they do not know. */
static bool is_guarded(const char *address) {
    int ends[2];
    if (pipe(ends) != 0)
        return true;
    bool guarded = write(ends[1], address, 1) < 0;
    close(ends[0]);
    close(ends[1]);
    return guarded;
}

static bool guard(char *low, size_t size) {
    if (guards == GUARDS_UNKNOWN)
        guards = madvise(low, size, MADV_GUARD_INSTALL) == 0 && is_guarded(low) ? GUARDS_ADVISED
                                                                                : GUARDS_SPLIT;
    return guards == GUARDS_ADVISED ? madvise(low, size, MADV_GUARD_INSTALL) == 0
                                    : mprotect(low, size, PROT_NONE) == 0;
}

static haft_fiber_t *carve(struct haft_pool *pool) {
    if ((pool->chunks == NULL || pool->chunks->used == pool->chunks->slots) && !grow(pool))
        return NULL;
    haft_chunk_t *chunk = pool->chunks;
    char *slot = slot_at(chunk, chunk->used);
    if (!is_segmented(pool) && !guard(slot, guard_of(pool)))
        return NULL;
    haft_fiber_t *fiber = fiber_of_slot(chunk, chunk->used);
    fiber->pool = pool;
    fiber->low = slot + guard_of(pool);
    fiber->high = (char *)fiber;
    fiber->state = HAFT_FIBER_FREED;
    fiber->uses = 1;
    if (!is_segmented(pool))
        haft_tools_stack(fiber, fiber->low, fiber->high);
    __atomic_store_n(&chunk->used, chunk->used + 1, __ATOMIC_RELEASE);
    return fiber;
}

/* ---- Giving memory back ---- */

/* Bytes of memory in the pages from `low` on. Safe in signal handlers. */
static size_t resident_in(const char *low, size_t size) {
    unsigned char pages[1024];
    size_t count = 0;
    for (size_t at = 0; at < size; at += sizeof pages * page) {
        size_t part = size - at < sizeof pages * page ? size - at : sizeof pages * page;
        if (mincore((void *)(uintptr_t)(low + at), part, pages) != 0)
            return count;
        for (size_t i = 0; i < (part + page - 1) / page; i++)
            count += pages[i] & 1 ? page : 0;
    }
    return count;
}

size_t haft_pool_resident(const haft_fiber_t *fiber) {
    if (is_segmented(fiber->pool))
        return fiber->pool->size;
    uintptr_t end = ((uintptr_t)(fiber + 1) + page - 1) & ~(uintptr_t)(page - 1);
    return resident_in(fiber->low, end - (uintptr_t)fiber->low);
}

/* Gives back what a free stack has more than `keep` bytes from its high end. One page tells: a
   stack that has been deeper has been there. */
static bool give_back_depth(haft_fiber_t *fiber, size_t keep) {
    uintptr_t end = ((uintptr_t)fiber->high - keep) & ~(uintptr_t)(page - 1);
    if (end <= (uintptr_t)fiber->low || end > (uintptr_t)fiber->high)
        return false;
    if (resident_in((const char *)end - page, page) == 0)
        return false;
    madvise(fiber->low, end - (uintptr_t)fiber->low, MADV_DONTNEED);
    return true;
}

/* ---- Taking and giving ---- */

static haft_fiber_t *take_free(struct haft_pool *pool) {
    haft_fiber_t *fiber = list_pop(&pool->idle);
    return fiber != NULL ? fiber : list_pop(&pool->seen);
}

static HAFT_COLD haft_fiber_t *refill(haft_thread_t *thread, struct haft_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    haft_fiber_t *fiber = take_free(pool);
    if (fiber == NULL) {
        fiber = carve(pool);
    } else if (thread->pool == pool) {
        haft_fiber_t *more;
        while (thread->idle_count < THREAD_TAKES && (more = take_free(pool)) != NULL) {
            list_push(&thread->idle, more);
            thread->idle_count++;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return fiber;
}

static HAFT_COLD void hand_over(haft_thread_t *thread, uint32_t keep, bool give_back) {
    struct haft_pool *pool = thread->pool;
    if (pool == NULL)
        return;
    haft_fiber_t *given = NULL;
    for (; thread->idle_count > keep; thread->idle_count--) {
        haft_fiber_t *fiber = list_pop(&thread->idle);
        if (give_back)
            (void)give_back_depth(fiber, KEEP_RESIDENT);
        list_push(&given, fiber);
    }
    pthread_mutex_lock(&pool->lock);
    for (haft_fiber_t *fiber; (fiber = list_pop(&given)) != NULL;)
        list_push(&pool->seen, fiber);
    pthread_mutex_unlock(&pool->lock);
}

void haft_pool_thread_exit(haft_thread_t *thread) {
    hand_over(thread, 0, true);
}

haft_fiber_t *haft_pool_take_slow(haft_thread_t *thread, size_t size) {
    struct haft_pool *pool = pool_for(size);
    if (pool == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    if (pool != thread->pool && pool->size == haft_stack_size()) {
        hand_over(thread, 0, true);
        thread->pool = pool;
        thread->idle_size = pool->size;
    }
    return refill(thread, pool);
}

haft_fiber_t *haft_pool_take_segmented(haft_thread_t *thread) {
    pthread_once(&pools_once, pools_start);
    return refill(thread, &pools[SEGMENTED]);
}

haft_fiber_t *haft_pool_exhausted(size_t size) {
    haft_report(HAFT_ERROR_NO_MEMORY, NULL, NULL, "No memory for a fiber's stack of %zu bytes: %s.",
                size, strerror(errno));
    errno = ENOMEM;
    return NULL;
}

/* `uses` counts down to the next look; its upper half holds how many uses the last count was. */
static HAFT_COLD void look(haft_fiber_t *fiber) {
    uint32_t count = fiber->uses >> 16;
    bool kept = fiber->pool == haft_thread()->pool;
    bool deep = give_back_depth(fiber, kept ? KEEP_WARM : KEEP_RESIDENT);
    count = deep || count == 0 ? 1 : count >= MOST_USES_UNSEEN ? count : count * 2;
    fiber->uses = count << 16 | count;

    struct haft_pool *pool = fiber->pool;
    pthread_mutex_lock(&pool->lock);
    haft_fiber_t *other = list_pop(&pool->idle);
    if (other != NULL) {
        (void)give_back_depth(other, KEEP_RESIDENT);
        list_push(&pool->seen, other);
    }
    pthread_mutex_unlock(&pool->lock);
}

void haft_pool_give_slow(haft_thread_t *thread, haft_fiber_t *fiber) {
    struct haft_pool *pool = fiber->pool;
    if ((fiber->uses & 0xffff) == 0 && !is_segmented(pool))
        look(fiber);
    if (pool != thread->pool) {
        pthread_mutex_lock(&pool->lock);
        list_push(&pool->idle, fiber);
        pthread_mutex_unlock(&pool->lock);
        return;
    }
    if (thread->idle_count == HAFT_THREAD_KEEPS)
        hand_over(thread, HAFT_THREAD_KEEPS / 2, true);
    list_push(&thread->idle, fiber);
    thread->idle_count++;
}

size_t haft_pool_trim(void) {
    size_t given = 0;
    pthread_once(&pools_once, pools_start);
    hand_over(haft_thread_ready(), 0, false);
    for (int shift = SMALLEST_SHIFT; shift < SHIFTS; shift++) {
        struct haft_pool *pool = &pools[shift];
        pthread_mutex_lock(&pool->lock);
        for (haft_fiber_t *fiber; (fiber = list_pop(&pool->idle)) != NULL;)
            list_push(&pool->seen, fiber);
        for (haft_fiber_t *fiber = pool->seen; fiber != NULL; fiber = fiber->next) {
            size_t size = ((uintptr_t)fiber & ~(uintptr_t)(page - 1)) - (uintptr_t)fiber->low;
            size_t resident = resident_in(fiber->low, size);
            if (resident != 0 && madvise(fiber->low, size, MADV_DONTNEED) == 0)
                given += resident;
        }
        pthread_mutex_unlock(&pool->lock);
    }
    return given;
}

/* ---- A child of fork ---- */

void haft_pool_before_fork(void) {
    pthread_once(&pools_once, pools_start);
    for (int shift = 0; shift < SHIFTS; shift++)
        pthread_mutex_lock(&pools[shift].lock);
}

void haft_pool_after_fork(void) {
    for (int shift = 0; shift < SHIFTS; shift++)
        pthread_mutex_unlock(&pools[shift].lock);
}

/* ---- Looking ---- */

static haft_chunk_t *newest_chunk(int shift) {
    return __atomic_load_n(&pools[shift].chunks, __ATOMIC_ACQUIRE);
}

haft_fiber_t *haft_pool_fiber_at(const void *address) {
    for (int shift = SEGMENTED; shift < SHIFTS; shift++)
        for (haft_chunk_t *chunk = newest_chunk(shift); chunk != NULL; chunk = chunk->next) {
            size_t offset = (size_t)((uintptr_t)address - (uintptr_t)chunk->base);
            if (offset < __atomic_load_n(&chunk->used, __ATOMIC_ACQUIRE) * chunk->pool->stride)
                return fiber_of_slot(chunk, offset / chunk->pool->stride);
        }
    return NULL;
}

void haft_pool_each(void (*visit)(haft_fiber_t *fiber, void *argument), void *argument) {
    for (int shift = SEGMENTED; shift < SHIFTS; shift++)
        for (haft_chunk_t *chunk = newest_chunk(shift); chunk != NULL; chunk = chunk->next)
            for (size_t i = 0; i < __atomic_load_n(&chunk->used, __ATOMIC_ACQUIRE); i++) {
                haft_fiber_t *fiber = fiber_of_slot(chunk, i);
                if (haft_fiber_state(fiber) != HAFT_FIBER_FREED)
                    visit(fiber, argument);
            }
}

size_t haft_pool_reserved(const haft_fiber_t *fiber) {
    return fiber->pool->size;
}

haft_pool_report_t haft_pool_report(void) {
    haft_pool_report_t report = {0};
    for (int shift = SEGMENTED; shift < SHIFTS; shift++)
        for (haft_chunk_t *chunk = newest_chunk(shift); chunk != NULL; chunk = chunk->next) {
            report.mappings++;
            report.reserved += chunk->slots * chunk->pool->stride;
            for (size_t i = 0; i < __atomic_load_n(&chunk->used, __ATOMIC_ACQUIRE); i++) {
                const haft_fiber_t *fiber = fiber_of_slot(chunk, i);
                if (haft_fiber_state(fiber) == HAFT_FIBER_FREED)
                    report.idle++;
                else
                    report.stacks++;
                report.resident += haft_pool_resident(fiber);
            }
        }
    return report;
}
