/* SPDX-License-Identifier: MIT */
/*
 * The events of a trace as USDT probes (provider `haft`), for bpftrace, perf and SystemTap, where
 * <sys/sdt.h> is installed when the library is built.
 *
 * A tool that attaches itself to a probe adds 1 to the probe's semaphore, which is the low half of
 * hafti_io_watched for all of them. So where no tool is attached no probe is reached, and they cost
 * nothing that traces would not.
 */
#ifndef HAFTI_IO_PROBES_H
#define HAFTI_IO_PROBES_H

#include "trace.h"

#if __has_include(<sys/sdt.h>)
#    define _SDT_HAS_SEMAPHORES 1
#    include <sys/sdt.h>

/* The name of each, and its event. */
#    define HAFTI_IO_ALL_PROBES(_)                                                                 \
        _(spawn, SPAWN)                                                                            \
        _(run, RUN)                                                                                \
        _(park, PARK)                                                                              \
        _(yield, YIELD)                                                                            \
        _(wake, WAKE)                                                                              \
        _(steal, STEAL)                                                                            \
        _(operation, OPERATION)                                                                    \
        _(operated, OPERATED)                                                                      \
        _(end, END)                                                                                \
        _(name, NAME)                                                                              \
        _(poll, POLL)                                                                              \
        _(polled, POLLED)                                                                          \
        _(deadline, DEADLINE)                                                                      \
        _(cancel, CANCEL)                                                                          \
        _(span__begin, SPAN_BEGIN)                                                                 \
        _(span__end, SPAN_END)

#    define SEMAPHORE(probe, event)                                                                \
        extern __attribute__((alias("hafti_io_watched"),                                           \
                              visibility("hidden"))) unsigned haft_##probe##_semaphore;
HAFTI_IO_ALL_PROBES(SEMAPHORE)
#    undef SEMAPHORE

#    ifdef __clang__ /* <sys/sdt.h> leaves out arguments of its own macros. */
#        pragma clang diagnostic push
#        pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#    endif
/* Each has the task's address, a text or NULL, a number and a code: see enum hafti_io_event. */
static HAFTI_IO_COLD void hafti_io_probe(enum hafti_io_event event, const void *task,
                                         const char *text, uint64_t other, unsigned code) {
#    define PROBE(probe, of)                                                                       \
    case HAFTI_IO_EVENT_##of:                                                                      \
        STAP_PROBE4(haft, probe, task, text, other, code);                                         \
        break;
    switch (event) {
        HAFTI_IO_ALL_PROBES(PROBE)
    default:
        break;
    }
#    undef PROBE
}
#    ifdef __clang__
#        pragma clang diagnostic pop
#    endif
#else
static inline void hafti_io_probe(enum hafti_io_event event, const void *task, const char *text,
                                  uint64_t other, unsigned code) {
    (void)event, (void)task, (void)text, (void)other, (void)code;
}
#endif

#endif
