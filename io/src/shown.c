/* SPDX-License-Identifier: MIT */
/* The table for debuggers (haft/shown.h) of runs, tasks, and what tasks wait for. */
#include "inside.h"

#include <haft/io.h>

#include <time.h>

static const hafti_shown_t tasks[] = {HAFTI_SHOWN_SIZE("task", haft_io_task_t),
                                      HAFTI_SHOWN_FIELD("task", haft_io_task_t, runner),
                                      HAFTI_SHOWN_FIELD("task", haft_io_task_t, worker),
                                      HAFTI_SHOWN_FIELD("task", haft_io_task_t, state),
                                      HAFTI_SHOWN_FIELD("task", haft_io_task_t, moves),
                                      HAFTI_SHOWN_FIELD("task", haft_io_task_t, home),
                                      HAFTI_SHOWN_FIELD("task", haft_io_task_t, joiner),
                                      HAFTI_SHOWN_FIELD("task", haft_io_task_t, function),
                                      HAFTI_SHOWN_FIELD("task", haft_io_task_t, argument),
                                      HAFTI_SHOWN_FIELD("task", haft_io_task_t, code),
                                      HAFTI_SHOWN_FIELD("task", haft_io_task_t, name),
                                      HAFTI_SHOWN_FIELD("task", haft_io_task_t, spawned_at),
                                      HAFTI_SHOWN_NUMBER("FREE", HAFTI_IO_FREE),
                                      HAFTI_SHOWN_NUMBER("NEW", HAFTI_IO_NEW),
                                      HAFTI_SHOWN_NUMBER("READY", HAFTI_IO_READY),
                                      HAFTI_SHOWN_NUMBER("OFFERED", HAFTI_IO_OFFERED),
                                      HAFTI_SHOWN_NUMBER("RUNNING", HAFTI_IO_RUNNING),
                                      HAFTI_SHOWN_NUMBER("PARKED", HAFTI_IO_PARKED),
                                      HAFTI_SHOWN_NUMBER("ENDED", HAFTI_IO_ENDED),
                                      HAFTI_SHOWN_SIZE("runner", hafti_io_runner_t),
                                      HAFTI_SHOWN_FIELD("runner", hafti_io_runner_t, fiber),
                                      HAFTI_SHOWN_FIELD("runner", hafti_io_runner_t, task),
                                      HAFTI_SHOWN_FIELD("runner", hafti_io_runner_t, worker),
                                      HAFTI_SHOWN_FIELD("runner", hafti_io_runner_t, scope),
                                      HAFTI_SHOWN_FIELD("runner", hafti_io_runner_t, cell),
                                      HAFTI_SHOWN_FIELD("runner", hafti_io_runner_t, waits_for),
                                      HAFTI_SHOWN_FIELD("runner", hafti_io_runner_t, waits_since),
                                      HAFTI_SHOWN_FIELD("runner", hafti_io_runner_t, own),
                                      HAFTI_SHOWN_FIELD("runner", hafti_io_runner_t, spawned_at),
                                      HAFTI_SHOWN_END};

static const hafti_shown_t scopes[] = {HAFTI_SHOWN_SIZE("task_scope", haft_io_scope_t),
                                       HAFTI_SHOWN_FIELD("task_scope", haft_io_scope_t, outer),
                                       HAFTI_SHOWN_FIELD("task_scope", haft_io_scope_t, sibling),
                                       HAFTI_SHOWN_FIELD("task_scope", haft_io_scope_t, inner),
                                       HAFTI_SHOWN_FIELD("task_scope", haft_io_scope_t, closer),
                                       HAFTI_SHOWN_FIELD("task_scope", haft_io_scope_t, owner),
                                       HAFTI_SHOWN_FIELD("task_scope", haft_io_scope_t, name),
                                       HAFTI_SHOWN_FIELD("task_scope", haft_io_scope_t, cancelled),
                                       HAFTI_SHOWN_FIELD("task_scope", haft_io_scope_t, late),
                                       HAFTI_SHOWN_FIELD("task_scope", haft_io_scope_t, shielded),
                                       HAFTI_SHOWN_FIELD("task_scope", haft_io_scope_t, code),
                                       HAFTI_SHOWN_FIELD("link", hafti_io_link_t, next),
                                       HAFTI_SHOWN_END};

