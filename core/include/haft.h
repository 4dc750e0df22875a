/* SPDX-License-Identifier: MIT */
/*
 * Haft: effect handlers for C.
 *
 *     #include <haft.h>
 *     HAFT_EFFECT(get, int64_t, {});
 *     HAFT_EFFECT(put, void, { int64_t new_value; });
 *
 * A function performs effects as it would call functions. The handlers around the call, when it
 * runs, decide what the effects do:
 *
 *     void *counter(void *argument) {
 *         for (int64_t i = HAFT_PERFORM(get); i > 0; i = HAFT_PERFORM(get))
 *             HAFT_PERFORM(put, i - 1);
 *         return NULL;
 *     }
 *
 * A computation that is handled runs on a fiber, a stack of its own. Performing an effect suspends
 * the fiber, and the code that resumed the fiber gets a request. It answers by resuming the fiber
 * with a reply: now, later, from another thread, or never:
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
 * default handlers; looking at fibers; memory; errors.
 *
 * Numbers of sections (§) refer to "High-level effect handlers in C".
 *
 * Programs do not use names that begin with hafti_ or HAFTI_: the macros below expand to such
 * names, which change from version to version. All others are documented here.
 *
 * Threads: every thread has a chain of handlers of its own. One thread at a time uses a fiber; any
 * thread may resume a suspended fiber. Unless stated otherwise, any thread may call a function, and
 * no other thread may use a fiber that the function is given.
 *
 * Errors: the library reports a mistake (an effect without a handler, a fiber resumed while it
 * runs...) to the error handler of the process. The default one prints what happened, to which
 * effect or fiber, and what to do; then the process aborts. See "errors" at the end.
 */
#ifndef HAFT_H
#define HAFT_H

/* Switches off, for this header alone, warnings of C++ about code that is right in C. */
#ifdef __cplusplus
#    pragma GCC diagnostic push
#    pragma GCC diagnostic ignored "-Wold-style-cast"
#    pragma GCC diagnostic ignored "-Wpedantic"
#    pragma GCC diagnostic ignored "-Wshadow"
#    ifdef __clang__
#        pragma GCC diagnostic ignored "-Wc99-extensions"
#    endif
#endif

/* Both sanitizers keep a second stack for each thread, which the switch does not switch. */
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

#include <stdarg.h>

#define HAFT_VERSION_MAJOR 0
#define HAFT_VERSION_MINOR 4
#define HAFT_VERSION_PATCH 0
/* The version of the library that the program runs with, as "0.4.0". */
HAFTI_API const char *haft_version(void);

/* Hot paths are compiled into programs, and with them the layout of fibers and handlers. A library
   with another layout does not have this symbol: the program does not link with it, or does not
   start. (In assembly, because gcc without optimisation would leave the assembler in the section of
   a variable, and file-scope assembly of the program would land there.) */
extern HAFTI_DATA const char haft_abi_0_4;
__asm__(".pushsection .data.rel.ro, \"aw\"\n\t"
        ".balign 8\n\t"
        ".quad haft_abi_0_4\n\t"
        ".popsection");

/* ---- Effects (§2.1) ------------------------------------------------------------------------- */

/*
 * HAFT_EFFECT(name, result, { fields });
 *
 * Declares an effect: its name, the type that performing it returns, and the fields of its payload.
 * The type is void, or any type that can be copied; name it by a typedef if it is written with
 * brackets, as a pointer to a function is. To be written at file scope, usually in a
 * header. The same line in several translation units, libraries or languages declares one effect.
 * There is no limit on the number of effects. The name is global to the process, like that of a
 * function: libraries should prefix it.
 *
 * An effect is identified by the address of its descriptor, HAFT_ID(name), a haft_effect_t *.
 */
#define HAFT_EFFECT(name, result, ...) HAFTI_EFFECT(HAFTI_SLOT_OF(#name), name, result, __VA_ARGS__)

