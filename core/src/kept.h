/* SPDX-License-Identifier: MIT */
/* Copies that the library keeps of payloads and replies. */
#ifndef HAFT_KEPT_H
#define HAFT_KEPT_H

#include "ground.h"

#ifndef HAFT_FREESTANDING

/*
 * The effect and payload that end a fiber once it is unwound. `awaits` cannot hold the effect: the
 * cleanups may perform.
 *
 *   the payload has   | fiber->thrown is | the effect is in    | the payload is in
 *   a word, or less   | &fiber->result   | fiber->of_language  | fiber->result: needs no memory
 *   more              | a block's        | the block           | the block
 *
 * (The function of the fiber will return nothing. The fiber of a language that owns its frames has
 * a block always.)
 */
typedef struct haft_thrown {
    haft_effect_t *effect;
    void *block;                 /* in which it lies */
    _Alignas(64) char payload[]; /* which may hold vectors */
} haft_thrown_t;

HAFTI_INLINE bool haft_kept_inside(const haft_fiber_t *fiber) {
    return fiber->thrown == &fiber->result;
}
/* The effect and payload of a fiber that has thrown. */
HAFTI_INLINE haft_effect_t *haft_kept_effect(const haft_fiber_t *fiber) {
    return haft_kept_inside(fiber) ? (haft_effect_t *)fiber->of_language
                                   : ((haft_thrown_t *)fiber->thrown)->effect;
}
HAFTI_INLINE void *haft_kept_payload(haft_fiber_t *fiber) {
    return haft_kept_inside(fiber) ? (void *)&fiber->result
                                   : ((haft_thrown_t *)fiber->thrown)->payload;
}

/* A copy of the payload, as something of the fiber's. */
const void *haft_keep(haft_fiber_t *fiber, haft_effect_t *effect, const void *payload, size_t size);
void haft_forget_kept(haft_fiber_t *fiber);
/* `fiber`, in memory of the caller, ends with this payload. The library's copy is moved into the
   stack if there is room, so that nothing is left to be freed. Returns where the payload lies. */
void *haft_settle_kept(haft_fiber_t *fiber, void *payload);
/* A copy of a reply that does not fit a word, to be freed once its performer has it. */
void *haft_copy_reply(const haft_effect_t *effect, const void *reply);
void haft_free_reply(void *reply);
/* Frees the copy of the reply, if any, of a fiber whose resumption is promised (`shot` is odd). */
void haft_forget_promised(haft_fiber_t *fiber);

#endif

#endif
