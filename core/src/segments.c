/* SPDX-License-Identifier: MIT */
/*
 * Segmented stacks: what __morestack (arch/x86_64/morestack.S) needs done in C.
 * haft/inner/segments.h draws a segment.
 *
 * The list of a fiber's segments, with two in use:
 *
 *     first --next--> second --next--> third --next--> empty
 *                     ^ limit word     kept for reuse
 *
 * Invariants:
 * - What stands after the segment in use holds nothing; it may be changed at will.
 * - Links are limit words, not headers: that is what the assembly works with. The last link leads
 *   to the empty segment, which has no room: one comparison finds a segment missing or too small.
 * - A new segment has twice the size of the one before, within bounds: deep recursion of small
 *   frames crosses few borders.
 *
 * hafti_segments_grow and hafti_segments_allocate run on the thread's stack, with the limit word 0.
 */
#define _GNU_SOURCE
#include "haft/inner/segments.h"

#if defined(__x86_64__) && defined(__linux__)

#    include <pthread.h>
#    include <stdlib.h>
#    include <sys/mman.h>
#    include <unwind.h>

/* For libhaft-split, which is linked into every program. */
#    define EXPORTED __attribute__((visibility("default")))

typedef struct haft_block haft_block_t;

typedef struct haft_segment {
    uintptr_t next; /* limit word of the next segment */
    uintptr_t top;
    size_t room;          /* frames must be smaller than this */
    size_t size;          /* 0: the first, which is the fiber's memory */
    haft_block_t *blocks; /* memory for alloca in frames on this segment, newest first */
    uintptr_t canary;
} haft_segment_t;

_Static_assert(offsetof(haft_segment_t, next) == HAFTI_SEGMENT_NEXT, "morestack.S reads it");
_Static_assert(offsetof(haft_segment_t, top) == HAFTI_SEGMENT_TOP, "morestack.S reads it");
_Static_assert(offsetof(haft_segment_t, room) == HAFTI_SEGMENT_ROOM, "morestack.S reads it");
_Static_assert(sizeof(haft_segment_t) == HAFTI_SEGMENT_HEADER, "morestack.S relies on it");

/* Memory for alloca that found no room on its segment. It lives as long as the two words at `slot`
   on that segment, where __morestack_allocate_stack_space puts its address: they are free again
   when the stack pointer is above them, or when something else stands there. */
struct haft_block {
    haft_block_t *next;
    size_t size;
    uintptr_t *slot;
    bool owns_slot; /* otherwise it shares the slot of an earlier block of the same frame */
};

enum {
    SMALLEST = 4096,
    CLASSES = 9, /* 4 KiB to 1 MiB */
    LARGEST = SMALLEST << (CLASSES - 1),
    CARVED = 64 * 1024, /* up to this size segments are carved from chunks that stay mapped */
    CHUNK = 1024 * 1024,
    KEPT = 64 * 1024 * 1024, /* of larger segments as many bytes wait for reuse, or as are in use */
    SLOT = 16,
    /* Alloca does not lower the stack pointer further than this below the limit word: a frame of
       the size that asks no one, and four slots. The rest of the slack remains for calls. */
    SLOTS_BELOW_LIMIT = 256 + 4 * SLOT
};

static const uintptr_t canary_value = 0x7365676d656e7421;

__thread void *hafti_thread_stack_pointer __attribute__((tls_model("initial-exec")));

/* The vector registers that hold arguments: 0 xmm, 1 ymm, 2 zmm. Read by morestack.S. */
EXPORTED int hafti_segments_vectors;

__attribute__((constructor)) static void find_vectors(void) {
    __builtin_cpu_init();
    hafti_segments_vectors =
        __builtin_cpu_supports("avx512f") ? 2 : (__builtin_cpu_supports("avx") ? 1 : 0);
}

static const haft_segment_t empty_segment;

static uintptr_t limit_of(const haft_segment_t *segment) {
    return (uintptr_t)segment + HAFTI_SEGMENT_HEADER + HAFTI_SEGMENT_SLACK;
}

static haft_segment_t *segment_of(uintptr_t limit) {
    return (haft_segment_t *)(limit - HAFTI_SEGMENT_SLACK - HAFTI_SEGMENT_HEADER);
}

static bool is_empty(const haft_segment_t *segment) {
    return segment == &empty_segment;
}

static haft_segment_t *next_of(const haft_segment_t *segment) {
    return segment_of(segment->next);
}

static void __attribute__((noreturn, cold)) fail(const char *message) {
    hafti_segments_failed(message);
}

/* The allocator. Small sizes are carved from chunks of their own size class; free memory waits in a
   list a class. */

typedef struct free_memory {
    struct free_memory *next;
} free_memory_t;

typedef struct size_class {
    free_memory_t *free;
    char *fresh; /* never used yet */
    char *fresh_end;
} size_class_t;

