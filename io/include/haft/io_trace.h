/* SPDX-License-Identifier: MIT */
/* Haft I/O: the past of tasks and threads, event by event. Part of haft/io.h, which includes it. */
#ifndef HAFT_IO_TRACE_H
#define HAFT_IO_TRACE_H

#include "io.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct haft_io_trace_options {
    size_t events; /* so many each thread keeps, the newest; 0: 65,536, in 2 MiB. A power of two. */
    /* Also keeps what computations do: a fiber is resumed, performs, ends, is dropped; an effect is
       handled in place. All of that takes longer paths then (haft/observe.h). */
    bool effects;
} haft_io_trace_options_t;

/*
 * From now on the process keeps in a new file what its tasks and threads do: a task is spawned,
 * goes on, waits (for what), is woken (by which task, and whether by a cancel or a deadline), is
 * stolen, begins an operation (descriptor and bytes), ends; a thread polls; and the spans of the
 * program. The program `haft-trace` reads the file (docs/tracing.md), also while the process runs,
 * and after it was killed: the file is mapped into memory, and nothing is written at the end.
 *
 * Each thread has a part of the file for itself, in which the newest event replaces the oldest. 64
 * threads at most have one; what further threads do is not kept. A child of fork keeps nothing.
 *
 * The same for a program that does not call this: HAFT_IO_TRACE=FILE in the environment, when its
 * first run begins; `effects` is HAFT_IO_TRACE_EFFECTS=1.
 *
 * Returns 0; -EALREADY: it is on; -EINVAL: `path` is NULL, or `events` no power of two of at least
 * 64; -EEXIST: the file is there, and perhaps another process's; -ENOSPC and other errors of
 * open(2) and mmap(2). Any thread may call it, and `options` may be NULL.
 */
int haft_io_trace_start(const char *path);
int haft_io_trace_start_with(const haft_io_trace_options_t *options, const char *path);
/* Ends that; the file stays. To start again needs another file. */
void haft_io_trace_stop(void);

/*
 * A span of what the current task does (or the thread, if it runs no task), from the one to the
 * other, shown below its name at the end, with a value: libhaft-http makes one of each request, by
 * method and route, whose value is the status. Spans of a task may be inside each other. Names are
 * copied when they are new: use few, 4,000 at most, and not one for each request. Both do nothing,
 * in some nanoseconds, where nothing is kept.
 */
void haft_io_trace_begin(const char *name);
void haft_io_trace_end(const char *name, int64_t value);
/* The W3C trace id of the current task's innermost span (32 hexadecimal digits), the span's own id
   and that of its parent (16 each; "": none), by which traces of several services are put together.
   libhaft-http passes those of requests (haft_http_server_trace_requests). */
void haft_io_trace_identify(const char *trace, const char *span, const char *parent);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