static const hafti_shown_t runs[] = {HAFTI_SHOWN_FIELD("crew", hafti_io_crew_t, workers),
                                     HAFTI_SHOWN_FIELD("crew", hafti_io_crew_t, date_offset),
                                     HAFTI_SHOWN_FIELD("crew", hafti_io_crew_t, count),
                                     HAFTI_SHOWN_FIELD("crew", hafti_io_crew_t, root),
                                     HAFTI_SHOWN_FIELD("crew", hafti_io_crew_t, main),
                                     HAFTI_SHOWN_FIELD("crew", hafti_io_crew_t, descriptors),
                                     HAFTI_SHOWN_FIELD("crew", hafti_io_crew_t, next_run),
                                     HAFTI_SHOWN_FIELD("crew", hafti_io_crew_t, number),
                                     HAFTI_SHOWN_FIELD("worker", hafti_io_worker_t, crew),
                                     HAFTI_SHOWN_FIELD("worker", hafti_io_worker_t, backend),
                                     HAFTI_SHOWN_FIELD("worker", hafti_io_worker_t, running),
                                     HAFTI_SHOWN_FIELD("worker", hafti_io_worker_t, sleeping),
                                     HAFTI_SHOWN_FIELD("worker", hafti_io_worker_t, clock),
                                     HAFTI_SHOWN_FIELD("worker", hafti_io_worker_t, simulated),
                                     HAFTI_SHOWN_FIELD("worker", hafti_io_worker_t, tasks),
                                     HAFTI_SHOWN_FIELD("worker", hafti_io_worker_t, blocks),
                                     HAFTI_SHOWN_FIELD("worker", hafti_io_worker_t, thread),
                                     HAFTI_SHOWN_FIELD("records", hafti_io_records_t, fresh),
                                     HAFTI_SHOWN_FIELD("backend", hafti_io_backend_t, name),
                                     HAFTI_SHOWN_FIELD("simulated", hafti_io_simulated_t, now),
                                     HAFTI_SHOWN_FIELD("simulated", hafti_io_simulated_t, seed),
                                     HAFTI_SHOWN_ADDRESS("worker_offset", hafti_io_worker_offset),
                                     HAFTI_SHOWN_END};

static const hafti_shown_t waits[] = {
    HAFTI_SHOWN_SIZE("cell", hafti_io_cell_t),
    HAFTI_SHOWN_FIELD("cell", hafti_io_cell_t, word),
    HAFTI_SHOWN_FIELD("cell", hafti_io_cell_t, task),
    HAFTI_SHOWN_SIZE("waiting_place", hafti_io_place_t),
    HAFTI_SHOWN_FIELD("waiting_place", hafti_io_place_t, next),
    HAFTI_SHOWN_FIELD("waiting_place", hafti_io_place_t, list),
    HAFTI_SHOWN_FIELD("waiting_place", hafti_io_place_t, cell),
    HAFTI_SHOWN_FIELD("waiting", haft_io_waiting_t, first),
    HAFTI_SHOWN_FIELD("waiting", haft_io_waiting_t, last),
    HAFTI_SHOWN_FIELD("mutex", haft_io_mutex_t, held),
    HAFTI_SHOWN_FIELD("mutex", haft_io_mutex_t, waiting),
    HAFTI_SHOWN_FIELD("mutex", haft_io_mutex_t, holder),
    HAFTI_SHOWN_FIELD("semaphore", haft_io_semaphore_t, count),
    HAFTI_SHOWN_FIELD("semaphore", haft_io_semaphore_t, waiting),
    HAFTI_SHOWN_FIELD("condition", haft_io_condition_t, waiting),
    HAFTI_SHOWN_FIELD("rwlock", haft_io_rwlock_t, writer),
    HAFTI_SHOWN_FIELD("rwlock", haft_io_rwlock_t, readers),
    HAFTI_SHOWN_FIELD("rwlock", haft_io_rwlock_t, waiting),
    HAFTI_SHOWN_FIELD("rwlock", haft_io_rwlock_t, holder),
    HAFTI_SHOWN_FIELD("barrier", haft_io_barrier_t, needed),
    HAFTI_SHOWN_FIELD("barrier", haft_io_barrier_t, arrived),
    HAFTI_SHOWN_FIELD("barrier", haft_io_barrier_t, waiting),
    HAFTI_SHOWN_FIELD("event", haft_io_event_t, set),
    HAFTI_SHOWN_FIELD("event", haft_io_event_t, waiting),
    HAFTI_SHOWN_FIELD("promise", haft_io_promise_t, value),
    HAFTI_SHOWN_SIZE("waiter", hafti_io_waiter_t),
    HAFTI_SHOWN_FIELD("waiter", hafti_io_waiter_t, cell),
    HAFTI_SHOWN_FIELD("waiter", hafti_io_waiter_t, links),
    HAFTI_SHOWN_SIZE("link", hafti_io_link_t),
    HAFTI_SHOWN_SIZE("descriptor", hafti_io_descriptor_t),
    HAFTI_SHOWN_FIELD("descriptor", hafti_io_descriptor_t, waiters),
    HAFTI_SHOWN_FIELD("descriptors", hafti_io_descriptors_t, top),
    HAFTI_SHOWN_NUMBER("DESCRIPTORS_TOP", HAFTI_IO_TOP),
    HAFTI_SHOWN_NUMBER("DESCRIPTORS_MIDDLE", 1 << HAFTI_IO_MIDDLE_BITS),
    HAFTI_SHOWN_NUMBER("DESCRIPTORS_BLOCK", 1 << HAFTI_IO_BLOCK_BITS),
    HAFTI_SHOWN_END};

HAFTI_SHOWN_TABLE(hafti_io_shown, tasks, scopes, runs, waits, hafti_io_shown_records,
                  hafti_io_shown_runs, hafti_io_shown_channels);

intptr_t hafti_io_worker_offset;

void hafti_io_be_shown(void) {
    hafti_io_worker_offset = (intptr_t)&hafti_io_this_worker - (intptr_t)haft_thread_pointer();
    __asm__ volatile("" : : "r"(&hafti_io_shown));
}
