/* SPDX-License-Identifier: MIT */
/* Blocking sections, and what goes with the code of a fiber of C: for packages beside this one. */
#ifndef HAFT_OCAML_SECTIONS_H
#define HAFT_OCAML_SECTIONS_H

#include <caml/mlvalues.h>
#include <stdbool.h>

/* Whether the calling thread is in a blocking section, without OCaml's lock. */
bool haft_ocaml_in_section(void);

/* The place of the OCaml code that ran last and has not returned, on whichever stack. Under OCaml's
   lock. */
const void *haft_ocaml_last_frame(void);

/*
 * A root that has a block, or NULL. The first field of the block belongs to the code that runs:
 * when a fiber of C is suspended its value is put aside, and is written back when the fiber goes
 * on. It is a pointer.
 */
extern value *haft_ocaml_kept;

#endif
