/* SPDX-License-Identifier: MIT */
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
 *   only), and then exchanges the gate. One of the two sees the other. With three threads the second
 *   may have overwritten what the third wrote into `owner`: so whoever comes from elsewhere looks at it
 *   once more, and nobody changes anything else before.
 */
#ifndef HAFT_HOT_H
#define HAFT_HOT_H

/* What is right in C and is warned of in C++; for this header alone. */
#ifdef __cplusplus
#    pragma GCC diagnostic push
#    pragma GCC diagnostic ignored "-Wold-style-cast"
#    pragma GCC diagnostic ignored "-Wpedantic"
#    pragma GCC diagnostic ignored "-Wshadow"
#    ifdef __clang__
#        pragma GCC diagnostic ignored "-Wc99-extensions"
#    endif
#endif

#include "layout.h"

#if defined(__x86_64__)
#    include "switch_x86_64.h"
#elif defined(__aarch64__)
#    include "switch_aarch64.h"
#else
#    error "Haft runs on x86-64 and AArch64"
#endif

#if !defined(HAFT_FREESTANDING) && __has_include(<sys/single_threaded.h>)
#    include <sys/single_threaded.h>
#    define HAFT_TELLS_ALONE
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
 * The words of a switch. Into a fiber: the result of perform, or, special, how the fiber is woken
 * instead, in the second word. Out of a fiber: payload and effect; special, unless the fiber is only
 * suspended.
 */
enum haft_wake {
    HAFT_WAKE_REPLY = 0, /* the first word is the result of perform */
    HAFT_WAKE_UNWIND,    /* the first word is the fiber to unwind up to */
    HAFT_WAKE_CALL       /* the first word is a haft_call_t to run in place of a result */
};

#if defined(HAFT_FREESTANDING)
extern haft_thread_t haft_thread_state;
HAFT_INLINE haft_thread_t *haft_thread(void) {
    return &haft_thread_state;
}
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

/*
 * Where the code runs, for the hot paths: its thread, and the innermost scope. Good until the next
 * switch. On x86-64 a thread is known by the distance of its state from the thread pointer, and a word
 * is read there with no address in between. Volatile, and with memory clobbered, since the order among
 * these and the switches counts.
 */
typedef struct haft_here {
    uintptr_t thread;
    haft_scope_t *current;
} haft_here_t;

#if defined(__x86_64__) && !defined(HAFT_FREESTANDING)
HAFT_INLINE haft_here_t haft_here(void) {
    haft_here_t here;
    __asm__("movq haft_thread_state@gottpoff(%%rip), %0" : "=r"(here.thread));
    __asm__ volatile("movq %%fs:0(%1), %0" : "=r"(here.current) : "r"(here.thread) : "memory");
    return here;
}
HAFT_INLINE haft_exceptions_t *haft_exceptions(haft_here_t here) {
    haft_exceptions_t *exceptions;
    __asm__ volatile("movq %%fs:8(%1), %0" : "=r"(exceptions) : "r"(here.thread) : "memory");
    return exceptions;
}
HAFT_INLINE void haft_set_current(haft_here_t here, haft_scope_t *current) {
    __asm__ volatile("movq %0, %%fs:0(%1)" : : "r"(current), "r"(here.thread) : "memory");
}
#else
HAFT_INLINE haft_here_t haft_here(void) {
    haft_thread_t *thread = haft_thread();
    return (haft_here_t){(uintptr_t)thread, thread->current};
}
HAFT_INLINE haft_exceptions_t *haft_exceptions(haft_here_t here) {
    return ((haft_thread_t *)here.thread)->exceptions;
}
HAFT_INLINE void haft_set_current(haft_here_t here, haft_scope_t *current) {
    ((haft_thread_t *)here.thread)->current = current;
}
#endif

HAFT_API HAFT_COLD haft_found_t haft_lookup(haft_effect_t *effect, unsigned slot, uint32_t shape);
HAFT_API HAFT_COLD void *haft_suspend_slow(haft_found_t found, haft_effect_t *effect,
                                           void *payload);
