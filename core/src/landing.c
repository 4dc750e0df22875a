/* SPDX-License-Identifier: MIT */
/*
 * Unwinding up to a frame, on behalf of another language: haft_unwind_to of haft/language.h.
 *
 * A frame that is returned from (haft_return_t) has noted nothing. When the unwinder reaches its
 * caller, it knows the registers that the caller has at the return: these are loaded, and the
 * function `instead` is entered as if the caller called it.
 */
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

/* The numbers are those of DWARF; the unwinder has found all that functions keep for callers. */
static HAFT_UNINSTRUMENTED __attribute__((noreturn)) void return_in(struct _Unwind_Context *context,
                                                                    const haft_return_t *returned) {
    haft_tools_unwinding(); /* nothing of the frames down to the caller's is left */
    uintptr_t sp = _Unwind_GetCFA(context), pc = _Unwind_GetIP(context);
#if defined(__x86_64__)
    enum { KEPT = 6 };
    static const int numbers[KEPT] = {3, 6, 12, 13, 14, 15};
    uint64_t kept[KEPT];
    for (int i = 0; i < KEPT; i++)
        kept[i] = _Unwind_GetGR(context, numbers[i]);
    sp -= sizeof pc;
    *(uintptr_t *)sp = pc; /* the return address */
    __asm__ volatile("movq 0(%%rax), %%rbx\n\t"
                     "movq 16(%%rax), %%r12\n\t"
                     "movq 24(%%rax), %%r13\n\t"
                     "movq 32(%%rax), %%r14\n\t"
                     "movq 40(%%rax), %%r15\n\t"
                     "movq 8(%%rax), %%rbp\n\t"
                     "movq %%rdx, %%rsp\n\t"
                     "jmp *%%rcx"
                     :
                     : "a"(kept), "d"(sp), "c"(returned->instead), "D"(returned->words[0]),
                       "S"(returned->words[1])
                     : "memory");
#else
    enum { GENERAL = 11, VECTOR = 8 }; /* x19 to x29, and the low halves of v8 to v15 */
    uint64_t kept[GENERAL + VECTOR];
    for (int i = 0; i < GENERAL; i++)
        kept[i] = _Unwind_GetGR(context, 19 + i);
    for (int i = 0; i < VECTOR; i++)
        kept[GENERAL + i] = _Unwind_GetGR(context, 72 + i);
    register intptr_t first __asm__("x0") = returned->words[0];
    register intptr_t second __asm__("x1") = returned->words[1];
    register const uint64_t *from __asm__("x9") = kept;
    register uintptr_t top __asm__("x10") = sp;
    register uintptr_t back __asm__("x11") = pc;
    register intptr_t (*instead)(intptr_t, intptr_t) __asm__("x16") = returned->instead;
    __asm__ volatile("ldp x19, x20, [x9, #0]\n\t"
                     "ldp x21, x22, [x9, #16]\n\t"
                     "ldp x23, x24, [x9, #32]\n\t"
                     "ldp x25, x26, [x9, #48]\n\t"
                     "ldp x27, x28, [x9, #64]\n\t"
                     "ldr x29, [x9, #80]\n\t"
                     "ldp d8, d9, [x9, #88]\n\t"
                     "ldp d10, d11, [x9, #104]\n\t"
                     "ldp d12, d13, [x9, #120]\n\t"
                     "ldp d14, d15, [x9, #136]\n\t"
                     "mov x30, x11\n\t"
                     "mov sp, x10\n\t"
                     "br x16"
                     :
                     : "r"(first), "r"(second), "r"(from), "r"(top), "r"(back), "r"(instead)
                     : "memory");
#endif
    __builtin_unreachable();
}

static _Unwind_Reason_Code stop(int version, _Unwind_Action actions,
                                _Unwind_Exception_Class exception_class,
                                struct _Unwind_Exception *exception,
                                struct _Unwind_Context *context, void *argument) {
    (void)version, (void)exception_class, (void)argument;
    haft_landing_t *landing = landing_of(exception);
    haft_unwinding_goes_on(exception);
    if (landing->fiber == NULL && landing->here &&
        haft_unwound_to(_Unwind_GetCFA(context), landing->sp)) {
        hafti_segments_set_limit(0); /* the unwinder has changed it ahead of the stack */
        haft_unwinding_landed(exception);
        if (landing->land == NULL)
            return_in(context, (const haft_return_t *)landing);
        landing->land(landing);
    }
    if (haft_in_first_frame(_Unwind_GetIP(context))) {
        haft_unwinding_landed(exception);
        haft_leave(haft_fiber_here(), &haft_special_landed, landing);
    }
    if (actions & _UA_END_OF_STACK)
        stopped("a function on it was compiled without unwind tables");
    return _URC_NO_REASON;
}

static void let_go(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception);

static void unwind_to(void *argument) {
    haft_landing_t *landing = argument;
    landing->here = haft_on_this_fiber(landing->sp);
    haft_force_unwinding(landing->unwinding, let_go, stop, NULL);
    stopped("the unwinder failed");
}

/* A catch-all of C++ lets go of the unwinding. If it has not rethrown, the unwinding begins
   again. */
static void let_go(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception) {
    (void)reason;
    haft_landing_t *landing = landing_of(exception);
    haft_let_go_t how = haft_unwinding_let_go(exception);
    if (how == HAFT_SWALLOWED)
        haft_on_thread_stack(unwind_to, landing);
    else if (landing->let_go != NULL)
        landing->let_go(landing);
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
