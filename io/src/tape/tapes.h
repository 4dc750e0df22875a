/* SPDX-License-Identifier: MIT */
/* A run's tape, from its beginning to its end. */
#ifndef HAFTI_IO_TAPES_H
#define HAFTI_IO_TAPES_H

#include "../inside.h"
#include "replaying.h"

/* Opens the tape, or none, that the options or the environment ask for, for the run that is about
   to begin. An error, after a message on standard error: the run is not to begin. */
int hafti_io_tape_for_run(const haft_io_run_options_t *options, unsigned threads,
                          hafti_io_tape_t **tape);
/* To be called once the worker has its back end. */
void hafti_io_tape_begin_run(hafti_io_worker_t *worker);
void hafti_io_tape_end_run(hafti_io_tape_t *tape);
/* To be called in a child of fork; `own`: of the run that has forked, or NULL. */
void hafti_io_forget_tapes(hafti_io_tape_t *own);

/* ---- kept.c: runs that keep requests ---- */

/* 0; or an error, after a message on standard error. */
int hafti_io_kept_new(const char *folder, const haft_io_run_options_t *options,
                      hafti_io_tape_t **tape);
/* Gives another worker of such a run a tape, on its thread; false: there is no memory. */
bool hafti_io_kept_join(hafti_io_worker_t *worker);

void hafti_io_record_backend(hafti_io_worker_t *worker); /* recorder.c */
extern const hafti_io_backend_t hafti_io_replayer;       /* replayer.c */

#endif