static struct {
    pthread_mutex_t lock;
    size_class_t classes[CLASSES];
    size_t kept, used; /* bytes in classes larger than CARVED: of free memory, and in use */
    haft_segments_statistics_t statistics;
} allocator = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t class_of(size_t size) {
    size_t index = 0;
    while (((size_t)SMALLEST << index) < size) {
        index++;
    }
    return index;
}

static void *map(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    allocator.statistics.mapped += size;
    return memory;
}

static void *take_from_class(size_class_t *class, size_t size) {
    free_memory_t *memory = class->free;
    if (memory) {
        class->free = memory->next;
        allocator.kept -= size > CARVED ? size : 0;
        return memory;
    }
    if (size > CARVED) {
        return map(size);
    }
    if (class->fresh == class->fresh_end) {
        char *chunk = map(CHUNK);
        if (!chunk) {
            return NULL;
        }
        class->fresh = chunk;
        class->fresh_end = chunk + CHUNK;
    }
    class->fresh += size;
    return class->fresh - size;
}

/* Takes at least *size bytes; sets *size to their number. */
static void *take(size_t *size) {
    size_t page = (size_t)SMALLEST;
    if (*size > PTRDIFF_MAX) {
        fail("a frame or alloca of a segmented stack is larger than memory.");
    }
    *size = *size > LARGEST ? (*size + page - 1) & ~(page - 1) : page << class_of(*size);
    pthread_mutex_lock(&allocator.lock);
    void *memory =
        *size > LARGEST ? map(*size) : take_from_class(&allocator.classes[class_of(*size)], *size);
    allocator.used += memory && *size > CARVED && *size <= LARGEST ? *size : 0;
    allocator.statistics.taken++;
    pthread_mutex_unlock(&allocator.lock);
    if (!memory) {
        fail("no memory for a segment of a segmented stack.");
    }
    return memory;
}

static void give(void *memory, size_t size) {
    pthread_mutex_lock(&allocator.lock);
    allocator.statistics.given++;
    bool large = size > CARVED && size <= LARGEST;
    size_t most = allocator.used > KEPT ? allocator.used : KEPT;
    allocator.used -= large ? size : 0;
    if (size > LARGEST || (large && allocator.kept + size > most)) {
        munmap(memory, size);
        allocator.statistics.mapped -= size;
    } else {
        size_class_t *class = &allocator.classes[class_of(size)];
        free_memory_t *free = memory;
        free->next = class->free;
        class->free = free;
        allocator.kept += large ? size : 0;
    }
    pthread_mutex_unlock(&allocator.lock);
}

haft_segments_statistics_t haft_segments_statistics(void) {
    pthread_mutex_lock(&allocator.lock);
    haft_segments_statistics_t statistics = allocator.statistics;
    pthread_mutex_unlock(&allocator.lock);
    return statistics;
}

/* Segments. */

static haft_segment_t *make_segment(void *memory, size_t whole, size_t size) {
    haft_segment_t *segment = memory;
    segment->next = limit_of(&empty_segment);
    segment->top = (uintptr_t)memory + whole;
    segment->room = segment->top - sizeof(uintptr_t) - limit_of(segment);
    segment->size = size;
    segment->blocks = NULL;
    segment->canary = canary_value;
    return segment;
}

static void free_blocks(haft_segment_t *segment) {
    while (segment->blocks) {
        haft_block_t *block = segment->blocks;
        segment->blocks = block->next;
        give(block, block->size);
    }
}

static void remove_next(haft_segment_t *segment) {
    haft_segment_t *next = next_of(segment);
    segment->next = next->next;
    free_blocks(next);
    give(next, next->size);
}

static bool intact(const haft_segment_t *segment) {
    return segment->canary == canary_value;
}

static void check(const haft_segment_t *segment) {
    if (!intact(segment)) {
        fail(HAFTI_SEGMENT_OVERFLOW ".");
    }
}

bool hafti_segment_intact(uintptr_t limit) {
    return intact(segment_of(limit));
}

void hafti_segments_check(uintptr_t limit) {
    check(segment_of(limit));
}

void hafti_segments_init(hafti_segments_t *segments, void *low, void *high) {
    segments->limit = limit_of(make_segment(low, (size_t)((char *)high - (char *)low), 0));
}

void hafti_segments_trim(uintptr_t limit) {
    haft_segment_t *segment = segment_of(limit);
    check(segment);
    while (!is_empty(next_of(segment))) {
        remove_next(segment);
    }
}

void hafti_segments_release(hafti_segments_t *segments) {
    hafti_segments_trim(segments->limit);
    free_blocks(segment_of(segments->limit));
}

