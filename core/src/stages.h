/* SPDX-License-Identifier: MIT */
/* Stages: the fibers on which copies of computations run, one at a time. copies.c draws them. */
#ifndef HAFT_STAGES_H
#define HAFT_STAGES_H

#include "ground.h"

#ifndef HAFT_FREESTANDING

struct haft_image;

/* A resumption that names an image: {the fiber, `shot`}. */
typedef struct haft_named {
    uint64_t shot;
    struct haft_image *image; /* NULL: the entry is empty */
} haft_named_t;

enum { HAFT_NAMED_INSIDE = 4 };

/*
 * Memory of images that were released, one of each size: a search makes images of the same sizes
 * again and again, and those of more than a kibibyte are not among what malloc has at hand.
 */
enum { HAFT_SPARE_LEAST = 1033, HAFT_SPARE_SIZES = 256, HAFT_SPARE_STEP = 16 };
typedef struct haft_spares {
    void *memory[HAFT_SPARE_SIZES];
} haft_spares_t;

/* State of a fiber, besides its header, while images pin it. */
typedef struct haft_stage {
    size_t pins; /* the images that the fiber is a part of; never 0 */
    /* The image of what is suspended on the fiber, if that has been copied: as long as the fiber's
       shot is `standing_shot`. */
    struct haft_image *standing;
    uint64_t standing_shot;
    /* The resumptions of the fiber that name an image: the last one that was made, which is the
       most likely to be used next, and an open hash table of the others. */
    haft_named_t last;
    haft_named_t *named;
    uint32_t room, count;  /* a power of two; how many there are */
    uint64_t owner;        /* the fiber's when its last image was made */
    uint32_t epoch;        /* how many such owners there were */
    uint8_t kind;          /* of the fiber's stack */
    bool abandoned;        /* the frames were given up, and nobody will drop the fiber */
    haft_spares_t *spares; /* NULL: none yet */
    haft_named_t inside[HAFT_NAMED_INSIDE];
} haft_stage_t;

/* Memory for an image of so many bytes of what is on the fiber. NULL: there is none. */
void *haft_stage_allocate(const haft_fiber_t *fiber, size_t size);
/* Takes such memory back. It can be read until the fiber is unpinned. False: it is to be freed. */
bool haft_stage_take_back(haft_stage_t *stage, void *memory, size_t size);

/* False: no memory. */
bool haft_stage_pin(haft_fiber_t *fiber);
/* The last one makes the fiber an ordinary one again, or gives its stack to the pool. */
void haft_stage_unpin(haft_fiber_t *fiber);
/* For the table of kinds: nothing stands on the fiber any more. */
void haft_stage_left(haft_fiber_t *fiber);
void haft_stage_abandoned(haft_fiber_t *fiber);

/* Whether nothing is on the stage that anyone could still use. A fiber that was given up is its
   program's to drop, unless a handler has made it. */
HAFTI_INLINE bool haft_stage_is_free(const haft_fiber_t *fiber) {
    return fiber->state == HAFT_FIBER_DROPPED ||
           (fiber->state == HAFT_FIBER_FINISHED && fiber->stage->abandoned &&
            fiber->handler != NULL);
}

/* Whether the fiber is a stage whose stack has a guard. */
HAFTI_INLINE bool haft_stage_is_pooled(const haft_fiber_t *fiber) {
    return fiber->kind == HAFT_KIND_COPIED && fiber->stage->kind == HAFT_KIND_POOL;
}

struct haft_image *haft_stage_find_in_table(const haft_stage_t *stage, uint64_t shot);
HAFTI_INLINE struct haft_image *haft_stage_find(const haft_stage_t *stage, uint64_t shot) {
    if (HAFTI_LIKELY(stage->last.shot == shot && stage->last.image != NULL))
        return stage->last.image;
    return haft_stage_find_in_table(stage, shot);
}
bool haft_stage_make_room_in_table(haft_stage_t *stage);
/* False: no memory. Only the last one goes into the table, when another follows. */
HAFTI_INLINE bool haft_stage_make_room(haft_stage_t *stage) {
    return HAFTI_LIKELY(stage->last.image == NULL) || haft_stage_make_room_in_table(stage);
}
/* There is room. */
void haft_stage_name(haft_stage_t *stage, uint64_t shot, struct haft_image *image);
void haft_stage_forget(haft_stage_t *stage, uint64_t shot);

#endif

#endif
