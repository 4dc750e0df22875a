/* SPDX-License-Identifier: MIT */
/* Reading a fiber's header: its state and name, what it is a part of, and which thread may use
   it. */
#include "ground.h"

HAFT_NEEDS_NO_ROOM

haft_fiber_state_t haft_fiber_state(const haft_fiber_t *fiber) {
    haft_check_given(fiber, "haft_fiber_state", "fiber");
    if (HAFTI_UNLIKELY(fiber->language != NULL))
        return fiber->language->state(fiber);
    if (fiber->state == HAFT_FIBER_NEW && fiber->high == NULL)
        return HAFT_FIBER_DROPPED; /* and its memory has been given back */
    if (fiber->state == HAFT_FIBER_RUNNING &&
        __atomic_load_n(&fiber->context.gate, __ATOMIC_RELAXED) != HAFTI_GATE_CLOSED)
        return HAFT_FIBER_SUSPENDED;
    return (haft_fiber_state_t)fiber->state;
}

const char *haft_fiber_name(const haft_fiber_t *fiber) {
    haft_check_given(fiber, "haft_fiber_name", "fiber");
    return fiber->name == NULL ? "" : fiber->name;
}

void haft_fiber_set_name(haft_fiber_t *fiber, const char *name) {
    haft_check_given(fiber, "haft_fiber_set_name", "fiber");
    fiber->name = name;
}

haft_fiber_t *haft_fiber_current(void) {
    return haft_scope_fiber(haft_thread_ready()->current);
}

haft_fiber_t *haft_fiber_parent(const haft_fiber_t *fiber) {
    haft_check_given(fiber, "haft_fiber_parent", "fiber");
    return haft_fiber_state(fiber) == HAFT_FIBER_RUNNING ? haft_scope_fiber(fiber->scope.outer)
                                                         : NULL;
}

void haft_check_own(const haft_fiber_t *fiber, const char *what) {
    if (HAFTI_UNLIKELY(fiber != NULL && fiber->language != NULL))
        haft_fail(HAFT_ERROR_NOT_RESUMABLE, hafti_awaited(fiber), fiber,
                  "%s cannot be %s from here: its frames are those of %s. Use the means of that "
                  "language.",
                  haft_fiber_label(fiber), what, fiber->language->name);
}

void haft_memory_taken(const haft_fiber_t *live, const char *name) {
    haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, live,
              "The memory for %s%s%s overlaps that of %s, which has not finished: free that one "
              "before its memory is used for something else.",
              name == NULL ? "a fiber" : "the fiber '", name == NULL ? "" : name,
              name == NULL ? "" : "'",
              live == NULL ? "another fiber, overwritten since" : haft_fiber_label(live));
}

void haft_not_given(const char *function, const char *thing) {
    haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL, "%s was given no %s (NULL).", function, thing);
}
