/* SPDX-License-Identifier: MIT */
/* Switches from and to code on segmented fibers. */
#ifndef HAFT_LIMIT_WORDS_H
#define HAFT_LIMIT_WORDS_H

#include "ground.h"

#ifndef HAFT_FREESTANDING

typedef struct haft_footing {
    haft_fiber_t *fiber; /* NULL: the code is not on one, and nothing here means anything */
    uintptr_t limit;     /* 0: in a function called through HAFT_FOREIGN */
    void *foreign_stack; /* where it was free before */
    struct haft_footing *outer;
} haft_footing_t;
HAFTI_COLD void haft_footing_leave(hafti_thread_t *thread, haft_footing_t *footing);
HAFTI_COLD void haft_footing_return(const haft_footing_t *footing);
/* Called around an out-of-line switch. */
HAFTI_INLINE void haft_leave_segments(hafti_thread_t *thread, haft_footing_t *footing) {
    footing->fiber = thread->segmented;
    if (HAFTI_UNLIKELY(footing->fiber != NULL))
        haft_footing_leave(thread, footing);
}
HAFTI_INLINE void haft_return_to_segments(const haft_footing_t *footing) {
    if (HAFTI_UNLIKELY(footing->fiber != NULL))
        haft_footing_return(footing);
}
/* Called before a switch away for good. */
HAFTI_COLD void haft_footing_end(hafti_thread_t *thread);
HAFTI_INLINE void haft_end_segments(hafti_thread_t *thread) {
    if (HAFTI_UNLIKELY(thread->segmented != NULL))
        haft_footing_end(thread);
}
/* For the first frame of a segmented fiber. */
HAFTI_COLD void haft_enter_segments(haft_fiber_t *fiber);
/* Functions that were called through HAFT_FOREIGN, and had resumed `fiber`, are given up. */
void haft_abandon_foreign_call(hafti_thread_t *thread, const haft_fiber_t *fiber);
/* The suspension of `target` by code on its stack or inside must not leave such functions behind.
 */
HAFTI_COLD void haft_check_foreign_calls(const haft_fiber_t *target, const haft_effect_t *effect);
extern bool haft_foreign_calls_seen;
/* Whether such a function resumes what a fiber resumes. Marks it, and returns whether the mark is
   new: effects performed inside must then be looked up again. */
bool haft_resumes_from_foreign_call(haft_fiber_t *fiber);
/* The segments of a fiber: its first one is made, emptied for another run, given back with the
   others. */
void haft_segmented_init(haft_fiber_t *fiber);
void haft_segmented_reset(haft_fiber_t *fiber);
void haft_segmented_release(haft_fiber_t *fiber);
/* False: no memory. */
bool haft_foreign_stack_make(hafti_thread_t *thread);
void haft_foreign_stack_free(hafti_thread_t *thread);
/* For unwinding: whether a frame at `sp` is on the fiber that runs, and whether one whose caller's
   frame ends at `frame` is that or one further out. Segments do not lie in the order of their
   frames. */
bool haft_on_this_fiber(const void *sp);
bool haft_unwound_to(uintptr_t frame, const void *sp);
/* Explains a fault at this address, for signal handlers; NULL if segments did not cause it. */
const char *haft_segments_fault(const void *address);

#endif

#endif
