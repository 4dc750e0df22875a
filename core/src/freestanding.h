/* SPDX-License-Identifier: MIT */
/*
 * Stand-ins for the pool, unwinding and tools in a freestanding build, which has none of them: the
 * files that it shares with the hosted build can call these. Included by ground.h.
 *
 * Invariant: nothing here or in freestanding.c needs more than memcpy and memset.
 */
#ifndef HAFT_FREESTANDING_H
#define HAFT_FREESTANDING_H

enum { HAFT_KNOWN = 32 };

/* ---- No pool ---- */

HAFTI_INLINE size_t haft_stack_size(void) {
    return 0;
}
#define haft_default_size ((size_t)0)
HAFTI_INLINE haft_fiber_t *haft_pool_take_kept(hafti_thread_t *thread, size_t size) {
    (void)thread, (void)size;
    return NULL;
}
HAFTI_INLINE haft_fiber_t *haft_pool_take(hafti_thread_t *thread, size_t size) {
    (void)thread, (void)size;
    return NULL;
}
HAFTI_INLINE haft_fiber_t *haft_pool_take_dense(hafti_thread_t *thread, size_t size) {
    (void)thread, (void)size;
    return NULL;
}
HAFTI_INLINE haft_fiber_t *haft_pool_exhausted(size_t size) {
    (void)size;
    haft_report(HAFT_ERROR_NO_MEMORY, NULL, NULL,
                "No memory for a fiber: in a freestanding program it has to be given, by "
                "haft_fiber_new_with with `memory` or haft_handle_with.");
    return NULL;
}
HAFTI_INLINE void haft_pool_give(hafti_thread_t *thread, const haft_fiber_t *fiber) {
    (void)thread, (void)fiber;
}

/* ---- No unwinding: stacks are left as they are, and a thrown payload stays where it is ---- */

enum { HAFT_UNWINDS = 0 };

HAFTI_INLINE const void *haft_keep(const haft_fiber_t *fiber, const haft_effect_t *effect,
                                   const void *payload, size_t size) {
    (void)fiber, (void)effect, (void)size;
    return payload;
}
HAFTI_INLINE void *haft_copy_reply(const haft_effect_t *effect, const void *reply) {
    (void)reply;
    haft_fail(HAFT_ERROR_NO_MEMORY, effect, NULL,
              "A freestanding program has no memory to keep the reply to the effect '%s' in: use "
              "haft_resumption_resume.",
              effect->name);
}
HAFTI_INLINE void haft_free_reply(void *reply) {
    (void)reply;
}
HAFTI_INLINE void haft_forget_promised(haft_fiber_t *fiber) {
    (void)fiber;
}
HAFTI_INLINE void haft_forget_kept(const haft_fiber_t *fiber) {
    (void)fiber;
}
HAFTI_INLINE void *haft_settle_kept(const haft_fiber_t *fiber, void *payload) {
    (void)fiber;
    return payload;
}

/* ---- No segmented stacks ---- */

#define HAFT_SEGMENTED_SIZE ((size_t)0)
typedef struct haft_footing {
    haft_fiber_t *fiber;
} haft_footing_t;
HAFTI_INLINE void haft_leave_segments(const hafti_thread_t *thread, haft_footing_t *footing) {
    (void)thread;
    footing->fiber = NULL;
}
HAFTI_INLINE void haft_return_to_segments(const haft_footing_t *footing) {
    (void)footing;
}
HAFTI_INLINE void haft_end_segments(const hafti_thread_t *thread) {
    (void)thread;
}
HAFTI_INLINE void haft_abandon_foreign_call(const hafti_thread_t *thread,
                                            const haft_fiber_t *fiber) {
    (void)thread, (void)fiber;
}
#define haft_foreign_calls_seen false
HAFTI_INLINE void haft_check_foreign_calls(const haft_fiber_t *target,
                                           const haft_effect_t *effect) {
    (void)target, (void)effect;
}
HAFTI_INLINE bool haft_resumes_from_foreign_call(const haft_fiber_t *fiber) {
    (void)fiber;
    return false;
}

/* ---- No alternate stacks for signals ---- */

typedef struct haft_on_signal_stack {
    bool here, there;
} haft_on_signal_stack_t;
HAFTI_INLINE haft_on_signal_stack_t haft_on_signal_stack(const void *here, const void *there) {
    (void)here, (void)there;
    return (haft_on_signal_stack_t){false, false};
}
HAFTI_INLINE void haft_check_suspends(const hafti_thread_t *thread, const haft_effect_t *effect) {
    (void)thread, (void)effect;
}
HAFTI_INLINE void haft_check_uses(const hafti_thread_t *thread, const haft_fiber_t *fiber,
                                  const char *what) {
    (void)thread, (void)fiber, (void)what;
}

/* ---- No observers ---- */

HAFTI_INLINE haft_observer_t *haft_observer(void) {
    return NULL;
}
HAFTI_INLINE bool haft_are_switches_told(void) {
    return true;
}
HAFTI_INLINE bool haft_is_observed(const hafti_thread_t *thread) {
    (void)thread;
    return false;
}
HAFTI_INLINE void haft_tell_of_fiber(haft_observed_kind_t kind, const haft_fiber_t *fiber,
                                     const haft_effect_t *effect) {
    (void)kind, (void)fiber, (void)effect;
}
HAFTI_INLINE void haft_tell_of_clause(const haft_effect_t *effect, const hafti_scope_t *scope) {
    (void)effect, (void)scope;
}

/* ---- No tools ---- */

#define haft_tools_active false
#define haft_resume_slowly false
HAFTI_INLINE bool haft_tools_know_stacks(void) {
    return false;
}
HAFTI_INLINE void haft_tools_before(const haft_fiber_t *fiber, enum haft_crossing crossing) {
    (void)fiber, (void)crossing;
}
HAFTI_INLINE void haft_tools_after(const haft_fiber_t *fiber, enum haft_crossing crossing) {
    (void)fiber, (void)crossing;
}
HAFTI_INLINE bool haft_tools_born(const haft_fiber_t *fiber) {
    (void)fiber;
    return true;
}
HAFTI_INLINE haft_fiber_t *haft_tools_exhausted(void) {
    return NULL;
}
HAFTI_INLINE void haft_tools_gone(const haft_fiber_t *fiber) {
    (void)fiber;
}
HAFTI_INLINE void haft_tools_reserved(const void *low, size_t size) {
    (void)low, (void)size;
}
HAFTI_INLINE void haft_tools_ended(const haft_fiber_t *fiber) {
    (void)fiber;
}
HAFTI_INLINE void haft_tools_reset(const haft_fiber_t *fiber) {
    (void)fiber;
}
HAFTI_INLINE void haft_tools_abandon(const haft_fiber_t *fiber) {
    (void)fiber;
}

#endif
