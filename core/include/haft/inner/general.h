/* SPDX-License-Identifier: MIT */
/*
 * The hot path of a general clause that resumes: the first turn of the handler's loop
 * (src/handler.c), inlined into the clause.
 *
 * A clause that works on the answer calls itself, through the loop, once a request. Inlined, each
 * level is one frame and one return. Two of each cost twice the time: the processor predicts the
 * returns of some thirty calls, and deep recursion leaves the caches with what lies on the stack.
 */
#ifndef HAFTI_GENERAL_H
#define HAFTI_GENERAL_H

HAFTI_API HAFTI_COLD void *hafti_resumption_resume_slow(haft_resumption_t k, haft_reply_t reply);
/* The answer of a computation that has returned, thrown or been left. */
HAFTI_API void *hafti_answer_of_ended(haft_fiber_t *fiber, void *payload, uintptr_t effect);
/* The answer where the clause has promised to resume a computation. */
HAFTI_API void *hafti_answer_of_promise(haft_fiber_t *fiber, uint64_t shot, haft_answer_t answer);
HAFTI_API HAFTI_COLD void hafti_drop_left(haft_resumption_t k);

/* A clause that is unwound, by an exception or by being dropped, drops what it had not used, or
   only promised. */
HAFTI_INLINE void hafti_drop_unused(haft_resumption_t *k) {
    if (HAFTI_UNLIKELY(k->fiber != (haft_fiber_t *)0))
        hafti_drop_left(*k);
}

/* Calls the clause that takes the request of a fiber, on this stack. */
HAFTI_INLINE haft_answer_t hafti_run_general(haft_fiber_t *fiber, hafti_words_t words,
                                             uint64_t shot) {
    typedef haft_answer_t general_clause_t(void *state, void *payload, haft_resumption_t k);
    const haft_clause_t *clause = (const haft_clause_t *)words.second;
    haft_resumption_t k = {fiber, shot};
    __attribute__((cleanup(hafti_drop_unused))) haft_resumption_t unused = k;
    haft_answer_t answer =
        ((general_clause_t *)clause->function)(fiber->scope.state, words.first, k);
    unused.fiber = (haft_fiber_t *)0;
    return answer;
}

/* Without a guard the fiber may lie in memory that is the program's when the clause has dropped it.
   Any other header can be read then, though it may be another fiber's. */
HAFTI_INLINE void *hafti_resumption_resume_hot(haft_resumption_t k, haft_reply_t reply) {
    haft_fiber_t *fiber = k.fiber;
    hafti_here_t here = hafti_here();
    if (HAFTI_UNLIKELY(fiber == (haft_fiber_t *)0 || fiber->scope.shot != k.shot ||
                       !hafti_is_reply_to(fiber->awaits, reply.to) ||
                       (fiber->resumer.room & HAFTI_ROOM_LOOK) != 0 ||
                       !hafti_resumes_again(here, fiber)))
        return hafti_resumption_resume_slow(k, reply);
    fiber->scope.shot = k.shot + 2; /* used up */
    hafti_words_t words = hafti_resume_now(here, fiber, reply.word);
    if (HAFTI_UNLIKELY(words.special))
        return hafti_answer_of_ended(fiber, words.first, words.second);
    fiber->context.gate = HAFTI_GATE_OPEN;
    uint64_t shot = fiber->scope.shot;
    haft_answer_t answer = hafti_run_general(fiber, words, shot);
    if (HAFTI_UNLIKELY(answer.next != 0 ||
                       __atomic_load_n(&fiber->scope.shot, __ATOMIC_RELAXED) == shot + 1))
        return hafti_answer_of_promise(fiber, shot, answer);
    return answer.value;
}

#endif
