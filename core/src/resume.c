/* SPDX-License-Identifier: MIT */
/*
 * The out-of-line paths of resuming: the first resume, a new parent, another handled set, another
 * thread, exceptions in flight, tools that want to be told, special stacks.
 */
#include "claim.h"
#include "crossing.h"

HAFT_NEEDS_NO_ROOM

/* Renews the scopes from `from` up to `end`: the chain outside of them has changed. */
static void renew(hafti_thread_t *thread, hafti_scope_t *from, const hafti_scope_t *end) {
    for (hafti_scope_t *scope = from; scope != end; scope = scope->outer)
        haft_scope_renew(thread, scope);
}

void hafti_in_place_moved(hafti_scope_t *performer, const hafti_scope_t *outer) {
    renew(hafti_thread(), performer, outer);
}

/* Whether the fiber now handles other effects than before. */
static bool set_handles(haft_fiber_t *fiber, const haft_handles_t *handles) {
    const haft_handles_t *before = fiber->scope.handles;
    uint32_t number = haft_number_of(handles);
    if (before == handles && fiber->set == number)
        return false;
    /* `before` may have been in a plugin that is closed by now: a number stands for its
       contents. */
    bool same =
        fiber->set != HAFTI_SET_NONE ? fiber->set == number : haft_same_effects(before, handles);
    if (HAFTI_UNLIKELY(haft_is_driven(fiber)))
        haft_use_up(fiber); /* its handler has lost it: a resumption that is kept is used up */
    fiber->scope.handles = handles;
    fiber->set = number;
    return !same;
}

/* The same as hafti_open_gate, by the out-of-line path. */
HAFTI_INLINE void open_gate(haft_fiber_t *fiber) {
    bool slow = haft_resume_slowly || fiber->scope.slow;
    if (HAFTI_UNLIKELY((fiber->resumer.room & HAFTI_ROOM_LOOK) != 0))
        hafti_look_at_stack(fiber);
    __atomic_store_n(&fiber->context.gate, slow ? HAFTI_GATE_SLOW : HAFTI_GATE_OPEN,
                     __ATOMIC_RELEASE);
}

/* The scopes inside the fiber may remember clauses. */
static HAFTI_COLD void tell_of_entry(hafti_thread_t *thread, const haft_fiber_t *fiber,
                                     enum hafti_wake wake) {
    renew(thread, fiber->top, fiber->scope.outer);
    haft_tell_of_fiber(wake == HAFTI_WAKE_UNWIND ? HAFT_OBSERVED_DROP : HAFT_OBSERVED_RESUME, fiber,
                       hafti_awaited(fiber));
}
static HAFTI_COLD void tell_of_arrival(const haft_fiber_t *fiber, hafti_words_t words) {
    const haft_effect_t *thrown = (const haft_effect_t *)words.second;
    if (!words.special)
        haft_tell_of_fiber(HAFT_OBSERVED_PERFORM, fiber, hafti_awaited(fiber));
    else
        haft_tell_of_fiber(HAFT_OBSERVED_FINISH, fiber, thrown != HAFT_ID(return ) ? thrown : NULL);
}

