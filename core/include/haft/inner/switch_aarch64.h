/* SPDX-License-Identifier: MIT */
/*
 * The context switch, AArch64 (AAPCS64).
 *
 * hafti_switch_into stores the running context into the fiber's `resumer` and loads its `context`;
 * hafti_switch_out_of does the reverse. Both carry two words across. The switch is inline assembly
 * that names every register as clobbered, those that a call would keep included: the compiler saves
 * what is live and nothing else. x29 and x19 cannot be clobbers (frame pointer; the base pointer
 * that clang uses in frames with dynamic alignment), so they travel in the context.
 *
 * On both sides:   x0  from, x1  to (in), anything (out)
 *                  x2  first word       x3  second word       x4  whether the words are special
 * The target is entered by a branch: no call has pushed its address, so a return would be
 * mispredicted. Every target begins with `bti j` (hint 36), which processors and code without
 * branch target identification take for a no-op.
 *
 * Rounding mode and exception masks are a fiber's own: they are FPCR, whole, so that flushing to
 * zero goes with the fiber too. Reading FPCR costs little, but writing it drains the pipeline, so
 * it is written on a difference only. (FPSR, the flags of what has happened, stays with the
 * thread.)
 */
#ifndef HAFTI_SWITCH_H
#define HAFTI_SWITCH_H

#include "layout.h"

/* The vector registers contain the scalable ones. The predicates are named in every file: a
   function may have them by a target attribute or pragma. (The first-fault register, which only gcc
   has a name for, lives across no call.) */
#define HAFTI_CLOBBERS_SVE                                                                         \
    , "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13",      \
        "p14", "p15"

#define HAFTI_SWITCH_CLOBBERS                                                                      \
    "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18",   \
        "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "cc", "memory",      \
        "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",    \
        "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", \
        "v27", "v28", "v29", "v30", "v31" HAFTI_CLOBBERS_SVE

/* Continues with the context at x1; x11 is the control word so far. */
#define HAFTI_SWITCH_LOAD                                                                          \
    "ldr w8, [x1, #32]\n\t"                                                                        \
    "ldp x29, x5, [x1]\n\t"                                                                        \
    "ldp x6, x19, [x1, #16]\n\t"                                                                   \
    "mov sp, x6\n\t"                                                                               \
    "cmp w8, w11\n\t"                                                                              \
    "b.ne 2f\n\t"                                                                                  \
    "br x5\n"                                                                                      \
    "2:\n\t" /* the other side rounds or traps differently */                                      \
    "msr fpcr, x8\n\t"                                                                             \
    "br x5\n"

typedef struct hafti_words {
    void *first;
    uintptr_t second;
    bool special; /* set by the sender */
} hafti_words_t;

static inline __attribute__((always_inline)) hafti_words_t
hafti_switch(hafti_context_t *from, hafti_context_t *to, hafti_words_t words) {
    register void *x0 __asm__("x0") = from;
    register void *x1 __asm__("x1") = to;
    register void *first __asm__("x2") = words.first;
    register uintptr_t second __asm__("x3") = words.second;
    register uintptr_t special __asm__("x4") = words.special;
    __asm__ volatile("adr x9, 1f\n\t"
                     "mov x10, sp\n\t"
                     "stp x29, x9, [x0]\n\t"
                     "stp x10, x19, [x0, #16]\n\t"
                     "mrs x11, fpcr\n\t"
                     "str w11, [x0, #32]\n\t" HAFTI_SWITCH_LOAD "1:\n\t"
                     "hint #36"
                     : "+r"(x0), "+r"(x1), "+r"(first), "+r"(second), "+r"(special)
                     :
                     : HAFTI_SWITCH_CLOBBERS);
    return (hafti_words_t){first, second, special != 0};
}

/* Into a fiber, with the result of its perform. */
static inline __attribute__((always_inline)) hafti_words_t hafti_switch_into(haft_fiber_t *fiber,
                                                                             void *first) {
    return hafti_switch(&fiber->resumer, &fiber->context, (hafti_words_t){first, 0, false});
}

/* Into a fiber, with words that are special. */
static inline __attribute__((always_inline)) hafti_words_t
hafti_switch_into_specially(haft_fiber_t *fiber, void *first, uintptr_t second) {
    return hafti_switch(&fiber->resumer, &fiber->context, (hafti_words_t){first, second, true});
}

/* Out of a fiber, which is suspended. */
static inline __attribute__((always_inline)) hafti_words_t
hafti_switch_out_of(haft_fiber_t *fiber, void *first, uintptr_t second) {
    return hafti_switch(&fiber->context, &fiber->resumer, (hafti_words_t){first, second, false});
}

/* Out of a fiber that nobody will continue, with words that are special: nothing has to be
   saved. */
static inline __attribute__((always_inline, noreturn)) void
hafti_switch_out_for_good(haft_fiber_t *fiber, void *first, uintptr_t second) {
    register void *x1 __asm__("x1") = &fiber->resumer;
    register void *x2 __asm__("x2") = first;
    register uintptr_t x3 __asm__("x3") = second;
    register uintptr_t special __asm__("x4") = 1;
    __asm__ volatile("mrs x11, fpcr\n\t" HAFTI_SWITCH_LOAD
                     :
                     : "r"(x1), "r"(x2), "r"(x3), "r"(special)
                     : "memory");
    __builtin_unreachable();
}

#endif
