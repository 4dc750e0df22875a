/* SPDX-License-Identifier: MIT */
/* The table for debuggers (haft/shown.h) of runs, tasks, and what tasks wait for. */
#include "inside.h"

#include <haft/io.h>

#include <time.h>

static const haft_shown_t tasks[] = {HAFT_SHOWN_SIZE("task", haft_io_task_t),
                                     HAFT_SHOWN_FIELD("task", haft_io_task_t, runner),
                                     HAFT_SHOWN_FIELD("task", haft_io_task_t, worker),
                                     HAFT_SHOWN_FIELD("task", haft_io_task_t, state),
                                     HAFT_SHOWN_FIELD("task", haft_io_task_t, moves),
                                     HAFT_SHOWN_FIELD("task", haft_io_task_t, home),
                                     HAFT_SHOWN_FIELD("task", haft_io_task_t, joiner),
                                     HAFT_SHOWN_FIELD("task", haft_io_task_t, function),
                                     HAFT_SHOWN_FIELD("task", haft_io_task_t, argument),
                                     HAFT_SHOWN_FIELD("task", haft_io_task_t, code),
                                     HAFT_SHOWN_FIELD("task", haft_io_task_t, name),
                                     HAFT_SHOWN_FIELD("task", haft_io_task_t, spawned_at),
                                     HAFT_SHOWN_NUMBER("FREE", HAFTI_IO_FREE),
                                     HAFT_SHOWN_NUMBER("NEW", HAFTI_IO_NEW),
                                     HAFT_SHOWN_NUMBER("READY", HAFTI_IO_READY),
                                     HAFT_SHOWN_NUMBER("OFFERED", HAFTI_IO_OFFERED),
                                     HAFT_SHOWN_NUMBER("RUNNING", HAFTI_IO_RUNNING),
                                     HAFT_SHOWN_NUMBER("PARKED", HAFTI_IO_PARKED),
                                     HAFT_SHOWN_NUMBER("ENDED", HAFTI_IO_ENDED),
                                     HAFT_SHOWN_SIZE("runner", hafti_io_runner_t),
                                     HAFT_SHOWN_FIELD("runner", hafti_io_runner_t, fiber),
                                     HAFT_SHOWN_FIELD("runner", hafti_io_runner_t, task),
                                     HAFT_SHOWN_FIELD("runner", hafti_io_runner_t, worker),
                                     HAFT_SHOWN_FIELD("runner", hafti_io_runner_t, scope),
                                     HAFT_SHOWN_FIELD("runner", hafti_io_runner_t, cell),
                                     HAFT_SHOWN_FIELD("runner", hafti_io_runner_t, waits_for),
                                     HAFT_SHOWN_FIELD("runner", hafti_io_runner_t, waits_since),
                                     HAFT_SHOWN_FIELD("runner", hafti_io_runner_t, own),
                                     HAFT_SHOWN_FIELD("runner", hafti_io_runner_t, spawned_at),
                                     HAFT_SHOWN_END};

static const haft_shown_t scopes[] = {HAFT_SHOWN_SIZE("task_scope", haft_io_scope_t),
                                      HAFT_SHOWN_FIELD("task_scope", haft_io_scope_t, outer),
                                      HAFT_SHOWN_FIELD("task_scope", haft_io_scope_t, sibling),
                                      HAFT_SHOWN_FIELD("task_scope", haft_io_scope_t, inner),
                                      HAFT_SHOWN_FIELD("task_scope", haft_io_scope_t, closer),
                                      HAFT_SHOWN_FIELD("task_scope", haft_io_scope_t, owner),
                                      HAFT_SHOWN_FIELD("task_scope", haft_io_scope_t, name),
                                      HAFT_SHOWN_FIELD("task_scope", haft_io_scope_t, cancelled),
                                      HAFT_SHOWN_FIELD("task_scope", haft_io_scope_t, late),
                                      HAFT_SHOWN_FIELD("task_scope", haft_io_scope_t, shielded),
                                      HAFT_SHOWN_FIELD("task_scope", haft_io_scope_t, code),
                                      HAFT_SHOWN_FIELD("link", hafti_io_link_t, next),
                                      HAFT_SHOWN_END};

