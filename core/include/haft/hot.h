/*
 * The hot paths: finding a handler, suspending a fiber, resuming one. Everything here is inlined into
 * the caller; whatever is rare is a call to a function of the library that is marked cold.
 *
 * Invariants
 * - The thread is looked up afresh after every switch: a fiber may wake up on another thread, so no
 *   address derived from the thread pointer survives a switch (haft_thread is volatile assembly).
 * - `gate` is opened by the resumer when it has arrived back, and not by the fiber on its way out: only
 *   then is the context complete.
 * - Two threads that resume one fiber at once cannot both get in. The hot path, which only the scope
 *   named by `owner` can take, closes the gate and then reads `owner` again; whoever comes from
 *   elsewhere writes `owner`, makes the first thread's stores visible (membarrier, on the slow path
 *   only), and then exchanges the gate. One of the two sees the other.
 */
#ifndef HAFT_HOT_H
#define HAFT_HOT_H

#include "layout.h"

#if defined(__x86_64__)
#    include "switch_x86_64.h"
#elif defined(__aarch64__)
#    include "switch_aarch64.h"
#else
#    error "Haft runs on x86-64 and AArch64"
#endif

#define HAFT_LIKELY(x) __builtin_expect(!!(x), 1)
#define HAFT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HAFT_COLD __attribute__((cold, noinline))
#ifdef __cplusplus
/* Not static: templates of haft.hpp that a module exports may not name what has internal linkage. */
#    define HAFT_INLINE inline __attribute__((always_inline, unused))
#else
#    define HAFT_INLINE static inline __attribute__((always_inline, unused))
#endif
#define HAFT_API __attribute__((visibility("default")))

typedef struct haft_request {
    haft_effect_t *effect;
    void *payload;
} haft_request_t;

/*
 * The second word of a switch. Into a fiber: how it is woken. Out of a fiber: the effect, with the
 * lowest bit set for everything but a plain suspension.
 */
enum haft_wake {
    HAFT_WAKE_REPLY = 0, /* the first word is the result of perform */
    HAFT_WAKE_UNWIND,    /* the first word is the fiber to unwind up to */
    HAFT_WAKE_CALL       /* the first word is a haft_call_t to run in place of a result */
};
#define HAFT_SPECIAL ((uintptr_t)1)

#if defined(HAFT_FREESTANDING)
extern haft_thread_t haft_thread_state;
HAFT_INLINE haft_thread_t *haft_thread(void) { return &haft_thread_state; }
#else
extern HAFT_API __thread __attribute__((tls_model("initial-exec"))) haft_thread_t haft_thread_state;
HAFT_INLINE haft_thread_t *haft_thread(void) {
    haft_thread_t *thread;
#    if defined(__x86_64__)
    __asm__ volatile("movq %%fs:0, %0\n\taddq haft_thread_state@gottpoff(%%rip), %0"
                     : "=r"(thread)
                     :
                     : "cc");
#    elif defined(__aarch64__)
    void *offset;
    __asm__ volatile("mrs %0, tpidr_el0\n\t"
                     "adrp %1, :gottprel:haft_thread_state\n\t"
                     "ldr %1, [%1, #:gottprel_lo12:haft_thread_state]\n\t"
                     "add %0, %0, %1"
                     : "=&r"(thread), "=&r"(offset));
#    endif
    return thread;
}
#endif

HAFT_API HAFT_COLD haft_cache_entry_t *haft_lookup(haft_effect_t *effect, unsigned slot,
                                                   uint32_t shape);
HAFT_API HAFT_COLD void *haft_suspend_slow(haft_cache_entry_t *entry, haft_effect_t *effect,
                                           void *payload);
HAFT_API HAFT_COLD void *haft_woken(void *word, uintptr_t wake);
HAFT_API haft_request_t haft_resume_slow(haft_fiber_t *fiber, void *word,
                                         const haft_handles_t *handles);
HAFT_API HAFT_COLD __attribute__((noreturn)) void haft_resume_raced(haft_fiber_t *fiber);
HAFT_API haft_request_t haft_arrived(haft_fiber_t *fiber, uintptr_t effect, void *payload);
HAFT_API HAFT_COLD void *haft_yield_slow(haft_fiber_t *fiber, haft_effect_t *effect,
                                         unsigned slot, void *payload);
HAFT_API HAFT_COLD void haft_declare(const haft_effect_t *effect, uint32_t shape,
                                     const char *where);
HAFT_API HAFT_COLD __attribute__((noreturn)) void haft_unhandled(haft_effect_t *effect);
HAFT_API HAFT_COLD __attribute__((noreturn)) void haft_no_reply(const haft_effect_t *effect);

/* C++ keeps the exceptions being handled in a global of the thread; while there are any, the
   out-of-line path saves them with the fiber. One comparison sees both fields: all of the pointer but
   its lowest 16 bits, in which alone no address differs from NULL, and the low half of the count. */
HAFT_INLINE bool haft_exceptions_in(const haft_exceptions_t *exceptions) {
    uint64_t both;
    __builtin_memcpy(&both, (const char *)exceptions + 2, sizeof both);
    return both != 0;
}
HAFT_INLINE bool haft_exceptions_pending(const haft_thread_t *thread) {
    return haft_exceptions_in(thread->exceptions);
}

HAFT_INLINE haft_cache_entry_t *haft_find(haft_thread_t *thread, haft_effect_t *effect,
                                          unsigned slot, uint32_t shape) {
    haft_cache_entry_t *entry = &thread->current->cache[slot % HAFT_CACHE_SLOTS];
    if (HAFT_UNLIKELY(entry->effect != effect))
        entry = haft_lookup(effect, slot, shape);
    return entry;
}

