/* SPDX-License-Identifier: MIT */
/* Parts of the abstract machine of model.cpp. */
#ifndef HAFT_FUZZ_FRAMES_H
#define HAFT_FUZZ_FRAMES_H

#include "program.h"

#include <memory>
#include <vector>

namespace model {

enum class status { fresh, suspended, running, finished };

/* Error codes and states as haft.h numbers them. */
enum error {
    unhandled = 1,
    not_resumable,
    in_use,
    used_resumption,
    not_around,
    wrong_type,
    no_reply,
    no_memory,
    came_back = 11,
    bad_argument
};

struct frame;
using frames = std::vector<frame>;

struct fiber {
    int id = 0;
    status now = status::fresh;
    const body_t *body = nullptr;
    int64_t seed = 0;
    int awaits = 0;
    bool careless = false, fixed = false, freed = false;
    frames captured; /* while suspended; the first is its border */
    /* A deep handler's */
    const handler_t *handler = nullptr;
    uint64_t captures = 0;
};

struct resumption {
    fiber *of = nullptr;
    uint64_t capture = 0;
    bool usable() const { return of != nullptr && of->captures == capture; }
};

/* Why frames are being taken off. */
struct leaving {
    enum { throwing, dropping, exception, error } why = dropping;
    fiber *target = nullptr; /* of throwing and dropping */
    int effect = 0;
    int64_t number = 0; /* payload, exception or error code */
};

enum class kind {
    root,          /* the bottom of a thread */
    border,        /* of `f`, which handles `effects`, or what its deep handler has clauses for */
    handler,       /* a deep handler without a fiber */
    sequence,      /* a body: `at`, `value` */
    loop,          /* a LOOP waits for its fiber, */
    loop_body,     /* or for the body of a round */
    drive,         /* a deep handler waits for its fiber */
    on_return,     /* a handler's return clause is due */
    clause,        /* a clause in place: `cut` waits for its value */
    general,       /* a general clause's body runs, `k` is its resumption */
    general_after, /* its answer is due; then comes the rest of the clause */
    promised,      /* the rest of a clause runs that has promised to continue `k` with `value` */
    snatched,      /* a clause waits for `f`, which it resumes by hand, once */
    scoped,        /* a cleanup is due */
    cleanup,       /* a cleanup runs at a normal end: `value` is what goes on */
    cleanup_guard, /* no exception leaves a cleanup */
    pending,       /* unwinding waits for a duty to be done */
    owned,         /* `f` has ended and is freed when what runs now is done */
    freeing,       /* `f` is being unwound, then freed, */
    resetting,     /* or reset */
    repeat,
    trying,
    thread
};

struct frame {
    kind is;
    fiber *f = nullptr;
    unsigned effects = 0;
    const handler_t *handler = nullptr;
    const body_t *body = nullptr;
    const statement_t *statement = nullptr;
    const clause_t *clause = nullptr;
    int at = 0;
    int64_t value = 0;
    bool thrown = false; /* the effect of this clause in place was thrown */
    resumption k = {};
    leaving why = {};
    std::shared_ptr<frames> cut = {};
};

struct request {
    int effect;
    int64_t payload;
    bool thrown;
};

/* The process ends here: by an error whose handler does not leave; by libhaft, at a throw whose
   cleanup was suspended and resumed where its handler is no longer around; */
struct gave_up {};
/* A promise was broken: a careless fiber that holds what needs unwinding is left as it is. */
struct promise_broken {};

/* or by code of clang, which lets nothing unwind a cleanup that is itself run by unwinding. */
#ifdef __clang__
constexpr bool cleanups_end_unwinding = true;
#else
constexpr bool cleanups_end_unwinding = false;
#endif

} // namespace model

#endif
