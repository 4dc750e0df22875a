/* SPDX-License-Identifier: MIT */
/*
 * Recognising a stack overflow: a fault on a fiber's guard is told apart from every other fault,
 * and named; so is any fault of a fiber without a guard that has left its stack. Every other fault
 * goes to the handler that the program had before, or ends the process as it would have.
 *
 * The handler runs on a signal stack, one a thread: the overflowing stack has no room.
 */
#define _GNU_SOURCE /* names of registers */
#include "whole.h"

#include "haft/interrupted.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static struct sigaction before[2];
static const int signals[2] = {SIGSEGV, SIGBUS};

__attribute__((format(printf, 1, 2))) static void report(const char *format, ...) {
    char message[600]; /* The advice of a library may be long. */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    haft_print(message);
}

static void report_guarded(const haft_fiber_t *fiber) {
    report("%s has overflowed its stack of %zu KiB: too deep a recursion, or too large a "
           "local variable. %s",
           haft_fiber_label(fiber), haft_pool_reserved(fiber) / 1024,
           haft_advice_of(fiber, "Give it more with haft_fiber_options_t.stack_size."));
}

static void report_unguarded(const haft_fiber_t *fiber) {
    size_t size = (size_t)(fiber->high - fiber->low);
    report(HAFT_OVERFLOWED "%s %s", haft_fiber_label(fiber), size, haft_late_binding_advice(size),
           haft_advice_of(fiber, ""));
}

/* Large frames of a small stack may skip its canary, and overwrite what other code then faults
   on. */
static void report_small_stacks(void) {
    report(
        "if the code does not explain this fault: there are fibers on small stacks without a guard "
        "(dense, or in memory of the caller), and one that overflows writes into what lies below, "
        "another fiber perhaps. Give them more memory.%s",
        haft_late_binding_advice(0));
}

static void report_overwritten(void) {
    report("a fiber's header has been overwritten, perhaps by a fiber on a small stack without a "
           "guard (dense, or in memory of the caller), which has overflowed. Give such fibers more "
           "memory.%s",
           haft_late_binding_advice(0));
}

static void report_thread(void) {
    report(
        "the stack of the thread itself, not of a fiber, has overflowed inside of resumes. A "
        "clause that goes on after it has resumed keeps its frames for as long as that takes, and "
        "so does each that runs meanwhile. Let clauses end in tail_resume (C: "
        "haft_tail_resume), or give the thread a larger stack (ulimit -s, "
        "pthread_attr_setstacksize).");
}

