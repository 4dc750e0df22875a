/* SPDX-License-Identifier: MIT */
/*
 * The hot paths: finding a handler, suspending a fiber, resuming one. Everything here is inlined
 * into the caller; rare cases are functions of the library, marked cold.
 *
 * Invariants
 * - The thread is looked up afresh after every switch: a fiber may wake up on another thread, so no
 *   address derived from the thread pointer survives a switch (hafti_thread is volatile assembly).
 * - The resumer opens `gate` when it has arrived back; the fiber does not open it on its way out,
 *   because its context is not complete before.
 * - Two threads that resume one fiber at once cannot both get in. The hot path, which only the
 *   scope named by `owner` can take, closes the gate and then reads `owner` again. A resume from
 *   another scope writes `owner`, makes the first thread's stores visible (membarrier, on the slow
 *   path only), and then exchanges the gate. So one of the two threads sees the other. With three
 *   threads, the second may have overwritten what the third wrote into `owner`: so a resume from
 *   another scope reads `owner` once more, before it changes anything else.
 */
#ifndef HAFTI_HOT_H
#define HAFTI_HOT_H

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
#    define HAFTI_TELLS_ALONE
#endif

#define HAFTI_LIKELY(x) __builtin_expect(!!(x), 1)
#define HAFTI_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HAFTI_COLD __attribute__((cold, noinline))
#ifdef __cplusplus
/* Not static: templates of haft.hpp that a module exports may not name functions with internal
   linkage. */
#    define HAFTI_INLINE inline __attribute__((always_inline))
#else
#    define HAFTI_INLINE static inline __attribute__((always_inline, unused))
#endif
/* The library's functions are bound when the program starts, also where it is linked for late
   binding, which takes some 3 KiB of the stack that makes the first call: a fiber's, perhaps. */
#define HAFTI_DATA __attribute__((visibility("default")))
#if defined(HAFT_FREESTANDING) || !defined(__has_attribute)
#    define HAFTI_API HAFTI_DATA
#elif __has_attribute(noplt)
#    define HAFTI_API __attribute__((visibility("default"), noplt))
#else
#    define HAFTI_API HAFTI_DATA
#endif

typedef struct haft_request {
    haft_effect_t *effect;
    void *payload;
} haft_request_t;

/*
 * The words of a switch. Into a fiber, the first word is the result of perform; if the switch is
 * special, the second word is the way in which the fiber is woken instead. Out of a fiber, the
 * words are payload and effect; the switch is special unless it only suspends the fiber.
 */
enum hafti_wake {
    HAFTI_WAKE_REPLY = 0, /* the first word is the result of perform */
    HAFTI_WAKE_UNWIND,    /* the first word is the fiber to unwind up to */
    HAFTI_WAKE_CALL       /* the first word is a haft_call_t to run in place of a result */
};

#if defined(HAFT_FREESTANDING)
extern hafti_thread_t hafti_thread_state;
HAFTI_INLINE hafti_thread_t *hafti_thread(void) {
    return &hafti_thread_state;
}
#else
extern HAFTI_DATA __thread __attribute__((tls_model("initial-exec")))
hafti_thread_t hafti_thread_state;
HAFTI_INLINE hafti_thread_t *hafti_thread(void) {
    hafti_thread_t *thread;
#    if defined(__x86_64__)
    __asm__ volatile("movq %%fs:0, %0\n\taddq hafti_thread_state@gottpoff(%%rip), %0"
                     : "=r"(thread)
                     :
                     : "cc");
#    elif defined(__aarch64__)
    void *offset;
    __asm__ volatile("mrs %0, tpidr_el0\n\t"
                     "adrp %1, :gottprel:hafti_thread_state\n\t"
                     "ldr %1, [%1, #:gottprel_lo12:hafti_thread_state]\n\t"
                     "add %0, %0, %1"
                     : "=&r"(thread), "=&r"(offset));
#    endif
    return thread;
}
#endif

/*
 * Where the code runs, for the hot paths: its thread, and the innermost scope. Valid until the next
 * switch. On x86-64 `thread` is the distance of the thread's state from the thread pointer, so that
 * one instruction reads a word of the state. The assembly is volatile and clobbers memory, since
 * its order among the switches matters.
 */
