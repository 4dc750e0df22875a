/* SPDX-License-Identifier: MIT */
/* Claiming a fiber: if several threads want to resume, free or detach it, one gets it. */
#include "claim.h"

static const char *state_text(const haft_fiber_t *fiber) {
    switch (haft_fiber_state(fiber)) {
    case HAFT_FIBER_FINISHED:
        return "it has finished";
    case HAFT_FIBER_DROPPED:
        return "it has been dropped";
    default:
        return "it is running, here or on another thread";
    }
}

HAFTI_COLD void haft_not_resumable(const haft_fiber_t *fiber, haft_error_code_t code,
                                   const char *what) {
    haft_fail(code, hafti_awaited(fiber), fiber, "%s cannot be %s: %s.", haft_fiber_label(fiber),
              what, state_text(fiber));
}

void hafti_resume_raced(haft_fiber_t *fiber) {
    haft_fail(HAFT_ERROR_NOT_RESUMABLE, hafti_awaited(fiber), fiber,
              "%s is being resumed by two threads at once. Only one may own a suspended fiber.",
              haft_fiber_label(fiber));
}

/* Claiming from elsewhere than the scope that resumed the fiber last. The stamp in `owner` is a
   mark: as long as it is there, no other thread can have come in on the hot path. */
uint64_t haft_claim_foreign(hafti_thread_t *thread, haft_fiber_t *fiber) {
    uint64_t mark = haft_stamp(thread);
    uint64_t owner = __atomic_exchange_n(&fiber->owner, mark, __ATOMIC_SEQ_CST);
    if (owner != 0 && !haft_drawn_on(owner, thread))
        haft_thread_barrier();
    if (__atomic_exchange_n(&fiber->context.gate, HAFTI_GATE_CLOSED, __ATOMIC_SEQ_CST) ==
            HAFTI_GATE_CLOSED ||
        __atomic_load_n(&fiber->owner, __ATOMIC_SEQ_CST) != mark)
        hafti_resume_raced(fiber);
    return owner;
}

uint64_t haft_claim(hafti_thread_t *thread, haft_fiber_t *fiber, haft_error_code_t code,
                    const char *what) {
    return haft_claim_here(thread, fiber, code, what);
}

void haft_fiber_detach(haft_fiber_t *fiber) {
    haft_check_given(fiber, "haft_fiber_detach", "fiber");
    haft_check_own(fiber, "detached");
    hafti_thread_t *thread = haft_thread_ready();
    haft_release(thread, fiber,
                 haft_claim_here(thread, fiber, HAFT_ERROR_NOT_RESUMABLE, "detached"));
}

void haft_handles_changed(haft_fiber_t *fiber) {
    haft_check_given(fiber, "haft_handles_changed", "fiber");
    haft_check_own(fiber, "given other effects to handle");
    hafti_thread_t *thread = haft_thread_ready();
    uint64_t owner =
        haft_claim_here(thread, fiber, HAFT_ERROR_NOT_RESUMABLE, "given other effects to handle");
    fiber->set = HAFTI_SET_NONE;
    fiber->scope.handles = &haft_handles_none;
    haft_release(thread, fiber, owner);
}
