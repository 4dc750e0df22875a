/* SPDX-License-Identifier: MIT */
/* The operations: tried on the thread, waited for in the back end, or given to the pool. */
#ifndef HAFTI_IO_OPERATIONS_H
#define HAFTI_IO_OPERATIONS_H

#include "scheduler.h"

/* In a child of fork (child.c): the run's workers do not touch what the kernel keeps for the
   parent. */
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
/* Makes the call on a thread of the pool, for some milliseconds. HAFTI_IO_MAY_WAIT: in vain,
   because another thread was faster; it is to be tried again. */
ssize_t hafti_io_operate_in_pool(hafti_io_runner_t *runner, hafti_io_operation_t *operation);
/* On a task: haft_io_call_briefly by a thread of the pool; elsewhere the function is called here.
   0, or why it was not. */
int hafti_io_call_for_a_moment(void (*function)(void *), void *argument);
/* Makes the system call and waits for it on this thread. */
ssize_t hafti_io_operate_blocking(hafti_io_operation_t *operation);
/* Reads or writes by `operate` of the back end. */
hafti_io_transfer_t hafti_io_transfer_generally;
/* Send without asking the kernel for anything first; in a run of one thread. */
hafti_io_transfer_t hafti_io_write_at_once;
ssize_t hafti_io_send_last_at_once(hafti_io_worker_t *worker, int descriptor,
                                   hafti_io_sending_t *unused, hafti_io_lent_t *lent, size_t size);

/* haft_io_call_blocking and haft_io_call_or_leave for the library's own calls, which are the
   machine's in a simulation, too. */
int hafti_io_call_in_pool(void (*function)(void *), void *argument, void (*left)(void *));
/* The same, but in a simulation the task itself calls, after others have gone on. */
int hafti_io_call_or_leave(void (*function)(void *), void *argument, void (*left)(void *));
/* In a cancelled task only waits TO_THE_END are begun. */
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
/* Asks poll(2), and waits until one of them has a requested event; or, if `turn` is not 0, does
   what the effect haft_io_poll says. */
int hafti_io_poll_by(hafti_io_await_several_t *await, hafti_io_runner_t *runner,
                     struct pollfd *entries, size_t count, int64_t deadline, unsigned turn);
/* Lets other tasks go first, which may close what is to be polled, so that the next look would be
   at another file: 0, -ECANCELED or -ENOMEM; or how many were closed, which are marked POLLNVAL. */
HAFTI_IO_COLD int hafti_io_let_others_close(hafti_io_crew_t *crew, struct pollfd *entries,
                                            size_t count);
/* Waits for the cell, unless there was an error; of a poll that is one of several waits (select.c),
   that is done there. */
int hafti_io_await_poll(hafti_io_runner_t *runner, hafti_io_cell_t *cell, int code,
                        int64_t deadline);
/* Waits with one cell in the lists of all of them; a descriptor that `find` does not know is left
   out. */
int hafti_io_wait_on_several(hafti_io_descriptor_t *(*find)(hafti_io_worker_t *worker,
                                                            int descriptor),
                             hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                             int64_t deadline);
/* POLLNVAL for one that was closed while it was waited for; how many that are. */
int hafti_io_mark_closed(struct pollfd *entry, const hafti_io_waiter_t *waiter);

/* Result of a connect to a local socket whose queue is full, or of a datagram for its address: to
   be tried again later, because the kernel does not notify when there is room. (Not an error of
   connect(2) or sendto(2).) */
enum { HAFTI_IO_QUEUE_FULL = -ENOSR };

/* The address of the rest of a buffer. The buffer may be invalid, which the system reports. */
static inline const void *hafti_io_bytes_after(const void *buffer, size_t sent) {
    return (const void *)((uintptr_t)buffer + sent);
}

#endif