HAFT_API HAFT_COLD void *haft_woken(void *word, uintptr_t wake);
HAFT_API haft_request_t haft_resume_slow(haft_fiber_t *fiber, void *word,
                                         const haft_handles_t *handles);
HAFT_API HAFT_COLD __attribute__((noreturn)) void haft_resume_raced(haft_fiber_t *fiber);
HAFT_API haft_request_t haft_arrived(haft_fiber_t *fiber, haft_effect_t *effect, void *payload);
HAFT_API HAFT_COLD void *haft_yield_slow(haft_fiber_t *fiber, haft_effect_t *effect, unsigned slot,
                                         void *payload);
HAFT_API HAFT_COLD void haft_declare(const haft_effect_t *effect, uint32_t shape,
                                     const char *where);
HAFT_API HAFT_COLD __attribute__((noreturn)) void haft_unhandled(haft_effect_t *effect);
HAFT_API HAFT_COLD __attribute__((noreturn)) void haft_no_reply(const haft_effect_t *effect);
HAFT_API HAFT_COLD __attribute__((noreturn)) void haft_no_case(const haft_effect_t *effect);

/* Whether the process has one thread, so that nothing need be atomic. */
HAFT_INLINE bool haft_is_alone(void) {
#if defined(HAFT_TELLS_ALONE)
    return __libc_single_threaded;
#elif defined(HAFT_FREESTANDING)
    return true;
#else
    return false;
#endif
}

/* C++ keeps the exceptions being handled in a global of the thread; while there are any, the
   out-of-line path saves them with the fiber. One comparison sees both fields: all of the pointer but
   its lowest 16 bits, and the low half of the count. (No object lies in the first 64 KiB, so a pointer
   that is not NULL has a bit set above the lowest 16.) */
HAFT_INLINE bool haft_exceptions_in(const haft_exceptions_t *exceptions) {
    uint64_t both;
    __builtin_memcpy(&both, (const char *)exceptions + 2, sizeof both);
    return both != 0;
}
HAFT_INLINE bool haft_exceptions_pending(haft_here_t here) {
    return haft_exceptions_in(haft_exceptions(here));
}

/*
 * The entry for `effect` with `marks`, by value. A handler of signals that performs may write to the slot
 * between two reads: so the key is read again when everything else has been.
 */
HAFT_INLINE bool haft_read_entry(const haft_cache_entry_t *entry, haft_effect_t *effect,
                                 unsigned marks, haft_found_t *found) {
    uintptr_t key = (uintptr_t)effect + marks;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (HAFT_UNLIKELY(entry->key != key))
        return false;
    found->with = *(const volatile uintptr_t *)&entry->found.with;
    found->scope = *(haft_scope_t *const volatile *)&entry->found.scope;
    if ((found->with & HAFT_CLAUSE_MARK) != (marks & HAFT_CLAUSE_MARK))
        __builtin_unreachable();
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return HAFT_LIKELY(entry->key == key);
}

/*
 * An effect has two places in the cache of a scope: the slot that its declaration gives, which is known
 * when the program is compiled, and one that is found at run time where the former is another effect's.
 */
HAFT_INLINE haft_cache_entry_t *haft_entry_in(haft_scope_t *scope, unsigned slot) {
    return &scope->cache[slot % HAFT_CACHE_SLOTS];
}
HAFT_INLINE haft_cache_entry_t *haft_second_entry(haft_scope_t *scope,
                                                  const haft_effect_t *effect) {
    uint32_t place = __atomic_load_n(&effect->place, __ATOMIC_RELAXED);
    return (haft_cache_entry_t *)(void *)((char *)scope->cache + place);
}

