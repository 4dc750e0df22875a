/* SPDX-License-Identifier: MIT */
/* Slots, the memory that stacks of a pool lie in: what slots.c does for pool.c. */
#ifndef HAFT_SLOTS_H
#define HAFT_SLOTS_H

#include "stacks.h"

struct haft_chunk;

/* All slots of a pool. Filled in by the pool: everything above `chunks`. */
typedef struct haft_slots {
    struct haft_pool *pool;
    size_t size;               /* of a stack */
    size_t stride;             /* from slot to slot */
    size_t below;              /* bytes of the slot below the stack */
    size_t guard;              /* of these, the last, which must be out of reach; 0: none */
    uint8_t kind;              /* haft_fiber_kind of its fibers */
    struct haft_chunk *chunks; /* newest first; written under the lock, read by anybody */
    size_t spare;              /* free slots that were in use before */
    size_t dirty;              /* of these: with memory to give back */
} haft_slots_t;

/* The system's pages, in bytes. */
size_t haft_page(void);

/* With the pool's lock held: */

/* A fiber in a free slot. NULL with errno: out of addresses, or no guard can be had. */
haft_fiber_t *haft_slots_take(haft_slots_t *slots);
/* Nothing uses the fiber's slot any more. */
void haft_slots_leave(haft_slots_t *slots, const haft_fiber_t *fiber);
/* Gives back the memory of `most` free slots or fewer, that lie side by side. Returns how many
   bytes that were, if it is to count them, which is slow. */
size_t haft_slots_give_back(haft_slots_t *slots, size_t most, bool count);

/* Without: */

/* Gives back what a free stack has more than `keep` bytes from its high end. False: nothing. */
bool haft_slots_give_back_depth(haft_fiber_t *fiber, size_t keep);
/* Visits every slot that was ever in use. `fiber` is NULL if it is free: it may have no memory
   then. Safe in signal handlers. */
typedef void haft_slot_visit_t(haft_fiber_t *fiber, const struct haft_chunk *chunk, size_t index,
                               void *argument);
void haft_slots_each(const haft_slots_t *slots, haft_slot_visit_t *visit, void *argument);
/* Bytes of memory in a slot. Safe in signal handlers. */
size_t haft_slot_resident(const struct haft_chunk *chunk, size_t index);
/* The number of chunks and their bytes. */
size_t haft_slots_chunks(const haft_slots_t *slots, size_t *bytes);

/* The lock of the table, across fork. */
void haft_slots_before_fork(void);
void haft_slots_after_fork(void);

#endif
