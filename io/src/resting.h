/* SPDX-License-Identifier: MIT */
/* Waiting without a stack. */
#ifndef HAFTI_IO_RESTING_H
#define HAFTI_IO_RESTING_H

#include "descriptors.h"

/* The function of the runner's task has returned after a haft_io_rest: the task is PARKED, or READY
   already, and the runner free for another. */
void hafti_io_begin_rest(hafti_io_runner_t *runner);
/* Of a task that is to go on, by its worker: it has no runner from now on, as one that is NEW. */
void hafti_io_end_rest(haft_io_task_t *task);

#endif
