/* SPDX-License-Identifier: MIT */
/* Claiming a fiber, inlined: for claim.c and resume.c. */
#ifndef HAFT_CLAIM_H
#define HAFT_CLAIM_H

#include "resuming.h"

HAFTI_COLD void haft_not_resumable(const haft_fiber_t *fiber, haft_error_code_t code,
                                   const char *what);
/* Claims from elsewhere than the scope that resumed the fiber last. */
uint64_t haft_claim_foreign(hafti_thread_t *thread, haft_fiber_t *fiber);

/* haft_claim, inlined. */
HAFTI_INLINE uint64_t haft_claim_here(hafti_thread_t *thread, haft_fiber_t *fiber,
                                      haft_error_code_t code, const char *what) {
    uint64_t gate = __atomic_load_n(&fiber->context.gate, __ATOMIC_RELAXED);
    if (gate == HAFTI_GATE_CLOSED)
        haft_not_resumable(fiber, code, what);
    uint64_t serial = haft_scope_serial(thread, thread->current);
    if (__atomic_load_n(&fiber->owner, __ATOMIC_RELAXED) == serial) {
        /* Same order as on the hot path: see haft/inner/hot.h. */
        __atomic_store_n(&fiber->context.gate, HAFTI_GATE_CLOSED, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (__atomic_load_n(&fiber->owner, __ATOMIC_RELAXED) != serial)
            hafti_resume_raced(fiber);
        return serial;
    }
    return haft_claim_foreign(thread, fiber);
}

/* Gives the fiber the owner `after`. Called after a claim that returned `before`, until the next
   serial is drawn. If a thread has tried to claim the fiber meanwhile, that thread's mark stays. */
HAFTI_INLINE void haft_set_owner(hafti_thread_t *thread, haft_fiber_t *fiber, uint64_t before,
                                 uint64_t after) {
    uint64_t serial = thread->current->serial;
    uint64_t mine = before == serial ? serial : thread->stamp; /* what haft_claim_foreign wrote */
    if (mine != after)
        (void)__atomic_compare_exchange_n(&fiber->owner, &mine, after, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST);
}

/* Lets any scope claim the fiber: no thread can be on its hot path. */
HAFTI_INLINE void haft_release(hafti_thread_t *thread, haft_fiber_t *fiber, uint64_t owner) {
    haft_set_owner(thread, fiber, owner, 0);
    __atomic_store_n(&fiber->context.gate, HAFTI_GATE_OPEN, __ATOMIC_RELEASE);
}

#endif
