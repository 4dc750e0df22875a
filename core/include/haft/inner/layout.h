/* SPDX-License-Identifier: MIT */
/*
 * The layouts that the inlined hot paths read: effect descriptors, sets of handled effects, the
 * scopes of the handler chain, fibers, threads. Programs use the names of haft.h; the fields here
 * are not part of the interface.
 *
 * The chain of handlers of a thread, innermost first:
 *
 *   hafti_thread_t.current
 *        |
 *        v
 *   +---------+ outer  +-----------+ outer  +---------+ outer  +------+
 *   | scope   |------->| scope     |------->| scope   |------->| root |
 *   | (fiber) |        | (no stack)|        | (fiber) |        +------+
 *   +---------+        +-----------+        +---------+
 *
 * A scope is one handler. The scope of a fiber lies in the fiber's header; the code that resumed
 * the fiber handles what the scope lists. A scope without a stack lies in the frame of haft_handle.
 *
 * Every scope remembers where its last few effects were found (`cache`). An entry is right as long
 * as the chain between the scope and the handler stays as it is; so is everything else that was
 * derived from the chain outwards of a scope. Therefore a scope has a serial, a number that no
 * other scope of the process has ever had, and gets a new one whenever that chain may have changed:
 * when a fiber is resumed by another parent, with another handled set, or on another thread, all
 * scopes of the suspended chain that ends in it get new serials and empty caches (resume.c). A
 * fiber remembers the serial of the scope that resumed it last (`owner`). If the scope with that
 * serial resumes it again, nothing else has to be checked, and the caches of the scopes inside the
 * fiber are still right.
 *
 * The scopes of other languages' fibers (haft/language.h) have the serial 0 until one is needed.
 */
#ifndef HAFTI_LAYOUT_H
#define HAFTI_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct haft_effect haft_effect_t;
typedef struct hafti_scope hafti_scope_t;
typedef struct haft_fiber haft_fiber_t;
typedef struct hafti_thread hafti_thread_t;
struct haft_language;
typedef void haft_function_t(void);

/* Kinds of clauses, by their use of the continuation. */
enum haft_clause_kind {
    HAFT_CLAUSE_REQUEST, /* the fiber is suspended and haft_resume returns the request */
    HAFT_CLAUSE_GENERAL, /* the fiber is suspended and the clause gets the resumption */
    HAFT_CLAUSE_NEVER,   /* the fiber is unwound, then the clause runs */
    HAFT_CLAUSE_TAIL,    /* the clause is called in place */
    HAFTI_CLAUSE_SLOW    /* in caches only: suspend through the out-of-line path */
};

typedef struct haft_clause {
    haft_effect_t *effect;
    haft_function_t *function;
    uint32_t kind;
    uint32_t shape; /* HAFTI_SHAPE where the clause was written */
} haft_clause_t;

typedef struct haft_handles {
    uint32_t count;
    uint16_t all; /* handles every effect, listed or not */
    /* Sets with the same number have the same contents, wherever a program writes them. Drawn when
       the set is first used; below HAFTI_SET_FIRST: the set has no number. */
    uint16_t number;
    const haft_clause_t *clauses;
} haft_handles_t;
enum {
    HAFTI_SET_FIXED, /* in memory that may not be written, or the program's own: never numbered */
    HAFTI_SET_UNNUMBERED, /* to be numbered */
    HAFTI_SET_NONE,       /* of a fiber whose set has no number */
    HAFTI_SET_FIRST
};

/* The sizes of payload and result in one word. A lookup compares them, so that two different
   effects with one name are not taken for each other. */
#ifdef __cplusplus
#    define HAFTI_TO_32(size) static_cast<uint32_t>(size)
#else
#    define HAFTI_TO_32(size) (uint32_t)(size)
#endif
#define HAFTI_SHAPE(payload_size, result_size)                                                     \
    (HAFTI_TO_32(payload_size) * 65599u ^ HAFTI_TO_32(result_size))

struct haft_effect {
    const char *name;
    const char *where; /* file:line of its declaration */
    size_t payload_size;
    size_t result_size;
    /* Calls a clause that runs in place, for callers that do not know its type. */
    void (*call)(haft_function_t *function, void *state, void *payload, void *result);
    haft_function_t *unhandled; /* reports that nobody handles the effect */
    /* If there is no default, its function is `unhandled`, or its kind is not HAFT_CLAUSE_TAIL. */
    haft_clause_t default_clause;
    /* Offset in caches, in bytes, of its entry if another effect has the entry of its slot
       (lookup.c). */
    uint32_t place;
    bool spoils; /* declared without NDEBUG: payloads that are no longer valid are overwritten */
    /* The number of a set in which it is a request; 0: none known, or a clause was found since. */
    uint32_t requested;
};