/*
 * Like HAFT_EFFECT, for programs in which nanoseconds count. A scope of handlers caches where it
 * has found effects, in eight slots; each effect has one of them. If a computation alternates
 * between two effects with the same slot, each perform takes some nanoseconds more. HAFT_EFFECT
 * derives the slot from the name; here it is the first argument, 0 to 7. Slots 0 to 2 lie next to
 * the other fields of the scope that a perform reads.
 */
#define HAFT_EFFECT_IN_SLOT(slot, name, result, ...) HAFTI_EFFECT(slot, name, result, __VA_ARGS__)

#define HAFT_ID(name) (&haft_id_##name)
#define HAFT_PAYLOAD(name) haft_payload_##name /* the payload's type */
#define HAFT_RESULT(name) haft_result_##name   /* the result's type */

/* ---- Performing ----------------------------------------------------------------------------- */

/*
 * HAFT_PERFORM(name, fields...)
 *
 * Performs the effect: finds its innermost handler, and returns what the handler replies. The first
 * perform in a new handler looks at every handler that stands between; later ones do not depend on
 * the number of handlers between. The compiler checks the fields against the declaration, like
 * arguments. With no handler in scope, the effect's default handler is called; with no default
 * either, the perform is an error.
 *
 * A perform may not return: the handler may drop the computation, in which case cleanups and
 * destructors run (compile C with -fexceptions for the former). It may return on another thread:
 * addresses of thread-local variables, errno's among them, do not hold across it.
 */
#define HAFT_PERFORM(...) HAFTI_PERFORM(__VA_ARGS__, )

/*
 * HAFT_YIELD(fiber, name, fields...)
 *
 * Suspends `fiber`, the current fiber or one around it, with this effect, whatever its resumer
 * handles. With a fiber from haft_locate this is a perform without the search (§3.2, §4.1.1). Any
 * other fiber is an error.
 */
#define HAFT_YIELD(fiber, ...) HAFTI_YIELD(fiber, __VA_ARGS__, )

/*
 * HAFT_THROW(name, fields...)       performs an effect and never comes back (§3.2)
 * HAFT_EXIT(fiber, name, fields...) the same with `fiber`, whatever its resumer handles
 *
 * Everything from here up to and including the fiber that a perform would suspend is unwound,
 * innermost first: cleanups and destructors run. Then the handler gets the request, and the fiber
 * is finished. The payload is copied; the copy stays valid until the fiber is dropped or reset.
 * With no handler in scope the default handler runs; if it returns, that is an error.
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
 * Returns the fiber that performing `effect` here would suspend. NULL if no handler handles the
 * effect, or if its clause would run in place. The result holds as long as the current fiber is not
 * suspended and the fibers around it stay as they are.
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
                         docs/segmented.md). `stack_size` is ignored, `memory` is refused */
    bool no_cleanups; /* a promise that nothing on this stack needs unwinding: dropping the fiber or
                         throwing from it runs no cleanups and no destructors, and does not cost the
                         time of unwinding */
    bool dense;       /* a small stack among others on one page: header and stack together take
                         `stack_size` bytes: 1, 2 (or 0), 4 or 8 KiB; below 8 KiB as if with
                         `no_cleanups`. A canary instead of a guard, as for `memory`. With a larger
                         `stack_size` the stack is an ordinary one. Another `stack_size`, `memory`
                         and `segmented` are refused */
} haft_fiber_options_t;

/* The unwinder runs on the stack that it unwinds, and needs room there: a fiber in less memory of
   the caller than this is as if made with `no_cleanups`. */
#define HAFT_UNWINDING_MINIMUM ((size_t)8192)
/* The least memory for a fiber: its header and some 500 bytes of stack. */
#define HAFT_FIBER_MINIMUM ((size_t)1152)

/*
 * Makes a fiber that will run `function(argument)`; nothing runs until it is resumed. To be
 * released with haft_fiber_drop. NULL if memory is exhausted and the error handler returned (errno:
 * ENOMEM). `options` may be NULL.
 */
HAFTI_API haft_fiber_t *haft_fiber_new(void *(*function)(void *), void *argument);
HAFTI_API haft_fiber_t *hafti_fiber_new_sized(const haft_fiber_options_t *options, size_t size,
                                              void *(*function)(void *), void *argument);