typedef struct hafti_here {
    uintptr_t thread;
    hafti_scope_t *current;
} hafti_here_t;

#if defined(__x86_64__) && !defined(HAFT_FREESTANDING)
HAFTI_INLINE hafti_here_t hafti_here(void) {
    hafti_here_t here;
    /* Volatile, too: in a loop with a switch compilers would keep the distance on the stack, and
       every address would wait for a line of the fiber's stack. */
    __asm__ volatile("movq hafti_thread_state@gottpoff(%%rip), %0" : "=r"(here.thread));
    __asm__ volatile("movq %%fs:0(%1), %0" : "=r"(here.current) : "r"(here.thread) : "memory");
    return here;
}
HAFTI_INLINE hafti_exceptions_t *hafti_exceptions(hafti_here_t here) {
    hafti_exceptions_t *exceptions;
    __asm__ volatile("movq %%fs:8(%1), %0" : "=r"(exceptions) : "r"(here.thread) : "memory");
    return exceptions;
}
HAFTI_INLINE void hafti_set_current(hafti_here_t here, hafti_scope_t *current) {
    __asm__ volatile("movq %0, %%fs:0(%1)" : : "r"(current), "r"(here.thread) : "memory");
}
#else
HAFTI_INLINE hafti_here_t hafti_here(void) {
    hafti_thread_t *thread = hafti_thread();
    return (hafti_here_t){(uintptr_t)thread, thread->current};
}
HAFTI_INLINE hafti_exceptions_t *hafti_exceptions(hafti_here_t here) {
    return ((hafti_thread_t *)here.thread)->exceptions;
}
HAFTI_INLINE void hafti_set_current(hafti_here_t here, hafti_scope_t *current) {
    ((hafti_thread_t *)here.thread)->current = current;
}
#endif

HAFTI_API HAFTI_COLD hafti_found_t hafti_lookup(haft_effect_t *effect, unsigned slot,
                                                uint32_t shape);
HAFTI_API HAFTI_COLD void *hafti_suspend_slow(hafti_found_t found, haft_effect_t *effect,
                                              void *payload);
HAFTI_API HAFTI_COLD void *hafti_woken(void *word, uintptr_t wake);
HAFTI_API haft_request_t hafti_resume_slow(haft_fiber_t *fiber, void *word,
                                           const haft_handles_t *handles);
HAFTI_API HAFTI_COLD __attribute__((noreturn)) void hafti_resume_raced(haft_fiber_t *fiber);
HAFTI_API void hafti_look_at_stack(haft_fiber_t *fiber);
HAFTI_API haft_request_t hafti_arrived(haft_fiber_t *fiber, haft_effect_t *effect, void *payload);
HAFTI_API HAFTI_COLD void *hafti_yield_slow(haft_fiber_t *fiber, haft_effect_t *effect,
                                            unsigned slot, void *payload);
HAFTI_API HAFTI_COLD void hafti_declare(const haft_effect_t *effect, uint32_t shape,
                                        const char *where);
HAFTI_API HAFTI_COLD __attribute__((noreturn)) void hafti_unhandled(haft_effect_t *effect);
HAFTI_API HAFTI_COLD __attribute__((noreturn)) void hafti_no_reply(const haft_effect_t *effect);
HAFTI_API HAFTI_COLD __attribute__((noreturn)) void hafti_no_case(const haft_effect_t *effect);

/* Whether the process has one thread, so that nothing need be atomic. */
HAFTI_INLINE bool hafti_is_alone(void) {
#if defined(HAFTI_TELLS_ALONE)
    return __libc_single_threaded;
#elif defined(HAFT_FREESTANDING)
    return true;
#else
    return false;
#endif
}

/* C++ keeps the exceptions being handled in a global of the thread; while there are any, the
   out-of-line path saves them with the fiber. One comparison reads both fields: the pointer without
   its lowest 16 bits, and the low half of the count. (No object lies in the first 64 KiB, so a
   pointer that is not NULL has a bit set above the lowest 16.) */
