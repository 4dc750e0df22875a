/* SPDX-License-Identifier: MIT */
/*
 * Polls in a simulation. They read the state of simulated objects; polls of the system's
 * descriptors alone block the thread. A poll of both waits for the simulated ones, and the system's
 * are looked at when no task can go on.
 */
#include "simulation.h"

#include <stdlib.h>

enum { FIRST = HAFTI_IO_FIRST_SIMULATED };

typedef hafti_io_simulated_state_t state_t;
typedef hafti_io_object_t object_t;

/* ---- What is ready ---- */

static int events_of_real(const object_t *end, short events) {
    struct pollfd entry = {end->real, events, 0};
    return hafti_io_poll_blocking(&entry, 1, 0) < 0 ? POLLERR : entry.revents;
}

int hafti_io_simulated_events(const object_t *object, short events) {
    switch (object->kind) {
    case HAFTI_IO_A_STREAM:
    case HAFTI_IO_A_PIPE:
        return hafti_io_events_of_end(object, events);
    case HAFTI_IO_A_REAL_END:
        return events_of_real(object, events);
    case HAFTI_IO_A_LISTENER:
        return hafti_io_ring_empty(&object->arrived) ? 0 : events & HAFTI_IO_TO_READ;
    case HAFTI_IO_DATAGRAMS:
        return hafti_io_events_of_datagrams(object, events);
    case HAFTI_IO_A_FILE: /* it is always ready */
        return events & (HAFTI_IO_TO_READ | HAFTI_IO_TO_WRITE);
    case HAFTI_IO_A_SOCKET:
        break;
    }
    if (hafti_io_simulated_is_connecting(object))
        return 0;
    /* The system's events for a socket that is not connected. */
    return POLLHUP | (events & HAFTI_IO_TO_WRITE) | (object->error != 0 ? POLLERR : 0);
}

static hafti_io_descriptor_t *find(hafti_io_worker_t *worker, int descriptor) {
    return descriptor < FIRST || hafti_io_object_of(worker->backend_state, descriptor) != NULL
               ? hafti_io_waiters_of(worker->backend_state, descriptor)
               : NULL;
}

int hafti_io_simulated_look(state_t *state, struct pollfd *entries, size_t count) {
    int ready = 0;
    for (size_t i = 0; i < count; i++) {
        const object_t *object = hafti_io_object_of(state, entries[i].fd);
        if (entries[i].fd < FIRST)
            poll(&entries[i], 1, 0);
        else if (object == NULL)
            entries[i].revents = POLLNVAL;
        else
            entries[i].revents = (short)hafti_io_simulated_events(object, entries[i].events);
        ready += entries[i].revents != 0;
    }
    return ready;
}

/* A wait in vain for the system takes its time in the simulation, too. */
static int poll_real(hafti_io_simulated_t *simulated, struct pollfd *entries, size_t count,
                     int64_t deadline) {
    int64_t until = HAFT_IO_FOREVER;
    if (deadline != HAFT_IO_FOREVER)
        until = hafti_io_clock() + (deadline - simulated->now);
    int ready = hafti_io_poll_blocking(entries, count, until);
    if (ready == 0 && deadline > simulated->now)
        simulated->now = deadline;
    return ready;
}

/* Whether it is the system's, by its number or because it has become real. */
static bool is_real(state_t *state, int descriptor) {
    const object_t *object = hafti_io_object_of(state, descriptor);
    return descriptor < FIRST || (object != NULL && object->kind == HAFTI_IO_A_REAL_END);
}

/* Some are, and none is another's. (A poll of none is a sleep.) */
static bool are_real(state_t *state, const struct pollfd *entries, size_t count) {
    bool some = false;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].fd >= 0 && !is_real(state, entries[i].fd))
            return false;
        some |= entries[i].fd >= 0;
    }
    return some;
}

/* A poll of both: the system's descriptors are looked at when no task can go on, before time does,
   so it sees what another task has written to one. */
typedef struct poll_wait {
    hafti_io_link_t link;
    const struct pollfd *entries;
    size_t count;
} poll_wait_t;

bool hafti_io_simulated_wake_by_real(state_t *state) {
    bool some = false;
    for (hafti_io_link_t *link = state->mixed.next; link != &state->mixed; link = link->next) {
        const poll_wait_t *waits = HAFTI_IO_OWNER(link, poll_wait_t, link);
        for (size_t i = 0; i < waits->count; i++) {
            struct pollfd entry = waits->entries[i];
            if (entry.fd < 0 || !is_real(state, entry.fd) ||
                hafti_io_simulated_look(state, &entry, 1) == 0)
                continue;
            hafti_io_descriptor_t *waiters = hafti_io_waiters_of(state, entry.fd);
            if (waiters == NULL)
                continue;
            hafti_io_wake(waiters, HAFTI_IO_INWARD, false, false);
            hafti_io_wake(waiters, HAFTI_IO_OUTWARD, false, false);
            some = true;
        }
    }
    return some;
}

static int poll_several_real(state_t *state, struct pollfd *entries, size_t count,
                             int64_t deadline) {
    struct pollfd few[HAFTI_IO_FEW],
        *real = count <= HAFTI_IO_FEW ? few : calloc(count, sizeof *few);
    if (real == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const object_t *end = hafti_io_object_of(state, entries[i].fd);
        real[i] = (struct pollfd){end != NULL ? end->real : entries[i].fd, entries[i].events, 0};
    }
    int ready = poll_real(state->simulated, real, count, deadline);
    for (size_t i = 0; i < count; i++)
        entries[i].revents = real[i].revents;
    if (real != few)
        free(real);
    return ready;
}

/* Each change shows in the state of the objects, so every turn is like the first. */
int hafti_io_simulated_poll_several(hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                                    int64_t deadline, unsigned turn) {
    (void)turn;
    state_t *state = runner->worker->backend_state;
    for (;;) {
        if (are_real(state, entries, count))
            return poll_several_real(state, entries, count, deadline);
        int ready = hafti_io_simulated_look(state, entries, count);
        if (ready != 0 || deadline <= state->simulated->now)
            return ready;
        bool shares_cell = runner->poll_cell != NULL;
        poll_wait_t mixed = {.entries = entries, .count = count};
        hafti_io_append(&state->mixed, &mixed.link);
        int code = hafti_io_wait_on_several(find, runner, entries, count, deadline);
        hafti_io_unlink(&mixed.link);
        if (code != 0 && code != -ETIMEDOUT)
            return code;
        if (code == 0 && shares_cell) /* which is won, perhaps by somebody else */
            return 1;
    }
}
