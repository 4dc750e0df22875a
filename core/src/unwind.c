/* SPDX-License-Identifier: MIT */
/*
 * Unwinding fibers: for dropping and throwing (leaving.c), and for exceptions that leave a fiber.
 *
 * A stack is unwound by the unwinder of the platform (_Unwind_ForcedUnwind), which runs cleanups
 * and destructors, frame by frame, on that stack. When it reaches the fiber's first frame, the
 * fiber is finished, and either is the target, or the fiber around it goes on from the place where
 * it had resumed the inner one:
 *
 *   innermost ==unwound==> first frame --switch--> its resumer ==unwound==> ... first frame of the
 * target
 *
 * A foreign exception that reaches the first frame is caught there by the personality routine,
 * carried to the resumer, and raised again: the same object, so its type and identity are kept.
 */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

_Static_assert(sizeof(struct _Unwind_Exception) <= sizeof((haft_fiber_t *)0)->unwinding,
               "the fiber's header has room for the unwinder's record");
_Static_assert(offsetof(haft_fiber_t, unwinding) % _Alignof(struct _Unwind_Exception) == 0,
               "and it is aligned");

static const char unwinding_class[8] = {'H', 'A', 'F', 'T', 'U', 'N', 'W', 'D'};
const char haft_landing_class[8] = {'H', 'A', 'F', 'T', 'L', 'A', 'N', 'D'};

/* ---- What the runtime of C++ knows of it ---- */

typedef void terminate_t(void);
extern terminate_t *cxx_set_terminate(terminate_t *handler) __asm__("_ZSt13set_terminatePFvvE")
    __attribute__((weak));
static terminate_t *terminate_before;

/* Whether what C++ has caught on this thread is an unwinding of ours. Its record of an exception
   ends in the unwinder's, which comes after 80 bytes in libstdc++ and 96 in libc++abi. */
static bool unwinding_caught(void) {
    const char *caught = haft_thread()->globals->caught;
    for (size_t before = 80; caught != NULL && before <= 96; before += 16)
        if (memcmp(caught + before, unwinding_class, sizeof unwinding_class) == 0 ||
            memcmp(caught + before, haft_landing_class, sizeof haft_landing_class) == 0)
            return true;
    return false;
}

/* Whether an unwinding has started on this thread and has not landed. Code that gcc makes
   terminates in the middle of it, and has caught nothing. */
static __thread __attribute__((tls_model("initial-exec"))) bool on_its_way;

void haft_unwinding_goes_on(bool goes_on) {
    on_its_way = goes_on;
}
static bool unwinding_here(void) {
    const haft_exceptions_t *now = haft_thread()->globals;
    return on_its_way && now->caught == NULL && now->uncaught != 0;
}

/* A function that is noexcept ends the program when it is to be unwound. */
static void terminated(void) {
    if (unwinding_caught() || unwinding_here()) {
        const haft_fiber_t *fiber = haft_fiber_here();
        haft_fail(HAFT_ERROR_UNWINDING_STOPPED, NULL, fiber,
                  "%s was being unwound when the program was terminated: a function on it is "
                  "noexcept, which nothing can leave. Let it perform only what is always resumed.",
                  haft_fiber_label(fiber));
    }
    terminate_before();
    abort();
}

static void watch_terminate(void) {
    if (cxx_set_terminate)
        terminate_before = cxx_set_terminate(terminated);
}

void haft_unwinding_starts(void) {
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    haft_thread_t *thread = haft_thread();
    if (thread->globals == &haft_no_exceptions)
        return;
    thread->globals->uncaught++;
    pthread_once(&watched, watch_terminate);
}
void haft_unwinding_stopped(void) {
    haft_thread_t *thread = haft_thread();
    if (thread->globals != &haft_no_exceptions)
        thread->globals->uncaught--;
}

static struct _Unwind_Exception *unwinding_of(haft_fiber_t *fiber) {
    return (struct _Unwind_Exception *)(void *)fiber->unwinding;
}

/* A catch-all ended the unwinding: the runtime of C++ deletes the record that it holds. */
static void swallowed(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception) {
    (void)reason;
    haft_unwinding_stopped();
    haft_fiber_t *fiber =
        (haft_fiber_t *)(void *)((char *)exception - offsetof(haft_fiber_t, unwinding));
    haft_fail(
        HAFT_ERROR_UNWINDING_STOPPED, haft_awaited(fiber), fiber,
        "%s is being unwound, and a catch-all on it did not rethrow. Write catch (...) so that "
        "it ends in throw.",
        haft_fiber_label(fiber));
}

/* What a fiber ends with once it is unwound. Not in `awaits`: the cleanups may perform. */
typedef struct thrown {
    haft_effect_t *effect;
    _Alignas(64) char payload[]; /* which may hold vectors */
} thrown_t;

