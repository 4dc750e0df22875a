/* SPDX-License-Identifier: MIT */
/*
 * The back end of a child of fork. The kernel's objects of a run (its epoll, its ring) are still
 * the parent's: using them in the child would change them in the parent. So an operation that can
 * be done at once is done, a descriptor is closed in the child alone, and every wait is reported.
 */
#include "operations.h"

static ssize_t operate_in_child(hafti_io_runner_t *runner, hafti_io_operation_t *operation) {
    ssize_t done = hafti_io_attempt(operation);
    if (done == HAFTI_IO_MAY_WAIT)
        return hafti_io_operate_blocking(operation);
    if (done == -EAGAIN)
        hafti_io_waits_in_child(runner->task);
    return done;
}

static int close_here(hafti_io_worker_t *worker, int descriptor) {
    (void)worker;
    return hafti_io_close_file(descriptor);
}

static int poll_several_in_child(hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                                 int64_t deadline, unsigned turn) {
    (void)turn;
    int ready = hafti_io_poll_blocking(entries, count, 0);
    if (ready == 0 && hafti_io_worker_now(runner->worker) < deadline)
        hafti_io_waits_in_child(runner->task);
    return ready;
}

static void poll_for_tasks(hafti_io_worker_t *worker, int64_t nanoseconds) {
    (void)worker, (void)nanoseconds;
    hafti_io_waits_in_child(NULL);
}

static void do_nothing(hafti_io_worker_t *worker) {
    (void)worker;
}

static const hafti_io_backend_t in_child = {.name = "a child of fork",
                                            .stop = do_nothing,
                                            .operate = operate_in_child,
                                            .transfer = hafti_io_transfer_generally,
                                            .close = close_here,
                                            .poll_several = poll_several_in_child,
                                            .poll = poll_for_tasks,
                                            .interrupt = do_nothing};

void hafti_io_become_child(hafti_io_crew_t *crew) {
    crew->closers = 0;
    crew->top = NULL;
    crew->watchdog = NULL; /* whose thread is not in the child */
    crew->pool = NULL; /* Its threads are not in the child; their waiters still have its address. */
    for (unsigned i = 0; i < crew->count; i++) {
        crew->workers[i]->backend = &in_child;
        crew->workers[i]->forked = crew->workers[i]->by_loop = true;
        crew->workers[i]->posting = 0; /* the threads that were posting are not in the child */
        hafti_io_set_plain(crew->workers[i]);
    }
}
