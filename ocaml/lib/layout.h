/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * The layout that the assembly and the C of this library share.
 *
 * A fiber of OCaml is a fiber of libhaft (haft/inner/layout.h) whose frames are OCaml's. Its header
 * serves as the frames at the base of its stack, so that a switch touches two lines of the header
 * and one of the stack:
 *
 *   offset                          in haft_fiber_t      while the fiber is
 *     -24  return into runstack     (stack)
 *     -16  trap: next, handler      (stack)              exceptions that leave the fiber
 *       0  next young fiber         context.fp           on the list of roots.c; a place among the
 *                                                        recent (odd); 0: neither
 *       8  continuation             context.pc           suspended; RUNNING, CALLS, IDLE otherwise
 *      16  stack pointer            context.sp           suspended: | exception pointer | return
 *                                                        address |; idle: next idle fiber
 *      24  handler                  context.base
 *      32  local roots              context.control      suspended
 *      40  return into the base     owner                0: it is a shelf (shelves.c)
 *      56  innermost scope          top                  suspended
 *      64  parent's stack, above its return address      resumer.fp     } a caml_context
 *      72  parent's return address                       resumer.pc     }
 *      80  parent's stack, always the same               resumer.sp     }
 *      88  parent's exception pointer                    resumer.base
 *      96  parent's local roots                          resumer.control
 *     104  scope: outer, handles, serial
 *
 * To OCaml's runtime these are two frames: one of 64 bytes from -16 on with one live slot, the
 * handler, which returns into the base; and that, which is the end of a chunk of stack whose
 * caml_context leads on to the parent.
 *
 * A fiber that is suspended together with fibers inside it is the outermost of them: that one has
 * the continuation, the stack pointer (of the innermost) and the innermost scope.
 */
/* clang-format on */
#ifndef HAFTI_OCAML_LAYOUT_H
#define HAFTI_OCAML_LAYOUT_H

/* The further part of a fiber's header that a nested fiber has (nests.c): see generate_offsets.sh.
   FIBER_ROOM: its end. */
#include "offsets.h"

#define FIBER_TRAP (-16)
#define FIBER_YOUNG 0
#define FIBER_CONTINUATION 8
#define FIBER_SP 16
#define FIBER_HANDLER 24
#define FIBER_ROOTS 32
#define FIBER_BASE_RETURN 40
#define FIBER_TOP 56
#define FIBER_PARENT 64
#define FIBER_PARENT_PC 72
#define FIBER_PARENT_SP 80
#define FIBER_PARENT_EXCEPTION 88
#define FIBER_PARENT_ROOTS 96
#define FIBER_SCOPE 104
#define FIBER_OUTER 104
#define FIBER_HANDLES 112
#define FIBER_SERIAL 120

/* clang-format off */
/*
 * A gap: where a clause runs in place (nests.c), below the fiber that performed. The clause returns
 * into haft_ocaml_gap_returned, whose frame it is: the end of a chunk of stack, like a fiber's
 * base.
 *
 *      -8  return into the gap (stack)
 *       0  trap: next, handler
 *      16  parent's stack, above its return address  } a caml_context, whose last word the runtime
 *      24  parent's return address                   } uses only where code was interrupted
 *      32  the fiber                                 } 0: it was shelved
 *      40  what was placed before it, or 0
 */
/* clang-format on */
#define GAP_NEXT 0
#define GAP_RAISED 8
#define GAP_PARENT 16
#define GAP_PARENT_PC 24
#define GAP_FIBER 32
#define GAP_PLACED 40
#define GAP_ROOM 48

/* How many bytes of stack a shelf has room for. */
#define SHELF_LARGEST 368

/* In a closure: the arity of its function; the code of a function of two arguments. */
#define CLOSURE_ARITY 15
#define CLOSURE_CODE_2 16

/* In the thread's state. */
#define THREAD_CURRENT 0
#define THREAD_STAMP 16

/* In the words on the stack that are put aside around a switch of C (foreign.c). */
#define CROSSING_ROOM 96

/* In place of a continuation. FIBER_CALLS: it runs, and what handles its effects is called rather
   than jumped to (switch.S). FIBER_NESTED: it runs on the stack of another one (nests.c).
   FIBER_KEPT: it is suspended, and a block of stacks.c keeps it. */
#define FIBER_RUNNING 0
#define FIBER_IDLE 1
#define FIBER_CALLS 2
#define FIBER_NESTED 3
#define FIBER_KEPT 4

/* The last fiber of the list of young ones has this for the next; higher odd numbers are places
   among the recent. */
#define YOUNG_END 1

/* clang-format off */
/*
 * A continuation is a block of four fields with the tag of closures, made in the minor heap by
 * `perform`. So it can be applied, and `=`, `compare` and Marshal refuse it. (The collector scans
 * all that Haft writes into it.)
 *
 *    0  the effect, until the handler is called; then the code of `continue`
 *    8  as in any closure: how many fields, these two, are not for the collector to follow
 *   16  the state of its stack, a static value (data.S):
 *         YOUNG   its fiber has it; from the start until a collection happens
 *         PLACED  instead of that, while its fiber is placed (nests.c)
 *         ASIDE   a fiber or a shelf has it, to be asked for (stacks.c)
 *         KEPT    a block of stacks.c has it
 *         USED    it was resumed
 *   24  the fiber's address, tagged; KEPT: that block; USED: either
 *
 * Hashtbl.hash sees no further than the state, where it sees the same in each: a continuation's
 * hash never changes. (The code is one of four, and stays.)
 */
/* clang-format on */
#define CONTINUATION_EFFECT 0
#define CONTINUATION_CLOSINFO 8
#define CONTINUATION_STATE 16
#define CONTINUATION_HOLDER 24
#define CONTINUATION_FIELDS 4
#define CONTINUATION_INFORMATION (2 << 1 | 1)
#define CONTINUATION_HEADER (CONTINUATION_FIELDS << 10 | 247)

#endif
