/* SPDX-License-Identifier: MIT */
/*
 * For languages that own their frames: whose runtime scans, moves or frees stacks by rules of its
 * own, and switches them itself. Such a language takes its stacks from the pool, puts them into the
 * chain of handlers, and answers the library's questions about them. Not for C programs.
 *
 * Invariants
 * - Only the language resumes, suspends and frees its fibers. Their gate stays closed, so that the
 *   library refuses to.
 * - A scope has no serial (0) while nothing has been derived from the chain through it. The library
 * draws one when it first looks through the scope (lookup.c); a language whose fiber gets another
 * parent calls haft_language_moved if there is one. So a switch between fibers of the language
 * draws none.
 * - `scope.slow` of its fibers is set: effects of C that cross them take the out-of-line switch,
 * which tells the language.
 */
#ifndef HAFT_LANGUAGE_H
#define HAFT_LANGUAGE_H

#include "../haft.h"

#ifdef __cplusplus
extern "C" {
#endif

enum haft_crossing { HAFT_INTO, HAFT_OUT_OF, HAFT_OUT_FOR_GOOD };

/* What a language's runtime keeps for the code that runs; on the stack of a switch while
 * it does not. */
typedef struct haft_language_state {
    uint64_t words[16];
} haft_language_state_t;

typedef struct haft_language {
    const char *name;
    /* What its fibers handle, in the eyes of the library: nothing. Tells them apart from others. */
    const haft_handles_t *handles;
    haft_fiber_state_t (*state)(const haft_fiber_t *fiber);
    /* Where a suspended fiber goes on, for backtraces. */
    void (*context)(const haft_fiber_t *fiber, haft_context_t *context);
    /* The stack of one of its fibers has overflowed. If the language has an error of its own for
       that, it changes the interrupted context (a ucontext_t) so as to raise it, and returns true.
       Called in a signal handler. */
    bool (*overflows)(void *context);
    /* Around every switch across the border of `fiber`, a fiber of C, on a thread of the language. */
    void (*before)(haft_fiber_t *fiber, enum haft_crossing crossing, haft_language_state_t *mine);
    void (*after)(haft_fiber_t *fiber, enum haft_crossing crossing, haft_language_state_t *mine);
    /* The scopes from `innermost` out to that of `fiber`, one of C, have ended, by
     * unwinding or without. */
    void (*left)(haft_scope_t *innermost, const haft_fiber_t *fiber);
    /* A thread ends while it runs on `fiber`, one of the language or of C: its frames are gone.
       Called by that thread, at its very end, for each of its fibers, innermost first. */
    void (*abandoned)(haft_fiber_t *fiber);
} haft_language_t;

/*
 * Makes this the language of the calling thread and of all that use the library from now on: there
 * is one a process. Fibers of C are then switched by the out-of-line path on these threads.
 */
HAFT_API void haft_language_register(const haft_language_t *language);
/* The calling thread's state, ready for use. */
HAFT_API haft_thread_t *haft_language_thread(void);
/* A fiber with a stack of `size` bytes, whose frames are the language's. NULL if
 * memory is exhausted. */
HAFT_API haft_fiber_t *haft_language_take(const haft_language_t *language, size_t size);
/* Gives back a fiber on which nothing runs or will run: one that haft_language_take made, or a fiber
 * of C that was suspended inside a fiber that has ended. */
HAFT_API void haft_language_give(haft_fiber_t *fiber);
/* Ends `fiber`, one of C that the caller runs on, as if it had been dropped: back to its resumer. */
HAFT_API __attribute__((noreturn)) void haft_language_leave(haft_fiber_t *fiber);
/* The scopes from `top` out to that of `fiber` have got, or are about to get, another
 * chain further out. */
HAFT_API void haft_language_moved(haft_scope_t *top, haft_fiber_t *fiber);

#ifdef __cplusplus
}
#endif
#endif
