/* SPDX-License-Identifier: MIT */
/*
 * Turns: for a scheduler that resumes many fibers from one place, each when the one before is
 * suspended. There a fiber can let the next one go on by one switch, instead of two through the
 * scheduler's loop:
 *
 *     haft_turn_t turn = {NULL};                                   of the loop, and its thread
 *     fiber = ...;
 *     request = haft_resume_turn(&turn, &fiber, reply, handles);   fiber: the one that is suspended
 *
 *     on a fiber of such a loop, instead of result = HAFT_PERFORM(name):
 *     if (HAFT_IS_FOR_LOOP(&turn, name) && haft_claim_next(&turn, next, reply))
 *         result = HAFT_HAND_OVER(&turn, name, next, reply);
 *
 * The fiber that hands over must do the loop's work between the request and the next resume. The
 * loop then has `next` in the place of the fiber that it has resumed itself:
 *
 *   loop -- haft_resume_turn --> a                     a's `resumer` is the loop's context
 *                                a -- hand over --> b  which b's becomes, too; a is suspended
 *        <------------------- request ------------- b
 */
#ifndef HAFT_TURNS_H
#define HAFT_TURNS_H

#include "../haft.h"

#ifdef __cplusplus /* as in haft.h */
#    pragma GCC diagnostic push
#    pragma GCC diagnostic ignored "-Wold-style-cast"
#    pragma GCC diagnostic ignored "-Wpedantic"
#    pragma GCC diagnostic ignored "-Wshadow"
#endif

/* State of one loop: the fiber that runs if the loop has resumed it by the short path, or NULL. */
typedef struct haft_turn {
    haft_fiber_t *fiber;
} haft_turn_t;

/* Like haft_resume. `*fiber` becomes the one whose request is returned. */
HAFTI_INLINE haft_request_t haft_resume_turn(haft_turn_t *turn, haft_fiber_t **fiber,
                                             haft_reply_t reply, const haft_handles_t *handles) {
    hafti_here_t here = hafti_here();
    if (HAFTI_UNLIKELY(!hafti_resumes_hot(here, *fiber, handles) ||
                       !hafti_is_reply_to((*fiber)->awaits, reply.to)))
        return hafti_resume_checked(*fiber, reply, handles);
    turn->fiber = *fiber;
    hafti_words_t words = hafti_resume_now(here, *fiber, reply.word);
    *fiber = turn->fiber; /* the switch clobbers memory: this is read afterwards */
    turn->fiber = (haft_fiber_t *)0;
    if (HAFTI_UNLIKELY(words.special))
        return hafti_arrived(*fiber, (haft_effect_t *)words.second, words.first);
    hafti_open_gate(*fiber);
    haft_request_t request = {(haft_effect_t *)words.second, words.first};
    return request;
}

/* Whether the effect `name`, performed here, is a request of the fiber of the turn to its loop.
   False is always possible. */
