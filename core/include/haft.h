/* SPDX-License-Identifier: MIT */
/*
 * Haft: effect handlers for C.
 *
 *     #include <haft.h>
 *     HAFT_EFFECT(get, int64_t, {});
 *     HAFT_EFFECT(put, void, { int64_t new_value; });
 *
 * A function performs effects as it would call functions; what they do is decided by the handlers
 * that surround the call when it runs:
 *
 *     void *counter(void *argument) {
 *         for (int64_t i = HAFT_PERFORM(get); i > 0; i = HAFT_PERFORM(get))
 *             HAFT_PERFORM(put, i - 1);
 *         return NULL;
 *     }
 *
 * Computations that are handled run on fibers: a fiber is a stack of its own. Performing an effect
 * suspends the fiber, and the code that resumed it gets a request, which it answers by resuming the
 * fiber with a reply, now, later, from another thread, or never:
 *
 *     int64_t state = 100;
 *     haft_fiber_t *k = haft_fiber_new(counter, NULL);
 *     haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(get, put));
 *     while (!haft_finished(request)) {
 *         HAFT_MATCH(request) {
 *             HAFT_CASE(get, payload) {
 *                 request = haft_resume(k, HAFT_REPLY(get, state), HAFT_HANDLES(get, put));
 *             }
 *             HAFT_CASE(put, payload) {
 *                 state = payload->new_value;
 *                 request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(get, put));
 *             }
 *         }
 *     }
 *     haft_fiber_drop(k);
 *
 * Sections in this file: effects; performing; fibers; handling by requests; handling by clauses;
 * ending a computation; default handlers; looking at fibers; memory; errors.
 *
 * Numbers of sections (§) refer to "High-level effect handlers in C".
 *
 * Names that begin with hafti_ or HAFTI_ are the library's own: the macros below expand to them, and they
 * change from version to version. All others are documented here.
 *
 * Threads: every thread has a chain of handlers of its own. A fiber is used by one thread at a time; a
 * suspended fiber may be resumed by any thread. Unless said otherwise a function may be called by any
 * thread, and a fiber that is passed in must not be in use by another.
 *
 * Errors: a mistake (an effect nobody handles, a fiber resumed while it runs...) is reported to the
 * error handler of the process, which by default prints what happened, to which effect or fiber, and
 * what to do, and aborts. See "errors" at the end.
 */
#ifndef HAFT_H
#define HAFT_H

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

/* Both keep a second stack for each thread, of which the switch knows nothing. */
#if defined(__has_feature)
#    if __has_feature(safe_stack) || __has_feature(shadow_call_stack)
#        error                                                                                     \
            "Haft's fibers do not work with -fsanitize=safe-stack or -fsanitize=shadow-call-stack"
#    endif
#endif

#ifdef __cplusplus
#    define HAFTI_EXTERN_C_BEGIN extern "C" {
#    define HAFTI_EXTERN_C_END }
#else
#    define HAFTI_EXTERN_C_BEGIN
#    define HAFTI_EXTERN_C_END
#endif

HAFTI_EXTERN_C_BEGIN

#include "haft/inner/macros.h"
#include "haft/inner/hot.h"

#define HAFT_VERSION_MAJOR 0
#define HAFT_VERSION_MINOR 2
#define HAFT_VERSION_PATCH 0
/* The version of the library that the program runs with, as "0.2.0". */
HAFTI_API const char *haft_version(void);

/* Hot paths are compiled into programs, and with them the layout of fibers and handlers. A program that was
   compiled for another layout than its library has lacks this symbol: it does not link, or does not start. */
extern HAFTI_API const char haft_abi_0_2;
__attribute__((used)) static const char *const hafti_abi_of_this_file = &haft_abi_0_2;

/* ---- Effects (§2.1) ------------------------------------------------------------------------- */

/*
 * HAFT_EFFECT(name, result, { fields });
 *
 * Declares an effect: its name, the type that performing it returns (void, or any type that can be
 * copied; give a name to types that need brackets to write), and the fields of its payload. To be
 * written at file scope, usually in a header. The same line in several translation units, libraries
 * or languages is one effect. There is no limit on their number. The name is global to the process,
 * like that of a function: libraries should prefix it.
 *
 * An effect is identified by the address of its descriptor, HAFT_ID(name), a haft_effect_t *.
 */
