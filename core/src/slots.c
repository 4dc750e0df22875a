/* SPDX-License-Identifier: MIT */
/*
 * Slots: addresses for stacks, and the memory behind them.
 *
 * Stacks of one size lie in chunks, each one mapping of many slots:
 *
 *   chunk:  | slot 0 | slot 1 | ... | slot n-1 |      slots from `used` on were never in use
 *   slot:   | not used | guard | ...stack... | header | colour |
 *
 *                 take: opened, guarded                       leave
 *   closed  ------------------------------->  HELD (OPEN)  ---------->  DIRTY (OPEN)
 *      ^                                           ^                       |     |
 *      |    memory and page tables given back      |         take          |     |
 *      +-------------------------------------------+-----------------------+     |
 *      ^                                           ^          take               |
 *      +---------  with its neighbours  ------  OPEN  <--------------------------+
 *                                                         memory given back
 *
 * - Slots that were never in use cannot be accessed: they cost nothing where the system counts
 *   writable memory, and mlockall finds nothing to lock. They are opened some at a time. Slots that
 *   are closed again, in long runs, can be read, so that a stale pointer to a fiber is recognised.
 *   Chunks are never unmapped.
 * - The guard is installed with MADV_GUARD_INSTALL where the kernel has it (6.13), which does not
 *   split the mapping: a million stacks are a few dozen mappings. Elsewhere, and in locked memory,
 *   it is installed with mprotect, which splits the mapping: such guards take at most three
 *   quarters of the mappings that a process may have (vm.max_map_count). Under Valgrind the first
 *   guards use mprotect: its leak check reads all readable mappings and would fault on every word
 *   of a MADV_GUARD_INSTALL guard. Slots of the kind HAFT_KIND_UNGUARDED have a canary instead, at
 *   the end of the slot below, on a page that is in use anyway (the first slot: at the end of the
 *   page before it).
 * - All stacks have guards of the same size, so a frame that the guard of a small stack stops is
 *   stopped by that of a large stack, too.
 * - Headers lie at the high end, on the page of the first frames: a small fiber has one page
 *   resident. The colour varies their offset, so that fibers do not compete for the same sets of
 *   the cache. If colours take most of a page, the second level of the cache holds what a switch
 *   needs of a few thousand fibers: so they do in the first chunks (MORE_COLOURS). In larger chunks
 *   colours take less, and leave 3.2 KiB of the page to header and frames. Dense slots of less than
 *   two pages lie side by side, without guards, an odd number of lines apart.
 */
#define _GNU_SOURCE
#include "slots.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef MADV_DONTNEED_LOCKED
#    define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_GUARD_INSTALL
#    define MADV_GUARD_INSTALL 102
#endif
#ifndef MLOCK_ONFAULT
#    define MLOCK_ONFAULT 1
#endif
#ifndef SYS_process_madvise
#    define SYS_process_madvise 440
#endif

enum {
    COLOURS = 5,
    MORE_COLOURS = 16, /* of chunks of up to FEW_SLOTS */
    FEW_SLOTS = 1024,
    COLOUR_STEP = 192,
    CANARY_ROOM = 32,
    FEWEST_SLOTS = 16,
    MOST_SLOTS = 16384,
    OPENED_AT_ONCE = 16 << 20, /* bytes; more in a chunk of which more is open */
    LONG_RUN = 16 << 20,       /* bytes whose page tables are worth a change of mappings */
    GUARDED_AT_ONCE = 16,      /* slots */
    EPOCH_SHIFT = 40
};
#define MOST_ADDRESSES ((size_t)1 << 40) /* of a chunk */

enum { HELD = 1, DIRTY = 2, OPEN = 4, GUARDED = 8, SPLIT = 16 /* guarded by mprotect */ };

typedef struct haft_chunk {
    struct haft_chunk *next; /* older */
    haft_slots_t *slots;
    char *base;
    size_t count;
    size_t used;
    size_t spare, dirty; /* as in haft_slots_t */
    size_t first_spare;  /* there is none below this one */
    uint8_t state[];
} haft_chunk_t;

size_t haft_page(void) {
    static size_t page;
    size_t known = __atomic_load_n(&page, __ATOMIC_RELAXED);
    if (known == 0) {
        known = (size_t)sysconf(_SC_PAGESIZE);
        __atomic_store_n(&page, known, __ATOMIC_RELAXED);
    }
    return known;
}

