/* SPDX-License-Identifier: MIT */
/* The objects of a simulation: their table and their numbers, how bytes are copied, and which
   faults come. */
#include "simulation.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

typedef hafti_io_simulated_state_t state_t;
typedef hafti_io_object_t object_t;

/* ---- The table of objects ---- */

/* The seed decides where the numbers begin, each time in the same place: so one that a program has
   kept from the simulation before, with another seed, is most likely none. */
int hafti_io_first_number(uint64_t seed) {
    enum { BLOCK_BITS = 12, NUMBERS = 1 << 17 }; /* altogether less than 1 << 30 */
    unsigned block = (unsigned)(seed * UINT64_C(0x9e3779b97f4a7c15) >> (64 - BLOCK_BITS));
    return HAFTI_IO_FIRST_SIMULATED + (int)block * NUMBERS;
}

object_t *hafti_io_object_of(state_t *state, int descriptor) {
    return descriptor >= state->first && descriptor - state->first < state->count
               ? state->numbers[descriptor - state->first]->object
               : NULL;
}

hafti_io_number_t *hafti_io_number_of(state_t *state, int descriptor) {
    return state->numbers[descriptor - state->first];
}

hafti_io_descriptor_t *hafti_io_waiters_of(state_t *state, int descriptor) {
    return hafti_io_descriptor(state->descriptors, descriptor, true);
}

/* One more. NULL: no memory. */
static hafti_io_number_t *new_number(state_t *state) {
    if (state->count == state->room) {
        size_t room = state->room == 0 ? 16 : 2 * (size_t)state->room;
        hafti_io_number_t **grown = realloc(state->numbers, room * sizeof *grown);
        if (grown == NULL)
            return NULL;
        state->numbers = grown;
        state->room = (int)room;
    }
    hafti_io_number_t *number = malloc(sizeof *number);
    int descriptor = state->first + state->count;
    if (number == NULL || hafti_io_waiters_of(state, descriptor) == NULL) {
        free(number);
        return NULL;
    }
    *number = (hafti_io_number_t){.descriptor = descriptor};
    state->numbers[state->count++] = number;
    return number;
}

/* The one that was closed first, once there are many. */
static hafti_io_number_t *old_number(state_t *state) {
    enum { MOST_CLOSED = 1 << 14 };
    if (state->closed_count < MOST_CLOSED)
        return NULL;
    hafti_io_number_t *number = HAFTI_IO_OWNER(state->closed.next, hafti_io_number_t, link);
    hafti_io_unlink(&number->link);
    state->closed_count--;
    return number;
}

int hafti_io_object_number(state_t *state, object_t *object) {
    hafti_io_number_t *number = old_number(state);
    if (number == NULL)
        number = new_number(state);
    if (number == NULL)
        return -ENOMEM;
    number->object = object;
    number->closes_at_exec = true;
    hafti_io_append(&object->numbers, &number->link);
    object->uses++;
    return number->descriptor;
}

object_t *hafti_io_object_new(state_t *state, enum hafti_io_object_kind kind) {
    object_t *object = calloc(1, sizeof *object);
    if (object == NULL)
        return NULL;
    object->kind = kind;
    object->open = true;
    object->holds = 1;
    hafti_io_ring(&object->numbers);
    object->descriptor = hafti_io_object_number(state, object);
    if (object->descriptor < 0) {
        free(object);
        return NULL;
    }
    hafti_io_append(&state->objects, &object->all);
    return object;
}

void hafti_io_object_free(object_t *object) {
    hafti_io_unlink(&object->all);
    for (hafti_io_option_t *option = object->options, *next; option != NULL; option = next) {
        next = option->next;
        free(option);
    }
    free(object->bytes);
    free(object);
}

