/* SPDX-License-Identifier: MIT */
/*
 * Waiting for several descriptors at once: the part that the back ends share. poll(2) decides what
 * is ready, and a back end decides when to call it again.
 */
#include "operations.h"

#include <poll.h>
#include <stdlib.h>

static __attribute__((noinline)) int look(struct pollfd *entries, size_t count) {
    int ready;
    do
        ready = HAFTI_IO_RESULT(poll(entries, count, 0));
    while (ready == -EINTR);
    return ready;
}

static int await_change(hafti_io_await_several_t *await, hafti_io_runner_t *runner,
                        struct pollfd *entries, size_t count, int64_t deadline, unsigned turn) {
    for (size_t i = 0; i < count; i++)
        entries[i].revents = 0;
    int code = await(runner, entries, count, deadline, turn);
    return code == 0 ? 1 : code == -ETIMEDOUT ? 0 : code;
}

static int poll_by(hafti_io_await_several_t *await, hafti_io_runner_t *runner,
                   struct pollfd *entries, size_t count, int64_t deadline, unsigned turn) {
    bool shares_cell = runner->poll_cell != NULL;
    if (turn != 0)
        return await_change(await, runner, entries, count, deadline, turn);
    for (;; turn++) {
        int ready = look(entries, count);
        if (ready != 0 || deadline <= hafti_io_worker_now(runner->worker))
            return ready;
        int code = await(runner, entries, count, deadline, turn);
        if (code == -ETIMEDOUT)
            return look(entries, count);
        if (code != 0)
            return code;
        if (shares_cell) /* which is won, perhaps by somebody else */
            return 1;
    }
}

int hafti_io_poll_by(hafti_io_await_several_t *await, hafti_io_runner_t *runner,
                     struct pollfd *entries, size_t count, int64_t deadline, unsigned turn) {
    hafti_io_worker_t *worker = runner->worker;
    if (hafti_io_uses_uncounted(worker))
        return poll_by(await, runner, entries, count, deadline, turn);
    size_t used = 0;
    int ready = 0;
    for (; used < count && ready == 0; used += ready == 0) {
        entries[used].revents = 0;
        if (entries[used].fd >= 0)
            ready = hafti_io_begin_use(worker, entries[used].fd);
    }
    if (used == count) {
        ready = poll_by(await, runner, entries, count, deadline, turn);
    } else if (ready == -EBADF) {
        entries[used].revents = POLLNVAL; /* the first that is being closed */
        ready = 1;
    }
    for (size_t i = used + 1; i < count; i++)
        entries[i].revents = 0;
    while (used-- != 0)
        if (entries[used].fd >= 0)
            hafti_io_end_use(worker, entries[used].fd);
    return ready;
}

static uint32_t life_of(hafti_io_descriptors_t *table, int descriptor) {
    const hafti_io_descriptor_t *entry = hafti_io_descriptor(table, descriptor, true);
    return entry != NULL ? __atomic_load_n(&entry->life, __ATOMIC_RELAXED) : 0;
}

int hafti_io_let_others_close(hafti_io_crew_t *crew, struct pollfd *entries, size_t count) {
    uint32_t few[HAFTI_IO_FEW];
    uint32_t *lives = count <= HAFTI_IO_FEW ? few : calloc(count, sizeof *lives);
    if (lives == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        lives[i] = life_of(crew->descriptors, entries[i].fd);
    int code = hafti_io_goes_on_after_others(HAFTI_IO_CANCELLABLE) ? 0 : -ECANCELED;
    for (size_t i = 0; i < count && code >= 0; i++) {
        bool is_closed = life_of(crew->descriptors, entries[i].fd) != lives[i];
        entries[i].revents = is_closed ? POLLNVAL : 0;
        code += is_closed;
    }
    if (lives != few)
        free(lives);
    return code;
}

int hafti_io_mark_closed(struct pollfd *entry, const hafti_io_waiter_t *waiter) {
    if (!hafti_io_was_closed(waiter))
        return 0;
    entry->revents = POLLNVAL;
    return 1;
}

int hafti_io_await_poll(hafti_io_runner_t *runner, hafti_io_cell_t *cell, int code,
                        int64_t deadline) {
    bool is_shared = cell == runner->poll_cell;
    if (code == 0) {
        runner->poll_cell = NULL;
        return hafti_io_code_of(hafti_io_cell_wait(cell, HAFTI_IO_CANCELLABLE, deadline,
                                                   hafti_io_kind_name(HAFTI_IO_POLL)));
    }
    if (!is_shared)
        hafti_io_cell_give_up(cell);
    return code;
}

int hafti_io_wait_on_several(hafti_io_descriptor_t *(*find)(hafti_io_worker_t *worker,
                                                            int descriptor),
                             hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                             int64_t deadline) {
    hafti_io_worker_t *worker = runner->worker;
    hafti_io_waiter_t few[HAFTI_IO_FEW];
    hafti_io_waiter_t *waiters = count <= HAFTI_IO_FEW ? few : calloc(count, sizeof *waiters);
    if (waiters == NULL)
        return -ENOMEM;
    hafti_io_cell_t own = {HAFTI_IO_WAITING, runner->task};
    hafti_io_cell_t *cell = runner->poll_cell != NULL ? runner->poll_cell : &own;
    int code = 0, closed = 0;
    for (size_t i = 0; i < count; i++) {
        waiters[i] = (hafti_io_waiter_t){.cell = cell};
        hafti_io_descriptor_t *known =
            entries[i].fd >= 0 && code == 0 ? find(worker, entries[i].fd) : NULL;
        if (known == NULL)
            continue;
        hafti_io_operation_t operation = hafti_io_operation_of(&entries[i]);
        code = hafti_io_enlist(known, &waiters[i], cell, &operation, false, false);
        if (code == -EBADF) /* Once it is in a list, a close of the descriptor wakes it. */
            waiters[i].closed = true;
    }
    hafti_io_count_in(runner->task);
    code = hafti_io_await_poll(runner, cell, code, deadline);
    hafti_io_count_out(runner->task);
    for (size_t i = 0; i < count; i++) {
        if (waiters[i].descriptor != NULL)
            hafti_io_delist(&waiters[i]);
        closed += hafti_io_mark_closed(&entries[i], &waiters[i]);
    }
    if (waiters != few)
        free(waiters);
    return closed != 0 ? closed : code;
}
