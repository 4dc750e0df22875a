/* SPDX-License-Identifier: MIT */
/*
 * Functions that the back ends share for the most frequent events in a run of one thread: the only
 * reader of a stream waits, and is woken.
 */
#ifndef HAFTI_IO_ALONE_H
#define HAFTI_IO_ALONE_H

#include "operations.h"

/* Like hafti_io_wake, but faster where a single task waits, in one direction. */
static inline __attribute__((always_inline)) void
hafti_io_wake_alone(hafti_io_descriptor_t *known, enum hafti_io_direction direction) {
    const hafti_io_link_t *head = &known->waiters[direction];
    hafti_io_link_t *link = head->next;
    hafti_io_waiter_t *waiter = HAFTI_IO_OWNER(link, hafti_io_waiter_t, links[direction]);
    if (link == head)
        return;
    if (HAFTI_IO_UNLIKELY(link->next != head || waiter->asks ||
                          hafti_io_linked(&waiter->links[!direction]))) {
        hafti_io_wake(known, direction, false, false);
        return;
    }
    hafti_io_unlink(link);
    hafti_io_cell_win(waiter->cell, HAFTI_IO_WOKEN);
}

/* Waits to read, for a task whose wake-up is sure to come, and beside which no other waits in that
   direction. Returns 0, -ECANCELED, or -EBADF: it was closed. Inlined, so that few frames lie
   between the program's call and the switch. */
static inline __attribute__((always_inline)) int hafti_io_wait_to_read(hafti_io_descriptor_t *known,
                                                                       hafti_io_waiter_t *waiter,
                                                                       hafti_io_cell_t *cell) {
    hafti_io_worker_t *worker = cell->task->worker;
    hafti_io_enlist_first(known, waiter, cell, HAFTI_IO_INWARD);
    worker->waiting++;
    uint32_t outcome = hafti_io_wait_here(cell, HAFTI_IO_CANCELLABLE, HAFT_IO_FOREVER, "read");
    worker->waiting--;
    hafti_io_delist_first(waiter, HAFTI_IO_INWARD);
    if (HAFTI_IO_UNLIKELY(outcome == HAFTI_IO_CANCELLED))
        return -ECANCELED;
    return HAFTI_IO_LIKELY(!hafti_io_was_closed(waiter)) ? 0 : -EBADF;
}

#endif
