/*
 * Unwinding fibers: dropping what is suspended, throwing, and exceptions that leave a fiber.
 *
 * A stack is unwound by the unwinder of the platform (_Unwind_ForcedUnwind), which runs cleanups and
 * destructors, frame by frame, on that stack. When it reaches the fiber's first frame, the fiber is
 * finished, and either is the target, or the fiber around it goes on from the place where it had
 * resumed the inner one:
 *
 *   innermost ==unwound==> first frame --switch--> its resumer ==unwound==> ... first frame of the target
 *
 * A foreign exception that reaches the first frame is caught there by the personality routine, carried
 * to the resumer, and raised again: the same object, so its type and identity are kept.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <unwind.h>

_Static_assert(sizeof(struct _Unwind_Exception) <= sizeof((haft_fiber_t *)0)->unwinding,
               "the fiber's header has room for the unwinder's record");
_Static_assert(offsetof(haft_fiber_t, unwinding) % _Alignof(struct _Unwind_Exception) == 0,
               "and it is aligned");

static const char unwinding_class[8] = {'H', 'A', 'F', 'T', 'U', 'N', 'W', 'D'};

static struct _Unwind_Exception *unwinding_of(haft_fiber_t *fiber) {
    return (struct _Unwind_Exception *)(void *)fiber->unwinding;
}

static bool in_first_frame(struct _Unwind_Context *context) {
    uintptr_t pc = _Unwind_GetIP(context);
    return pc >= (uintptr_t)haft_fiber_start && pc < (uintptr_t)haft_fiber_start_end;
}

/* A catch-all ended the unwinding: the runtime of C++ deletes the record that it holds. */
static void swallowed(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception) {
    (void)reason;
    haft_fiber_t *fiber =
        (haft_fiber_t *)(void *)((char *)exception - offsetof(haft_fiber_t, unwinding));
    haft_fail(HAFT_ERROR_UNWINDING_STOPPED, fiber->awaits, fiber,
              "%s is being unwound, and a catch-all on it did not rethrow. Write catch (...) so that "
              "it ends in throw.",
              haft_fiber_label(fiber));
}

/* What a fiber ends with once it is unwound. Not in `awaits`: the cleanups may perform. */
typedef struct thrown {
    haft_effect_t *effect;
    _Alignas(max_align_t) char payload[];
} thrown_t;

static __attribute__((noreturn)) void unwound(haft_fiber_t *fiber, haft_fiber_t *target) {
    thrown_t *thrown = fiber->thrown;
    if (fiber != target)
        haft_leave(fiber, &haft_special_unwinding, target);
    if (thrown != NULL)
        haft_leave(fiber, fiber->awaits = thrown->effect, thrown->payload);
    haft_leave(fiber, &haft_special_dropped, NULL);
}

static _Unwind_Reason_Code stop(int version, _Unwind_Action actions,
                                _Unwind_Exception_Class exception_class,
                                struct _Unwind_Exception *exception,
                                struct _Unwind_Context *context, void *target) {
    (void)version, (void)exception_class;
    haft_fiber_t *fiber =
        (haft_fiber_t *)(void *)((char *)exception - offsetof(haft_fiber_t, unwinding));
    if (in_first_frame(context))
        unwound(fiber, target);
    if (actions & _UA_END_OF_STACK)
        haft_fail(HAFT_ERROR_UNWINDING_STOPPED, fiber->awaits, fiber,
                  "%s cannot be unwound: a function on it was compiled without unwind tables.",
                  haft_fiber_label(fiber));
    return _URC_NO_REASON;
}

void haft_unwind(haft_fiber_t *target) {
    haft_fiber_t *fiber = haft_fiber_at(__builtin_frame_address(0));
    struct _Unwind_Exception *exception = unwinding_of(fiber);
    memset(exception, 0, sizeof *exception);
    memcpy(&exception->exception_class, unwinding_class, sizeof unwinding_class);
    exception->exception_cleanup = swallowed;
    haft_tools_unwinding();
    _Unwind_ForcedUnwind(exception, stop, target);
    haft_fail(HAFT_ERROR_UNWINDING_STOPPED, fiber->awaits, fiber,
              "%s cannot be unwound: the unwinder failed.", haft_fiber_label(fiber));
}

/* ---- Throwing ---- */

/* The fiber whose stack resumed this one. The scopes do not tell: a clause that is called in place
   resumes fibers from a stack that its scope is not on. */
static haft_fiber_t *resumer_of(const haft_fiber_t *fiber) {
    return haft_fiber_at(fiber->resumer.sp);
}

/* Whether a fiber from here out to `target` has asked for its cleanups. */
static bool cleanups_up_to(const haft_fiber_t *fiber, const haft_fiber_t *target) {
    while (fiber != NULL && !fiber->cleanups && fiber != target)
        fiber = resumer_of(fiber);
    return fiber == NULL || fiber->cleanups;
}