HAFTI_INLINE bool hafti_exceptions_in(const hafti_exceptions_t *exceptions) {
    uint64_t both;
    __builtin_memcpy(&both, (const char *)exceptions + 2, sizeof both);
    return both != 0;
}
HAFTI_INLINE bool hafti_exceptions_pending(hafti_here_t here) {
    return hafti_exceptions_in(hafti_exceptions(here));
}

/*
 * Reads the entry for `effect` with `marks`. A signal handler that performs may write to the entry
 * between two reads, so the key is read again at the end.
 */
HAFTI_INLINE bool hafti_read_entry(const hafti_cache_entry_t *entry, haft_effect_t *effect,
                                   unsigned marks, hafti_found_t *found) {
    uintptr_t key = (uintptr_t)effect + marks;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (HAFTI_UNLIKELY(entry->key != key))
        return false;
    found->with = *(const volatile uintptr_t *)&entry->found.with;
    found->scope = *(hafti_scope_t *const volatile *)&entry->found.scope;
    if ((found->with & HAFTI_CLAUSE_MARK) != (marks & HAFTI_CLAUSE_MARK))
        __builtin_unreachable();
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return HAFTI_LIKELY(entry->key == key);
}

/* Reads an entry that has HAFTI_CLAUSE_MARK or no mark. */
HAFTI_INLINE bool hafti_read_either(const hafti_cache_entry_t *entry, haft_effect_t *effect,
                                    hafti_found_t *found) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uintptr_t key = *(const volatile uintptr_t *)&entry->key;
    if (HAFTI_UNLIKELY((key & ~(uintptr_t)HAFTI_CLAUSE_MARK) != (uintptr_t)effect))
        return false;
    found->with = *(const volatile uintptr_t *)&entry->found.with;
    found->scope = *(hafti_scope_t *const volatile *)&entry->found.scope;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return HAFTI_LIKELY(entry->key == key);
}

/*
 * An effect has two places in the cache of a scope: the slot that its declaration gives, which the
 * compiler knows, and one that is chosen at run time, for when another effect has the slot.
 */
HAFTI_INLINE hafti_cache_entry_t *hafti_entry_in(hafti_scope_t *scope, unsigned slot) {
    return &scope->cache[slot % HAFTI_CACHE_SLOTS];
}
HAFTI_INLINE hafti_cache_entry_t *hafti_second_entry(hafti_scope_t *scope,
                                                     const haft_effect_t *effect) {
    uint32_t place = __atomic_load_n(&effect->place, __ATOMIC_RELAXED);
    return (hafti_cache_entry_t *)(void *)((char *)scope->cache + place);
}

HAFTI_INLINE haft_fiber_t *hafti_fiber_of(hafti_scope_t *scope) {
    return (haft_fiber_t *)(void *)((char *)scope - offsetof(haft_fiber_t, scope));
}

/* Whether the code runs on the stack of the fiber. A signal handler does not, nor does a clause in
   place that a fiber further in has called. */
HAFTI_INLINE bool hafti_is_on(const haft_fiber_t *fiber) {
    uintptr_t sp;
#if defined(__x86_64__)
    __asm__("movq %%rsp, %0" : "=r"(sp));
#else
    __asm__("mov %0, sp" : "=r"(sp));
#endif
    return HAFTI_LIKELY((uintptr_t)fiber - sp <= fiber->resumer.room);
}

/*
 * Whether the effect is a request to the current scope, which then is a fiber's: the set of the
 * scope has the number of a set in which the effect was found to be a request. This reads no cache
 * of a scope, which lies on further lines of the fiber's header, and a new fiber needs no lookup
 * first.
 */
HAFTI_INLINE bool hafti_is_requested(hafti_here_t here, const haft_effect_t *effect) {
    uint32_t requested = __atomic_load_n(&effect->requested, __ATOMIC_RELAXED);
    return requested != 0 && /* an effect that clauses take costs one test */
           __atomic_load_n(&here.current->handles->number, __ATOMIC_RELAXED) == requested &&
           hafti_is_on(hafti_fiber_of(here.current));
}

