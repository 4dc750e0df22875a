/* SPDX-License-Identifier: MIT */
/*
 * The list of the places in which tasks wait, which the synchronisation objects share.
 *
 * A releasing thread takes the first place out of the list and tries to win its cell, under the
 * object's lock. A waiter that was cancelled, or whose deadline has passed, leaves its place under
 * the same lock. So a place in the list, and its cell, are always alive.
 */
#include "waits.h"

void hafti_io_take_first_place(haft_io_waiting_t *list, hafti_io_place_t *place) {
    place->list = list;
    place->previous = NULL;
    place->next = list->first;
    if (list->first != NULL)
        list->first->previous = place;
    else
        list->last = place;
    list->first = place;
}

void hafti_io_leave_place(hafti_io_place_t *place) {
    haft_io_waiting_t *list = place->list;
    if (list == NULL)
        return;
    if (place->next != NULL)
        place->next->previous = place->previous;
    else
        list->last = place->previous;
    if (place->previous != NULL)
        place->previous->next = place->next;
    else
        list->first = place->next;
    place->list = NULL;
}

hafti_io_place_t *hafti_io_claim_all(haft_io_waiting_t *list) {
    hafti_io_place_t *first = hafti_io_claim_first(list);
    for (hafti_io_place_t *last = first; last != NULL; last = last->next)
        last->next = hafti_io_claim_first(list);
    return first;
}

void hafti_io_let_all_go(hafti_io_place_t *places) {
    while (places != NULL) {
        hafti_io_place_t *next = places->next; /* The place may be gone then. */
        haft_io_task_t *joiner = places->joins ? places->cell->task : NULL;
        bool keeps_no_place =
            hafti_io_is_of_this_thread(joiner) && !hafti_io_linked(&joiner->queued);
        hafti_io_let_go(places);
        if (keeps_no_place)
            hafti_io_favour(joiner);
        places = next;
    }
}

int hafti_io_code_of(uint32_t outcome) {
    return outcome == HAFTI_IO_CANCELLED   ? -ECANCELED
           : outcome == HAFTI_IO_TIMED_OUT ? -ETIMEDOUT
                                           : 0;
}

int hafti_io_wait_at(hafti_io_place_t *place, uint32_t *lock, int64_t deadline,
                     enum hafti_io_wait_kind kind, const char *waits_for) {
    uint32_t outcome = hafti_io_wait_here(place->cell, kind, deadline, waits_for);
    if (HAFTI_IO_LIKELY(outcome == HAFTI_IO_WOKEN))
        return 0;
    hafti_io_guard(lock);
    hafti_io_leave_place(place);
    hafti_io_unguard(lock);
    return hafti_io_code_of(outcome);
}

int hafti_io_wait_in(uint32_t *lock, haft_io_waiting_t *list, int64_t deadline,
                     enum hafti_io_wait_kind kind, const char *waits_for, void **given) {
    hafti_io_cell_t cell = hafti_io_cell_to_wait(lock);
    hafti_io_place_t place = {.cell = &cell, .outcome = HAFTI_IO_WOKEN};
    hafti_io_take_place(list, &place);
    hafti_io_unguard(lock);
    int code = hafti_io_wait_at(&place, lock, deadline, kind, waits_for);
    if (given != NULL && code == 0)
        *given = place.value;
    return code;
}