#define HAFT_EFFECT(name, result, ...) HAFTI_EFFECT(name, result, __VA_ARGS__)

#define HAFT_ID(name) (&haft_id_##name)
#define HAFT_PAYLOAD(name) haft_payload_##name /* the payload's type */
#define HAFT_RESULT(name) haft_result_##name   /* the result's type */

/* ---- Performing ----------------------------------------------------------------------------- */

/*
 * HAFT_PERFORM(name, fields...)
 *
 * Performs the effect: finds the innermost handler for it and lets it decide. The first perform in a new
 * handler looks at each handler that stands between; from then on that is remembered, and the number of
 * handlers between does not count. Returns what the handler
 * replies. The fields are checked against the declaration by the compiler, like arguments. With no
 * handler in scope the effect's default handler is called; with no default either it is an error.
 *
 * May not return: the handler may drop the computation, in which case cleanups and destructors run
 * (compile C with -fexceptions for the former). May return on another thread: addresses of
 * thread-local variables, errno's among them, do not hold across it.
 */
#define HAFT_PERFORM(...) HAFTI_PERFORM(__VA_ARGS__, )

/*
 * HAFT_YIELD(fiber, name, fields...)
 *
 * Suspends `fiber`, which must be running (the current fiber or one around it), with this effect,
 * whatever its resumer handles; with a fiber from haft_locate this is a perform without the search
 * (§3.2, §4.1.1). A fiber that is not around the current one is an error.
 */
#define HAFT_YIELD(fiber, ...) HAFTI_YIELD(fiber, __VA_ARGS__, )

/*
 * HAFT_THROW(name, fields...)       performs an effect and never comes back (§3.2)
 * HAFT_EXIT(fiber, name, fields...) the same towards the resumer of `fiber`
 *
 * Everything from here up to and including the fiber that is suspended is unwound, innermost first:
 * cleanups and destructors run; then the handler sees the request, and the fiber is finished. The
 * payload is copied; it stays valid until the fiber is freed or reset. With no handler: the default
 * handler runs, and coming back from it is an error.
 */
#define HAFT_THROW(...) HAFTI_THROW(__VA_ARGS__, )
#define HAFT_EXIT(fiber, ...) HAFTI_EXIT(fiber, __VA_ARGS__, )

/*
 * The untyped forms, for language bindings and generic code. `payload` points to `size` bytes; the
 * result is stored in the `result_size` bytes at `result`. Both must be what the effect declares:
 * another size is an error that names the effect.
 */
HAFTI_API void haft_perform(haft_effect_t *effect, void *payload, size_t size, void *result,
                            size_t result_size);
HAFTI_API void haft_yield(haft_fiber_t *fiber, haft_effect_t *effect, void *payload, size_t size,
                          void *result, size_t result_size);
HAFTI_API __attribute__((noreturn)) void haft_throw(haft_effect_t *effect, const void *payload,
                                                    size_t size);
HAFTI_API __attribute__((noreturn)) void haft_exit(haft_fiber_t *fiber, haft_effect_t *effect,
                                                   const void *payload, size_t size);

/*
 * Finds the handler that performing `effect` here would reach: the fiber that would be suspended. NULL
 * when there is none, or when its clause would run in place. The answer holds for as long as the
 * current fiber is not suspended and the fibers around it stay as they are.
 */
HAFTI_API haft_fiber_t *haft_locate(haft_effect_t *effect);

/* ---- Fibers --------------------------------------------------------------------------------- */

/* Later versions may add fields; those that a program leaves out are 0. */
typedef struct haft_fiber_options {
    size_t stack_size; /* bytes reserved; 0: haft_stack_size(). Committed as used. Rounded up as by
                           haft_set_stack_size */
    void *memory;      /* if given: the fiber's stack and header lie in these `memory_size` bytes */
    size_t memory_size; /* at least HAFT_FIBER_MINIMUM */
    const char *name;   /* for messages and tools; not copied */
    bool segmented;   /* the stack grows by segments; for code compiled with -fsplit-stack (x86-64;
                           docs/segmented.md). `stack_size` means nothing then, `memory` is refused */
    bool no_cleanups; /* a promise that nothing on this stack needs unwinding: dropping the fiber
                           or throwing from it costs nothing, and cleanups and destructors on it do
                           not run */
    bool dense;       /* a small stack among others on one page, header included: `stack_size` is 1,
                           2 (or 0), 4 or 8 KiB, below 8 as if with `no_cleanups`. A canary instead
                           of a guard, as for `memory`. Larger ones are ordinary stacks */
} haft_fiber_options_t;