static void abandon_up_to(haft_fiber_t *fiber, const haft_fiber_t *target) {
    for (; fiber != target; fiber = resumer_of(fiber)) {
        fiber->state = HAFT_FIBER_FINISHED;
        haft_tools_abandon(fiber);
    }
}

/* The fiber on whose stack the suspended `fiber` stopped. */
static haft_fiber_t *innermost(haft_fiber_t *fiber) {
    const char *stopped = fiber->context.sp;
    return stopped >= fiber->low && stopped < fiber->high ? fiber : haft_fiber_at(stopped);
}

bool haft_needs_unwinding(haft_fiber_t *fiber) { return cleanups_up_to(innermost(fiber), fiber); }

void haft_abandon_inside(haft_fiber_t *fiber) { abandon_up_to(innermost(fiber), fiber); }

void haft_exit(haft_fiber_t *fiber, haft_effect_t *effect, const void *payload, size_t size) {
    haft_scope_t *scope = haft_thread_ready()->current;
    while (scope != NULL && (fiber == NULL || scope != &fiber->scope))
        scope = scope->outer;
    if (scope == NULL)
        haft_fail(HAFT_ERROR_NOT_AROUND, effect, fiber,
                  "The effect '%s' cannot end %s: that fiber is not around the current code.",
                  effect->name, haft_fiber_label(fiber));
    if (size != effect->payload_size)
        haft_fail(HAFT_ERROR_WRONG_TYPE, effect, fiber,
                  "The effect '%s' (%s) has a payload of %zu bytes; it was thrown with %zu.",
                  effect->name, effect->where, effect->payload_size, size);
    (void)haft_clause_kind(fiber, effect);
    haft_fiber_t *here = haft_fiber_at(__builtin_frame_address(0));
    fiber->awaits = effect;
    fiber->shot++;
    bool abandoned = !cleanups_up_to(here, fiber);
    if (abandoned && !haft_tools_active) {
        abandon_up_to(here, fiber);
        haft_leave(fiber, effect, (void *)(uintptr_t)payload);
    }
    thrown_t *thrown = malloc(sizeof *thrown + size);
    if (thrown == NULL)
        haft_fail(HAFT_ERROR_NO_MEMORY, effect, fiber,
                  "No memory for the payload of the effect '%s', which was thrown.", effect->name);
    thrown->effect = effect;
    if (size != 0)
        memcpy(thrown->payload, payload, size);
    free(fiber->thrown); /* of a throw whose cleanups throw in their turn */
    fiber->thrown = thrown;
    if (abandoned) { /* and the payload may lie on a fake stack, which ends here */
        abandon_up_to(here, fiber);
        haft_leave(fiber, effect, thrown->payload);
    }
    haft_unwind(fiber);
}

/* ---- Exceptions of other languages ---- */

void haft_fiber_caught(void); /* arch/: where the first frame goes on with an exception */
_Unwind_Reason_Code haft_base_personality(int version, _Unwind_Action actions,
                                          _Unwind_Exception_Class exception_class,
                                          struct _Unwind_Exception *exception,
                                          struct _Unwind_Context *context);

_Unwind_Reason_Code haft_base_personality(int version, _Unwind_Action actions,
                                          _Unwind_Exception_Class exception_class,
                                          struct _Unwind_Exception *exception,
                                          struct _Unwind_Context *context) {
    (void)version, (void)exception_class;
    if (actions & _UA_SEARCH_PHASE)
        return _URC_HANDLER_FOUND;
    if (!(actions & _UA_HANDLER_FRAME))
        return _URC_CONTINUE_UNWIND;
    _Unwind_SetGR(context, 0, (_Unwind_Word)(uintptr_t)exception);
    _Unwind_SetIP(context, (_Unwind_Ptr)(uintptr_t)haft_fiber_caught);
    return _URC_INSTALL_CONTEXT;
}

__attribute__((noreturn)) void haft_fiber_threw(haft_fiber_t *fiber, void *exception);

void haft_fiber_threw(haft_fiber_t *fiber, void *exception) {
    haft_leave(fiber, &haft_special_exception, exception);
}

extern void *__cxa_begin_catch(void *exception) __attribute__((weak));
extern __attribute__((noreturn)) void cxx_terminate(void) __asm__("_ZSt9terminatev")
    __attribute__((weak));

void haft_rethrow(haft_fiber_t *fiber, void *exception) {
    haft_tools_unwinding();
    (void)_Unwind_RaiseException(exception);
    /* Nobody catches it. */
    if (__cxa_begin_catch && cxx_terminate) {
        __cxa_begin_catch(exception);
        cxx_terminate();
    }
    haft_fail(HAFT_ERROR_UNWINDING_STOPPED, NULL, fiber,
              "An exception left %s, and nobody around it catches it.", haft_fiber_label(fiber));
}
