/* SPDX-License-Identifier: MIT */
/*
 * Signal handlers that use the library. Effects whose clauses run in place may be performed there:
 * every word that the lookup and the hot paths share with a handler is written so that the handler
 * finds what was there before, or nothing (lookup.c). Operations that switch stacks are mistakes
 * there: the handler would be left half done, with its signal blocked. They are detected if the
 * handler runs on the thread's alternate stack.
 */
#include "ground.h"

#include <signal.h>

_Static_assert(sizeof(sigset_t) <= sizeof(haft_signals_t), "a set of signals fits");

void haft_signals_block(haft_signals_t *before) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, (sigset_t *)(void *)before);
}

void haft_signals_restore(const haft_signals_t *before) {
    pthread_sigmask(SIG_SETMASK, (const sigset_t *)(const void *)before, NULL);
}

haft_on_signal_stack_t haft_on_signal_stack(const void *here, const void *there) {
    stack_t stack;
    haft_on_signal_stack_t on = {false, false};
    if (sigaltstack(NULL, &stack) != 0 || (stack.ss_flags & SS_DISABLE))
        return on;
    on.here = (uintptr_t)here - (uintptr_t)stack.ss_sp < stack.ss_size;
    on.there = (uintptr_t)there - (uintptr_t)stack.ss_sp < stack.ss_size;
    return on;
}

/* The thread may have another alternate stack by now, and the memory another use. */
void haft_in_signal_handler(const haft_effect_t *effect, const haft_fiber_t *fiber,
                            const char *what) {
    const void *here = __builtin_frame_address(0);
    if (!haft_on_signal_stack(here, here).here)
        return;
    if (effect != NULL)
        haft_fail(
            HAFT_ERROR_IN_SIGNAL_HANDLER, effect, NULL,
            "The effect '%s' (%s) suspends its performer, and was performed in a signal handler: "
            "perform there only effects whose clauses run in place, and do the rest afterwards.",
            effect->name, effect->where);
    haft_fail(
        HAFT_ERROR_IN_SIGNAL_HANDLER, NULL, fiber,
        "%s cannot be %s in a signal handler: perform there only effects whose clauses run in "
        "place, and do the rest afterwards.",
        fiber == NULL ? "A fiber" : haft_fiber_label(fiber), what);
}
