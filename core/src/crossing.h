/* SPDX-License-Identifier: MIT */
/* Crossing the border of a fiber by the out-of-line switch: for resume.c and suspend.c. */
#ifndef HAFT_CROSSING_H
#define HAFT_CROSSING_H

#include "switching.h"

/* ---- Exceptions being handled belong to the fiber that handles them ---- */

HAFT_INLINE haft_exceptions_t haft_exceptions_put_aside(haft_thread_t *thread) {
    haft_exceptions_t mine = *thread->globals;
    if (HAFT_UNLIKELY(haft_exceptions_in(thread->exceptions)))
        *thread->globals = haft_no_exceptions;
    return mine;
}

/* What is in flight on arrival (an exception that leaves a fiber) counts on. */
HAFT_INLINE void haft_exceptions_put_back(haft_thread_t *thread, haft_exceptions_t mine) {
    if (HAFT_UNLIKELY(mine.caught != NULL || mine.uncaught != 0)) {
        thread->globals->caught = mine.caught;
        thread->globals->uncaught += mine.uncaught;
    }
}

/* ---- Crossing the border of a fiber ---- */

HAFT_INLINE haft_words_t haft_cross_told(haft_fiber_t *fiber, enum haft_crossing crossing,
                                         haft_words_t words) {
    bool into = crossing == HAFT_INTO;
    if (HAFT_UNLIKELY(haft_tools_active))
        haft_tools_before(fiber, crossing);
    words = !into           ? haft_switch_out_of(fiber, words.first, words.second)
            : words.special ? haft_switch_into_specially(fiber, words.first, words.second)
                            : haft_switch_into(fiber, words.first);
    if (HAFT_UNLIKELY(haft_tools_active))
        haft_tools_after(fiber, crossing);
    return words;
}

/* Apart, because a small stack has no room for the language's words. */
static HAFT_COLD haft_words_t haft_cross_in_language(const haft_language_t *language,
                                                     haft_fiber_t *fiber,
                                                     enum haft_crossing crossing,
                                                     haft_words_t words) {
    haft_language_state_t mine;
    language->before(fiber, crossing, &mine);
    words = haft_cross_told(fiber, crossing, words);
    language->after(fiber, crossing, &mine);
    return words;
}

HAFT_INLINE haft_words_t haft_cross(const haft_thread_t *thread, haft_fiber_t *fiber,
                                    enum haft_crossing crossing, haft_words_t words) {
    return HAFT_UNLIKELY(thread->language != NULL)
               ? haft_cross_in_language(thread->language, fiber, crossing, words)
               : haft_cross_told(fiber, crossing, words);
}

#endif
