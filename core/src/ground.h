/* SPDX-License-Identifier: MIT */
/*
 * The ground floor: messages, the threads' states, signals, and what can be read from a fiber's
 * header alone. Every source includes the header of its floor, which includes those below;
 * tools/floors.txt has the floors.
 */
#ifndef HAFT_GROUND_H
#define HAFT_GROUND_H

#include "entries.h"

#include <haft.h>
#include <haft/language.h>
#include <haft/observe.h>
#include <haft/inner/segments.h>

/* error.c */
/* Label for messages: 'the fiber NAME', 'the unnamed fiber 0x...', or 'the thread's own stack'. */
const char *haft_fiber_label(const haft_fiber_t *fiber);
/* Names the call that returns to the address: ' at FILE+0xOFFSET', or nothing. */
const char *haft_place_label(const void *returns_to);
/* End of a message: the advice of the library that has made the fiber (haft_set_stack_advice). */
const char *haft_advice_of(const haft_fiber_t *fiber, const char *otherwise);
/* NULL: the default. */
haft_error_handler_t *haft_error_handler(void);
/* A line on standard error. */
void haft_print(const char *message);
void haft_report(haft_error_code_t code, const haft_effect_t *effect, const haft_fiber_t *fiber,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same for errors that nothing can follow. */
__attribute__((noreturn, format(printf, 4, 5))) void haft_fail(haft_error_code_t code,
                                                               const haft_effect_t *effect,
                                                               const haft_fiber_t *fiber,
                                                               const char *format, ...);

#ifndef HAFT_FREESTANDING
/* refusals.c: haft_refuse, for core's own functions. */
HAFTI_COLD int haft_refused(int number, const char *function, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#endif

/* For arguments that must not be NULL: "FUNCTION was given no THING (NULL)." */
HAFTI_COLD __attribute__((noreturn)) void haft_not_given(const char *function, const char *thing);
HAFTI_INLINE void haft_check_given(const void *argument, const char *function, const char *thing) {
    if (HAFTI_UNLIKELY(argument == NULL))
        haft_not_given(function, thing);
}

/* The word of what a fiber waits for that has performed `effect`. */
HAFTI_INLINE uintptr_t haft_awaiting(const haft_effect_t *effect) {
    return HAFTI_AWAITING(effect, effect->result_size);
}

/* For functions that announce a switch to the sanitizer and still run until it comes. */
#if defined(__clang__)
#    define HAFT_UNINSTRUMENTED                                                                    \
        __attribute__((disable_sanitizer_instrumentation,                                          \
                       no_sanitize("address", "thread", "undefined")))
#else
#    define HAFT_UNINSTRUMENTED                                                                    \
        __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))
#endif

/* For functions whose frames are known by the function's address. */
#if defined(__has_attribute)
#    if __has_attribute(noclone)
#        define HAFT_ONE_FUNCTION __attribute__((noinline, noclone))
#    endif
#endif
#ifndef HAFT_ONE_FUNCTION
#    define HAFT_ONE_FUNCTION __attribute__((noinline))
#endif

/* thread.c: the calling thread's state, made ready on its first use. */
HAFTI_COLD void haft_thread_start(hafti_thread_t *thread);
/*
 * Functions of the floors above, for the begin and end of threads and the process. The ground calls
 * up here and in hafti_segments_failed only. Defined in life.c.
 */
typedef struct haft_life {
    bool (*process_starts)(void); /* returns whether tools want to be told of every resume */
    void (*thread_starts)(hafti_thread_t *thread);
    void (*thread_ends)(hafti_thread_t *thread);
} haft_life_t;
extern const haft_life_t haft_life;

/* The current scope of a thread before its first use of the library. A perform in place that is
   that first use restores it afterwards. All threads share it, so nothing is ever written there. */
extern hafti_scope_t haft_unborn;
/* The empty set: no scope is without one. */
extern const haft_handles_t haft_handles_none;
HAFTI_INLINE hafti_thread_t *haft_thread_ready(void) {
    hafti_thread_t *thread = hafti_thread();
    if (HAFTI_UNLIKELY(thread->current == &haft_unborn))
        haft_thread_start(thread);
    return thread;
}
/* Draws a serial, in one step as far as signal handlers can see. */
HAFTI_INLINE uint64_t haft_next_stamp(hafti_thread_t *thread) {
    uint64_t stamp;
#if defined(__x86_64__)
    stamp = 1;
    __asm__ volatile("xaddq %0, %1" : "+r"(stamp), "+m"(thread->stamp) : : "cc");
    stamp++;
#else
    uint32_t interrupted;
    __asm__ volatile("1:\tldxr %0, %2\n\t"
                     "add %0, %0, #1\n\t"
                     "stxr %w1, %0, %2\n\t"
                     "cbnz %w1, 1b"
                     : "=&r"(stamp), "=&r"(interrupted), "+Q"(thread->stamp));
#endif
    return stamp;
}
/* A number that was never drawn before: for serials. */
uint64_t haft_stamp_block(hafti_thread_t *thread);
enum { HAFT_STAMP_BITS = 64 - HAFTI_THREAD_BITS };
HAFTI_INLINE uint64_t haft_stamp(hafti_thread_t *thread) {
    uint64_t stamp = haft_next_stamp(thread);
    return HAFTI_LIKELY(stamp << HAFTI_THREAD_BITS != 0) ? stamp : haft_stamp_block(thread);
}
/* For paths out of line: the state whose roots and stacks the thread's code uses. */
HAFTI_INLINE hafti_thread_t *haft_home(hafti_thread_t *thread) {
    return HAFTI_LIKELY(thread->home == NULL) ? thread : thread->home;
}
HAFTI_INLINE bool haft_drawn_on(uint64_t stamp, const hafti_thread_t *thread) {
    return stamp >> HAFT_STAMP_BITS == thread->stamp >> HAFT_STAMP_BITS;
}
extern hafti_exceptions_t haft_no_exceptions;
/* Keeps every resume off the hot path: a tool has to be told of switches, or there is no barrier
   that could tell two threads apart. */