static char *slot_at(const haft_chunk_t *chunk, size_t index) {
    return chunk->base + index * chunk->slots->stride;
}

static char *stack_in(const haft_chunk_t *chunk, size_t index) {
    return slot_at(chunk, index) + chunk->slots->below;
}

static char *guard_in(const haft_chunk_t *chunk, size_t index) {
    return stack_in(chunk, index) - chunk->slots->guard;
}

static bool shares_pages(const haft_slots_t *slots) {
    return slots->stride % haft_page() != 0;
}

/* This many slots side by side fill whole pages. */
static size_t group_of(const haft_slots_t *slots) {
    size_t group = 1;
    while (group * slots->stride % haft_page() != 0)
        group *= 2;
    return group;
}

static size_t colours_of(const haft_chunk_t *chunk) {
    if (shares_pages(chunk->slots))
        return 1;
    return chunk->count > FEW_SLOTS ? COLOURS : MORE_COLOURS;
}

static haft_fiber_t *fiber_of_slot(const haft_chunk_t *chunk, size_t index) {
    char *end = slot_at(chunk, index + 1);
    if (chunk->slots->kind == HAFT_KIND_SEGMENTED)
        return (haft_fiber_t *)(void *)(end - sizeof(haft_fiber_t));
    if (chunk->slots->kind == HAFT_KIND_UNGUARDED)
        end -= CANARY_ROOM;
    end -= index % colours_of(chunk) * COLOUR_STEP;
    return (haft_fiber_t *)(((uintptr_t)end - sizeof(haft_fiber_t)) & ~(uintptr_t)63);
}

HAFTI_INLINE unsigned state_of(const haft_chunk_t *chunk, size_t index) {
    return __atomic_load_n(&chunk->state[index], __ATOMIC_RELAXED);
}

HAFTI_INLINE void set_state(haft_chunk_t *chunk, size_t index, unsigned state) {
    __atomic_store_n(&chunk->state[index], (uint8_t)state, __ATOMIC_RELAXED);
}

/* ---- All chunks by their addresses ---- */

/* Never changed once it is visible, and never freed: another thread may be reading it, perhaps in a
   signal handler. */
typedef struct table {
    struct table *older;
    size_t count;
    haft_chunk_t *chunks[]; /* by rising addresses */
} table_t;

static table_t *newest_table;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static bool enter_into_table(haft_chunk_t *chunk) {
    pthread_mutex_lock(&table_lock);
    table_t *older = newest_table;
    size_t count = older == NULL ? 0 : older->count;
    table_t *table = malloc(sizeof *table + (count + 1) * sizeof *table->chunks);
    if (table != NULL) {
        size_t at = 0, below = 0;
        for (; below < count && older->chunks[below]->base < chunk->base; below++)
            table->chunks[at++] = older->chunks[below];
        table->chunks[at++] = chunk;
        for (; below < count; below++)
            table->chunks[at++] = older->chunks[below];
        table->older = older;
        table->count = at;
        __atomic_store_n(&newest_table, table, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&table_lock);
    return table != NULL;
}

/* The chunk with this address in a slot that was ever in use; NULL if there is none. */
static haft_chunk_t *chunk_at(const void *address, size_t *index) {
    const table_t *table = __atomic_load_n(&newest_table, __ATOMIC_ACQUIRE);
    size_t low = 0, high = table == NULL ? 0 : table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)table->chunks[middle]->base <= (uintptr_t)address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    haft_chunk_t *chunk = table->chunks[low - 1];
    *index = ((uintptr_t)address - (uintptr_t)chunk->base) / chunk->slots->stride;
    return *index < __atomic_load_n(&chunk->used, __ATOMIC_ACQUIRE) ? chunk : NULL;
}

haft_fiber_t *haft_pool_fiber_at(const void *address) {
    size_t index;
    const haft_chunk_t *chunk = chunk_at(address, &index);
    return chunk != NULL ? fiber_of_slot(chunk, index) : NULL;
}

/* ---- Addresses ---- */

/* The program's own needs take precedence over those of later stacks. */
static size_t most_addresses(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        return limit.rlim_cur / 32;
    return MOST_ADDRESSES;
}