void hafti_io_object_wake_one_way(state_t *state, const object_t *object,
                                  enum hafti_io_direction direction) {
    const hafti_io_link_t *numbers = &object->numbers;
    for (const hafti_io_link_t *link = numbers->next; link != numbers; link = link->next)
        hafti_io_wake(
            hafti_io_waiters_of(state, HAFTI_IO_OWNER(link, hafti_io_number_t, link)->descriptor),
            direction, false, false);
}

void hafti_io_object_wake(state_t *state, const object_t *object) {
    hafti_io_object_wake_one_way(state, object, HAFTI_IO_INWARD);
    hafti_io_object_wake_one_way(state, object, HAFTI_IO_OUTWARD);
}

/* Objects in transit that are closed with it are queued and closed in turn, so a long chain of them
   takes no stack. */
void hafti_io_object_drop(state_t *state, object_t *object) {
    if (--object->uses != 0)
        return;
    hafti_io_append(&state->unused, &object->unused);
    if (state->closes)
        return;
    state->closes = true;
    while (!hafti_io_ring_empty(&state->unused)) {
        object = HAFTI_IO_OWNER(state->unused.next, object_t, unused);
        hafti_io_unlink(&object->unused);
        object_t *peer = object->peer;
        state->close_object(state, object);
        if (peer != NULL)
            hafti_io_object_release(peer);
        hafti_io_object_release(object);
    }
    state->closes = false;
}

void hafti_io_number_close(state_t *state, int descriptor) {
    hafti_io_number_t *number = hafti_io_number_of(state, descriptor);
    object_t *object = number->object;
    hafti_io_descriptor_t *waiters = hafti_io_waiters_of(state, descriptor);
    number->object = NULL;
    hafti_io_unlink(&number->link);
    hafti_io_append(&state->closed, &number->link);
    state->closed_count++;
    waiters->life++;
    waiters->nature = HAFTI_IO_UNKNOWN;
    hafti_io_wake(waiters, HAFTI_IO_INWARD, true, false);
    hafti_io_wake(waiters, HAFTI_IO_OUTWARD, true, false);
    hafti_io_object_drop(state, object);
}

bool hafti_io_object_is_socket(const object_t *object) {
    return object->kind != HAFTI_IO_A_FILE && object->kind != HAFTI_IO_A_PIPE;
}

/* ---- Bytes ---- */

size_t hafti_io_drawn_size(hafti_io_simulated_t *simulated, size_t size) {
    return simulated->short_counts && size > 1 ? 1 + hafti_io_random(simulated, size) : size;
}

hafti_io_memory_t hafti_io_memory_of(const struct iovec *parts, size_t count) {
    hafti_io_memory_t memory = {parts, count, 0};
    for (size_t i = 0; i < count; i++)
        memory.size += parts[i].iov_len;
    return memory;
}

static bool is_there(const hafti_io_memory_t *memory, size_t size) {
    for (size_t i = 0, at = 0; i < memory->count && at < size; at += memory->parts[i++].iov_len)
        if (memory->parts[i].iov_base == NULL && memory->parts[i].iov_len != 0)
            return false;
    return true;
}

bool hafti_io_memory_copy(const hafti_io_memory_t *memory, char *ring, size_t length, size_t first,
                          size_t size, bool into_ring) {
    if (!is_there(memory, size))
        return false;
    for (size_t i = 0; i < memory->count && size != 0; i++) {
        char *bytes = memory->parts[i].iov_base;
        for (size_t left = memory->parts[i].iov_len, run; left != 0 && size != 0; left -= run) {
            char *in_ring = &ring[first % length];
            run = length - first % length;
            run = run < left ? run : left;
            run = run < size ? run : size;
            if (into_ring)
                memcpy(in_ring, bytes, run);
            else
                memcpy(bytes, in_ring, run);
            bytes += run;
            first += run;
            size -= run;
        }
    }
    return true;
}

/* ---- Faults ---- */

bool hafti_io_fault_is_drawn(hafti_io_simulated_t *simulated) {
    return simulated->faults_one_in != 0 &&
           hafti_io_random(simulated, simulated->faults_one_in) == 0;
}
