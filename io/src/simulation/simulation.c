/* SPDX-License-Identifier: MIT */
/*
 * Runs for tests: the order of tasks and the sizes of transfers are drawn from a seed, time is
 * virtual, and what is simulated exists in memory only. So a run is repeated by its seed. This file
 * begins and ends the run; its operations, polls and time stand in files of their own.
 */
#include "simulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef hafti_io_simulated_state_t state_t;
typedef hafti_io_object_t object_t;

/* ---- The table of objects ---- */

static void close_object(state_t *state, object_t *object) {
    object->open = false;
    switch (object->kind) {
    case HAFTI_IO_A_SOCKET:
        hafti_io_simulated_socket_closes(state, object);
        break;
    case HAFTI_IO_A_STREAM:
        hafti_io_simulated_unbind(state, object);
        hafti_io_simulated_end_closes(state, object);
        break;
    case HAFTI_IO_A_PIPE:
        hafti_io_simulated_end_closes(state, object);
        break;
    case HAFTI_IO_A_REAL_END:
        hafti_io_close_elsewhere(NULL, object->real);
        break;
    case HAFTI_IO_A_LISTENER:
        hafti_io_simulated_listener_ends(state, object);
        hafti_io_simulated_unbind(state, object);
        break;
    case HAFTI_IO_DATAGRAMS:
        hafti_io_simulated_datagrams_close(state, object);
        break;
    case HAFTI_IO_A_FILE:
        hafti_io_file_stop_using(object->file);
        break;
    }
}

static int close_number(hafti_io_worker_t *worker, int descriptor) {
    if (descriptor < HAFTI_IO_FIRST_SIMULATED)
        return hafti_io_close_elsewhere(NULL, descriptor);
    if (hafti_io_object_of(worker->backend_state, descriptor) == NULL)
        return -EBADF;
    hafti_io_number_close(worker->backend_state, descriptor);
    return 0;
}

/* ---- For tests ---- */

static hafti_io_worker_t *simulating(const char *function) {
    hafti_io_worker_t *worker = hafti_io_worker();
    if (worker == NULL || worker->simulated == NULL)
        hafti_io_misuse("%s was called outside of haft_io_simulate.", function);
    return worker;
}

int haft_io_simulated_pair(int ends[2]) {
    state_t *state = simulating("haft_io_simulated_pair")->backend_state;
    return hafti_io_object_pair(state, HAFTI_IO_A_STREAM, ends);
}

void haft_io_simulated_break(int descriptor) {
    state_t *state = simulating("haft_io_simulated_break")->backend_state;
    object_t *end = hafti_io_object_of(state, descriptor);
    if (end == NULL || end->kind != HAFTI_IO_A_STREAM)
        hafti_io_misuse("haft_io_simulated_break was given no open end of a stream.");
    hafti_io_object_break(state, end);
}

void haft_io_simulated_fail(int descriptor, int code) {
    object_t *object =
        hafti_io_object_of(simulating("haft_io_simulated_fail")->backend_state, descriptor);
    if (object == NULL)
        hafti_io_misuse("haft_io_simulated_fail was given no open descriptor of the simulation.");
    if (code >= 0)
        hafti_io_misuse("haft_io_simulated_fail takes a negative error number; it was given %d.",
                        code);
    object->fails = code;
}

void haft_io_simulated_crash(void) {
    state_t *state = simulating("haft_io_simulated_crash")->backend_state;
    if (state->root == NULL)
        hafti_io_misuse("haft_io_simulated_crash was called in a simulation without .files.");
    hafti_io_simulated_files_crash(state);
}

size_t haft_io_simulated_count(void) {
    const state_t *state = simulating("haft_io_simulated_count")->backend_state;
    size_t count = 0;
    for (int i = 0; i < state->count; i++)
        count += state->numbers[i]->object != NULL;
    return count;
}

/* ---- The table ---- */

static void interrupt_simulation(hafti_io_worker_t *worker) {
    (void)worker;
}

