/* SPDX-License-Identifier: MIT */
/* Where the code runs, by its stacks rather than by its scopes; and the canary of stacks without a
   guard. */
#include "stacks.h"

/* The fiber whose stack resumed this one. The scopes do not tell: a clause that is called in place
   resumes fibers from a stack that its scope is not on. */
haft_fiber_t *haft_resumer_of(const haft_fiber_t *fiber) {
    return fiber->within != NULL ? fiber->within : haft_fiber_at(fiber->resumer.sp);
}

haft_fiber_t *haft_fiber_to_unwind(void) {
    haft_fiber_t *fiber = haft_fiber_here();
    while (fiber != NULL && fiber->language != NULL)
        fiber = haft_resumer_of(fiber);
    return fiber;
}

static bool on_stack(const haft_fiber_t *fiber, const char *sp) {
    return sp >= fiber->low && sp <= fiber->high;
}

/* Whether the stack of `at` is inside the fiber's. The stack of another fiber, into which this one
   has overflowed, is not. */
static bool further_in(const haft_fiber_t *fiber, const haft_fiber_t *at) {
    while (at != NULL && at != fiber && at->state == HAFT_FIBER_RUNNING)
        at = haft_resumer_of(at);
    return at == fiber;
}

bool haft_has_overflowed(const haft_fiber_t *fiber, const char *sp, const haft_fiber_t *segmented) {
    bool overflow = !on_stack(fiber, sp) &&
                    !further_in(fiber, segmented != NULL ? segmented : haft_fiber_at(sp));
    return overflow || haft_canary_is_gone(fiber);
}

void haft_overflowed(const haft_fiber_t *fiber) {
    size_t size = (size_t)(fiber->high - fiber->low);
    haft_fail(HAFT_ERROR_STACK_OVERFLOW, hafti_awaited(fiber), fiber, HAFT_OVERFLOWED "%s",
              haft_fiber_label(fiber), size, haft_late_binding_advice(size));
}
