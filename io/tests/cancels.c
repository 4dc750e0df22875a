/* SPDX-License-Identifier: MIT */
/*
 * A cancel at each wait of programs that use everything, and at each two of their waits: of the scope of the
 * whole, or of the innermost around the wait; before the back end knows of the wait, when others have run,
 * when the thread has polled. Afterwards no descriptor, stack, memory, waiter or registered operation is left.
 *
 * The linker puts functions of this file (__wrap_) in the way of the library's waits and allocations.
 */
#include "../src/simulation.h"
#include "sample.h"

#include <pthread.h>
#include <time.h>

/* ---- What is left of memory ---- */

#define FAILS_TO_ALLOCATE(name, size) false
#include "blocks.h"

/* ---- Cancels ---- */

enum moment { AT_ONCE, SOON, LATER, MOMENTS };
typedef struct injection {
    int wait; /* its number; -1: none */
    bool innermost;
    enum moment moment;
} injection_t;

static injection_t injections[2];
static int waits;
static haft_io_scope_t *root, *whole; /* whole: NULL once it may have ended */
static pthread_mutex_t whole_is_there = PTHREAD_MUTEX_INITIALIZER;

static void cancel_whole(void) {
    pthread_mutex_lock(&whole_is_there);
    if (whole != NULL)
        haft_io_cancel(whole);
    pthread_mutex_unlock(&whole_is_there);
}
static void *cancel_soon(void *moment) {
    if ((enum moment)(intptr_t)moment == SOON)
        haft_io_yield();
    else
        haft_io_sleep(1);
    cancel_whole();
    return NULL;
}

/* Not by haft_io_spawn, since a wait may be in a clause of the handler that this asks for the task. */
static void start_cancel(haft_io_worker_t *worker, enum moment moment) {
    haft_io_task_t *task = haft_io_task_new(worker, root, cancel_soon, check_number(moment));
    CHECK(task != NULL);
    haft_io_enqueue_new(worker, task);
}

static void come_to_a_wait(haft_io_task_t *task) {
    if (task == NULL || task->runner->scope == root)
        return;
    int number = __atomic_fetch_add(&waits, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) {
        const injection_t *injection = &injections[i];
        if (number != injection->wait)
            continue;
        if (injection->innermost)
            haft_io_cancel(task->runner->scope);
        else if (injection->moment == AT_ONCE)
            cancel_whole();
        else
            start_cancel(task->worker, injection->moment);
    }
}

uint32_t __real_haft_io_cell_wait(haft_io_cell_t *cell, enum haft_io_wait_kind kind,
                                  int64_t deadline, const char *waits_for);
uint32_t __wrap_haft_io_cell_wait(haft_io_cell_t *cell, enum haft_io_wait_kind kind,
                                  int64_t deadline, const char *waits_for);
uint32_t __wrap_haft_io_cell_wait(haft_io_cell_t *cell, enum haft_io_wait_kind kind,
                                  int64_t deadline, const char *waits_for) {
    come_to_a_wait(cell->task);
    return __real_haft_io_cell_wait(cell, kind, deadline, waits_for);
}
static void sample_yields(void) {
    come_to_a_wait(haft_io_self());
}
/* Where an operation of the simulation that does not wait begins: it yields before. */
bool __real_haft_io_fault_is_drawn(haft_io_simulated_t *simulated);
bool __wrap_haft_io_fault_is_drawn(haft_io_simulated_t *simulated);
bool __wrap_haft_io_fault_is_drawn(haft_io_simulated_t *simulated) {
    come_to_a_wait(haft_io_self());
    return __real_haft_io_fault_is_drawn(simulated);
}
int __real_haft_io_fault_of(haft_io_simulated_state_t *state, haft_io_object_t *object,
                            bool writes);
int __wrap_haft_io_fault_of(haft_io_simulated_state_t *state, haft_io_object_t *object,
                            bool writes);
int __wrap_haft_io_fault_of(haft_io_simulated_state_t *state, haft_io_object_t *object,
                            bool writes) {
    come_to_a_wait(haft_io_self());
    return __real_haft_io_fault_of(state, object, writes);
}

/* ---- One run ---- */

static int code_of_whole;

static void forget_whole(__attribute__((unused)) const int *unused) {
    pthread_mutex_lock(&whole_is_there);
    whole = NULL;
    pthread_mutex_unlock(&whole_is_there);
}
BODY(run_sample) {
    whole = haft_io_this_scope();
    __attribute__((cleanup(forget_whole), unused)) int ends = 0;
    must(haft_io_scope(sample->body, NULL, NULL));
    return NULL;
}
BODY(run_in_a_scope) {
    code_of_whole = haft_io_scope(run_sample, NULL, NULL);
    return NULL;
}