enum { HAFTI_CACHE_SLOTS = 8, HAFTI_THREAD_BITS = 28 };

/*
 * How an effect is handled, and by which scope. `with` is either the second word of the switch that
 * suspends the fiber of the scope (the effect, or the general clause that takes it), or a clause,
 * marked by HAFTI_CLAUSE_MARK, whose kind decides what is done.
 */
typedef struct hafti_found {
    uintptr_t with;
    hafti_scope_t *scope;
} hafti_found_t;
enum { HAFTI_CLAUSE_MARK = 1, HAFTI_AT_MARK = 2, HAFTI_OTHER_MARK = 4 };

typedef struct hafti_cache_entry {
    /* The effect, with the mark of `with`; and HAFTI_AT_MARK if it was performed to a scope by name
       (haft/language.h), or HAFTI_OTHER_MARK if the performer found its handler in a way of its
       own. 0: the entry is empty. */
    uintptr_t key;
    hafti_found_t found;
} hafti_cache_entry_t;

enum hafti_scope_kind {
    HAFTI_SCOPE_ROOT,
    HAFTI_SCOPE_FIBER,
    HAFTI_SCOPE_STACKLESS,
    HAFTI_SCOPE_DEFAULTS
};

struct hafti_scope {
    hafti_scope_t *outer;
    const haft_handles_t *handles;
    uint64_t serial; /* upper HAFTI_THREAD_BITS: the thread on which it was drawn */
    void *state;     /* handed to the clauses */
    uint8_t kind;
    uint8_t slow;     /* crossing this scope needs the out-of-line switch */
    uint8_t filled;   /* a bit for each entry of the cache that may have a key */
    uint32_t scratch; /* of a fiber: for its switches */
    /* Counts the uses of a fiber's resumptions, each of which may be used once. Odd after
       haft_tail_resume, until the handler resumes the fiber. */
    uint64_t shot;
    hafti_cache_entry_t cache[HAFTI_CACHE_SLOTS];
};

/* A context that is not executing. The first two words are laid out like a frame record. */
typedef struct hafti_context {
    void *fp;
    void *pc;
    void *sp;
    void *base;       /* the callee-saved register that compilers reserve: rbx, x19 */
    uint32_t control; /* rounding mode and exception masks of floating point */
    union {
        uint32_t gate; /* of a fiber's `context`: hafti_gate; its resumer closes it */
        /* In its `resumer`: the bytes of its stack, at most HAFTI_ROOM_MOST, and
           HAFTI_ROOM_LOOK. */
        uint32_t room;
    };
} hafti_context_t;
/* HAFTI_ROOM_LOOK: the stack has no guard, and is looked at whenever the fiber is suspended. */
#define HAFTI_ROOM_LOOK 1u
#define HAFTI_ROOM_MOST 0xfffffff0u

enum hafti_gate {
    HAFTI_GATE_CLOSED, /* running, finished or freed */
    HAFTI_GATE_OPEN,   /* suspended */
    HAFTI_GATE_SLOW,   /* the same, but every resume has to take the out-of-line path */
    HAFTI_GATE_NEW     /* new, with a stack of the pool and no tools: the first resume is short */
};

enum { HAFTI_EXCEPTED_PERFORMER = 1, HAFTI_EXCEPTED_RESUMER = 2 };

/*
 * A fiber's header lies at the high end of its stack memory:
 *
 *   low                                                                 high
 *   | guard | ...free...  <- sp | frames | first frame | haft_fiber_t | colour |
 *
 * `context` is the fiber's context while the fiber is suspended; `resumer` is that of the code that
 * resumed it, while the fiber runs: a switch stores into one and loads the other. The frame pointer
 * of a fiber's first frame points to `resumer`, so that walking frame pointers leads from a running
 * fiber into its parent at no cost.
 *
 * The first two cache lines have all that a resume needs, and a perform of a request that the
 * resumer handles: with a frame on the line below, a turn of a fiber that is in no cache costs
 * three lines of one page. The cache of the scope, for all other effects, begins on the third.
 *
 * The first segment of a segmented fiber lies in one block with its header; haft/inner/segments.h
 * draws it.
 */
