/* SPDX-License-Identifier: MIT */
/*
 * The interface for implementing a language on the library, beside haft.h. Not for C programs.
 *
 * The first part is for any language: scopes in the language's own frames, performing to a handler
 * by name, room on a fiber's stack, unwinding up to a frame.
 *
 * The second part is for languages that own their frames: their runtime scans, moves or frees
 * stacks by its own rules, and switches them itself. A language of this kind takes its stacks from
 * the pool, puts them into the chain of handlers, and answers the library's questions about them.
 *
 * Invariants of the second part
 * - Only the language resumes, suspends and frees its fibers. Their gate stays closed, so that the
 *   library refuses to do so.
 * - The scope of a fiber of the language has the serial 0 until the library looks for a handler
 *   through it (lookup.c), and then draws one. When a fiber whose scope has a serial gets another
 *   parent, the language calls haft_language_moved. So a switch between fibers of the language
 *   draws no serial.
 * - `scope.slow` of its fibers is set: effects of C that cross them take the out-of-line switch,
 *   which tells the language.
 */
#ifndef HAFT_LANGUAGE_H
#define HAFT_LANGUAGE_H

#include "../haft.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- For any language ---- */

/*
 * Puts a handler without a stack around what the caller does until haft_scope_pop. `scope` lies in
 * a frame of the caller; `handles` lists only HAFT_CLAUSE_TAIL clauses, which are called with
 * `state`.
 */
HAFTI_API void haft_scope_push(hafti_scope_t *scope, const haft_handles_t *handles, void *state);
HAFTI_INLINE void haft_scope_pop(const hafti_scope_t *scope) {
    hafti_set_current(hafti_here(), scope->outer);
}

/*
 * Finds how the handler whose scope is `scope` handles `effect`, whatever lies between, in constant
 * time: as hafti_find, by an entry of the current scope's cache that is marked by HAFTI_AT_MARK.
 * The entry has two places, because programs tend to name handlers in pairs.
 */
HAFTI_API HAFTI_COLD hafti_found_t haft_lookup_at(hafti_scope_t *scope, haft_effect_t *effect,
                                                  unsigned slot, uint32_t shape);
HAFTI_INLINE bool haft_read_entry_at(const hafti_cache_entry_t *entry, const hafti_scope_t *scope,
                                     haft_effect_t *effect, hafti_found_t *found) {
    return (hafti_read_entry(entry, effect, HAFTI_AT_MARK, found) ||
            hafti_read_entry(entry, effect, HAFTI_AT_MARK | HAFTI_CLAUSE_MARK, found)) &&
           HAFTI_LIKELY(found->scope == scope);
}
HAFTI_INLINE hafti_found_t haft_find_at(hafti_here_t here, hafti_scope_t *scope,
                                        haft_effect_t *effect, unsigned slot, uint32_t shape) {
    const hafti_cache_entry_t *first = hafti_entry_in(here.current, slot);
    const hafti_cache_entry_t *second = hafti_entry_in(here.current, slot + 1);
    hafti_found_t found;
    if (haft_read_entry_at(first, scope, effect, &found) ||
        haft_read_entry_at(second, scope, effect, &found))
        return found;
    return haft_lookup_at(scope, effect, first->key == 0 ? slot : slot + 1, shape);
}

/* Like haft_discontinue, for languages that check replies themselves: `function` returns the
   reply's word. */
HAFTI_API haft_request_t haft_resume_calling(haft_fiber_t *fiber, void *(*function)(void *),
                                             void *argument, const haft_handles_t *handles);

/*
 * Unwinds the stack of a suspended fiber, with those of the fibers inside it, as haft_fiber_drop
 * does, but handles the effects in `handles` meanwhile: what a cleanup performs suspends the fiber
 * again, and the unwinding goes on when the fiber is resumed. The request of a fiber whose stack is
 * unwound is haft_special_dropped; the fiber is then finished, and is to be dropped.
 */
HAFTI_API haft_request_t haft_resume_unwinding(haft_fiber_t *fiber, const haft_handles_t *handles);
extern HAFTI_DATA haft_effect_t haft_special_dropped;

/*
 * Takes `size` bytes, aligned to 64, at the high end of the stack of a new fiber. Their contents
 * stay until the fiber is dropped, or until it is resumed after a reset.
 */
HAFTI_API void *haft_fiber_reserve(haft_fiber_t *fiber, size_t size);

/*
 * Unwinds from here, through fibers if need be, up to a handler; no frame on the way can stop this.
 * If the handler has a fiber, the fiber is unwound too, and its haft_resume returns the request
 * haft_special_landed. If the handler has none, `sp` is the stack pointer that the handler's frame
 * has at its calls: when all inner frames are gone, `land(landing)` is called there, and must leave
 * by throwing an exception that the frame catches. The landing lies in the fiber's reserved memory,
 * or in the frame. `let_go(landing)`, if it is not NULL, is called when the unwinding has ended
 * on the way, because an exception or another unwinding has taken its place, perhaps one to the
 * same landing; it must return.
 */
typedef struct haft_landing {
    haft_fiber_t *fiber;
    void *sp;
    void (*land)(struct haft_landing *landing);
    void (*let_go)(struct haft_landing *landing);
    uint64_t here; /* the frame is on the stack that is being unwound */
    __attribute__((aligned(16))) uint64_t unwinding[4];
} haft_landing_t;
HAFTI_API __attribute__((noreturn)) void haft_unwind_to(haft_landing_t *landing);
/*
 * A landing whose `land` and `fiber` are NULL is the first member of this, and its `sp` is any
 * address but the lowest in the frame of a function that returns an integer and is not inlined.
 * When that frame is gone, too, and its cleanups have run, `instead(words[0], words[1])` is called
 * in place of the function, and returns for it; `instead` may unwind. So a function that may be
 * left in this way has nothing to do for it. This lies in its frame, which is no memory any more
 * when `instead` runs.
 */