/* The unwinder runs on the stack that it unwinds and needs room: a fiber in less memory than this, given
   by the caller, is as if made with `no_cleanups`. */
#define HAFT_UNWINDING_MINIMUM ((size_t)8192)
/* The least memory for a fiber: its header and some 500 bytes of stack. */
#define HAFT_FIBER_MINIMUM ((size_t)1152)

/*
 * `options` may be NULL. Makes a fiber that will run `function(argument)`; nothing runs until it is resumed. To be released
 * with haft_fiber_drop. NULL if memory is exhausted and the error handler returned (errno: ENOMEM).
 */
HAFTI_API haft_fiber_t *haft_fiber_new(void *(*function)(void *), void *argument);
HAFTI_API haft_fiber_t *hafti_fiber_new_sized(const haft_fiber_options_t *options, size_t size,
                                              void *(*function)(void *), void *argument);
HAFTI_INLINE haft_fiber_t *haft_fiber_new_with(const haft_fiber_options_t *options,
                                               void *(*function)(void *), void *argument) {
    return hafti_fiber_new_sized(options, sizeof *options, function, argument);
}

/*
 * Releases a fiber that is not running. One that is suspended is dropped: its stack is unwound, so that
 * cleanups and destructors on it run, innermost first, through the whole suspended chain of fibers.
 * NULL is ignored. Memory given by the caller is the caller's again.
 *
 * A fiber in memory of the caller that has finished need not be freed: the library has nothing left that
 * points into the memory, and what it ended with lies there, too, if there is room. While it has not
 * finished, another fiber in the same memory is refused, unless that lies in one of its frames.
 */
HAFTI_API void haft_fiber_drop(haft_fiber_t *fiber);

/* Drops what a fiber was doing, as haft_fiber_drop does, and makes it run `function(argument)` when it
   is resumed next. */
HAFTI_API void haft_fiber_reset(haft_fiber_t *fiber, void *(*function)(void *), void *argument);

/* Declares a fiber variable that is freed when its scope is left, by unwinding too:
   HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(...); */
#define HAFT_SCOPED __attribute__((cleanup(hafti_fiber_drop_scoped)))
HAFTI_INLINE void hafti_fiber_drop_scoped(haft_fiber_t **fiber) {
    haft_fiber_drop(*fiber);
}

typedef enum haft_fiber_state {
    HAFT_FIBER_NEW,       /* not started */
    HAFT_FIBER_SUSPENDED, /* can be resumed */
    HAFT_FIBER_RUNNING,   /* runs, or waits for a fiber that it resumed */
    HAFT_FIBER_FINISHED,  /* returned, threw, or was unwound */
    HAFT_FIBER_FREED      /* only seen by mistake */
} haft_fiber_state_t;

HAFTI_API haft_fiber_state_t haft_fiber_state(const haft_fiber_t *fiber);
HAFTI_API const char *haft_fiber_name(const haft_fiber_t *fiber);          /* "" when it has none */
HAFTI_API void haft_fiber_set_name(haft_fiber_t *fiber, const char *name); /* not copied */
/* The innermost fiber, NULL on a thread's own stack. In a clause that runs in place: of the code
   around the handler. */
HAFTI_API haft_fiber_t *haft_fiber_current(void);
/* The fiber around a running fiber; NULL when the thread's own stack resumed it. */
HAFTI_API haft_fiber_t *haft_fiber_parent(const haft_fiber_t *fiber);

/*
 * Says that the next thread to resume the suspended `fiber` may be another one. No
 * program has to call this: it saves time. Without it, the first resume on a new thread makes a system
 * call, by which it makes sure that the old thread is not in the middle of a resume of its own.
 */
HAFTI_API void haft_fiber_detach(haft_fiber_t *fiber);

