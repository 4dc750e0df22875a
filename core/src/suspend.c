/* SPDX-License-Identifier: MIT */
/* The out-of-line paths of suspending: exceptions in flight, tools that want to be told, special
   stacks, clauses that unwind; and effects that are sent out of a fiber by its name. */
#include "crossing.h"
#include "resuming.h"

HAFT_NEEDS_NO_ROOM

static void *suspend_slow(haft_fiber_t *fiber, haft_effect_t *effect, uintptr_t with, void *payload,
                          bool slow) {
    hafti_thread_t *thread = hafti_thread();
    HAFT_CHECK_CHAIN(thread);
    HAFT_CHECK_FIBER(fiber);
    if (HAFTI_UNLIKELY(haft_foreign_calls_seen))
        haft_check_foreign_calls(fiber, effect);
    fiber->top = thread->current;
    fiber->awaits = haft_awaiting(effect);
    thread->current = fiber->scope.outer;
    hafti_exceptions_t mine = haft_exceptions_put_aside(thread, fiber, HAFTI_EXCEPTED_PERFORMER);
    haft_footing_t footing;
    haft_leave_segments(thread, &footing);
    fiber->within = footing.fiber;
    if (slow) { /* the next resume has to take the slow path, too */
        uint64_t owner = fiber->scope.outer->serial;
        (void)__atomic_compare_exchange_n(&fiber->owner, &owner, 0, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST);
    }
    hafti_words_t words =
        haft_cross(thread, fiber, HAFT_OUT_OF, (hafti_words_t){payload, with, false});
    haft_return_to_segments(&footing);
    if (fiber->within == footing.fiber)
        fiber->within = NULL; /* unless another one has resumed it */
    haft_exceptions_put_back(hafti_thread(), fiber, HAFTI_EXCEPTED_PERFORMER, mine);
    return words.special ? hafti_woken(words.first, words.second) : words.first;
}

/* The same by a short switch from the segmented fiber `on`. */
HAFTI_INLINE void *suspend_on_segments(hafti_thread_t *thread, haft_fiber_t *on,
                                       hafti_found_t found, const haft_effect_t *effect,
                                       void *payload) {
    haft_fiber_t *fiber = hafti_fiber_of(found.scope);
    HAFT_CHECK_CHAIN(thread);
    HAFT_CHECK_FIBER(fiber);
    fiber->top = thread->current;
    fiber->awaits = haft_awaiting(effect);
    thread->current = fiber->scope.outer;
    fiber->within = on;
    uintptr_t limit = haft_step_off_segments(thread);
    hafti_words_t words = hafti_switch_out_of(fiber, payload, found.with);
    haft_step_on_segments(on, limit);
    if (fiber->within == on)
        fiber->within = NULL; /* unless another one has resumed it */
    return HAFTI_UNLIKELY(words.special) ? hafti_woken(words.first, words.second) : words.first;
}

typedef struct performed {
    haft_fiber_t *fiber;
    haft_effect_t *effect;
    void *payload;
} performed_t;

static void exit_with(void *argument) {
    const performed_t *performed = argument;
    haft_exit(performed->fiber, performed->effect, performed->payload,
              performed->effect->payload_size);
}

/* On a segmented fiber this function and its callees must make do with the last bytes of a
   segment. */
static __attribute__((noinline)) void *suspend_or_exit(hafti_found_t found, haft_effect_t *effect,
                                                       void *payload) {
    haft_fiber_t *fiber = hafti_fiber_of(found.scope);
    const haft_clause_t *clause = hafti_clause_of(found);
    haft_check_default(clause, effect);
    haft_check_suspends(hafti_thread(), effect);
    if (clause == NULL)
        return suspend_slow(fiber, effect, found.with, payload, false);
    if (clause->kind == HAFT_CLAUSE_NEVER) {
        performed_t performed = {fiber, effect, payload};
        haft_on_thread_stack(exit_with, &performed);
    }
    return suspend_slow(fiber, effect, haft_sent_by(fiber, clause, effect), payload, true);
}

/* On a segmented fiber this function makes do with the last bytes of a segment, too. */
void *hafti_suspend_slow(hafti_found_t found, haft_effect_t *effect, void *payload) {
    hafti_thread_t *thread = hafti_thread();
    haft_fiber_t *on = haft_only_on_segments(thread);
    return on != NULL && hafti_clause_of(found) == NULL
               ? suspend_on_segments(thread, on, found, effect, payload)
               : suspend_or_exit(found, effect, payload);
}

/* Whether crossing from the current scope out of `fiber` needs the slow switch; an error when
   `fiber` is not around the current scope. */
static bool around(hafti_thread_t *thread, haft_fiber_t *fiber, const haft_effect_t *effect) {
    bool slow = haft_tools_active;
    for (hafti_scope_t *scope = thread->current; scope != NULL; scope = scope->outer) {
        slow |= scope->slow;
        if (fiber != NULL && scope == &fiber->scope)
            return slow;
    }
    haft_fail(
        HAFT_ERROR_NOT_AROUND, effect, fiber,
        "The effect '%s' cannot be sent out of %s: that fiber is not around the current code.",
        effect->name, haft_fiber_label(fiber));
}

void *hafti_yield_slow(haft_fiber_t *fiber, haft_effect_t *effect, unsigned slot, void *payload) {
    hafti_thread_t *thread = haft_thread_ready();
    haft_check_own(fiber, "suspended");
    haft_check_suspends(thread, effect);
    bool slow = around(thread, fiber, effect);
    const haft_clause_t *clause = haft_clause_taking(fiber, effect);
    if (clause != NULL && clause->kind == HAFT_CLAUSE_NEVER)
        haft_exit(fiber, effect, payload, effect->payload_size);
    hafti_found_t found = haft_look_for(effect, slot, effect->default_clause.shape);
    hafti_here_t here = hafti_here();
    if (found.scope == &fiber->scope && hafti_clause_of(found) == NULL &&
        !hafti_exceptions_pending(here))
        return hafti_suspend(here, fiber, haft_awaiting(effect), found.with, payload);
    return suspend_slow(fiber, effect, haft_sent_by(fiber, clause, effect), payload, slow);
}

void *hafti_woken(void *word, uintptr_t wake) {
    if (wake == HAFTI_WAKE_UNWIND)
        haft_unwind(word, HAFT_CALLERS_FRAME());
    const haft_call_t *call = word;
    return call->function(call->argument);
}