/* Finds what handles the effect. The first perform of a thread changes `*here`. */
HAFTI_INLINE hafti_found_t hafti_find(hafti_here_t *here, haft_effect_t *effect, unsigned slot,
                                      uint32_t shape) {
    if (HAFTI_LIKELY(hafti_is_requested(*here, effect))) {
        if (((uintptr_t)effect & HAFTI_CLAUSE_MARK) != 0)
            __builtin_unreachable();
        return (hafti_found_t){(uintptr_t)effect, here->current};
    }
    const hafti_cache_entry_t *entry = hafti_entry_in(here->current, slot);
    hafti_found_t found;
    if (HAFTI_LIKELY(hafti_read_entry(entry, effect, HAFTI_CLAUSE_MARK, &found)))
        return found; /* first: beside a call in place each test counts */
    if (HAFTI_LIKELY(hafti_read_entry(entry, effect, 0, &found)))
        return found;
    if (hafti_read_either(hafti_second_entry(here->current, effect), effect, &found))
        return found;
    found = hafti_lookup(effect, slot, shape);
    *here = hafti_here();
    return found;
}

/* The clause that handles the effect; NULL: the perform suspends the fiber of the scope. */
HAFTI_INLINE const haft_clause_t *hafti_clause_of(hafti_found_t found) {
    return found.with & HAFTI_CLAUSE_MARK ? (const haft_clause_t *)(found.with - HAFTI_CLAUSE_MARK)
                                          : (const haft_clause_t *)0;
}
/* The clause if it is called in place, else NULL; NULL for a default that was taken away, too. */
HAFTI_INLINE const haft_clause_t *hafti_clause_in_place(hafti_found_t found) {
    const haft_clause_t *clause = hafti_clause_of(found);
    return clause != (const haft_clause_t *)0 &&
                   __atomic_load_n(&clause->kind, __ATOMIC_RELAXED) == HAFT_CLAUSE_TAIL
               ? clause
               : (const haft_clause_t *)0;
}

/*
 * The reply that a suspended fiber awaits, in a word: the effect, and marks for an effect without a
 * result, or with one larger than a word. A new fiber awaits no effect's reply.
 */
enum { HAFTI_AWAITS_NOTHING = 1, HAFTI_AWAITS_MUCH = 2 };
#ifdef __cplusplus
#    define HAFTI_ADDRESS(pointer) (reinterpret_cast<uintptr_t>(pointer))
#else
#    define HAFTI_ADDRESS(pointer) ((uintptr_t)(pointer))
#endif
#define HAFTI_AWAITING(effect, result_size)                                                        \
    (HAFTI_ADDRESS(effect) + ((result_size) == 0               ? HAFTI_AWAITS_NOTHING              \
                              : (result_size) > sizeof(void *) ? HAFTI_AWAITS_MUCH                 \
                                                               : 0))
HAFTI_INLINE haft_effect_t *hafti_effect_in(uintptr_t awaits) {
    return (haft_effect_t *)(awaits & ~(uintptr_t)(HAFTI_AWAITS_NOTHING | HAFTI_AWAITS_MUCH));
}
HAFTI_INLINE haft_effect_t *hafti_awaited(const haft_fiber_t *fiber) {
    return hafti_effect_in(fiber->awaits);
}
/* Whether the reply to `replied`, a word like `awaits`, fits a fiber that waits for `awaits`; 0: no
   reply. */
HAFTI_INLINE bool hafti_is_reply_to(uintptr_t awaits, uintptr_t replied) {
    return replied == 0 ? (awaits & HAFTI_AWAITS_NOTHING) != 0 : awaits == replied;
}

/* Suspends `fiber`, the current fiber or one around it; the haft_resume of `fiber` returns the
   request. */
HAFTI_INLINE void *hafti_suspend(hafti_here_t here, haft_fiber_t *fiber, uintptr_t awaits,
                                 uintptr_t with, void *payload) {
    fiber->top = here.current;
    fiber->awaits = awaits;
    hafti_set_current(here, fiber->scope.outer);
    hafti_words_t words = hafti_switch_out_of(fiber, payload, with);
    if (HAFTI_UNLIKELY(words.special))
        return hafti_woken(words.first, words.second);
    return words.first;
}