HAFT_INLINE haft_found_t haft_find(haft_here_t here, haft_effect_t *effect, unsigned slot,
                                   uint32_t shape) {
    const haft_cache_entry_t *entry = haft_entry_in(here.current, slot);
    haft_found_t found;
    if (HAFT_LIKELY(haft_read_entry(entry, effect, 0, &found)))
        return found;
    if (haft_read_entry(entry, effect, HAFT_CLAUSE_MARK, &found))
        return found;
    entry = haft_second_entry(here.current, effect);
    if (haft_read_entry(entry, effect, 0, &found) ||
        haft_read_entry(entry, effect, HAFT_CLAUSE_MARK, &found))
        return found;
    return haft_lookup(effect, slot, shape);
}

/* The clause that says what is done; NULL: the fiber of the scope is suspended. */
HAFT_INLINE const haft_clause_t *haft_clause_of(haft_found_t found) {
    return found.with & HAFT_CLAUSE_MARK ? (const haft_clause_t *)(found.with - HAFT_CLAUSE_MARK)
                                         : (const haft_clause_t *)0;
}
/* The same if that is called in place, else NULL; so it is for a default that was taken away. */
HAFT_INLINE const haft_clause_t *haft_clause_in_place(haft_found_t found) {
    const haft_clause_t *clause = haft_clause_of(found);
    return clause != (const haft_clause_t *)0 &&
                   __atomic_load_n(&clause->kind, __ATOMIC_RELAXED) == HAFT_CLAUSE_TAIL
               ? clause
               : (const haft_clause_t *)0;
}

HAFT_INLINE haft_fiber_t *haft_fiber_of(haft_scope_t *scope) {
    return (haft_fiber_t *)(void *)((char *)scope - offsetof(haft_fiber_t, scope));
}

/*
 * What a suspended fiber waits for, in a word: the effect, and marks that say whether a reply without a
 * value will do, and whether one in a word. A new fiber waits for no effect's reply.
 */
enum { HAFT_AWAITS_NOTHING = 1, HAFT_AWAITS_MUCH = 2 };
#ifdef __cplusplus
#    define HAFT_ADDRESS(pointer) (reinterpret_cast<uintptr_t>(pointer))
#else
#    define HAFT_ADDRESS(pointer) ((uintptr_t)(pointer))
#endif
#define HAFT_AWAITING(effect, result_size)                                                         \
    (HAFT_ADDRESS(effect) + ((result_size) == 0               ? HAFT_AWAITS_NOTHING                \
                             : (result_size) > sizeof(void *) ? HAFT_AWAITS_MUCH                   \
                                                              : 0))
HAFT_INLINE haft_effect_t *haft_effect_in(uintptr_t awaits) {
    return (haft_effect_t *)(awaits & ~(uintptr_t)(HAFT_AWAITS_NOTHING | HAFT_AWAITS_MUCH));
}
HAFT_INLINE haft_effect_t *haft_awaited(const haft_fiber_t *fiber) {
    return haft_effect_in(fiber->scope.awaits);
}
/* Whether a fiber that waits for `awaits` can be given the reply to `replied`, a word of the same kind; 0:
   no reply. */
HAFT_INLINE bool haft_is_reply_to(uintptr_t awaits, uintptr_t replied) {
    return replied == 0 ? (awaits & HAFT_AWAITS_NOTHING) != 0 : awaits == replied;
}

/* Suspends `fiber`, the current one or one that it runs in; its haft_resume returns the request. */
HAFT_INLINE void *haft_suspend(haft_here_t here, haft_fiber_t *fiber, uintptr_t awaits,
                               uintptr_t with, void *payload) {
    fiber->top = here.current;
    fiber->scope.awaits = awaits;
    haft_set_current(here, fiber->scope.outer);
    haft_words_t words = haft_switch_out_of(fiber, payload, with);
    if (HAFT_UNLIKELY(words.special))
        return haft_woken(words.first, words.second);
    return words.first;
}

/* A default may be set by another thread at any time. */
HAFT_INLINE haft_function_t *haft_clause_function(const haft_clause_t *clause) {
    return __atomic_load_n(&clause->function, __ATOMIC_RELAXED);
}

