/* SPDX-License-Identifier: MIT */
/*
 * The interface of libseff ("High-level effect handlers in C"), on Haft: programs written for that
 * library compile with this header and link with haft-compat (pkg-config: haft-seff).
 *
 *     #include <seff.h>
 *     DEFINE_EFFECT(get, 0, int64_t, {});
 *     DEFINE_EFFECT(put, 1, void, { int64_t new_value; });
 *
 *     seff_coroutine_t *k = seff_coroutine_new(counter, NULL);
 *     seff_request_t request = seff_handle(k, NULL, HANDLES(get) | HANDLES(put));
 *     switch (request.effect) {
 *         CASE_EFFECT(request, get, { ... seff_handle(k, (void *)state, ...); break; })
 *         CASE_EFFECT(request, put, { ... payload.new_value ...; break; })
 *         CASE_RETURN(request, { ... payload.result ...; break; })
 *     }
 *     seff_coroutine_delete(k);
 *
 * Effects are numbers from 0 to 63. The payload of an effect and its result travel as pointers: an
 * integer result is cast to a pointer and back. A coroutine that is deleted or left by seff_exit
 * and seff_throw is not unwound, as in libseff: cleanups on its stack do not run. Programs that
 * need cleanups, wider results, or more effects, use haft.h, also beside this header: coroutines
 * and the fibers of haft.h are on one chain of handlers. The guide, "Coming from libseff",
 * describes the differences.
 *
 * Mistakes that are undefined in libseff are errors here, reported as haft.h describes: a coroutine
 * resumed while it runs, after its end or after its release; a yield or exit from a coroutine that
 * is not around the caller; an effect without a handler; a number that is not an effect's.
 */
#ifndef HAFT_COMPAT_SEFF_H
#define HAFT_COMPAT_SEFF_H

#include "seff_types.h"

#include <assert.h>
#include <haft.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#    define SEFF_STATIC_ASSERT static_assert
#else
#    define SEFF_STATIC_ASSERT _Static_assert
#endif

/* ---- Effects ---- */