HAFTI_INLINE haft_request_t enter(hafti_thread_t *thread, haft_fiber_t *fiber, void *word,
                                  enum hafti_wake wake, const haft_handles_t *handles,
                                  uint64_t owner) {
    hafti_scope_t *current = thread->current;
    HAFT_CHECK_CHAIN(thread);
    HAFT_CHECK_CLAIMED(fiber);
    haft_set_owner(thread, fiber, owner, thread->current->serial);
    bool changed = set_handles(fiber, handles);
    changed |= fiber->state == HAFT_FIBER_NEW || owner != current->serial;
    if (HAFTI_UNLIKELY(thread->segmented != NULL))
        changed |= haft_resumes_from_foreign_call(fiber);
    if (changed)
        renew(thread, fiber->top, fiber->scope.outer);
    fiber->scope.outer = current;
    fiber->state = HAFT_FIBER_RUNNING;
    if (HAFTI_UNLIKELY(hafti_exceptions_in(thread->exceptions)) && haft_is_observed(thread))
        tell_of_entry(thread, fiber, wake);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* signal handlers see whole scopes */
    thread->current = fiber->top;
    hafti_exceptions_t mine = haft_exceptions_put_aside(thread, fiber, HAFTI_EXCEPTED_RESUMER);
    haft_footing_t footing;
    haft_leave_segments(thread, &footing);
    fiber->within = footing.fiber;
    hafti_words_t words =
        haft_cross(thread, fiber, HAFT_INTO, (hafti_words_t){word, wake, wake != HAFTI_WAKE_REPLY});
    haft_return_to_segments(&footing);
    if (fiber->within == footing.fiber)
        fiber->within = NULL; /* unless it stopped in another one */
    haft_exceptions_put_back(hafti_thread(), fiber, HAFTI_EXCEPTED_RESUMER, mine);
    HAFT_CHECK_CHAIN(hafti_thread());
    HAFT_CHECK_FIBER(fiber);
    if (HAFTI_UNLIKELY(haft_is_observed(hafti_thread())))
        tell_of_arrival(fiber, words);
    if (words.special)
        return hafti_arrived(fiber, (haft_effect_t *)words.second, words.first);
    open_gate(fiber);
    return (haft_request_t){(haft_effect_t *)words.second, words.first};
}

/* The fiber has stopped further in, or has overflowed. */
static HAFTI_COLD void look_further(haft_fiber_t *fiber) {
    if (!haft_has_overflowed(fiber, fiber->context.sp, fiber->within))
        return;
    __atomic_store_n(&fiber->context.gate, HAFTI_GATE_OPEN, __ATOMIC_RELEASE);
    haft_overflowed(fiber);
}

/* Called before the gate is open: afterwards another thread may run the fiber. Looks at the first
   lines of the header and at the canary, and no further, unless something is amiss. */
void hafti_look_at_stack(haft_fiber_t *fiber) {
    size_t room = fiber->resumer.room & HAFTI_ROOM_MOST;
    const char *low = (const char *)fiber - room;
    if (HAFTI_UNLIKELY((uintptr_t)fiber->context.sp - (uintptr_t)low > room ||
                       haft_is_no_canary(low)))
        look_further(fiber);
}

haft_request_t haft_unwind_claimed(haft_fiber_t *fiber, uint64_t owner) {
    return enter(hafti_thread(), fiber, fiber, HAFTI_WAKE_UNWIND, &haft_handles_none, owner);
}

/* Claims the fiber for a resume. */
HAFTI_INLINE uint64_t claim_to_resume(hafti_thread_t *thread, haft_fiber_t *fiber) {
    haft_check_own(fiber, "resumed");
    haft_check_uses(thread, fiber, "resumed");
    return haft_claim_here(thread, fiber, HAFT_ERROR_NOT_RESUMABLE, "resumed");
}

haft_request_t haft_enter(haft_fiber_t *fiber, void *word, enum hafti_wake wake,
                          const haft_handles_t *handles) {
    hafti_thread_t *thread = haft_thread_ready();
    uint64_t owner = claim_to_resume(thread, fiber);
    return enter(thread, fiber, word, wake, handles, owner);
}

/* The first resume of an ordinary fiber by the scope that made it: nothing inside it has a parent,
   a cache or a context worth a look. */
HAFTI_INLINE haft_request_t resume_new(hafti_thread_t *thread, haft_fiber_t *fiber, void *word,
                                       const haft_handles_t *handles) {
    hafti_scope_t *current = thread->current;
    fiber->context.gate = HAFTI_GATE_CLOSED;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (HAFTI_UNLIKELY(fiber->owner != current->serial))
        hafti_resume_raced(fiber);
    haft_scope_renew(thread, &fiber->scope);
    fiber->scope.handles = handles;
    fiber->set = haft_number_of(handles);
    fiber->scope.outer = current;
    fiber->state = HAFT_FIBER_RUNNING;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread->current = &fiber->scope;
    hafti_words_t words = hafti_switch_into(fiber, word);
    if (words.special)
        return hafti_arrived(fiber, (haft_effect_t *)words.second, words.first);
    open_gate(fiber);
    return (haft_request_t){(haft_effect_t *)words.second, words.first};
}

