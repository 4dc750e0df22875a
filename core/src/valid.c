/* SPDX-License-Identifier: MIT */
/* The invariants that debug builds check: see valid.h. Not instrumented: in a child of fork the
   thread sanitizer takes fibers that do not run for threads that do, whose memory is read here. */
#include "stacks.h"

#if !defined(NDEBUG) && !defined(HAFT_FREESTANDING)

enum { LOOKED_AT = 16 }; /* scopes of a chain: it may be long, and is looked at often */

/* A handler of signals may write an entry between any two reads, its bit before its key. */
static HAFT_UNINSTRUMENTED const char *invalid_scope(const hafti_scope_t *scope) {
    if (scope->kind > HAFTI_SCOPE_DEFAULTS)
        return "a scope is of a kind that there is";
    for (unsigned i = 0; i < HAFTI_CACHE_SLOTS; i++) {
        uintptr_t key = *(const volatile uintptr_t *)&scope->cache[i].key;
        uint8_t filled = *(const volatile uint8_t *)&scope->filled;
        if (key != 0 && (filled >> i & 1) == 0)
            return "every entry of a scope's cache with a key has its bit in `filled`";
    }
    return NULL;
}

HAFT_UNINSTRUMENTED const char *haft_invalid_fiber(const haft_fiber_t *fiber) {
    if (fiber->kind > HAFT_KIND_COPIED)
        return "a fiber's stack is of a kind that there is";
    if (fiber->scope.kind != HAFTI_SCOPE_FIBER)
        return "the scope in a fiber's header is that of a fiber";
    if (fiber->state > HAFT_FIBER_DROPPED)
        return "a fiber's state is one that there is";
    if (fiber->low >= fiber->high || fiber->high > (const char *)fiber)
        return "a fiber's stack lies below its header";
    if (fiber->language == NULL && fiber->context.gate > HAFTI_GATE_NEW)
        return "a fiber's gate is in a state that there is";
    return invalid_scope(&fiber->scope);
}

HAFT_UNINSTRUMENTED const char *haft_invalid_claimed(const haft_fiber_t *fiber) {
    const char *invalid = haft_invalid_fiber(fiber);
    if (invalid != NULL)
        return invalid;
    if (fiber->context.gate != HAFTI_GATE_CLOSED)
        return "the gate of a claimed fiber is closed";
    if (fiber->state != HAFT_FIBER_NEW && fiber->state != HAFT_FIBER_RUNNING)
        return "a claimed fiber is new or suspended";
    if (fiber->state == HAFT_FIBER_NEW &&
        (fiber->top != &fiber->scope || fiber->awaits != HAFTI_AWAITS_NOTHING))
        return "a new fiber has no scopes inside, and waits for nothing";
    if (fiber->context.pc == NULL || fiber->context.sp == NULL)
        return "a suspended fiber has a context to go on with";
    unsigned seen = 0;
    for (const hafti_scope_t *scope = fiber->top; scope != &fiber->scope; scope = scope->outer) {
        if (scope == NULL)
            return "the suspended chain of a fiber ends in its scope";
        if (++seen > LOOKED_AT)
            break;
        invalid = invalid_scope(scope);
        if (invalid != NULL)
            return invalid;
    }
    return NULL;
}

HAFT_UNINSTRUMENTED const char *haft_invalid_chain(const hafti_thread_t *thread) {
    const hafti_scope_t *scope = thread->current;
    for (unsigned seen = 0; seen < LOOKED_AT && scope->kind != HAFTI_SCOPE_ROOT; seen++) {
        const char *invalid = invalid_scope(scope);
        if (invalid != NULL)
            return invalid;
        const haft_fiber_t *fiber = hafti_fiber_of((hafti_scope_t *)(uintptr_t)scope);
        /* (One that is just being left for good has another state: a handler of signals may look
           then.) */
        if (scope->kind == HAFTI_SCOPE_FIBER && fiber->language == NULL &&
            (fiber->state < HAFT_FIBER_RUNNING || fiber->context.gate != HAFTI_GATE_CLOSED))
            return "the fibers around the running code are running";
        scope = scope->outer;
        if (scope == NULL)
            return "a chain ends in the root of a thread";
    }
    return scope->kind == HAFTI_SCOPE_ROOT &&
                   scope != &(thread->home != NULL ? thread->home : thread)->root
               ? "a chain ends in its own thread's root"
               : NULL;
}

void haft_invalid(const char *invariant, const haft_fiber_t *fiber) {
    haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, fiber,
              "An invariant of the library does not hold: %s. Memory of the library has been "
              "overwritten, or it has a defect.",
              invariant);
}

#endif
