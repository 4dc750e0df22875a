/* SPDX-License-Identifier: MIT */
/*
 * What the files of libhaft-io share. docs/io.md, "Inside", says what the parts are; each struct stands
 * here with who may touch it.
 *
 * A task's states:
 *
 *   state    | in                          | moved on by
 *   NEW      | a ready queue, or before an | who takes it from there
 *            | inbox; in a shared run the  |
 *            | queue that others steal from|
 *   READY    | the worker's ready queue    | the loop, which resumes its runner
 *   OFFERED  | as NEW: suspended, and it   | a worker's loop
 *            | moves (moving.c)            |
 *   RUNNING  | its runner                  | itself: it waits, yields, ends
 *   PARKED   | its cell's owner's list     | who wins the cell
 *   ENDED    | its home's list of ended,   | haft_io_join, or the end of the scope
 *            | if it is to be joined       |
 *   FREE     | the worker's free list      | the next spawn
 *
 * A run has a worker a thread. A run of one thread is alone, one of several is shared. A task that has
 * started stays with its worker, unless it moves: then it may have another after each wait. Everything of a task, a timer or a worker is touched by the worker's own
 * thread only, but for the words marked "any thread". Of a scope the lists, and what becomes of it, are
 * touched under its lock; who holds it may take those of scopes below. A run that is alone takes no such
 * lock, and uses no atomic instruction for what only its thread touches.
 */
#ifndef HAFTI_IO_INTERNAL_H
#define HAFTI_IO_INTERNAL_H

#include "haft/io.h"
#include "parking.h"
#include "queue.h"
#include "results.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/single_threaded.h>

#define HAFTI_IO_COLD __attribute__((cold, noinline))
/* Between a message that comes and the one that answers it: the linker puts these functions side by side. */
#define HAFTI_IO_HOT __attribute__((hot))
#define HAFTI_IO_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define HAFTI_IO_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

enum { HAFTI_IO_LINE = 64 }; /* of the processor's caches */

typedef struct hafti_io_worker hafti_io_worker_t;
typedef struct hafti_io_crew hafti_io_crew_t;
typedef struct hafti_io_operation hafti_io_operation_t;
typedef struct hafti_io_several hafti_io_several_t;
typedef struct hafti_io_lent hafti_io_lent_t;
typedef struct hafti_io_limit hafti_io_limit_t;

/* ---- Effects between tasks and their scheduler ---- */

/* Suspends the task until its cell has been won. Without a scheduler there is no task that could. Its slot is that of
   no operation which tasks perform by turns with it: see io_effects.h. */
HAFT_EFFECT_IN_SLOT(5, hafti_io_park, void, {});
/* Thrown to unwind a task, or a scope's body: -ECANCELED, or how it failed, which its scope knows by then. */
HAFT_EFFECT(hafti_io_unwind, void, { int code; });

/* Stores what another thread looks at, before a look at what the other thread stores: one of the two sees the other's.
   By an exchange: so does a store that is SEQ_CST, but not where qemu (7.2) runs AArch64's. */
#define HAFTI_IO_SHOW(place, value) (void)__atomic_exchange_n(place, value, __ATOMIC_SEQ_CST)

/* Into the processor's caches. By a load: processors forget a prefetch from a page that they have to look up first. */
static inline void hafti_io_touch(const void *memory) {
    (void)*(const volatile char *)memory;
}

/* ---- Lists ---- */

/* A link of a ring; the ring's head is one, too. Zeroed: not in a ring. */
typedef struct hafti_io_link {
    struct hafti_io_link *next, *previous;
} hafti_io_link_t;

static inline void hafti_io_ring(hafti_io_link_t *head) {
    head->next = head->previous = head;
}
static inline bool hafti_io_ring_empty(const hafti_io_link_t *head) {
    return head->next == head;
}
static inline void hafti_io_append(hafti_io_link_t *head, hafti_io_link_t *link) {
    link->next = head;
    link->previous = head->previous;
    head->previous->next = link;
    head->previous = link;
}
static inline bool hafti_io_linked(const hafti_io_link_t *link) {
    return link->next != NULL;
}
static inline void hafti_io_unlink(hafti_io_link_t *link) {
    link->next->previous = link->previous;
    link->previous->next = link->next;
    link->next = link->previous = NULL;
}
/* One more, by the only thread that counts; others may read. */
#define HAFTI_IO_COUNT(counter)                                                                    \
    __atomic_store_n(&(counter), __atomic_load_n(&(counter), __ATOMIC_RELAXED) + 1,                \
                     __ATOMIC_RELAXED)
#define HAFTI_IO_OWNER(pointer, type, field)                                                       \
    ((type *)(void *)((char *)(pointer)-offsetof(type, field)))

/* ---- The wait cell (cell.c) ---- */

typedef struct hafti_io_runner hafti_io_runner_t;

