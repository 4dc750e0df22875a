/* SPDX-License-Identifier: MIT */
/* The effects of programs on libhaft: for each of them the calls that a C program would write by
   hand, and the clauses of handlers. */
#ifndef HAFT_FUZZ_EFFECTS_H
#define HAFT_FUZZ_EFFECTS_H

#include "program.h"

#include <haft.h>

typedef struct family {
    int64_t (*perform)(int64_t value);
    int64_t (*yield)(haft_fiber_t *fiber, int64_t value);
    void (*throw)(int64_t value);
    void (*exit)(haft_fiber_t *fiber, int64_t value);
    haft_request_t (*resume)(haft_fiber_t *fiber, int64_t reply, const haft_handles_t *set);
    void *(*resumption_resume)(haft_resumption_t k, int64_t reply);
    haft_answer_t (*tail_resume)(haft_resumption_t k, int64_t reply);
    int64_t (*payload)(const void *pointer);
    int (*set_default)(int variant); /* returns the one before */
    haft_function_t *clauses[CLAUSE_KINDS];
} family_t;

extern haft_effect_t *const effects[EFFECTS];
extern const family_t families[EFFECTS];

int index_of(const haft_effect_t *effect);

/* Room for a reply to any effect. */
typedef struct triple {
    int64_t words[3];
} triple_t;
typedef union reply {
    int64_t whole;
    double real;
    triple_t triple;
} reply_t;

haft_reply_t untyped_reply(int effect, int64_t value, reply_t *room);
haft_reply_t missized_reply(int effect, reply_t *room);

/* The action of a statement, typed or untyped. */
int64_t perform(const statement_t *statement, int64_t value);
int64_t yield(const statement_t *statement, haft_fiber_t *fiber, int64_t value);
__attribute__((noreturn)) void throw(const statement_t *statement, int64_t value);
__attribute__((noreturn)) void leave(const statement_t *statement, haft_fiber_t *fiber,
                                     int64_t value);

/* interpreter.c: what clauses do. */
int64_t run_tail(void *state, int effect, int64_t payload);
haft_answer_t run_general(void *state, int effect, int64_t payload, haft_resumption_t k);
void *run_never(void *state, int effect, int64_t payload);
int64_t run_default(int effect, int variant, int64_t payload);

#endif
