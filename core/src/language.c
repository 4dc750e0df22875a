/* SPDX-License-Identifier: MIT */
/* The functions of haft/language.h, for implementing a language on the library. */
#include "languages.h"

#include <errno.h>

void haft_language_thread_exits(hafti_thread_t *thread) {
    if (thread->language == NULL)
        return;
    /* Scopes on the thread's own stack may have been overwritten. */
    hafti_scope_t *scope = thread->current;
    while (scope != NULL && haft_pool_fiber_at(scope) != NULL) {
        hafti_scope_t *outer = scope->outer;
        if (scope->kind == HAFTI_SCOPE_FIBER)
            thread->language->abandoned(hafti_fiber_of(scope));
        scope = outer;
    }
}

void haft_language_register(const haft_language_t *language) {
    haft_process_language = language;
    haft_tell_of_switches();
    hafti_thread_t *thread = haft_thread_ready();
    thread->language = language;
    haft_exceptions_at_rest(thread);
}

hafti_thread_t *haft_language_thread(void) {
    return haft_thread_ready();
}

haft_fiber_t *haft_language_take(const haft_language_t *language, size_t size) {
    haft_fiber_t *fiber = haft_pool_take(haft_thread_ready(), size);
    if (fiber == NULL)
        return NULL;
    /* No code would check a canary. */
    if (fiber->kind != HAFT_KIND_POOL) {
        haft_pool_give(haft_thread_ready(), fiber);
        errno = ENOMEM;
        return NULL;
    }
    fiber->context = fiber->resumer = (hafti_context_t){.sp = fiber->high};
    fiber->owner = 0;
    fiber->context.gate = HAFTI_GATE_CLOSED;
    fiber->awaits = HAFTI_AWAITS_NOTHING;
    fiber->scope = (hafti_scope_t){.handles = language->handles};
    haft_furnish(fiber, language->name);
    fiber->scope.slow = 1;
    fiber->top = &fiber->scope;
    fiber->of_language = 0;
    fiber->within = NULL;
    fiber->state = HAFT_FIBER_RUNNING;
    fiber->language = language;
    return fiber;
}

void haft_language_give(haft_fiber_t *fiber) {
    fiber->language = NULL;
    fiber->state = HAFT_FIBER_FINISHED;
    fiber->owner = haft_thread_ready()->stamp; /* this thread's */
    if (fiber->kind == HAFT_KIND_POOL)
        fiber->uses = 1; /* A language keeps stacks for itself: this one may have been deep. */
    haft_fiber_drop(fiber);
}

void haft_language_leave(haft_fiber_t *fiber) {
    haft_leave(fiber, &haft_special_dropped, NULL);
}

void haft_language_moved(hafti_scope_t *top, haft_fiber_t *fiber) {
    for (hafti_scope_t *scope = top;; scope = scope->outer) {
        haft_scope_forget(scope);
        scope->serial = scope->kind == HAFTI_SCOPE_FIBER && hafti_fiber_of(scope)->language != NULL
                            ? 0
                            : haft_stamp(haft_thread_ready());
        if (scope == &fiber->scope)
            return;
    }
}

void *haft_fiber_reserve(haft_fiber_t *fiber, size_t size) {
    char *high = fiber->context.sp;
    char *low = (char *)(((uintptr_t)high - size) & ~(uintptr_t)63);
    if ((size_t)(high - fiber->low) < size + HAFT_FIBER_MINIMUM / 2)
        haft_fail(
            HAFT_ERROR_BAD_ARGUMENT, NULL, fiber,
            fiber->kind == HAFT_KIND_SEGMENTED
                ? "%s has a segmented stack, on which the %zu bytes of its computation have no "
                  "room: computations of haft.hpp are not segmented. Leave out .segmented, or "
                  "use haft.h."
                : "The stack of %s has no room for the %zu bytes of its computation.",
            haft_fiber_label(fiber), size);
    enum { RED_ZONE = 128 }; /* below the stack pointer, which to Valgrind is addressable */
    haft_tools_reserved(low - RED_ZONE, (size_t)(high - low) + RED_ZONE);
    fiber->context.sp = low;
    return low;
}
