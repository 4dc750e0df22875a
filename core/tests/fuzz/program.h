/* SPDX-License-Identifier: MIT */
/*
 * Programs as data: the language that the fuzzer speaks. A program is run twice, on libhaft
 * (interpreter.c) and on an abstract machine that knows nothing of it (model.cpp), and both write
 * down what can be observed: the two logs must be equal.
 *
 * A body is a list of statements that work on one number, `value`. A statement's result is mixed
 * into it, so that a wrong reply anywhere changes everything after it. An object of a program may
 * be missing or in the wrong state: misuse is part of the language, its error is the statement's
 * result. Every statement that is executed burns fuel; without fuel no statement runs.
 */
#ifndef HAFT_FUZZ_PROGRAM_H
#define HAFT_FUZZ_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { EFFECTS = 16, SLOTS = 4, KEPT = 3, ALL_EFFECTS = (1 << EFFECTS) - 1, FUEL = 180 };

typedef struct statement statement_t;
typedef struct handler handler_t;

typedef struct body {
    const statement_t *statements;
    int count;
} body_t;

typedef enum operation {
    PERFORM,        /* effect; `form` as for YIELD, THROW and EXIT */
    HANDLE,         /* run `body` under the deep `handler` */
    LOOP,           /* resume the fiber in `slot` with each of the rounds */
    NEW,            /* a fiber in `slot` that will run `body`; `variant`: its kind of stack */
    SCOPED,         /* run `body`, and however it is left, `other` */
    REPEAT,         /* run `body` `variant` + 2 times */
    WHERE,          /* which fiber runs, and which one would be suspended by `effect` */
    LOOK,           /* at the fiber in `slot`: its state, its parent, whether it has a backtrace */
    RENAME,         /* the fiber in `slot` */
    DETACH,         /* the fiber in `slot` */
    COUNT,          /* the live fibers of the process, by haft_fibers_dump */
    TRIM,           /* the pool of stacks */
    WANT,           /* a fiber, from 2 on by a deep handler, while the system gives no memory; odd
                       `variant`: the handler of errors leaves */
    MISTAKE,        /* number `variant` of those that an argument can be */
    YIELD,          /* send `effect` out of the fiber that handles effect `target` */
    YIELD_SLOT,     /* send `effect` out of the fiber in `slot`, if that is around */
    THROW,          /* effect */
    EXIT,           /* like YIELD */
    EXIT_SLOT,      /* like YIELD_SLOT */
    FREE,           /* the fiber in `slot`; `variant`: then free or resume it once more */
    RESET,          /* the fiber in `slot`, to run `body` */
    CONTINUE,       /* the resumption kept in `slot`; `variant`: leave the used resumption there */
    CONTINUE_RAISE, /* the same by an exception */
    DROP,           /* the resumption kept in `slot` */
    WAITS_ON,       /* the effect of the resumption kept in `slot` */
    TRY,            /* run `body` and catch an exception */
    RAISE,          /* an exception with the value */
    SET_DEFAULT,    /* of `effect`, to its default number `variant`; none for 0 */
    THREAD, /* run `body` on thread number `target`, a new one if that is busy, and wait for it */
    OPERATIONS
} operation_t;

/* Typed by the macros; untyped; untyped and of a wrong size. */
typedef enum form { TYPED, UNTYPED, MISSIZED } form_t;

/* Kinds of stacks of new fibers, their `variant`. One that is CARELESS has promised that nothing on
   it needs unwinding. */
enum { ORDINARY, SMALL, FIXED, CARELESS };
enum { MISTAKES = 4, WANTS = 4 };

/* How a computation that waits is replied to: rightly, by the macros or by haft_reply; or as it may
   be wrong. A reply before it has started does nothing. */
typedef enum reply_kind {
    REPLY_TYPED,
    REPLY_UNTYPED,
    REPLY_NOTHING,  /* right if the effect is silent */
    REPLY_TO,       /* to `effect`: right if it waits for that */
    REPLY_MISSIZED, /* if nothing waits, to `effect` */
    REPLY_KINDS
} reply_kind_t;

typedef struct reply_choice {
    reply_kind_t kind;
    int effect;
} reply_choice_t;

typedef enum action {
    REPLY,
    DISCONTINUE, /* by raising an exception */
    VISIT,       /* discontinue by a function that returns the reply */
    DISMISS,
    ACTIONS
} action_t;

