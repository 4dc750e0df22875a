/* SPDX-License-Identifier: MIT */
/*
 * Records of tasks and of runners. Their memory stays theirs until the run ends, in blocks of the
 * worker which are the larger the more there are:
 *
 *   block:  | the next block | record | record | ... |
 *
 * Very many records, used in whatever order, would lie on more pages than the processor remembers:
 * so further blocks are huge pages, where the system has them.
 */
#include "workers.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { SMALLEST = 8 << 10, HUGE = 2 << 20, MANY = 4 * HUGE };

struct hafti_io_block {
    __attribute__((aligned(HAFTI_IO_LINE))) hafti_io_block_t *next;
    size_t size;                    /* for debuggers, as what follows */
    const hafti_io_records_t *kind; /* of which its records are */
};

static HAFTI_IO_COLD bool add_block(hafti_io_worker_t *worker, hafti_io_records_t *records) {
    size_t size = SMALLEST;
    while (size < HUGE && 2 * size <= records->all)
        size *= 2;
    hafti_io_block_t *block = aligned_alloc(size == HUGE ? HUGE : HAFTI_IO_LINE, size);
    if (block == NULL)
        block = aligned_alloc(HAFTI_IO_LINE, size = SMALLEST);
    if (block == NULL)
        return false;
    if (records->all >= MANY && size == HUGE)
        madvise(block, size, MADV_HUGEPAGE);
    block->next = worker->blocks;
    block->size = size;
    block->kind = records;
    worker->blocks = block;
    records->fresh = (char *)(block + 1);
    records->left = size - sizeof *block;
    records->all += size;
    return true;
}

void *hafti_io_new_record(hafti_io_worker_t *worker, hafti_io_records_t *records, size_t size) {
    if (HAFTI_IO_UNLIKELY(records->left < size) && !add_block(worker, records))
        return NULL;
    void *record = records->fresh;
    records->fresh += size;
    records->left -= size;
    return record;
}

void hafti_io_free_records(hafti_io_worker_t *worker) {
    while (worker->blocks != NULL) {
        hafti_io_block_t *block = worker->blocks;
        worker->blocks = block->next;
        free(block);
    }
}

const haft_shown_t hafti_io_shown_records[] = {
    HAFT_SHOWN_SIZE("block", hafti_io_block_t), HAFT_SHOWN_FIELD("block", hafti_io_block_t, next),
    HAFT_SHOWN_FIELD("block", hafti_io_block_t, size),
    HAFT_SHOWN_FIELD("block", hafti_io_block_t, kind), HAFT_SHOWN_END};
