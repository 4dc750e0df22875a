/* SPDX-License-Identifier: MIT */
/*
 * The first frame of a fiber (arch/ has its code), and how a fiber is left for good.
 */
#include "switching.h"

#ifndef HAFT_FREESTANDING
#    include <unwind.h>
#endif

/* Layout that the switch (haft/switch_*.h) and the first frame (arch/) have as numbers. */
_Static_assert(offsetof(haft_fiber_t, context) == 0, "a switch finds a fiber's context there");
_Static_assert(offsetof(haft_fiber_t, resumer) == 64, "and its resumer's there, as start.S does");
_Static_assert(offsetof(hafti_context_t, fp) == 0 && offsetof(hafti_context_t, pc) == 8 &&
                   offsetof(hafti_context_t, sp) == 16 && offsetof(hafti_context_t, base) == 24,
               "registers in a context; the unwind information of start.S has them, too");
_Static_assert(offsetof(hafti_context_t, control) == 32, "the control word of floating point");
_Static_assert(offsetof(haft_fiber_t, scope.scratch) == 140, "for the switch of x86-64");
_Static_assert(offsetof(haft_fiber_t, scope.serial) + sizeof(uint64_t) == 128,
               "what a resume and a request need lies on two lines");
_Static_assert(HAFTI_WAKE_REPLY == 0, "start.S clears a register for it");
_Static_assert(offsetof(haft_fiber_t, state) == 432 && HAFT_FIBER_FINISHED == 3,
               "entries.S knows fibers that have finished");

haft_effect_t haft_id_return = {.name = "return",
                                .where = "haft.h",
                                .payload_size = sizeof(haft_payload_return),
                                .default_clause = {.effect = &haft_id_return}};
/* The ways in which a fiber comes back to its resumer without a request. Only these effects have no
   `where`: resume.c knows them by that. */
haft_effect_t haft_special_unwinding = {.name =
                                            "unwinding"}; /* go on up to the fiber in the payload */
haft_effect_t haft_special_exception = {.name = "exception"}; /* a foreign exception, the payload */
haft_effect_t haft_special_dropped = {.name = "dropped"};     /* the fiber is unwound, as asked */

haft_effect_t haft_special_landed = {.name = "landed"};

HAFTI_INLINE HAFT_UNINSTRUMENTED __attribute__((noreturn)) void
part(hafti_thread_t *thread, haft_fiber_t *fiber, haft_effect_t *effect, void *payload) {
    thread->current = fiber->scope.outer;
    hafti_switch_out_for_good(fiber, payload, (uintptr_t)effect);
}

HAFT_UNINSTRUMENTED void haft_part(haft_fiber_t *fiber, haft_effect_t *effect, void *payload) {
    part(hafti_thread(), fiber, effect, payload);
}

/* A forced unwinding ends here. Catch-alls that rethrew it have counted it as an exception.
   (Inlined into uninstrumented code, this makes gcc 12 crash with -fsanitize=address.) */
static __attribute__((noinline)) void forget_exceptions(const hafti_thread_t *thread) {
    if (hafti_exceptions_in(thread->exceptions))
        *thread->globals = haft_no_exceptions;
}

HAFT_UNINSTRUMENTED void haft_leave(haft_fiber_t *fiber, haft_effect_t *effect, void *payload) {
    hafti_thread_t *thread = hafti_thread();
    if (effect != &haft_special_exception)
        forget_exceptions(thread);
    if (fiber->checked) {
        char *here = __builtin_frame_address(0);
        haft_check_stack(fiber, fiber->high, NULL); /* the canary: `here` may be further in */
        if (here >= fiber->low && here < fiber->high)
            fiber->context.sp = here; /* its resumer uses what is below */
    }
    if (thread->language != NULL)
        thread->language->left(thread->current, fiber);
    haft_end_segments(thread);
    if (haft_tools_active)
        haft_tools_before(fiber, HAFT_OUT_FOR_GOOD);
    part(thread, fiber, effect, payload);
}

/* Called before the fiber's function. */
static HAFTI_COLD void arrive(haft_fiber_t *fiber, void *word, uintptr_t wake) {
    if (haft_tools_active)
        haft_tools_after(fiber, HAFT_OUT_OF);
    haft_kind_of(fiber)->begins(fiber);
    if (wake == HAFTI_WAKE_CALL) {
        const haft_call_t *call = word;
        (void)call->function(call->argument);
    }
}

void haft_fiber_run(haft_fiber_t *fiber, void *word, uintptr_t wake) {
    if (HAFTI_UNLIKELY(haft_tools_active || fiber->kind == HAFT_KIND_SEGMENTED ||
                       wake == HAFTI_WAKE_CALL))
        arrive(fiber, word, wake);
    fiber->result = fiber->function(fiber->argument);
}

HAFT_UNINSTRUMENTED void haft_fiber_returned(haft_fiber_t *fiber) {
    hafti_thread_t *thread = hafti_thread();
    if (HAFTI_UNLIKELY(fiber->kind != HAFT_KIND_POOL || thread->language != NULL ||
                       haft_tools_active))
        haft_leave(fiber, HAFT_ID(return ), &fiber->result);
    part(thread, fiber, HAFT_ID(return ), &fiber->result);
}

#ifdef HAFT_FREESTANDING

/* ---- Exceptions: the first frame (arch/) names what would take them ---- */

int haft_base_personality(void);
int haft_base_personality(void) {
    return 3; /* _URC_FATAL_PHASE1_ERROR */
}

void haft_fiber_threw(void);
void haft_fiber_threw(void) {
    __builtin_trap();
}

#else

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

#endif