/* DEFINE_EFFECT(name, id, result type, { payload fields }); */
#define DEFINE_EFFECT(name, id, result, ...)                                                       \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wpedantic\"") enum {         \
        seff_id_##name = (id)                                                                      \
    };                                                                                             \
    typedef result seff_result_##name;                                                             \
    __extension__ typedef struct seff_payload_##name __VA_ARGS__ seff_payload_##name;              \
    static const seff_name_t seff_name_##name = {(id), #name, __FILE__ ":" HAFTI_TEXT(__LINE__)};  \
    static __attribute__((used, section("seff_names"))) const seff_name_t *seff_listed_##name =    \
        &seff_name_##name;                                                                         \
    _Pragma("GCC diagnostic pop") SEFF_STATIC_ASSERT((id) >= 0 && (id) < MAX_EFFECTS,              \
                                                     "an effect's number is from 0 to 63: " #name)

#define EFF_ID(name) seff_id_##name
#define EFF_PAYLOAD_T(name) seff_payload_##name
#define EFF_RET_T(name) seff_result_##name
#define HANDLES(name)                                                                              \
    ((effect_set)((effect_id)EFF_ID(name) < MAX_EFFECTS) << ((effect_id)EFF_ID(name) % MAX_EFFECTS))

#define seff_id_return RETURN_EFFECT_ID
typedef struct seff_payload_return {
    void *result;
} seff_payload_return;
typedef void seff_result_return;

/* ---- Coroutines ---- */

/* These return false or NULL when memory is exhausted. A stack has the size that
   haft_set_stack_size sets, 1 MiB by default, in addresses; memory is committed as it is used.
   `stack_size`, or LIBSEFF_DEFAULT_FRAME_SIZE in the environment, gives a stack more bytes; a
   smaller number has no effect. */
bool seff_coroutine_init(seff_coroutine_t *k, seff_start_fun_t *function, void *argument);
bool seff_coroutine_init_sized(seff_coroutine_t *k, seff_start_fun_t *function, void *argument,
                               size_t stack_size);
void seff_coroutine_release(seff_coroutine_t *k);
/* Starts again from the beginning, with the same function and argument. */
void seff_coroutine_reset(seff_coroutine_t *k);
seff_coroutine_t *seff_coroutine_new(seff_start_fun_t *function, void *argument);
seff_coroutine_t *seff_coroutine_new_sized(seff_start_fun_t *function, void *argument,
                                           size_t stack_size);
void seff_coroutine_delete(seff_coroutine_t *k); /* NULL is ignored */
/* The same on a dense stack, which libseff does not have: `stack_size` bytes, at most 8 KiB (0: 2
   KiB), of which coroutine and fiber take 750. Dense stacks lie side by side and have no guards, so
   thousands of coroutines are made in half the time. An overflow writes into another coroutine, and
   is reported when the coroutine is next suspended. A larger size, and LIBSEFF_DEFAULT_FRAME_SIZE
   of more, gives an ordinary stack with a guard, of that size. */
bool seff_coroutine_init_dense(seff_coroutine_t *k, seff_start_fun_t *function, void *argument,
                               size_t stack_size);
seff_coroutine_t *seff_coroutine_new_dense(seff_start_fun_t *function, void *argument,
                                           size_t stack_size);

/* The coroutine that performing the effect would suspend; NULL if no handler handles it. */
seff_coroutine_t *seff_locate_handler(effect_id effect);
/* The innermost running coroutine; NULL outside of coroutines. */
seff_coroutine_t *seff_current_coroutine(void);
/* The lowest address of the running coroutine's stack, or of its segment in use: the end towards
   which the stack grows. NULL outside of coroutines. */
void *seff_current_stack_top(void);

/* seff_exit sends the effect to the resumer of `k`, and seff_throw to the effect's handler; neither
   returns. The payload must outlive the stack of the coroutine that ends; EXIT and THROW copy their
   payload. seff_exit(k, EFF_ID(return), v) ends `k` as if its function had returned v. */
void seff_exit(seff_coroutine_t *k, effect_id effect, void *payload) __attribute__((noreturn));
void seff_throw(effect_id effect, void *payload) __attribute__((noreturn));

/* Sets the function that is called in place when no handler handles the effect, and returns the
   previous one; NULL removes the default. */
default_handler_t *seff_set_default_handler(effect_id effect, default_handler_t *handler);
default_handler_t *seff_get_default_handler(effect_id effect);

/* ---- What the inline functions below are made of ---- */

typedef struct seff_name {
    effect_id id;
    const char *name, *where;
} seff_name_t;

/* A power of two in size, so that the number of a descriptor is a shift away. */
typedef struct seff_effect {
    haft_effect_t effect;
} __attribute__((aligned(128))) seff_effect_t;
extern seff_effect_t seff_effects[64];

#define SEFF_SHAPE HAFTI_SHAPE(0, sizeof(void *))

seff_request_t seff_resume_slow(seff_coroutine_t *k, void *argument, effect_set handled);
seff_request_t seff_other_request(seff_coroutine_t *k, haft_request_t request);
HAFTI_COLD void *seff_yield_slow(seff_coroutine_t *k, effect_id id, void *payload);
HAFTI_COLD void seff_check_id(effect_id id) __attribute__((noreturn));
void seff_exit_sized(seff_coroutine_t *k, effect_id effect, void *payload, size_t size)
    __attribute__((noreturn));
void seff_throw_sized(effect_id effect, void *payload, size_t size) __attribute__((noreturn));

HAFTI_INLINE haft_effect_t *seff_effect_of(effect_id id) {
    if (HAFTI_UNLIKELY(id >= MAX_EFFECTS))
        seff_check_id(id);
    return &seff_effects[id % MAX_EFFECTS].effect; /* for compilers that do not see the test */
}

/* ---- Resuming and performing ---- */

/* How far above a coroutine its fiber is, where the coroutine lies on its fiber's stack. */
enum { SEFF_BELOW = 128 };
/* A predicted branch replaces the load of an address for which the whole switch would wait, as in
   haft/inner/hot.h. */
HAFTI_INLINE haft_fiber_t *seff_fiber_of(seff_coroutine_t *k) {
    haft_fiber_t *fiber = k->fiber;
    if (HAFTI_LIKELY((char *)fiber == (char *)k + SEFF_BELOW))
        fiber = (haft_fiber_t *)(void *)((char *)hafti_same(k) + SEFF_BELOW);
    return fiber;
}

/* Starts or resumes `k`, handling the effects in `handled`. The paper's name is seff_handle. */
HAFTI_INLINE seff_request_t seff_resume(seff_coroutine_t *k, void *argument, effect_set handled) {
    if (HAFTI_UNLIKELY(k->handled != handled))
        return seff_resume_slow(k, argument, handled);
    /* A coroutine that cannot be resumed is reported in here. */
    k->state = RUNNING;
    haft_fiber_t *fiber = seff_fiber_of(k);
    haft_request_t request = hafti_resume_hot(fiber, argument, fiber->scope.handles);
    uintptr_t offset = (uintptr_t)request.effect - (uintptr_t)seff_effects;
    if (HAFTI_UNLIKELY(offset >= sizeof seff_effects))
        return seff_other_request(k, request);
    k->state = PAUSED;
    seff_request_t result = {offset / sizeof(seff_effect_t), request.payload};
    return result;
}

HAFTI_INLINE seff_request_t seff_handle(seff_coroutine_t *k, void *argument, effect_set handled) {
    return seff_resume(k, argument, handled);
}

HAFTI_INLINE seff_request_t seff_resume_handling_all(seff_coroutine_t *k, void *argument) {
    return seff_resume(k, argument, ~(effect_set)0);
}

HAFTI_INLINE bool seff_finished(seff_request_t request) {
    return request.effect == RETURN_EFFECT_ID;
}

HAFTI_INLINE void *seff_perform(effect_id id, void *payload) {
    haft_effect_t *effect = seff_effect_of(id);
    hafti_here_t here = hafti_here();
    hafti_found_t found = hafti_find(&here, effect, (unsigned)id, SEFF_SHAPE);
    const haft_clause_t *clause = hafti_clause_in_place(found);
    if (HAFTI_UNLIKELY(clause != NULL))
        return ((default_handler_t *)hafti_clause_function(clause))(payload);
    return hafti_perform_found(here, found, effect, payload, sizeof(void *));
}

/* Suspends `k`, the current coroutine or one around it, whatever its resumer handles. The request
   has the number that is given here, be it an effect's or not. */
HAFTI_INLINE void *seff_yield(seff_coroutine_t *k, effect_id id, void *payload) {
    if (HAFTI_UNLIKELY(k == NULL || k->fiber == NULL || id >= MAX_EFFECTS))
        return seff_yield_slow(k, id, payload);
    return hafti_yield_hot(k->fiber, &seff_effects[id % MAX_EFFECTS].effect, (unsigned)id, payload,
                           sizeof(void *));
}

/* ---- The typed macros ---- */

#define SEFF_CALL(name, function, ...)                                                             \
    (__extension__({                                                                               \
        EFF_PAYLOAD_T(name) seff_sent_ = {__VA_ARGS__};                                            \
        (EFF_RET_T(name))(uintptr_t) function(EFF_ID(name), &seff_sent_);                          \
    }))
#define SEFF_CALL_ON(k, name, function, ...)                                                       \
    (__extension__({                                                                               \
        EFF_PAYLOAD_T(name) seff_sent_ = {__VA_ARGS__};                                            \
        (EFF_RET_T(name))(uintptr_t) function(k, EFF_ID(name), &seff_sent_);                       \
    }))
#define SEFF_PERFORM(name, ...) SEFF_CALL(name, seff_perform, __VA_ARGS__)
#define SEFF_YIELD(k, name, ...) SEFF_CALL_ON(k, name, seff_yield, __VA_ARGS__)
#define SEFF_THROW(name, ...)                                                                      \
    (__extension__({                                                                               \
        EFF_PAYLOAD_T(name) seff_sent_ = {__VA_ARGS__};                                            \
        seff_throw_sized(EFF_ID(name), &seff_sent_, sizeof seff_sent_);                            \
    }))
#define SEFF_EXIT(k, name, ...)                                                                    \
    (__extension__({                                                                               \
        EFF_PAYLOAD_T(name) seff_sent_ = {__VA_ARGS__};                                            \
        seff_exit_sized(k, EFF_ID(name), &seff_sent_, sizeof seff_sent_);                          \
    }))

#define PERFORM(...) SEFF_PERFORM(__VA_ARGS__, )
#define YIELD(k, ...) SEFF_YIELD(k, __VA_ARGS__, )
#define THROW(...) SEFF_THROW(__VA_ARGS__, )
#define EXIT(k, ...) SEFF_EXIT(k, __VA_ARGS__, )

/* To be written inside switch (request.effect). `payload` is a copy. A case without `break` falls
   through to the next case. */
#define SEFF_CASE(id, type, value, ...)                                                            \
case (id): {                                                                                       \
    __attribute__((unused)) type payload = value;                                                  \
    __VA_ARGS__                                                                                    \
}
#define CASE_EFFECT(request, name, ...)                                                            \
    SEFF_CASE(EFF_ID(name), EFF_PAYLOAD_T(name), *(EFF_PAYLOAD_T(name) *)(request).payload,        \
              __VA_ARGS__)
#define CASE_RETURN(request, ...)                                                                  \
    SEFF_CASE(RETURN_EFFECT_ID, seff_payload_return, {(request).payload}, __VA_ARGS__)

/* Defines function_syscall_wrapper, which coroutines with small stacks call instead of `function`.
   On a segmented stack it calls `function` on a stack of the thread (arguments and result in
   registers); other stacks are large enough for any function, so there it jumps to `function`. */
#define MAKE_SYSCALL_WRAPPER(result, function, ...)                                                \
    __asm__(".pushsection .text\n"                                                                 \
            ".weak " #function "_syscall_wrapper\n"                                                \
            ".type " #function "_syscall_wrapper, %function\n" #function                           \
            "_syscall_wrapper:\n" SEFF_JUMP(#function) "\n"                                        \
                                                       ".size " #function                          \
                                                       "_syscall_wrapper, . - " #function          \
                                                       "_syscall_wrapper\n"                        \
                                                       ".popsection\n");                           \
    /* The linker finds it, whatever its type is: no header need declare it. */                    \
    extern void seff_wrapped_##function(void) __asm__(#function);                                  \
    static __attribute__((used)) void (*seff_needed_##function)(void) = seff_wrapped_##function;   \
    result function##_syscall_wrapper(__VA_ARGS__) __asm__(#function "_syscall_wrapper")
#ifdef __x86_64__
/* (gold looks for a check at the beginning of every function of -fsplit-stack code but in files
   with that section.) */
#    define SEFF_JUMP(function)                                                                    \
        ".cfi_startproc\n"                                                                         \
        "cmpq $0, %fs:0x70\n"                                                                      \
        "jne 1f\n"                                                                                 \
        "jmp " function "@PLT\n"                                                                   \
        "1: movq " function "@GOTPCREL(%rip), %r11\n"                                              \
        ".weak haft_switch_to_thread_stack\n"                                                      \
        "call *haft_switch_to_thread_stack@GOTPCREL(%rip)\n"                                       \
        "ret\n"                                                                                    \
        ".cfi_endproc\n"                                                                           \
        ".pushsection .note.GNU-no-split-stack, \"\", %progbits\n"                                 \
        ".popsection"
#else
#    define SEFF_JUMP(function) "b " function
#endif

#ifdef __cplusplus
}
#endif

#endif
