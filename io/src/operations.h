/* SPDX-License-Identifier: MIT */
/* The operations: tried on the thread, waited for in the back end, or given to the pool. */
#ifndef HAFTI_IO_OPERATIONS_H
#define HAFTI_IO_OPERATIONS_H

#include "scheduler.h"

/* To be called in a child of fork (child.c): from then on the run's workers leave alone what the
   kernel keeps for the parent. */
void hafti_io_become_child(hafti_io_crew_t *crew);

/* The clauses that run in place on a task's stack; their state is the runner. */
extern const haft_handler_t *const hafti_io_operations;
/* The same for a run that is recorded or replayed. */
extern const haft_handler_t *const hafti_io_taped_operations;
int hafti_io_call_taped(hafti_io_runner_t *runner, HAFT_PAYLOAD(haft_io_call_blocking) * payload);
/* Makes the system call, which never blocks. -EAGAIN: the operation has to wait; HAFTI_IO_MAY_WAIT:
   the pool is to do it. */
ssize_t hafti_io_attempt(hafti_io_operation_t *operation);
/* The same after an -EAGAIN on a socket that may have been shut down. In that case the result is
   the one that the system gives only to a blocking call (0; for a listener -EINVAL), on datagram
   sockets and Unix listeners. */
ssize_t hafti_io_attempt_at_end(hafti_io_operation_t *operation);
/* Makes the call on a thread of the pool, for some milliseconds. HAFTI_IO_MAY_WAIT: another thread
   was faster, and the call is to be tried again. */
ssize_t hafti_io_operate_in_pool(hafti_io_runner_t *runner, hafti_io_operation_t *operation);
/* Calls the function by haft_io_call_briefly on a thread of the pool, if the caller is a task;
   otherwise here. 0, or the error because of which it was not called. */
int hafti_io_call_for_a_moment(void (*function)(void *), void *argument);
/* Makes the system call and waits for it on this thread. */
ssize_t hafti_io_operate_blocking(hafti_io_operation_t *operation);
/* Reads or writes by `operate` of the back end. */
hafti_io_transfer_t hafti_io_transfer_generally;
/* Sends without a request to the kernel before; in a run of one thread. */
hafti_io_transfer_t hafti_io_write_at_once;
ssize_t hafti_io_send_last_at_once(hafti_io_worker_t *worker, int descriptor,
                                   hafti_io_sending_t *unused, hafti_io_lent_t *lent, size_t size);

/* haft_io_call_blocking and haft_io_call_or_leave for the library's own calls, which are the
   machine's in a simulation, too. */
int hafti_io_call_in_pool(void (*function)(void *), void *argument, void (*left)(void *));
/* The same, but in a simulation the task itself calls, after others have gone on. */
int hafti_io_call_or_leave(void (*function)(void *), void *argument, void (*left)(void *));
/* Calls the function in the pool; in a cancelled task only if the wait is TO_THE_END. */
int hafti_io_pool_call(hafti_io_runner_t *runner, void (*function)(void *), void *argument,
                       void (*left)(void *), enum hafti_io_wait_kind kind);
void hafti_io_pool_stop(hafti_io_crew_t *crew);

/* Whether it is a FIFO that is to be opened for one direction, and waits for the other end. */
bool hafti_io_waits_for_other_end(int directory, const char *path, int flags);

/* Waits, once, for any event on one of them, which may be one that was not asked for. `turn` is the
   number of such waits that were in vain. 0, -ETIMEDOUT, -ECANCELED, or another error; or how many
   were closed, which are marked. */
typedef int hafti_io_await_several_t(hafti_io_runner_t *runner, struct pollfd *entries,
                                     size_t count, int64_t deadline, unsigned turn);
/* Asks poll(2), and waits until one of them has a requested event; or, if `turn` is not 0, waits as
   documented at the effect haft_io_poll. */
int hafti_io_poll_by(hafti_io_await_several_t *await, hafti_io_runner_t *runner,
                     struct pollfd *entries, size_t count, int64_t deadline, unsigned turn);
/* Lets other tasks go first, which may close a descriptor that is to be polled, so that the number
   would be another file's: 0, -ECANCELED or -ENOMEM; or how many were closed, which are marked
   POLLNVAL. */
HAFTI_IO_COLD int hafti_io_let_others_close(hafti_io_crew_t *crew, struct pollfd *entries,
                                            size_t count);
/* Waits for the cell, unless there was an error. The poll of a select (select.c) returns at once:
   select waits itself. */
int hafti_io_await_poll(hafti_io_runner_t *runner, hafti_io_cell_t *cell, int code,
                        int64_t deadline);
/* Waits with one cell in the lists of all of them; a descriptor that `find` does not know is left
   out. */
int hafti_io_wait_on_several(hafti_io_descriptor_t *(*find)(hafti_io_worker_t *worker,
                                                            int descriptor),
                             hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                             int64_t deadline);
/* Stores POLLNVAL if the descriptor was closed while a task waited for it; returns how many were, 0
   or 1. */
int hafti_io_mark_closed(struct pollfd *entry, const hafti_io_waiter_t *waiter);

/* Result of a connect to a local socket whose queue is full, or of a datagram for its address: to
   be tried again later, because the kernel does not notify when there is room. (Not an error of
   connect(2) or sendto(2).) */
enum { HAFTI_IO_QUEUE_FULL = -ENOSR };

/* The address of the rest of a buffer; the buffer may be invalid, which the system reports. */
static inline const void *hafti_io_bytes_after(const void *buffer, size_t sent) {
    return (const void *)((uintptr_t)buffer + sent);
}

#endif