HAFT_INLINE haft_fiber_t *haft_fiber_of(haft_scope_t *scope) {
    return (haft_fiber_t *)(void *)((char *)scope - offsetof(haft_fiber_t, scope));
}

/* Suspends `fiber`, the current one or one that it runs in; its haft_resume returns the request. */
HAFT_INLINE void *haft_suspend(haft_thread_t *thread, haft_fiber_t *fiber, haft_effect_t *effect,
                               void *payload) {
    fiber->top = thread->current;
    fiber->awaits = effect;
    thread->current = fiber->scope.outer;
    haft_words_t words =
        haft_switch(&fiber->context, &fiber->resumer, (haft_words_t){payload, (uintptr_t)effect});
    if (HAFT_UNLIKELY(words.second != HAFT_WAKE_REPLY))
        return haft_woken(words.first, words.second);
    return words.first;
}

/* A default may be set by another thread at any time. */
HAFT_INLINE haft_function_t *haft_clause_function(const haft_clause_t *clause) {
    return __atomic_load_n(&clause->function, __ATOMIC_RELAXED);
}

/* Performs an effect whose clause is not called in place. */
HAFT_INLINE void *haft_perform_found(haft_thread_t *thread, haft_cache_entry_t *entry,
                                     haft_effect_t *effect, void *payload) {
    if (HAFT_UNLIKELY(entry->clause != NULL || haft_exceptions_pending(thread)))
        return haft_suspend_slow(entry, effect, payload);
    return haft_suspend(thread, haft_fiber_of(entry->scope), effect, payload);
}

/*
 * While a clause runs in place, the scopes up to and including its handler's are out of reach. They are
 * also out of reach of whoever resumes the fiber that the clause has suspended, if it does: when the
 * chain further out was changed meanwhile, seen by its serial, they are renewed on the way back.
 */
typedef struct haft_in_place {
    haft_scope_t *performer;
    haft_scope_t *outer; /* of the handler: what the clause runs under */
    uint64_t serial;     /* of `outer` */
} haft_in_place_t;
/* By value: what a cold call takes the address of would have to lie in memory on the hot path, too. */
HAFT_API HAFT_COLD void haft_in_place_moved(haft_scope_t *performer, const haft_scope_t *outer);

HAFT_INLINE haft_in_place_t haft_in_place_begin(haft_thread_t *thread,
                                                const haft_scope_t *handler) {
    haft_in_place_t in_place = {thread->current, handler->outer, handler->outer->serial};
    thread->current = handler->outer;
    return in_place;
}
HAFT_INLINE void haft_in_place_end(const haft_in_place_t *in_place) {
    haft_thread()->current = in_place->performer;
    if (HAFT_UNLIKELY(in_place->outer->serial != in_place->serial))
        haft_in_place_moved(in_place->performer, in_place->outer);
}

/* A result of at most a word travels in the word that haft_resume is given, a larger one by address:
   the handler's copy is intact until the performer, which runs next, has read it. */
HAFT_INLINE void haft_unpack(const haft_effect_t *effect, void *word, void *result, size_t size) {
    bool in_word = size <= sizeof word;
    if (HAFT_UNLIKELY(!in_word && word == NULL))
        haft_no_reply(effect);
    __builtin_memcpy(result, in_word ? (const void *)&word : word, size);
}
HAFT_INLINE void *haft_pack(const void *result, size_t size) {
    void *word = NULL;
    if (size > sizeof word)
        return (void *)(uintptr_t)result;
    __builtin_memcpy(&word, result, size <= sizeof word ? size : 0);
    return word;
}

HAFT_INLINE void *haft_yield_hot(haft_fiber_t *fiber, haft_effect_t *effect, unsigned slot,
                                 void *payload) {
    haft_thread_t *thread = haft_thread();
    haft_cache_entry_t *entry = &thread->current->cache[slot % HAFT_CACHE_SLOTS];
    if (HAFT_UNLIKELY(entry->effect != effect || entry->scope != &fiber->scope || entry->clause != NULL ||
                      haft_exceptions_pending(thread)))
        return haft_yield_slow(fiber, effect, slot, payload);
    return haft_suspend(thread, fiber, effect, payload);
}

HAFT_INLINE haft_request_t haft_resume_hot(haft_fiber_t *fiber, void *word,
                                           const haft_handles_t *handles) {
    haft_thread_t *thread = haft_thread();
    uint64_t serial = thread->current->serial;
    if (HAFT_UNLIKELY(fiber->owner != serial || fiber->gate != HAFT_GATE_OPEN ||
                      (fiber->scope.handles != handles && fiber->alias != handles) ||
                      haft_exceptions_pending(thread)))
        return haft_resume_slow(fiber, word, handles);
    fiber->gate = HAFT_GATE_CLOSED;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (HAFT_UNLIKELY(fiber->owner != serial))
        haft_resume_raced(fiber);
    thread->current = fiber->top;
    haft_words_t words =
        haft_switch(&fiber->resumer, &fiber->context, (haft_words_t){word, HAFT_WAKE_REPLY});
    if (HAFT_UNLIKELY(words.second & HAFT_SPECIAL))
        return haft_arrived(fiber, words.second, words.first);
    fiber->gate = HAFT_GATE_OPEN;
    return (haft_request_t){(haft_effect_t *)words.second, words.first};
}

#endif
