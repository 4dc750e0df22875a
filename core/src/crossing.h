/* SPDX-License-Identifier: MIT */
/* Crossing the border of a fiber by the out-of-line switch: for resume.c and suspend.c. */
#ifndef HAFT_CROSSING_H
#define HAFT_CROSSING_H

#include "switching.h"

/* ---- Exceptions being handled belong to the fiber that handles them ---- */

/* Marks `side` of the fiber's border, which waits with the exceptions: a copy of that side would
   share them. */
HAFTI_INLINE hafti_exceptions_t haft_exceptions_put_aside(hafti_thread_t *thread,
                                                          haft_fiber_t *fiber, uint8_t side) {
    hafti_exceptions_t mine = *thread->globals;
    if (HAFTI_UNLIKELY(hafti_exceptions_in(thread->exceptions))) {
        *thread->globals = haft_no_exceptions;
        if (mine.caught != NULL || mine.uncaught != 0)
            fiber->excepted |= side;
    }
    return mine;
}

/* An exception that is in flight on arrival (because it leaves a fiber) keeps counting. */
HAFTI_INLINE void haft_exceptions_put_back(hafti_thread_t *thread, haft_fiber_t *fiber,
                                           uint8_t side, hafti_exceptions_t mine) {
    if (HAFTI_UNLIKELY(mine.caught != NULL || mine.uncaught != 0)) {
        fiber->excepted &= (uint8_t)~side;
        thread->globals->caught = mine.caught;
        thread->globals->uncaught += mine.uncaught;
    }
}

/* ---- Crossing the border of a fiber ---- */

HAFTI_INLINE hafti_words_t haft_cross_told(haft_fiber_t *fiber, enum haft_crossing crossing,
                                           hafti_words_t words) {
    bool into = crossing == HAFT_INTO;
    if (HAFTI_UNLIKELY(haft_tools_active))
        haft_tools_before(fiber, crossing);
    words = !into           ? hafti_switch_out_of(fiber, words.first, words.second)
            : words.special ? hafti_switch_into_specially(fiber, words.first, words.second)
                            : hafti_switch_into(fiber, words.first);
    if (HAFTI_UNLIKELY(haft_tools_active))
        haft_tools_after(fiber, crossing);
    return words;
}

/* A function of its own, because a small stack has no room for the language's words. */
static HAFTI_COLD hafti_words_t haft_cross_in_language(const haft_language_t *language,
                                                       haft_fiber_t *fiber,
                                                       enum haft_crossing crossing,
                                                       hafti_words_t words) {
    /* An allocation whose size is not known beforehand lies below everything else in the frame. */
    size_t size = sizeof(haft_language_state_t);
    __asm__("" : "+r"(size));
    haft_language_state_t *mine = __builtin_alloca(size);
    language->before(fiber, crossing, mine);
    words = haft_cross_told(fiber, crossing, words);
    language->after(fiber, crossing, mine);
    return words;
}

HAFTI_INLINE hafti_words_t haft_cross(const hafti_thread_t *thread, haft_fiber_t *fiber,
                                      enum haft_crossing crossing, hafti_words_t words) {
    return HAFTI_UNLIKELY(thread->language != NULL)
               ? haft_cross_in_language(thread->language, fiber, crossing, words)
               : haft_cross_told(fiber, crossing, words);
}

/* ---- Short switches of code on a segmented fiber: besides, its limit word is kept ---- */

#if defined(HAFTI_SEGMENTS)
/* The segmented fiber on which the code runs, if such a switch will do; otherwise NULL. */
HAFTI_INLINE haft_fiber_t *haft_only_on_segments(const hafti_thread_t *thread) {
    return HAFTI_UNLIKELY(hafti_segments_limit() != 0) && !haft_are_switches_told() &&
                   !hafti_exceptions_in(thread->globals) && !haft_seems_in_handler(thread)
               ? thread->segmented
               : NULL;
}
HAFTI_INLINE uintptr_t haft_step_off_segments(hafti_thread_t *thread) {
    uintptr_t limit = hafti_segments_limit();
    hafti_segments_check(limit);
    hafti_segments_set_limit(0);
    thread->segmented = NULL;
    thread->exceptions = thread->globals; /* there is no observer, and no other language */
    return limit;
}
HAFTI_INLINE void haft_step_on_segments(haft_fiber_t *segmented, uintptr_t limit) {
    hafti_thread_t *thread = hafti_thread();
    if (HAFTI_UNLIKELY(thread->foreign_stack == NULL)) {
        haft_footing_return(&(haft_footing_t){.fiber = segmented, .limit = limit});
        return;
    }
    thread->segmented = segmented;
    thread->exceptions = &haft_always_pending;
    hafti_segments_set_limit(limit);
}
#else
HAFTI_INLINE haft_fiber_t *haft_only_on_segments(const hafti_thread_t *thread) {
    (void)thread;
    return NULL;
}
HAFTI_INLINE uintptr_t haft_step_off_segments(const hafti_thread_t *thread) {
    (void)thread;
    return 0;
}
HAFTI_INLINE void haft_step_on_segments(const haft_fiber_t *segmented, uintptr_t limit) {
    (void)segmented, (void)limit;
}
#endif

#endif
