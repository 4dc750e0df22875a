/* SPDX-License-Identifier: MIT */
/* The floor of unwinding: running the cleanups of stacks, and leaving them without. */
#ifndef HAFT_UNWINDING_H
#define HAFT_UNWINDING_H

#include "switching.h"

/* A frame of the running code, by the registers that it was left with. */
typedef struct haft_frame {
    uintptr_t pc, sp, fp;
} haft_frame_t;
HAFTI_INLINE haft_frame_t haft_this_frame(void) {
    haft_frame_t frame;
#if defined(__x86_64__)
    __asm__ volatile("leaq 1f(%%rip), %0\n1:\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
                     : "=&r"(frame.pc), "=&r"(frame.sp), "=&r"(frame.fp));
#else
    __asm__ volatile("adr %0, 1f\n1:\tmov %1, sp\n\tmov %2, x29"
                     : "=&r"(frame.pc), "=&r"(frame.sp), "=&r"(frame.fp));
#endif
    return frame;
}
/* The frame of the caller, if it is known without the unwind tables; otherwise this one. */
#if defined(__x86_64__)
#    define HAFT_CALLERS_FRAME()                                                                   \
        ((haft_frame_t){.pc = (uintptr_t)__builtin_return_address(0),                              \
                        .sp = (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(void *),          \
                        .fp = *(uintptr_t *)__builtin_frame_address(0)})
#else
#    define HAFT_CALLERS_FRAME() haft_this_frame()
#endif

/* leaving.c */
/* The fiber on whose stack the suspended `fiber` stopped. */
haft_fiber_t *haft_innermost(haft_fiber_t *fiber);
/* Whether any of the fibers from the one that the suspended `fiber` stopped in, outwards, needs
   unwinding. */
bool haft_needs_unwinding(haft_fiber_t *fiber);
/* Checks the arguments of haft_throw and haft_exit. */
void haft_check_thrown(const char *function, const haft_fiber_t *fiber, const haft_effect_t *effect,
                       const void *payload, size_t size);
/* haft_exit, with such arguments. */
__attribute__((noreturn)) void haft_exit_checked(haft_fiber_t *fiber, haft_effect_t *effect,
                                                 const void *payload, size_t size);
/* Ends the fibers suspended inside `fiber`, as they are. */
void haft_abandon_inside(haft_fiber_t *fiber);

/* Cleanups that would run if the frames of a suspended stack were unwound. */
typedef enum haft_cleanups {
    HAFT_CLEANUPS_NONE,
    HAFT_CLEANUPS_COPIED,  /* cleanups that each copy of the frames has to run */
    HAFT_CLEANUPS_SOME,    /* cleanups that only one copy may run */
    HAFT_CLEANUPS_UNKNOWN, /* it cannot be known */
    /* The function has some, perhaps not at the switch: that is known at the call of hafti_woken,
       of which the switch has no address. */
    HAFT_CLEANUPS_AT_SWITCH
} haft_cleanups_t;
/* Classifies the cleanups of a function of the library, or of one for which the program has made a
   promise (haft_may_copy_frames). `at_switch`: its frame ends in a switch. */
typedef haft_cleanups_t haft_judge_t(uintptr_t function, bool at_switch);

#ifdef HAFT_FREESTANDING

/* This build has no unwinding: reached only by code on a stack that is not a fiber's, beyond the
   one that is to be left. */
HAFTI_INLINE __attribute__((noreturn)) void haft_unwind(haft_fiber_t *target, haft_frame_t frame) {
    (void)frame;
    haft_fail(HAFT_ERROR_UNWINDING_STOPPED, hafti_awaited(target), target,
              "%s cannot be left from here: this stack is not a fiber's.",
              haft_fiber_label(target));
}
HAFTI_INLINE void haft_unwind_on(const haft_fiber_t *fiber, const haft_effect_t *effect,
                                 const void *payload) {
    (void)fiber, (void)effect, (void)payload;
}

#else

/* The function around the body of a handler without a stack (handler.c). */
void *haft_handle_in_place(const haft_handler_t *handler, void *state, void *(*body)(void *),
                           void *argument);

/* Cleanups of the frames from `frame` to the fiber's first. `frame` is then the one at which the
   walk has stopped. `is_switch`: `frame` waits at one. Its stack has resumed `resumed`, or NULL. */
haft_cleanups_t haft_cleanups_from(haft_frame_t *frame, bool is_switch, const haft_fiber_t *resumed,
                                   haft_judge_t *judge);
/* The frames that end in the switch at `pc` have nothing to run. */
void haft_cleanups_learn(uintptr_t pc);

/* Whether nothing would run if the stack were unwound from `frame` to the fiber's first. */
bool haft_nothing_to_clean(haft_frame_t frame);

/* Unwinds from here, through the fibers around, up to and including `target`. `frame` is one on
   this stack inside of which there are only the library's. */
__attribute__((noreturn)) void haft_unwind(haft_fiber_t *target, haft_frame_t frame);

/* Continues an unwinding that has come out of `fiber`; returns if the special effect is not an
   unwinding. */
void haft_unwind_on(haft_fiber_t *fiber, haft_effect_t *effect, void *payload);

#endif

#endif
