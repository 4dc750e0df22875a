/* SPDX-License-Identifier: MIT */
/*
 * What the faces of other languages build on, beside haft.h: scopes in frames of their own,
 * handlers performed to by name, room on a fiber's stack, and unwinding up to a frame. Not for C
 * programs.
 */
#ifndef HAFT_FACES_H
#define HAFT_FACES_H

#include "hot.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Puts a handler without a stack around what the caller does until haft_scope_pop. `scope` lies in
 * a frame of the caller; `handles` lists only HAFT_CLAUSE_TAIL clauses, which are called with
 * `state`.
 */
HAFT_API void haft_scope_push(haft_scope_t *scope, const haft_handles_t *handles, void *state);
HAFT_INLINE void haft_scope_pop(const haft_scope_t *scope) {
    haft_set_current(haft_here(), scope->outer);
}

/*
 * Performing to the very handler whose scope is `scope`, whatever lies between, in constant time:
 * like haft_find, with an entry of the current scope's cache that is marked by HAFT_AT_MARK.
 * There are two places for it, because handlers that are named tend to come in pairs.
 */
HAFT_API HAFT_COLD haft_found_t haft_lookup_at(haft_scope_t *scope, haft_effect_t *effect,
                                               unsigned slot, uint32_t shape);
HAFT_INLINE bool haft_read_entry_at(const haft_cache_entry_t *entry, const haft_scope_t *scope,
                                    haft_effect_t *effect, haft_found_t *found) {
    return (haft_read_entry(entry, effect, HAFT_AT_MARK, found) ||
            haft_read_entry(entry, effect, HAFT_AT_MARK | HAFT_CLAUSE_MARK, found)) &&
           HAFT_LIKELY(found->scope == scope);
}
HAFT_INLINE haft_found_t haft_find_at(haft_here_t here, haft_scope_t *scope, haft_effect_t *effect,
                                      unsigned slot, uint32_t shape) {
    const haft_cache_entry_t *first = haft_entry_in(here.current, slot);
    const haft_cache_entry_t *second = haft_entry_in(here.current, slot + 1);
    haft_found_t found;
    if (haft_read_entry_at(first, scope, effect, &found) ||
        haft_read_entry_at(second, scope, effect, &found))
        return found;
    return haft_lookup_at(scope, effect, first->key == 0 ? slot : slot + 1, shape);
}

/* As haft_discontinue, for languages that check replies themselves: `function` returns the word. */
HAFT_API haft_request_t haft_resume_calling(haft_fiber_t *fiber, void *(*function)(void *),
                                            void *argument, const haft_handles_t *handles);

/*
 * Takes `size` bytes, aligned to 64, at the high end of the stack of a fiber that is new. They stay
 * as they are until the fiber is freed; a reset leaves them alone as long as the fiber is not
 * resumed.
 */
HAFT_API void *haft_fiber_reserve(haft_fiber_t *fiber, size_t size);

/*
 * Unwinds from here, through fibers if need be, up to a handler; no frame on the way can stop it.
 * If the handler has a fiber, that is unwound too, and its haft_resume returns the request
 * haft_special_landed. A handler without one gives the stack pointer that its frame has at its
 * calls: there, all inner frames being gone, `land(landing)` is called, and has to leave by raising
 * an exception that the frame catches. The landing lies in the fiber's reserved memory, or in the
 * frame.
 */
typedef struct haft_landing {
    haft_fiber_t *fiber;
    void *sp;
    void (*land)(struct haft_landing *landing);
    uint64_t here; /* the frame is on the stack that is being unwound */
    __attribute__((aligned(16))) uint64_t unwinding[4];
} haft_landing_t;
HAFT_API __attribute__((noreturn)) void haft_unwind_to(haft_landing_t *landing);
extern HAFT_API haft_effect_t haft_special_landed;
HAFT_INLINE void *haft_stack_pointer(void) {
    void *sp;
#if defined(__x86_64__)
    __asm__ volatile("movq %%rsp, %0" : "=r"(sp));
#else
    __asm__ volatile("mov %0, sp" : "=r"(sp));
#endif
    return sp;
}

/* Reports a misuse that a face has found, as the library reports its own: to the error handler or on
   standard error. Aborts if the handler comes back. */
HAFT_API HAFT_COLD __attribute__((noreturn)) void haft_misused(const haft_error_t *error);

/* What the message of a stack overflow says about a fiber of the face: how it gets a larger stack. NULL
   for other fibers. Called in a signal handler. */
extern HAFT_API const char *(*haft_stack_advice)(const haft_fiber_t *fiber);

/* Reports that a resumption of `effect` was used (continued, dropped...) a second time. */
HAFT_API HAFT_COLD __attribute__((noreturn)) void haft_used_resumption(const haft_effect_t *effect,
                                                                       const char *what);

#ifdef __cplusplus
}
#endif
#endif