/* Whether resume_new may resume the fiber. */
HAFTI_INLINE bool is_simply_new(const hafti_thread_t *thread, const haft_fiber_t *fiber) {
    return HAFTI_LIKELY(fiber->context.gate == HAFTI_GATE_NEW &&
                        fiber->owner == thread->current->serial &&
                        !hafti_exceptions_in(thread->exceptions));
}

#if defined(HAFTI_SEGMENTS)

/*
 * Short resumes from a segmented fiber, by a scope that has resumed the fiber before or has made
 * it. Their frames lie in the slack of a segment (arch/x86_64/entries.S), so that a fiber that
 * resumes others need not have a second segment. The functions with room do what does not
 * fit in there.
 */
haft_request_t haft_resume_shortly(haft_fiber_t *fiber, void *word, const haft_handles_t *handles);
haft_request_t haft_resume_with_room(haft_fiber_t *fiber, void *word,
                                     const haft_handles_t *handles);
haft_request_t haft_resume_checked_shortly(haft_fiber_t *fiber, haft_reply_t reply,
                                           const haft_handles_t *handles);
haft_request_t haft_resume_checked_with_room(haft_fiber_t *fiber, haft_reply_t reply,
                                             const haft_handles_t *handles);
haft_request_t haft_arrived_with_room(haft_fiber_t *fiber, haft_effect_t *effect, void *payload);
haft_request_t haft_arrived_on_segment(haft_fiber_t *fiber, haft_effect_t *effect, void *payload);

#    ifdef __OPTIMIZE__
enum { FRAMES_FIT = true };
#    else
enum { FRAMES_FIT = false };
#    endif

/* The segmented fiber from which `fiber` may be resumed in short, or NULL. */
HAFTI_INLINE haft_fiber_t *resumes_shortly(const hafti_thread_t *thread, const haft_fiber_t *fiber,
                                           const haft_handles_t *handles) {
    if (!FRAMES_FIT || fiber == NULL || handles == NULL ||
        fiber->owner != thread->current->serial || (fiber->resumer.room & HAFTI_ROOM_LOOK) != 0)
        return NULL;
    bool again = fiber->context.gate == HAFTI_GATE_OPEN &&
                 (fiber->scope.handles == handles ||
                  fiber->set == __atomic_load_n(&handles->number, __ATOMIC_RELAXED));
    bool first = fiber->state == HAFT_FIBER_NEW && fiber->kind == HAFT_KIND_SEGMENTED &&
                 fiber->language == NULL && handles->number >= HAFTI_SET_FIRST;
    return again || first ? haft_only_on_segments(thread) : NULL;
}

