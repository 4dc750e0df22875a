/* SPDX-License-Identifier: MIT */
/* The floor of switching: the first frame of a fiber, crossing its border, leaving it for good. */
#ifndef HAFT_SWITCHING_H
#define HAFT_SWITCHING_H

#include "lookup.h"

/* Leaves a fiber for good from its own stack. */
__attribute__((noreturn)) void haft_leave(haft_fiber_t *fiber, haft_effect_t *effect,
                                          void *payload);

/* The same where nobody has to be told: from a stack of the pool, in C or C++, without tools and
   exceptions. */
__attribute__((noreturn)) void haft_part(haft_fiber_t *fiber, haft_effect_t *effect, void *payload);

extern haft_effect_t haft_special_unwinding, haft_special_exception, haft_special_dropped;

typedef struct haft_call {
    void *(*function)(void *);
    void *argument;
} haft_call_t;

/* Called on a fiber's stack by its first frame. The two are apart so that calls and returns pair
   up: the processor predicts a return by the calls before it. */
void haft_fiber_run(haft_fiber_t *fiber, void *word, uintptr_t wake);
__attribute__((noreturn)) void haft_fiber_returned(haft_fiber_t *fiber);
void haft_fiber_start(void); /* arch/: the first frame; never called */
extern const char haft_fiber_start_end[];
/* Whether a frame with this program counter is the first of a fiber. */
HAFTI_INLINE bool haft_in_first_frame(uintptr_t pc) {
    return pc >= (uintptr_t)haft_fiber_start && pc < (uintptr_t)haft_fiber_start_end;
}

#endif