typedef struct haft_return {
    haft_landing_t landing;
    intptr_t (*instead)(intptr_t first, intptr_t second);
    intptr_t words[2];
} haft_return_t;
/* Whether the handler is around the caller. It is not while a task of a scheduler runs a clause
   that a handler of another task has. */
HAFTI_API bool haft_can_unwind_to(const haft_landing_t *landing);
extern HAFTI_DATA haft_effect_t haft_special_landed;
HAFTI_INLINE void *haft_stack_pointer(void) {
    void *sp;
#if defined(__x86_64__)
    __asm__ volatile("movq %%rsp, %0" : "=r"(sp));
#else
    __asm__ volatile("mov %0, sp" : "=r"(sp));
#endif
    return sp;
}

/* Reports that a resumption of `effect` was used a second time; `what` names the use
   ("resumed"...). */
HAFTI_API HAFTI_COLD __attribute__((noreturn)) void
haft_used_resumption(const haft_effect_t *effect, const char *what);

#ifndef HAFT_FREESTANDING
/*
 * Tells the library that functions with the personality routine of `function` have exception tables
 * laid out as those of C++, in which catches and filters have nothing to run but the language's own
 * code that ends the process or the function: only cleanups have. So the library knows, where it
 * copies frames of the language, which of them have cleanups. One language a process; a function
 * without such a table changes nothing.
 */
HAFTI_API void haft_know_frames_of(haft_function_t *function);
/*
 * Tells the library which cleanups of a language haft_resumption_copy may copy: each copy then runs
 * them. `resumer_of(fiber)` returns the function that waits in its resume of `fiber`, if that is a
 * computation of the language whose objects in reserved memory may be copied byte by byte, and the
 * function has nothing else to do than to end it; otherwise NULL. `caught` is a type of C++, by its
 * std::type_info: a function that catches exceptions of this type has cleanups that may be copied
 * where it does. `of` is kept; one language a process.
 */
typedef struct haft_copied_frames {
    haft_function_t *(*resumer_of)(const haft_fiber_t *fiber);
    const void *caught;
} haft_copied_frames_t;
HAFTI_API void haft_know_copied_frames(const haft_copied_frames_t *of);
/* Like haft_resumption_copy, but cleanups are also looked for on fibers with `no_cleanups`: for a
   language whose frames are given up when a copy is dropped, and so must have none. */
HAFTI_API haft_resumption_t haft_copy_looked_at(haft_resumption_t k);
#endif

/* ---- For languages that own their frames ---- */

enum haft_crossing { HAFT_INTO, HAFT_OUT_OF, HAFT_OUT_FOR_GOOD };

/* State that a language's runtime keeps for the code that runs. While the code does not run, it
   lies at the end of the stack of the switch: nothing below it is in use. */
typedef struct haft_language_state {
    uint64_t words[16];
} haft_language_state_t;

typedef struct haft_language {
    const char *name;
    /* The set of effects that its fibers handle: empty. Its address tells them from others. */
    const haft_handles_t *handles;
    haft_fiber_state_t (*state)(const haft_fiber_t *fiber);
    /* Where a suspended fiber goes on, for backtraces. */
    void (*context)(const haft_fiber_t *fiber, hafti_context_t *context);
    /* Called in a signal handler when the stack of one of its fibers has overflowed. If the
       language has an error of its own for that, the function changes the interrupted context (a
       ucontext_t) so as to raise the error, and returns true. */
    bool (*overflows)(void *context);
    /* Called before and after every switch into or out of `fiber`, a fiber of C, on a thread of the
       language. */
    void (*before)(haft_fiber_t *fiber, enum haft_crossing crossing, haft_language_state_t *mine);
    void (*after)(haft_fiber_t *fiber, enum haft_crossing crossing, haft_language_state_t *mine);
    /* The scopes from `innermost` out to that of `fiber`, one of C, have ended, by unwinding or
       without. */
    void (*left)(hafti_scope_t *innermost, const haft_fiber_t *fiber);
    /* A thread ends while it runs on `fiber`, one of the language or of C: the frames on it are
       gone. The thread calls this at its very end, for each of its fibers, innermost first. */
    void (*abandoned)(haft_fiber_t *fiber);
} haft_language_t;

/*
 * Makes this the language of the calling thread, and of all threads that first use the library from
 * now on; a process has one language. On these threads, fibers of C are switched by the out-of-line
 * path.
 */
HAFTI_API void haft_language_register(const haft_language_t *language);
/* The calling thread's state, ready for use. */
HAFTI_API hafti_thread_t *haft_language_thread(void);
/* A fiber with a stack of `size` bytes, whose frames are the language's. NULL if memory is
   exhausted. */
HAFTI_API haft_fiber_t *haft_language_take(const haft_language_t *language, size_t size);
/* Gives back a fiber on which nothing runs or will run: one that haft_language_take made, or a
   fiber of C that was suspended inside a fiber that has ended. */
HAFTI_API void haft_language_give(haft_fiber_t *fiber);
/* Ends `fiber`, a fiber of C that the caller runs on, as if it had been dropped, and goes back to
   its resumer. */
HAFTI_API __attribute__((noreturn)) void haft_language_leave(haft_fiber_t *fiber);
/* Reports that the scopes from `top` out to that of `fiber` have got, or are about to get, another
   chain further out. */
HAFTI_API void haft_language_moved(hafti_scope_t *top, haft_fiber_t *fiber);

#ifdef __cplusplus
}
#endif
#endif