HAFTI_INLINE void enter_first(hafti_thread_t *thread, haft_fiber_t *fiber,
                              const haft_handles_t *handles) {
    haft_scope_renew(thread, &fiber->scope);
    fiber->scope.handles = handles;
    fiber->set = handles->number;
    fiber->scope.outer = thread->current;
    fiber->state = HAFT_FIBER_RUNNING;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* `on` runs. The gate has been closed. */
HAFTI_INLINE haft_request_t resume_on_segments(hafti_thread_t *thread, haft_fiber_t *on,
                                               haft_fiber_t *fiber, void *word) {
    HAFT_CHECK_CHAIN(thread);
    thread->current = fiber->top;
    uintptr_t limit = haft_step_off_segments(thread);
    fiber->within = on;
    hafti_words_t words = hafti_switch_into(fiber, word);
    haft_step_on_segments(on, limit);
    if (fiber->within == on)
        fiber->within = NULL; /* unless it stopped in another one */
    haft_effect_t *effect = (haft_effect_t *)words.second;
    if (HAFTI_LIKELY(!words.special)) {
        open_gate(fiber);
    } else {
        if (effect->where == NULL || fiber->kind != HAFT_KIND_SEGMENTED)
            return haft_arrived_with_room(fiber, effect, words.first);
        haft_set_finished(fiber);
    }
    return (haft_request_t){effect, words.first};
}

haft_request_t haft_resume_shortly(haft_fiber_t *fiber, void *word, const haft_handles_t *handles) {
    hafti_thread_t *thread = hafti_thread();
    haft_fiber_t *on = resumes_shortly(thread, fiber, handles);
    if (HAFTI_UNLIKELY(on == NULL))
        return haft_resume_with_room(fiber, word, handles);
    fiber->context.gate = HAFTI_GATE_CLOSED;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (HAFTI_UNLIKELY(fiber->owner != thread->current->serial)) /* which is reported there */
        return haft_resume_with_room(fiber, word, handles);
    if (HAFTI_UNLIKELY(fiber->state == HAFT_FIBER_NEW))
        enter_first(thread, fiber, handles);
    return resume_on_segments(thread, on, fiber, word);
}

haft_request_t haft_arrived_on_segment(haft_fiber_t *fiber, haft_effect_t *effect, void *payload) {
    return hafti_arrived(fiber, effect, payload);
}

haft_request_t haft_resume_checked_shortly(haft_fiber_t *fiber, haft_reply_t reply,
                                           const haft_handles_t *handles) {
    return fiber != NULL && HAFTI_LIKELY(hafti_is_reply_to(fiber->awaits, reply.to))
               ? haft_resume_shortly(fiber, reply.word, handles)
               : haft_resume_checked_with_room(fiber, reply, handles);
}

#endif

haft_request_t hafti_resume_slow(haft_fiber_t *fiber, void *word, const haft_handles_t *handles) {
    hafti_thread_t *thread = haft_thread_ready();
    haft_check_given(fiber, "haft_resume", "fiber");
    haft_check_given(handles, "haft_resume", "set of effects");
    if (is_simply_new(thread, fiber))
        return resume_new(thread, fiber, word, handles);
    return haft_enter(fiber, word, HAFTI_WAKE_REPLY, handles);
}

haft_request_t hafti_resume_checked(haft_fiber_t *fiber, haft_reply_t reply,
                                    const haft_handles_t *handles) {
    hafti_thread_t *thread = haft_thread_ready();
    haft_check_given(fiber, "haft_resume", "fiber");
    haft_check_given(handles, "haft_resume", "set of effects");
    if (is_simply_new(thread, fiber) && HAFTI_LIKELY(reply.to == 0))
        return resume_new(thread, fiber, NULL, handles);
    uint64_t owner = claim_to_resume(thread, fiber);
    uintptr_t awaits = fiber->awaits; /* once it is released, another thread may resume it */
    if (HAFTI_UNLIKELY(!hafti_is_reply_to(awaits, reply.to))) {
        haft_release(thread, fiber, owner);
        haft_check_reply(fiber, awaits, reply); /* reports it */
        __builtin_unreachable();
    }
    return enter(thread, fiber, reply.word, HAFTI_WAKE_REPLY, handles, owner);
}

haft_request_t haft_resume_calling(haft_fiber_t *fiber, void *(*function)(void *), void *argument,
                                   const haft_handles_t *handles) {
    haft_call_t call = {function, argument};
    haft_check_given(fiber, "haft_discontinue", "fiber");
    haft_check_given(handles, "haft_discontinue", "set of effects");
    return haft_enter(fiber, &call, HAFTI_WAKE_CALL, handles);
}

haft_request_t haft_discontinue(haft_fiber_t *fiber, haft_raise_t *raise, void *argument,
                                const haft_handles_t *handles) {
    haft_check_given(fiber, "haft_discontinue", "fiber");
    haft_check_given((void *)(uintptr_t)raise, "haft_discontinue", "function to call");
    haft_raising_t raising = {raise, argument, fiber};
    return haft_resume_calling(fiber, haft_raise, &raising, handles);
}

haft_request_t hafti_arrived(haft_fiber_t *fiber, haft_effect_t *effect, void *payload) {
    if (HAFTI_UNLIKELY(fiber->kind != HAFT_KIND_POOL))
        payload = haft_kind_of(fiber)->ended(fiber, payload);
    haft_set_finished(fiber);
    if (HAFTI_UNLIKELY(effect->where == NULL)) /* it is one of the special ones */
        haft_unwind_on(fiber, effect, payload);
    return (haft_request_t){effect, payload};
}