static void pass_on(const struct sigaction *action, int number, siginfo_t *information,
                    void *context) {
    /* The handler is called as the system would call it. */
    sigset_t mask = action->sa_mask;
    if (!(action->sa_flags & SA_NODEFER))
        sigaddset(&mask, number);
    bool calls = (action->sa_flags & SA_SIGINFO) ||
                 (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
    if (calls) {
        const sigset_t *interrupted = &((const ucontext_t *)context)->uc_sigmask;
        for (int other = 1; other < NSIG; other++)
            if (sigismember(interrupted, other) == 1)
                sigaddset(&mask, other);
        pthread_sigmask(SIG_SETMASK, &mask, NULL);
        if (action->sa_flags & SA_RESETHAND)
            sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    }
    if (action->sa_flags & SA_SIGINFO) {
        action->sa_sigaction(number, information, context);
    } else if (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN) {
        /* Removes our handler: the faulting instruction runs again and ends the process as it
           should. A signal that was sent has no such instruction, and is raised again. */
        bool sent = information->si_code <= 0;
        if (sent && action->sa_handler == SIG_IGN)
            return;
        struct sigaction standard = {.sa_handler = SIG_DFL};
        sigaction(number, &standard, NULL);
        if (sent)
            raise(number);
    } else {
        action->sa_handler(number);
    }
}

/* Whether the canary of a stack without a guard is gone. A header that another fiber has
   overwritten is not trusted. */
static bool is_overwritten_below(const haft_fiber_t *fiber) {
    const char *low = fiber->low;
    bool whole = low < fiber->high && fiber->high <= (const char *)fiber &&
                 (fiber->kind == HAFT_KIND_FIXED || haft_pool_fiber_at(low) == fiber);
    return whole && haft_canary_is_gone(fiber);
}

/* The fiber that the thread's code is under, if it has no guard, and code has gone on below its
   stack: the canary is gone, or the innermost frame is there, and on no guard of the stack that
   runs. (`at`: the pool's fiber that the address belongs to.) No lock is taken, and nothing is read
   that may be overwritten by then. */
static const haft_fiber_t *overflowed_unguarded(const void *address, const haft_fiber_t *at,
                                                const void *context) {
    const haft_fiber_t *fiber = haft_scope_fiber(hafti_thread()->current);
    if (fiber == NULL || !fiber->checked)
        return NULL;
    const char *sp = haft_interrupted_sp(context);
    bool below = sp < fiber->low && haft_faulted_at_sp(address, context) &&
                 (at == NULL || haft_fiber_state(at) != HAFT_FIBER_RUNNING) &&
                 !haft_on_signal_stack(sp, sp).here;
    return below || is_overwritten_below(fiber) ? fiber : NULL;
}

/* The small stacks without a guard that are there, and those that have overflowed. */
typedef struct small_stacks {
    bool any;
    const haft_fiber_t *overflowed;
} small_stacks_t;

/* (The largest dense stack, of 8 KiB, has up to 12 in fact.) */
static void look_at_small_stack(haft_fiber_t *fiber, void *argument) {
    small_stacks_t *seen = argument;
    if (!fiber->checked || (size_t)(fiber->high - fiber->low) >= 2 * HAFT_UNWINDING_MINIMUM)
        return;
    seen->any = true;
    if (is_overwritten_below(fiber))
        seen->overflowed = fiber;
}

/* Reports small stacks, beside a fault that nothing else explains. */
static void report_others(void) {
    small_stacks_t seen = {.any = false};
    haft_fibers_each(look_at_small_stack, &seen);
    if (seen.overflowed != NULL)
        report_unguarded(seen.overflowed);
    else if (seen.any)
        report_small_stacks();
}

/* Prints what has overflowed, if anything has. True: the language of the fiber handles the
   overflow. */
static bool recognise(const void *address, void *context, bool *overflowed) {
    *overflowed = true;
    const haft_fiber_t *fiber = haft_pool_fiber_at(address);
    const haft_fiber_t *unguarded = overflowed_unguarded(address, fiber, context);
    if (unguarded != NULL) {
        report_unguarded(unguarded);
        return false;
    }
    const char *segments = haft_segments_fault(address);
    if (segments != NULL) {
        report("%s: %s.", haft_fiber_label(hafti_thread()->segmented), segments);
    } else if (fiber != NULL && (const char *)address < fiber->low &&
               haft_fiber_state(fiber) != HAFT_FIBER_DROPPED) {
        if (fiber->language != NULL && fiber->language->overflows(context))
            return true;
        report_guarded(fiber);
    } else if (fiber == NULL && hafti_thread()->language == NULL &&
               haft_thread_overflow(address, context)) {
        report_thread();
    } else {
        *overflowed = false;
        report_others();
    }
    return false;
}

/* ---- Backtraces ---- */

/* An unwinder that finds frames by tables needs some kilobytes. */
static bool has_room_for_backtrace(void) {
    enum { NEEDED = 16 * 1024 };
    stack_t stack;
    return sigaltstack(NULL, &stack) == 0 && stack.ss_size >= NEEDED;
}

/* The backtrace of an overflow, or of another fatal signal on a fiber. */
static void report_signal(int number, const siginfo_t *information, const void *context,
                          bool overflowed) {
    const char *sp = haft_interrupted_sp(context);
    const haft_fiber_t *fiber = haft_fiber_at(sp);
    if (fiber == NULL)
        fiber = haft_pool_fiber_at(sp);
    if ((fiber == NULL && !overflowed) || !has_room_for_backtrace())
        return;
    /* A library that has tasks names the task in its advice. */
    const char *task = overflowed ? NULL : strstr(haft_advice_of(fiber, ""), "It was the task");
    const char *space = task != NULL ? " " : "";
    task = task != NULL ? task : "";
    if (!overflowed && (number == SIGSEGV || number == SIGBUS))
        report("%s at address %p on %s.%s%s", number == SIGBUS ? "SIGBUS" : "SIGSEGV",
               information->si_addr, haft_fiber_label(fiber), space, task);
    else if (!overflowed)
        report("%s on %s.%s%s",
               number == SIGABRT  ? "SIGABRT"
               : number == SIGILL ? "SIGILL"
                                  : "SIGFPE",
               haft_fiber_label(fiber), space, task);
    haft_print_backtrace(context);
}

/* Where the signal handler goes on if memory that it reads faults, or NULL. */
static __thread __attribute__((tls_model("initial-exec"))) sigjmp_buf *if_it_faults;

/* A header over which another fiber has written may lead anywhere. */
static bool recognise_whatever_lies_there(int number, siginfo_t *information, void *context,
                                          bool is_fatal) {
    sigset_t faults;
    sigjmp_buf faulted;
    sigemptyset(&faults);
    for (int i = 0; i < 2; i++)
        sigaddset(&faults, signals[i]);
    volatile bool handled = false;
    if (sigsetjmp(faulted, true) == 0) {
        if_it_faults = &faulted;
        pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
        bool overflowed = false;
        bool is_fault = number == SIGSEGV || number == SIGBUS;
        handled = is_fault && recognise(information->si_addr, context, &overflowed);
        if (!handled && (overflowed || is_fatal))
            report_signal(number, information, context, overflowed);
        pthread_sigmask(SIG_BLOCK, &faults, NULL);
    } else {
        report_overwritten();
    }
    if_it_faults = NULL;
    return handled;
}

static bool is_default(const struct sigaction *action) {
    return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == SIG_DFL;
}

static void fault(int number, siginfo_t *information, void *context) {
    const struct sigaction *action = &before[number == signals[1]];
    bool sent = information->si_code <= 0;
    if (!sent && if_it_faults != NULL)
        siglongjmp(*if_it_faults, 1);
    if (sent || !recognise_whatever_lies_there(number, information, context, is_default(action)))
        pass_on(action, number, information, context);
}

/* A signal that ends the process, unless it has come from outside. */
static void fatal(int number, siginfo_t *information, void *context) {
    static const struct sigaction standard = {.sa_handler = SIG_DFL};
    bool sent = information->si_code <= 0 &&
                !(information->si_code == SI_TKILL && information->si_pid == getpid());
    if (!sent && if_it_faults == NULL)
        recognise_whatever_lies_there(number, information, context, true);
    pass_on(&standard, number, information, context);
}

void haft_overflow_watch(void) {
    struct sigaction ours = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&ours.sa_mask);
    for (int i = 0; i < 2; i++)
        sigaction(signals[i], &ours, &before[i]);
    /* Signals that the program handles or ignores are left to it. */
    static const int further[] = {SIGABRT, SIGILL, SIGFPE};
    ours.sa_sigaction = fatal;
    for (size_t i = 0; i < sizeof further / sizeof further[0]; i++) {
        struct sigaction action;
        if (sigaction(further[i], NULL, &action) == 0 && is_default(&action))
            sigaction(further[i], &ours, NULL);
    }
}

void haft_overflow_watch_thread(hafti_thread_t *thread) {
    stack_t stack;
    if (sigaltstack(NULL, &stack) != 0)
        return;
    if (!(stack.ss_flags & SS_DISABLE)) {
        thread->signal_low = stack.ss_sp;
        thread->signal_size = stack.ss_size;
        return;
    }
    void *memory = haft_signal_memory(thread);
    stack = (stack_t){.ss_sp = memory, .ss_size = HAFT_SIGNAL_STACK};
    if (sigaltstack(&stack, NULL) == 0) {
        thread->signal_stack = thread->signal_low = memory;
        thread->signal_size = HAFT_SIGNAL_STACK;
    }
}

void haft_overflow_unwatch_thread(hafti_thread_t *thread) {
    stack_t stack;
    thread->signal_size = 0;
    if (thread->signal_stack == NULL)
        return;
    if (sigaltstack(NULL, &stack) == 0 && stack.ss_sp == thread->signal_stack) {
        stack_t none = {.ss_flags = SS_DISABLE};
        sigaltstack(&none, NULL);
    }
    thread->signal_stack = NULL;
}
