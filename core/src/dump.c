/* SPDX-License-Identifier: MIT */
/* Looking at fibers from outside: backtraces of suspended ones, and the list of all. */
#include "whole.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

/* ---- Backtrace ---- */

int haft_walk_from(const hafti_context_t *context, int (*walk)(void *), void *argument);

typedef struct trace {
    const haft_fiber_t *fiber;
    void **addresses;
    int size;
    int count;
    bool inside; /* past the frames of the walk itself */
} trace_t;

static _Unwind_Reason_Code add(struct _Unwind_Context *context, void *argument) {
    trace_t *trace = argument;
    uintptr_t pc = _Unwind_GetIP(context);
    if (!trace->inside) {
        trace->inside = pc >= (uintptr_t)haft_walk_from && pc < (uintptr_t)haft_walk_from + 64;
        return _URC_NO_REASON;
    }
    if (trace->count < trace->size)
        trace->addresses[trace->count++] = (void *)pc;
    /* The first frame of the outermost suspended fiber would lead round to where we began. */
    bool first_frame = haft_in_first_frame(pc);
#ifdef __x86_64__
    enum { FRAME_POINTER = 6 };
#else
    enum { FRAME_POINTER = 29 };
#endif
    return first_frame && _Unwind_GetGR(context, FRAME_POINTER) == (uintptr_t)&trace->fiber->resumer
               ? _URC_END_OF_STACK
               : _URC_NO_REASON;
}

static int walk(void *argument) {
    _Unwind_Backtrace(add, argument);
    return 0;
}

int haft_fiber_backtrace(const haft_fiber_t *fiber, void **addresses, int size) {
    haft_check_given(fiber, "haft_fiber_backtrace", "fiber");
    if (size > 0)
        haft_check_given(addresses, "haft_fiber_backtrace", "array");
    if (haft_fiber_state(fiber) != HAFT_FIBER_SUSPENDED)
        return 0;
    trace_t trace = {fiber, addresses, size, 0, false};
    hafti_context_t context = fiber->context;
    if (fiber->language != NULL)
        fiber->language->context(fiber, &context);
    haft_walk_from(&context, walk, &trace);
    return trace.count;
}

/* ---- Dump ---- */

typedef struct dump {
    int descriptor;
    bool failed;
    size_t fibers;
} dump_t;

static void print(dump_t *dump, const char *text, int length) {
    while (length > 0 && !dump->failed) {
        ssize_t written = write(dump->descriptor, text, (size_t)length);
        if (written >= 0) {
            text += written;
            length -= (int)written;
        } else {
            dump->failed = errno != EINTR;
        }
    }
}

static void print_fiber(haft_fiber_t *fiber, void *argument) {
    static const char *const states[] = {"new", "suspended", "running", "finished", "dropped"};
    dump_t *dump = argument;
    char line[320];
    dump->fibers++;
    haft_fiber_state_t state = haft_fiber_state(fiber);
    bool waits = state == HAFT_FIBER_SUSPENDED && hafti_awaited(fiber) != NULL;
    int length = snprintf(
        line, sizeof line, "fiber %p  %-9s  %s%s%s%s%.64s%s", (void *)fiber, states[state],
        waits ? "waits on " : "", waits ? hafti_awaited(fiber)->name : "", waits ? "  " : "",
        fiber->name != NULL ? "'" : "", haft_fiber_name(fiber), fiber->name != NULL ? "'  " : "");
    const char *sp = fiber->context.sp;
    size_t size = (size_t)(fiber->high - fiber->low);
    if (state == HAFT_FIBER_SUSPENDED && sp >= fiber->low && sp < fiber->high)
        length += snprintf(line + length, sizeof line - (size_t)length, "stack %zu of %zu bytes",
                           (size_t)(fiber->high - sp), size);
    else
        length += snprintf(line + length, sizeof line - (size_t)length, "stack of %zu bytes", size);
    if (fiber->kind == HAFT_KIND_POOL || fiber->kind == HAFT_KIND_UNGUARDED ||
        fiber->kind == HAFT_KIND_COPIED)
        length += snprintf(line + length, sizeof line - (size_t)length, ", %zu resident",
                           haft_pool_resident(fiber));
    length += snprintf(line + length, sizeof line - (size_t)length, "\n");
    print(dump, line, length);
}

int haft_fibers_dump(int descriptor) {
    dump_t dump = {descriptor, false, 0};
    haft_fibers_each(print_fiber, &dump);
    char line[64];
    int length =
        snprintf(line, sizeof line, "%zu fiber%s\n", dump.fibers, dump.fibers == 1 ? "" : "s");
    print(&dump, line, length);
    return dump.failed ? -1 : 0;
}

static void dump_signalled(int number) {
    (void)number;
    int saved = errno;
    (void)haft_fibers_dump(STDERR_FILENO);
    errno = saved;
}

int haft_dump_on_signal(int number) {
    /* The instruction that faulted would fault again. */
    bool faults = number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE;
    bool is_there = number > 0 && number < NSIG && number != SIGKILL && number != SIGSTOP;
    if (faults || !is_there) {
        errno =
            -haft_refused(-EINVAL, __func__,
                          "signal %d cannot be caught, or a fault sends it: write another, such "
                          "as SIGUSR1",
                          number);
        return -1;
    }
    struct sigaction action = {.sa_handler = dump_signalled, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    return sigaction(number, &action, NULL);
}