HAFTI_INLINE haft_fiber_t *haft_fiber_new_with(const haft_fiber_options_t *options,
                                               void *(*function)(void *), void *argument) {
    return hafti_fiber_new_sized(options, sizeof *options, function, argument);
}

/*
 * Releases a fiber that is not running. The stack of a suspended fiber, and the stacks of the
 * fibers that are suspended inside it, are unwound first, innermost first: cleanups and destructors
 * run. NULL is ignored. Memory that the caller gave is the caller's again.
 *
 * A finished fiber in memory of the caller need not be dropped: the library keeps no pointer into
 * the memory, and the payload of a throw that ended the fiber lies there, too, if there is room.
 * Until the fiber has finished, another fiber in the same memory is refused, unless it lies in a
 * frame of the first.
 */
HAFTI_API void haft_fiber_drop(haft_fiber_t *fiber);

/* Drops what a fiber was doing, as haft_fiber_drop does, and makes it run `function(argument)` when
   it is resumed next. */
HAFTI_API void haft_fiber_reset(haft_fiber_t *fiber, void *(*function)(void *), void *argument);

/* Declares a variable whose fiber is dropped when the variable's scope is left, also by unwinding:
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
    HAFT_FIBER_DROPPED    /* seen only through a stale pointer */
} haft_fiber_state_t;

HAFTI_API haft_fiber_state_t haft_fiber_state(const haft_fiber_t *fiber);
HAFTI_API const char *haft_fiber_name(const haft_fiber_t *fiber);          /* "" when it has none */
HAFTI_API void haft_fiber_set_name(haft_fiber_t *fiber, const char *name); /* not copied */
/* The innermost running fiber, NULL on a thread's own stack. In a clause that runs in place, the
   fiber of the code around the handler. */
HAFTI_API haft_fiber_t *haft_fiber_current(void);
/* The fiber around a running fiber; NULL when the thread's own stack resumed it. */
HAFTI_API haft_fiber_t *haft_fiber_parent(const haft_fiber_t *fiber);

/*
 * Declares that the next thread to resume the suspended `fiber` may be another one. No program has
 * to call this: it saves time. Without it, the first resume on a new thread makes a system call, to
 * make sure that the old thread is not resuming the fiber at the same time.
 */
HAFTI_API void haft_fiber_detach(haft_fiber_t *fiber);

/* ---- Handling by requests (§2.1, "sheep" handlers) ------------------------------------------ */

/*
 * A reply to an effect: HAFT_REPLY(name, value), which the compiler checks against the effect's
 * declaration. The reply may point to the value: it is valid until the end of the enclosing block
 * (C++: of the full expression). HAFT_REPLY(name) replies to an effect that returns nothing;
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
 * haft_resume(fiber, reply, handles): starts or resumes a fiber and handles the effects in
 * `handles` until one of them suspends it, it returns, or it throws. `reply` becomes the result of
 * the perform that suspended the fiber; a reply to another effect is an error that names both
 * effects.
 *
 * The request's `effect` is HAFT_ID(name) of the effect that was performed or thrown, or
 * HAFT_ID(return) when the function has returned. `payload` points into the performer's stack: it
 * is valid until the fiber is resumed or dropped, not longer.
 *
 * An exception of C++ (or of another language that unwinds) that leaves the fiber's function leaves
 * haft_resume, in the resumer; the fiber is finished.
 *
 * Errors: the fiber is running, here or on another thread, has finished, or was dropped; the reply
 * is to another effect than the one that suspended it; `handles` is NULL (the empty set is
 * HAFT_HANDLES()).
 */
HAFTI_API haft_request_t hafti_resume_checked(haft_fiber_t *fiber, haft_reply_t reply,
                                              const haft_handles_t *handles);
