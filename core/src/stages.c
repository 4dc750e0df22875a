/* SPDX-License-Identifier: MIT */
/*
 * Stages: what a fiber has besides its header while there are copies of a computation that ran on
 * it (copies.c). The stack of a stage does not go back to the pool when what runs on it has ended:
 * the frames of the next copy need these addresses.
 *
 *   the fiber is         | its kind          | and when it is dropped
 *   ordinary             | HAFT_KIND_POOL... | its stack goes to the pool
 *   a stage, in use      | HAFT_KIND_COPIED  | it is a stage that is free
 *   a stage, free        | HAFT_KIND_COPIED  | (its state is HAFT_FIBER_DROPPED)
 *
 * Invariants
 * - A fiber has a stage exactly while `pins` images have the fiber as a part.
 * - The resumptions in `named` refer to images that pin the fiber, so the table is empty when the
 *   stage ends.
 */
#include "stages.h"
#include "pool.h"
#include "tools.h"

#include <stdlib.h>
#include <string.h>

/* ---- Memory of images ---- */

static void free_spares(haft_stage_t *stage) {
    if (stage->spares == NULL)
        return;
    for (size_t i = 0; i < HAFT_SPARE_SIZES; i++)
        free(stage->spares->memory[i]);
    free(stage->spares);
}

/* The index is the same for sizes for which malloc takes the same memory. */
static size_t spare_of(size_t size) {
    return (size - HAFT_SPARE_LEAST) / HAFT_SPARE_STEP;
}

void *haft_stage_allocate(const haft_fiber_t *fiber, size_t size) {
    if (HAFTI_LIKELY(size < HAFT_SPARE_LEAST) || spare_of(size) >= HAFT_SPARE_SIZES)
        return malloc(size);
    size_t index = spare_of(size);
    haft_spares_t *spares = fiber->kind == HAFT_KIND_COPIED ? fiber->stage->spares : NULL;
    void *memory = spares != NULL ? spares->memory[index] : NULL;
    if (memory == NULL)
        return malloc(HAFT_SPARE_LEAST + (index + 1) * HAFT_SPARE_STEP - 1);
    spares->memory[index] = NULL;
    return memory;
}

bool haft_stage_take_back(haft_stage_t *stage, void *memory, size_t size) {
    if (HAFTI_LIKELY(size < HAFT_SPARE_LEAST) || spare_of(size) >= HAFT_SPARE_SIZES ||
        haft_tools_active)
        return false;
    if (stage->spares == NULL && (stage->spares = calloc(1, sizeof *stage->spares)) == NULL)
        return false;
    void **spare = &stage->spares->memory[spare_of(size)];
    if (*spare != NULL)
        return false;
    *spare = memory;
    return true;
}

/* ---- Pins ---- */

bool haft_stage_pin(haft_fiber_t *fiber) {
    if (fiber->kind == HAFT_KIND_COPIED) {
        fiber->stage->pins++;
        return true;
    }
    haft_stage_t *stage = calloc(1, sizeof *stage);
    if (stage == NULL)
        return false;
    stage->pins = 1;
    stage->named = stage->inside;
    stage->room = HAFT_NAMED_INSIDE;
    stage->kind = fiber->kind;
    fiber->stage = stage;
    fiber->kind = HAFT_KIND_COPIED;
    return true;
}

void haft_stage_unpin(haft_fiber_t *fiber) {
    haft_stage_t *stage = fiber->stage;
    if (--stage->pins != 0)
        return;
    bool free_stack = haft_stage_is_free(fiber);
    fiber->kind = stage->kind;
    fiber->stage = NULL;
    if (stage->named != stage->inside)
        free(stage->named);
    free_spares(stage);
    free(stage);
    if (free_stack) {
        fiber->state = HAFT_FIBER_DROPPED;
        haft_pool_give(hafti_thread(), fiber);
    }
}

void haft_stage_left(haft_fiber_t *fiber) {
    (void)fiber; /* its state shows that it is free */
}

void haft_stage_abandoned(haft_fiber_t *fiber) {
    fiber->stage->abandoned = true;
}

/* ---- Resumptions that name an image ---- */

static uint32_t place_of(const haft_stage_t *stage, uint64_t shot) {
    return (uint32_t)(shot * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (stage->room - 1);
}

/* The entry of `shot`, or the empty one where it would be. */
static haft_named_t *entry_of(const haft_stage_t *stage, uint64_t shot) {
    uint32_t at = place_of(stage, shot);
    while (stage->named[at].image != NULL && stage->named[at].shot != shot)
        at = (at + 1) & (stage->room - 1);
    return &stage->named[at];
}

struct haft_image *haft_stage_find_in_table(const haft_stage_t *stage, uint64_t shot) {
    return entry_of(stage, shot)->image;
}

bool haft_stage_make_room_in_table(haft_stage_t *stage) {
    if (HAFTI_LIKELY(stage->count + 1 <= stage->room - stage->room / 8 - 1))
        return true;
    haft_stage_t larger = *stage;
    larger.room *= 2;
    larger.named = calloc(larger.room, sizeof *larger.named);
    if (larger.named == NULL)
        return false;
    for (uint32_t i = 0; i < stage->room; i++)
        if (stage->named[i].image != NULL)
            *entry_of(&larger, stage->named[i].shot) = stage->named[i];
    if (stage->named != stage->inside)
        free(stage->named);
    stage->named = larger.named;
    stage->room = larger.room;
    return true;
}

void haft_stage_name(haft_stage_t *stage, uint64_t shot, struct haft_image *image) {
    if (stage->last.image != NULL) {
        *entry_of(stage, stage->last.shot) = stage->last;
        stage->count++;
    }
    stage->last = (haft_named_t){shot, image};
}

/* Moves back what would no longer be found past the empty entry. */
static void forget_in_table(haft_stage_t *stage, uint64_t shot) {
    uint32_t mask = stage->room - 1;
    uint32_t hole = (uint32_t)(entry_of(stage, shot) - stage->named);
    for (uint32_t at = (hole + 1) & mask; stage->named[at].image != NULL; at = (at + 1) & mask) {
        uint32_t home = place_of(stage, stage->named[at].shot);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            stage->named[hole] = stage->named[at];
            hole = at;
        }
    }
    stage->named[hole].image = NULL;
    stage->count--;
}

void haft_stage_forget(haft_stage_t *stage, uint64_t shot) {
    if (HAFTI_LIKELY(stage->last.shot == shot && stage->last.image != NULL))
        stage->last.image = NULL;
    else
        forget_in_table(stage, shot);
}
