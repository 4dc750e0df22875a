/* SPDX-License-Identifier: MIT */
/*
 * The handlers around the caller, for schedulers that give a task those of its spawner
 * (haft_io_spawn_handled), and for libraries that push handlers. A handler is a scope in the chain
 * from the current one outwards: `handles` lists its clauses, each with its `effect` and `kind`,
 * `state` is what they are called with, `outer` is the next scope. The last one, of the thread,
 * handles nothing. Valid while the frames that have installed the handlers are there.
 * haft/language.h has haft_scope_push and haft_scope_pop, by which a task installs the same clauses
 * with the same state, if all of them are HAFT_CLAUSE_TAIL.
 */
#ifndef HAFT_SCOPES_H
#define HAFT_SCOPES_H

#include "language.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef hafti_scope_t haft_scope_t;

HAFTI_INLINE const haft_scope_t *haft_scope_here(void) {
    return hafti_here().current;
}
/* Initialises a haft_handles_t with so many clauses, the first of which is at the address. */
#define HAFT_HANDLES_OF(number, clauses)                                                           \
    { (number), 0, HAFTI_SET_FIXED, (clauses) }
/* The same without clauses; its address marks a scope. */
#define HAFT_HANDLES_NONE HAFT_HANDLES_OF(0, (const haft_clause_t *)0)

/* The number of exceptions of C++ in flight, as std::uncaught_exceptions() has it. A function that
   has pushed a handler notes it before. If a clause leaves to the function (haft_return_t), the
   exceptions that were in flight further in are gone, and the number is set to what was noted. */
HAFTI_INLINE unsigned haft_exceptions_in_flight(void) {
    return hafti_thread()->globals->uncaught;
}
HAFTI_INLINE void haft_set_exceptions_in_flight(unsigned number) {
    hafti_thread()->globals->uncaught = number;
}

#ifdef __cplusplus
}
#endif

#endif
