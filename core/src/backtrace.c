/* SPDX-License-Identifier: MIT */
/*
 * Backtraces for people: without the library's own frames, and of a fatal signal on a fiber.
 *
 * The code runs in signal handlers. It allocates nothing, and calls the unwinder, which since glibc
 * 2.35 takes no lock; the fault handler catches faults of the unwinding itself (overflow.c).
 */
#define _GNU_SOURCE
#include "whole.h"

#include "haft/interrupted.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

extern int dladdr(const void *address, Dl_info *information) __attribute__((weak));

/* Properties of the code that a frame returns to. */
typedef struct frame {
    bool own;      /* it is the library's */
    bool is_named; /* by a symbol of the library's interface */
} frame_t;

static bool begins(const char *text, const char *with) {
    return text != NULL && strncmp(text, with, strlen(with)) == 0;
}

static frame_t frame_at(const void *address) {
    Dl_info object = {.dli_fname = NULL};
    if (dladdr == NULL || dladdr((const char *)address - 1, &object) == 0)
        return (frame_t){false, false};
    const char *slash = object.dli_fname != NULL ? strrchr(object.dli_fname, '/') : NULL;
    const char *file = slash != NULL ? slash + 1 : object.dli_fname;
    bool is_named = begins(object.dli_sname, "haft_");
    return (frame_t){is_named || begins(object.dli_sname, "hafti_") || begins(file, "libhaft"),
                     is_named};
}

/* Returns how many frames are left without those of the libraries at the outer end: the ones that
   have called `entry`. */
static int end_of_program(void **addresses, int count, const void *entry) {
    for (int i = count; entry != NULL && i > 0; i--)
        if (_Unwind_FindEnclosingFunction((char *)addresses[i - 1] - 1) == entry)
            return i;
    while (count > 1 && frame_at(addresses[count - 1]).own)
        count--;
    return count;
}

static int start_of_program(void **addresses, int count) {
    int first = 0;
    while (first < count && !frame_at(addresses[first]).is_named)
        first++;
    if (first == count)
        return 0;
    while (first + 1 < count && frame_at(addresses[first + 1]).own)
        first++;
    return first + 1 < count ? first : 0;
}

int haft_programs_frames(void **addresses, int count, const void *entry, bool is_suspended) {
    count = end_of_program(addresses, count, entry);
    int first = is_suspended ? start_of_program(addresses, count) : 0;
    memmove(addresses, addresses + first, (size_t)(count - first) * sizeof *addresses);
    return count - first;
}

/* ---- The backtrace of a fatal signal ---- */

enum { FIRST = 24, LAST = 8, MOST = 1 << 20 };

/* The innermost frames and, if there are very many, the outermost. */
typedef struct trace {
    uintptr_t from; /* the interrupted code */
    bool inside;    /* past the frames of the signal's handler */
    int count;      /* of frames that are not the library's */
    void *first[FIRST], *last[LAST];
} trace_t;

static _Unwind_Reason_Code add(struct _Unwind_Context *context, void *argument) {
    trace_t *trace = argument;
    uintptr_t pc = _Unwind_GetIP(context);
    bool is_innermost = !trace->inside && pc == trace->from;
    trace->inside |= is_innermost;
    if (!trace->inside || pc == 0)
        return _URC_NO_REASON;
    /* (The interrupted code may be the library's.) */
    if (!is_innermost && frame_at((const void *)pc).own)
        return _URC_NO_REASON;
    if (trace->count < FIRST)
        trace->first[trace->count] = (void *)pc;
    else
        trace->last[(trace->count - FIRST) % LAST] = (void *)pc;
    return ++trace->count < MOST ? _URC_NO_REASON : _URC_END_OF_STACK;
}

void haft_print_backtrace(const void *context) {
    trace_t trace = {.from = (uintptr_t)haft_interrupted_pc(context)};
    _Unwind_Backtrace(add, &trace);
    backtrace_symbols_fd(trace.first, trace.count < FIRST ? trace.count : FIRST, STDERR_FILENO);
    int further = trace.count - FIRST;
    if (further > LAST) {
        char line[64];
        int size = snprintf(line, sizeof line, "... and %d more, until\n", further - LAST);
        (void)!write(STDERR_FILENO, line, (size_t)size);
        void *last[LAST];
        for (int i = 0; i < LAST; i++)
            last[i] = trace.last[(further + i) % LAST];
        backtrace_symbols_fd(last, LAST, STDERR_FILENO);
    } else if (further > 0) {
        backtrace_symbols_fd(trace.last, further, STDERR_FILENO);
    }
}
