/* SPDX-License-Identifier: MIT */
/* The floor of lookup: which handler takes an effect, and what scopes remember of that. */
#ifndef HAFT_LOOKUP_H
#define HAFT_LOOKUP_H

#include "stacks.h"

/* sets.c */
bool haft_same_effects(const haft_handles_t *one, const haft_handles_t *other);
/* The number by which a fiber knows the set; draws it if need be. */
HAFTI_COLD uint32_t haft_number_of_new(const haft_handles_t *handles);
HAFTI_INLINE uint32_t haft_number_of(const haft_handles_t *handles) {
    uint32_t number = __atomic_load_n(&handles->number, __ATOMIC_RELAXED);
    return HAFTI_LIKELY(number >= HAFTI_SET_FIRST) ? number : haft_number_of_new(handles);
}

/* Forgets what was derived from the chain outside of a scope. */
HAFTI_INLINE void haft_scope_forget(hafti_scope_t *scope) {
    for (unsigned left = scope->filled; left != 0; left &= left - 1)
        scope->cache[__builtin_ctz(left)].key = 0;
    scope->filled = 0;
}
HAFTI_INLINE void haft_scope_renew(hafti_thread_t *thread, hafti_scope_t *scope) {
    scope->serial = haft_stamp(thread);
    haft_scope_forget(scope);
}
/* A scope's serial, drawn now if nothing has asked for it before. */
HAFTI_INLINE uint64_t haft_scope_serial(hafti_thread_t *thread, hafti_scope_t *scope) {
    if (HAFTI_UNLIKELY(scope->serial == 0))
        scope->serial = haft_stamp(thread);
    return scope->serial;
}
typedef struct haft_handled {
    const haft_clause_t *clause; /* NULL: there is no handler */
    hafti_scope_t *scope;
    bool slow;       /* a scope on the way needs the out-of-line switch */
    unsigned passed; /* how many scopes the walk went past */
} haft_handled_t;

haft_handled_t haft_search(hafti_scope_t *from, haft_effect_t *effect, uint32_t shape);
/* How that is performed. */
hafti_found_t haft_found_of(haft_handled_t handled, haft_effect_t *effect);
/* hafti_lookup, without an error if no handler handles the effect. */
hafti_found_t haft_look_for(haft_effect_t *effect, unsigned slot, uint32_t shape);
/* Caches what was found for `key` in a slot of the current scope, unless that cannot be done
   safely. */
void haft_remember(hafti_thread_t *thread, unsigned slot, uintptr_t key, hafti_found_t found);

#ifndef HAFT_FREESTANDING
/* observe.c: tell the observer of the thread. `effect` may be NULL; `scope` handles it. */
HAFTI_COLD void haft_tell_of_fiber(haft_observed_kind_t kind, const haft_fiber_t *fiber,
                                   const haft_effect_t *effect);
HAFTI_COLD void haft_tell_of_clause(const haft_effect_t *effect, const hafti_scope_t *scope);
#endif

/* Whether a handler's loop resumes the fiber, and receives the effects that leave it. */
HAFTI_INLINE bool haft_is_driven(const haft_fiber_t *fiber) {
    const haft_handler_t *handler = fiber->handler;
    return handler != NULL && fiber->scope.handles == &handler->handles;
}
/* Uses up every capture of the fiber, also one that haft_tail_resume has promised: the count is
   even again. */
HAFTI_INLINE void haft_use_up(haft_fiber_t *fiber) {
    if (HAFTI_UNLIKELY(fiber->scope.shot & 1))
        haft_forget_promised(fiber);
    fiber->scope.shot = (fiber->scope.shot + 2) & ~UINT64_C(1);
}
/* The clause by which the handler of `fiber` takes an effect that is sent out of it; NULL if the
   code that resumed it takes it. It is an error if the handler has no clause for it. */
const haft_clause_t *haft_clause_taking(const haft_fiber_t *fiber, const haft_effect_t *effect);
/* The second word with which the fiber is suspended: the clause for a handler's loop, the effect
   for a caller of haft_resume. */
uintptr_t haft_sent_by(const haft_fiber_t *fiber, const haft_clause_t *clause,
                       const haft_effect_t *effect);

#endif
