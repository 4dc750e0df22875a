/* SPDX-License-Identifier: MIT */
/*
 * Numbers for sets of effects. Every place in a program where HAFT_HANDLES is written has a set of
 * its own; those with the same contents get the same number when they are first used. So a fiber
 * that is resumed at many places, as in a loop of cases, is known to handle the same effects as
 * before.
 *
 * Invariant: two sets with one number have the same contents. (The converse does not hold: two
 * threads that number a set at once may draw two.)
 */
#include "lookup.h"

bool haft_same_effects(const haft_handles_t *one, const haft_handles_t *other) {
    if (one == NULL || other == NULL || one->count != other->count || one->all != other->all)
        return false;
    for (uint32_t i = 0; i < one->count; i++)
        if (one->clauses[i].effect != other->clauses[i].effect ||
            one->clauses[i].kind != other->clauses[i].kind ||
            one->clauses[i].function != other->clauses[i].function)
            return false;
    return true;
}

#ifdef HAFT_FREESTANDING

uint32_t haft_number_of_new(const haft_handles_t *handles) {
    (void)handles;
    return HAFTI_SET_NONE;
}

#else

#    include <stdlib.h>
#    include <string.h>

/* The numbered sets: copies, because a plugin may be closed. New ones are only ever prepended. */
typedef struct numbered {
    struct numbered *next;
    haft_handles_t set;
    haft_clause_t clauses[];
} numbered_t;
static numbered_t *known;

static uint16_t known_number(const haft_handles_t *handles) {
    for (const numbered_t *at = __atomic_load_n(&known, __ATOMIC_ACQUIRE); at != NULL;
         at = at->next)
        if (haft_same_effects(&at->set, handles))
            return at->set.number;
    return HAFTI_SET_NONE;
}

static uint16_t draw_number(const haft_handles_t *handles) {
    size_t size = handles->count * sizeof handles->clauses[0];
    numbered_t *drawn = malloc(sizeof *drawn + size);
    if (drawn == NULL)
        return HAFTI_SET_NONE;
    if (size != 0)
        memcpy(drawn->clauses, handles->clauses, size);
    drawn->set = (haft_handles_t){handles->count, handles->all, 0, drawn->clauses};
    drawn->next = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
    do {
        if (drawn->next != NULL && drawn->next->set.number == UINT16_MAX) {
            free(drawn);
            return HAFTI_SET_NONE;
        }
        drawn->set.number =
            drawn->next == NULL ? HAFTI_SET_FIRST : (uint16_t)(drawn->next->set.number + 1);
    } while (!__atomic_compare_exchange_n(&known, &drawn->next, drawn, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return drawn->set.number;
}

uint32_t haft_number_of_new(const haft_handles_t *handles) {
    uint16_t number = __atomic_load_n(&handles->number, __ATOMIC_RELAXED);
    if (number != HAFTI_SET_UNNUMBERED)
        return HAFTI_SET_NONE;
    number = known_number(handles);
    if (number == HAFTI_SET_NONE)
        number = draw_number(handles);
    /* HAFTI_SET_NONE is not stored: it would be taken for the number of a fiber's set, which may
       have none. */
    __atomic_store_n(&((haft_handles_t *)(uintptr_t)handles)->number,
                     number == HAFTI_SET_NONE ? HAFTI_SET_FIXED : number, __ATOMIC_RELAXED);
    return number;
}

#endif