HAFTI_INLINE haft_request_t haft_resume(haft_fiber_t *fiber, haft_reply_t reply,
                                        const haft_handles_t *handles) {
    hafti_here_t here = hafti_here();
    if (HAFTI_LIKELY(hafti_resumes_hot(here, fiber, handles) &&
                     hafti_is_reply_to(fiber->awaits, reply.to)))
        return hafti_resume_known(here, fiber, reply.word);
    return hafti_resume_checked(fiber, reply, handles);
}

/*
 * HAFT_HANDLES(name, name...)  a set of effects (up to 364 names; it may be empty)
 * HAFT_HANDLES_ALL             the set of every effect
 *
 * Sets are constants. A program may build a set itself, with `number` 0. If it changes the set, or
 * builds another one at the same address, it must call haft_handles_changed(fiber) before it
 * resumes the fiber with that set. The same holds for a fiber whose last set was in a plugin that
 * has been closed, if another plugin resumes it: the new plugin's sets may lie at the same
 * addresses.
 */
#define HAFT_HANDLES(...) HAFTI_HANDLES(__VA_ARGS__)
#define HAFT_HANDLES_ALL (&haft_handles_all)
extern HAFTI_DATA const haft_handles_t haft_handles_all;
HAFTI_API void haft_handles_changed(haft_fiber_t *fiber);

/*
 * HAFT_MATCH(request) {
 *     HAFT_CASE(name, payload) { ... payload->field ... }      payload: a HAFT_PAYLOAD(name) *
 *     HAFT_RETURN(result) { ... }                              result: the void * that was returned
 *     HAFT_OTHERWISE(rest) { ... }                             rest: the haft_request_t itself
 * }
 * Runs the first block that fits the request as it was on entry; a block may assign to `request`.
 * `break` and `continue` leave the block. A request that no block fits is an error that names its
 * effect; HAFT_OTHERWISE, which comes last, fits every request.
 */
#define HAFT_MATCH(request) HAFTI_MATCH(request)
#define HAFT_OTHERWISE(request) HAFTI_OTHERWISE(request)
#define HAFT_CASE(name, payload) HAFTI_CASE(name, payload)
#define HAFT_RETURN(result) HAFTI_RETURN(result)

/* The request of a fiber that has returned: HAFT_ID(return), HAFT_PAYLOAD(return). */
typedef struct {
    void *result;
} haft_payload_return;
extern HAFTI_DATA haft_effect_t haft_id_return;

HAFTI_INLINE bool haft_finished(haft_request_t request) {
    return request.effect == HAFT_ID(return );
}

/*
 * Like haft_resume, but instead of giving a reply calls `raise(argument)` at the perform that
 * suspended the fiber, on the fiber's stack: to throw an exception there, or to look around. If
 * `raise` returns, its result is the reply; a reply of more than a word must not lie in the frame
 * of `raise`.
 */
typedef haft_reply_t haft_raise_t(void *argument);
HAFTI_API haft_request_t haft_discontinue(haft_fiber_t *fiber, haft_raise_t *raise, void *argument,
                                          const haft_handles_t *handles);

/* ---- Handling by clauses (deep handlers) ---------------------------------------------------- */

/*
 * A computation that waits at a perform, as a general clause receives it. One-shot: it is resumed,
 * discontinued or dropped, once; a second use is an error that names the effect. To resume it
 * several times, copy it before (haft_resumption_copy). A resumption may outlive the haft_handle
 * that captured it, and is resumed under the same handler: the state that the handler was given
 * must live as long.
 */
typedef struct haft_resumption {
    haft_fiber_t *fiber;
    uint64_t shot;
} haft_resumption_t;

