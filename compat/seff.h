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
 * Effects are numbers from 0 to 62; 63 marks a return. What is sent with an effect, and what comes
 * back, are pointers: an integer result is cast to one and back. As in libseff, a coroutine that is
 * deleted or left by seff_exit and seff_throw is not unwound: cleanups on its stack do not run.
 * Programs that want them, wider results, or more effects, use haft.h, also beside this header: the
 * coroutines of both are fibers of one chain.
 *
 * What is undefined in libseff is an error here, reported as haft.h says: a coroutine resumed while
 * it runs, after its end or after its release; one that is not around the caller yielded or exited;
 * an effect that nobody handles; a number that is no effect's.
 */
#ifndef HAFT_COMPAT_SEFF_H
#define HAFT_COMPAT_SEFF_H

#pragma GCC system_header

#include <haft.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#    define SEFF_STATIC_ASSERT static_assert
#else
#    define SEFF_STATIC_ASSERT _Static_assert
#endif

/* ---- Effects ---- */

typedef uint64_t effect_id;
typedef uint64_t effect_set; /* a bit for each effect */

/* DEFINE_EFFECT(name, id, result type, { payload fields }); */
#define DEFINE_EFFECT(name, id, result, ...)                                                       \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wpedantic\"") enum {         \
        seff_id_##name = (id)                                                                      \
    };                                                                                             \
    typedef result seff_result_##name;                                                             \
    __extension__ typedef struct seff_payload_##name __VA_ARGS__ seff_payload_##name;              \
    static const seff_name_t seff_name_##name = {(id), #name, __FILE__ ":" HAFT_TEXT(__LINE__)};   \
    static __attribute__((used, section("seff_names"))) const seff_name_t *seff_listed_##name =    \
        &seff_name_##name;                                                                         \
    _Pragma("GCC diagnostic pop") SEFF_STATIC_ASSERT(                                              \
        (id) >= 0 && (id) < 63, "an effect's number is from 0 to 62 (63 marks a return): " #name)

#define EFF_ID(name) seff_id_##name
#define EFF_PAYLOAD_T(name) seff_payload_##name
#define EFF_RET_T(name) seff_result_##name
#define HANDLES(name) ((effect_set)1 << EFF_ID(name))

enum { seff_id_return = 63 };
typedef struct seff_payload_return {
    void *result;
} seff_payload_return;
typedef void seff_result_return;

/* ---- Coroutines ---- */

typedef void *seff_start_fun_t(void *);
typedef void *default_handler_t(void *);

typedef enum seff_coroutine_state {
    PAUSED,
    SUSPENDED = PAUSED, /* can be resumed */
    RUNNING,            /* runs, or waits for a coroutine that it resumed */
    FINISHED
} seff_coroutine_state_t;

/* May be a local variable; must not be copied while in use. Only `state` is for programs to read.
 */
typedef struct seff_coroutine {
    haft_fiber_t *fiber;           /* NULL: released */
    const haft_handles_t *handles; /* the set `handled` */
    effect_set handled;
    seff_coroutine_state_t state;
    seff_start_fun_t *function;
    void *argument;
    struct seff_coroutine *spare; /* of coroutines that have been deleted */
    void *left;                   /* the payload of the effect that ended it, */
    void *left_large;             /* allocated, if there is no room for it here: */
    uint64_t left_small[4];
} seff_coroutine_t;

typedef struct seff_request {
    effect_id effect;
    void *payload;
} seff_request_t;

/* `_sized` chooses the size of the stack in bytes (rounded up); false or NULL: out of memory. */
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

/* The coroutine whose resumer handles the effect, NULL if nobody does; the innermost coroutine. */
seff_coroutine_t *seff_locate_handler(effect_id effect);
seff_coroutine_t *seff_current_coroutine(void);

/* Sends the effect to the resumer of `k`, or to the handler, for good. The payload must outlive the
   coroutine's stack, or at least what has cleanups on it; EXIT and THROW copy theirs. */
void seff_exit(seff_coroutine_t *k, effect_id effect, void *payload) __attribute__((noreturn));
void seff_throw(effect_id effect, void *payload) __attribute__((noreturn));

/* Called where the effect is performed, like any function, when nobody handles it. Returns the one
   before; NULL takes it away. */
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

#define SEFF_SHAPE HAFT_SHAPE(0, sizeof(void *))

HAFT_COLD const haft_handles_t *seff_handles(seff_coroutine_t *k, effect_set handled);
HAFT_COLD effect_id seff_other_effect(seff_coroutine_t *k, haft_effect_t *effect);
HAFT_COLD void seff_check_id(effect_id id);
void seff_exit_sized(seff_coroutine_t *k, effect_id effect, void *payload, size_t size)
    __attribute__((noreturn));
void seff_throw_sized(effect_id effect, void *payload, size_t size) __attribute__((noreturn));
HAFT_COLD void seff_check_coroutine(const seff_coroutine_t *k, const char *function);

HAFT_INLINE haft_effect_t *seff_effect_of(effect_id id) {
    if (HAFT_UNLIKELY(id >= seff_id_return))
        seff_check_id(id);
    return &seff_effects[id].effect;
}

/* ---- Resuming and performing ---- */

/* Starts or resumes `k`, handling the effects in `handled`. The paper's name is seff_handle. */
HAFT_INLINE seff_request_t seff_resume(seff_coroutine_t *k, void *argument, effect_set handled) {
    const haft_handles_t *handles;
    if (HAFT_UNLIKELY(k == NULL || k->state != PAUSED || k->handled != handled))
        handles = seff_handles(k, handled);
    else
        handles = k->handles;
    k->state = RUNNING;
    haft_request_t request = haft_resume_hot(k->fiber, argument, handles);
    uintptr_t offset = (uintptr_t)request.effect - (uintptr_t)seff_effects;
    effect_id id = offset / sizeof(seff_effect_t);
    if (HAFT_UNLIKELY(offset >= sizeof seff_effects))
        id = seff_other_effect(k, request.effect);
    if (HAFT_LIKELY(k->state == RUNNING))
        k->state = PAUSED;
    else if (id != EFF_ID(return ))
        request.payload = k->left;
    seff_request_t result = {id, request.payload};
    return result;
}

HAFT_INLINE seff_request_t seff_handle(seff_coroutine_t *k, void *argument, effect_set handled) {
    return seff_resume(k, argument, handled);
}

HAFT_INLINE seff_request_t seff_resume_handling_all(seff_coroutine_t *k, void *argument) {
    return seff_resume(k, argument, ~(effect_set)0);
}

HAFT_INLINE bool seff_finished(seff_request_t request) {
    return request.effect == EFF_ID(return );
}

HAFT_INLINE void *seff_perform(effect_id id, void *payload) {
    haft_effect_t *effect = seff_effect_of(id);
    haft_thread_t *thread = haft_thread();
    haft_cache_entry_t *entry = haft_find(thread, effect, (unsigned)id, SEFF_SHAPE);
    if (haft_runs_in_place(entry->clause))
        return ((default_handler_t *)entry->clause->function)(payload);
    return haft_perform_found(thread, entry, effect, payload);
}

/* Suspends `k`, the current coroutine or one around it, whatever its resumer handles. */
HAFT_INLINE void *seff_yield(seff_coroutine_t *k, effect_id id, void *payload) {
    if (HAFT_UNLIKELY(k == NULL || k->fiber == NULL))
        seff_check_coroutine(k, "seff_yield");
    return haft_yield_hot(k->fiber, seff_effect_of(id), (unsigned)id, payload);
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

/* Inside switch (request.effect). `payload` is a copy. */
#define CASE_EFFECT(request, name, ...)                                                            \
case EFF_ID(name): {                                                                               \
    __attribute__((unused)) EFF_PAYLOAD_T(name) payload =                                          \
        *(EFF_PAYLOAD_T(name) *)(request).payload;                                                 \
    __VA_ARGS__                                                                                    \
    break;                                                                                         \
}
#define CASE_RETURN(request, ...) CASE_EFFECT(request, return, __VA_ARGS__)

/* Defines function_syscall_wrapper, to be called from coroutines with small stacks. The stacks here
   are large enough for any function, so it goes straight there; any signature will do. */
#define MAKE_SYSCALL_WRAPPER(result, function, ...)                                                \
    __asm__(".pushsection .text\n"                                                                 \
            ".weak " #function "_syscall_wrapper\n"                                                \
            ".type " #function "_syscall_wrapper, %function\n" #function                           \
            "_syscall_wrapper:\n" SEFF_JUMP(#function) "\n"                                        \
                                                       ".size " #function                          \
                                                       "_syscall_wrapper, . - " #function          \
                                                       "_syscall_wrapper\n"                        \
                                                       ".popsection\n");                           \
    static __attribute__((used)) __typeof__(&function) function##_is_needed = &function;           \
    result function##_syscall_wrapper(__VA_ARGS__)
#ifdef __x86_64__
#    define SEFF_JUMP(function) "jmp " function "@PLT"
#else
#    define SEFF_JUMP(function) "b " function
#endif

#ifdef __cplusplus
}
#endif

#endif
