/* SPDX-License-Identifier: MIT */
/* Unwinding up to a frame, on behalf of another language: haft_unwind_to of haft/language.h. */
#include "forced.h"

_Static_assert(sizeof(struct _Unwind_Exception) <= sizeof((haft_landing_t *)0)->unwinding,
               "a landing has room for the unwinder's record");

static haft_landing_t *landing_of(struct _Unwind_Exception *exception) {
    return (haft_landing_t *)(void *)((char *)exception - offsetof(haft_landing_t, unwinding));
}

static __attribute__((noreturn)) void stopped(const char *how) {
    hafti_segments_set_limit(0); /* the unwinder may have changed it ahead of the stack */
    haft_fiber_t *fiber = haft_fiber_here();
    haft_fail(HAFT_ERROR_UNWINDING_STOPPED, NULL, fiber,
              "A clause has thrown, and %s, which it leaves, cannot be unwound: %s.",
              haft_fiber_label(fiber), how);
}

static void swallowed(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception) {
    (void)reason;
    if (haft_unwinding_was_left(exception))
        return;
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
        hafti_segments_set_limit(0); /* the unwinder has changed it ahead of the stack */
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
    landing->here = haft_on_this_fiber(landing->sp);
    haft_force_unwinding(landing->unwinding, swallowed, stop, NULL);
    stopped("the unwinder failed");
}

bool haft_can_unwind_to(const haft_landing_t *landing) {
    const haft_fiber_t *target =
        landing->fiber != NULL ? landing->fiber : haft_fiber_at(landing->sp);
    const haft_fiber_t *fiber = haft_fiber_here();
    while (fiber != NULL && fiber != target && !haft_on_this_fiber(landing->sp))
        fiber = haft_resumer_of(fiber);
    return fiber == target || haft_on_this_fiber(landing->sp);
}

void haft_unwind_to(haft_landing_t *landing) {
    haft_on_thread_stack(unwind_to, landing);
    __builtin_unreachable();
}
