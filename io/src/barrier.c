/* SPDX-License-Identifier: MIT */
/* Barriers: tasks wait until enough have come. */
#include "objects.h"

/* Waiters that have given up, but have not left the list yet, count as not arrived. */
static void forget_who_gave_up(haft_io_barrier_t *barrier) {
    hafti_io_place_t *next;
    for (hafti_io_place_t *place = barrier->waiting.first; place != NULL; place = next) {
        next = place->next;
        if (__atomic_load_n(&place->cell->word, __ATOMIC_RELAXED) == HAFTI_IO_WAITING)
            continue;
        hafti_io_leave_place(place);
        barrier->arrived--;
    }
}

int haft_io_barrier_wait_until(haft_io_barrier_t *barrier, int64_t deadline) {
    if (HAFTI_IO_UNLIKELY(!hafti_io_has_its_turn(HAFTI_IO_CANCELLABLE)))
        return haft_io_unwind_cancelled();
    hafti_io_guard(&barrier->lock);
    if (barrier->arrived + 1 >= barrier->needed)
        forget_who_gave_up(barrier); /* one by one: not at each arrival */
    if (barrier->arrived + 1 >= barrier->needed) {
        barrier->arrived = 0;
        hafti_io_place_t *all = hafti_io_claim_all(&barrier->waiting);
        hafti_io_unguard(&barrier->lock);
        hafti_io_let_all_go(all);
        return 1;
    }
    hafti_io_cell_t cell = hafti_io_cell_to_wait(&barrier->lock);
    hafti_io_place_t place = {.cell = &cell, .outcome = HAFTI_IO_WOKEN};
    barrier->arrived++;
    hafti_io_take_place(&barrier->waiting, &place);
    hafti_io_unguard(&barrier->lock);
    uint32_t outcome =
        hafti_io_cell_wait(&cell, HAFTI_IO_CANCELLABLE, deadline, "the others at a barrier");
    if (HAFTI_IO_LIKELY(outcome == HAFTI_IO_WOKEN))
        return 0;
    hafti_io_guard(&barrier->lock);
    if (place.list != NULL) {
        hafti_io_leave_place(&place);
        barrier->arrived--;
    }
    hafti_io_unguard(&barrier->lock);
    return outcome == HAFTI_IO_CANCELLED ? haft_io_unwind_cancelled() : -ETIMEDOUT;
}

int haft_io_barrier_wait(haft_io_barrier_t *barrier) {
    return haft_io_barrier_wait_until(barrier, HAFT_IO_FOREVER);
}