/*
 * The result of a general clause: an answer, haft_answer(value), or haft_tail_resume(k, reply),
 * which resumes a computation after the clause; that computation's answer is then the clause's.
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
 *       Tail-resumptive: called in place, on the performer's stack, without a switch; its result is
 *       the result of the perform.
 *   HAFT_GENERAL(effect, function)  haft_answer_t function(void *state,
 *                                                          HAFT_PAYLOAD(effect) *payload,
 *                                                          haft_resumption_t k)
 *       The computation is suspended. The clause resumes it (haft_resumption_resume), ends by
 *       resuming it (return haft_tail_resume(k, reply)), drops it, or keeps it for later. The
 *       answer of the clause is the answer of haft_handle, or of the haft_resumption_resume that
 *       let the computation run.
 *   HAFT_NEVER(effect, function)    void *function(void *state, HAFT_PAYLOAD(effect) *payload)
 *       The computation is unwound, then the clause is called with a copy of the payload. It
 *       returns the answer.
 *
 * A computation is unwound under its own handler, whatever ends it: what its cleanups perform comes
 * to the clauses.
 *
 * The compiler checks the types. `on_return`, void *(void *state, void *result), makes the answer
 * from what the body returned; if it is NULL, the body returns the answer. A clause runs outside
 * its own handler: what it performs goes to the handlers further out.
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
 * Runs `body(argument)` under a handler and returns the answer. `state` is handed to every clause.
 * A handler with only tail-resumptive clauses needs no fiber: the body runs on the stack of the
 * caller. If no stack could be had and the error handler returned, returns HAFT_NO_ANSWER, which
 * differs from every other pointer, without having run the body (errno: ENOMEM).
 */
#define HAFT_NO_ANSWER ((void *)(uintptr_t)&haft_no_answer)
extern HAFTI_DATA const char haft_no_answer;
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

#include "haft/inner/general.h"

/* Resumes a captured computation under its handler, with a reply made by HAFT_REPLY; returns the
   answer. */
HAFTI_INLINE void *haft_resumption_resume(haft_resumption_t k, haft_reply_t reply) {
    return hafti_resumption_resume_hot(k, reply);
}
HAFTI_API HAFTI_COLD haft_answer_t hafti_tail_resume_slow(haft_resumption_t k, haft_reply_t reply);
/*
 * To be returned by a general clause: the handler resumes `k`, which need not be the clause's own,
 * when the clause is gone, so that a loop of such clauses runs in constant space. The call uses `k`
 * up.
 */
__attribute__((warn_unused_result)) HAFTI_INLINE haft_answer_t
haft_tail_resume(haft_resumption_t k, haft_reply_t reply) {
    if (HAFTI_UNLIKELY(k.fiber == (haft_fiber_t *)0 || k.fiber->scope.shot != k.shot ||
                       !hafti_is_reply_to(k.fiber->awaits, reply.to) ||
                       (reply.to & HAFTI_AWAITS_MUCH) != 0))
        return hafti_tail_resume_slow(k, reply);
    k.fiber->scope.shot = k.shot + 1;
    return (haft_answer_t){reply.word, (uintptr_t)k.fiber};
}
/* Resumes by calling `raise(argument)` at the perform, as haft_discontinue; returns the answer. */
HAFTI_API void *haft_resumption_discontinue(haft_resumption_t k, haft_raise_t *raise,
                                            void *argument);
/*
 * Drops a captured computation: its stack is unwound under its handler, and released. If a cleanup
 * performs an effect with a general clause, the clause gets a resumption: by resuming it the clause
 * lets the unwinding go on, and gets HAFT_NO_ANSWER, since a dropped computation has no answer. If
 * the clause keeps it, this call returns before the rest is unwound.
 */
HAFTI_API void haft_resumption_drop(haft_resumption_t k);
/* The effect a resumption waits on; NULL once it has been used. */
HAFTI_API haft_effect_t *haft_resumption_effect(haft_resumption_t k);

