/* SPDX-License-Identifier: MIT */
/*
 * The memory that the kernel is provided with, into which it puts bytes that arrive by themselves
 * (arrivals.c): a ring of blocks as they are lent. The kernel is provided with more of them when it
 * had too few, and with fewer when it has not needed them for a second.
 */
#include "../backends.h"
#include "uring.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef hafti_io_uring_state_t state_t;
typedef hafti_io_provided_t provided_t;

enum { FIRST_PROVIDED = 64 };
static const int64_t PROVIDED_FOR = HAFT_IO_SECOND; /* at least */

HAFTI_IO_COLD void hafti_io_provide_more(const state_t *state, provided_t *provided) {
    if (provided->used < HAFTI_IO_MOST_PROVIDED)
        provided->used *= 2;
    for (unsigned slot = 0; slot < provided->used; slot++)
        if (provided->slots[slot] == NULL)
            hafti_io_provide(provided, slot, hafti_io_lend_block(state->worker));
    provided->until = hafti_io_clock() + PROVIDED_FOR;
    provided->most_taken = provided->taken = 0;
}

static bool tell_of_ring(const state_t *state, void *ring) {
    struct io_uring_buf_reg given = {.ring_addr = (uintptr_t)ring,
                                     .ring_entries = HAFTI_IO_MOST_PROVIDED,
                                     .bgid = HAFTI_IO_PROVIDED_GROUP};
    io_uring_buf_ring_init(ring);
    return hafti_io_uring_register(&state->ring, IORING_REGISTER_PBUF_RING, &given, 1) == 0;
}

HAFTI_IO_COLD bool hafti_io_begin_to_provide(state_t *state) {
    enum { SIZE = HAFTI_IO_MOST_PROVIDED * sizeof(struct io_uring_buf) };
    provided_t *provided = calloc(1, sizeof *provided);
    void *ring = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (provided == NULL || ring == MAP_FAILED || !tell_of_ring(state, ring)) {
        free(provided);
        if (ring != MAP_FAILED)
            munmap(ring, SIZE);
        state->no_multishot_receive = true;
        return false;
    }
    provided->ring = ring;
    provided->used = FIRST_PROVIDED / 2;
    hafti_io_provide_more(state, provided);
    state->provided = provided;
    return true;
}

bool hafti_io_stop_providing(const state_t *state) {
    struct io_uring_buf_reg given = {.bgid = HAFTI_IO_PROVIDED_GROUP};
    return state->provided == NULL ||
           hafti_io_uring_register(&state->ring, IORING_UNREGISTER_PBUF_RING, &given, 1) == 0;
}

void hafti_io_free_provided(provided_t *provided) {
    if (provided == NULL)
        return;
    for (unsigned slot = 0; slot < provided->used; slot++)
        if (provided->slots[slot] != NULL)
            hafti_io_take_back(provided->slots[slot]);
    munmap(provided->ring, HAFTI_IO_MOST_PROVIDED * sizeof(struct io_uring_buf));
    free(provided);
}

bool hafti_io_provides_many(const state_t *state) {
    /* By itself an older kernel may take some in between. */
    return state->provided != NULL && state->provided->used > FIRST_PROVIDED &&
           state->sends_at_once;
}

/* The ring is unregistered and registered again with fewer blocks, because the kernel knows no
   other way to shrink it. */
static HAFTI_IO_COLD void provide_fewer(state_t *state, unsigned count) {
    provided_t *provided = state->provided;
    if (!hafti_io_stop_providing(state))
        return;
    if (!tell_of_ring(state, provided->ring)) {
        state->no_multishot_receive = true;
        count = 0;
    }
    for (unsigned slot = 0; slot < provided->used; slot++) {
        hafti_io_lent_t *block = provided->slots[slot];
        provided->slots[slot] = NULL;
        if (slot < count && block != NULL)
            hafti_io_provide(provided, slot, block);
        else
            free(block);
    }
    provided->used = count;
#ifdef __GLIBC__
    malloc_trim(0); /* which gives them back to the system */
#endif
}

HAFTI_IO_COLD void hafti_io_provide_no_more_than_needed(state_t *state) {
    provided_t *provided = state->provided;
    int64_t now = hafti_io_clock();
    if (provided->most_taken < provided->taken)
        provided->most_taken = provided->taken;
    provided->taken = 0;
    if (now < provided->until || io_uring_cq_ready(&state->ring) != 0)
        return;
    unsigned needed = FIRST_PROVIDED;
    while (needed < 2 * provided->most_taken)
        needed *= 2;
    if (needed < provided->used)
        provide_fewer(state, needed);
    provided->until = now + PROVIDED_FOR;
    provided->most_taken = 0;
}