/* ---- Handling by requests (§2.1, "sheep" handlers) ------------------------------------------ */

/*
 * A reply to an effect: HAFT_REPLY(name, value), which the compiler checks against the effect's
 * declaration. The value stays where it was written: a reply is good until the end of the enclosing
 * block (C++: of the full expression). HAFT_REPLY(name) replies to an effect that returns nothing;
 * HAFT_NO_REPLY does so, too, and starts a fiber that has not run.
 */
typedef struct haft_reply {
    uintptr_t to; /* the effect, see hafti_awaited; 0: HAFT_NO_REPLY */
    void *word;   /* the result's bytes, or the address of a result larger than this */
} haft_reply_t;
#define HAFT_REPLY(...) HAFTI_REPLY(__VA_ARGS__, )
#define HAFT_NO_REPLY HAFTI_NO_REPLY

/* The untyped reply: `value` points to `size` bytes, which must be what the effect declares. */
HAFTI_API haft_reply_t haft_reply(const haft_effect_t *effect, const void *value, size_t size);

/*
 * haft_resume(fiber, reply, handles): starts or resumes a fiber and handles the effects in `handles`
 * until it is suspended by one of them, returns, or throws. `reply` becomes the result of the perform
 * that suspended it; one to another effect is an error, which names both.
 *
 * The request's `effect` says which it was: HAFT_ID(name), or HAFT_ID(return) when the function has
 * returned. `payload` points into the performer's stack: it is valid until the fiber is resumed or
 * freed, not longer.
 *
 * An exception of C++ (or of another language that unwinds) that leaves the fiber's function goes on
 * from here, in the resumer; the fiber is finished.
 *
 * Errors: a fiber that is running, finished or freed, here or on another thread; a reply that is not
 * one to the effect that suspended it; no set of effects (the empty one is HAFT_HANDLES()).
 */
HAFTI_API haft_request_t hafti_resume_checked(haft_fiber_t *fiber, haft_reply_t reply,
                                              const haft_handles_t *handles);
HAFTI_INLINE haft_request_t haft_resume(haft_fiber_t *fiber, haft_reply_t reply,
                                        const haft_handles_t *handles) {
    hafti_here_t here = hafti_here();
    if (HAFTI_LIKELY(hafti_resumes_hot(here, fiber, handles) &&
                     hafti_is_reply_to(fiber->scope.awaits, reply.to)))
        return hafti_resume_known(here, fiber, reply.word);
    return hafti_resume_checked(fiber, reply, handles);
}

/*
 * HAFT_HANDLES(name, name...)  a set of effects (up to 364 names; it may be empty)
 * HAFT_HANDLES_ALL             the set of every effect
 *
 * Sets are constants. A program may build one itself, with `number` 0; before a fiber is resumed with a set
 * whose contents are not what they were at that address the last time, haft_handles_changed(fiber) must
 * say so.
 */
#define HAFT_HANDLES(...) HAFTI_HANDLES(__VA_ARGS__)
#define HAFT_HANDLES_ALL (&haft_handles_all)
extern HAFTI_API const haft_handles_t haft_handles_all;
HAFTI_API void haft_handles_changed(haft_fiber_t *fiber);

/*
 * HAFT_MATCH(request) {
 *     HAFT_CASE(name, payload) { ... payload->field ... }      payload: a HAFT_PAYLOAD(name) *
 *     HAFT_RETURN(result) { ... }                              result: the void * that was returned
 *     HAFT_OTHERWISE(rest) { ... }                             rest: the haft_request_t itself
 * }
 * Runs the first block that fits the request as it was on entry; `request` may be assigned to inside.
 * `break` and `continue` leave the block. A request that no block fits is an error that names its effect;
 * HAFT_OTHERWISE, which comes last, fits every one.
 */
#define HAFT_MATCH(request) HAFTI_MATCH(request)
#define HAFT_OTHERWISE(request) HAFTI_OTHERWISE(request)
#define HAFT_CASE(name, payload) HAFTI_CASE(name, payload)
#define HAFT_RETURN(result) HAFTI_RETURN(result)

/* The request of a fiber that has returned: HAFT_ID(return), HAFT_PAYLOAD(return). */
typedef struct {
    void *result;
} haft_payload_return;
extern HAFTI_API haft_effect_t haft_id_return;

