/* What the files of the library share. One section a file, in the order of a fiber's life. */
#ifndef HAFT_INTERNAL_H
#define HAFT_INTERNAL_H

#include <haft.h>

/* thread.c: the calling thread's state, made ready on its first use. */
haft_thread_t *haft_thread_ready(void);
HAFT_INLINE uint64_t haft_stamp(haft_thread_t *thread) { return ++thread->stamp; }
extern haft_exceptions_t haft_no_exceptions;
/* Makes what every thread of the process has stored so far visible to this one. */
void haft_thread_barrier(void);

/* pool.c: stacks of reserved addresses. */
haft_fiber_t *haft_pool_take(haft_thread_t *thread, size_t size);
void haft_pool_give(haft_thread_t *thread, haft_fiber_t *fiber);
void haft_pool_thread_exit(haft_thread_t *thread);
/* The fiber in whose memory `address` lies, guard included; NULL if none. Safe in signal handlers. */
haft_fiber_t *haft_pool_fiber_at(const void *address);
void haft_pool_each(void (*visit)(haft_fiber_t *fiber, void *argument), void *argument);
size_t haft_pool_reserved(const haft_fiber_t *fiber);
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
HAFT_INLINE haft_fiber_t *haft_scope_fiber(haft_scope_t *scope) {
    while (scope != NULL && scope->kind != HAFT_SCOPE_FIBER)
        scope = scope->outer;
    return scope == NULL ? NULL : haft_fiber_of(scope);
}

/* resume.c */
haft_request_t haft_enter(haft_fiber_t *fiber, void *word, enum haft_wake wake,
                          const haft_handles_t *handles);
/* Leaves a fiber for good from its own stack. */
__attribute__((noreturn)) void haft_leave(haft_fiber_t *fiber, haft_effect_t *effect,
                                          void *payload);
/* Makes `fiber` this thread's to use, or reports the error. Returns the serial of the scope that had
   resumed it. */
uint64_t haft_claim(haft_thread_t *thread, haft_fiber_t *fiber, haft_error_code_t code,
                    const char *what);
extern const haft_handles_t haft_handles_none;
extern haft_effect_t haft_effect_unwinding, haft_effect_exception, haft_effect_dropped;
typedef struct haft_call {
    void *(*function)(void *);
    void *argument;
} haft_call_t;
/* Called on a fiber's stack by its first frame. */
__attribute__((noreturn)) void haft_fiber_main(haft_fiber_t *fiber);
void haft_fiber_start(void); /* arch/: the first frame; never called */
extern const char haft_fiber_start_end[];

/* unwind.c */
/* Unwinds from here, through the fibers around, up to and including `target`. */
__attribute__((noreturn)) void haft_unwind(haft_fiber_t *target);
__attribute__((noreturn)) void haft_rethrow(haft_fiber_t *fiber, void *exception);

/* tools.c: sanitizers and Valgrind. All no-ops while none is there. */
extern bool haft_tools_active;
void haft_tools_detect(void);
void haft_tools_born(haft_fiber_t *fiber);
void haft_tools_gone(haft_fiber_t *fiber);
enum haft_crossing { HAFT_INTO, HAFT_OUT_OF, HAFT_OUT_FOR_GOOD };
/* Around every out-of-line switch across `fiber`'s border. */
void *haft_tools_before(haft_fiber_t *fiber, enum haft_crossing crossing);
void haft_tools_after(haft_fiber_t *fiber, enum haft_crossing crossing, void *saved);
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
