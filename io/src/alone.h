/* SPDX-License-Identifier: MIT */
/*
 * What the back ends share of what is done most often, in a run that is alone: the only reader of a stream waits, and
 * is woken; an answer is sent. Inlined, so that few frames lie between the program's call and the switch (wait.h).
 */
#ifndef HAFT_IO_ALONE_H
#define HAFT_IO_ALONE_H

#include "wait.h"

/* Waits to read what no other task waits to read, and some task has waited on before. 0, -ECANCELED, or -EBADF: it
   was closed. */
static inline __attribute__((always_inline)) int
haft_io_wait_to_read(haft_io_descriptor_t *known, haft_io_waiter_t *waiter, haft_io_cell_t *cell) {
    haft_io_worker_t *worker = cell->task->worker;
    haft_io_enlist_first(known, waiter, cell, HAFT_IO_INWARD);
    worker->waiting++;
    uint32_t outcome = haft_io_wait_here(cell, HAFT_IO_CANCELLABLE, HAFT_IO_FOREVER, "read");
    worker->waiting--;
    haft_io_delist_first(waiter, HAFT_IO_INWARD);
    if (HAFT_IO_UNLIKELY(outcome == HAFT_IO_CANCELLED))
        return -ECANCELED;
    return HAFT_IO_LIKELY(!haft_io_was_closed(waiter)) ? 0 : -EBADF;
}

/* As haft_io_wake. Mostly one waits, in one direction. */
static inline __attribute__((always_inline)) void
haft_io_wake_alone(haft_io_descriptor_t *known, enum haft_io_direction direction) {
    const haft_io_link_t *head = &known->waiters[direction];
    haft_io_link_t *link = head->next;
    haft_io_waiter_t *waiter = HAFT_IO_OWNER(link, haft_io_waiter_t, links[direction]);
    if (link == head)
        return;
    if (HAFT_IO_UNLIKELY(link->next != head || waiter->asks ||
                         haft_io_linked(&waiter->links[!direction]))) {
        haft_io_wake(known, direction, false, false);
        return;
    }
    haft_io_unlink(link);
    haft_io_cell_win(waiter->cell, HAFT_IO_WOKEN);
}

/* The clause of haft_io_exchange, with that of haft_io_read_lent: sends without asking for anything first. */
static inline __attribute__((always_inline)) ssize_t haft_io_exchange_at_once(
    haft_io_runner_t *runner, HAFT_PAYLOAD(haft_io_exchange) * p,
    ssize_t (*read_lent)(haft_io_runner_t *runner, int descriptor, const void **bytes)) {
    if (HAFT_IO_UNLIKELY(p->size == 0))
        return haft_io_exchange_rest(runner, p, 0);
    int *error = runner->worker->error, saved = *error;
    ssize_t sent = send(p->descriptor, p->buffer, p->size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (HAFT_IO_UNLIKELY(sent < 0)) {
        int code = -*error;
        *error = saved;
        if (code != -EAGAIN && code != -EINTR && code != -ENOTSOCK)
            return code;
        sent = 0;
    }
    if (HAFT_IO_UNLIKELY((size_t)sent != p->size))
        return haft_io_exchange_rest(runner, p, (size_t)sent);
    haft_io_give_back(*p->bytes);
    *p->bytes = NULL;
    return read_lent(runner, p->descriptor, p->bytes);
}

#endif