HAFTI_INLINE bool haft_finished(haft_request_t request) {
    return request.effect == HAFT_ID(return );
}

/*
 * Resumes a suspended fiber by calling `raise(argument)` at the perform that suspended it, on the
 * fiber's stack: to raise an exception there, or to look around. If `raise` returns, it returns the reply.
 * Otherwise like haft_resume.
 */
typedef haft_reply_t haft_raise_t(void *argument);
HAFTI_API haft_request_t haft_discontinue(haft_fiber_t *fiber, haft_raise_t *raise, void *argument,
                                          const haft_handles_t *handles);

/* ---- Handling by clauses (deep handlers) ---------------------------------------------------- */

/*
 * A computation that waits at a perform, as a general clause receives it. One-shot: it is continued or
 * dropped, once; a second use is an error that names the effect. A resumption that is kept may outlive
 * the haft_handle that captured it; its handler goes with it, the state that the handler was given
 * must then live as long.
 */
typedef struct haft_resumption {
    haft_fiber_t *fiber;
    uint64_t shot;
} haft_resumption_t;

/*
 * How a general clause ends: with an answer, haft_answer(value), or by resuming a computation whose answer
 * will be the clause's, haft_tail_resume(k, reply).
 */
typedef struct haft_answer {
    void *value;
    uintptr_t next; /* 0, or the fiber that is to be resumed, see haft_tail_resume */
} haft_answer_t;
HAFTI_INLINE haft_answer_t haft_answer(void *value) {
    return (haft_answer_t){value, 0};
}

/*
 * HAFT_HANDLER(name, on_return, clauses...);
 *
 * Defines, at file scope, the constant table `name` of a deep handler. A clause is one of
 *
 *   HAFT_TAIL(effect, function)     result function(void *state, HAFT_PAYLOAD(effect) *payload)
 *       Tail-resumptive: called in place, on the performer's stack, without a switch; what it returns
 *       is the result of the perform.
 *   HAFT_GENERAL(effect, function)  haft_answer_t function(void *state, HAFT_PAYLOAD(effect) *payload,
 *                                                          haft_resumption_t k)
 *       The computation is suspended; the clause continues it (haft_resumption_resume), ends by continuing it
 *       (return haft_tail_resume(k, reply)), drops it, or keeps it for later. Its answer is the
 *       answer of haft_handle, or of the haft_resumption_resume that let the computation run.
 *   HAFT_NEVER(effect, function)    void *function(void *state, HAFT_PAYLOAD(effect) *payload)
 *       The computation is unwound, with a copy of the payload kept, before the clause is called;
 *       what it returns is the answer.
 *
 * The types are checked by the compiler. `on_return`, void *(void *state, void *result), makes the
 * answer from what the body returned; NULL: the answer is the result. A clause runs outside its own
 * handler: what it performs goes to the handlers further out.
 */
#define HAFT_HANDLER(name, on_return, ...) HAFTI_HANDLER(name, on_return, __VA_ARGS__)
#define HAFT_TAIL(effect, function) HAFTI_TAIL(effect, function)
#define HAFT_GENERAL(effect, function) HAFTI_GENERAL(effect, function)
#define HAFT_NEVER(effect, function) HAFTI_NEVER(effect, function)

typedef struct haft_handler {
    haft_handles_t handles;
    void *(*on_return)(void *state, void *result);
    const char *name;
} haft_handler_t;

/*
 * Runs `body(argument)` under a handler and returns the answer. `state` is handed to every clause. A
 * handler with only tail-resumptive clauses needs no fiber: the body runs on the stack of the caller.
 * HAFT_NO_ANSWER, which is no other pointer, if no stack could be had and the error handler returned
 * (errno: ENOMEM); nothing has run then.
 */
#define HAFT_NO_ANSWER ((void *)(uintptr_t)&haft_no_answer)
extern HAFTI_API const char haft_no_answer;
HAFTI_API void *haft_handle(const haft_handler_t *handler, void *state, void *(*body)(void *),
                            void *argument);
HAFTI_API void *hafti_handle_sized(const haft_fiber_options_t *options, size_t size,
                                   const haft_handler_t *handler, void *state,
                                   void *(*body)(void *), void *argument);
