/* SPDX-License-Identifier: MIT */
/* A run's table of descriptors: an entry is found by its number without a lock and stays until the
   run ends. Two levels of pointers lead to blocks, each made once. */
#include "descriptors.h"

#include <stdlib.h>
#include <string.h>

typedef hafti_io_descriptor_block_t block_t;
enum {
    BLOCK_BITS = HAFTI_IO_BLOCK_BITS,
    MIDDLE_BITS = HAFTI_IO_MIDDLE_BITS,
    BLOCK = 1 << BLOCK_BITS,
    MIDDLE = 1 << MIDDLE_BITS,
    TOP = HAFTI_IO_TOP
};

hafti_io_descriptors_t *hafti_io_descriptors_new(bool shared) {
    hafti_io_descriptors_t *table = calloc(1, sizeof *table);
    if (table != NULL)
        table->shared = shared;
    return table;
}

void hafti_io_descriptors_free(hafti_io_descriptors_t *table) {
    for (int i = 0; i < TOP; i++) {
        if (table->top[i] == NULL)
            continue;
        for (int j = 0; j < MIDDLE; j++)
            free(table->top[i][j]);
        free(table->top[i]);
    }
    free(table);
}

/* Returns the entry at the place, or `made` if the place was empty; then `made` is no longer the
   caller's. */
static void *put_once(void **place, void *made) {
    void *there = NULL;
    if (made == NULL ||
        __atomic_compare_exchange_n(place, &there, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    free(made);
    return there;
}

static HAFTI_IO_COLD block_t *make_block(block_t **place) {
    block_t *block = aligned_alloc(HAFTI_IO_LINE, sizeof *block);
    if (block == NULL)
        return NULL;
    memset(block, 0, sizeof *block);
    for (int i = 0; i < BLOCK; i++) {
        hafti_io_ring(&block->entries[i].waiters[HAFTI_IO_INWARD]);
        hafti_io_ring(&block->entries[i].waiters[HAFTI_IO_OUTWARD]);
    }
    return put_once((void **)place, block);
}

/* Where the block of the entry is in the table, or the pointers to such blocks. */
static inline block_t ***top_of(hafti_io_descriptors_t *table, int descriptor) {
    return &table->top[descriptor >> (BLOCK_BITS + MIDDLE_BITS)];
}
static inline block_t **place_of(block_t **middle, int descriptor) {
    return &middle[descriptor >> BLOCK_BITS & (MIDDLE - 1)];
}

static HAFTI_IO_COLD hafti_io_descriptor_t *make_entry(hafti_io_descriptors_t *table,
                                                       int descriptor) {
    block_t ***top = top_of(table, descriptor);
    block_t **middle = __atomic_load_n(top, __ATOMIC_ACQUIRE);
    if (middle == NULL)
        middle = put_once((void **)top, calloc(MIDDLE, sizeof *middle));
    if (middle == NULL)
        return NULL;
    block_t **place = place_of(middle, descriptor);
    block_t *block = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (block == NULL)
        block = make_block(place);
    return block != NULL ? &block->entries[descriptor & (BLOCK - 1)] : NULL;
}

hafti_io_descriptor_t *hafti_io_descriptor(hafti_io_descriptors_t *table, int descriptor,
                                           bool make) {
    hafti_io_descriptor_t *entry = hafti_io_known_descriptor(table, descriptor);
    if (HAFTI_IO_LIKELY(entry != NULL) || !make || descriptor < 0 ||
        descriptor >> (BLOCK_BITS + MIDDLE_BITS) >= TOP)
        return entry;
    return make_entry(table, descriptor);
}

int hafti_io_without_entry(int descriptor) {
    return descriptor < 0 || descriptor >> (BLOCK_BITS + MIDDLE_BITS) >= TOP ? -EBADF : -ENOMEM;
}
