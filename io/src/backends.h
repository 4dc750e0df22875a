/* SPDX-License-Identifier: MIT */
/* The back ends, which wait for the kernel. */
#ifndef HAFTI_IO_BACKENDS_H
#define HAFTI_IO_BACKENDS_H

#include "operations.h"

/* Opens the worker's epoll and its waker. 0, or an error: then one of them may be open. */
int hafti_io_open_edges(hafti_io_worker_t *worker);
void hafti_io_close_edges(const hafti_io_worker_t *worker);
/*
 * Wait for something to happen to what an operation has just found not to be ready. No edge is
 * missed: the task has tried before it waits, epoll is asked on the same thread afterwards, and an
 * edge that came between stays with epoll until then. A state that was not asked for (the peer's
 * end, an error in a queue) ends one wait, not every one. At turn 1 the number is assumed to be
 * another file's than before.
 *
 * HAFTI_IO_MAY_WAIT: epoll does not watch it, so it is a file.
 */
int hafti_io_await_edge(hafti_io_runner_t *runner, hafti_io_descriptor_t *entry,
                        const hafti_io_operation_t *operation, unsigned turn);
int hafti_io_await_edges(hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                         int64_t deadline, unsigned turn);
/* Polls for at most this long (negative: forever); wins the cells of waits whose events have
   come. */
void hafti_io_take_edges(hafti_io_worker_t *worker, int64_t nanoseconds);
/* Like `forget` of hafti_io_backend_t. */
void hafti_io_forget_edges(hafti_io_worker_t *worker, int descriptor);

extern const hafti_io_backend_t hafti_io_epoll;
#ifdef HAFT_IO_URING
extern const hafti_io_backend_t hafti_io_uring;
#endif

#endif
