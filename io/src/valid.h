/* SPDX-License-Identifier: MIT */
/* The invariants of the tables in internal.h and scheduler.c, checked where a task waits and goes on, a worker falls
   asleep and rises, and a run ends; nothing in release builds (NDEBUG). */
#ifndef HAFT_IO_VALID_H
#define HAFT_IO_VALID_H

#include "internal.h"

/* Each returns NULL, or the invariant that does not hold. All are called by the worker's thread. */

/* Of a task that the worker has taken from a queue, and is about to resume. */
const char *haft_io_invalid_next(const haft_io_worker_t *worker, const haft_io_task_t *task);
/* Of one that was suspended by the worker to wait, and is about to be PARKED. */
const char *haft_io_invalid_waiting(const haft_io_worker_t *worker, const haft_io_task_t *task);
/* Of a worker that has found nothing to do. */
const char *haft_io_invalid_idle(const haft_io_worker_t *worker);
/* Of one that has slept, or has not after all. */
const char *haft_io_invalid_risen(const haft_io_worker_t *worker);
/* Of one whose run has ended. */
const char *haft_io_invalid_ended(const haft_io_worker_t *worker);

HAFT_IO_COLD __attribute__((noreturn)) void haft_io_invalid(const char *invariant);

#ifdef NDEBUG
#    define HAFT_IO_CHECK(what, ...) ((void)0)
#else
#    define HAFT_IO_CHECK(what, ...)                                                               \
        do {                                                                                       \
            const char *invariant_ = haft_io_invalid_##what(__VA_ARGS__);                          \
            if (HAFT_IO_UNLIKELY(invariant_ != NULL))                                              \
                haft_io_invalid(invariant_);                                                       \
        } while (0)
#endif

#endif
