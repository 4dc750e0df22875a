/* SPDX-License-Identifier: MIT */
/* The invariants of the tables in state.h and scheduler.c, checked where a task waits and goes on,
   a worker falls asleep and rises, and a run ends; nothing in release builds (NDEBUG). */
#ifndef HAFTI_IO_VALID_H
#define HAFTI_IO_VALID_H

#include "workers.h"

/* Each returns NULL, or the invariant that does not hold. All are called by the worker's thread. */

/* Checks a task that the worker has taken from a queue, and is about to resume. */
const char *hafti_io_invalid_next(const hafti_io_worker_t *worker, const haft_io_task_t *task);
/* Checks a task that the worker has suspended to wait, and that is about to be PARKED. */
const char *hafti_io_invalid_waiting(const hafti_io_worker_t *worker, const haft_io_task_t *task);
/* Checks a worker that has found nothing to do. */
const char *hafti_io_invalid_idle(const hafti_io_worker_t *worker);
/* Checks a worker that has slept, or has not after all. */
const char *hafti_io_invalid_risen(const hafti_io_worker_t *worker);
/* Checks a worker whose run has ended. */
const char *hafti_io_invalid_ended(const hafti_io_worker_t *worker);

HAFTI_IO_COLD __attribute__((noreturn)) void hafti_io_invalid(const char *invariant);

#ifdef NDEBUG
#    define HAFTI_IO_CHECK(what, ...) ((void)0)
#else
#    define HAFTI_IO_CHECK(what, ...)                                                              \
        do {                                                                                       \
            const char *invariant_ = hafti_io_invalid_##what(__VA_ARGS__);                         \
            if (HAFTI_IO_UNLIKELY(invariant_ != NULL))                                             \
                hafti_io_invalid(invariant_);                                                      \
        } while (0)
#endif

#endif