#ifndef HAFT_FREESTANDING
/*
 * Returns another resumption of the computation that `k` names: each of the two is used once, on
 * its own, in any order, also after the other's computation has ended, and can be copied again.
 * `k` stays as it is.
 *
 * The frames of the computation are copied byte by byte, as they wait: what they own or point to
 * elsewhere is shared (memory of malloc, files, the handler's state, a resumption that a frame
 * holds, a fiber that has come back to a frame with a request). Copies of a computation run on its
 * fibers, one at a time, where the first one ran; any other is kept aside, in as many bytes as its
 * frames have, and some 100 more. A payload is valid until any copy is resumed. One thread at a
 * time uses a computation and its copies.
 *
 * Errors: `k` has been used; a frame has a cleanup or destructor to run, or code on it handles an
 * exception (HAFT_ERROR_NOT_COPYABLE); the stack is segmented, in memory of the caller, or holds
 * frames of a language other than C and C++, or a fiber in memory of a frame; no memory. Using a
 * copy is an error (HAFT_ERROR_NOT_RESUMABLE) while one of its fibers runs: code of a computation
 * cannot resume a copy of that computation; while a fiber of it is suspended that haft_resume is to
 * resume; or while one has ended and has not been dropped. Address sanitizers must not detect uses
 * of stacks after return; the thread sanitizer knows no copies.
 */
HAFTI_API haft_resumption_t haft_resumption_copy(haft_resumption_t k);

/*
 * Promises that frames of `function` may be copied byte by byte although they have cleanups, or
 * resume a fiber in a function that has cleanups elsewhere: each copy runs them. At most 64
 * functions; an error if there are more. (The library's own cleanups, in a function that calls
 * haft_resumption_resume, count: they drop the clause's resumption if it was not used.)
 */
HAFTI_API void haft_may_copy_frames(haft_function_t *function);
#endif

/* ---- Default handlers (§2.5) ---------------------------------------------------------------- */

/*
 * HAFT_SET_DEFAULT(name, function): sets the function that is called, in the whole process, when no
 * handler handles the effect: result function(void *unused, HAFT_PAYLOAD(name) *payload), in place,
 * outside all handlers. NULL removes the default. The untyped form returns the function that was
 * set before.
 */
#define HAFT_SET_DEFAULT(name, function) HAFTI_SET_DEFAULT(name, function)
HAFTI_API haft_function_t *haft_set_default(haft_effect_t *effect, haft_function_t *function);
HAFTI_API haft_function_t *haft_default(const haft_effect_t *effect);

#ifndef HAFT_FREESTANDING
/* ---- Looking at fibers ---------------------------------------------------------------------- */

/*
 * Stores at most `size` return addresses of a suspended fiber and of the fibers suspended inside
 * it, innermost first, and returns how many: for backtrace_symbols_fd and its like. 0 for a fiber
 * that is not suspended.
 */
HAFTI_API int haft_fiber_backtrace(const haft_fiber_t *fiber, void **addresses, int size);

/*
 * Leaves out the frames of Haft's libraries at the outer end of such a backtrace, or of one of
 * backtrace(3): all that have called `entry`, the function that the program has given (NULL: it is
 * not known); and, if the code is suspended, those at the inner end, but for the function that the
 * program has called. Where a program is linked with the archives and exports no symbols, only
 * `entry` tells. Returns how many frames are left; at least one is, if there was one. Signal
 * handlers may call it.
 */
HAFTI_API int haft_programs_frames(void **addresses, int count, const void *entry,
                                   bool is_suspended);

/*
 * Writes a line for every live fiber of the process to a file descriptor: its name, state, the
 * effect it waits on, its stack use. Other threads may run fibers meanwhile: each is shown as it
 * was at some moment of the call. Returns 0, or -1 with the errno of write(2).
 */
HAFTI_API int haft_fibers_dump(int descriptor);
/* Does the same on standard error whenever the process gets this signal. Returns 0, or -1 with
   errno: EINVAL if `signal` is no signal, cannot be caught, or is sent for a fault. */
HAFTI_API int haft_dump_on_signal(int signal);

/* ---- Memory --------------------------------------------------------------------------------- */

