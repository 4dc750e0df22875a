/* SPDX-License-Identifier: MIT */
/*
 * Observed threads (haft/observe.h). `thread->exceptions` of one points to an object that is never
 * empty: so no inlined path switches, and every resume comes to `enter` (resume.c), which calls the
 * observer. A clause that is called in place is not remembered: so each such perform comes to
 * lookup.c, which calls it, too.
 */
#include "lookup.h"

#include <haft/segments.h>

/* No scope of the thread remembers a clause then, nor may any resume a fiber as before: so the
   scopes inside a fiber forget theirs when it is resumed. */
haft_observer_t *haft_observe(haft_observer_t *observer) {
    hafti_thread_t *thread = haft_thread_ready();
    haft_observer_t *before = haft_observer();
    haft_set_observer(observer);
    if (thread->segmented == NULL)
        haft_exceptions_at_rest(thread);
    if (observer != NULL && before == NULL)
        for (hafti_scope_t *scope = thread->current; scope != NULL; scope = scope->outer)
            haft_scope_renew(thread, scope);
    return before;
}

static void tell(void *what) {
    haft_observer_t *observer = haft_observer();
    if (observer != NULL)
        observer(what);
}

void haft_tell_of_fiber(haft_observed_kind_t kind, const haft_fiber_t *fiber,
                        const haft_effect_t *effect) {
    const haft_handler_t *handler = haft_is_driven(fiber) ? fiber->handler : NULL;
    bool is_named = handler != NULL && handler->name != NULL;
    haft_observed_t what = {kind, fiber, effect, fiber->scope.handles,
                            is_named ? handler->name : fiber->name};
    haft_on_thread_stack(tell, &what);
}

void haft_tell_of_clause(const haft_effect_t *effect, const hafti_scope_t *scope) {
    haft_observed_t what = {.kind = HAFT_OBSERVED_HANDLE,
                            .effect = effect,
                            .handles = scope->kind != HAFTI_SCOPE_DEFAULTS ? scope->handles : NULL};
    haft_on_thread_stack(tell, &what);
}