HAFTI_INLINE void *haft_handle_with(const haft_fiber_options_t *options,
                                    const haft_handler_t *handler, void *state,
                                    void *(*body)(void *), void *argument) {
    return hafti_handle_sized(options, sizeof *options, handler, state, body, argument);
}

/* Continues a captured computation under its handler, with a reply made by HAFT_REPLY; returns the
   answer. */
HAFTI_API void *haft_resumption_resume(haft_resumption_t k, haft_reply_t reply);
HAFTI_API HAFTI_COLD haft_answer_t hafti_tail_resume_slow(haft_resumption_t k, haft_reply_t reply);
/*
 * To be returned by a general clause: the handler continues `k`, which need not be the clause's own, when
 * the clause is gone, so that a loop of such clauses runs in constant space. `k` is used up by the call.
 */
__attribute__((warn_unused_result)) HAFTI_INLINE haft_answer_t
haft_tail_resume(haft_resumption_t k, haft_reply_t reply) {
    if (HAFTI_UNLIKELY(k.fiber == (haft_fiber_t *)0 || k.fiber->scope.shot != k.shot ||
                       !hafti_is_reply_to(k.fiber->scope.awaits, reply.to) ||
                       (reply.to & HAFTI_AWAITS_MUCH) != 0))
        return hafti_tail_resume_slow(k, reply);
    k.fiber->scope.shot = k.shot + 1;
    return (haft_answer_t){reply.word, (uintptr_t)k.fiber};
}
/* Continues by calling `raise(argument)` at the perform; what it returns, if it does, is the reply. */
HAFTI_API void *haft_resumption_discontinue(haft_resumption_t k, haft_raise_t *raise,
                                            void *argument);
/* Drops a captured computation: its stack is unwound and released. */
HAFTI_API void haft_resumption_drop(haft_resumption_t k);
/* The effect a resumption waits on; NULL once it has been used. */
HAFTI_API haft_effect_t *haft_resumption_effect(haft_resumption_t k);

/* ---- Default handlers (§2.5) ---------------------------------------------------------------- */

/*
 * HAFT_SET_DEFAULT(name, function): sets what happens, in the whole process, when nobody handles the
 * effect: result function(void *unused, HAFT_PAYLOAD(name) *payload), called in place, outside all
 * handlers. NULL takes the default away. Returns nothing. The untyped form returns the one before.
 */
#define HAFT_SET_DEFAULT(name, function) HAFTI_SET_DEFAULT(name, function)
HAFTI_API haft_function_t *haft_set_default(haft_effect_t *effect, haft_function_t *function);
HAFTI_API haft_function_t *haft_default(const haft_effect_t *effect);

#ifndef HAFT_FREESTANDING
/* ---- Looking at fibers ---------------------------------------------------------------------- */

/*
 * Return addresses of a suspended fiber, innermost first, through the whole suspended chain, at most
 * `size`; returns how many. For backtrace_symbols_fd and its like. 0 for a fiber that is not suspended.
 */
HAFTI_API int haft_fiber_backtrace(const haft_fiber_t *fiber, void **addresses, int size);

/*
 * Writes a line for every live fiber of the process to a file descriptor: its name, state, the effect it
 * waits on, its stack use. Fibers that run meanwhile are shown as they were when looked at. 0, or -1 with
 * the errno of write(2).
 */
HAFTI_API int haft_fibers_dump(int descriptor);
/* The same on standard error whenever the process gets this signal. 0, or -1 with errno: EINVAL for what
   is no signal, cannot be caught, or is sent for a fault. */
HAFTI_API int haft_dump_on_signal(int signal);

/* ---- Memory --------------------------------------------------------------------------------- */

/*
 * The stack size of fibers that do not choose one: 1 MiB of reserved addresses. Rounded up to a power
 * of two of at least 16 KiB. For fibers made afterwards.
 *
 * Below a stack are at least 64 KiB of addresses that fault. Kernels before 6.13, and memory that is
 * locked (mlockall), need two mappings of the process for that: when guards have three quarters of
 * vm.max_map_count (24,573 stacks as Linux sets it), and where the kernel refuses both ways, further stacks
 * have a canary, which is looked at when the fiber is suspended and when it ends.
 */
