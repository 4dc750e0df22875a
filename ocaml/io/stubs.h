/* SPDX-License-Identifier: MIT */
/* Declarations that the C functions of haft-io share, also with haft-http. */
#ifndef HAFTI_OCAML_IO_STUBS_H
#define HAFTI_OCAML_IO_STUBS_H

#define CAML_NAME_SPACE
#include <haft/io_binding.h>

#include <caml/alloc.h>
#include <caml/bigarray.h>
#include <caml/callback.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>

/* Does something that may wait on a stack of its own, in a task of C; returns what the OCaml task
   that waits for it gets. */
typedef struct haft_ocaml_work haft_ocaml_work_t;
struct haft_ocaml_work {
    intptr_t (*work)(haft_ocaml_work_t *self);
    void (*free)(haft_ocaml_work_t *self); /* NULL: free(3) */
    haft_ocaml_work_t *next;
    intptr_t slot; /* by which the OCaml code knows it */
    intptr_t result;
};
/* Begins it, for the slot; once it is done the loop takes it (haft_ocaml_io_take_done), and it is
   freed. Returns 0, or -ENOMEM, when it has been freed. */
int haft_ocaml_io_begin(haft_ocaml_work_t *work, intptr_t slot);
/* The work whose results OCaml code may ask for, having taken it. */
haft_ocaml_work_t *haft_ocaml_io_taken(void);
/* Whether a call of the C library may suspend the task that makes it: it is not made by OCaml code
   that holds the lock. For libhaft-posix. */
bool haft_ocaml_io_may_suspend(void);
#define HAFT_OCAML_MEMORY(array) ((char *)Caml_ba_data_val(array))

#endif
