/*
 * The out-of-line part of seff.h.
 *
 * A coroutine is a fiber whose function is `run` and whose argument is the coroutine, so either
 * leads to the other. Its numbered effects are the descriptors seff_effects[0..62], and a mask of
 * them is an immutable set that is made once in the process and never freed: a fiber's chain may
 * remember it.
 */
#include "seff.h"

#include <haft/faces.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Errors ---- */

static __attribute__((noreturn)) void fail(haft_error_code_t code, const haft_effect_t *effect,
                                           const char *message) {
    haft_misused(&(haft_error_t){code, message, effect, NULL});
}

void seff_check_id(effect_id id) {
    char message[120];
    snprintf(message, sizeof message, "%llu is not the number of an effect: those are 0 to 62.",
             (unsigned long long)id);
    fail(HAFT_ERROR_BAD_ARGUMENT, NULL, message);
}

void seff_check_coroutine(const seff_coroutine_t *k, const char *function) {
    char message[160];
    if (k != NULL && k->fiber != NULL)
        return;
    snprintf(message, sizeof message, "%s was given %s.", function,
             k == NULL ? "no coroutine (NULL)" : "a coroutine that has been released or deleted");
    fail(k == NULL ? HAFT_ERROR_BAD_ARGUMENT : HAFT_ERROR_NOT_RESUMABLE, NULL, message);
}

/* ---- Effects ---- */

static void call_default(haft_function_t *function, void *state, void *payload, void *result) {
    (void)state;
    *(void **)result = ((default_handler_t *)function)(payload);
}

#define EIGHT(macro, n)                                                                            \
    macro(n##0) macro(n##1) macro(n##2) macro(n##3) macro(n##4) macro(n##5) macro(n##6) macro(n##7)
/* Numbers written in octal. */
/* clang-format off */
#define ALL(macro)                                                                                 \
    EIGHT(macro, 00) EIGHT(macro, 01) EIGHT(macro, 02) EIGHT(macro, 03)                            \
    EIGHT(macro, 04) EIGHT(macro, 05) EIGHT(macro, 06) EIGHT(macro, 07)
/* clang-format on */

#define UNHANDLED(n)                                                                               \
    static void *unhandled_##n(void *payload) {                                                    \
        (void)payload;                                                                             \
        haft_unhandled(&seff_effects[n].effect);                                                   \
    }
ALL(UNHANDLED)

