/* SPDX-License-Identifier: MIT */
/* The floor of resuming: claiming fibers, resuming and suspending them, replies. */
#ifndef HAFT_RESUMING_H
#define HAFT_RESUMING_H

#include "unwinding.h"

/* suspend.c, untyped.c */
/* Reports an effect whose default was found, and has been removed since. */
HAFTI_INLINE void haft_check_default(const haft_clause_t *clause, haft_effect_t *effect) {
    if (clause == &effect->default_clause)
        hafti_unhandled(effect);
}

/* resume.c */
haft_request_t haft_enter(haft_fiber_t *fiber, void *word, enum hafti_wake wake,
                          const haft_handles_t *handles);

/* Unwinds a suspended fiber that was claimed just now; `owner` is what haft_claim returned. */
haft_request_t haft_unwind_claimed(haft_fiber_t *fiber, uint64_t owner);

/* claim.c */
/* Makes `fiber` this thread's to use, or reports the error. Returns its owner before. */
uint64_t haft_claim(hafti_thread_t *thread, haft_fiber_t *fiber, haft_error_code_t code,
                    const char *what);

/* replies.c */
/* The argument of haft_discontinue, for haft_raise. */
typedef struct haft_raising {
    haft_raise_t *raise;
    void *argument;
    const haft_fiber_t *fiber;
} haft_raising_t;
void *haft_raise(void *raising);
/* An error if the fiber, which waits or has waited for `awaits`, is not to get this reply. */
void haft_check_reply(const haft_fiber_t *fiber, uintptr_t awaits, haft_reply_t reply);

#endif
