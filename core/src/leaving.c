/* SPDX-License-Identifier: MIT */
/*
 * Leaving fibers for good: throwing out of them, and giving up what is suspended in them. Where a
 * fiber on the way has asked for its cleanups, the stacks are unwound (unwind.c); otherwise they
 * are left as they are.
 */
#include "unwinding.h"

/* Whether a fiber from here out to `target` has asked for its cleanups. */
static bool cleanups_up_to(const haft_fiber_t *fiber, const haft_fiber_t *target) {
    while (fiber != NULL && !fiber->cleanups && fiber != target)
        fiber = haft_resumer_of(fiber);
    return fiber == NULL || fiber->cleanups;
}

static void abandon_up_to(haft_fiber_t *fiber, const haft_fiber_t *target) {
    for (haft_fiber_t *outer; fiber != target; fiber = outer) {
        outer = haft_resumer_of(fiber);
        bool in_its_frames = (char *)fiber >= outer->low && (char *)fiber < outer->high;
        fiber->state = in_its_frames ? HAFT_FIBER_DROPPED : HAFT_FIBER_FINISHED;
        fiber->excepted = 0;
        haft_abandon_foreign_call(hafti_thread(), fiber);
        haft_tools_abandon(fiber);
        haft_fibers_lost(fiber);
        haft_kind_of(fiber)->given_up(fiber);
    }
    haft_fibers_lost(target);
}

haft_fiber_t *haft_innermost(haft_fiber_t *fiber) {
    const char *stopped = fiber->context.sp;
    if (fiber->within != NULL)
        return fiber->within;
    return stopped >= fiber->low && stopped < fiber->high ? fiber : haft_fiber_at(stopped);
}

bool haft_needs_unwinding(haft_fiber_t *fiber) {
    return cleanups_up_to(haft_innermost(fiber), fiber);
}

void haft_abandon_inside(haft_fiber_t *fiber) {
    if (HAFTI_UNLIKELY(haft_process_language != NULL))
        haft_process_language->left(fiber->top, fiber);
    abandon_up_to(haft_innermost(fiber), fiber);
}

void haft_check_thrown(const char *function, const haft_fiber_t *fiber, const haft_effect_t *effect,
                       const void *payload, size_t size) {
    haft_check_given(effect, function, "effect");
    if (size != effect->payload_size)
        haft_fail(HAFT_ERROR_WRONG_TYPE, effect, fiber,
                  "The effect '%s' (%s) has a payload of %zu bytes; it was thrown with %zu.",
                  effect->name, effect->where, effect->payload_size, size);
    if (size != 0)
        haft_check_given(payload, function, "payload");
}

/* Whether the code runs on this very fiber, directly under its resumer, with nothing to clean up
   and nobody to tell. */
HAFTI_INLINE bool is_left_simply(const hafti_thread_t *thread, const haft_fiber_t *fiber) {
    return fiber != NULL && thread->current == &fiber->scope && !fiber->cleanups &&
           fiber->kind == HAFT_KIND_POOL && fiber->language == NULL && fiber->handler == NULL &&
           thread->language == NULL && !hafti_exceptions_in(thread->exceptions) &&
           !haft_tools_active && haft_is_here(thread, fiber);
}

static __attribute__((noinline, noreturn)) void leave_slowly(haft_fiber_t *fiber,
                                                             haft_effect_t *effect,
                                                             const void *payload, size_t size,
                                                             const haft_frame_t *frame) {
    hafti_thread_t *thread = hafti_thread();
    hafti_scope_t *scope = thread->current;
    haft_check_here(thread);
    while (scope != NULL && (fiber == NULL || scope != &fiber->scope))
        scope = scope->outer;
    if (scope == NULL)
        haft_fail(HAFT_ERROR_NOT_AROUND, effect, fiber,
                  "The effect '%s' cannot end %s: that fiber is not around the current code.",
                  effect->name, haft_fiber_label(fiber));
    haft_check_own(fiber, "ended");
    const haft_clause_t *clause = haft_clause_taking(fiber, effect);
    if (clause != NULL && clause->kind == HAFT_CLAUSE_GENERAL)
        haft_fail(HAFT_ERROR_CAME_BACK, effect, fiber,
                  "The effect '%s' (%s) was thrown, but its clause in '%s' resumes. Perform it, or "
                  "handle it with HAFT_NEVER.",
                  effect->name, effect->where, ((const haft_handler_t *)fiber->handler)->name);
    haft_fiber_t *here = haft_is_here(thread, fiber) ? fiber : haft_fiber_here();
    bool abandoned = !cleanups_up_to(here, fiber);
    /* The payload stays in place on a stack on which nothing will run. Under a sanitizer it may lie
       on a fake stack, which ends here. */
    if (!abandoned || here != fiber || haft_tools_active)
        payload = haft_keep(fiber, effect, payload, size);
    fiber->awaits = haft_awaiting(effect);
    haft_use_up(fiber);
    if (!abandoned)
        haft_unwind(fiber, *frame);
    abandon_up_to(here, fiber);
    haft_leave(fiber, effect, (void *)(uintptr_t)payload);
}

HAFTI_INLINE __attribute__((noreturn)) void leave(haft_fiber_t *fiber, haft_effect_t *effect,
                                                  const void *payload, size_t size) {
    if (HAFTI_LIKELY(is_left_simply(haft_thread_ready(), fiber))) {
        fiber->awaits = haft_awaiting(effect);
        haft_use_up(fiber);
        haft_part(fiber, effect, (void *)(uintptr_t)payload);
    }
    haft_frame_t frame = HAFT_CALLERS_FRAME();
    leave_slowly(fiber, effect, payload, size, &frame);
}

void haft_exit(haft_fiber_t *fiber, haft_effect_t *effect, const void *payload, size_t size) {
    haft_check_thrown("haft_exit", fiber, effect, payload, size);
    leave(fiber, effect, payload, size);
}

void haft_exit_checked(haft_fiber_t *fiber, haft_effect_t *effect, const void *payload,
                       size_t size) {
    leave(fiber, effect, payload, size);
}
