/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the files of libhaft-io share. docs/internals.md explains the parts; the
 * comment of each struct names the thread that may touch it.
 *
 * A task's states:
 *
 *   state    | in                          | moved on by
 *   NEW      | a ready queue, or before an | the worker that takes it
 *            | inbox; in a shared run the  |
 *            | queue that others steal from|
 *   READY    | the worker's ready queue    | the loop, which resumes its runner
 *   OFFERED  | as NEW: suspended, and it   | a worker's loop
 *            | moves (ready.c)             |
 *   RUNNING  | its runner                  | itself: it waits, yields, ends
 *   PARKED   | its cell's owner's list; a  | the winner of the cell
 *            | task that rests has no stack|
 *   ENDED    | its home's list of ended,   | haft_io_join, or the end of the scope
 *            | if it is to be joined       |
 *   FREE     | the worker's free list      | the next spawn
 *
 * A run has a worker a thread. A run of one thread is alone, one of several is shared. A task that
 * has started stays with its worker, unless it moves: then it may have another after each wait.
 * Only the worker's own thread touches a task, a timer or a worker, except for the words marked
 * "any thread". The lists and the outcome of a scope are touched under its lock; the holder of that
 * lock may take those of scopes below. A run that is alone takes no such lock, and uses no atomic
 * instruction for what only its thread touches.
 */
#ifndef HAFTI_IO_STATE_H
#define HAFTI_IO_STATE_H

#include "timers.h"
#include "trace.h"

/* Suspends the task until its cell has been won. Never performed without a scheduler. Its cache
   slot differs from those of the operations that tasks alternate with it: see io_effects.h. */
HAFT_EFFECT_IN_SLOT(5, hafti_io_park, void, {});
/* Thrown to unwind a task, or a scope's body: -ECANCELED, or how it failed, which its scope knows
   by then. */
HAFT_EFFECT(hafti_io_unwind, void, { int code; });

enum hafti_io_outcome {
    HAFTI_IO_WAITING = 0,
    HAFTI_IO_CLAIMED, /* won by a party that still hands something over */
    HAFTI_IO_WOKEN,
    HAFTI_IO_CANCELLED,
    HAFTI_IO_TIMED_OUT,
    HAFTI_IO_ARMS /* of a wait for several: this plus the arm */
};

typedef struct hafti_io_cell {
    uint32_t word;        /* a hafti_io_outcome; any thread may swap WAITING for another, once */
    haft_io_task_t *task; /* NULL: a thread without a scheduler waits, for `word` as a futex */
} hafti_io_cell_t;

enum hafti_io_wait_kind { HAFTI_IO_CANCELLABLE, HAFTI_IO_TO_THE_END };