/* A default may be set by another thread at any time. */
HAFTI_INLINE haft_function_t *hafti_clause_function(const haft_clause_t *clause) {
    return __atomic_load_n(&clause->function, __ATOMIC_RELAXED);
}

/* Returns the address, and hides from the compiler that it is the same: after a comparison with a
   word from memory, the compiler would use that word all the same. */
HAFTI_INLINE void *hafti_same(void *address) {
    __asm__ volatile("" : "+r"(address));
    return address;
}

/* Performs an effect whose clause is not called in place. */
HAFTI_INLINE void *hafti_perform_found(hafti_here_t here, hafti_found_t found,
                                       haft_effect_t *effect, void *payload, size_t result_size) {
    if (HAFTI_UNLIKELY((found.with & HAFTI_CLAUSE_MARK) != 0 || hafti_exceptions_pending(here)))
        return hafti_suspend_slow(found, effect, payload);
    /* Mostly it is the innermost handler's scope. A predicted branch then replaces a load for which
       the address of the whole switch would wait. */
    hafti_scope_t *scope = found.scope;
    if (HAFTI_LIKELY(scope == here.current))
        scope = (hafti_scope_t *)hafti_same(here.current);
    return hafti_suspend(here, hafti_fiber_of(scope), HAFTI_AWAITING(effect, result_size),
                         found.with, payload);
}

/*
 * While a clause runs in place, the scopes up to and including its handler's are out of reach. The
 * clause may suspend a fiber, and the code that resumes the fiber does not reach these scopes
 * either. If the chain further out has changed meanwhile, which its serial shows, they are renewed
 * when the clause returns.
 */
typedef struct hafti_in_place {
    hafti_scope_t *performer;
    hafti_scope_t *outer; /* the scope around the handler's, under which the clause runs */
    uint64_t serial;      /* of `outer` */
} hafti_in_place_t;
/* By value: if a cold call took an address, the object would lie in memory on the hot path, too. */
HAFTI_API HAFTI_COLD void hafti_in_place_moved(hafti_scope_t *performer,
                                               const hafti_scope_t *outer);

HAFTI_INLINE hafti_in_place_t hafti_in_place_begin(hafti_here_t here,
                                                   const hafti_scope_t *handler) {
    hafti_in_place_t in_place = {here.current, handler->outer, handler->outer->serial};
    hafti_set_current(here, handler->outer);
    return in_place;
}
/* The order matters: a signal handler that performs meanwhile writes what it finds to the cache of
   the current scope, which must not be one that is being renewed. */
HAFTI_INLINE void hafti_in_place_end(const hafti_in_place_t *in_place) {
    if (HAFTI_UNLIKELY(in_place->outer->serial != in_place->serial))
        hafti_in_place_moved(in_place->performer, in_place->outer);
    hafti_set_current(hafti_here(), in_place->performer);
}

/* A result of at most a word travels in the word of the switch, a larger one by its address: the
   handler's copy stays until the performer, which runs next, has read it. */
HAFTI_INLINE void hafti_unpack(const haft_effect_t *effect, void *word, void *result, size_t size) {
    bool in_word = size <= sizeof word;
    if (HAFTI_UNLIKELY(!in_word && word == NULL))
        hafti_no_reply(effect);
    __builtin_memcpy(result, in_word ? (const void *)&word : word, size);
}
HAFTI_INLINE void *hafti_pack(const void *result, size_t size) {
    void *word = NULL;
    if (size > sizeof word)
        return (void *)(uintptr_t)result;
    __builtin_memcpy(&word, result, size <= sizeof word ? size : 0);
    return word;
}