/*
 * The stack size, in bytes of reserved addresses, of fibers that do not choose one; 1 MiB until it
 * is set. A size is rounded up to a power of two of at least 16 KiB, and holds for fibers made
 * afterwards.
 *
 * Below a stack is a guard: at least 64 KiB of addresses that fault. On kernels before 6.13, and in
 * locked memory (mlockall), a guard takes two of the mappings that the process may have. When
 * guards have taken three quarters of vm.max_map_count (24,573 stacks with Linux's default), or
 * where the kernel refuses a guard, further stacks have a canary instead, which the library looks
 * at when the fiber is suspended and when it ends.
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

/* Reports what the pool of stacks holds. Slow, because it looks at every stack. */
HAFTI_API void hafti_pool_report_sized(haft_pool_report_t *report, size_t size);
HAFTI_INLINE haft_pool_report_t haft_pool_report(void) {
    haft_pool_report_t report;
    hafti_pool_report_sized(&report, sizeof report);
    return report;
}
/*
 * Gives the memory of idle stacks back to the system, and the page tables of those that lie side by
 * side in runs of 16 MiB and more; their addresses stay reserved. The stacks that other threads
 * keep for themselves, at most 128 each, stay as they are. Returns the bytes given back, page
 * tables not counted.
 *
 * Without this call, any thread that makes or drops fibers gives back a few at a time of the idle
 * stacks that no thread keeps and none has needed for a second.
 */
HAFTI_API size_t haft_pool_trim(void);
#endif

/* ---- Errors --------------------------------------------------------------------------------- */

typedef enum haft_error_code {
    HAFT_ERROR_UNHANDLED = 1,   /* an effect has neither a handler nor a default */
    HAFT_ERROR_NOT_RESUMABLE,   /* resumed while running, after the end, or by two threads */
    HAFT_ERROR_IN_USE,          /* freed or reset while running */
    HAFT_ERROR_USED_RESUMPTION, /* a resumption was used twice */
    HAFT_ERROR_NOT_AROUND,      /* yield or exit with a fiber that is not around the current one */
    HAFT_ERROR_WRONG_TYPE,      /* sizes that do not fit the effect, or a reply to another one */
    HAFT_ERROR_NO_REPLY,        /* resumed without a reply where the effect has a result */
    HAFT_ERROR_NO_MEMORY,       /* for a fiber, a payload that was thrown, a thread's state... */
    HAFT_ERROR_STACK_OVERFLOW,  /* found late: memory below may be overwritten */
    HAFT_ERROR_UNWINDING_STOPPED, /* a catch-all kept a fiber from being unwound */
    HAFT_ERROR_CAME_BACK,         /* a default handler returned to HAFT_THROW */
    HAFT_ERROR_BAD_ARGUMENT,
    HAFT_ERROR_IN_SIGNAL_HANDLER, /* a signal handler suspends, makes, resumes or frees a fiber */
    HAFT_ERROR_NO_CASE,           /* a request that no case of a HAFT_MATCH takes */
    HAFT_ERROR_OF_LIBRARY,        /* reported by a library on top of this one: haft_misused */
    HAFT_ERROR_NOT_COPYABLE,      /* frames that a copy of a computation cannot have */
    HAFT_ERROR_REFUSED            /* a call returns an error number: haft_refuse */
} haft_error_code_t;

typedef struct haft_error {
    haft_error_code_t code;
    const char *message;         /* one or more sentences, no newline at the end */
    const haft_effect_t *effect; /* NULL if none is concerned */
    const haft_fiber_t *fiber;   /* likewise */
} haft_error_t;

/*
 * Sets the error handler, the function that receives errors, and returns the previous one. NULL
 * sets the default, which prints the message on standard error. The error handler runs where the
 * mistake was made. It may leave by throwing an exception, or by longjmp within the same stack: the
 * call that made the mistake has changed nothing before. If the error handler returns, the process
 * is aborted, with two exceptions. After HAFT_ERROR_REFUSED the refused call returns its error
 * number, as if there were no error handler; the default one prints each such text once. When there
 * was no memory for a new fiber, the failing call returns NULL (haft_handle: HAFT_NO_ANSWER). Other
 * calls that run out of memory cannot report it by a result,
 * so they abort: a throw with a payload larger than a word, haft_tail_resume with such a reply, a
 * thread's first use of the library.
 */
typedef void haft_error_handler_t(const haft_error_t *error);
HAFTI_API haft_error_handler_t *haft_set_error_handler(haft_error_handler_t *handler);

