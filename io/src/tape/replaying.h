/* SPDX-License-Identifier: MIT */
/* Waiting for answers of a tape, and the order of a replay's tasks. */
#ifndef HAFTI_IO_REPLAYING_H
#define HAFTI_IO_REPLAYING_H

#include "../descriptors.h"
#include "tape.h"

/* A receive without flags or address is kept as a read: a back end's `read` is for both. */
static inline enum hafti_io_kind hafti_io_taped_kind(const hafti_io_operation_t *operation) {
    return operation->kind == HAFTI_IO_RECEIVE && operation->flags == 0 &&
                   operation->address == NULL
               ? HAFTI_IO_READ
               : operation->kind;
}

/* Lets the runner's task wait until its answer is next. */
const hafti_io_entry_t *hafti_io_tape_await(hafti_io_runner_t *runner, unsigned kind,
                                            int descriptor);
/* The task that goes on by the tape; NULL: the time may have changed, and the loop has to look at
   it. */
haft_io_task_t *hafti_io_tape_next(hafti_io_worker_t *worker);

/* A call of the library that is kept as a whole, without the calls that it makes. Its answer is a
   number and bytes. */
typedef struct hafti_io_taped_call {
    hafti_io_tape_t *tape; /* NULL: it is neither kept nor answered */
    hafti_io_runner_t *runner;
    unsigned kind;
    int descriptor;
} hafti_io_taped_call_t;
/* To be used by the calling task. In a replay the answer is there, in `*entry`; otherwise that is
   NULL, and the call is to be made. A call that is unwound by a cancel is kept as one. */
#define HAFTI_IO_TAPED_CALL __attribute__((cleanup(hafti_io_tape_unwound))) hafti_io_taped_call_t
hafti_io_taped_call_t hafti_io_tape_begins(unsigned kind, int descriptor,
                                           const hafti_io_entry_t **entry);
int64_t hafti_io_tape_ends(hafti_io_taped_call_t *call, int64_t result, const void *bytes,
                           size_t size);
void hafti_io_tape_unwound(hafti_io_taped_call_t *call);
/* The result, of a call that a cancel may have ended. */
int64_t hafti_io_tape_result(const hafti_io_entry_t *entry, void *into, size_t room);

#endif
