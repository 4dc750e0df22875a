/*
 * Programs as data: the language that the property test speaks. A program is run twice, on libhaft
 * (interpreter.c) and on an abstract machine that knows nothing of it (model.cpp), and both write
 * down what can be observed: the two logs must be equal.
 *
 * A body is a list of statements that work on one number, `value`. A statement's result is mixed
 * into it, so that a wrong reply anywhere changes everything after it. What a program refers to may
 * be missing or in the wrong state: misuse is part of the language, its error is the statement's
 * result. Every statement that is executed burns fuel; without fuel no statement runs.
 */
#ifndef HAFT_PROPERTY_PROGRAM_H
#define HAFT_PROPERTY_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { EFFECTS = 6, SLOTS = 4, KEPT = 3, ALL_EFFECTS = (1 << EFFECTS) - 1, FUEL = 150 };

typedef struct statement statement_t;
typedef struct handler handler_t;

typedef struct body {
    const statement_t *statements;
    int count;
} body_t;

typedef enum operation {
    PERFORM,        /* effect */
    HANDLE,         /* run `body` under the deep `handler` */
    LOOP,           /* resume the fiber in `slot` with each of the rounds */
    NEW,            /* a fiber in `slot` that will run `body`; `variant`: its kind of stack */
    SCOPED,         /* run `body`, and however it is left, `other` */
    REPEAT,         /* run `body` `variant` + 2 times */
    WHERE,          /* which fiber runs, and which one would be suspended by `effect` */
    STATE,          /* of the fiber in `slot` */
    YIELD,          /* send `effect` out of the fiber that handles effect `target` */
    YIELD_SLOT,     /* send `effect` out of the fiber in `slot`, if that is around */
    THROW,          /* effect */
    EXIT,           /* like YIELD */
    EXIT_SLOT,      /* like YIELD_SLOT */
    FREE,           /* the fiber in `slot` */
    RESET,          /* the fiber in `slot`, to run `body` */
    CONTINUE,       /* the resumption kept in `slot`; `variant`: leave the used resumption there */
    CONTINUE_RAISE, /* the same by an exception */
    DROP,           /* the resumption kept in `slot` */
    TRY,            /* run `body` and catch an exception */
    RAISE,          /* an exception with the value */
    SET_DEFAULT,    /* of `effect`, to its default number `variant`; none for 0 */
    THREAD,         /* run `body` on a new thread and wait for it */
    OPERATIONS
} operation_t;

typedef enum action { REPLY, DISCONTINUE, DISMISS, ACTIONS } action_t;

/* Resume with a reply, or by raising an exception, handling `effects`; when there is a request, run
   `body`; then, to dismiss, free the fiber. */
typedef struct round {
    unsigned effects;
    action_t action;
    body_t body;
} round_t;

struct statement {
    operation_t operation;
    int effect, target, slot, variant;
    int64_t number;
    body_t body, other;
    const handler_t *handler;
    const round_t *rounds;
    int round_count;
};

typedef enum clause_kind { ABSENT, TAIL, GENERAL, NEVER, CLAUSE_KINDS } clause_kind_t;

/* What a general clause does with its resumption when its body has run; `after` runs then, save
   after a tail-continue. */
typedef enum ending {
    END_CONTINUE,
    END_TAIL_CONTINUE,
    END_DROP,
    END_KEEP,     /* in `slot`; if there is one already, drop */
    END_EXCHANGE, /* tail-continue the one kept in `slot`, keep this one; if none is kept, continue
                   */
    END_RAISE,
    ENDINGS
} ending_t;

typedef struct clause {
    clause_kind_t kind;
    ending_t ending;
    int slot;
    body_t body, after;
} clause_t;

struct handler {
    int index;
    clause_t clauses[EFFECTS];
    bool returns; /* has a return clause */
    body_t on_return;
};

typedef struct program {
    body_t main;
    body_t defaults[EFFECTS][2];
    const handler_t *const *handlers;
    int handler_count;
} program_t;

/* ---- What is observed ---- */

typedef enum event_kind {
    RESULT, /* operation, result */
    ERROR,  /* code */
    CLEANUP,
    CAUGHT,
    REQUEST,  /* effect, payload */
    THROWN,   /* effect, payload */
    RETURNED, /* result */
    CLAUSE,   /* effect, payload */
    DEFAULTED,
    RETURN_CLAUSE,
    MISSING, /* nothing in the slot, or something where nothing should be */
    BROKEN,  /* a payload or reply that is not intact */
    LEAKED,  /* stacks */
    EVENTS
} event_kind_t;

void observe(event_kind_t kind, int64_t first, int64_t second);

static inline int64_t mix(int64_t value, int64_t other) {
    return (int64_t)(((uint64_t)value * 31 + (uint64_t)other + 7) % 10007);
}

/* What an effect can carry: effect 5 has no payload, effect 1 no result. */
static inline int64_t as_payload(int effect, int64_t value) {
    return effect == 5 ? 0 : value;
}
static inline int64_t as_result(int effect, int64_t value) {
    return effect == 1 ? 0 : value;
}

void run_on_haft(const program_t *program);
/* False if the program does what ends the process. */
bool run_on_model(const program_t *program);

/* exceptions.cpp: what C cannot say. */
/* Calls and returns 0, or the code of the error that it ended in. */
int guarded(void (*call)(void *), void *argument);
/* Calls and returns whether an exception was caught. */
bool catching(void (*call)(void *), void *argument, int64_t *number);
__attribute__((noreturn)) void raise_exception(int64_t number);
void errors_become_exceptions(void);

#ifdef __cplusplus
}
#endif

#endif
