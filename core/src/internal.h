/* SPDX-License-Identifier: MIT */
/*
 * What the files of the library share. One section a file, in the order of a fiber's life; last the
 * files that a freestanding build does without (see freestanding.h).
 */
#ifndef HAFT_INTERNAL_H
#define HAFT_INTERNAL_H

#include "entries.h"

#include <haft.h>
#include <haft/faces.h>
#include <haft/language.h>

/* thread.c: the calling thread's state, made ready on its first use. */
HAFT_COLD void haft_thread_start(haft_thread_t *thread);
/* What is current before the first use on a thread, and again after it: the perform in place that was that
   use puts back what it found. All threads share it, so nothing is ever written there. */
extern haft_scope_t haft_unborn;
HAFT_INLINE haft_thread_t *haft_thread_ready(void) {
    haft_thread_t *thread = haft_thread();
    if (HAFT_UNLIKELY(thread->current == &haft_unborn))
        haft_thread_start(thread);
    return thread;
}
/* In one step, as far as signal handlers can tell. */
HAFT_INLINE uint64_t haft_next_stamp(haft_thread_t *thread) {
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
uint64_t haft_stamp_block(haft_thread_t *thread);
enum { HAFT_STAMP_BITS = 64 - HAFT_THREAD_BITS };
HAFT_INLINE uint64_t haft_stamp(haft_thread_t *thread) {
    uint64_t stamp = haft_next_stamp(thread);
    return HAFT_LIKELY(stamp << HAFT_THREAD_BITS != 0) ? stamp : haft_stamp_block(thread);
}
HAFT_INLINE bool haft_drawn_on(uint64_t stamp, const haft_thread_t *thread) {
    return stamp >> HAFT_STAMP_BITS == thread->stamp >> HAFT_STAMP_BITS;
}
extern haft_exceptions_t haft_no_exceptions;
/* Keeps every resume off the hot path: tools want to be told, or there is no barrier to tell two
   threads apart with. */
extern bool haft_resume_slowly;
/* What `thread->exceptions` is where no inlined path may switch: every field counts
 * as an exception. */
extern haft_exceptions_t haft_always_pending;
HAFT_INLINE void haft_exceptions_at_rest(haft_thread_t *thread) {
    thread->exceptions = thread->language != NULL ? &haft_always_pending : thread->globals;
}
/* Makes what every thread of the process has stored so far visible to this one. */
void haft_thread_barrier(void);

/* fiber.c */
enum haft_fiber_kind {
    HAFT_KIND_POOL,
    HAFT_KIND_FIXED,
    HAFT_KIND_SEGMENTED,
    HAFT_KIND_UNGUARDED /* in the pool, but with a canary below its stack */
};
void haft_place_canary(haft_fiber_t *fiber);
/* Reports an overflow of a stack without a guard: the canary is gone, or `sp`, where the code under
   the fiber's scope is or has stopped, lies outside. `segmented`: the segmented fiber that code is
   on. */
void haft_check_stack(haft_fiber_t *fiber, const char *sp, const haft_fiber_t *segmented);
HAFT_INLINE void haft_check_here(const haft_thread_t *thread) {
    haft_scope_t *scope = thread->current;
    if (scope->kind == HAFT_SCOPE_FIBER && haft_fiber_of(scope)->checked)
        haft_check_stack(haft_fiber_of(scope), __builtin_frame_address(0), thread->segmented);
}

/* Makes an empty header of what lies at `fiber`, at the high end of `memory`, and a canary. */
void haft_fiber_prepare(haft_fiber_t *fiber, void *memory);
/* Memory of the caller: | up to 15 bytes | canary | stack | header |; where the stack begins. */
enum { HAFT_CANARY_WORDS = 4 };
HAFT_INLINE char *haft_stack_in(const void *memory) {
    return (char *)(((uintptr_t)memory + 15) & ~(uintptr_t)15) +
           HAFT_CANARY_WORDS * sizeof(uint64_t);
}
/* A fiber in memory of the caller has finished, and its resumer goes on; returns where the payload
   that it ended with now lies. */
void *haft_fixed_ended(haft_fiber_t *fiber, void *payload);

/* fibers.c: the fibers in memory of the caller, while they live. */
/* Lists a fiber, and prepares it first if it is new; an error if the memory is that of another one.
   False: there is no memory for the list. */
bool haft_fibers_list(haft_fiber_t *fiber, void *memory, size_t size, const char *name,
                      bool is_new);
/* Does nothing if it is not listed. */
void haft_fibers_unlist(haft_fiber_t *fiber);
/* The frames of `fiber` are given up, and with them the fibers in memory on them. */
void haft_fibers_lost(const haft_fiber_t *fiber);
/* Reports that `live`, or a fiber that has been overwritten (NULL), has the memory. */
__attribute__((noreturn)) void haft_memory_taken(const haft_fiber_t *live, const char *name);
/* The fiber whose stack `address` lies on. Unlike haft_fiber_current it tells where the code runs,
   not which handlers it is under: the two differ inside a clause that is called in place. */
haft_fiber_t *haft_fiber_at(const void *address);
HAFT_INLINE haft_fiber_t *haft_fiber_here(void) {
    haft_fiber_t *segmented = haft_thread()->segmented;
    return segmented != NULL ? segmented : haft_fiber_at(__builtin_frame_address(0));
}

/* sets.c */
bool haft_same_effects(const haft_handles_t *one, const haft_handles_t *other);
/* The number by which a fiber knows the set; draws it if need be. */
uint32_t haft_number_of(const haft_handles_t *handles);

/* lookup.c */
/* Forgets what was derived from the chain outwards of a scope. */
HAFT_INLINE void haft_scope_forget(haft_scope_t *scope) {
    for (unsigned left = scope->filled; left != 0; left &= left - 1)
        scope->cache[__builtin_ctz(left)].key = 0;
    scope->filled = 0;
}
HAFT_INLINE void haft_scope_renew(haft_thread_t *thread, haft_scope_t *scope) {
    scope->serial = haft_stamp(thread);
    haft_scope_forget(scope);
}
/* A scope's serial, drawn now if nothing has asked for it before. */
HAFT_INLINE uint64_t haft_scope_serial(haft_thread_t *thread, haft_scope_t *scope) {
    if (HAFT_UNLIKELY(scope->serial == 0))
        scope->serial = haft_stamp(thread);
    return scope->serial;
}
typedef struct haft_handled {
    const haft_clause_t *clause; /* NULL: there is no handler */
    haft_scope_t *scope;
    bool slow; /* a scope on the way needs the out-of-line switch */
} haft_handled_t;
/* Where an effect was found from a scope: a serial also stands for all that lies outwards. */
typedef struct haft_known {
    uint64_t serial;
    haft_effect_t *effect;
    haft_found_t found;
} haft_known_t;
haft_handled_t haft_search(haft_scope_t *from, haft_effect_t *effect, uint32_t shape);
/* How that is performed. */
haft_found_t haft_found_of(haft_handled_t handled, haft_effect_t *effect);
/* haft_lookup, without an error when nobody handles the effect. */
haft_found_t haft_look_for(haft_effect_t *effect, unsigned slot, uint32_t shape);
/* Remembers what was found for `key` in a slot of the current scope, unless that cannot be done safely. */
void haft_remember(haft_thread_t *thread, unsigned slot, uintptr_t key, haft_found_t found);
HAFT_INLINE haft_fiber_t *haft_scope_fiber(haft_scope_t *scope) {
    while (scope != NULL && scope->kind != HAFT_SCOPE_FIBER)
        scope = scope->outer;
    return scope == NULL ? NULL : haft_fiber_of(scope);
}

/* Whether a handler's loop resumes the fiber, and gets what is sent out of it. */
HAFT_INLINE bool haft_is_driven(const haft_fiber_t *fiber) {
    const haft_handler_t *handler = fiber->handler;
    return handler != NULL && fiber->scope.handles == &handler->handles;
}
/* Uses up every capture of the fiber, also one that haft_tail_resume has promised: the count is even again. */
HAFT_INLINE void haft_use_up(haft_fiber_t *fiber) {
    fiber->scope.shot = (fiber->scope.shot + 2) & ~UINT64_C(1);
}
/* handler.c: what the handler of `fiber` does with an effect that is sent out of it: NULL if that is
   the code that resumed it; an error if a handler has no clause to give it to. */
const haft_clause_t *haft_clause_taking(const haft_fiber_t *fiber, const haft_effect_t *effect);
/* The second word with which the fiber is suspended: a handler is told its clause, whoever resumes
   fibers himself the effect. */
uintptr_t haft_sent_by(const haft_fiber_t *fiber, const haft_clause_t *clause,
                       const haft_effect_t *effect);

/* resume.c */
haft_request_t haft_enter(haft_fiber_t *fiber, void *word, enum haft_wake wake,
                          const haft_handles_t *handles);
/* Leaves a fiber for good from its own stack. */
__attribute__((noreturn)) void haft_leave(haft_fiber_t *fiber, haft_effect_t *effect,
                                          void *payload);
/* Makes `fiber` this thread's to use, or reports the error. Returns its owner before. */
uint64_t haft_claim(haft_thread_t *thread, haft_fiber_t *fiber, haft_error_code_t code,
                    const char *what);
/* Unwinds a suspended fiber that was claimed just now; `owner` is what haft_claim returned. */
haft_request_t haft_unwind_claimed(haft_fiber_t *fiber, uint64_t owner);
extern const haft_handles_t haft_handles_none;
extern haft_effect_t haft_special_unwinding, haft_special_exception, haft_special_dropped;
typedef struct haft_call {
    void *(*function)(void *);
    void *argument;
} haft_call_t;
/* That of haft_discontinue: haft_raise, given this. */
typedef struct haft_raising {
    haft_raise_t *raise;
    void *argument;
    const haft_fiber_t *fiber;
    uintptr_t awaits;
} haft_raising_t;
void *haft_raise(void *raising);
/* An error if the fiber, which waits or has waited for `awaits`, is not to get this reply. */
void haft_check_reply(const haft_fiber_t *fiber, uintptr_t awaits, haft_reply_t reply);
/* Called on a fiber's stack by its first frame. The two are apart so that calls and returns pair
   up: the processor predicts a return by the calls before it. */
void haft_fiber_run(haft_fiber_t *fiber, void *word, uintptr_t wake);
__attribute__((noreturn)) void haft_fiber_returned(haft_fiber_t *fiber);
void haft_fiber_start(void); /* arch/: the first frame; never called */
extern const char haft_fiber_start_end[];
/* Whether a frame with this program counter is the first of a fiber. */
HAFT_INLINE bool haft_in_first_frame(uintptr_t pc) {
    return pc >= (uintptr_t)haft_fiber_start && pc < (uintptr_t)haft_fiber_start_end;
}

/* A frame of the running code, by the registers that it was left with. */
typedef struct haft_frame {
    uintptr_t pc, sp, fp;
} haft_frame_t;
HAFT_INLINE haft_frame_t haft_this_frame(void) {
    haft_frame_t frame;
#if defined(__x86_64__)
    __asm__ volatile("leaq 1f(%%rip), %0\n1:\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
                     : "=&r"(frame.pc), "=&r"(frame.sp), "=&r"(frame.fp));
#else
    __asm__ volatile("adr %0, 1f\n1:\tmov %1, sp\n\tmov %2, x29"
                     : "=&r"(frame.pc), "=&r"(frame.sp), "=&r"(frame.fp));
#endif
    return frame;
}
/* The frame of the caller, where it is known without a look at the unwind tables; else this one. */
#if defined(__x86_64__)
#    define HAFT_CALLERS_FRAME()                                                                   \
        ((haft_frame_t){.pc = (uintptr_t)__builtin_return_address(0),                              \
                        .sp = (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(void *),          \
                        .fp = *(uintptr_t *)__builtin_frame_address(0)})
#else
#    define HAFT_CALLERS_FRAME() haft_this_frame()
#endif

/* language.c */
/* An error if the frames of `fiber` are another language's, to be used by its means only. */
void haft_check_own(const haft_fiber_t *fiber, const char *what);
extern const haft_language_t *haft_process_language;
/* Tells the language of the fibers that the thread leaves behind. */
void haft_language_thread_exits(haft_thread_t *thread);

/* leaving.c */
/* Whether any of the fibers from the one that the suspended `fiber` stopped in,
 * outwards, needs unwinding. */
bool haft_needs_unwinding(haft_fiber_t *fiber);
/* The fiber whose stack resumed this one. */
haft_fiber_t *haft_resumer_of(const haft_fiber_t *fiber);
/* The fiber whose first frame an unwinder comes to first: this one, or, from a fiber of another
   language, the next one further out that is not. */
haft_fiber_t *haft_fiber_to_unwind(void);
/* What haft_throw and haft_exit are given. */
void haft_check_thrown(const char *function, const haft_fiber_t *fiber, const haft_effect_t *effect,
                       const void *payload, size_t size);
/* Ends the fibers suspended inside `fiber`, as they are. */
void haft_abandon_inside(haft_fiber_t *fiber);

/* error.c */
/* For messages: the fiber's name, else the name of what it does not have. */
const char *haft_fiber_label(const haft_fiber_t *fiber);
void haft_report(haft_error_code_t code, const haft_effect_t *effect, const haft_fiber_t *fiber,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same for errors that nothing can follow. */
__attribute__((noreturn, format(printf, 4, 5))) void haft_fail(haft_error_code_t code,
                                                               const haft_effect_t *effect,
                                                               const haft_fiber_t *fiber,
                                                               const char *format, ...);

/* For arguments that must not be NULL: "FUNCTION was given no THING (NULL)." */
HAFT_COLD __attribute__((noreturn)) void haft_not_given(const char *function, const char *thing);
HAFT_INLINE void haft_check_given(const void *argument, const char *function, const char *thing) {
    if (HAFT_UNLIKELY(argument == NULL))
        haft_not_given(function, thing);
}

/* For functions that leave their stack between the sanitizer's being told and the switch. */
#if defined(__clang__)
#    define HAFT_UNINSTRUMENTED                                                                    \
        __attribute__((disable_sanitizer_instrumentation,                                          \
                       no_sanitize("address", "thread", "undefined")))
#else
#    define HAFT_UNINSTRUMENTED                                                                    \
        __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))
#endif

#ifdef HAFT_FREESTANDING
#    include "freestanding.h"
#else

/* lookup.c: how many handlers a thread remembers. */
enum { HAFT_KNOWN = 256 };

/* pool.c: stacks of reserved addresses. */
haft_fiber_t *haft_pool_take_slow(haft_thread_t *thread, size_t size);
void haft_pool_give_slow(haft_thread_t *thread, haft_fiber_t *fiber);
haft_fiber_t *haft_pool_take_segmented(haft_thread_t *thread);
/* A stack that shares its page; an ordinary one if `size` is too large for that. 0: the usual. */
haft_fiber_t *haft_pool_take_dense(haft_thread_t *thread, size_t size);
/* Reports that there was no stack to take; NULL. */
haft_fiber_t *haft_pool_exhausted(size_t size);
enum { HAFT_THREAD_KEEPS = 64 };
/* A thread keeps free stacks of the default size for itself. */
extern size_t haft_default_size; /* what haft_stack_size returns */
typedef struct haft_batch {
    haft_fiber_t *fibers[HAFT_THREAD_KEEPS];
    struct haft_batch *older, *newer;
} haft_batch_t;
/* A stack that the thread keeps; NULL if it has none of this size. */
HAFT_INLINE haft_fiber_t *haft_pool_take_kept(haft_thread_t *thread, size_t size) {
    uint32_t count = thread->idle_count;
    if (HAFT_UNLIKELY(count == 0 || thread->idle_size != size))
        return NULL;
    thread->idle_count = count - 1;
    return thread->idle->fibers[count - 1];
}
HAFT_INLINE haft_fiber_t *haft_pool_take(haft_thread_t *thread, size_t size) {
    haft_fiber_t *fiber = haft_pool_take_kept(thread, size);
    return HAFT_LIKELY(fiber != NULL) ? fiber : haft_pool_take_slow(thread, size);
}
/* `uses` counts down to the next look at how deep the stack has been. */
HAFT_INLINE void haft_pool_give(haft_thread_t *thread, haft_fiber_t *fiber) {
    uint32_t count = thread->idle_count;
    if (HAFT_UNLIKELY((--fiber->uses & 0xffff) == 0 || fiber->pool != thread->pool ||
                      count == HAFT_THREAD_KEEPS)) {
        haft_pool_give_slow(thread, fiber);
        return;
    }
    thread->idle->fibers[count] = fiber;
    thread->idle_count = count + 1;
}
void haft_pool_thread_exit(haft_thread_t *thread);
/* The fiber in whose memory `address` lies, guard included; NULL if none. Safe in signal handlers. */
haft_fiber_t *haft_pool_fiber_at(const void *address);
void haft_pool_each(void (*visit)(haft_fiber_t *fiber, void *argument), void *argument);
size_t haft_pool_reserved(const haft_fiber_t *fiber);
size_t haft_pool_resident(const haft_fiber_t *fiber);
/* A child of fork must not find a lock held by a thread that it does not have. */
void haft_pool_before_fork(void);
void haft_pool_after_fork(void);
/* The size that stands for the first segments of segmented fibers, headers included. */
#    define HAFT_SEGMENTED_SIZE ((size_t)1200)

/* segmented.c: switches from and to code on segmented fibers. */
typedef struct haft_footing {
    haft_fiber_t *fiber; /* NULL: the code is not on one, and nothing here means anything */
    uintptr_t limit;     /* 0: in a function called through HAFT_FOREIGN */
    void *foreign_stack; /* where it was free before */
    struct haft_footing *outer;
} haft_footing_t;
HAFT_COLD void haft_footing_leave(haft_thread_t *thread, haft_footing_t *footing);
HAFT_COLD void haft_footing_return(const haft_footing_t *footing);
/* To be called around an out-of-line switch. */
HAFT_INLINE void haft_leave_segments(haft_thread_t *thread, haft_footing_t *footing) {
    footing->fiber = thread->segmented;
    if (HAFT_UNLIKELY(footing->fiber != NULL))
        haft_footing_leave(thread, footing);
}
HAFT_INLINE void haft_return_to_segments(const haft_footing_t *footing) {
    if (HAFT_UNLIKELY(footing->fiber != NULL))
        haft_footing_return(footing);
}
/* Before a switch away for good. */
HAFT_COLD void haft_footing_end(haft_thread_t *thread);
HAFT_INLINE void haft_end_segments(haft_thread_t *thread) {
    if (HAFT_UNLIKELY(thread->segmented != NULL))
        haft_footing_end(thread);
}
/* For the first frame of a segmented fiber. */
HAFT_COLD void haft_enter_segments(haft_fiber_t *fiber);
/* Functions that were called through HAFT_FOREIGN, and had resumed `fiber`, are given up. */
void haft_abandon_foreign_call(haft_thread_t *thread, const haft_fiber_t *fiber);
/* The suspension of `target` by code on its stack or inside must not leave such functions behind. */
HAFT_COLD void haft_check_foreign_calls(const haft_fiber_t *target, const haft_effect_t *effect);
extern bool haft_foreign_calls_seen;
/* Whether what a fiber resumes is resumed by such a function; marks it, and tells whether that is
   news: what performs inside it must then be looked up again. */
bool haft_resumes_from_foreign_call(haft_fiber_t *fiber);
void haft_foreign_stack_make(haft_thread_t *thread);
void haft_foreign_stack_free(haft_thread_t *thread);
/* For unwinding: whether a frame at `sp` is on the fiber that runs, and whether one whose caller's
   frame ends at `frame` is that or one further out. Segments do not lie in the order of their
   frames. */
bool haft_on_this_fiber(const void *sp);
bool haft_unwound_to(uintptr_t frame, const void *sp);
/* What a fault at this address has to do with segments, for signal handlers; NULL: nothing. */
const char *haft_segments_fault(const void *address);

/* fibers.c */
void haft_fibers_each(void (*visit)(haft_fiber_t *fiber, void *argument), void *argument);
void haft_fibers_watch_forks(void);

/* cleanups.c */
/* Whether nothing would run if the stack were unwound from `frame` to the fiber's first. */
bool haft_nothing_to_clean(haft_frame_t frame);

/* unwind.c */
enum { HAFT_UNWINDS = 1 }; /* whether there is anything that runs cleanups */
/* Unwinds from here, through the fibers around, up to and including `target`. `frame` is one on
   this stack inside of which there are only the library's. */
__attribute__((noreturn)) void haft_unwind(haft_fiber_t *target, haft_frame_t frame);
/* Around an unwinding by force, where there is a runtime of C++: std::uncaught_exceptions() is to see
   it, so that guards that commit or roll back at the end of a scope roll back. What ends it where it
   should (haft_leave, or who lands) puts the count back; haft_unwinding_stopped is for the rest. */
extern const char haft_landing_class[8]; /* of the exceptions of faces.c */
void haft_unwinding_starts(void);
void haft_unwinding_stopped(void);
void haft_unwinding_goes_on(bool goes_on); /* from frame to frame; false: it has landed */
/* Goes on with an unwinding that has come out of `fiber`; comes back if the special effect
 * is no such. */
void haft_unwind_on(haft_fiber_t *fiber, haft_effect_t *effect, void *payload);
/* A copy of the payload, as something of the fiber's. */
const void *haft_keep(haft_fiber_t *fiber, haft_effect_t *effect, const void *payload, size_t size);
void haft_forget_kept(haft_fiber_t *fiber);
/* `fiber`, in memory of the caller, ends with this payload. A copy of the library's is moved into
   the stack, where there is room, so that nothing is left to be freed. Returns where it lies. */
void *haft_settle_kept(haft_fiber_t *fiber, void *payload);
/* A copy of a reply that does not fit a word, to be freed once its performer has it. */
void *haft_copy_reply(const haft_effect_t *effect, const void *reply);
void haft_free_reply(void *reply);

/* tools.c: sanitizers and Valgrind. All no-ops while none is there. */
extern bool haft_tools_active;
void haft_tools_detect(void);
/* Whether a tool wants to know of every stack: segmented fibers then get ordinary ones. */
bool haft_tools_know_stacks(void);
void haft_tools_born(haft_fiber_t *fiber);
void haft_tools_gone(haft_fiber_t *fiber);
/* On every thread that uses libhaft. */
void haft_tools_thread_start(void);
void haft_tools_thread_exit(void);
/* Memory of an empty stack is about to be written from elsewhere. */
void haft_tools_reserved(void *low, size_t size);
/* Around every out-of-line switch across `fiber`'s border. */
void haft_tools_before(haft_fiber_t *fiber, enum haft_crossing crossing);
void haft_tools_after(haft_fiber_t *fiber, enum haft_crossing crossing);
/* The stack, memory of the caller, is empty. What a throw has left on it stays. */
void haft_tools_ended(haft_fiber_t *fiber);
/* The fiber's stack is empty and will be used again. */
void haft_tools_reset(haft_fiber_t *fiber);
/* What had resumed the fiber will not run again, nor be unwound. */
void haft_tools_abandon(haft_fiber_t *fiber);
/* Frames of the current stack are about to be left without returning. */
void haft_tools_unwinding(void);
void haft_tools_stack(haft_fiber_t *fiber, char *low, char *high);

/* process.c */
void haft_process_knows(void);

/* signals.c */
/* Whether these addresses are on the alternate stack, if the code runs there. */
typedef struct haft_on_signal_stack {
    bool here, there;
} haft_on_signal_stack_t;
haft_on_signal_stack_t haft_on_signal_stack(const void *here, const void *there);
/* Reports what a signal handler may not do, if the code is one. */
HAFT_COLD void haft_in_signal_handler(const haft_effect_t *effect, const haft_fiber_t *fiber,
                                      const char *what);
HAFT_INLINE bool haft_seems_in_handler(const haft_thread_t *thread) {
    return HAFT_UNLIKELY((uintptr_t)__builtin_frame_address(0) - (uintptr_t)thread->signal_low <
                         thread->signal_size);
}
/* For effects that suspend; and for what is done to fibers (NULL: a new one). */
HAFT_INLINE void haft_check_suspends(const haft_thread_t *thread, const haft_effect_t *effect) {
    if (haft_seems_in_handler(thread))
        haft_in_signal_handler(effect, NULL, NULL);
}
HAFT_INLINE void haft_check_uses(const haft_thread_t *thread, const haft_fiber_t *fiber,
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

/* overflow.c: the fault handler that recognises a fiber's guard. */
void haft_overflow_watch(void);
void haft_overflow_watch_thread(haft_thread_t *thread);
void haft_overflow_unwatch_thread(haft_thread_t *thread);
/* thread_overflow.c: whether a fault is the overflow of a thread's own stack by resumes within
 * resumes. `context` is the signal handler's. */
bool haft_thread_overflow(const void *address, const void *context);
#endif

#endif
