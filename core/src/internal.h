/* What the files of the library share. One section a file, in the order of a fiber's life. */
#ifndef HAFT_INTERNAL_H
#define HAFT_INTERNAL_H

#include <haft.h>
#include <haft/faces.h>

/* thread.c: the calling thread's state, made ready on its first use. */
HAFT_COLD void haft_thread_start(haft_thread_t *thread);
HAFT_INLINE haft_thread_t *haft_thread_ready(void) {
    haft_thread_t *thread = haft_thread();
    if (HAFT_UNLIKELY(thread->stamp == 0))
        haft_thread_start(thread);
    return thread;
}
/* A number that was never drawn before: for serials. */
uint64_t haft_stamp_block(haft_thread_t *thread);
enum { HAFT_STAMP_BITS = 64 - HAFT_THREAD_BITS };
HAFT_INLINE uint64_t haft_stamp(haft_thread_t *thread) {
    uint64_t stamp = ++thread->stamp;
    return HAFT_LIKELY(stamp << HAFT_THREAD_BITS != 0) ? stamp : haft_stamp_block(thread);
}
HAFT_INLINE bool haft_drawn_on(uint64_t stamp, const haft_thread_t *thread) {
    return stamp >> HAFT_STAMP_BITS == thread->stamp >> HAFT_STAMP_BITS;
}
extern haft_exceptions_t haft_no_exceptions;
/* Makes what every thread of the process has stored so far visible to this one. */
void haft_thread_barrier(void);

/* pool.c: stacks of reserved addresses. */
haft_fiber_t *haft_pool_take_slow(haft_thread_t *thread, size_t size);
void haft_pool_give_slow(haft_thread_t *thread, haft_fiber_t *fiber);
enum { HAFT_THREAD_KEEPS = 64 };
/* A thread keeps free stacks of the default size for itself. */
HAFT_INLINE haft_fiber_t *haft_pool_take(haft_thread_t *thread, size_t size) {
    haft_fiber_t *fiber = thread->idle;
    if (HAFT_UNLIKELY(fiber == NULL || thread->idle_size != size))
        return haft_pool_take_slow(thread, size);
    thread->idle = fiber->next;
    thread->idle_count--;
    return fiber;
}
/* `uses` counts down to the next look at how deep the stack has been. */
HAFT_INLINE void haft_pool_give(haft_thread_t *thread, haft_fiber_t *fiber) {
    if (HAFT_UNLIKELY((--fiber->uses & 0xffff) == 0 || fiber->pool != thread->pool ||
                      thread->idle_count == HAFT_THREAD_KEEPS)) {
        haft_pool_give_slow(thread, fiber);
        return;
    }
    fiber->next = thread->idle;
    thread->idle = fiber;
    thread->idle_count++;
}
void haft_pool_thread_exit(haft_thread_t *thread);
/* The fiber in whose memory `address` lies, guard included; NULL if none. Safe in signal handlers. */
haft_fiber_t *haft_pool_fiber_at(const void *address);
void haft_pool_each(void (*visit)(haft_fiber_t *fiber, void *argument), void *argument);
size_t haft_pool_reserved(const haft_fiber_t *fiber);
size_t haft_pool_resident(const haft_fiber_t *fiber);
#define HAFT_SEGMENTED_SIZE ((size_t)1024)

/* fiber.c */
enum haft_fiber_kind { HAFT_KIND_POOL, HAFT_KIND_FIXED, HAFT_KIND_SEGMENTED };
/* The fiber whose stack `address` lies on. Unlike haft_fiber_current it tells where the code runs, not
   which handlers it is under: the two differ inside a clause that is called in place. */
haft_fiber_t *haft_fiber_at(const void *address);
void haft_fibers_each(void (*visit)(haft_fiber_t *fiber, void *argument), void *argument);
void haft_check_canary(haft_fiber_t *fiber);
/* For messages: the fiber's name, else the name of what it does not have. */
const char *haft_fiber_label(const haft_fiber_t *fiber);

/* lookup.c */
typedef struct haft_found {
    const haft_clause_t *clause; /* NULL: there is no handler */
    haft_scope_t *scope;
    bool slow; /* a scope on the way needs the out-of-line switch */
} haft_found_t;
haft_found_t haft_search(haft_scope_t *from, haft_effect_t *effect, uint32_t shape);
/* What a cache remembers of a clause that was found. */
const haft_clause_t *haft_cached_clause(const haft_clause_t *clause, bool slow);
HAFT_INLINE haft_fiber_t *haft_scope_fiber(haft_scope_t *scope) {
    while (scope != NULL && scope->kind != HAFT_SCOPE_FIBER)
        scope = scope->outer;
    return scope == NULL ? NULL : haft_fiber_of(scope);
}

