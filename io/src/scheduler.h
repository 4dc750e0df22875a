/* SPDX-License-Identifier: MIT */
/* The loop of a worker. */
#ifndef HAFTI_IO_SCHEDULER_H
#define HAFTI_IO_SCHEDULER_H

#include "descriptors.h"

/* Runs tasks until the run ends. */
void hafti_io_loop(hafti_io_worker_t *worker);
void hafti_io_free_runners(hafti_io_worker_t *worker);

/* Returns a new task for a runner that has nothing to do; NULL: the runner has to go back to the
   loop. */
haft_io_task_t *hafti_io_take_new(hafti_io_worker_t *worker);

#endif
