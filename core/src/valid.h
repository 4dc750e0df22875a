/* SPDX-License-Identifier: MIT */
/*
 * The invariants of fibers, scopes and the chain, checked where the slow paths begin and end;
 * nothing in release builds (NDEBUG) nor in freestanding ones, whose stacks are small.
 */
#ifndef HAFT_VALID_H
#define HAFT_VALID_H

#include "ground.h"

/* Each returns NULL, or the invariant that does not hold. */

/* Checks a fiber that any thread may be using: only its header. */
const char *haft_invalid_fiber(const haft_fiber_t *fiber);
/* Checks a new or suspended fiber that the caller has claimed: also the context with which it
   continues. */
const char *haft_invalid_claimed(const haft_fiber_t *fiber);
/* Checks the scopes around the running code, as many as can be looked at each time. */
const char *haft_invalid_chain(const hafti_thread_t *thread);
/* Checks an entry that one of them has cached for an effect (lookup.c). */
const char *haft_invalid_known(hafti_thread_t *thread, haft_effect_t *effect, hafti_found_t known);

HAFTI_COLD __attribute__((noreturn)) void haft_invalid(const char *invariant,
                                                       const haft_fiber_t *fiber);

#if defined(NDEBUG) || defined(HAFT_FREESTANDING)
#    define HAFT_CHECK_FIBER(fiber) ((void)0)
#    define HAFT_CHECK_CLAIMED(fiber) ((void)0)
#    define HAFT_CHECK_CHAIN(thread) ((void)0)
#    define HAFT_CHECK_KNOWN(thread, effect, known) ((void)0)
#else
#    define HAFT_CHECK_VALID(invariant, fiber)                                                     \
        do {                                                                                       \
            const char *invariant_ = (invariant);                                                  \
            if (HAFTI_UNLIKELY(invariant_ != NULL))                                                \
                haft_invalid(invariant_, fiber);                                                   \
        } while (0)
#    define HAFT_CHECK_FIBER(fiber) HAFT_CHECK_VALID(haft_invalid_fiber(fiber), fiber)
#    define HAFT_CHECK_CLAIMED(fiber) HAFT_CHECK_VALID(haft_invalid_claimed(fiber), fiber)
#    define HAFT_CHECK_CHAIN(thread) HAFT_CHECK_VALID(haft_invalid_chain(thread), NULL)
#    define HAFT_CHECK_KNOWN(thread, effect, known)                                                \
        HAFT_CHECK_VALID(haft_invalid_known(thread, effect, known), NULL)
#endif

#endif
