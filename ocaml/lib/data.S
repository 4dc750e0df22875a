/* SPDX-License-Identifier: MIT */
/* Static memory of the assembly of every architecture: the frames that the garbage collector meets,
   the states of a continuation's stack, closures. */
#include "layout.h"

        .data
        .p2align 3
        .globl  haft_ocaml_frametable
        .hidden haft_ocaml_frametable
haft_ocaml_frametable:
        .quad   7
        .quad   haft_ocaml_collected
        .short  48                      /* bytes */
        .short  4                       /* live slots: */
        .short  0, 8, 16, 24
        .p2align 3
        .quad   haft_ocaml_asked
        .short  32                      /* bytes */
        .short  2                       /* live slots: */
        .short  0, 8
        .p2align 3
        .quad   haft_ocaml_clause_returned
        .short  16                      /* bytes */
        .short  0
        .p2align 3
        .quad   haft_ocaml_returned
        .short  64                      /* bytes */
        .short  1                       /* live slots: */
        .short  FIBER_HANDLER-FIBER_TRAP
        .p2align 3
        .quad   haft_ocaml_nested_returned
        .short  64                      /* bytes */
        .short  1                       /* live slots: */
        .short  FIBER_HANDLER-FIBER_TRAP
        .p2align 3
        .quad   haft_ocaml_gap_returned
        .short  0xffff
        .short  0
        .p2align 3
        .quad   haft_ocaml_base
        .short  0xffff
        .short  0
        .p2align 3

/*
 * The states of a continuation's stack (layout.h), as values: black arrays of floating-point
 * numbers. Where Hashtbl.hash comes to one, it counts each of its elements, and has seen as many as
 * it looks at. All elements are the same number, a header: so each state lies within those before
 * it, they take the same part in a hash, and each is almost as long as the page. It is registered
 * (fiber.c): otherwise the runtime would take the states for addresses of code.
 */
#define STATE_PAGE 4096
#define STATE_ELEMENTS (STATE_PAGE / 8 - 5)
#define STATE_HEADER (STATE_ELEMENTS << 10 | 0x300 | 254)
        .macro  state name
        .quad   STATE_HEADER
        .globl  \name
        .hidden \name
\name:
        .endm
        .balign STATE_PAGE
        .globl  haft_ocaml_states
        .hidden haft_ocaml_states
haft_ocaml_states:
        state   haft_ocaml_stack_young
        state   haft_ocaml_stack_placed
        state   haft_ocaml_stack_aside
        state   haft_ocaml_stack_kept
        state   haft_ocaml_stack_used
        .fill   STATE_ELEMENTS, 8, STATE_HEADER
        .globl  haft_ocaml_states_end
        .hidden haft_ocaml_states_end
haft_ocaml_states_end:

/* Static closures, black: the garbage collector leaves them alone. */
#define CLOSURE_HEADER(fields) ((fields) << 10 | 0x300 | 247)
#define CLOSURE_INFORMATION(arity, fields) ((arity) << 56) + ((fields) << 1) + 1
        .macro  closure1 name, code
        .p2align 3
        .quad   CLOSURE_HEADER(2)
        .globl  \name
        .hidden \name
\name:
        .quad   \code
        .quad   CLOSURE_INFORMATION(1, 2)
        .endm
        .macro  closure name, code, arity
        .p2align 3
        .quad   CLOSURE_HEADER(3)
        .globl  \name
        .hidden \name
\name:
        .quad   haft_ocaml_base         /* they are never applied partially */
        .quad   CLOSURE_INFORMATION(\arity, 3)
        .quad   \code
        .endm
        closure1 haft_ocaml_closure_perform, haft_ocaml_perform
        closure1 haft_ocaml_closure_perform_captured, haft_ocaml_perform_captured
        closure1 haft_ocaml_closure_reperform, haft_ocaml_reperform
        closure1 haft_ocaml_closure_raise, haft_ocaml_raise
        /* The backtrace goes on as it is, with the callers of the caller. */
        closure1 haft_ocaml_closure_reraise, caml_raise_exn
        closure haft_ocaml_closure_runstack, haft_ocaml_runstack, 3
        closure haft_ocaml_closure_resume_with, haft_ocaml_resume_with, 3
        closure haft_ocaml_closure_resume_under, haft_ocaml_resume_under, 4

        .section .note.GNU-stack, "", %progbits
