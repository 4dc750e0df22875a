/* SPDX-License-Identifier: MIT */
/* The loop of OCaml's tasks (loop_stubs.c), for the files that begin and end its waits:
   work_stubs.c and readiness_stubs.c. */
#ifndef HAFTI_OCAML_IO_LOOP_H
#define HAFTI_OCAML_IO_LOOP_H

#include "stubs.h"

typedef struct haft_ocaml_loop {
    haft_io_event_t woken;
    haft_io_event_t asked;  /* for the first task, which begins and ends carriers */
    haft_io_scope_t *scope; /* of the tasks that serve */
    struct carrier *current, *parked, *ended_carriers;
    intptr_t carriers_count, away_count, parked_count;
    haft_io_task_t **waiting; /* in C, by the numbers of the OCaml tasks on their stacks */
    size_t waiting_count;
    bool ended;
    haft_ocaml_work_t *done, **done_end;
    bool cancelled;
    bool rests_late;       /* see comes_soon */
    value *carry;          /* the function of OCaml that runs the loop in a carrier, a root */
    const void *below;     /* haft_ocaml_last_frame() of what has called the run */
    int set;               /* of epoll, for descriptors of others; -1: there is none yet */
    struct others *others; /* by their numbers */
    size_t others_count;
} haft_ocaml_loop_t;
extern haft_ocaml_loop_t *haft_ocaml_the_loop; /* NULL: there is no run; under OCaml's lock */

/* ---- work_stubs.c ---- */

/* Like haft_ocaml_io_begin, by a task of C that runs the function, with the work. The function is
   haft_ocaml_do_work, or finishes the work otherwise. */
int haft_ocaml_begin(haft_ocaml_work_t *work, intptr_t slot, void *(*function)(void *));
void *haft_ocaml_do_work(void *work);
/* Gives the loop what has been done. */
void haft_ocaml_finish(haft_ocaml_work_t *work);
/* The run is over: there is no loop any more, and nothing is taken. */
void haft_ocaml_end_work(haft_ocaml_loop_t *loop);

/* ---- readiness_stubs.c ---- */

void haft_ocaml_free_others(const haft_ocaml_loop_t *loop);

#endif