#define EFFECT(n)                                                                                  \
    {{"number " #n " (octal)",                                                                     \
      "not defined in this program",                                                               \
      0,                                                                                           \
      sizeof(void *),                                                                              \
      call_default,                                                                                \
      (haft_function_t *)unhandled_##n,                                                            \
      {&seff_effects[n].effect, (haft_function_t *)unhandled_##n, HAFT_CLAUSE_TAIL, SEFF_SHAPE},   \
      false}},
seff_effect_t seff_effects[64] = {ALL(EFFECT)};

/* The effects that this program defines, for their names; two may share a number. */
extern const seff_name_t *__start_seff_names[] __attribute__((weak));
extern const seff_name_t *__stop_seff_names[] __attribute__((weak));

static __attribute__((constructor)) void name_effects(void) {
    if (__start_seff_names == NULL)
        return;
    for (const seff_name_t **name = __stop_seff_names; name-- > __start_seff_names;) {
        seff_effects[(*name)->id].effect.name = (*name)->name;
        seff_effects[(*name)->id].effect.where = (*name)->where;
    }
}

default_handler_t *seff_set_default_handler(effect_id id, default_handler_t *handler) {
    return (default_handler_t *)haft_set_default(seff_effect_of(id), (haft_function_t *)handler);
}

default_handler_t *seff_get_default_handler(effect_id id) {
    return (default_handler_t *)haft_get_default(seff_effect_of(id));
}

/* ---- Sets of effects ---- */

typedef struct effects {
    effect_set mask;
    struct effects *next;
    haft_handles_t handles;
    haft_clause_t clauses[];
} effects_t;

static const haft_handles_t no_effects;
enum { BUCKETS = 256 };
static effects_t *sets[BUCKETS];

static effects_t *make_set(effect_set mask) {
    size_t count = (size_t)__builtin_popcountll(mask);
    effects_t *set = malloc(sizeof *set + count * sizeof set->clauses[0]);
    if (set == NULL)
        fail(HAFT_ERROR_NO_MEMORY, NULL, "No memory for a set of effects.");
    set->mask = mask;
    set->handles = (haft_handles_t){(uint32_t)count, 0, set->clauses};
    for (size_t i = 0; mask != 0; mask &= mask - 1, i++)
        set->clauses[i] = (haft_clause_t){&seff_effects[__builtin_ctzll(mask)].effect, NULL,
                                          HAFT_CLAUSE_REQUEST, SEFF_SHAPE};
    return set;
}

static const haft_handles_t *set_of(effect_set mask) {
    static __thread const effects_t *last;
    if (last != NULL && last->mask == mask)
        return &last->handles;
    effects_t **bucket = &sets[(mask * 0x9e3779b97f4a7c15u) >> 56];
    effects_t *first = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
    effects_t *made = NULL;
    for (;;) {
        for (effects_t *set = first; set != NULL; set = set->next) {
            if (set->mask == mask) {
                free(made);
                last = set;
                return &set->handles;
            }
        }
        if (made == NULL)
            made = make_set(mask);
        made->next = first;
        if (__atomic_compare_exchange_n(bucket, &first, made, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            last = made;
            return &made->handles;
        }
    }
}

const haft_handles_t *seff_handles(seff_coroutine_t *k, effect_set handled) {
    seff_check_coroutine(k, "seff_resume");
    if (k->state != PAUSED) /* an error, which haft_resume reports */
        (void)haft_resume(k->fiber, NULL, HAFT_HANDLES());
    k->handled = handled;
    k->handles = set_of(handled & ~HANDLES(return ));
    return k->handles;
}

effect_id seff_other_effect(seff_coroutine_t *k, haft_effect_t *effect) {
    if (effect == HAFT_ID(return ))
        return EFF_ID(return );
    char message[200];
    snprintf(message, sizeof message,
             "seff_resume was sent the effect '%s' (%s), which has no number. Resume a coroutine "
             "to which HAFT_YIELD sends such effects with haft_resume.",
             effect->name, effect->where);
    k->state = FINISHED;
    fail(HAFT_ERROR_BAD_ARGUMENT, effect, message);
}

/* ---- Coroutines ---- */

static void *run(void *argument) {
    seff_coroutine_t *k = argument;
    void *result = k->function(k->argument);
    k->state = FINISHED;
    return result;
}

bool seff_coroutine_init_sized(seff_coroutine_t *k, seff_start_fun_t *function, void *argument,
                               size_t stack_size) {
    haft_fiber_options_t options = {.stack_size = stack_size, .no_cleanups = true};
    *k = (seff_coroutine_t){.state = FINISHED, .function = function, .argument = argument};
    k->fiber = function == NULL ? haft_fiber_create(&options, NULL, NULL)
                                : haft_fiber_create(&options, run, k);
    if (k->fiber == NULL)
        return false;
    k->handles = &no_effects;
    k->state = PAUSED;
    return true;
}

bool seff_coroutine_init(seff_coroutine_t *k, seff_start_fun_t *function, void *argument) {
    return seff_coroutine_init_sized(k, function, argument, 0);
}

void seff_coroutine_release(seff_coroutine_t *k) {
    seff_check_coroutine(k, "seff_coroutine_release");
    haft_fiber_free(k->fiber);
    free(k->left_large);
    k->left_large = NULL;
    k->fiber = NULL;
    k->state = FINISHED;
}

void seff_coroutine_reset(seff_coroutine_t *k) {
    seff_check_coroutine(k, "seff_coroutine_reset");
    haft_fiber_reset(k->fiber, run, k);
    k->state = PAUSED;
}

/* Deleted coroutines are kept for the next, so that the use of one that is gone is seen for what it
   is as long as possible. */
static seff_coroutine_t *spares;
static bool spares_locked;

static void lock_spares(void) {
    while (__atomic_test_and_set(&spares_locked, __ATOMIC_ACQUIRE))
        continue;
}
static void unlock_spares(void) {
    __atomic_clear(&spares_locked, __ATOMIC_RELEASE);
}

static void give_back(seff_coroutine_t *k) {
    lock_spares();
    k->spare = spares;
    spares = k;
    unlock_spares();
}

seff_coroutine_t *seff_coroutine_new_sized(seff_start_fun_t *function, void *argument,
                                           size_t stack_size) {
    lock_spares();
    seff_coroutine_t *k = spares;
    if (k != NULL)
        spares = k->spare;
    unlock_spares();
    if (k == NULL)
        k = malloc(sizeof *k);
    if (k == NULL)
        return NULL;
    if (seff_coroutine_init_sized(k, function, argument, stack_size))
        return k;
    give_back(k);
    return NULL;
}

seff_coroutine_t *seff_coroutine_new(seff_start_fun_t *function, void *argument) {
    return seff_coroutine_new_sized(function, argument, 0);
}

void seff_coroutine_delete(seff_coroutine_t *k) {
    if (k == NULL)
        return;
    seff_coroutine_release(k);
    give_back(k);
}

/* ---- The chain ---- */

static seff_coroutine_t *coroutine_of(const haft_fiber_t *fiber) {
    return fiber != NULL && fiber->function == run ? fiber->argument : NULL;
}

seff_coroutine_t *seff_current_coroutine(void) {
    const haft_fiber_t *fiber = haft_fiber_current();
    while (fiber != NULL && coroutine_of(fiber) == NULL)
        fiber = haft_fiber_parent(fiber);
    return coroutine_of(fiber);
}

seff_coroutine_t *seff_locate_handler(effect_id id) {
    return coroutine_of(haft_locate(seff_effect_of(id)));
}

static bool is_around(const seff_coroutine_t *k, bool *cleanups) {
    *cleanups = false;
    for (const haft_fiber_t *fiber = haft_fiber_current(); fiber != NULL;
         fiber = haft_fiber_parent(fiber)) {
        *cleanups |= fiber->cleanups;
        if (fiber == k->fiber)
            return true;
    }
    return false;
}

static __attribute__((noreturn)) void leave(seff_coroutine_t *k, haft_effect_t *effect,
                                            void *payload) {
    k->left = payload;
    k->state = FINISHED;
    haft_exit(k->fiber, effect, NULL, 0);
}

void seff_exit(seff_coroutine_t *k, effect_id id, void *payload) {
    haft_effect_t *effect = seff_effect_of(id);
    seff_check_coroutine(k, "seff_exit");
    bool cleanups;
    if (!is_around(k, &cleanups)) /* an error, which haft_exit reports */
        haft_exit(k->fiber, effect, NULL, 0);
    if (cleanups && payload != NULL)
        fail(HAFT_ERROR_BAD_ARGUMENT, effect,
             "seff_exit and seff_throw do not know how large the payload is, and cleanups that run "
             "on "
             "the way would overwrite it. Use EXIT or THROW.");
    leave(k, effect, payload);
}

void seff_exit_sized(seff_coroutine_t *k, effect_id id, void *payload, size_t size) {
    haft_effect_t *effect = seff_effect_of(id);
    seff_check_coroutine(k, "seff_exit");
    bool cleanups;
    if (!is_around(k, &cleanups))
        haft_exit(k->fiber, effect, NULL, 0);
    void *copy = k->left_small;
    if (size > sizeof k->left_small) {
        copy = realloc(k->left_large, size);
        if (copy == NULL)
            fail(HAFT_ERROR_NO_MEMORY, effect, "No memory for the payload of an effect.");
        k->left_large = copy;
    }
    leave(k, effect, memcpy(copy, payload, size));
}

void seff_throw(effect_id id, void *payload) {
    haft_effect_t *effect = seff_effect_of(id);
    seff_coroutine_t *k = seff_locate_handler(id);
    if (k != NULL)
        seff_exit(k, id, payload);
    haft_throw(effect, payload, 0);
}

void seff_throw_sized(effect_id id, void *payload, size_t size) {
    seff_coroutine_t *k = seff_locate_handler(id);
    if (k != NULL)
        seff_exit_sized(k, id, payload, size);
    seff_throw(id, payload);
}
