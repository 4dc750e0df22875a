/* SPDX-License-Identifier: MIT */
/*
 * Requests of tasks to io_uring: to do an operation, or to report when a descriptor is ready for
 * it.
 *
 * A request lies in the frame of the task that waits. The kernel may write to its buffer until it
 * has completed the request. So a cancelled task asks for the request back, and waits with a second
 * cell until the kernel has answered: with -ECANCELED, or with the result if it had one already.
 */
#include "../backends.h"
#include "uring.h"

#include <sys/stat.h>

typedef hafti_io_uring_state_t state_t;
typedef hafti_io_uring_request_t request_t;

/* Waits until the kernel has answered the first request; an answer to the second, which may be the
   same, wakes the task, too. */
void hafti_io_uring_await_answer(request_t *request, request_t *other, haft_io_task_t *task,
                                 enum hafti_io_kind kind) {
    while (!request->done) {
        hafti_io_cell_t last = {HAFTI_IO_WAITING, task};
        request->waiter.cell = other->waiter.cell = &last;
        hafti_io_cell_wait(&last, HAFTI_IO_TO_THE_END, HAFT_IO_FOREVER, hafti_io_kind_name(kind));
    }
}

/* Withdraws a request after a cancel, or when its descriptor was closed; returns when the kernel no
   longer uses the buffer. The kernel does not find a request (-ENOENT) that is on its way from a
   poll to one of its threads, where it would wait forever. */
HAFTI_IO_COLD void hafti_io_uring_withdraw(request_t *request, haft_io_task_t *task,
                                           enum hafti_io_kind kind) {
    request_t back;
    do {
        struct io_uring_sqe *entry = hafti_io_uring_entry(task->worker->backend_state);
        io_uring_prep_cancel(entry, request, 0);
        hafti_io_uring_begin(task, entry, &back);
        hafti_io_uring_await_answer(&back, request, task, kind);
    } while (!request->done && back.result == -ENOENT);
    hafti_io_uring_await_answer(request, &back, task, kind);
}

HAFTI_IO_COLD void hafti_io_uring_learn_nature(hafti_io_descriptor_t *entry, int descriptor) {
    struct stat status;
    if (fstat(descriptor, &status) == 0)
        __atomic_store_n(&entry->nature,
                         S_ISSOCK(status.st_mode)                             ? HAFTI_IO_SOCKET
                         : S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) ? HAFTI_IO_FILE
                                                                              : HAFTI_IO_STREAM,
                         __ATOMIC_RELAXED);
}

static void prepare(struct io_uring_sqe *entry, const hafti_io_operation_t *o, int nature) {
    if (nature == HAFTI_IO_SOCKET && hafti_io_uring_sends(o))
        hafti_io_uring_prepare_send(entry, o->descriptor, o->buffer, o->size);
    else if (nature == HAFTI_IO_SOCKET) /* MSG_WAITALL would repeat a peek, and join packets */
        io_uring_prep_recv(entry, o->descriptor, o->buffer, hafti_io_uring_at_once(o->size),
                           o->flags & ~MSG_WAITALL);
    else if (o->kind == HAFTI_IO_READ)
        io_uring_prep_read(entry, o->descriptor, o->buffer, hafti_io_uring_at_once(o->size),
                           (uint64_t)-1);
    else
        io_uring_prep_write(entry, o->descriptor, o->buffer, hafti_io_uring_at_once(o->size),
                            (uint64_t)-1);
}

/* Makes one request to the kernel: the operation itself, for a descriptor of that nature, or
   (HAFTI_IO_UNKNOWN) a wait until the descriptor is ready. Every task that waits has these frames
   on its stack: they are kept small. */
__attribute__((noinline)) int hafti_io_uring_ask(hafti_io_runner_t *runner,
                                                 hafti_io_descriptor_t *known,
                                                 const hafti_io_operation_t *operation,
                                                 uint8_t nature) {
    state_t *state = runner->worker->backend_state;
    if (hafti_io_is_withdrawn(runner))
        return -ECANCELED;
    hafti_io_cell_t cell = {HAFTI_IO_WAITING, runner->task};
    request_t request;
    bool sent_at_once = nature == HAFTI_IO_SOCKET && hafti_io_uring_sends(operation);
    int code = hafti_io_enlist(known, &request.waiter, &cell, operation,
                               operation->kind <= HAFTI_IO_SEND && !sent_at_once, true);
    if (code != 0)
        return code;
    struct io_uring_sqe *entry = hafti_io_uring_entry(state);
    if (nature != HAFTI_IO_UNKNOWN)
        prepare(entry, operation, nature);
    else
        io_uring_prep_poll_add(entry, operation->descriptor,
                               (unsigned)hafti_io_events_of(operation));
    hafti_io_uring_begin(runner->task, entry, &request);
    hafti_io_cell_wait(&cell, HAFTI_IO_CANCELLABLE, HAFT_IO_FOREVER,
                       hafti_io_kind_name(operation->kind));
    hafti_io_delist(&request.waiter);
    return hafti_io_uring_answer(&request, runner->task, operation->kind, nature);
}

int hafti_io_uring_await(hafti_io_runner_t *runner, hafti_io_descriptor_t *known,
                         const hafti_io_operation_t *operation, unsigned turn) {
    int code = turn == 0 && !hafti_io_uring_is_crowded(runner->worker)
                   ? hafti_io_uring_ask(runner, known, operation, HAFTI_IO_UNKNOWN)
                   : -EINVAL;
    /* The kernel returns -EINVAL for a file. */
    return code == -EINVAL ? hafti_io_await_edge(runner, known, operation, turn) : code;
}

ssize_t hafti_io_uring_attempt(const hafti_io_descriptor_t *known, hafti_io_operation_t *operation,
                               unsigned turn) {
    ssize_t done = hafti_io_attempt(operation);
    bool may_be_at_end = turn != 0 || __atomic_load_n(&known->ended, __ATOMIC_RELAXED);
    return done == -EAGAIN && may_be_at_end ? hafti_io_attempt_at_end(operation) : done;
}
