/* SPDX-License-Identifier: MIT */
/* How often the tasks of a name were woken, counted while haft-top is connected. */
#include "workers.h"

#include <string.h>

enum { PLACES = 1024, LOOKS = 16, SIZE = 48 /* bytes of a name that count */ };

typedef struct wakes {
    uint64_t hash; /* of the name; 0: free */
    uint64_t count;
} wakes_t;
static wakes_t all[PLACES];

/* The hash of a name; never 0. */
static uint64_t hash_of(const char *name) {
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < SIZE && name != NULL && name[i] != '\0'; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001B3);
    return hash | 1;
}

/* NULL: the name has no place; if it is to get one, none is free. */
static wakes_t *place_of(const char *name, bool gets_one) {
    uint64_t hash = hash_of(name);
    for (unsigned i = 0; i < LOOKS; i++) {
        wakes_t *place = &all[((hash >> 32) + i) % PLACES];
        uint64_t found = __atomic_load_n(&place->hash, __ATOMIC_RELAXED);
        if (found == 0 && !gets_one)
            return NULL;
        if (found == 0)
            (void)__atomic_compare_exchange_n(&place->hash, &found, hash, false, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED);
        if (found == 0 || found == hash)
            return place;
    }
    return NULL;
}

void hafti_io_count_wake(const haft_io_task_t *task) {
    wakes_t *place = place_of(__atomic_load_n(&task->name, __ATOMIC_RELAXED), true);
    if (place != NULL)
        __atomic_fetch_add(&place->count, 1, __ATOMIC_RELAXED);
}

uint64_t hafti_io_wakes_of(const char *name) {
    const wakes_t *place = place_of(name, false);
    return place != NULL ? __atomic_load_n(&place->count, __ATOMIC_RELAXED) : 0;
}