void hafti_segments_reset(hafti_segments_t *segments) {
    haft_segment_t *segment = segment_of(segments->limit);
    for (; !is_empty(segment); segment = next_of(segment)) {
        check(segment);
        free_blocks(segment);
    }
}

bool hafti_segments_intact(const hafti_segments_t *segments, uintptr_t limit) {
    const haft_segment_t *segment = segment_of(segments->limit);
    while (segment->canary == canary_value && segment != segment_of(limit)) {
        segment = next_of(segment);
    }
    return segment->canary == canary_value;
}

bool hafti_segments_find(const hafti_segments_t *segments, const void *address, void **low,
                         void **high) {
    const haft_segment_t *segment = segment_of(segments->limit);
    for (; !is_empty(segment); segment = next_of(segment)) {
        if ((uintptr_t)address - (uintptr_t)segment < segment->top - (uintptr_t)segment) {
            *low = (void *)(uintptr_t)segment;
            *high = (void *)segment->top;
            return true;
        }
    }
    return false;
}

size_t hafti_segments_size(const hafti_segments_t *segments) {
    size_t size = 0;
    const haft_segment_t *segment = segment_of(segments->limit);
    for (; !is_empty(segment); segment = next_of(segment)) {
        size += segment->size;
    }
    return size;
}

/* Called by morestack.S only. */
EXPORTED void hafti_segments_grow(uintptr_t limit, size_t needed);
EXPORTED _Unwind_Reason_Code hafti_segments_personality(int version, _Unwind_Action actions,
                                                        _Unwind_Exception_Class exception_class,
                                                        struct _Unwind_Exception *exception,
                                                        struct _Unwind_Context *context);

typedef struct haft_allocation {
    void *memory;
    size_t lower; /* by how much the stack pointer must be lower afterwards */
} haft_allocation_t;

EXPORTED haft_allocation_t hafti_segments_allocate(size_t size, uintptr_t stack_pointer,
                                                   uintptr_t limit);

/* Puts a segment with room for `needed` bytes after the one in use. */
void hafti_segments_grow(uintptr_t limit, size_t needed) {
    haft_segment_t *segment = segment_of(limit);
    check(segment);
    while (!is_empty(next_of(segment)) && next_of(segment)->room <= needed) {
        remove_next(segment);
    }
    if (!is_empty(next_of(segment))) {
        return;
    }
    size_t size = 2 * segment->size < LARGEST ? 2 * segment->size : LARGEST;
    size_t least = needed + HAFTI_SEGMENT_HEADER + HAFTI_SEGMENT_SLACK + 2 * sizeof(uintptr_t);
    if (least < needed) {
        fail("a frame of a segmented stack is larger than memory.");
    }
    if (size < least) {
        size = least;
    }
    void *memory = take(&size);
    segment->next = limit_of(make_segment(memory, size, size));
}

/* Gives back the blocks whose slots are gone now that the stack pointer is here. */
static void free_dead_blocks(haft_segment_t *segment, uintptr_t stack_pointer) {
    haft_block_t **link = &segment->blocks;
    while (*link) {
        haft_block_t *block = *link;
        if ((uintptr_t)block->slot < stack_pointer ||
            (block->owns_slot && *block->slot != (uintptr_t)(block + 1))) {
            *link = block->next;
            give(block, block->size);
        } else {
            link = &block->next;
        }
    }
}

haft_allocation_t hafti_segments_allocate(size_t size, uintptr_t stack_pointer, uintptr_t limit) {
    haft_segment_t *segment = segment_of(limit);
    check(segment);
    free_dead_blocks(segment, stack_pointer);
    size_t whole = size + sizeof(haft_block_t);
    if (whole < size) {
        fail("an alloca on a segmented stack is larger than memory.");
    }
    haft_block_t *block = take(&whole);
    size_t lower = stack_pointer - SLOT >= limit - SLOTS_BELOW_LIMIT ? SLOT : 0;
    block->size = whole;
    block->slot = (uintptr_t *)(stack_pointer - lower);
    block->owns_slot = lower != 0;
    block->next = segment->blocks;
    segment->blocks = block;
    return (haft_allocation_t){block + 1, lower};
}

/* Unwinding leaves a segment, or the thread's stack: the limit word becomes that of the stack on
   which the unwinding continues. The personality routine of __morestack, which keeps that in
   rbx. */
_Unwind_Reason_Code hafti_segments_personality(int version, _Unwind_Action actions,
                                               _Unwind_Exception_Class exception_class,
                                               struct _Unwind_Exception *exception,
                                               struct _Unwind_Context *context) {
    enum { RBX = 3 };
    (void)version;
    (void)exception_class;
    (void)exception;
    if (actions & _UA_CLEANUP_PHASE) {
        hafti_segments_set_limit(_Unwind_GetGR(context, RBX));
    }
    return _URC_CONTINUE_UNWIND;
}

#endif