static inline bool hafti_io_cell_swap(hafti_io_cell_t *cell, uint32_t outcome) {
    uint32_t expected = HAFTI_IO_WAITING;
    if (__libc_single_threaded) { /* No other thread can interfere. */
        if (__atomic_load_n(&cell->word, __ATOMIC_RELAXED) != expected)
            return false;
        __atomic_store_n(&cell->word, outcome, __ATOMIC_RELAXED);
        return true;
    }
    return __atomic_compare_exchange_n(&cell->word, &expected, outcome, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}
/* The same in two steps; between them the waiter stays suspended, so that a value can be copied. */
static inline bool hafti_io_cell_claim(hafti_io_cell_t *cell) {
    return hafti_io_cell_swap(cell, HAFTI_IO_CLAIMED);
}
/* Wakes a thread without a scheduler that waits. */
HAFTI_IO_COLD void hafti_io_wake_thread(hafti_io_cell_t *cell);
/* The value of runner->cell while a canceller looks at the cell; see cell.c. */
#define HAFTI_IO_CELL_TAKEN ((hafti_io_cell_t *)1)

enum hafti_io_task_state {
    HAFTI_IO_FREE,
    HAFTI_IO_NEW,
    HAFTI_IO_READY,
    HAFTI_IO_OFFERED,
    HAFTI_IO_RUNNING,
    HAFTI_IO_PARKED,
    HAFTI_IO_ENDED
};

/* A value that was given away: how many bindings have it, and the function that the last one
   calls. */
typedef struct {
    size_t uses;
    void (*release)(void *value);
} hafti_io_given_t;

/* A value by key, shared by the tasks that have inherited it, and not changed while it is. */
typedef struct hafti_io_binding {
    struct hafti_io_binding *outer;
    size_t uses;
    const void *key;
    void *value;
    hafti_io_given_t *given; /* NULL: the value is the program's */
} hafti_io_binding_t;

/* State that only a task that has started needs; the next task of the runner finds it cleared
   (runners.c). */
struct hafti_io_runner {
    haft_fiber_t *fiber;  /* NULL: the task rests (resting.c) */
    haft_io_task_t *task; /* NULL: idle */
    hafti_io_worker_t *worker;
    haft_io_scope_t *scope;   /* the innermost that the task is in: whose cancel is its own */
    hafti_io_cell_t *cell;    /* what it waits for, if a cancel may win that; any thread */
    const char *waits_for;    /* for the dump; NULL while it does not wait; any thread reads */
    int64_t waits_since;      /* by its worker's clock; any thread reads */
    int saved_errno;          /* while it is suspended */
    bool yielded;             /* it is READY after haft_io_yield, which wants a reply */
    bool listed;              /* by `link` */
    bool here;                /* `listed`: in the list of the scope's worker, `tasks_here` */
    bool unwinding : 1;       /* see hafti_io_is_unwinding */
    bool returns_cancels : 1; /* instead of unwinding */
    bool counted : 1;         /* in its worker's `waiting` */
    bool gated : 1;           /* by `gate`; not while it waits for that */
    bool late : 1;            /* one of its `limits` has passed: it is not to wait */
    bool unarmed : 1;         /* one of its `limits` may have no timer yet */
    bool single : 1;          /* for one task, which has a stack of its own */
    bool accepted : 1;        /* a connection, since it has spread a task */
    bool closes : 1; /* by a function of haft_io_close_by, for which others of its thread may wait,
                        busily */
    bool taped : 1;  /* what it asks for is a part of what is kept on the tape as a whole */
    bool owns : 1;   /* its task has thread-locals of its own, and it is for that one */
    uint8_t refused; /* waits, since a cancel or a deadline has reached it: so many, at most 255 */
    uint16_t looked_at; /* the place of its last wait, by hafti_io_look_at */
    unsigned stays;     /* number of things that keep it with its worker: requests to the kernel */
    hafti_io_link_t link;    /* in scope->tasks once it has waited */
    hafti_io_timer_t *timer; /* of its wait, or NULL */
    haft_io_gate_t *gate;
    hafti_io_cell_t
        *poll_cell; /* by which a poll of several waits, which sets this NULL; NULL: by its own */
    hafti_io_limit_t *limits; /* the deadlines of the blocks that it is in, the innermost first */
    union {
        struct hafti_io_runner *next; /* of the idle ones, or of free records */
        /* It has a task: like the task's, for debuggers. If the task was in an inbox: an address
           that is no code. */
        const void *spawned_at;
    };
    struct hafti_io_rest *rest; /* with which its task goes on when the function has returned */
    hafti_io_lent_t *unsent;    /* what is sent then, before; or NULL */
    void *own;                  /* haft_io_own_set */
};

typedef enum hafti_io_kept {
    HAFTI_IO_NOT_KEPT,
    HAFTI_IO_KEPT,
    HAFTI_IO_KEPT_HERE /* in the list of the home's worker, `ended_here` */
} hafti_io_kept_t;

/* There may be very many that have not started. The fields that every wait touches come first. */
struct haft_io_task {
    __attribute__((aligned(32)))
    hafti_io_link_t queued;    /* in a queue; PARKED: it keeps a place; ENDED: in home->ended */
    hafti_io_runner_t *runner; /* once it has started */
    hafti_io_worker_t *worker;
    uint8_t state; /* see the table above; any thread may read it */
    bool moves;    /* to other workers when it has waited; never in a run that is alone */
    uint8_t kept;  /* ENDED: for its joiner, in a list of home by `queued`: hafti_io_kept_t */
    bool even_without_stack; /* its function is called */
    uint16_t number; /* NEW: of its entry in the queue of its spawner's worker, if it is there */
    bool spread;     /* counted in its worker's `spread` */
    uint8_t stack;   /* log2 of the size of its own stack; 0: a stack as the run's; and
                        HAFTI_IO_OWN_THREAD (own_threads.h) */
    haft_io_scope_t *home;   /* in which it was spawned */
    hafti_io_cell_t *joiner; /* NULL: none yet; any thread */
    union {
        void *(*function)(void *);
        void *result; /* when that has returned */
    };
    union {
        void *argument;
        int code; /* how it ended, once it has */
    };
    const char *name;
    hafti_io_binding_t *locals;
    union {
        haft_io_task_t *next; /* in the inbox (any thread), the free list */
        /* NEW, and never in an inbox: where the call that has spawned it returns to. */
        const void *spawned_at;
    };
};

_Static_assert(sizeof(haft_io_task_t) == 96, "a million take 96 MB");

/* Values of a task's joiner that are not cells. */
#define HAFTI_IO_NOT_JOINABLE ((hafti_io_cell_t *)1)
/* the thread that ends it still looks at the joiner's cell */
#define HAFTI_IO_ENDING ((hafti_io_cell_t *)2)
#define HAFTI_IO_HAS_ENDED ((hafti_io_cell_t *)3)

/*
 * In a shared run the worker whose task has opened a scope counts the tasks that it spawns and ends
 * there, and lists those that end, for itself: `live_here` and `ended_here` are touched by its
 * thread only, without lock or atomic instruction, and lie apart from what the others write. So a
 * count may be below 0. `live` begins with UNMERGED, and cannot come to 0 before
 * hafti_io_scope_merge has put `live_here` in its place. Nothing of this where the opener moves.
 */
#define HAFTI_IO_UNMERGED (SIZE_MAX / 4 + 1)

struct haft_io_scope_state {
    haft_io_scope_t *outer;
    bool shared;      /* its run is */
    bool split;       /* it is shared, and has two counts and lists */
    bool is_bodyless; /* its owner is outside (haft_io_scope_open) */
    hafti_io_worker_t *worker;
    bool (*scope_of_spawns)(haft_io_scope_t **);   /* of its options */
    __attribute__((aligned(64))) size_t live_here; /* any thread reads, for the dump */
    hafti_io_link_t ended_here;
    haft_io_task_t *returned; /* of `ended_here`, given up by other workers; any thread, seldom */
    bool merged;
    uint32_t lock_here;         /* taken after `lock` */
    hafti_io_link_t tasks_here; /* as `tasks`, those that were listed by the worker */
    __attribute__((aligned(64))) uint32_t lock;
    hafti_io_link_t sibling; /* in outer->inner */
    hafti_io_link_t inner;   /* the scopes whose outer is this */
    hafti_io_link_t tasks; /* runners of those that have this as their innermost, and have waited */
    hafti_io_link_t ended; /* tasks of this home that have not been joined */
    size_t live;           /* tasks of this home that have not ended; 0 only under the lock */
    hafti_io_cell_t *closer;  /* of the task that waits for `live` to be 0 */
    haft_io_task_t *owner;    /* the task that opened it; NULL: haft_io_run */
    const haft_fiber_t *body; /* the fiber of its body; NULL: it has none */
    const char *name;
    haft_io_failures_t *failures;
    haft_io_on_failure_t *on_failure;
    haft_io_on_cancel_t *on_cancel; /* until it is taken, under the lock, to be called */
    int64_t deadline;               /* its own; HAFT_IO_FOREVER: none */
    hafti_io_timer_t timer;
    hafti_io_several_t *several;   /* whose calls its tasks are */
    haft_io_scope_t *cancelled_by; /* this one, or one further out; set before `cancelled` */
    int code;                      /* with what it ends, if not 0 */
    bool late;      /* its deadline has passed; `code` follows when that cuts something short */
    bool cancelled; /* itself or by one further out; read by any thread */
    bool moves;     /* its tasks do */
    bool timed;     /* its timer is to be added where its owner, which is OFFERED, is taken */
    bool shielded;
    bool owner_unwinding, owner_returns_cancels; /* as they were outside */
    hafti_io_limit_t *owner_limits;              /* likewise */
};

/* Records of one kind, of a worker (records.c). */
typedef struct hafti_io_block hafti_io_block_t;
typedef struct hafti_io_records {
    char *fresh; /* those that were never used */
    size_t left; /* in bytes */
    size_t all;
} hafti_io_records_t;

static inline void hafti_io_set_state(haft_io_task_t *task, enum hafti_io_task_state state) {
    __atomic_store_n(&task->state, (uint8_t)state, __ATOMIC_RELEASE);
}
static inline enum hafti_io_task_state hafti_io_state(const haft_io_task_t *task) {
    return (enum hafti_io_task_state)__atomic_load_n(&task->state, __ATOMIC_ACQUIRE);
}

static inline bool hafti_io_is_cancelled(const haft_io_scope_t *scope) {
    return __atomic_load_n(&scope->cancelled, __ATOMIC_RELAXED);
}
/* The task is not to wait: it is cancelled, or late. */
static inline bool hafti_io_is_withdrawn(const hafti_io_runner_t *runner) {
    return runner->late || hafti_io_is_cancelled(runner->scope);
}
static inline const char *hafti_io_scope_name(const haft_io_scope_t *scope) {
    return scope->name != NULL ? scope->name : "";
}

static inline void hafti_io_lock_scope(haft_io_scope_t *scope) {
    if (HAFTI_IO_UNLIKELY(scope->shared))
        hafti_io_guard(&scope->lock);
}
static inline void hafti_io_unlock_scope(haft_io_scope_t *scope) {
    if (HAFTI_IO_UNLIKELY(scope->shared))
        hafti_io_unguard(&scope->lock);
}

#endif
