/* SPDX-License-Identifier: MIT */
/*
 * Unwinding fibers: for dropping and throwing (leaving.c), and for exceptions that leave a fiber.
 *
 * The platform's unwinder (_Unwind_ForcedUnwind) unwinds a stack: it runs cleanups and destructors,
 * frame by frame, on that stack. When it reaches the fiber's first frame, the fiber is finished. If
 * the fiber is not the target, the unwinding goes on in the fiber around it, from the place where
 * that one resumed the inner fiber:
 *
 *   innermost ==unwound==> first frame --switch--> its resumer ==unwound==> ...
 *                                                         ... ==unwound==> first frame of the
 *                                                         target
 *
 * The personality routine of the first frame catches a foreign exception that reaches it; the
 * exception is carried to the resumer and raised there again, as the same object.
 *
 * A catch (...) of C++ catches the unwinding, too. Where it ends without `throw;`, the unwinding
 * begins again, from the end of the block on (go_on).
 */
#include "forced.h"

_Static_assert(sizeof(struct _Unwind_Exception) <= sizeof((haft_fiber_t *)0)->unwinding,
               "the fiber's header has room for the unwinder's record");
_Static_assert(offsetof(haft_fiber_t, unwinding) % _Alignof(struct _Unwind_Exception) == 0,
               "and it is aligned");

static __attribute__((noreturn)) void unwound(haft_fiber_t *fiber, haft_fiber_t *target) {
    fiber->unwound_under = 0;
    fiber->excepted &= HAFTI_EXCEPTED_RESUMER;
    if (fiber != target)
        haft_leave(fiber, &haft_special_unwinding, target);
    if (fiber->thrown != NULL) {
        haft_effect_t *effect = haft_kept_effect(fiber);
        fiber->awaits = haft_awaiting(effect);
        haft_leave(fiber, effect, haft_kept_payload(fiber));
    }
    haft_leave(fiber, &haft_special_dropped, NULL);
}

/* The target was around the fiber when its unwinding began, and still is unless a cleanup was
   suspended meanwhile and resumed by another parent: then the fiber's scope has a new serial. To
   look at every fiber would make the unwinding of many take quadratic time. */
static bool is_around(const haft_fiber_t *fiber, const haft_fiber_t *target) {
    const hafti_scope_t *scope = &fiber->scope;
    if (HAFTI_LIKELY(scope->serial == fiber->unwound_under))
        return true;
    while (scope != NULL && scope != &target->scope)
        scope = scope->outer;
    return scope != NULL;
}
static void check_around(const haft_fiber_t *fiber, const haft_fiber_t *target) {
    if (!is_around(fiber, target))
        haft_fail(HAFT_ERROR_NOT_AROUND, NULL, fiber,
                  "%s is being unwound on behalf of a fiber that is no longer around it: one of "
                  "its cleanups was suspended meanwhile, and resumed elsewhere.",
                  haft_fiber_label(fiber));
}

static haft_fiber_t *unwound_by(struct _Unwind_Exception *exception) {
    return (haft_fiber_t *)(void *)((char *)exception - offsetof(haft_fiber_t, unwinding));
}

static _Unwind_Reason_Code stop(int version, _Unwind_Action actions,
                                _Unwind_Exception_Class exception_class,
                                struct _Unwind_Exception *exception,
                                struct _Unwind_Context *context, void *target) {
    (void)version, (void)exception_class;
    haft_fiber_t *fiber = unwound_by(exception);
    haft_unwinding_goes_on(exception);
    if (haft_in_first_frame(_Unwind_GetIP(context))) {
        haft_unwinding_landed(exception);
        check_around(fiber, target);
        unwound(fiber, target);
    }
    if (actions & _UA_END_OF_STACK) {
        hafti_segments_set_limit(0); /* it was changed ahead of the stack */
        haft_fail(HAFT_ERROR_UNWINDING_STOPPED, hafti_awaited(fiber), fiber,
                  "%s cannot be unwound: a function on it was compiled without unwind tables.",
                  haft_fiber_label(fiber));
    }
    return _URC_NO_REASON;
}

static void let_go(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception);

static void unwind_towards(haft_fiber_t *fiber, void *target) {
    haft_force_unwinding(fiber->unwinding, let_go, stop, target);
    haft_fail(HAFT_ERROR_UNWINDING_STOPPED, hafti_awaited(fiber), fiber,
              "%s cannot be unwound: the unwinder failed.", haft_fiber_label(fiber));
}

static void unwind(void *target) {
    haft_fiber_t *fiber = haft_fiber_to_unwind();
    fiber->unwound_under = haft_scope_serial(hafti_thread(), &fiber->scope);
    unwind_towards(fiber, target);
}

/* (The unwinder has the argument of `stop` there.) */
static haft_fiber_t *target_of(const struct _Unwind_Exception *exception) {
    return (haft_fiber_t *)(uintptr_t)exception->private_2;
}

static void go_on(void *exception) {
    unwind_towards(unwound_by(exception), target_of(exception));
}

/* A catch-all of C++ lets go of the unwinding: the runtime deletes the record that it holds. */
static void let_go(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception) {
    (void)reason;
    haft_fiber_t *fiber = unwound_by(exception);
    switch (haft_unwinding_let_go(exception)) {
    case HAFT_SWALLOWED:
        haft_on_thread_stack(go_on, exception);
        break;
    case HAFT_REPLACED: /* if that is caught on the way, the computation goes on */
        if (is_around(fiber, target_of(exception)))
            haft_forget_kept(target_of(exception));
        fiber->unwound_under = 0;
        break;
    case HAFT_BEGUN_AGAIN:
        break;
    }
}

void haft_unwind(haft_fiber_t *target, haft_frame_t frame) {
    /* (On a segment there is no room to look.) */
    if (hafti_thread()->segmented == NULL && haft_nothing_to_clean(frame))
        unwound(haft_fiber_to_unwind(), target);
    haft_on_thread_stack(unwind, target);
    __builtin_unreachable();
}

/* ---- Exceptions of other languages ---- */

extern void *__cxa_begin_catch(void *exception) __attribute__((weak));
extern __attribute__((noreturn)) void cxx_terminate(void) __asm__("_ZSt9terminatev")
    __attribute__((weak));

static void raise(void *exception) {
    (void)_Unwind_RaiseException(exception);
    /* No handler catches it. */
    if (__cxa_begin_catch && cxx_terminate) {
        __cxa_begin_catch(exception);
        cxx_terminate();
    }
}

static __attribute__((noreturn)) void rethrow(haft_fiber_t *fiber, void *exception) {
    haft_tools_unwinding();
    haft_on_thread_stack(raise, exception);
    haft_fail(HAFT_ERROR_UNWINDING_STOPPED, NULL, fiber,
              "An exception left %s, and nobody around it catches it.", haft_fiber_label(fiber));
}

void haft_unwind_on(haft_fiber_t *fiber, haft_effect_t *effect, void *payload) {
    if (effect == &haft_special_unwinding)
        haft_unwind(payload, haft_this_frame());
    if (effect == &haft_special_exception)
        rethrow(fiber, payload);
    if (effect == &haft_special_landed && ((haft_landing_t *)payload)->fiber != fiber)
        haft_unwind_to(payload);
}