HAFTI_API size_t haft_stack_size(void);
HAFTI_API void haft_set_stack_size(size_t bytes);

/* Later versions may add fields. */
typedef struct haft_pool_report {
    size_t reserved;  /* bytes of addresses */
    size_t stacks;    /* stacks in use */
    size_t idle;      /* stacks kept for reuse */
    size_t mappings;  /* regions asked of the system */
    size_t resident;  /* bytes of memory in stacks, used and idle */
    size_t unguarded; /* stacks in use that have a canary instead of a guard: dense ones, and those
                         that the system had no guard for */
} haft_pool_report_t;

/* How the pool of stacks stands. Looks at every stack: slow. */
HAFTI_API void hafti_pool_report_sized(haft_pool_report_t *report, size_t size);
HAFTI_INLINE haft_pool_report_t haft_pool_report(void) {
    haft_pool_report_t report;
    hafti_pool_report_sized(&report, sizeof report);
    return report;
}
/*
 * Gives the memory of idle stacks back to the system, and the page tables of those that lie side by side
 * in runs of 16 MiB and more; their addresses stay reserved. Stacks that other threads keep for
 * themselves, at most 128 each, are not reached. Returns the bytes given back, page tables not counted.
 *
 * Idle stacks that no thread keeps, and none has needed for a second, are given back without this: a few
 * at a time, by any thread that makes or frees fibers.
 */
HAFTI_API size_t haft_pool_trim(void);
#endif

/* ---- Errors --------------------------------------------------------------------------------- */

typedef enum haft_error_code {
    HAFT_ERROR_UNHANDLED = 1,   /* nobody handles an effect, and it has no default */
    HAFT_ERROR_NOT_RESUMABLE,   /* resumed while running, after the end, or by two threads */
    HAFT_ERROR_IN_USE,          /* freed or reset while running */
    HAFT_ERROR_USED_RESUMPTION, /* a resumption was used twice */
    HAFT_ERROR_NOT_AROUND,      /* yield or exit with a fiber that is not around the current one */
    HAFT_ERROR_WRONG_TYPE,      /* sizes that do not fit the effect, or a reply to another one */
    HAFT_ERROR_NO_REPLY,        /* resumed without a reply where the effect has a result */
    HAFT_ERROR_NO_MEMORY,       /* no stack could be had */
    HAFT_ERROR_STACK_OVERFLOW,  /* found by a canary: the stack has already been left */
    HAFT_ERROR_UNWINDING_STOPPED, /* a catch-all kept a fiber from being unwound */
    HAFT_ERROR_CAME_BACK,         /* a default handler returned to HAFT_THROW */
    HAFT_ERROR_BAD_ARGUMENT,
    HAFT_ERROR_IN_SIGNAL_HANDLER, /* a signal handler suspends, makes, resumes or frees a fiber */
    HAFT_ERROR_NO_CASE            /* a request that no case of a HAFT_MATCH takes */
} haft_error_code_t;

typedef struct haft_error {
    haft_error_code_t code;
    const char *message;         /* one or more sentences, no newline at the end */
    const haft_effect_t *effect; /* NULL if none is concerned */
    const haft_fiber_t *fiber;   /* likewise */
} haft_error_t;

/*
 * Sets the function that is told of errors; NULL: the default, which prints the message on standard
 * error. Returns the one before. It runs where the mistake was made and may leave by throwing an
 * exception or by longjmp within the same stack: the call that made the mistake has changed nothing
 * before the handler is called. If it returns, the process is aborted, save for HAFT_ERROR_NO_MEMORY,
 * where the failing call returns NULL.
 */
typedef void haft_error_handler_t(const haft_error_t *error);
HAFTI_API haft_error_handler_t *haft_set_error_handler(haft_error_handler_t *handler);

#ifdef HAFT_FREESTANDING
/* What is told of errors while there is no error handler. To be defined by the program; the library's
   own, which is weak, traps. */
void haft_panic(const char *message);
#endif

#include "haft/inner/typed.h"

HAFTI_EXTERN_C_END

#ifdef __cplusplus
#    pragma GCC diagnostic pop
#endif

#endif
