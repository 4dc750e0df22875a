/* SPDX-License-Identifier: MIT */
/*
 * The memory of a session of nghttp2, which allocates a dozen small blocks for each stream. Blocks
 * of a few sizes are kept for the next streams of the session; so most of them cost a handful of
 * instructions, and lie in the processor's cache. Its functions are called with the connection's
 * mutex.
 */
#include "http2_frames.h"

#include <stdalign.h>
#include <stdlib.h>

/* The header of each block. */
typedef struct block {
    alignas(max_align_t) size_t kind; /* how many STEPs it has; more than KINDS: it is malloc's */
    struct block *next;               /* that is kept, too */
} block_t;

enum { STEP = 64, KINDS = HAFTI_HTTP2_KINDS, KEPT = 16 };

static block_t *block_of(void *memory) {
    return (block_t *)memory - 1;
}

static void *allocate(size_t size, void *argument) {
    hafti_http2_memory_t *memory = argument;
    size_t kind = size / STEP + 1;
    bool is_small = kind <= KINDS;
    block_t *block = is_small ? memory->kept[kind - 1] : NULL;
    if (block != NULL) {
        memory->kept[kind - 1] = block->next;
        memory->count[kind - 1]--;
        return block + 1;
    }
    size_t room = is_small ? kind * STEP : size;
    if (room > SIZE_MAX - sizeof *block || (block = malloc(sizeof *block + room)) == NULL)
        return NULL;
    block->kind = kind;
    return block + 1;
}

static void release(void *given, void *argument) {
    hafti_http2_memory_t *memory = argument;
    if (given == NULL)
        return;
    block_t *block = block_of(given);
    size_t kind = block->kind;
    if (kind > KINDS || memory->count[kind - 1] == KEPT) {
        free(block);
        return;
    }
    block->next = memory->kept[kind - 1];
    memory->kept[kind - 1] = block;
    memory->count[kind - 1]++;
}

static void *allocate_zeroed(size_t count, size_t size, void *argument) {
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    void *made = allocate(count * size, argument);
    return made != NULL ? memset(made, 0, count * size) : NULL;
}

static void *reallocate(void *given, size_t size, void *argument) {
    if (given == NULL)
        return allocate(size, argument);
    block_t *block = block_of(given);
    size_t room = block->kind * STEP;
    if (block->kind > KINDS) {
        block = size <= SIZE_MAX - sizeof *block ? realloc(block, sizeof *block + size) : NULL;
        return block != NULL ? block + 1 : NULL;
    }
    if (size <= room)
        return given;
    void *made = allocate(size, argument);
    if (made != NULL) {
        memcpy(made, given, room);
        release(given, argument);
    }
    return made;
}

nghttp2_mem hafti_http2_memory(hafti_http2_memory_t *memory) {
    return (nghttp2_mem){memory, allocate, release, allocate_zeroed, reallocate};
}

void hafti_http2_memory_end(hafti_http2_memory_t *memory) {
    for (size_t kind = 0; kind < KINDS; kind++)
        while (memory->kept[kind] != NULL) {
            block_t *block = memory->kept[kind];
            memory->kept[kind] = block->next;
            free(block);
        }
}
