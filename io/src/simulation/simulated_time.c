/* SPDX-License-Identifier: MIT */
/*
 * The time of a simulation, which passes when no task can go on: it jumps to the next timer. Where
 * there is none, another thread of the program may still wake a task: it holds a lock of the
 * process, which a task waits for by libhaft-posix, or sets an event. It is given half a second.
 * Then no task can go on any more: the simulation prints which task waits for what, and cancels the
 * tasks.
 */
#include "simulation.h"

#include <stdio.h>
#include <time.h>

#if __has_include(<sys/single_threaded.h>)
#    include <sys/single_threaded.h>
#    define IS_ONLY_THREAD (__libc_single_threaded)
#else /* before glibc 2.32 */
#    define IS_ONLY_THREAD false
#endif

typedef hafti_io_simulated_state_t state_t;
typedef hafti_io_object_t object_t;

static void tell_who_waits(const haft_io_scope_t *scope) {
    for (const hafti_io_link_t *link = scope->tasks.next; link != &scope->tasks;
         link = link->next) {
        const hafti_io_runner_t *runner = HAFTI_IO_OWNER(link, hafti_io_runner_t, link);
        fprintf(stderr, "haft-io:   the task '%s' waits for: %s\n", haft_io_task_name(runner->task),
                runner->waits_for != NULL ? runner->waits_for : "?");
    }
}

/* Cancels the shielded scopes that no cancel has reached yet, each the outermost of its kind.
   False: there is none. */
static bool cancel_shielded(haft_io_scope_t *root) {
    bool some = false, down;
    unsigned depth = 0;
    for (haft_io_scope_t *scope = root; scope != NULL;
         scope = hafti_io_next_scope(scope, root, down, &depth)) {
        down = scope->cancelled;
        if (down)
            continue;
        hafti_io_scope_cancel(scope, -EDEADLK);
        some = true;
    }
    return some;
}

typedef struct pausing {
    hafti_io_link_t link;
    hafti_io_cell_t cell;
} pausing_t;

void hafti_io_simulated_pause(bool again, const char *waits_for) {
    state_t *state = hafti_io_state_here();
    pausing_t task = {.cell = {HAFTI_IO_WAITING, hafti_io_this_task()}};
    hafti_io_append(&state->pausing, &task.link);
    state->pausing_count++;
    state->asked_again += again;
    hafti_io_cell_wait(&task.cell, HAFTI_IO_TO_THE_END, HAFT_IO_FOREVER, waits_for);
}

static void wake_pausing(state_t *state) {
    state->asked = true;
    state->asked_again = state->pausing_count = 0;
    while (!hafti_io_ring_empty(&state->pausing)) {
        pausing_t *task = HAFTI_IO_OWNER(state->pausing.next, pausing_t, link);
        hafti_io_unlink(&task->link);
        hafti_io_cell_win(&task->cell, HAFTI_IO_WOKEN);
    }
}

enum { PATIENCE = 500 }; /* milliseconds, for another thread */

static void sleep_a_millisecond(void) {
    nanosleep(&(struct timespec){0, 1000000}, NULL);
}

/* Nobody can go on but, perhaps, those that pause: once all of them have asked again in vain it is
   for the time, or for another thread of the program. */
static bool pausing_go_on(state_t *state, bool time_can_pass) {
    if (state->pausing_count == 0)
        return false;
    bool in_vain = state->asked && state->asked_again == state->pausing_count;
    if (in_vain && (time_can_pass || state->patience == PATIENCE))
        return false;
    if (in_vain)
        sleep_a_millisecond();
    state->patience = in_vain ? state->patience + 1 : 0;
    wake_pausing(state);
    return true;
}

/* Nobody can go on, and no time can pass. False: other threads have had their half second since a
   task went on last, or there are none. */
static bool waits_for_threads(state_t *state, const hafti_io_worker_t *worker) {
    if (IS_ONLY_THREAD)
        return false;
    if (state->pausing_count == 0 && state->patient_at != worker->resumed)
        state->patience = 0;
    state->patient_at = worker->resumed;
    if (state->patience == PATIENCE)
        return false;
    sleep_a_millisecond();
    state->patience++;
    return true;
}

void hafti_io_simulated_poll(hafti_io_worker_t *worker, int64_t nanoseconds) {
    state_t *state = worker->backend_state;
    if (nanoseconds == 0)
        return;
    bool some = hafti_io_simulated_wake_by_real(state);
    if (!some && pausing_go_on(state, nanoseconds > 0))
        return;
    state->asked = false; /* Others go on. */
    if (some)
        return;
    if (nanoseconds > 0) {
        int64_t *now = &worker->simulated->now;
        *now += nanoseconds;
        if (*now >= HAFTI_IO_LATEST) /* all deadlines that are left have come */
            *now = HAFT_IO_FOREVER - 1;
        return;
    }
    if (waits_for_threads(state, worker))
        return;
    fprintf(stderr, "haft-io: nobody can go on:\n");
    haft_io_scope_t *root = &worker->crew->root;
    unsigned depth = 0;
    for (haft_io_scope_t *scope = root; scope != NULL;
         scope = hafti_io_next_scope(scope, root, true, &depth))
        tell_who_waits(scope);
    if (!root->cancelled)
        hafti_io_scope_cancel(root, -EDEADLK);
    else if (!cancel_shielded(root))
        hafti_io_misuse("Tasks wait for ever where no cancel reaches them.");
}