static bool nobody_waits_on(haft_io_crew_t *crew, int descriptor) {
    const haft_io_descriptor_t *entry = haft_io_descriptor(crew->descriptors, descriptor, false);
    return entry == NULL || (haft_io_ring_empty(&entry->waiters[HAFT_IO_INWARD]) &&
                             haft_io_ring_empty(&entry->waiters[HAFT_IO_OUTWARD]) &&
                             __atomic_load_n(&entry->uses, __ATOMIC_ACQUIRE) == 0);
}
BODY(run_and_look) {
    haft_io_crew_t *crew = haft_io_self()->worker->crew;
    root = haft_io_this_scope();
    for (unsigned i = 0; i < crew->count; i++)
        crew->workers[i]->plain = false; /* All waits are by haft_io_cell_wait. */
    run_in_a_scope(NULL);
    for (int i = 0; i < 256; i++)
        CHECK(nobody_waits_on(crew, i) && nobody_waits_on(crew, HAFT_IO_FIRST_SIMULATED + i));
    if (how == NULL)
        CHECK_EQUAL(haft_io_simulated_count(), 0);
    for (unsigned i = 0; i < crew->count; i++)
        CHECK_EQUAL(crew->workers[i]->waiting, 0);
    return NULL;
}

static long runs; /* -1: the first, of which the libraries keep something */

/* True: all injections have come. */
static bool run_with(injection_t first, injection_t second) {
    int before = check_failures, descriptors = check_descriptors();
    long blocks_before = __atomic_load_n(&blocks, __ATOMIC_RELAXED);
    injections[0] = first;
    injections[1] = second;
    waits = 0;
    code_of_whole = 1;
    sample_reset();
    CHECK_EQUAL(sample_run(run_and_look), 0);
    /* What goes on after a cancel of the innermost scope may fail in its own way. */
    bool may_fail = first.innermost || second.innermost;
    CHECK(code_of_whole == 0 || may_fail || (first.wait >= 0 && code_of_whole == -ECANCELED));
    CHECK(sample_is_idle());
    CHECK_EQUAL(check_descriptors(), descriptors);
    CHECK_EQUAL(haft_pool_report().stacks, 0);
    if (runs >= 0 && sample_has_one_thread())
        CHECK_EQUAL(__atomic_load_n(&blocks, __ATOMIC_RELAXED), blocks_before);
    if (check_failures != before)
        fprintf(stderr, "%s; cancels %d.%d.%d and %d.%d.%d\n", sample_place(), first.wait,
                first.innermost, first.moment, second.wait, second.innermost, second.moment);
    return waits > first.wait && waits > second.wait;
}

/* ---- All runs ---- */

static double seconds; /* for the pairs of one program on one back end; negative: all of them */
static const injection_t never = {-1, false, AT_ONCE};

/* Which scope is cancelled when: that of the whole at each moment, the innermost at once. */
enum { WAYS = MOMENTS + 1 };
static injection_t in_way(int wait, int way) {
    return way == MOMENTS ? (injection_t){wait, true, AT_ONCE}
                          : (injection_t){wait, false, (enum moment)way};
}

static void cancel_at_each_wait(void) {
    for (int way = 0; way < WAYS; way++)
        for (int i = 0; check_failures == 0 && run_with(in_way(i, way), never); i++)
            runs++;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The second cancel is of the innermost scope: that of a cleanup, or of what goes on after the first. */
static void cancel_at_each_two_waits(void) {
    double until = now() + seconds;
    for (int way = 0; way < 2; way++)
        for (int i = 0; check_failures == 0; i++) {
            injection_t first = in_way(i, way == 0 ? AT_ONCE : MOMENTS);
            if (!run_with(first, never))
                break;
            for (int j = i + 1; check_failures == 0 && run_with(first, in_way(j, MOMENTS)); j++) {
                runs++;
                if (seconds >= 0 && now() > until)
                    j += rand() % 16;
            }
            if (seconds >= 0 && now() > until)
                i += rand() % 16;
        }
}

static void cancel_everywhere(const haft_io_options_t *options) {
    how = options;
    for (int i = 0; i < SAMPLES; i++) {
        sample = &samples[i];
        if (how == NULL && !sample->simulated)
            continue;
        double began = now();
        runs = -1;
        run_with(never, never);
        runs = 0;
        int waits_of_one = waits;
        long blocks_before = blocks;
        cancel_at_each_wait();
        long single = runs;
        cancel_at_each_two_waits();
        /* Threads that have ended leave a few for the next ones, in hundreds of runs. */
        CHECK(blocks < blocks_before + 16);
        printf("%s: %d waits, %ld runs with a cancel, %ld with two (%.1f s)\n", sample_place(),
               waits_of_one, single, runs - single, now() - began);
        fflush(stdout);
    }
}

static void nothing_is_left_by_a_cancel_at_any_wait(void) {
    check_everywhere(cancel_everywhere);
}
static void nothing_is_left_by_a_cancel_at_any_wait_of_a_simulation(void) {
    cancel_everywhere(NULL);
}

int main(void) {
    sample_begin();
    seconds =
        check_seconds("HAFT_CANCEL_SECONDS", check_bare() ? -1 : 0.1, check_bare() ? -1 : 0.3);
    /* The thread sanitizer's long campaign does this for a minute: what the threads do meanwhile differs. */
    double until = now() + check_seconds("HAFT_CANCELS_FOR", 0, CHECK_THREAD_SANITIZER ? 60 : 0);
    do {
        RUN(nothing_is_left_by_a_cancel_at_any_wait_of_a_simulation);
        RUN(nothing_is_left_by_a_cancel_at_any_wait);
    } while (check_failures == 0 && now() < until);
    return check_end();
}