#define HAFT_IS_FOR_LOOP(turn, name)                                                               \
    hafti_is_for_loop(hafti_here(), (turn)->fiber, HAFT_ID(name), hafti_slot_##name())

/* Suspends the fiber of the turn as by HAFT_PERFORM(name), but resumes `next` which has
   been claimed, with the reply. Returns the reply to the perform. */
#define HAFT_HAND_OVER(turn, name, next, reply)                                                    \
    (__extension__({                                                                               \
        hafti_value_##name haft_value_;                                                            \
        const size_t haft_size_ = HAFTI_RESULT_SIZE(haft_result_##name);                           \
        hafti_unpack(                                                                              \
            HAFT_ID(name),                                                                         \
            hafti_hand_over(turn, HAFTI_AWAITING(HAFT_ID(name), haft_size_), next, (reply).word),  \
            &haft_value_, haft_size_);                                                             \
        haft_value_;                                                                               \
    }))

/* Switches from one fiber, whose gate is opened when its context is complete, to another. The words
   are those of every switch, and are not special. */
#if defined(__x86_64__)
HAFTI_INLINE hafti_words_t hafti_switch_over(haft_fiber_t *from, haft_fiber_t *to, void *first) {
    uintptr_t second = HAFTI_ADDRESS(to);
    hafti_flag_t special;
    HAFTI_REFUSE_AVX512();
    __asm__ volatile(HAFTI_SWITCH_STORE(HAFTI_AT_CONTEXT) /* */
                     "movl $1, " HAFTI_AT_CONTEXT "+36(%%rdi)\n\t"
                     "movq " HAFTI_AT_CONTEXT "+8(%%rdx), %%r10\n\t"
                     "movq " HAFTI_AT_CONTEXT "+0(%%rdx), %%rbp\n\t"
                     "movq " HAFTI_AT_CONTEXT "+16(%%rdx), %%rsp\n\t"
                     "movq " HAFTI_AT_CONTEXT "+24(%%rdx), %%rbx\n\t"
                     "clc\n\t"
                     "jmp *%%r10\n"
                     "1:" HAFTI_SWITCH_TELL
                     : "+D"(from), "+a"(first), "+d"(second), HAFTI_SWITCH_TOLD(special)
                     :
                     : HAFTI_SWITCH_CLOBBERS);
    hafti_words_t words = {first, second, special != 0};
    return words;
}

/* Compares the modes of floating point, which the switch above does not change. */
HAFTI_INLINE bool hafti_same_modes(haft_fiber_t *from, const haft_fiber_t *to) {
    __asm__ volatile("fnstcw %0" : "=m"(from->context.control));
    return HAFTI_LIKELY((uint16_t)from->context.control == (uint16_t)to->context.control);
}
#elif defined(__aarch64__)
HAFTI_INLINE hafti_words_t hafti_switch_over(haft_fiber_t *from, haft_fiber_t *to, void *first) {
    register void *x0 __asm__("x0") = &from->context;
    register void *x1 __asm__("x1") = &to->context;
    register void *x2 __asm__("x2") = first;
    register uintptr_t second __asm__("x3") = 0;
    register uintptr_t special __asm__("x4") = 0;
    __asm__ volatile("adr x9, 1f\n\t"
                     "mov x10, sp\n\t"
                     "stp x29, x9, [x0]\n\t"
                     "stp x10, x19, [x0, #16]\n\t"
                     "mrs x11, fpcr\n\t"
                     "str w11, [x0, #32]\n\t"
                     "mov w10, #1\n\t"
                     "add x9, x0, #36\n\t"
                     "stlr w10, [x9]\n\t" HAFTI_SWITCH_LOAD "1:\n\t"
                     "hint #36"
                     : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(second), "+r"(special)
                     :
                     : HAFTI_SWITCH_CLOBBERS);
    hafti_words_t words = {x2, second, special != 0};
    return words;
}

/* The switch compares the modes of floating point itself. */
HAFTI_INLINE bool hafti_same_modes(haft_fiber_t *from, const haft_fiber_t *to) {
    (void)from, (void)to;
    return true;
}
#endif

/* HAFT_IS_FOR_LOOP. True also means that the switch need not be made out of line. */
HAFTI_INLINE bool hafti_is_for_loop(hafti_here_t here, const haft_fiber_t *from,
                                    haft_effect_t *effect, unsigned slot) {
    hafti_found_t found;
    if (HAFTI_UNLIKELY(from == (const haft_fiber_t *)0))
        return false;
    if (HAFTI_LIKELY(hafti_read_entry(hafti_entry_in(here.current, slot), effect, 0, &found)))
        return HAFTI_LIKELY(found.scope == &from->scope);
    return here.current == &from->scope && hafti_is_requested(here, effect);
}

/*
 * Whether the fiber of the turn, for which HAFT_IS_FOR_LOOP is true, can hand over to `next` with
 * this reply: the loop would resume that by the short path. True claims `next`: HAFT_HAND_OVER has
 * to follow with the same arguments. False, which is always possible, changes nothing: the effect
 * is to be performed. (The loop's scope is read as it is now: the loop may run on a fiber that has
 * gone on elsewhere since it resumed either of them.)
 */
HAFTI_INLINE bool haft_claim_next(const haft_turn_t *turn, haft_fiber_t *next, haft_reply_t reply) {
    const haft_fiber_t *from = turn->fiber;
    hafti_here_t loop = {hafti_here().thread, from->scope.outer};
    if (HAFTI_UNLIKELY((from->resumer.room & HAFTI_ROOM_LOOK) != 0 ||
                       !hafti_resumes_hot(loop, next, from->scope.handles) ||
                       !hafti_is_reply_to(next->awaits, reply.to) ||
                       !hafti_same_modes(turn->fiber, next)))
        return false;
    uint64_t serial = loop.current->serial;
    next->context.gate = HAFTI_GATE_CLOSED; /* as hafti_resume_now */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (HAFTI_UNLIKELY(next->owner != serial))
        hafti_resume_raced(next);
    return true;
}

HAFTI_INLINE void *hafti_hand_over(haft_turn_t *turn, uintptr_t awaits, haft_fiber_t *next,
                                   void *word) {
    hafti_here_t here = hafti_here();
    haft_fiber_t *from = turn->fiber;
    /* All but `room`, which is the fiber's own. */
    __builtin_memcpy(&next->resumer, &from->resumer, offsetof(hafti_context_t, room));
    from->top = here.current;
    from->awaits = awaits;
    turn->fiber = next;
    hafti_set_current(here, hafti_top_of(next));
    hafti_words_t words = hafti_switch_over(from, next, word);
    if (HAFTI_UNLIKELY(words.special))
        return hafti_woken(words.first, words.second);
    return words.first;
}

/* ---- The end of a fiber that the scheduler has asked to unwind ---- */

/* Whether the fiber is being unwound on behalf of an effect that was thrown. It is not any more
   when an exception that a catch (...) of C++ has thrown has taken the place of the unwinding. */
HAFTI_INLINE bool haft_is_thrown_from(const haft_fiber_t *fiber) {
    return fiber->thrown != (void *)0;
}

#ifdef __cplusplus
#    pragma GCC diagnostic pop
#endif

#endif
