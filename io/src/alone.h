/* SPDX-License-Identifier: MIT */
/*
 * What the back ends share for the most frequent event in a run of one thread: the only reader of a
 * stream is woken.
 */
#ifndef HAFTI_IO_ALONE_H
#define HAFTI_IO_ALONE_H

#include "operations.h"

/* As hafti_io_wake. Mostly one waits, in one direction. */
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

#endif