extern bool haft_resume_slowly;
/* Distance from the thread pointer to the thread's state; 0 before the first use. For debuggers. */
extern intptr_t haft_thread_offset;
/* Value of `thread->exceptions` where no inlined path may switch: every field counts as an
   exception. */
extern hafti_exceptions_t haft_always_pending;
/* Makes what every thread of the process has stored so far visible to this one. */
void haft_thread_barrier(void);

/* The language of the process, or NULL. */
extern const haft_language_t *haft_process_language;

/* The kinds of stacks: see stacks.h. */
enum haft_fiber_kind {
    HAFT_KIND_POOL,
    HAFT_KIND_FIXED,
    HAFT_KIND_SEGMENTED,
    HAFT_KIND_UNGUARDED, /* in the pool, but with a canary below its stack */
    HAFT_KIND_COPIED     /* a stage in the pool (copies.h), until its copies are gone */
};

/* state.c */
/* An error if the frames of `fiber` are another language's, to be used by its means only. */
void haft_check_own(const haft_fiber_t *fiber, const char *what);
HAFTI_INLINE haft_fiber_t *haft_scope_fiber(hafti_scope_t *scope) {
    while (scope != NULL && scope->kind != HAFTI_SCOPE_FIBER)
        scope = scope->outer;
    return scope == NULL ? NULL : hafti_fiber_of(scope);
}

/* The result of a lookup from a scope, whose serial also stands for all that lies outwards. */
typedef struct haft_known {
    uint64_t serial;
    haft_effect_t *effect;
    hafti_found_t found;
} haft_known_t;

#ifdef HAFT_FREESTANDING
#    include "freestanding.h"
#else

enum {
    HAFT_KNOWN = 256,             /* how many handlers a thread remembers */
    HAFT_SIGNAL_STACK = 64 * 1024 /* bytes */
};

/* thread.c */
/* Memory of HAFT_SIGNAL_STACK bytes for the alternate stack of the thread. */
void *haft_signal_memory(const hafti_thread_t *thread);

/* signals.c */
/* Whether these addresses are on the alternate stack, if the code runs there. */
typedef struct haft_on_signal_stack {
    bool here, there;
} haft_on_signal_stack_t;
haft_on_signal_stack_t haft_on_signal_stack(const void *here, const void *there);
/* Reports what a signal handler may not do, if the code is one. */
HAFTI_COLD void haft_in_signal_handler(const haft_effect_t *effect, const haft_fiber_t *fiber,
                                       const char *what);
HAFTI_INLINE bool haft_seems_in_handler(const hafti_thread_t *thread) {
    return HAFTI_UNLIKELY((uintptr_t)__builtin_frame_address(0) - (uintptr_t)thread->signal_low <
                          thread->signal_size);
}
/* For effects that suspend, and for operations on fibers (NULL: on a new one). */
HAFTI_INLINE void haft_check_suspends(const hafti_thread_t *thread, const haft_effect_t *effect) {
    if (haft_seems_in_handler(thread))
        haft_in_signal_handler(effect, NULL, NULL);
}
HAFTI_INLINE void haft_check_uses(const hafti_thread_t *thread, const haft_fiber_t *fiber,
                                  const char *what) {
    if (haft_seems_in_handler(thread))
        haft_in_signal_handler(NULL, fiber, what);
}
/* No signal is delivered between these. */
typedef struct haft_signals {
    uint64_t mask[16];
} haft_signals_t;
void haft_signals_block(haft_signals_t *before);
void haft_signals_restore(const haft_signals_t *before);

/* thread.c: haft/observe.h. Functions: a compiler keeps the address of a thread-local variable
   across a switch. */
haft_observer_t *haft_observer(void);
void haft_set_observer(haft_observer_t *observer);
HAFTI_INLINE bool haft_is_observed(const hafti_thread_t *thread) {
    return HAFTI_UNLIKELY(thread->exceptions == &haft_always_pending) && haft_observer() != NULL;
}

/* Whether something in the process has asked to be told of switches, at any time: an observer, a
   tool, another language, a function called through HAFT_FOREIGN that resumes. */
extern bool haft_switches_told;
HAFTI_INLINE bool haft_are_switches_told(void) {
    return HAFTI_UNLIKELY(__atomic_load_n(&haft_switches_told, __ATOMIC_RELAXED));
}
HAFTI_INLINE void haft_tell_of_switches(void) {
    __atomic_store_n(&haft_switches_told, true, __ATOMIC_RELAXED);
}

#endif

/* After this no inlined path switches. */
HAFTI_INLINE void haft_exceptions_at_rest(hafti_thread_t *thread) {
    bool none_may =
        haft_are_switches_told() && (thread->language != NULL || haft_observer() != NULL);
    thread->exceptions = none_may ? &haft_always_pending : thread->globals;
}

#endif
