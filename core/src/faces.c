/* SPDX-License-Identifier: MIT */
/* What the faces of other languages build on: see haft/faces.h. */
#include "internal.h"

#include <string.h>
#include <unwind.h>

_Static_assert(sizeof(struct _Unwind_Exception) <= sizeof((haft_landing_t *)0)->unwinding,
               "a landing has room for the unwinder's record");

void haft_used_resumption(const haft_effect_t *effect, const char *what) {
    if (effect == NULL)
        haft_fail(HAFT_ERROR_USED_RESUMPTION, NULL, NULL,
                  "A resumption that waits on no effect cannot be %s: it is empty, has been used "
                  "already, or moved away.",
                  what);
    haft_fail(HAFT_ERROR_USED_RESUMPTION, effect, NULL,
              "A resumption of the effect '%s' cannot be %s: it has been used already, or moved "
              "away.",
              effect->name, what);
}

void *haft_fiber_reserve(haft_fiber_t *fiber, size_t size) {
    char *high = fiber->context.sp;
    char *low = (char *)(((uintptr_t)high - size) & ~(uintptr_t)63);
    if ((size_t)(high - fiber->low) < size + HAFT_FIBER_MINIMUM / 2)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, fiber,
                  "The stack of %s has no room for the %zu bytes of its computation.",
                  haft_fiber_label(fiber), size);
    haft_tools_reserved(low, (size_t)(high - low));
    fiber->context.sp = low;
    return low;
}

/* ---- Performing to a handler by name ---- */

haft_found_t haft_lookup_at(haft_scope_t *target, haft_effect_t *effect, unsigned slot,
                            uint32_t shape) {
    haft_thread_t *thread = haft_thread_ready();
    haft_scope_t *scope = thread->current;
    bool slow = haft_tools_active;
    for (; scope != NULL && scope != target; scope = scope->outer) {
        (void)haft_scope_serial(thread, scope);
        slow |= scope->slow;
    }
    if (scope == NULL)
        haft_fail(
            HAFT_ERROR_NOT_AROUND, effect, NULL,
            "The effect '%s' cannot be performed to that handler: it is not around the current "
            "code.",
            effect->name);
    haft_handled_t handled = haft_search(target, effect, shape);
    if (handled.scope != target)
        haft_unhandled(effect);
    handled.slow |= slow;
    haft_found_t found = haft_found_of(handled, effect);
    if (haft_clause_in_place(found) == NULL)
        haft_check_suspends(thread, effect);
    haft_remember(thread, slot, (uintptr_t)effect + HAFT_AT_MARK, found);
    return found;
}

/* ---- Unwinding up to a frame ---- */

haft_effect_t haft_special_landed = {.name = "landed"};

static haft_landing_t *landing_of(struct _Unwind_Exception *exception) {
    return (haft_landing_t *)(void *)((char *)exception - offsetof(haft_landing_t, unwinding));
}

static __attribute__((noreturn)) void stopped(const char *how) {
    haft_segments_set_limit(0); /* the unwinder may have changed it ahead of the stack */
    haft_fiber_t *fiber = haft_fiber_here();
    haft_fail(HAFT_ERROR_UNWINDING_STOPPED, NULL, fiber,
              "A clause has thrown, and %s, which it leaves, cannot be unwound: %s.",
              haft_fiber_label(fiber), how);
}

static void swallowed(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception) {
    (void)reason, (void)exception;
    haft_unwinding_stopped();
    stopped("a catch-all on it did not rethrow. Write catch (...) so that it ends in throw");
}

static _Unwind_Reason_Code stop(int version, _Unwind_Action actions,
                                _Unwind_Exception_Class exception_class,
                                struct _Unwind_Exception *exception,
                                struct _Unwind_Context *context, void *argument) {
    (void)version, (void)exception_class, (void)argument;
    haft_landing_t *landing = landing_of(exception);
    haft_unwinding_goes_on(true);
    if (landing->fiber == NULL && landing->here &&
        haft_unwound_to(_Unwind_GetCFA(context), landing->sp)) {
        haft_segments_set_limit(0); /* the unwinder has changed it ahead of the stack */
        haft_unwinding_goes_on(false);
        landing->land(landing);
    }
    if (haft_in_first_frame(_Unwind_GetIP(context))) {
        haft_unwinding_goes_on(false);
        haft_leave(haft_fiber_here(), &haft_special_landed, landing);
    }
    if (actions & _UA_END_OF_STACK)
        stopped("a function on it was compiled without unwind tables");
    return _URC_NO_REASON;
}

static void unwind_to(void *argument) {
    haft_landing_t *landing = argument;
    struct _Unwind_Exception *exception = (struct _Unwind_Exception *)(void *)landing->unwinding;
    landing->here = haft_on_this_fiber(landing->sp);
    memset(exception, 0, sizeof *exception);
    memcpy(&exception->exception_class, haft_landing_class, sizeof exception->exception_class);
    exception->exception_cleanup = swallowed;
    haft_tools_unwinding();
    haft_unwinding_starts();
    _Unwind_ForcedUnwind(exception, stop, NULL);
    stopped("the unwinder failed");
}

void haft_unwind_to(haft_landing_t *landing) {
    haft_on_thread_stack(unwind_to, landing);
    __builtin_unreachable();
}
