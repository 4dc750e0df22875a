/* SPDX-License-Identifier: MIT */
/* The prefetching binary search, Haft (§4.2.2): reading from memory is an effect. The search is the
 * plain one; its handler hints at the address, lets the other searches run, and replies with what
 * is there by then. */
#include "../prefetch.h"

#include <haft.h>

HAFT_EFFECT(dereference, int, { const int *address; });

typedef struct search {
    haft_fiber_t *fiber; /* NULL when there are no more keys */
    prefetch_data_t data;
    int key;
    bool found;
    const int *address; /* what the fiber waits for */
} search_t;

static void *binary_search(void *argument) {
    search_t *search = argument;
    const int *first = search->data.array;
    size_t length = search->data.length;
    int key = search->key;
    while (length > 0) {
        size_t half = length / 2;
        int value = HAFT_PERFORM(dereference, first + half);
        if (value == key) {
            search->found = true;
            return NULL;
        }
        if (value < key) {
            first += half + 1;
            length -= half + 1;
        } else {
            length = half;
        }
    }
    return NULL;
}

/* Remembers what the search waits for; false when it has ended. */
static inline bool wait_for(search_t *search, haft_request_t request) {
    if (haft_finished(request))
        return false;
    search->address = ((HAFT_PAYLOAD(dereference) *)request.payload)->address;
    prefetch_hint(search->address);
    return true;
}

BENCHMARK_SERIES("prefetch-haft", prefetch_haft, PREFETCH_STREAMS) {
    const haft_handles_t *reads = HAFT_HANDLES(dereference);
    prefetch_data_t data = prefetch_load();
    search_t searches[PREFETCH_MAXIMUM_STREAMS];
    int streams = (int)benchmark->parameter, active = 0;
    uint64_t next = 0, found = 0;
    for (int i = 0; i < streams; i++) {
        searches[i] =
            (search_t){.fiber = haft_fiber_new(binary_search, &searches[i]), .data = data};
        searches[i].key = prefetch_key(&data, next++);
        wait_for(&searches[i], haft_resume(searches[i].fiber, HAFT_NO_REPLY, reads));
        active++;
    }
    benchmark_start(benchmark);
    while (active > 0) {
        for (search_t *search = searches; search < searches + streams; search++) {
            if (!search->fiber)
                continue;
            int value = *search->address;
            haft_fiber_t *fiber = search->fiber;
            if (wait_for(search, haft_resume(fiber, HAFT_REPLY(dereference, value), reads)))
                continue;
            found += search->found;
            if (next < benchmark->operations) {
                search->found = false;
                search->key = prefetch_key(&data, next++);
                haft_fiber_reset(fiber, binary_search, search);
                wait_for(search, haft_resume(fiber, HAFT_NO_REPLY, reads));
            } else {
                haft_fiber_drop(fiber);
                search->fiber = NULL;
                active--;
            }
        }
    }
    benchmark_stop(benchmark);
    uint64_t keys =
        benchmark->operations > (uint64_t)streams ? benchmark->operations : (uint64_t)streams;
    prefetch_check(&data, keys, found);
}
