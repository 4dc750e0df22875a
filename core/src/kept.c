/* SPDX-License-Identifier: MIT */
/* Copies that outlive the frames they came from: of a payload that a fiber ends with once it is
   unwound, and of a reply that does not fit a word. */
#include "kept.h"

#include <stdlib.h>
#include <string.h>

/* If cleanups throw in their turn, the earlier throw is forgotten once the new payload has been
   copied. */

static const void *keep_inside(haft_fiber_t *fiber, haft_effect_t *effect, const void *payload,
                               size_t size) {
    fiber->of_language = (uintptr_t)effect;
    if (size != 0)
        memcpy(&fiber->result, payload, size);
    haft_forget_kept(fiber);
    fiber->thrown = &fiber->result;
    return &fiber->result;
}

const void *haft_keep(haft_fiber_t *fiber, haft_effect_t *effect, const void *payload,
                      size_t size) {
    if (HAFTI_LIKELY(size <= sizeof fiber->result && fiber->language == NULL))
        return keep_inside(fiber, effect, payload, size);
    /* Not by aligned_alloc, which takes several times as long. */
    enum { ALIGNMENT = _Alignof(haft_thrown_t) };
    void *block = malloc(sizeof(haft_thrown_t) + size + ALIGNMENT - 1);
    if (block == NULL)
        haft_fail(HAFT_ERROR_NO_MEMORY, effect, fiber,
                  "No memory for the payload of the effect '%s', which was thrown.", effect->name);
    haft_thrown_t *thrown =
        (haft_thrown_t *)(((uintptr_t)block + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1));
    thrown->block = block;
    thrown->effect = effect;
    if (size != 0)
        memcpy(thrown->payload, payload, size);
    haft_forget_kept(fiber);
    fiber->thrown = thrown;
    return thrown->payload;
}

void haft_forget_kept(haft_fiber_t *fiber) {
    const haft_thrown_t *thrown = fiber->thrown;
    if (thrown != NULL && !haft_kept_inside(fiber))
        free(thrown->block);
    fiber->thrown = NULL;
}

void *haft_settle_kept(haft_fiber_t *fiber, void *payload) {
    haft_thrown_t *thrown = fiber->thrown;
    if (thrown == NULL)
        return payload;
    if (!haft_kept_inside(fiber) && payload == thrown->payload) {
        size_t size = thrown->effect->payload_size;
        char *place = (char *)(((uintptr_t)fiber->low + _Alignof(haft_thrown_t) - 1) &
                               ~(uintptr_t)(_Alignof(haft_thrown_t) - 1));
        if (place > (char *)fiber->context.sp || size > (size_t)((char *)fiber->context.sp - place))
            return payload;
        payload = memcpy(place, payload, size);
    }
    haft_forget_kept(fiber);
    return payload;
}

void *haft_copy_reply(const haft_effect_t *effect, const void *reply) {
    void *copy = malloc(effect->result_size);
    if (copy == NULL)
        haft_fail(HAFT_ERROR_NO_MEMORY, effect, NULL, "No memory for a reply to the effect '%s'.",
                  effect->name);
    return memcpy(copy, reply, effect->result_size);
}

void haft_free_reply(void *reply) {
    free(reply);
}

void haft_forget_promised(haft_fiber_t *fiber) {
    if (hafti_awaited(fiber)->result_size > sizeof(void *))
        free(fiber->resumer.base);
}
