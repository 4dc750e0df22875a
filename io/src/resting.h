/* SPDX-License-Identifier: MIT */
/* Waiting without a stack. */
#ifndef HAFTI_IO_RESTING_H
#define HAFTI_IO_RESTING_H

#include "descriptors.h"

typedef struct hafti_io_rest hafti_io_rest_t;

/* To be called when the function of the runner's task has returned after a haft_io_rest: the task
   becomes PARKED, or is READY already, and the runner is free for another. */
void hafti_io_begin_rest(hafti_io_runner_t *runner);
/* The same for a task that keeps its stack: sends the message, calls the function with which the
   task goes on, and returns its result. */
void *hafti_io_go_on_without_rest(hafti_io_runner_t *runner);
/* Drops the message, because the function has been unwound, or has asked for another rest. */
void hafti_io_drop_unsent(hafti_io_runner_t *runner);
/* Called by the worker before the task goes on. Like a NEW task, it then has no runner. */
hafti_io_rest_t *hafti_io_end_rest(haft_io_task_t *task);
/* Lets the task rest again where there is no memory for a stack, until it is to be asked for anew.
   If the task ended, the program would lose its objects, such as a connection. */
void hafti_io_rest_for_stack(hafti_io_rest_t *rest, haft_io_task_t *task);

/* Wakes a task that rests and that nothing else wakes (tape/replaying.c). */
HAFTI_IO_COLD void hafti_io_wake_rest(haft_io_task_t *task);

#endif
