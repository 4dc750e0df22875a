/* SPDX-License-Identifier: MIT */
/*
 * The handlers around the caller, for schedulers that give a task those of its spawner
 * (haft_io_spawn_handled). A handler is a scope in the chain from the current one outwards:
 * `handles` lists its clauses, each with its `effect` and `kind`, `state` is what they are called
 * with, `outer` is the next scope. The last one, of the thread, handles nothing. Valid while the
 * frames that have installed the handlers are there. haft/language.h has haft_scope_push and
 * haft_scope_pop, by which a task installs the same clauses with the same state, if all of them are
 * HAFT_CLAUSE_TAIL.
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
/* Initialises a haft_handles_t without clauses, whose address marks a scope. */
#define HAFT_HANDLES_NONE                                                                          \
    { 0, 0, HAFTI_SET_FIXED, (const haft_clause_t *)0 }

#ifdef __cplusplus
}
#endif

#endif
