/* SPDX-License-Identifier: MIT */
/* Crossing the border of a fiber by the out-of-line switch: for resume.c and suspend.c. */
#ifndef HAFT_CROSSING_H
#define HAFT_CROSSING_H

#include "switching.h"

/* ---- Exceptions being handled belong to the fiber that handles them ---- */

/* `side` of the fiber's border waits with them: a copy of that side would share them. */
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

/* Apart, because a small stack has no room for the language's words. */
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

#endif