/* handler.c: what the handler of `fiber` does with an effect that is sent out of it; an error if it has no
   clause to give it to. */
uint32_t haft_clause_kind(const haft_fiber_t *fiber, const haft_effect_t *effect);

/* resume.c */
haft_request_t haft_enter(haft_fiber_t *fiber, void *word, enum haft_wake wake,
                          const haft_handles_t *handles);
/* Leaves a fiber for good from its own stack. */
__attribute__((noreturn)) void haft_leave(haft_fiber_t *fiber, haft_effect_t *effect,
                                          void *payload);
/* Makes `fiber` this thread's to use, or reports the error. Returns its owner before. */
uint64_t haft_claim(haft_thread_t *thread, haft_fiber_t *fiber, haft_error_code_t code,
                    const char *what);
extern const haft_handles_t haft_handles_none;
extern haft_effect_t haft_special_unwinding, haft_special_exception, haft_special_dropped;
typedef struct haft_call {
    void *(*function)(void *);
    void *argument;
} haft_call_t;
/* Called on a fiber's stack by its first frame. The two are apart so that calls and returns pair up: the
   processor predicts a return by the calls before it. */
void haft_fiber_run(haft_fiber_t *fiber);
__attribute__((noreturn)) void haft_fiber_returned(haft_fiber_t *fiber);
void haft_fiber_start(void); /* arch/: the first frame; never called */
extern const char haft_fiber_start_end[];

/* unwind.c */
/* Whether any of the fibers from the one that the suspended `fiber` stopped in, outwards, needs unwinding. */
bool haft_needs_unwinding(haft_fiber_t *fiber);
/* Ends the fibers suspended inside `fiber`, as they are. */
void haft_abandon_inside(haft_fiber_t *fiber);
/* Unwinds from here, through the fibers around, up to and including `target`. */
__attribute__((noreturn)) void haft_unwind(haft_fiber_t *target);
__attribute__((noreturn)) void haft_rethrow(haft_fiber_t *fiber, void *exception);

/* tools.c: sanitizers and Valgrind. All no-ops while none is there. */
extern bool haft_tools_active;
void haft_tools_detect(void);
void haft_tools_born(haft_fiber_t *fiber);
void haft_tools_gone(haft_fiber_t *fiber);
void haft_tools_thread_exit(void);
/* Memory of an empty stack is about to be written from elsewhere. */
void haft_tools_reserved(void *low, size_t size);
enum haft_crossing { HAFT_INTO, HAFT_OUT_OF, HAFT_OUT_FOR_GOOD };
/* Around every out-of-line switch across `fiber`'s border. */
void haft_tools_before(haft_fiber_t *fiber, enum haft_crossing crossing);
void haft_tools_after(haft_fiber_t *fiber, enum haft_crossing crossing);
/* The fiber's stack is empty and will be used again. */
void haft_tools_reset(haft_fiber_t *fiber);
/* What had resumed the fiber will not run again, nor be unwound. */
void haft_tools_abandon(haft_fiber_t *fiber);
/* Frames of the current stack are about to be left without returning. */
void haft_tools_unwinding(void);
/* For functions that leave their stack between the sanitizer's being told and the switch. */
#if defined(__clang__)
#    define HAFT_UNINSTRUMENTED __attribute__((disable_sanitizer_instrumentation))
#else
#    define HAFT_UNINSTRUMENTED                                                                    \
        __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))
#endif
void haft_tools_stack(haft_fiber_t *fiber, char *low, char *high);

/* overflow.c: the fault handler that recognises a fiber's guard. */
void haft_overflow_watch(void);
void haft_overflow_watch_thread(haft_thread_t *thread);
void haft_overflow_unwatch_thread(haft_thread_t *thread);

/* error.c */
void haft_report(haft_error_code_t code, const haft_effect_t *effect, const haft_fiber_t *fiber,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same for errors that nothing can follow. */
__attribute__((noreturn, format(printf, 4, 5))) void
haft_fail(haft_error_code_t code, const haft_effect_t *effect, const haft_fiber_t *fiber,
          const char *format, ...);

#endif
