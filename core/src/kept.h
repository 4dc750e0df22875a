/* SPDX-License-Identifier: MIT */
/* Copies that the library keeps of payloads and replies. */
#ifndef HAFT_KEPT_H
#define HAFT_KEPT_H

#include "ground.h"

/* What a fiber ends with once it is unwound. Not in `awaits`: the cleanups may perform. */
typedef struct haft_thrown {
    haft_effect_t *effect;
    void *block;                 /* in which it lies */
    _Alignas(64) char payload[]; /* which may hold vectors */
} haft_thrown_t;

#ifndef HAFT_FREESTANDING

/* A copy of the payload, as something of the fiber's. */
const void *haft_keep(haft_fiber_t *fiber, haft_effect_t *effect, const void *payload, size_t size);
void haft_forget_kept(haft_fiber_t *fiber);
/* `fiber`, in memory of the caller, ends with this payload. A copy of the library's is moved into
   the stack, where there is room, so that nothing is left to be freed. Returns where it lies. */
void *haft_settle_kept(haft_fiber_t *fiber, void *payload);
/* A copy of a reply that does not fit a word, to be freed once its performer has it. */
void *haft_copy_reply(const haft_effect_t *effect, const void *reply);
void haft_free_reply(void *reply);
/* Of a fiber whose resumption is promised (`shot` is odd): the copy of the reply, if there is one. */
void haft_forget_promised(haft_fiber_t *fiber);

#endif

#endif