struct haft_fiber {
    hafti_context_t context;
    /* Serial of the scope that resumed the fiber last, and may resume it again by the hot path; 0:
       no scope may. The thread that changes it has claimed the fiber. */
    uint64_t owner;
    uintptr_t awaits;   /* what suspended it, see HAFTI_AWAITING */
    hafti_scope_t *top; /* innermost scope of the suspended chain that ends in this fiber */

    hafti_context_t resumer;
    hafti_scope_t scope; /* its first three words share a line with `resumer` */

    /* Fields that every fiber needs from its making to its end, on two lines; then the rest. */
    void *(*function)(void *);
    void *argument;
    void *result;
    const char *name;
    char *high;   /* the first frame lies just below */
    void *thrown; /* the payload of the effect that ended the fiber, once unwound */
    const void *handler;
    struct haft_pool *pool;
    void *tools; /* what sanitizers and Valgrind know of this fiber */
    /* The segmented fiber on the other side of the switch, which resumed this one, or in which this
       one stopped; or NULL. */
    struct haft_fiber *within;
    const struct haft_language *language; /* which owns the frames (haft/language.h); NULL: C */
    /* enum haft_fiber_state. 32 bits wide, so that compilers read it alone: one load of it and
       `kind` would have to wait for the stores of both. */
    uint32_t state;
    uint8_t kind;
    uint8_t cleanups;
    uint8_t checked; /* the stack has a canary instead of a guard */
    /* Bits HAFTI_EXCEPTED_PERFORMER, HAFTI_EXCEPTED_RESUMER: that side of the switch waits while it
       handles exceptions. */
    uint8_t excepted;
    uint32_t uses;
    uint32_t set;          /* the number of scope.handles, or HAFTI_SET_NONE */
    uintptr_t of_language; /* for the language that owns the frames; or see kept.h */
    char *low;             /* lowest usable byte of the stack */
    /* OCaml's nested fibers (ocaml/lib/nests.c) lie on their stacks as far apart as a header of
       this size has them. */
    uint64_t unlocked;        /* another language's: it was resumed without that language's lock */
    struct haft_stage *stage; /* of a fiber whose computation has been copied (copies.c) */
    struct haft_fiber *next, *previous; /* lists of fibers */
    uint64_t unwound_under; /* the scope's serial when the unwinding of the stack began */
    uintptr_t segments;     /* of a segmented fiber: the limit word of its first segment */
    /* An _Unwind_Exception while the stack is unwound. */
    __attribute__((aligned(16))) uint64_t unwinding[4];
};

/* The part of C++'s exception state (__cxa_eh_globals) that belongs to a fiber. */
typedef struct hafti_exceptions {
    void *caught;
    unsigned uncaught;
} hafti_exceptions_t;

struct hafti_thread {
    hafti_scope_t *current; /* the innermost scope */
    /* Exceptions of C++. On a segmented fiber, and on threads with another language, an object that
       is never empty, which keeps the hot paths from switching. */
    hafti_exceptions_t *exceptions;
    uint64_t stamp; /* the last serial that was drawn */
    hafti_scope_t root;
    hafti_scope_t defaults;
    struct haft_known *known; /* what hafti_lookup found before */
    struct haft_batch *idle;  /* stacks of `pool` that this thread keeps for its next fibers */
    struct haft_pool *pool;
    size_t idle_size;
    uint32_t idle_count;
    uint32_t moves; /* how often effects were moved to other places of caches */
    bool other_full;
    struct haft_batch *other; /* a second batch, full or empty (`other_full`) */
    void *signal_stack;       /* the alternate stack for signals, if it is the library's */
    /* The lowest address of the alternate stack that the thread started with, whichever code has
       set it. */
    char *signal_low;
    size_t signal_size; /* 0: there was none */
    /* The stack position of the lookup that writes into a cache; NULL: none does. */
    const char *looking;
    hafti_exceptions_t *globals;          /* the exceptions of C++ themselves */
    haft_fiber_t *segmented;              /* the fiber on which the code runs, if it is segmented */
    struct haft_footing *foreign_calls;   /* those that have resumed fibers, innermost first */
    void *foreign_stack;                  /* for functions called through HAFT_FOREIGN */
    const struct haft_language *language; /* whose code runs on this thread, or NULL */
    /* The state whose roots and stacks this one uses (haft/thread_pointers.h); NULL: its own. */
    struct hafti_thread *home;
};

#endif
