/* SPDX-License-Identifier: MIT */
/* A run. */
#ifndef HAFTI_IO_RUNS_H
#define HAFTI_IO_RUNS_H

#include "inside.h"
#include "tape/tapes.h"

/* A run with this back end and, if it is not NULL, this simulation (run.c). */
int hafti_io_run_with(void *(*main)(void *), void *argument, const haft_io_run_options_t *options,
                      hafti_io_simulated_t *simulated);

#endif