static const haft_shown_t runs[] = {HAFT_SHOWN_FIELD("crew", hafti_io_crew_t, workers),
                                    HAFT_SHOWN_FIELD("crew", hafti_io_crew_t, date_offset),
                                    HAFT_SHOWN_FIELD("crew", hafti_io_crew_t, count),
                                    HAFT_SHOWN_FIELD("crew", hafti_io_crew_t, root),
                                    HAFT_SHOWN_FIELD("crew", hafti_io_crew_t, main),
                                    HAFT_SHOWN_FIELD("crew", hafti_io_crew_t, descriptors),
                                    HAFT_SHOWN_FIELD("crew", hafti_io_crew_t, next_run),
                                    HAFT_SHOWN_FIELD("crew", hafti_io_crew_t, number),
                                    HAFT_SHOWN_FIELD("worker", hafti_io_worker_t, crew),
                                    HAFT_SHOWN_FIELD("worker", hafti_io_worker_t, backend),
                                    HAFT_SHOWN_FIELD("worker", hafti_io_worker_t, running),
                                    HAFT_SHOWN_FIELD("worker", hafti_io_worker_t, sleeping),
                                    HAFT_SHOWN_FIELD("worker", hafti_io_worker_t, clock),
                                    HAFT_SHOWN_FIELD("worker", hafti_io_worker_t, simulated),
                                    HAFT_SHOWN_FIELD("worker", hafti_io_worker_t, tasks),
                                    HAFT_SHOWN_FIELD("worker", hafti_io_worker_t, blocks),
                                    HAFT_SHOWN_FIELD("worker", hafti_io_worker_t, thread),
                                    HAFT_SHOWN_FIELD("records", hafti_io_records_t, fresh),
                                    HAFT_SHOWN_FIELD("backend", hafti_io_backend_t, name),
                                    HAFT_SHOWN_FIELD("simulated", hafti_io_simulated_t, now),
                                    HAFT_SHOWN_FIELD("simulated", hafti_io_simulated_t, seed),
                                    HAFT_SHOWN_ADDRESS("worker_offset", hafti_io_worker_offset),
                                    HAFT_SHOWN_END};

static const haft_shown_t waits[] = {
    HAFT_SHOWN_SIZE("cell", hafti_io_cell_t),
    HAFT_SHOWN_FIELD("cell", hafti_io_cell_t, word),
    HAFT_SHOWN_FIELD("cell", hafti_io_cell_t, task),
    HAFT_SHOWN_SIZE("waiting_place", hafti_io_place_t),
    HAFT_SHOWN_FIELD("waiting_place", hafti_io_place_t, next),
    HAFT_SHOWN_FIELD("waiting_place", hafti_io_place_t, list),
    HAFT_SHOWN_FIELD("waiting_place", hafti_io_place_t, cell),
    HAFT_SHOWN_FIELD("waiting", haft_io_waiting_t, first),
    HAFT_SHOWN_FIELD("waiting", haft_io_waiting_t, last),
    HAFT_SHOWN_FIELD("mutex", haft_io_mutex_t, held),
    HAFT_SHOWN_FIELD("mutex", haft_io_mutex_t, waiting),
    HAFT_SHOWN_FIELD("mutex", haft_io_mutex_t, holder),
    HAFT_SHOWN_FIELD("semaphore", haft_io_semaphore_t, count),
    HAFT_SHOWN_FIELD("semaphore", haft_io_semaphore_t, waiting),
    HAFT_SHOWN_FIELD("condition", haft_io_condition_t, waiting),
    HAFT_SHOWN_FIELD("rwlock", haft_io_rwlock_t, writer),
    HAFT_SHOWN_FIELD("rwlock", haft_io_rwlock_t, readers),
    HAFT_SHOWN_FIELD("rwlock", haft_io_rwlock_t, waiting),
    HAFT_SHOWN_FIELD("rwlock", haft_io_rwlock_t, holder),
    HAFT_SHOWN_FIELD("barrier", haft_io_barrier_t, needed),
    HAFT_SHOWN_FIELD("barrier", haft_io_barrier_t, arrived),
    HAFT_SHOWN_FIELD("barrier", haft_io_barrier_t, waiting),
    HAFT_SHOWN_FIELD("event", haft_io_event_t, set),
    HAFT_SHOWN_FIELD("event", haft_io_event_t, waiting),
    HAFT_SHOWN_FIELD("promise", haft_io_promise_t, value),
    HAFT_SHOWN_SIZE("waiter", hafti_io_waiter_t),
    HAFT_SHOWN_FIELD("waiter", hafti_io_waiter_t, cell),
    HAFT_SHOWN_FIELD("waiter", hafti_io_waiter_t, links),
    HAFT_SHOWN_SIZE("link", hafti_io_link_t),
    HAFT_SHOWN_SIZE("descriptor", hafti_io_descriptor_t),
    HAFT_SHOWN_FIELD("descriptor", hafti_io_descriptor_t, waiters),
    HAFT_SHOWN_FIELD("descriptors", hafti_io_descriptors_t, top),
    HAFT_SHOWN_NUMBER("DESCRIPTORS_TOP", HAFTI_IO_TOP),
    HAFT_SHOWN_NUMBER("DESCRIPTORS_MIDDLE", 1 << HAFTI_IO_MIDDLE_BITS),
    HAFT_SHOWN_NUMBER("DESCRIPTORS_BLOCK", 1 << HAFTI_IO_BLOCK_BITS),
    HAFT_SHOWN_END};

HAFT_SHOWN_TABLE(hafti_io_shown, tasks, scopes, runs, waits, hafti_io_shown_records,
                 hafti_io_shown_runs, hafti_io_shown_channels);

intptr_t hafti_io_worker_offset;

void hafti_io_be_shown(void) {
    __atomic_store_n(&hafti_io_worker_offset,
                     (intptr_t)&hafti_io_this_worker - (intptr_t)haft_thread_pointer(),
                     __ATOMIC_RELAXED);
    __asm__ volatile("" : : "r"(&hafti_io_shown));
}