/* Where the set of a resume is: at one of two places where a program has written it; where it has
   been written backwards; where it was built, without a number; where others have been. */
typedef enum place { HERE, THERE, BACKWARDS, BUILT, REWRITTEN, PLACES } place_t;

/* Resume with a reply, or the like, handling `effects`; when there is a request, run `body`; then,
   to dismiss, free the fiber. */
typedef struct round {
    unsigned effects;
    place_t place;
    action_t action;
    reply_choice_t reply;
    bool again; /* after a wrong reply give the right one; else its error is the loop's */
    body_t body;
} round_t;

struct statement {
    operation_t operation;
    int effect, target, slot, variant;
    form_t form;
    int64_t number;
    body_t body, other;
    const handler_t *handler;
    const round_t *rounds;
    int round_count;
    reply_choice_t reply; /* of CONTINUE; if it is wrong, the right one comes next */
};

typedef enum clause_kind { ABSENT, TAIL, GENERAL, NEVER, CLAUSE_KINDS } clause_kind_t;

/* The use of a general clause's resumption when its body has run; `after` runs then, save after a
   tail-continue. A promise is the result of haft_tail_resume. */
typedef enum ending {
    END_CONTINUE,
    END_TAIL_CONTINUE,
    END_DROP,
    END_KEEP,     /* in `slot`; if there is one already, drop */
    END_EXCHANGE, /* tail-continue the one kept in `slot`, keep this one; if none is kept, continue
                   */
    END_RAISE,
    END_PROMISE,      /* misuse what is promised, run `after`, keep the promise */
    END_FREE_PROMISE, /* promise, then free the fiber */
    END_FORGET,       /* keep in `slot`, promise, and answer something else; if one is kept there,
                         keep in the next slot, promise both, and answer with that one; or drop */
    END_SNATCH,       /* promise; then resume the fiber by hand, and free it */
    ENDINGS
} ending_t;

typedef struct clause {
    clause_kind_t kind;
    ending_t ending;
    int slot;
    reply_choice_t reply; /* if it is wrong, the right one comes next */
    body_t body, after;
} clause_t;

struct handler {
    int index;
    clause_t clauses[EFFECTS];
    bool returns; /* has a return clause */
    body_t on_return;
};

/* The action of the error handler. */
typedef enum escape { BY_EXCEPTION, BY_LONGJMP, BY_ABORT } escape_t;

typedef struct program {
    escape_t escape;
    bool signals; /* while it runs, a timer's signals perform effects that are handled in place */
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

/* The data of an effect: a number; no result; a result larger than a word; a large payload; a
   number as floating point; no payload. */
typedef enum shape { WHOLE, SILENT, LARGE, LONG, REAL, BARE, SHAPES } shape_t;
static inline shape_t shape_of(int effect) {
    return (shape_t)(effect % SHAPES);
}
static inline int64_t as_payload(int effect, int64_t value) {
    return shape_of(effect) == BARE ? 0 : value;
}
static inline int64_t as_result(int effect, int64_t value) {
    return shape_of(effect) == SILENT ? 0 : value;
}

/* Whether the reply is wrong for what waits on this effect, or for what has not started. */
enum { NOT_STARTED = -1 };
static inline bool is_wrong(reply_choice_t reply, int awaits) {
    switch (reply.kind) {
    case REPLY_NOTHING:
        return awaits != NOT_STARTED && shape_of(awaits) != SILENT;
    case REPLY_TO:
        return reply.effect != awaits;
    default:
        return reply.kind == REPLY_MISSIZED;
    }
}

void run_on_haft(const program_t *program);

/* How a program ends on the model: normally; by abort; or it breaks a promise, and nothing is
   known. */
typedef enum outcome { ENDS, ABORTS, UNKNOWN } outcome_t;
outcome_t run_on_model(const program_t *program);

/* exceptions.cpp: what C cannot express. */
/* Calls and returns 0, or the code of the error whose exception ended it. */
int guarded_by_catch(void (*call)(void *), void *argument);
__attribute__((noreturn)) void raise_error(int code);
/* Calls and returns whether an exception was caught. */
bool catching(void (*call)(void *), void *argument, int64_t *number);
__attribute__((noreturn)) void raise_exception(int64_t number);

#ifdef __cplusplus
}
#endif

#endif