/* Performs an effect whose clause is not called in place. */
HAFT_INLINE void *haft_perform_found(haft_here_t here, haft_found_t found, haft_effect_t *effect,
                                     void *payload, size_t result_size) {
    if (HAFT_UNLIKELY((found.with & HAFT_CLAUSE_MARK) != 0 || haft_exceptions_pending(here)))
        return haft_suspend_slow(found, effect, payload);
    return haft_suspend(here, haft_fiber_of(found.scope), HAFT_AWAITING(effect, result_size),
                        found.with, payload);
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

HAFT_INLINE haft_in_place_t haft_in_place_begin(haft_here_t here, const haft_scope_t *handler) {
    haft_in_place_t in_place = {here.current, handler->outer, handler->outer->serial};
    haft_set_current(here, handler->outer);
    return in_place;
}
/* In this order: a signal handler that performs meanwhile remembers what it finds in the current scope,
   and must not do so in one that is being renewed. */
HAFT_INLINE void haft_in_place_end(const haft_in_place_t *in_place) {
    if (HAFT_UNLIKELY(in_place->outer->serial != in_place->serial))
        haft_in_place_moved(in_place->performer, in_place->outer);
    haft_set_current(haft_here(), in_place->performer);
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
                                 void *payload, size_t result_size) {
    haft_here_t here = haft_here();
    haft_found_t found;
    if (HAFT_UNLIKELY(
            (!haft_read_entry(haft_entry_in(here.current, slot), effect, 0, &found) &&
             !haft_read_entry(haft_second_entry(here.current, effect), effect, 0, &found)) ||
            found.scope != &fiber->scope || haft_exceptions_pending(here)))
        return haft_yield_slow(fiber, effect, slot, payload);
    return haft_suspend(here, fiber, HAFT_AWAITING(effect, result_size), found.with, payload);
}

/* Whether the current scope may resume the fiber, under the handler that it had, without further ado. */
HAFT_INLINE bool haft_resumes_again(haft_here_t here, const haft_fiber_t *fiber) {
    return HAFT_LIKELY(fiber->owner == here.current->serial && fiber->gate == HAFT_GATE_OPEN &&
                       !haft_exceptions_pending(here));
}
/* The same for a handler of these effects. */
HAFT_INLINE bool haft_resumes_hot(haft_here_t here, const haft_fiber_t *fiber,
                                  const haft_handles_t *handles) {
    return haft_resumes_again(here, fiber) &&
           (HAFT_LIKELY(fiber->scope.handles == handles) ||
            (handles != (const haft_handles_t *)0 &&
             fiber->set == __atomic_load_n(&handles->number, __ATOMIC_RELAXED)));
}
/* Resumes it then; whatever comes back special has not been looked at, and the gate is closed. */
HAFT_INLINE haft_words_t haft_resume_now(haft_here_t here, haft_fiber_t *fiber, void *word) {
    uint64_t serial = here.current->serial;
    fiber->gate = HAFT_GATE_CLOSED;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (HAFT_UNLIKELY(fiber->owner != serial))
        haft_resume_raced(fiber);
    haft_set_current(here, fiber->top);
    return haft_switch_into(fiber, word);
}

/* Where haft_resumes_hot says so. */
HAFT_INLINE haft_request_t haft_resume_known(haft_here_t here, haft_fiber_t *fiber, void *word) {
    haft_words_t words = haft_resume_now(here, fiber, word);
    if (HAFT_UNLIKELY(words.special))
        return haft_arrived(fiber, (haft_effect_t *)words.second, words.first);
    fiber->gate = HAFT_GATE_OPEN;
    return (haft_request_t){(haft_effect_t *)words.second, words.first};
}

/* For languages that check replies themselves. */
HAFT_INLINE haft_request_t haft_resume_hot(haft_fiber_t *fiber, void *word,
                                           const haft_handles_t *handles) {
    haft_here_t here = haft_here();
    if (HAFT_UNLIKELY(!haft_resumes_hot(here, fiber, handles)))
        return haft_resume_slow(fiber, word, handles);
    return haft_resume_known(here, fiber, word);
}

#ifdef __cplusplus
#    pragma GCC diagnostic pop
#endif

#endif