enum hafti_io_outcome {
    HAFTI_IO_WAITING = 0,
    HAFTI_IO_CLAIMED, /* won by somebody who still hands something over */
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
    if (__libc_single_threaded) { /* Nobody can come between. */
        if (__atomic_load_n(&cell->word, __ATOMIC_RELAXED) != expected)
            return false;
        __atomic_store_n(&cell->word, outcome, __ATOMIC_RELAXED);
        return true;
    }
    return __atomic_compare_exchange_n(&cell->word, &expected, outcome, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}
/* True: the caller was first, and the waiter will run. */
static inline bool hafti_io_cell_win(hafti_io_cell_t *cell, uint32_t outcome);
/* The same in two steps; between them the waiter stays where it is, for a value to be copied. */
static inline bool hafti_io_cell_claim(hafti_io_cell_t *cell) {
    return hafti_io_cell_swap(cell, HAFTI_IO_CLAIMED);
}
static inline void hafti_io_cell_finish(hafti_io_cell_t *cell, uint32_t outcome);
/* Lets a thread go on that waits as such. */
HAFTI_IO_COLD void hafti_io_wake_thread(hafti_io_cell_t *cell);
/* For a cell that others know, and that its task does not wait for after all: takes what has been won. */
void hafti_io_cell_give_up(hafti_io_cell_t *cell);
/* What runner->cell is while who cancels looks at the cell; see cell.c. */
#define HAFTI_IO_CELL_TAKEN ((hafti_io_cell_t *)1)
/* Withdraws what the task waits for; under the lock of its scope, which is `shared` or not. */
void hafti_io_cell_cancel(hafti_io_runner_t *runner, bool shared);
uint32_t hafti_io_cell_wait(hafti_io_cell_t *cell, enum hafti_io_wait_kind kind, int64_t deadline,
                            const char *waits_for);

/* ---- Timers (timers.c) ---- */

typedef struct hafti_io_timer {
    hafti_io_link_t link;
    int64_t tick;
    void (*fire)(struct hafti_io_timer *timer);
} hafti_io_timer_t;

enum { HAFTI_IO_TICK_BITS = 16, HAFTI_IO_LEVEL_BITS = 6, HAFTI_IO_LEVELS = 8 };
enum { HAFTI_IO_SLOTS = 1 << HAFTI_IO_LEVEL_BITS };

typedef struct hafti_io_timers {
    int64_t elapsed; /* the tick up to which all have fired */
    size_t count;
    hafti_io_link_t due;
    uint64_t occupied[HAFTI_IO_LEVELS];
    hafti_io_link_t slots[HAFTI_IO_LEVELS][HAFTI_IO_SLOTS];
} hafti_io_timers_t;

void hafti_io_timers_start(hafti_io_timers_t *timers, int64_t now);
void hafti_io_timer_add(hafti_io_timers_t *timers, hafti_io_timer_t *timer, int64_t deadline);
void hafti_io_timer_remove(hafti_io_timers_t *timers, hafti_io_timer_t *timer);
/* When something has to be done next: not later than the first timer; HAFT_IO_FOREVER for none. */
int64_t hafti_io_timers_next(hafti_io_timers_t *timers);
void hafti_io_timers_advance(hafti_io_timers_t *timers, int64_t now);

/* ---- Tasks and scopes (task.c, scope.c) ---- */

enum hafti_io_task_state {
    HAFTI_IO_FREE,
    HAFTI_IO_NEW,
    HAFTI_IO_READY,
    HAFTI_IO_OFFERED,
    HAFTI_IO_RUNNING,
    HAFTI_IO_PARKED,
    HAFTI_IO_ENDED
};

/* A value by key, shared by the tasks that have inherited it, and not changed while it is. */
typedef struct hafti_io_binding {
    struct hafti_io_binding *outer;
    size_t uses;
    const void *key;
    void *value;
} hafti_io_binding_t;

/* What only a task that has started needs; the next task of the runner finds it cleared (scheduler.c). */
struct hafti_io_runner {
    haft_fiber_t *fiber;
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
    bool unwinding : 1;       /* its stack, up to the innermost scope, is being unwound */
    bool returns_cancels : 1; /* instead of unwinding */
    bool counted : 1;         /* in its worker's `waiting` */
    bool gated : 1;           /* by `gate`; not while it waits for that */
    bool late : 1;            /* one of its `limits` has passed: it is not to wait */
    bool single : 1;          /* for one task, which has a stack of its own */
    bool accepted : 1;        /* a connection, since it has spread a task */
    bool
        closes : 1; /* by a function of haft_io_close_by, for which others of its thread may wait, busily */
    unsigned stays;          /* so many things keep it with its worker: requests to the kernel */
    hafti_io_link_t link;    /* in scope->tasks once it has waited */
    hafti_io_timer_t *timer; /* of its wait, or NULL */
    haft_io_gate_t *gate;
    hafti_io_cell_t
        *poll_cell; /* by which a poll of several waits, which sets this NULL; NULL: by its own */
    hafti_io_limit_t *limits; /* the deadlines of the blocks that it is in, the innermost first */
    struct hafti_io_runner *next; /* of the idle ones, or of free records */
};

/* There may be very many that have not started. What every wait touches comes first. */
struct haft_io_task {
    __attribute__((aligned(32)))
    hafti_io_link_t queued;    /* in a queue; PARKED: it keeps a place; ENDED: in home->ended */
    hafti_io_runner_t *runner; /* once it has started */
    hafti_io_worker_t *worker;
    uint8_t state;   /* see the table above; any thread may read it */
    bool moves;      /* to other workers when it has waited; never in a run that is alone */
    bool kept;       /* ENDED: for who joins it, in a list of home by `queued` */
    bool kept_here;  /* `kept`: in that of the home's worker, `ended_here` */
    uint16_t number; /* NEW: of its entry in the queue of its spawner's worker, if it is there */
    bool spread;     /* counted in its worker's `spread` */
    uint8_t stack;   /* it has one of its own, of so many bits; 0: one as all of the run */
    haft_io_scope_t *home;   /* in which it was spawned */
    hafti_io_cell_t *joiner; /* NULL: nobody yet; any thread */
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
    haft_io_task_t *next; /* in the inbox (any thread), the free list */
};

_Static_assert(sizeof(haft_io_task_t) == 96, "a million take 96 MB");

/* What a task's joiner is, if it is no cell. */
#define HAFTI_IO_NOT_JOINABLE ((hafti_io_cell_t *)1)
#define HAFTI_IO_ENDING ((hafti_io_cell_t *)2) /* who ends it still looks at the joiner's cell */
#define HAFTI_IO_HAS_ENDED ((hafti_io_cell_t *)3)

/*
 * In a shared run the worker whose task has opened a scope counts the tasks that it spawns and ends there, and
 * lists those that end, for itself: `live_here` and `ended_here` are touched by its thread only, without
 * lock or atomic instruction, and lie apart from what the others write. So a count may be below 0. `live` begins
 * with UNMERGED, and cannot come to 0 before hafti_io_scope_merge has put `live_here` in its place. Nothing
 * of this where the opener moves.
 */
#define HAFTI_IO_UNMERGED (SIZE_MAX / 4 + 1)

struct haft_io_scope_state {
    haft_io_scope_t *outer;
    bool shared; /* its run is */
    bool split;  /* it is shared, and has two counts and lists */
    hafti_io_worker_t *worker;
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
    hafti_io_cell_t *closer; /* of who waits for `live` to be 0 */
    haft_io_task_t *owner;   /* who opened it; NULL: haft_io_run */
    const char *name;
    haft_io_failures_t *failures;
    haft_io_on_failure_t *on_failure;
    haft_io_on_cancel_t *on_cancel; /* until somebody has taken it, under the lock, to tell it */
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

/* One that was never used; NULL: no memory. It stays a record of this kind, of whichever worker. */
void *hafti_io_new_record(hafti_io_worker_t *worker, hafti_io_records_t *records, size_t size);
/* All, of both kinds, at the end of the run. */
void hafti_io_free_records(hafti_io_worker_t *worker);

/* NULL: no memory. The task is not in the ready queue yet. */
haft_io_task_t *hafti_io_task_new(hafti_io_worker_t *worker, haft_io_scope_t *scope,
                                  void *(*function)(void *), void *argument);
void hafti_io_task_end(haft_io_task_t *task, int code);
/* With a stack as the task has it, for it and for the bodies of its scopes. NULL: no memory. */
haft_fiber_t *hafti_io_fiber_of(const haft_io_task_t *task, void *(*function)(void *),
                                void *argument);
/* Gives up the record of a task that has ended and was to be joined; to this worker, the caller's. */
void hafti_io_task_forget(haft_io_task_t *task, hafti_io_worker_t *worker);

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
/* Puts the runner's task, which is about to wait, into its scope's list. */
void hafti_io_scope_list(haft_io_scope_t *scope, hafti_io_runner_t *runner);
void hafti_io_scope_unlist(haft_io_scope_t *scope, hafti_io_runner_t *runner);
/* In a shared run: a task of this home is made, or has ended, by the worker. */
static inline void hafti_io_scope_count_up_shared(haft_io_scope_t *home,
                                                  const hafti_io_worker_t *worker) {
    if (home->split && home->worker == worker && !home->merged)
        HAFTI_IO_COUNT(home->live_here);
    else
        __atomic_fetch_add(&home->live, 1, __ATOMIC_RELAXED);
}
void hafti_io_scope_count_down_shared(haft_io_scope_t *home, hafti_io_worker_t *worker);
/* No more is counted or ends apart: before somebody waits for `live` to be 0; by its worker's thread. */
void hafti_io_scope_merge(haft_io_scope_t *scope);
/* How many tasks of this home have not ended, or had not some time ago. */
static inline size_t hafti_io_scope_live(const haft_io_scope_t *scope) {
    size_t live = __atomic_load_n(&scope->live, __ATOMIC_RELAXED);
    if (live > HAFTI_IO_UNMERGED / 2)
        live += __atomic_load_n(&scope->live_here, __ATOMIC_RELAXED) - HAFTI_IO_UNMERGED;
    return live;
}
/* A record of `ended_here` was given up by another worker. */
void hafti_io_scope_return(haft_io_scope_t *home, haft_io_task_t *task);
/* Calls hafti_io_task_forget for these, by the home's worker. */
void hafti_io_scope_take_returned(haft_io_scope_t *home);

void hafti_io_scope_start(haft_io_scope_t *scope, hafti_io_worker_t *worker, haft_io_scope_t *outer,
                          const haft_io_scope_options_t *options, bool opener_moves);
/* Waits for the tasks, except in a child of fork, and takes the scope out of its outer one. True: there were tasks to
   wait for. */
bool hafti_io_scope_finish(haft_io_scope_t *scope);
static inline const char *hafti_io_scope_name(const haft_io_scope_t *scope) {
    return scope->name != NULL ? scope->name : "";
}
/* The scope after `at` on a walk from `top`, with or without those below `at`; NULL: there is none. The locks of the
   scopes on the way down are taken by this function, and that of `top` is by the caller; no stack is, however deep
   they are. `*depth`, of `at`, becomes that of the next. */
haft_io_scope_t *hafti_io_next_scope(haft_io_scope_t *at, const haft_io_scope_t *top, bool down,
                                     unsigned *depth);
/* ---- Deadlines of blocks (deadlines.c) ---- */

/* HAFT_IO_FOREVER: there is none. */
int64_t hafti_io_earliest_deadline(const hafti_io_limit_t *limits);
/* For a scope that the task opens, and when it has left that. */
hafti_io_limit_t *hafti_io_put_deadlines_aside(hafti_io_runner_t *runner);
void hafti_io_take_deadlines_up(hafti_io_runner_t *runner, hafti_io_limit_t *limits);

void hafti_io_scope_cancel(haft_io_scope_t *scope, int code);
/* When the deadlines are set that the scope has to heed; on its owner's thread. */
void hafti_io_scope_set_timer(haft_io_scope_t *scope);
/* The task is of the scope, or has opened it. */
void hafti_io_scope_fail(haft_io_scope_t *scope, int code, const char *message,
                         const haft_io_task_t *task);

/* ---- The scheduler (scheduler.c) ---- */

enum { HAFTI_IO_TASKS_BETWEEN_POLLS = 64 }; /* at most, so that neither I/O nor timers starve */

/* One set of operations that wait: epoll, io_uring, simulated. */
typedef struct hafti_io_backend {
    const char *name;
    int (*start)(hafti_io_worker_t *worker); /* 0 or a negative error number */
    void (*stop)(hafti_io_worker_t *worker);
    /* Called on the stack of a task, which waits in it. */
    ssize_t (*operate)(hafti_io_runner_t *runner, hafti_io_operation_t *operation);
    /* The same in a run that is alone, for what is done most often: frames less on the stack of a task that waits,
       from which its processor returns when it goes on. NULL: by `operate`. */
    ssize_t (*read_lent)(hafti_io_runner_t *runner, int descriptor, const void **bytes);
    ssize_t (*write)(hafti_io_runner_t *runner, int descriptor, const void *buffer, size_t size);
    /* Or by the two, one after the other: hafti_io_exchange_rest. */
    ssize_t (*exchange)(hafti_io_runner_t *runner, HAFT_PAYLOAD(haft_io_exchange) * payload);
    int (*close)(hafti_io_worker_t *worker, int descriptor);
    /* The descriptor, which was waited on by the worker, is about to be closed; any thread. NULL: nothing. */
    void (*forget)(hafti_io_worker_t *worker, int descriptor);
    /* haft_io_poll, on the stack of a task as `operate`. */
    int (*poll_several)(hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                        int64_t deadline, unsigned turn);
    /* Wins the cells of what has happened; waits for that at most so long (negative: for ever). */
    void (*poll)(hafti_io_worker_t *worker, int64_t nanoseconds);
    void (*interrupt)(hafti_io_worker_t *worker); /* ends a poll; any thread */
} hafti_io_backend_t;

/* In a child of fork (child.c): the run's workers do not touch what the kernel keeps for the parent. */
void hafti_io_become_child(hafti_io_crew_t *crew);
HAFTI_IO_COLD __attribute__((noreturn)) void hafti_io_waits_in_child(const haft_io_task_t *task);

/* What replaces chance and time in a run for tests (simulation.c). */
typedef struct hafti_io_simulated {
    uint64_t seed;
    uint64_t random; /* the state of the generator */
    int64_t now;
    bool short_counts;
    bool network, files;
    unsigned faults_one_in;
    unsigned switches_one_in;
} hafti_io_simulated_t;

enum { HAFTI_IO_MOST_KEPT = 256 }; /* blocks of lent memory */

/* What a worker that searches remembers of another's queue (stealing.c). */
typedef struct hafti_io_seen {
    uint16_t end;   /* where the queue ended when this look for it began */
    uint16_t looks; /* since then, without all that was there being gone */
    uint16_t steps; /* of its owner's until the last look: tasks put, and started */
} hafti_io_seen_t;

/* What every turn of the loop and every operation touches stands first, on few lines of the processor's caches: where
   little is done between two polls, the kernel has used those up meanwhile. */
struct hafti_io_worker {
    hafti_io_link_t
        ready; /* the queue of tasks that can run here, and of new ones that nobody may steal */
    hafti_io_link_t polled; /* the queue of those that the last poll has woken */
    hafti_io_link_t *woken; /* where what can go on goes: `ready`; `polled` while the loop polls */
    unsigned foreseen;      /* the first of `polled`, as many as their memory was asked for */
    bool shared;            /* the run is */
    /* It is not, nor is this a child of fork, nor is a close put off: operations and waits may take short ways. */
    bool plain;
    bool favours;        /* the first of `ready` goes before tasks that have not started */
    bool searching;      /* counted as such in the crew's parking */
    unsigned operations; /* of the running task's turn, by their weight */
    unsigned resumed;    /* tasks; queues take turns by it; any thread reads */
    unsigned look_at;    /* when so many were resumed the loop looks at more than `ready` */
    unsigned index;      /* in the crew */
    /* A line ends. */
    hafti_io_crew_t *crew;
    const hafti_io_backend_t *backend;
    void *backend_state;
    hafti_io_simulated_t *simulated; /* NULL: a real run */
    hafti_io_runner_t
        *running;        /* NULL: between tasks; read by the watchdog, also in a signal handler */
    int *error;          /* the thread's errno */
    size_t waiting;      /* tasks that wait for the back end */
    unsigned rounds;     /* of the loop: polls, done or not; any thread reads */
    unsigned lent_count; /* of `lent` */
    /* A line ends. */
    haft_io_task_t *inbox; /* tasks readied by other threads, last first; any thread */
    int sleeping;          /* in a poll that may block; any thread */
    int posting;           /* threads that put something into the inbox right now */
    int64_t clock;    /* when it polled last; while it has no timer, some milliseconds before */
    bool forked;      /* this is a child of the process that it was made in */
    bool times_polls; /* for counters.polling */
    uint16_t
        turn_begins;    /* with so many `operations`: not 0 where a simulation may switch at each */
    unsigned polled_at; /* `resumed` at the last poll */
    unsigned unlooked;  /* so many are resumed before the first look; in a simulation 0 */
    hafti_io_timers_t timers;                  /* the first words of which belong to the line */
    haft_io_counters_t counters;               /* any thread reads */
    hafti_io_lent_t *lent[HAFTI_IO_MOST_KEPT]; /* that its next reads may have */
    unsigned put_off;  /* closes that are left to who uses the descriptor; in a run that is alone */
    unsigned searches; /* so often it looks for work before it sleeps */
    int64_t slept_at;  /* when it slept last */
    unsigned unsearched,
        unsearched_next; /* so often it sleeps without a search, now and the next time */
    int epoll, waker;    /* or -1: see epoll.c, waker.c */
    hafti_io_runner_t *idle;
    unsigned idle_count;
    unsigned free_count; /* counted in a shared run only */
    haft_io_task_t *free;
    hafti_io_runner_t *free_runners; /* records without a fiber */
    hafti_io_records_t tasks, runners;
    hafti_io_block_t *blocks; /* of both */
    uint64_t fair_at;         /* the count of tasks when a waiter was not favoured */
    int dives_to; /* the newest offered go first, down to this number; negative: the oldest do */
    pthread_t thread;
    hafti_io_seen_t seen[HAFTI_IO_MOST_THREADS]; /* by index in the crew */
    unsigned spread;        /* tasks that were spread to it, and have not ended; any thread */
    hafti_io_queue_t queue; /* of new tasks, in a shared run; any thread takes */
};
_Static_assert(offsetof(hafti_io_worker_t, crew) == HAFTI_IO_LINE &&
                   offsetof(hafti_io_worker_t, inbox) == 2 * HAFTI_IO_LINE &&
                   offsetof(hafti_io_worker_t, timers.due) < 3 * HAFTI_IO_LINE,
               "lines end where it is said");

/* What the workers of a run share; the first is that of the thread which has called haft_io_run. */
struct hafti_io_crew {
    hafti_io_worker_t *workers[HAFTI_IO_MOST_THREADS];
    unsigned count; /* any thread reads */
    bool ended;     /* the last task has; any thread */
    hafti_io_parking_t parking;
    haft_io_scope_t root;
    haft_io_task_t *main; /* until it has ended; if `root` is split, by the first worker's thread */
    struct hafti_io_descriptors *descriptors;
    haft_fiber_options_t stacks; /* of tasks */
    int blocking_threads;
    bool times_polls;
    struct hafti_io_pool *pool; /* under the lock until it is there */
    uint32_t lock;              /* for what follows */
    haft_io_task_t **overflow;  /* a ring of new tasks that a queue had no room for */
    size_t overflow_first, overflow_count, overflow_size; /* the count is read by any thread */
    haft_io_task_t *spare; /* records of tasks that a worker had too many of */
    uint32_t look_lock;    /* of who walks the stacks of tasks that are suspended */
    bool looked_at;        /* somebody does: who resumes a task waits for the lock; any thread */
    bool dump_asked;       /* by a signal; any thread */
    uint32_t handed_over;  /* descriptors to close, in a run that is alone; any thread */
    unsigned closers;      /* threads that close a descriptor for this run; any thread */
    hafti_io_crew_t *next_run;
    uint64_t number; /* greater than those of the runs that had begun before */
    int dump_signal;
    hafti_io_crew_t *next_dumping; /* of those with a signal */
    struct hafti_io_watchdog *watchdog;
};

/* A run with this back end and, if it is not NULL, this simulation (run.c). */
int hafti_io_run_with(void *(*main)(void *), void *argument, const haft_io_run_options_t *options,
                      hafti_io_simulated_t *simulated);
int64_t hafti_io_worker_now(const hafti_io_worker_t *worker);
/* Reads the time into `clock`. */
void hafti_io_set_clock(hafti_io_worker_t *worker);

/* The calling thread's worker, until its loop has ended (NULL). */
void hafti_io_set_worker(hafti_io_worker_t *worker);
/* Runs tasks until the run ends. */
void hafti_io_loop(hafti_io_worker_t *worker);
void hafti_io_free_runners(hafti_io_worker_t *worker);
/* Signals are for the program's own threads, but a fault is for the thread that makes it. 0, or an error (threads.c). */
int hafti_io_start_thread(pthread_t *thread, void *(*function)(void *), void *argument);
/* In a child of fork, of which the caller is the only thread. */
void hafti_io_become_programs_thread(void);
/* The last task has ended: all workers leave their loops. */
void hafti_io_end_run(hafti_io_crew_t *crew);
/* Ends the worker's poll, if it is in one that may block, or the next; any thread. */
void hafti_io_rouse(hafti_io_worker_t *worker);

/* ---- Tasks that move (moving.c) ---- */

/* For a task that moves, is suspended, and can go on; by its worker. Any worker may take it. */
void hafti_io_offer_started(hafti_io_worker_t *worker, haft_io_task_t *task);
/* It is this worker's from now on, which has taken it. */
void hafti_io_settle(hafti_io_worker_t *worker, haft_io_task_t *task);
/* Before it goes on. */
void hafti_io_set_timers(hafti_io_worker_t *worker, const haft_io_task_t *task);

/* Around the wait of a task that the back end has something to do with. */
static inline void hafti_io_count_in(haft_io_task_t *task) {
    task->worker->waiting++;
    task->runner->counted = true;
}
static inline void hafti_io_count_out(haft_io_task_t *task) {
    if (task->runner->counted)
        task->worker->waiting--;
    task->runner->counted = false;
}

/* ---- Tasks that any thread may take, in a shared run (stealing.c) ---- */

/* Others may take it, new or started; wakes one of them if all sleep. */
void hafti_io_offer(hafti_io_worker_t *worker, haft_io_task_t *task);
/* For a new task that lives long and mostly waits, as one that serves a connection. */
void hafti_io_spread(hafti_io_worker_t *worker, haft_io_task_t *task);
/* Somebody waits for the new task: if it is in the worker's queue, the newest of that go first until it is taken. */
void hafti_io_dive_to(hafti_io_worker_t *worker, const haft_io_task_t *task);
/* The next that can be started: of the worker's own, or what had no room; NULL: none. */
haft_io_task_t *hafti_io_take_offered(hafti_io_worker_t *worker);
/* Looks for work everywhere for a while. NULL: there is none, or mail has come. */
haft_io_task_t *hafti_io_search(hafti_io_worker_t *worker);
/* Says that the worker sleeps. False: there is something to do. */
bool hafti_io_falls_asleep(hafti_io_worker_t *worker);
void hafti_io_rises(hafti_io_worker_t *worker);
/* It has work, and does not search any more. */
void hafti_io_stops_searching(hafti_io_worker_t *worker);

/* The calling thread's. Looked up afresh by every call: a task may be on another thread than before. */
extern __thread __attribute__((tls_model("initial-exec"), visibility("hidden")))
hafti_io_worker_t *hafti_io_this_worker;
#if defined(__x86_64__)
static inline hafti_io_worker_t *hafti_io_worker(void) {
    hafti_io_worker_t *worker;
    uintptr_t place;
    __asm__("movq hafti_io_this_worker@gottpoff(%%rip), %0" : "=r"(place));
    __asm__ volatile("movq %%fs:0(%1), %0" : "=r"(worker) : "r"(place));
    return worker;
}
#else
hafti_io_worker_t *hafti_io_worker(void);
#endif
/* The task on whose stack the caller is, or NULL. It is haft_io_self() but for what the scheduler's clauses do, where
   that is NULL; and takes a third of the time. */
static inline haft_io_task_t *hafti_io_this_task(void) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    const hafti_io_runner_t *runner = worker != NULL ? worker->running : NULL;
    return runner != NULL ? runner->task : NULL;
}
/* Whether the task, or NULL, is in a child of fork, where it cannot wait. */
static inline bool hafti_io_is_in_child(const haft_io_task_t *task) {
    return task != NULL && task->worker->forked;
}
/*
 * The turn of a task: what it may do without a wait before the others of its thread go first. Every operation that may
 * wait, or is asked again and again for what others have to do, counts before it has done anything, as much as it is
 * likely to take. What lets others go on (unlock, release, signal) never waits for a turn: it is called where nothing
 * may wait.
 */
enum { HAFTI_IO_TURN = 256, HAFTI_IO_LIGHT = 1, HAFTI_IO_OF_SYSTEM = 4 };
/* False: the turn is over. */
static inline bool hafti_io_is_in_turn(hafti_io_worker_t *worker, unsigned weight) {
    return HAFTI_IO_LIKELY((worker->operations += weight) <= HAFTI_IO_TURN);
}
/* Lets the others go first, if the caller is a task. False: a cancel has reached it, as it does only if `kind` says
   so. */
HAFTI_IO_COLD bool hafti_io_goes_on_after_others(enum hafti_io_wait_kind kind);
/* The two, for an operation of the library alone, on any thread. */
static inline bool hafti_io_has_its_turn(enum hafti_io_wait_kind kind) {
    hafti_io_worker_t *worker = hafti_io_worker();
    return HAFTI_IO_LIKELY(worker == NULL || hafti_io_is_in_turn(worker, HAFTI_IO_LIGHT)) ||
           hafti_io_goes_on_after_others(kind);
}
/* Before anything is changed for a task that is about to wait: does not return there. */
static inline void hafti_io_check_may_wait(const haft_io_task_t *task) {
    if (HAFTI_IO_UNLIKELY(hafti_io_is_in_child(task)))
        hafti_io_waits_in_child(task);
}
/* Puts a new task where it can be started. */
static inline void hafti_io_enqueue_new(hafti_io_worker_t *worker, haft_io_task_t *task);
/* Lets the task run again; any thread. */
static inline void hafti_io_ready(haft_io_task_t *task);
/* The same where the caller's thread is another than its worker's, or the task moves. */
HAFTI_IO_COLD void hafti_io_ready_elsewhere(haft_io_task_t *task);
/* Puts it into the worker's inbox; any thread. */
void hafti_io_post(hafti_io_worker_t *worker, haft_io_task_t *task);
/* Puts it at the end of the queue of its worker, which is the caller's. */
void hafti_io_enqueue(hafti_io_worker_t *worker, haft_io_task_t *task);
/* False: others have been passed over too often. */
bool hafti_io_may_favour(const hafti_io_worker_t *worker);
/* Moves a task that is in its worker's queue to the front, unless others have been passed over too often. */
void hafti_io_favour(haft_io_task_t *task);
/* The same for a task that may not have started, for who waits for it; of any worker. In a run that is alone
   the waiter is in the queue from now on, and goes on there, if it is READY by then. */
void hafti_io_favour_new(hafti_io_worker_t *worker, haft_io_task_t *task, haft_io_task_t *waiter);
/* A new task for a runner that has nothing to do; NULL: it is to give way. */
haft_io_task_t *hafti_io_take_new(hafti_io_worker_t *worker);

/* The task that runs may be woken by itself, when it looks at what the kernel has done before it waits: it is
   READY then although its fiber is not suspended yet, and nobody else may take it. */
static inline void hafti_io_let_go_on(hafti_io_worker_t *worker, haft_io_task_t *task) {
    hafti_io_set_state(task, HAFTI_IO_READY);
    if (HAFTI_IO_LIKELY(!hafti_io_linked(&task->queued))) /* else it kept a place */
        hafti_io_append(worker->woken, &task->queued);
}
/* It has a worker, which is the caller's, and stays there. */
static inline bool hafti_io_is_of_this_thread(const haft_io_task_t *task) {
    return task != NULL && task->worker == hafti_io_worker() && !task->moves;
}
/* What is rare leaves first, here and below: gcc takes what follows an `else` that calls a cold function for cold. */
static inline void hafti_io_ready(haft_io_task_t *task) {
    if (HAFTI_IO_UNLIKELY(!hafti_io_is_of_this_thread(task))) {
        hafti_io_ready_elsewhere(task);
        return;
    }
    hafti_io_let_go_on(task->worker, task);
}

static inline void hafti_io_let_waiter_go_on(hafti_io_cell_t *cell, haft_io_task_t *task) {
    if (HAFTI_IO_UNLIKELY(task == NULL)) {
        hafti_io_wake_thread(cell);
        return;
    }
    hafti_io_ready(task);
}
static inline bool hafti_io_cell_win(hafti_io_cell_t *cell, uint32_t outcome) {
    haft_io_task_t *task = cell->task;
    if (!hafti_io_cell_swap(cell, outcome))
        return false;
    hafti_io_let_waiter_go_on(cell, task);
    return true;
}
static inline void hafti_io_cell_finish(hafti_io_cell_t *cell, uint32_t outcome) {
    haft_io_task_t *task = cell->task;
    __atomic_store_n(&cell->word, outcome, __ATOMIC_RELEASE);
    hafti_io_let_waiter_go_on(cell, task);
}

static inline void hafti_io_enqueue_new(hafti_io_worker_t *worker, haft_io_task_t *task) {
    if (HAFTI_IO_LIKELY(!worker->shared))
        hafti_io_enqueue(worker, task);
    else
        hafti_io_offer(worker, task);
}

/* ---- Seeing inside (dump.c, watchdog.c) ---- */

/* Waits until nobody walks stacks. */
HAFTI_IO_COLD void hafti_io_await_look(hafti_io_crew_t *crew);
/* Writes the dump that a signal has asked for. */
HAFTI_IO_COLD void hafti_io_dump_as_asked(hafti_io_crew_t *crew);
/* From now on the signal asks for a dump, until the second call. 0, or -EINVAL. */
int hafti_io_dump_on_signal(hafti_io_crew_t *crew, int signal);
void hafti_io_dump_no_more(hafti_io_crew_t *crew);
/* In a child of fork. */
void hafti_io_forget_dumps(void);
/* False: no memory, or no thread. */
bool hafti_io_watchdog_start(hafti_io_crew_t *crew, int64_t limit);
void hafti_io_watchdog_stop(hafti_io_crew_t *crew);
/* Lets it interrupt the calling thread, a worker's. */
void hafti_io_watchdog_admit(const hafti_io_crew_t *crew);

/* ---- Operations (operations.c) ---- */

enum hafti_io_kind {
    HAFTI_IO_READ,
    HAFTI_IO_WRITE,
    HAFTI_IO_RECEIVE,
    HAFTI_IO_READ_LENT,  /* `buffer` is where to tell which memory it is */
    HAFTI_IO_READ_PARTS, /* `buffer` is an array of `size` parts */
    HAFTI_IO_WRITE_PARTS,
    HAFTI_IO_RECEIVE_MESSAGE, /* `buffer` is a struct msghdr */
    HAFTI_IO_SEND_MESSAGE,
    HAFTI_IO_SEND, /* the last that transfers bytes */
    HAFTI_IO_ACCEPT,
    HAFTI_IO_CONNECT,
    HAFTI_IO_POLL
};

struct hafti_io_operation {
    enum hafti_io_kind kind;
    int descriptor;
    int flags;    /* POLL: events */
    void *buffer; /* CONNECT: a bool, whether it has begun */
    size_t size;
    struct sockaddr *address;
    socklen_t *address_size;
};

/* Those of recv(2) and send(2). */
static inline int hafti_io_flags_of(const hafti_io_operation_t *operation) {
    enum hafti_io_kind kind = operation->kind;
    return kind == HAFTI_IO_RECEIVE || kind == HAFTI_IO_SEND || kind == HAFTI_IO_RECEIVE_MESSAGE ||
                   kind == HAFTI_IO_SEND_MESSAGE
               ? operation->flags
               : 0;
}
static inline bool hafti_io_must_not_wait(const hafti_io_operation_t *operation) {
    return HAFTI_IO_UNLIKELY((hafti_io_flags_of(operation) & MSG_DONTWAIT) != 0);
}

/* What is handled in place on a task's stack; its state is the runner. */
extern const haft_handler_t *const hafti_io_operations;

/* Of what is ready, but has no call that never waits. (No error number is so large.) */
enum { HAFTI_IO_MAY_WAIT = -4096 };
/* Makes the system call, which never blocks. -EAGAIN: the operation has to wait; HAFTI_IO_MAY_WAIT: the pool is to do it. */
ssize_t hafti_io_attempt(hafti_io_operation_t *operation);
/* The same for what has had -EAGAIN though the socket may have been shut down: where it was, there is an answer for who
   waits (0; of a listener -EINVAL), which the system does not give to who does not (of datagrams, and Unix listeners). */
ssize_t hafti_io_attempt_at_end(hafti_io_operation_t *operation);
/* Makes the call on a thread of the pool, for a moment. HAFTI_IO_MAY_WAIT: in vain, since another has been there before; it
   is to be tried again. */
ssize_t hafti_io_operate_in_pool(hafti_io_runner_t *runner, hafti_io_operation_t *operation);
/* On a task: haft_io_call_briefly by a thread of the pool; elsewhere the function is called here. 0, or why it was not. */
int hafti_io_call_for_a_moment(void (*function)(void *), void *argument);
/* Makes the system call and waits for it on this thread. */
ssize_t hafti_io_operate_blocking(hafti_io_operation_t *operation);
/* The clause of haft_io_exchange when so many bytes have been sent. */
ssize_t hafti_io_exchange_rest(hafti_io_runner_t *runner, HAFT_PAYLOAD(haft_io_exchange) * payload,
                               size_t sent);
/* The descriptor is closed also if that was interrupted. */
int hafti_io_close_file(int descriptor);
/* The events of poll(2) after which to try again. */
static inline short hafti_io_events_of(const hafti_io_operation_t *operation) {
    const unsigned outward = 1U << HAFTI_IO_WRITE | 1U << HAFTI_IO_WRITE_PARTS |
                             1U << HAFTI_IO_SEND | 1U << HAFTI_IO_SEND_MESSAGE |
                             1U << HAFTI_IO_CONNECT;
    if (operation->kind == HAFTI_IO_POLL)
        return (short)operation->flags;
    return (outward >> operation->kind & 1) != 0 ? POLLOUT : POLLIN;
}
const char *hafti_io_kind_name(enum hafti_io_kind kind);

int64_t hafti_io_clock(void);

/* ---- Memory that is lent (lending.c) ---- */

struct hafti_io_lent {
    hafti_io_lent_t *next;
    int result : 31; /* of what has put something there */
    bool copied : 1; /* it has no room but for that, and is never lent */
    unsigned from;   /* where that begins; what nobody has says so here */
    char bytes[];
};

/* By the thread of the worker, or of none. NULL: no memory. Who hands it out sets `from`. It may be given back by any
   thread. */
hafti_io_lent_t *hafti_io_lend_block(hafti_io_worker_t *worker);
void hafti_io_take_back(hafti_io_lent_t *block);
/* That of memory which is to be given back; nobody else may have done so. */
hafti_io_lent_t *hafti_io_block_of(const void *bytes);
/* What a worker keeps; nobody is its thread any more. */
void hafti_io_free_lent(hafti_io_worker_t *worker);
/* An operation of this kind, by a read with the given function. */
ssize_t hafti_io_read_into_lent(const hafti_io_operation_t *operation,
                                ssize_t (*read)(hafti_io_operation_t *operation));
/* By the back end's `operate`, where its `read_lent` has no shorter way. */
ssize_t hafti_io_read_lent_generally(hafti_io_runner_t *runner, int descriptor, const void **bytes);

/* ---- Synchronisation (waiting.c) ---- */

/* Who waits in a list of an object; in the waiter's frame. The object's lock guards all but the cell. */
typedef struct haft_io_place {
    struct haft_io_place *next, *previous;
    haft_io_waiting_t *list; /* NULL: in none */
    hafti_io_cell_t *cell;
    uint32_t outcome; /* with which its cell is won */
    bool closed;      /* it was won because the channel was closed */
    void *value;      /* what is sent, or where to receive to; of a promise */
} hafti_io_place_t;

/* A channel as one of several that are waited for (channel.c): its lock; under that, what can be done at once (-EAGAIN:
   nothing), after which `*other` is to be let go; a place to wait in. `value` is sent, or is where what comes goes. */
uint32_t *hafti_io_channel_lock(haft_io_channel_t *channel);
int hafti_io_channel_do_now(haft_io_channel_t *channel, bool sends, void *value,
                            hafti_io_place_t **other);
void hafti_io_channel_take_place(haft_io_channel_t *channel, bool sends, void *value,
                                 hafti_io_place_t *place);
/* A signalfd, or a negative error number (processes.c). */
int hafti_io_open_signals(const sigset_t *signals);

/* The lock of an object, for a few instructions. */
HAFTI_IO_COLD void hafti_io_guard_contended(uint32_t *lock);
HAFTI_IO_COLD void hafti_io_wake_guarded(uint32_t *lock);
static inline void hafti_io_guard(uint32_t *lock) {
    if (__libc_single_threaded) {
        *lock = 1;
        return;
    }
    uint32_t is_free = 0;
    if (HAFTI_IO_UNLIKELY(!__atomic_compare_exchange_n(lock, &is_free, 1, false, __ATOMIC_ACQUIRE,
                                                       __ATOMIC_RELAXED)))
        hafti_io_guard_contended(lock);
}
/* A load and a store take a third of an exchange; what comes between is in waiting.c. */
static inline void hafti_io_unguard(uint32_t *lock) {
    bool is_awaited = __atomic_load_n(lock, __ATOMIC_RELAXED) == 2;
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
    if (HAFTI_IO_UNLIKELY(is_awaited))
        hafti_io_wake_guarded(lock);
}
static inline void hafti_io_lock_scope(haft_io_scope_t *scope) {
    if (HAFTI_IO_UNLIKELY(scope->shared))
        hafti_io_guard(&scope->lock);
}
static inline void hafti_io_unlock_scope(haft_io_scope_t *scope) {
    if (HAFTI_IO_UNLIKELY(scope->shared))
        hafti_io_unguard(&scope->lock);
}
/* The cell of who is about to wait, and has the lock: gives it back, and reports, in a child of fork. So nothing has
   been changed yet. */
static inline hafti_io_cell_t hafti_io_cell_to_wait(uint32_t *lock) {
    haft_io_task_t *task = hafti_io_this_task();
    if (HAFTI_IO_UNLIKELY(hafti_io_is_in_child(task))) {
        hafti_io_unguard(lock);
        hafti_io_waits_in_child(task);
    }
    return (hafti_io_cell_t){HAFTI_IO_WAITING, task};
}
/* For what another thread does in a few instructions: gives way to it once that takes longer. */
void hafti_io_relax(unsigned *turns);
/* Field by field: the rest is set by who puts it into a list. */
static inline void hafti_io_make_place(hafti_io_place_t *place, hafti_io_cell_t *cell,
                                       uint32_t outcome) {
    place->cell = cell;
    place->outcome = outcome;
    place->closed = false;
}
static inline void hafti_io_take_place(haft_io_waiting_t *list, hafti_io_place_t *place) {
    place->list = list;
    place->next = NULL;
    place->previous = list->last;
    *(list->last != NULL ? &list->last->next : &list->first) = place;
    list->last = place;
}
void hafti_io_take_first_place(haft_io_waiting_t *list, hafti_io_place_t *place);
void hafti_io_leave_place(hafti_io_place_t *place);
/* The same for the first of a list that is not empty. */
static inline hafti_io_place_t *hafti_io_first_leaves(haft_io_waiting_t *list) {
    hafti_io_place_t *place = list->first;
    list->first = place->next;
    *(place->next != NULL ? &place->next->previous : &list->last) = NULL;
    place->list = NULL;
    return place;
}
/*
 * Who is woken may end the object, and so may who wakes him: neither touches it afterwards. So the cells of those
 * who are to go on are won under the lock, and they are let go without it.
 */
/* The first whose cell can be won; NULL: there is none. */
static inline hafti_io_place_t *hafti_io_claim_first(haft_io_waiting_t *list) {
    while (list->first != NULL) {
        hafti_io_place_t *place = hafti_io_first_leaves(list);
        if (HAFTI_IO_LIKELY(hafti_io_cell_claim(place->cell)))
            return place;
    }
    return NULL;
}
static inline void hafti_io_let_go(const hafti_io_place_t *place) {
    if (place != NULL)
        hafti_io_cell_finish(place->cell, place->outcome);
}
/* All, by their `next`. */
hafti_io_place_t *hafti_io_claim_all(haft_io_waiting_t *list);
void hafti_io_let_all_go(hafti_io_place_t *places);
/* Waits in the list; called under the lock, returns without it. 0, and in `*given`, if that is not NULL, the value that
   the place was given by who let it go; -ETIMEDOUT or -ECANCELED. */
int hafti_io_wait_in(uint32_t *lock, haft_io_waiting_t *list, int64_t deadline,
                     enum hafti_io_wait_kind kind, const char *waits_for, void **given);
int hafti_io_code_of(uint32_t outcome);
/* Waits for the event of a gate, and clears it; to the end. */
void hafti_io_wait_turn(haft_io_task_t *task, haft_io_event_t *event);

/* ---- Blocking work (pool.c) ---- */

/* Of a cancelled task only what it waits for TO_THE_END is called. */
int hafti_io_pool_call(hafti_io_runner_t *runner, void (*function)(void *), void *argument,
                       void (*left)(void *), enum hafti_io_wait_kind kind);
void hafti_io_pool_stop(hafti_io_crew_t *crew);

/* ---- FIFOs (fifos.c) ---- */

/* Whether it is a FIFO that is to be opened for one direction, and waits for the other end. */
bool hafti_io_waits_for_other_end(int directory, const char *path, int flags);

/* ---- Who waits on which descriptor (descriptors.c) ---- */

enum hafti_io_direction { HAFTI_IO_INWARD, HAFTI_IO_OUTWARD };
typedef struct hafti_io_descriptor hafti_io_descriptor_t;

/* What who wakes it needs stands first. */
typedef struct hafti_io_waiter {
    hafti_io_cell_t *cell;
    uint32_t life;            /* of the number, when it began to wait */
    bool transfers;           /* bytes of a stream, when they or room for them have come */
    bool asks;                /* the kernel itself, whose answer ends the wait */
    bool closed;              /* the descriptor was, before anything else came */
    hafti_io_link_t links[2]; /* by direction */
    hafti_io_descriptor_t *descriptor;
} hafti_io_waiter_t;

enum hafti_io_nature { HAFTI_IO_UNKNOWN, HAFTI_IO_SOCKET, HAFTI_IO_FILE, HAFTI_IO_STREAM };
/* What epoll's events and the last read say of the bytes that can be read. */
enum hafti_io_left {
    HAFTI_IO_MAYBE,        /* nothing */
    HAFTI_IO_UNLESS_FEWER, /* a read of fewer than were asked for takes all */
    HAFTI_IO_NONE          /* such a read was the last, and no event has come since */
};

/* In a shared run all of it is any thread's. */
struct hafti_io_descriptor {
    union {
        uint32_t lock; /* of the waiters; taken in a shared run */
        uint32_t next; /* `handed_over`: see closing.c; in a run that is alone */
    };
    uint32_t uses;       /* by operations, see descriptors.c; in a shared run all; and CLOSING */
    uint32_t life;       /* counts how often the number was closed */
    uint8_t nature;      /* a hafti_io_nature */
    bool waited_on;      /* some task has, since the number was closed last; any thread reads */
    bool handed_over;    /* by another thread, to be closed; any thread */
    uint8_t left;        /* a hafti_io_left, of the worker that alone has registered it */
    bool ended;          /* an edge has told of the end of what comes */
    uint64_t registered; /* by workers, each with its epoll: a bit for the index */
    void *arrivals;      /* what io_uring gives of it by itself, in a run that is alone; or NULL */
    hafti_io_link_t waiters[2];
};

/* The descriptor was closed since the waiter was enlisted, maybe after it was woken: the number may be
   another file's. */
static inline bool hafti_io_was_closed(const hafti_io_waiter_t *waiter) {
    return waiter->closed ||
           (waiter->descriptor != NULL &&
            __atomic_load_n(&waiter->descriptor->life, __ATOMIC_RELAXED) != waiter->life);
}

typedef struct hafti_io_descriptors hafti_io_descriptors_t;

/* NULL: no memory. */
hafti_io_descriptors_t *hafti_io_descriptors_new(bool shared);
/* NULL: no memory, or, unless it is to be made, nothing was known of it. Stays where it is. */
hafti_io_descriptor_t *hafti_io_descriptor(hafti_io_descriptors_t *descriptors, int descriptor,
                                           bool make);
/* The same of what is known already; NULL: nothing. */
enum { HAFTI_IO_BLOCK_BITS = 8, HAFTI_IO_MIDDLE_BITS = 11, HAFTI_IO_TOP = 1 << 11 };
typedef struct hafti_io_descriptor_block {
    hafti_io_descriptor_t entries[1 << HAFTI_IO_BLOCK_BITS];
} hafti_io_descriptor_block_t;
struct hafti_io_descriptors {
    bool shared;
    hafti_io_descriptor_block_t **top[HAFTI_IO_TOP];
};
static inline hafti_io_descriptor_t *hafti_io_known_descriptor(hafti_io_descriptors_t *table,
                                                               int descriptor) {
    unsigned number = (unsigned)descriptor, block = number >> HAFTI_IO_BLOCK_BITS;
    unsigned top = block >> HAFTI_IO_MIDDLE_BITS;
    if (HAFTI_IO_UNLIKELY(top >= HAFTI_IO_TOP)) /* also what is below 0 */
        return NULL;
    hafti_io_descriptor_block_t **middle = __atomic_load_n(&table->top[top], __ATOMIC_ACQUIRE);
    if (HAFTI_IO_UNLIKELY(middle == NULL))
        return NULL;
    hafti_io_descriptor_block_t *entries =
        __atomic_load_n(&middle[block % (1U << HAFTI_IO_MIDDLE_BITS)], __ATOMIC_ACQUIRE);
    return HAFTI_IO_LIKELY(entries != NULL)
               ? &entries->entries[number % (1U << HAFTI_IO_BLOCK_BITS)]
               : NULL;
}
/* Why there is no entry where one was to be made: -ENOMEM, or -EBADF for what is no descriptor. */
int hafti_io_without_entry(int descriptor);
void hafti_io_descriptors_free(hafti_io_descriptors_t *descriptors);
/* 0; -EBUSY if it transfers bytes, and so does another task, of the same stream in that direction. `asks`: see
   hafti_io_waiter_t. */
int hafti_io_enlist(hafti_io_descriptor_t *descriptor, hafti_io_waiter_t *waiter,
                    hafti_io_cell_t *cell, const hafti_io_operation_t *operation, bool transfers,
                    bool asks);
void hafti_io_delist(hafti_io_waiter_t *waiter);
/* The same two in a run that is alone, where nobody else waits in that direction, for who reads, or has asked the kernel
   to send; of a descriptor that a task has begun to wait on, then or before. */
static inline void hafti_io_enlist_first(hafti_io_descriptor_t *descriptor,
                                         hafti_io_waiter_t *waiter, hafti_io_cell_t *cell,
                                         enum hafti_io_direction direction) {
    *waiter = (hafti_io_waiter_t){.descriptor = descriptor,
                                  .cell = cell,
                                  .life = __atomic_load_n(&descriptor->life, __ATOMIC_RELAXED),
                                  .transfers = direction == HAFTI_IO_INWARD};
    hafti_io_append(&descriptor->waiters[direction], &waiter->links[direction]);
}
static inline void hafti_io_delist_first(hafti_io_waiter_t *waiter,
                                         enum hafti_io_direction direction) {
    if (hafti_io_linked(&waiter->links[direction]))
        hafti_io_unlink(&waiter->links[direction]);
}
/* Each task that waits on a descriptor, once for each, in the order of their numbers; in a shared run under the
   descriptor's lock. */
typedef void hafti_io_visit_t(void *state, int descriptor, const haft_io_task_t *task);
void hafti_io_visit_waiters(hafti_io_descriptors_t *descriptors, hafti_io_visit_t *visit,
                            void *state);
/* Not a socket for messages; also what is no socket. */
bool hafti_io_is_stream(int descriptor);
bool hafti_io_is_tcp(int descriptor);
/* In a run that is alone: whether a task waits on the descriptor. */
bool hafti_io_is_waited_on(hafti_io_descriptors_t *descriptors, int descriptor);

/* An operation that counts itself, or -EBADF: the number is nobody else's while it is under way. */
ssize_t hafti_io_operate_counted(hafti_io_runner_t *runner, hafti_io_operation_t *operation);
/* Ends the waits on the descriptor with -EBADF, and closes it when none of its operations is under way. */
int hafti_io_close_descriptor(hafti_io_worker_t *worker, int descriptor);

/* Whether an operation on it is under way that uses it (descriptors.c): it may have been closed, and a wait that is
   begun now be in vain. Any thread. */
#define HAFTI_IO_RELEASING (UINT32_C(1) << 30)
static inline bool hafti_io_is_used(const hafti_io_descriptor_t *entry) {
    return (__atomic_load_n(&entry->uses, __ATOMIC_RELAXED) & ~HAFTI_IO_RELEASING) != 0;
}

/* ---- Closing for other runs (closing.c) ---- */

/* Between the two, other threads may end waits of its tasks. */
void hafti_io_run_begins(hafti_io_crew_t *crew);
void hafti_io_run_ends(hafti_io_crew_t *crew);
/* In a child of fork, which has no thread of theirs. */
void hafti_io_forget_runs(void);
extern unsigned hafti_io_closing_count; /* see closing.c; any thread */
HAFTI_IO_COLD int hafti_io_await_close(int descriptor);
/* By who has said that he waits, or uses the number in several system calls: whoever closes it from now on sees that,
   and those who have begun before end first. 0; -EBADF: it is about to be closed. */
static inline int hafti_io_let_closes_end(int descriptor) {
    return HAFTI_IO_LIKELY(__atomic_load_n(&hafti_io_closing_count, __ATOMIC_SEQ_CST) == 0)
               ? 0
               : hafti_io_await_close(descriptor);
}
/* Before the kernel is told that a task waits. */
static inline int hafti_io_begin_to_wait_on(hafti_io_descriptor_t *entry, int descriptor) {
    if (HAFTI_IO_UNLIKELY(!__atomic_load_n(&entry->waited_on, __ATOMIC_RELAXED)))
        HAFTI_IO_SHOW(&entry->waited_on, true);
    return hafti_io_let_closes_end(descriptor);
}
/* Ends the waits of the other runs' tasks with -EBADF, and closes the descriptor. The run, which may be NULL, has
   forgotten it. */
int hafti_io_close_elsewhere(const hafti_io_crew_t *crew, int descriptor);
/* By the thread of a run that is alone: closes what others have handed over. */
HAFTI_IO_COLD void hafti_io_take_handed_over(hafti_io_crew_t *crew);

/* Waits until somebody wakes those of its direction. 0, -EBUSY, -ECANCELED, or -EBADF: it was closed. */
int hafti_io_wait_on(hafti_io_descriptor_t *descriptor, const hafti_io_operation_t *operation,
                     haft_io_task_t *task);
/* All, if it was closed; else those who have not asked the kernel themselves. */
void hafti_io_wake(hafti_io_descriptor_t *descriptor, enum hafti_io_direction direction,
                   bool closed, bool shared);
/* Whether somebody who waits transfers bytes in that direction. */
bool hafti_io_transfers(const hafti_io_descriptor_t *descriptor, enum hafti_io_direction direction);

/* ---- How a thread is woken from its back end (waker.c) ---- */

/* An eventfd. A negative error number if there is none. */
int hafti_io_waker_open(void);
void hafti_io_waker_wake(int waker);
/* After it was readable. */
void hafti_io_waker_reset(int waker);

/* ---- Edges (epoll.c) ---- */

/* Of the worker: its epoll and its waker. 0, or an error: then one of them may be open. */
int hafti_io_open_edges(hafti_io_worker_t *worker);
void hafti_io_close_edges(const hafti_io_worker_t *worker);
/*
 * Wait for something to happen to what an operation has just found not to be ready. No edge is missed: the task has
 * tried before it waits, epoll is asked on the same thread afterwards, and an edge that came between stays with epoll
 * until then. A state that nobody waits for (the peer's end, an error in a queue) ends one wait, not each. At the turn
 * 1 the number is taken for another file's than before.
 *
 * HAFTI_IO_MAY_WAIT: epoll does not watch it, so it is a file.
 */
int hafti_io_await_edge(hafti_io_runner_t *runner, hafti_io_descriptor_t *entry,
                        const hafti_io_operation_t *operation, unsigned turn);
int hafti_io_await_edges(hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                         int64_t deadline, unsigned turn);
/* For at most so long (negative: for ever); wins the cells of what has come. */
void hafti_io_take_edges(hafti_io_worker_t *worker, int64_t nanoseconds);
/* As `forget` of hafti_io_backend_t. */
void hafti_io_forget_edges(hafti_io_worker_t *worker, int descriptor);

/* ---- Several descriptors at once (several.c) ---- */

/* Waits, once, for something to happen to one of them, which may be nothing that was asked for. `turn`: so many such
   waits were in vain. 0, -ETIMEDOUT, -ECANCELED, or another error; or how many were closed, which are marked. */
typedef int hafti_io_await_several_t(hafti_io_runner_t *runner, struct pollfd *entries,
                                     size_t count, int64_t deadline, unsigned turn);
/* Asks poll(2), and waits until one of them has what is asked for; or, if `turn` is not 0, does what the effect
   haft_io_poll says. */
int hafti_io_poll_by(hafti_io_await_several_t *await, hafti_io_runner_t *runner,
                     struct pollfd *entries, size_t count, int64_t deadline, unsigned turn);
/* Waits with one cell in the lists of all of them; a descriptor that `find` does not know is left out. */
/* Waits for the cell, unless there was an error; of a poll that is one of several waits (select.c), that is done there. */
int hafti_io_await_poll(hafti_io_runner_t *runner, hafti_io_cell_t *cell, int code,
                        int64_t deadline);
int hafti_io_wait_on_several(hafti_io_descriptor_t *(*find)(hafti_io_worker_t *worker,
                                                            int descriptor),
                             hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                             int64_t deadline);
/* POLLNVAL for one that was closed while it was waited for; how many that are. */
int hafti_io_mark_closed(struct pollfd *entry, const hafti_io_waiter_t *waiter);
/* A descriptor that is used is not closed before the use ends. 0; -EBADF: it is being closed; -ENOMEM. */
int hafti_io_begin_use(hafti_io_worker_t *worker, int descriptor);
void hafti_io_end_use(hafti_io_worker_t *worker, int descriptor);
/* The same for the calling task, to the end of the block that the variable is in, also when that is unwound. */
typedef struct hafti_io_use {
    int descriptor;
    haft_io_task_t *task; /* NULL: it has not begun, or on a thread without tasks */
} hafti_io_use_t;
#define HAFTI_IO_USING __attribute__((cleanup(hafti_io_leave_use)))
int hafti_io_use(hafti_io_use_t *use);
void hafti_io_leave_use(const hafti_io_use_t *use);
/* The operation of the entry, as it concerns the lists of its descriptor. */
hafti_io_operation_t hafti_io_operation_of(const struct pollfd *entry);
/* poll(2), on this thread, until a time of hafti_io_clock(). */
int hafti_io_poll_blocking(struct pollfd *entries, size_t count, int64_t deadline);
/* On this thread, before a further try, after so many in vain: nothing tells there of a change. */
void hafti_io_pause(unsigned turn);
/* So many descriptors take no memory but that of the frame. */
enum { HAFTI_IO_FEW = 8 };

/* ---- Back ends ---- */

extern const hafti_io_backend_t hafti_io_epoll;
extern const hafti_io_backend_t haft_io_simulation;
#ifdef HAFT_IO_URING
extern const hafti_io_backend_t hafti_io_uring;
#endif

/* ---- Simulation (simulation.c) ---- */

/* A number below `bound`, which is not 0. */
uint64_t hafti_io_random(hafti_io_simulated_t *simulated, uint64_t bound);
/* Whether the caller is in a simulation, and the descriptor is of what exists there only. */
bool hafti_io_is_simulated(int descriptor);
/* As hafti_io_is_stream, of such a one. */
bool hafti_io_is_simulated_stream(int descriptor);
int hafti_io_simulated_shutdown(int socket, int how);
/* For a child process: the system's descriptor of an end, whose stream is the system's from now on. It is closed with
   the end. -EOPNOTSUPP for what is no end (simulated_streams.c). */
int hafti_io_become_real(int end);

/* Whether the caller is in a simulation that has a network. What follows is for there, or for such a descriptor
   (simulated_network.c). */
bool hafti_io_network_is_simulated(void);
int hafti_io_network_socket(int domain, int type);
int hafti_io_network_pipe(int ends[2]);
int hafti_io_network_pair(int domain, int type, int ends[2]);
int hafti_io_network_bind(int socket, const struct sockaddr *address, socklen_t size);
int hafti_io_network_listen(int socket, const struct sockaddr *address, socklen_t size,
                            int backlog);
int hafti_io_network_port(int socket);

/* The same for files (simulated_files.c): each lets others go on first, as the pool does. */
bool hafti_io_files_are_simulated(void);
int hafti_io_files_open(const char *path, int flags, mode_t mode);
ssize_t hafti_io_files_transfer_at(int file, void *buffer, size_t size, int64_t offset,
                                   bool writes);
int hafti_io_files_sync(int file);
/* Moves the position of the descriptor, and says where it is. */
int64_t hafti_io_files_seek(int file, int64_t by);
int hafti_io_files_list(const char *path, struct dirent ***entries);
int hafti_io_files_make_directory(const char *path, mode_t mode);
int hafti_io_files_remove(const char *path);
int hafti_io_files_rename(const char *from, const char *to);
int hafti_io_files_status(const char *path, struct stat *status);

/* ---- Mistakes (misuse.c, terminated.c) ---- */

/* From now on std::terminate on a task names it; in programs of C nothing. */
void hafti_io_watch_terminate(void);

/* Tells core's error handler what was done wrong, and to which task. It may leave: the caller has changed
   nothing, and holds no lock. */
HAFTI_IO_COLD __attribute__((noreturn, format(printf, 1, 2))) void
hafti_io_misuse(const char *format, ...);

#endif