HAFTI_INLINE void *hafti_yield_hot(haft_fiber_t *fiber, haft_effect_t *effect, unsigned slot,
                                   void *payload, size_t result_size) {
    hafti_here_t here = hafti_here();
    if (HAFTI_LIKELY(hafti_is_requested(here, effect) && here.current == &fiber->scope &&
                     !hafti_exceptions_pending(here)))
        return hafti_suspend(here, fiber, HAFTI_AWAITING(effect, result_size), (uintptr_t)effect,
                             payload);
    hafti_found_t found;
    if (HAFTI_UNLIKELY(
            (!hafti_read_entry(hafti_entry_in(here.current, slot), effect, 0, &found) &&
             !hafti_read_entry(hafti_second_entry(here.current, effect), effect, 0, &found)) ||
            found.scope != &fiber->scope || hafti_exceptions_pending(here)))
        return hafti_yield_slow(fiber, effect, slot, payload);
    return hafti_suspend(here, fiber, HAFTI_AWAITING(effect, result_size), found.with, payload);
}

/* Whether the current scope may resume the fiber by the hot path, under the handler that it had. */
HAFTI_INLINE bool hafti_resumes_again(hafti_here_t here, const haft_fiber_t *fiber) {
    return HAFTI_LIKELY(fiber->owner == here.current->serial &&
                        fiber->context.gate == HAFTI_GATE_OPEN && !hafti_exceptions_pending(here));
}
/* Whether it may resume the fiber so under a handler of these effects. */
HAFTI_INLINE bool hafti_resumes_hot(hafti_here_t here, const haft_fiber_t *fiber,
                                    const haft_handles_t *handles) {
    return hafti_resumes_again(here, fiber) &&
           (HAFTI_LIKELY(fiber->scope.handles == handles) ||
            (handles != (const haft_handles_t *)0 &&
             fiber->set == __atomic_load_n(&handles->number, __ATOMIC_RELAXED)));
}
/* The innermost scope of a suspended chain, which mostly is the fiber's own. A predicted branch
   then replaces a load: what the resumer does after the fiber's next request waits for no line of
   the fiber, so the lines of many fibers in turn are fetched at the same time. */
HAFTI_INLINE hafti_scope_t *hafti_top_of(haft_fiber_t *fiber) {
    hafti_scope_t *top = fiber->top;
    return HAFTI_LIKELY(top == &fiber->scope) ? &((haft_fiber_t *)hafti_same(fiber))->scope : top;
}

/* Resumes the fiber, for which hafti_resumes_hot is true. If the words that come back are special,
   the caller deals with them, and the gate is still closed. */
HAFTI_INLINE hafti_words_t hafti_resume_now(hafti_here_t here, haft_fiber_t *fiber, void *word) {
    uint64_t serial = here.current->serial;
    fiber->context.gate = HAFTI_GATE_CLOSED;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (HAFTI_UNLIKELY(fiber->owner != serial))
        hafti_resume_raced(fiber);
    hafti_set_current(here, hafti_top_of(fiber));
    return hafti_switch_into(fiber, word);
}

/* The fiber has been suspended, and its resumer has arrived back. */
HAFTI_INLINE void hafti_open_gate(haft_fiber_t *fiber) {
    if (HAFTI_UNLIKELY((fiber->resumer.room & HAFTI_ROOM_LOOK) != 0))
        hafti_look_at_stack(fiber);
    fiber->context.gate = HAFTI_GATE_OPEN;
}

/* Resumes the same fiber, and returns its request. */
HAFTI_INLINE haft_request_t hafti_resume_known(hafti_here_t here, haft_fiber_t *fiber, void *word) {
    hafti_words_t words = hafti_resume_now(here, fiber, word);
    if (HAFTI_UNLIKELY(words.special))
        return hafti_arrived(fiber, (haft_effect_t *)words.second, words.first);
    hafti_open_gate(fiber);
    return (haft_request_t){(haft_effect_t *)words.second, words.first};
}

/* For languages that check replies themselves. */
HAFTI_INLINE haft_request_t hafti_resume_hot(haft_fiber_t *fiber, void *word,
                                             const haft_handles_t *handles) {
    hafti_here_t here = hafti_here();
    if (HAFTI_UNLIKELY(!hafti_resumes_hot(here, fiber, handles)))
        return hafti_resume_slow(fiber, word, handles);
    return hafti_resume_known(here, fiber, word);
}

#endif