static haft_chunk_t *grow(haft_slots_t *slots) {
    size_t group = group_of(slots), most = most_addresses() / slots->stride;
    size_t count = slots->chunks == NULL ? FEWEST_SLOTS : slots->chunks->count * 2;
    if (count > MOST_SLOTS)
        count = MOST_SLOTS;
    if (count > most)
        count = most;
    count = count < group ? group : count / group * group;
    haft_chunk_t *chunk = calloc(1, sizeof *chunk + count);
    size_t before = slots->kind == HAFT_KIND_UNGUARDED ? haft_page() : 0; /* for the first canary */
    char *base = MAP_FAILED;
    while (chunk != NULL) {
        base = mmap(NULL, before + count * slots->stride, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (base != MAP_FAILED || count == group)
            break;
        count = count / 2 < group ? group : count / 2 / group * group;
    }
    if (base == MAP_FAILED) {
        free(chunk);
        errno = ENOMEM;
        return NULL;
    }
    /* A huge page would make every stack in it resident. */
    madvise(base, before + count * slots->stride, MADV_NOHUGEPAGE);
    chunk->next = slots->chunks;
    chunk->slots = slots;
    chunk->base = base + before;
    chunk->count = count;
    if (!enter_into_table(chunk)) {
        munmap(base, before + count * slots->stride);
        free(chunk);
        errno = ENOMEM;
        return NULL;
    }
    __atomic_store_n(&slots->chunks, chunk, __ATOMIC_RELEASE);
    return chunk;
}

/* Opens the closed slot and some that follow. */
static bool open_slots(haft_chunk_t *chunk, size_t index) {
    const haft_slots_t *slots = chunk->slots;
    size_t group = group_of(slots), first = index / group * group, end = first + group;
    size_t most = first * slots->stride / 8;
    if (most < OPENED_AT_ONCE)
        most = OPENED_AT_ONCE;
    while (end < chunk->count && (state_of(chunk, end) & OPEN) == 0 &&
           (end + group - first) * slots->stride <= most)
        end += group;
    char *low = slot_at(chunk, first);
    size_t size = (end - first) * slots->stride;
    if (first == 0 && slots->kind == HAFT_KIND_UNGUARDED) {
        low -= haft_page();
        size += haft_page();
    }
    /* With this advice, memory that is to be locked (mlockall) is locked as it is used; otherwise
       all that is opened would be locked. */
    if (madvise(low, haft_page(), MADV_DONTNEED) != 0 && errno == EINVAL)
        (void)mlock2(low, size, MLOCK_ONFAULT);
    /* A filter of system calls may refuse mprotect and allow mmap. */
    if (mprotect(low, size, PROT_READ | PROT_WRITE) != 0) {
        if (mmap(low, size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_FIXED, -1,
                 0) == MAP_FAILED)
            return false;
        madvise(low, size, MADV_NOHUGEPAGE);
    }
    for (size_t i = first; i < end; i++)
        set_state(chunk, i, state_of(chunk, i) | OPEN);
    return true;
}

/* ---- Guards ---- */

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

static enum { UNKNOWN, HEEDED, IGNORED } advice;

static bool guard_by_advice(char *low, size_t size) {
    int known = __atomic_load_n(&advice, __ATOMIC_RELAXED);
    if (known == IGNORED || madvise(low, size, MADV_GUARD_INSTALL) != 0)
        return false;
    if (known == UNKNOWN) {
        known = is_guarded(low) ? HEEDED : IGNORED;
        __atomic_store_n(&advice, known, __ATOMIC_RELAXED);
    }
    return known == HEEDED;
}

static long splits; /* how many there are */

static long most_splits(void) {
    enum { FOR_VALGRIND = 12000 }; /* It ends the process at 30,000 mappings. */
    static long most;
    if (haft_tools_reads_all())
        return FOR_VALGRIND;
    long known = __atomic_load_n(&most, __ATOMIC_RELAXED);
    if (known == 0) {
        char text[32] = "";
        int file = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
        if (file < 0 || read(file, text, sizeof text - 1) <= 0)
            text[0] = '\0';
        if (file >= 0)
            close(file);
        long mappings = strtol(text, NULL, 10);
        known = (mappings > 0 ? mappings : 65530) / 8 * 3; /* two each */
        __atomic_store_n(&most, known, __ATOMIC_RELAXED);
    }
    return known;
}

static bool guard_by_split(char *low, size_t size) {
    if (__atomic_add_fetch(&splits, 1, __ATOMIC_RELAXED) <= most_splits() &&
        mprotect(low, size, PROT_NONE) == 0)
        return true;
    __atomic_sub_fetch(&splits, 1, __ATOMIC_RELAXED);
    return false;
}

/* Guards the slot and some that follow, by one call. The more stacks there are already, the more
   will be needed. False: the slot has no guard yet. */
static bool guard_ahead(haft_chunk_t *chunk, size_t index) {
    enum { THIS_PROCESS = -10000 }; /* PIDFD_SELF */
    static bool refused;
    struct iovec guards[GUARDED_AT_ONCE];
    size_t most = index / 8 < GUARDED_AT_ONCE ? index / 8 : GUARDED_AT_ONCE;
    size_t count = 0, size = chunk->slots->guard;
    if (most < 2 || __atomic_load_n(&refused, __ATOMIC_RELAXED) ||
        __atomic_load_n(&advice, __ATOMIC_RELAXED) != HEEDED || haft_tools_reads_all())
        return false;
    for (size_t i = index; count < most && i < chunk->count; i++, count++) {
        if ((state_of(chunk, i) & (OPEN | GUARDED)) != OPEN)
            break;
        guards[count] = (struct iovec){guard_in(chunk, i), size};
    }
    long advised = syscall(SYS_process_madvise, THIS_PROCESS, guards, count, MADV_GUARD_INSTALL, 0);
    if (advised != (long)(count * size)) {
        __atomic_store_n(&refused, true, __ATOMIC_RELAXED);
        return false;
    }
    for (size_t i = index; i < index + count; i++)
        set_state(chunk, i, state_of(chunk, i) | GUARDED);
    return true;
}

static bool guard(haft_chunk_t *chunk, size_t index) {
    char *low = guard_in(chunk, index);
    size_t size = chunk->slots->guard;
    unsigned state = state_of(chunk, index);
    if (size == 0 || (state & GUARDED) != 0 || guard_ahead(chunk, index))
        return true;
    bool split = haft_tools_reads_all() && guard_by_split(low, size);
    if (!split && !guard_by_advice(low, size)) {
        split = guard_by_split(low, size);
        if (!split)
            return false;
    }
    set_state(chunk, index, state | GUARDED | (split ? SPLIT : 0));
    return true;
}

/* ---- Taking and leaving ---- */

/* Counts the memory given back from slots that may be used again. */
static uint64_t epoch;

static haft_chunk_t *find_free(haft_slots_t *slots, size_t *index) {
    haft_chunk_t *chunk = slots->chunks;
    if (slots->spare != 0) {
        while (chunk->spare == 0)
            chunk = chunk->next;
        while ((state_of(chunk, chunk->first_spare) & HELD) != 0)
            chunk->first_spare++;
        *index = chunk->first_spare;
        return chunk;
    }
    if (chunk == NULL || chunk->used == chunk->count)
        chunk = grow(slots);
    *index = chunk == NULL ? 0 : chunk->used;
    return chunk;
}

haft_fiber_t *haft_slots_take(haft_slots_t *slots) {
    size_t index;
    haft_chunk_t *chunk = find_free(slots, &index);
    if (chunk == NULL)
        return NULL;
    if ((state_of(chunk, index) & OPEN) == 0 && !open_slots(chunk, index))
        return NULL;
    if (!guard(chunk, index))
        return NULL;
    haft_fiber_t *fiber = fiber_of_slot(chunk, index);
    /* Written before anything is read: new memory is then mapped by one fault and not by two. */
    fiber->state = HAFT_FIBER_DROPPED;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    /* A stale resumption of a fiber that was here is recognised by its number, even after the
       memory with the count has been given back. */
    if (fiber->pool == NULL)
        fiber->scope.shot = __atomic_load_n(&epoch, __ATOMIC_RELAXED) << EPOCH_SHIFT;
    fiber->pool = slots->pool;
    fiber->kind = slots->kind;
    fiber->low = stack_in(chunk, index);
    fiber->high = (char *)fiber;
    fiber->uses = 1;
    unsigned state = state_of(chunk, index);
    if (index < chunk->used) {
        slots->spare--;
        chunk->spare--;
        slots->dirty -= (state & DIRTY) != 0;
        chunk->dirty -= (state & DIRTY) != 0;
    } else if (slots->kind != HAFT_KIND_SEGMENTED) {
        haft_tools_stack(fiber, fiber->low, fiber->high);
    }
    set_state(chunk, index, (state & ~(unsigned)DIRTY) | HELD);
    if (index == chunk->used)
        __atomic_store_n(&chunk->used, index + 1, __ATOMIC_RELEASE);
    return fiber;
}

void haft_slots_leave(haft_slots_t *slots, const haft_fiber_t *fiber) {
    size_t index;
    haft_chunk_t *chunk = chunk_at(fiber, &index);
    set_state(chunk, index, (state_of(chunk, index) & ~(unsigned)HELD) | DIRTY);
    chunk->spare++;
    chunk->dirty++;
    slots->spare++;
    slots->dirty++;
    if (index < chunk->first_spare)
        chunk->first_spare = index;
}

/* ---- Memory ---- */

/* Bytes of memory in use below `end`. On large stacks, pages far below that, beyond some that were
   never used, are not looked for. */
static size_t resident_in(const char *low, const char *end) {
    enum { PART = 1024, FAR = 64 };
    unsigned char pages[PART];
    size_t count = 0, page = haft_page();
    for (int without = 0; low < end && without < FAR; without++) {
        size_t part = (size_t)(end - low);
        if (part > PART * page)
            part = PART * page;
        end -= part;
        if (mincore((void *)(uintptr_t)end, part, pages) != 0)
            return count;
        for (size_t i = 0; i < part / page; i++)
            if (pages[i] & 1) {
                count += page;
                without = 0;
            }
    }
    return count;
}

size_t haft_slot_resident(const haft_chunk_t *chunk, size_t index) {
    const haft_slots_t *slots = chunk->slots;
    if ((state_of(chunk, index) & (HELD | DIRTY)) == 0)
        return 0;
    return shares_pages(slots) ? slots->stride
                               : resident_in(stack_in(chunk, index), slot_at(chunk, index + 1));
}

size_t haft_pool_resident(const haft_fiber_t *fiber) {
    size_t index;
    const haft_chunk_t *chunk = chunk_at(fiber, &index);
    return chunk == NULL ? 0 : haft_slot_resident(chunk, index);
}

static void give_back_pages(char *low, size_t size) {
    if (madvise(low, size, MADV_DONTNEED) != 0)
        (void)madvise(low, size, MADV_DONTNEED_LOCKED);
}

/* One page is enough to tell: a stack that has been deeper has touched it. */
bool haft_slots_give_back_depth(haft_fiber_t *fiber, size_t keep) {
    size_t page = haft_page();
    uintptr_t end = ((uintptr_t)fiber->high - keep) & ~(uintptr_t)(page - 1);
    if (end <= (uintptr_t)fiber->low || end > (uintptr_t)fiber->high)
        return false;
    unsigned char resident = 0;
    if (mincore((void *)(end - page), page, &resident) != 0 || (resident & 1) == 0)
        return false;
    give_back_pages(fiber->low, end - (uintptr_t)fiber->low);
    return true;
}

/* Closes a run of slots: page tables go only with the mapping. */
static bool close_slots(char *low, size_t size) {
    if (mmap(low, size, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_FIXED, -1, 0) != low)
        return false;
    madvise(low, size, MADV_NOHUGEPAGE);
    return true;
}

static size_t give_back_run(haft_chunk_t *chunk, size_t first, size_t end, bool count) {
    haft_slots_t *slots = chunk->slots;
    size_t given = 0, group = group_of(slots);
    for (size_t i = first; i < end; i++) {
        unsigned state = state_of(chunk, i);
        if ((state & DIRTY) == 0)
            continue;
        if (count)
            given += haft_slot_resident(chunk, i);
        set_state(chunk, i, state & ~(unsigned)DIRTY);
        chunk->dirty--;
        slots->dirty--;
    }
    first = (first + group - 1) / group * group;
    end = end / group * group;
    char *low = slot_at(chunk, first);
    /* The last page may have the canary of the next slot. */
    char *high = slot_at(chunk, end) - (slots->kind == HAFT_KIND_UNGUARDED ? haft_page() : 0);
    if (first >= end || low >= high)
        return given;
    __atomic_add_fetch(&epoch, 1, __ATOMIC_RELAXED);
    if (high - low < LONG_RUN || !close_slots(low, (size_t)(high - low))) {
        give_back_pages(low, (size_t)(high - low));
        return given;
    }
    for (size_t i = first; i < end; i++) {
        if ((state_of(chunk, i) & SPLIT) != 0)
            __atomic_sub_fetch(&splits, 1, __ATOMIC_RELAXED);
        set_state(chunk, i, 0);
    }
    return given;
}

size_t haft_slots_give_back(haft_slots_t *slots, size_t most, bool count) {
    haft_chunk_t *chunk = slots->chunks;
    while (chunk != NULL && chunk->dirty == 0)
        chunk = chunk->next;
    if (chunk == NULL)
        return 0;
    size_t group = group_of(slots), first = 0;
    while ((state_of(chunk, first) & DIRTY) == 0)
        first++;
    size_t end = first + 1;
    while (first % group != 0 && (state_of(chunk, first - 1) & HELD) == 0)
        first--;
    while (end < chunk->used && end - first < most && (state_of(chunk, end) & HELD) == 0)
        end++;
    return give_back_run(chunk, first, end, count);
}

/* ---- Looking ---- */

void haft_slots_each(const haft_slots_t *slots, haft_slot_visit_t *visit, void *argument) {
    const haft_chunk_t *chunk = __atomic_load_n(&slots->chunks, __ATOMIC_ACQUIRE);
    for (; chunk != NULL; chunk = chunk->next) {
        size_t used = __atomic_load_n(&chunk->used, __ATOMIC_ACQUIRE);
        for (size_t i = 0; i < used; i++)
            visit((state_of(chunk, i) & HELD) != 0 ? fiber_of_slot(chunk, i) : NULL, chunk, i,
                  argument);
    }
}

size_t haft_slots_chunks(const haft_slots_t *slots, size_t *bytes) {
    size_t count = 0;
    const haft_chunk_t *chunk = __atomic_load_n(&slots->chunks, __ATOMIC_ACQUIRE);
    for (*bytes = 0; chunk != NULL; chunk = chunk->next) {
        *bytes += chunk->count * slots->stride;
        count++;
    }
    return count;
}

void haft_slots_before_fork(void) {
    pthread_mutex_lock(&table_lock);
}

void haft_slots_after_fork(void) {
    pthread_mutex_unlock(&table_lock);
}

/* ---- For debuggers ---- */

const haft_shown_t haft_shown_slots[] = {HAFT_SHOWN_FIELD("chunk_table", table_t, count),
                                         HAFT_SHOWN_FIELD("chunk_table", table_t, chunks),
                                         HAFT_SHOWN_FIELD("chunk", haft_chunk_t, slots),
                                         HAFT_SHOWN_FIELD("chunk", haft_chunk_t, base),
                                         HAFT_SHOWN_FIELD("chunk", haft_chunk_t, count),
                                         HAFT_SHOWN_FIELD("chunk", haft_chunk_t, used),
                                         HAFT_SHOWN_FIELD("chunk", haft_chunk_t, state),
                                         HAFT_SHOWN_FIELD("slots", haft_slots_t, stride),
                                         HAFT_SHOWN_FIELD("slots", haft_slots_t, kind),
                                         HAFT_SHOWN_NUMBER("HELD", HELD),
                                         HAFT_SHOWN_NUMBER("COLOURS", COLOURS),
                                         HAFT_SHOWN_NUMBER("MORE_COLOURS", MORE_COLOURS),
                                         HAFT_SHOWN_NUMBER("FEW_SLOTS", FEW_SLOTS),
                                         HAFT_SHOWN_NUMBER("COLOUR_STEP", COLOUR_STEP),
                                         HAFT_SHOWN_NUMBER("CANARY_ROOM", CANARY_ROOM),
                                         HAFT_SHOWN_ADDRESS("chunk_table", newest_table),
                                         HAFT_SHOWN_END};