static void stop_simulation(hafti_io_worker_t *worker) {
    state_t *state = worker->backend_state;
    hafti_io_simulated_network_stop(state);
    hafti_io_simulated_datagrams_stop(state);
    for (hafti_io_link_t *link = state->objects.next; link != &state->objects; link = link->next) {
        object_t *object = hafti_io_object_at_link(link);
        if (!object->open)
            continue;
        object->open = false;
        if (object->kind == HAFTI_IO_A_FILE)
            hafti_io_file_stop_using(object->file);
        if (object->kind == HAFTI_IO_A_REAL_END)
            hafti_io_close_file(object->real);
        if (object->kind == HAFTI_IO_A_STREAM)
            hafti_io_simulated_end_stops(object);
    }
    while (!hafti_io_ring_empty(&state->objects))
        hafti_io_object_free(hafti_io_object_at_link(state->objects.next));
    for (int i = 0; i < state->count; i++)
        free(state->numbers[i]);
    free(state->numbers);
    hafti_io_simulated_files_stop(state);
    free(state);
}

static int start_simulation(hafti_io_worker_t *worker) {
    state_t *state = calloc(1, sizeof *state);
    if (state == NULL)
        return -ENOMEM;
    state->simulated = worker->simulated;
    state->first = hafti_io_first_number(worker->simulated->seed);
    state->descriptors = worker->crew->descriptors;
    state->close_object = close_object;
    hafti_io_ring(&state->objects);
    hafti_io_ring(&state->closed);
    hafti_io_ring(&state->unused);
    hafti_io_ring(&state->mixed);
    hafti_io_ring(&state->pausing);
    hafti_io_ring(&state->late);
    hafti_io_ring(&state->changes);
    worker->backend_state = state;
    int code = worker->simulated->files ? hafti_io_simulated_files_start(state) : 0;
    if (code != 0)
        stop_simulation(worker);
    return code;
}

static const hafti_io_backend_t simulation = {
    .name = "simulation",
    .start = start_simulation,
    .stop = stop_simulation,
    .operate = hafti_io_simulated_operate,
    .transfer = hafti_io_transfer_generally,
    .close = close_number,
    .poll_several = hafti_io_simulated_poll_several,
    .poll = hafti_io_simulated_poll,
    .interrupt = interrupt_simulation,
};

bool haft_io_simulates;

/* 0, after a message: the environment variable is not a seed. */
static uint64_t choose_seed(const haft_io_simulation_options_t *options) {
    if (options->seed != 0)
        return options->seed;
    const char *text = getenv("HAFT_IO_SEED");
    if (text == NULL || text[0] == '\0')
        return (uint64_t)hafti_io_clock() | 1;
    char *end;
    errno = 0;
    uint64_t seed = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && seed != 0)
        return seed;
    fprintf(stderr,
            "haft-io: HAFT_IO_SEED is '%s': it has to be a seed that a simulation has printed.\n",
            text);
    return 0;
}

int haft_io_simulate(void *(*main)(void *), void *argument) {
    return haft_io_simulate_with(NULL, main, argument);
}

int haft_io_simulate_with(const haft_io_simulation_options_t *options, void *(*main)(void *),
                          void *argument) {
    enum { NEW_YEAR_2025 = 1735689600 }; /* the first second, in UTC */
    static const haft_io_simulation_options_t defaults = {0};
    if (options == NULL)
        options = &defaults;
    if (hafti_io_worker() != NULL) /* as haft_io_run: none has begun whose seed could be told */
        return hafti_io_refuse_run_inside("haft_io_simulate");
    uint64_t seed = choose_seed(options);
    if (seed == 0)
        return -EINVAL;
    hafti_io_simulated_t simulated = {.seed = seed,
                                      .random = seed,
                                      .random_bytes = ~seed,
                                      .now = HAFTI_IO_BEGINNING,
                                      .date = options->date != 0 ? options->date : NEW_YEAR_2025,
                                      .short_counts = options->short_counts,
                                      .network = options->network,
                                      .files = options->files,
                                      .faults_one_in = options->faults_one_in,
                                      .switches_one_in = options->switches_one_in,
                                      .backend = &simulation,
                                      .calls = &hafti_io_simulation_calls};
    __atomic_store_n(&haft_io_simulates, true, __ATOMIC_RELAXED);
    hafti_io_ring(&simulated.lots.ring);
    int code = hafti_io_run_with(main, argument, NULL, &simulated);
    free(simulated.lots.tasks);
    if (code != 0)
        fprintf(stderr, "haft-io: the simulation ended with %d (%s); the seed was %llu\n", code,
                strerror(-code), (unsigned long long)seed);
    return code;
}

uint64_t haft_io_seed(void) {
    const hafti_io_simulated_t *simulated = hafti_io_simulated();
    return simulated != NULL ? simulated->seed : 0;
}
