/* SPDX-License-Identifier: MIT */
/* The floor of copies: suspended computations as images, beside their stacks. */
#ifndef HAFT_COPIES_H
#define HAFT_COPIES_H

#include "fiber.h"

typedef struct haft_image haft_image_t;

#ifdef HAFT_FREESTANDING

HAFTI_INLINE bool haft_stage_is_pooled(const haft_fiber_t *fiber) {
    (void)fiber;
    return false;
}
HAFTI_INLINE haft_image_t *haft_image_of(haft_resumption_t k) {
    (void)k;
    return NULL;
}
HAFTI_INLINE uintptr_t haft_image_awaits(const haft_image_t *image) {
    (void)image;
    return 0;
}
HAFTI_INLINE haft_resumption_t haft_image_stand(haft_resumption_t k, haft_image_t *image,
                                                const char *what, haft_judge_t *judge) {
    (void)image, (void)what, (void)judge;
    return k;
}
HAFTI_INLINE bool haft_image_forget(haft_resumption_t k, haft_image_t *image) {
    (void)k, (void)image;
    return false;
}

#else

/* The image that a resumption names. NULL: none; what it names is on the fiber, or it has been
   used. */
HAFTI_INLINE haft_image_t *haft_image_of(haft_resumption_t k) {
    return k.fiber != NULL && k.fiber->kind == HAFT_KIND_COPIED && k.fiber->scope.shot != k.shot
               ? haft_stage_find(k.fiber->stage, k.shot)
               : NULL;
}
/* The word of what the computation waits for. */
uintptr_t haft_image_awaits(const haft_image_t *image);

/* In these, `image` is that of `k`, or NULL. */
/* Another resumption of what `k` names, which has not been used. `all`: cleanups are looked for
   also on fibers that have promised to have none. */
haft_resumption_t haft_image_copy(haft_resumption_t k, haft_image_t *image, haft_judge_t *judge,
                                  bool all);

/* Puts the computation that `k` names by its image on its fibers, after what is there has been set
   aside.
   Returns the resumption that names it there, in place of `k`. An error (`what` is to be done with
   it) leaves all as it was. */
haft_resumption_t haft_image_stand(haft_resumption_t k, haft_image_t *image, const char *what,
                                   haft_judge_t *judge);

/* Gives up what `k` names if that has nothing to run; otherwise false. */
bool haft_image_forget(haft_resumption_t k, haft_image_t *image);

#endif

#endif