const void *haft_keep(haft_fiber_t *fiber, haft_effect_t *effect, const void *payload,
                      size_t size) {
    enum { ALIGNMENT = _Alignof(thrown_t) };
    thrown_t *thrown =
        aligned_alloc(ALIGNMENT, (sizeof *thrown + size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (thrown == NULL)
        haft_fail(HAFT_ERROR_NO_MEMORY, effect, fiber,
                  "No memory for the payload of the effect '%s', which was thrown.", effect->name);
    thrown->effect = effect;
    if (size != 0)
        memcpy(thrown->payload, payload, size);
    haft_forget_kept(fiber); /* of a throw whose cleanups throw in their turn */
    fiber->thrown = thrown;
    return thrown->payload;
}

void haft_forget_kept(haft_fiber_t *fiber) {
    free(fiber->thrown);
    fiber->thrown = NULL;
}

void *haft_settle_kept(haft_fiber_t *fiber, void *payload) {
    thrown_t *thrown = fiber->thrown;
    if (thrown == NULL)
        return payload;
    if (payload == thrown->payload) {
        size_t size = thrown->effect->payload_size;
        char *place = (char *)(((uintptr_t)fiber->low + _Alignof(thrown_t) - 1) &
                               ~(uintptr_t)(_Alignof(thrown_t) - 1));
        if (place > (char *)fiber->context.sp || size > (size_t)((char *)fiber->context.sp - place))
            return payload;
        payload = memcpy(place, payload, size);
    }
    haft_forget_kept(fiber);
    return payload;
}

void *haft_copy_reply(const haft_effect_t *effect, const void *reply) {
    void *copy = malloc(effect->result_size);
    if (copy == NULL)
        haft_fail(HAFT_ERROR_NO_MEMORY, effect, NULL, "No memory for a reply to the effect '%s'.",
                  effect->name);
    return memcpy(copy, reply, effect->result_size);
}

void haft_free_reply(void *reply) {
    free(reply);
}

static __attribute__((noreturn)) void unwound(haft_fiber_t *fiber, haft_fiber_t *target) {
    thrown_t *thrown = fiber->thrown;
    if (fiber != target)
        haft_leave(fiber, &haft_special_unwinding, target);
    if (thrown != NULL) {
        fiber->scope.awaits = HAFT_AWAITING(thrown->effect, thrown->effect->result_size);
        haft_leave(fiber, thrown->effect, thrown->payload);
    }
    haft_leave(fiber, &haft_special_dropped, NULL);
}

/* The target was around the fiber when its unwinding began, and still is unless a cleanup was
   suspended meanwhile and resumed by another parent: then the fiber's scope has a new serial. To
   look at every fiber would make the unwinding of many take quadratic time. */
static void check_around(const haft_fiber_t *fiber, const haft_fiber_t *target) {
    const haft_scope_t *scope = &fiber->scope;
    if (HAFT_LIKELY(scope->serial == fiber->unwound_under))
        return;
    while (scope != NULL && scope != &target->scope)
        scope = scope->outer;
    if (scope == NULL)
        haft_fail(HAFT_ERROR_NOT_AROUND, NULL, fiber,
                  "%s is being unwound on behalf of a fiber that is no longer around it: one of "
                  "its cleanups was suspended meanwhile, and resumed elsewhere.",
                  haft_fiber_label(fiber));
}

static _Unwind_Reason_Code stop(int version, _Unwind_Action actions,
                                _Unwind_Exception_Class exception_class,
                                struct _Unwind_Exception *exception,
                                struct _Unwind_Context *context, void *target) {
    (void)version, (void)exception_class;
    haft_fiber_t *fiber =
        (haft_fiber_t *)(void *)((char *)exception - offsetof(haft_fiber_t, unwinding));
    haft_unwinding_goes_on(true);
    if (haft_in_first_frame(_Unwind_GetIP(context))) {
        haft_unwinding_goes_on(false);
        check_around(fiber, target);
        unwound(fiber, target);
    }
    if (actions & _UA_END_OF_STACK) {
        haft_segments_set_limit(0); /* it was changed ahead of the stack */
        haft_fail(HAFT_ERROR_UNWINDING_STOPPED, haft_awaited(fiber), fiber,
                  "%s cannot be unwound: a function on it was compiled without unwind tables.",
                  haft_fiber_label(fiber));
    }
    return _URC_NO_REASON;
}

static void unwind(void *target) {
    haft_fiber_t *fiber = haft_fiber_to_unwind();
    struct _Unwind_Exception *exception = unwinding_of(fiber);
    fiber->unwound_under = haft_scope_serial(haft_thread(), &fiber->scope);
    memset(exception, 0, sizeof *exception);
    memcpy(&exception->exception_class, unwinding_class, sizeof unwinding_class);
    exception->exception_cleanup = swallowed;
    haft_tools_unwinding();
    haft_unwinding_starts();
    _Unwind_ForcedUnwind(exception, stop, target);
    haft_fail(HAFT_ERROR_UNWINDING_STOPPED, haft_awaited(fiber), fiber,
              "%s cannot be unwound: the unwinder failed.", haft_fiber_label(fiber));
}

void haft_unwind(haft_fiber_t *target, haft_frame_t frame) {
    if (haft_nothing_to_clean(frame))
        unwound(haft_fiber_to_unwind(), target);
    haft_on_thread_stack(unwind, target);
    __builtin_unreachable();
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

static void raise(void *exception) {
    (void)_Unwind_RaiseException(exception);
    /* Nobody catches it. */
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