/*
 * For libraries on top of this one: reports a mistake of the library's user to the error handler,
 * or on standard error. Aborts if the error handler returns. The error handler may leave, so the
 * caller must have changed nothing before, and must hold no lock. The message is copied, and cut
 * after some 600 bytes; `code` may be any, HAFT_ERROR_OF_LIBRARY if no other fits.
 */
HAFTI_API HAFTI_COLD __attribute__((noreturn)) void haft_misused(const haft_error_t *error);

/*
 * Sets a function that is called before an unhandled effect is reported, on the performer's stack
 * and under its handlers. The function may leave that stack, as libhaft-io does to let only a task
 * fail. If it returns, the report ends the process. Returns the function that was set before, or
 * NULL; the new one calls it where it has nothing to leave.
 */
typedef void haft_unhandled_t(const haft_effect_t *effect);
HAFTI_API haft_unhandled_t *haft_set_unhandled(haft_unhandled_t *function);

#ifndef HAFT_FREESTANDING
/*
 * For libraries on top of this one, whose calls return error numbers for mistakes of the program:
 * reports what is wrong, with which value, and what to write instead. Reports "FUNCTION: WORDS" to
 * the error handler with HAFT_ERROR_REFUSED, followed by the text that `end`, which may be NULL,
 * writes: which task has called. Returns `number`. The caller must hold no lock, and must be able
 * to return, because the error handler may leave. Any thread may call this, on a small stack too:
 * the words are made on the thread's own. They are cut after some 600 bytes. A number that data
 * from outside causes is no mistake of the program and needs no words.
 */
typedef struct haft_refusal {
    int number;           /* the result of the call: a negative error number */
    const char *function; /* the public function's name */
    void (*end)(char *text, size_t room);
} haft_refusal_t;
HAFTI_API HAFTI_COLD int haft_refuse(const haft_refusal_t *refusal, const char *format,
                                     va_list arguments) __attribute__((format(printf, 2, 0)));

/*
 * For bindings, whose exceptions have the words: if the calling thread's last call that was refused
 * returned `number`, stores its words in `text`, cut to `room` bytes, and returns true; the words
 * are forgotten then. Call it at once after a call that has returned an error. The words of the
 * last 16 refusals of the process are kept, without the task's name.
 */
HAFTI_API HAFTI_COLD bool haft_take_refusal(int number, char *text, size_t room);

/*
 * For the same libraries: a function that adds to messages about the library's own fibers. It
 * returns the end of the message of a stack overflow, or of an unwinding that a noexcept function
 * of C++ stops: which fiber it is, and how to give it a larger stack. For any other fiber it must
 * return what the previously set function returns, or NULL if there was none. The whole message is
 * cut after some 600 bytes. Returns the previously set function, or NULL. Set yours before fibers
 * are made, and set the previous one again before the library is unloaded. It is called in a signal
 * handler.
 */
typedef const char *haft_stack_advice_t(const haft_fiber_t *fiber);
HAFTI_API haft_stack_advice_t *haft_set_stack_advice(haft_stack_advice_t *advice);
#else
/* Called with the message of an error while there is no error handler. To be defined by the
   program; the library's own, which is weak, traps. */
void haft_panic(const char *message);
#endif

#include "haft/inner/typed.h"

HAFTI_EXTERN_C_END

#ifdef __cplusplus
#    pragma GCC diagnostic pop
#endif

/* Nothing else reveals that -fexceptions is missing: the program works until something is dropped.
   A program that has nothing to clean up defines the macro. */
#if !defined(__EXCEPTIONS) && !defined(HAFT_WITHOUT_CLEANUPS) && !defined(HAFT_FREESTANDING)
#    warning                                                                                       \
        "without -fexceptions (pkg-config --cflags haft) no cleanup runs when a fiber or a task is \
unwound, HAFT_SCOPED and HAFT_IO_SCOPED_DESCRIPTOR included; if none has to, define \
HAFT_WITHOUT_CLEANUPS"
#endif

#endif
