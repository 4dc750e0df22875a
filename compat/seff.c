/* SPDX-License-Identifier: MIT */
/*
 * The out-of-line part of seff.h.
 *
 * A coroutine is a fiber whose function is `run` and whose argument is the coroutine, so either
 * leads to the other. Its numbered effects are the descriptors seff_effects, and a mask of
 * them is an immutable set that is made once in the process and never freed: a fiber's chain may
 * remember it.
 *
 * Invariant: as long as a coroutine can be resumed, `handled` is the mask of its fiber's set. So
 * the inlined seff_resume, which checks nothing else, resumes it with its own set.
 *
 * Compiled a second time, with -fsplit-stack and SEFF_SEGMENTED, for programs whose coroutines run
 * on segmented stacks. There, functions of the system are called on the thread's stack.
 */
#include "seff.h"

#include <haft/language.h>
#include <haft/inner/segments.h>

#include <stdio.h>
#include <string.h>

#ifdef SEFF_SEGMENTED
enum { SEGMENTED = true };
#else
enum { SEGMENTED = false };
#endif

HAFT_FOREIGN(void *, allocate, malloc, (size_t, size))
HAFT_FOREIGN(void *, reallocate, realloc, (void *, memory), (size_t, size))
HAFT_FOREIGN_VOID(give_back, free, (void *, memory))
HAFT_FOREIGN(void *, copy, memcpy, (void *, to), (const void *, from), (size_t, size))

/* ---- Errors ---- */

enum { MESSAGE = 400 };
HAFT_FOREIGN(int, format_text, snprintf, (char *, message), (size_t, size), (const char *, format),
             (const char *, one), (const char *, two), (const char *, three))
HAFT_FOREIGN(int, format_number, snprintf, (char *, message), (size_t, size),
             (const char *, format), (unsigned long long, number))

static __attribute__((noreturn)) void fail(haft_error_code_t code, const haft_effect_t *effect,
                                           const char *message) {
    haft_misused(&(haft_error_t){code, message, effect, NULL});
}

/* `format` takes the effect's name, the place of its declaration, and the name again. */
static __attribute__((noreturn)) void fail_with(haft_error_code_t code, const haft_effect_t *effect,
                                                const char *format) {
    char message[MESSAGE];
    format_text(message, sizeof message, format, effect->name, effect->where, effect->name);
    fail(code, effect, message);
}

void seff_check_id(effect_id id) {
    char message[MESSAGE];
    format_number(message, sizeof message,
                  "%llu is not the number of an effect: those are 0 to 63.", id);
    fail(HAFT_ERROR_BAD_ARGUMENT, NULL, message);
}

static HAFTI_COLD void no_coroutine(const seff_coroutine_t *k, const char *function) {
    char message[MESSAGE];
    format_text(message, sizeof message, "%s was given %s.%s", function,
                k == NULL             ? "no coroutine (NULL)"
                : k->function == NULL ? "a coroutine that has been released or deleted"
                                      : "a coroutine that has finished",
                "");
    fail(k == NULL ? HAFT_ERROR_BAD_ARGUMENT : HAFT_ERROR_NOT_RESUMABLE, NULL, message);
}
/* It has finished, and has not been released. */
static bool has_no_stack(const seff_coroutine_t *k) {
    return k->fiber == NULL && k->function != NULL;
}
static inline void check_coroutine(const seff_coroutine_t *k, const char *function) {
    if (HAFTI_UNLIKELY(k == NULL || k->fiber == NULL))
        no_coroutine(k, function);
}

static __attribute__((noreturn)) void unhandled(const haft_effect_t *effect) {
    fail_with(HAFT_ERROR_UNHANDLED, effect,
              "Nobody handles the effect '%s' (%s). Resume a coroutine around the perform with "
              "HANDLES(%s), or give the effect a default with seff_set_default_handler.");
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

/* Stand-ins for default handlers while there are none. With the library's own (`unhandled` of the
   descriptor) it would report the effect in its own words. */
#define UNHANDLED(n)                                                                               \
    static void *unhandled_##n(void *payload) {                                                    \
        (void)payload;                                                                             \
        unhandled(&seff_effects[n].effect);                                                        \
    }
ALL(UNHANDLED)
#define UNHANDLED_ENTRY(n) unhandled_##n,
static default_handler_t *const no_default[MAX_EFFECTS] = {ALL(UNHANDLED_ENTRY)};

#define EFFECT(n)                                                                                  \
    {{"number " #n " (octal)",                                                                     \
      "not defined in this program",                                                               \
      0,                                                                                           \
      sizeof(void *),                                                                              \
      call_default,                                                                                \
      NULL,                                                                                        \
      {&seff_effects[n].effect, (haft_function_t *)unhandled_##n, HAFT_CLAUSE_TAIL, SEFF_SHAPE},   \
      0,                                                                                           \
      false,                                                                                       \
      0}},
seff_effect_t seff_effects[MAX_EFFECTS] = {ALL(EFFECT)};

/* Stands for the effect that a coroutine's `left_by` names. */
static haft_effect_t numbered = {.name = "sent by seff_yield or seff_exit with a number",
                                 .where = "seff.h",
                                 .result_size = sizeof(void *),
                                 .default_clause = {&numbered, NULL, HAFT_CLAUSE_TAIL, SEFF_SHAPE}};

/* The effects that this program defines, for their names; two may share a number. */
extern const seff_name_t *__start_seff_names[] __attribute__((weak));
extern const seff_name_t *__stop_seff_names[] __attribute__((weak));

static void name_effects(void) {
    if (__start_seff_names == NULL)
        return;
    for (const seff_name_t **name = __stop_seff_names; name-- > __start_seff_names;) {
        seff_effects[(*name)->id].effect.name = (*name)->name;
        seff_effects[(*name)->id].effect.where = (*name)->where;
    }
}

default_handler_t *seff_set_default_handler(effect_id id, default_handler_t *handler) {
    haft_effect_t *effect = seff_effect_of(id);
    if (handler == NULL)
        handler = no_default[id];
    default_handler_t *before =
        (default_handler_t *)haft_set_default(effect, (haft_function_t *)handler);
    return before == no_default[id] ? NULL : before;
}

default_handler_t *seff_get_default_handler(effect_id id) {
    default_handler_t *handler = (default_handler_t *)haft_default(seff_effect_of(id));
    return handler == no_default[id] ? NULL : handler;
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

/* Not inlined: on a segment its caller would have room for what it calls. */
static HAFTI_COLD effects_t *make_set(effect_set mask) {
    size_t count = (size_t)__builtin_popcountll(mask);
    effects_t *set = allocate(sizeof *set + count * sizeof set->clauses[0]);
    if (set == NULL)
        fail(HAFT_ERROR_NO_MEMORY, NULL, "No memory for a set of effects.");
    set->mask = mask;
    set->handles = (haft_handles_t){(uint32_t)count, 0, HAFTI_SET_UNNUMBERED, set->clauses};
    for (size_t i = 0; mask != 0; mask &= mask - 1, i++)
        set->clauses[i] = (haft_clause_t){&seff_effects[__builtin_ctzll(mask)].effect, NULL,
                                          HAFT_CLAUSE_REQUEST, SEFF_SHAPE};
    return set;
}

static const haft_handles_t *set_of(effect_set mask) {
    /* (Initial-exec: gold would give room to the callers of a function that finds it.) */
    static __thread __attribute__((tls_model("initial-exec"))) const effects_t *last;
    if (last != NULL && last->mask == mask)
        return &last->handles;
    effects_t **bucket = &sets[(mask * 0x9e3779b97f4a7c15u) >> 56];
    effects_t *first = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
    effects_t *made = NULL;
    for (;;) {
        for (effects_t *set = first; set != NULL; set = set->next) {
            if (set->mask == mask) {
                give_back(made);
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

/* ---- Resuming and yielding ---- */

/* Whether the coroutine lies on the stack of its fiber (place_in). */
static bool lies_inside(const seff_coroutine_t *k, const haft_fiber_t *fiber) {
    return (const char *)k > fiber->low && (const char *)k < (const char *)fiber;
}

/* Keeps the inlined seff_resume from resuming a coroutine that has ended: a set of 38 effects that
   no program passes by chance. */
static void ended(seff_coroutine_t *k) {
    k->state = FINISHED;
    k->handled = 0x9e3779b97f4a7c15u;
}

/* A program may forget a coroutine that has finished, or initialise it again without a release: it
   keeps no stack, unless it lies there. */
static void finished(seff_coroutine_t *k) {
    haft_fiber_t *fiber = k->fiber;
    ended(k);
    if (lies_inside(k, fiber))
        return;
    k->fiber = NULL;
    haft_fiber_drop(fiber);
}

/* Resumes with another set than the one before, and reports what cannot be resumed. */
seff_request_t seff_resume_slow(seff_coroutine_t *k, void *argument, effect_set handled) {
    check_coroutine(k, "seff_resume");
    const haft_handles_t *handles = set_of(handled);
    if (k->state != PAUSED) /* an error, which hafti_resume_slow reports */
        (void)hafti_resume_slow(k->fiber, argument, handles);
    k->handled = handled;
    k->state = RUNNING;
    haft_request_t request = hafti_resume_slow(k->fiber, argument, handles);
    uintptr_t offset = (uintptr_t)request.effect - (uintptr_t)seff_effects;
    if (offset >= sizeof seff_effects)
        return seff_other_request(k, request);
    k->state = PAUSED;
    return (seff_request_t){offset / sizeof(seff_effect_t), request.payload};
}

/* A request without one of the descriptors: the coroutine has ended, or sent a number that is not
   an effect's. */
seff_request_t seff_other_request(seff_coroutine_t *k, haft_request_t request) {
    bool has_finished = haft_fiber_state(k->fiber) == HAFT_FIBER_FINISHED;
    if (request.effect == HAFT_ID(return ) || request.effect == &numbered) {
        seff_request_t sent = {k->left_by, has_finished ? k->left : request.payload};
        if (has_finished)
            finished(k);
        else
            k->state = PAUSED;
        return sent;
    }
    k->state = has_finished ? FINISHED : PAUSED;
    fail_with(
        HAFT_ERROR_BAD_ARGUMENT, request.effect,
        "seff_resume was sent the effect '%s' (%s), which has no number: it is one of haft.h. "
        "Handle '%s' with haft_resume, on a fiber.");
}

void *seff_yield_slow(seff_coroutine_t *k, effect_id id, void *payload) {
    check_coroutine(k, "seff_yield");
    k->left_by = id;
    return hafti_yield_hot(k->fiber, &numbered, 0, payload, sizeof(void *));
}

/* ---- Coroutines ---- */

static void *run(void *argument) {
    seff_coroutine_t *k = argument;
    k->left = k->function(k->argument);
    k->left_by = RETURN_EFFECT_ID;
    return NULL;
}

static size_t least_stack_size;

static const char *(*advice_before)(const haft_fiber_t *fiber);

static const char *stack_advice(const haft_fiber_t *fiber) {
    if (fiber->function != run)
        return advice_before != NULL ? advice_before(fiber) : NULL;
    return "Give it more with LIBSEFF_DEFAULT_FRAME_SIZE=bytes in the environment, "
           "seff_coroutine_new_sized, seff_coroutine_init_sized or haft_set_stack_size.";
}

static __attribute__((destructor)) void end(void) {
    haft_stack_advice_t *last = haft_set_stack_advice(advice_before);
    if (last != stack_advice) /* another library's, which keeps this one's */
        haft_set_stack_advice(last);
}

static __attribute__((constructor)) void start(void) {
    name_effects();
    advice_before = haft_set_stack_advice(stack_advice);
    const char *size = getenv("LIBSEFF_DEFAULT_FRAME_SIZE");
    if (size != NULL)
        least_stack_size = strtoull(size, NULL, 0);
}

/* Dense stacks have sizes of their own. */
static size_t dense_size(size_t asked) {
    size_t size = 1024;
    if (asked == 0 || asked > 8192)
        return asked;
    while (size < asked)
        size *= 2;
    return size;
}

static haft_fiber_t *make_fiber(size_t stack_size, bool dense, void *argument) {
    if (stack_size < least_stack_size)
        stack_size = least_stack_size;
    if (SEGMENTED || dense || stack_size > haft_stack_size()) {
        haft_fiber_options_t options = {.stack_size = dense ? dense_size(stack_size) : stack_size,
                                        .segmented = SEGMENTED,
                                        .dense = dense && !SEGMENTED,
                                        .no_cleanups = true};
        return haft_fiber_new_with(&options, run, argument);
    }
    haft_fiber_t *fiber = haft_fiber_new(run, argument);
    if (fiber != NULL)
        fiber->cleanups = false;
    return fiber;
}

/* Makes `k` the coroutine that the new fiber runs. */
static void begin(seff_coroutine_t *k, haft_fiber_t *fiber) {
    k->fiber = fiber;
    k->handled = 0;
    fiber->scope.handles = &no_effects;
    k->state = PAUSED;
}

static void init(seff_coroutine_t *k, haft_fiber_t *fiber, seff_start_fun_t *function,
                 void *argument, size_t stack_size, bool dense) {
    k->function = function;
    k->argument = argument;
    k->stack_size = stack_size;
    k->dense = dense;
    k->left_large = NULL;
    begin(k, fiber);
}

static void check_function(seff_start_fun_t *function) {
    if (function == NULL)
        fail(HAFT_ERROR_BAD_ARGUMENT, NULL, "A coroutine needs a function to run (NULL).");
}

static bool init_on(seff_coroutine_t *k, seff_start_fun_t *function, void *argument,
                    size_t stack_size, bool dense) {
    check_function(function);
    haft_fiber_t *fiber = make_fiber(stack_size, dense, k);
    if (fiber != NULL)
        init(k, fiber, function, argument, stack_size, dense);
    return fiber != NULL;
}

bool seff_coroutine_init_sized(seff_coroutine_t *k, seff_start_fun_t *function, void *argument,
                               size_t stack_size) {
    return init_on(k, function, argument, stack_size, false);
}

bool seff_coroutine_init(seff_coroutine_t *k, seff_start_fun_t *function, void *argument) {
    return init_on(k, function, argument, 0, false);
}

bool seff_coroutine_init_dense(seff_coroutine_t *k, seff_start_fun_t *function, void *argument,
                               size_t stack_size) {
    return init_on(k, function, argument, stack_size, true);
}

/* The fiber's memory has room for the coroutine, except on segments. That memory stays readable
   until it is reused, so that the use of a deleted coroutine is recognised. */
_Static_assert(sizeof(seff_coroutine_t) <= SEFF_BELOW && sizeof(seff_coroutine_t) > SEFF_BELOW - 64,
               "haft_fiber_reserve, which aligns to 64 bytes, reserves SEFF_BELOW");
static seff_coroutine_t *place_in(haft_fiber_t *fiber) {
    seff_coroutine_t *k = haft_fiber_reserve(fiber, sizeof *k);
    fiber->argument = k;
    return k;
}

static seff_coroutine_t *new_on(seff_start_fun_t *function, void *argument, size_t stack_size,
                                bool dense) {
    check_function(function);
    seff_coroutine_t *k = SEGMENTED ? allocate(sizeof *k) : NULL;
    if (SEGMENTED && k == NULL)
        return NULL;
    haft_fiber_t *fiber = make_fiber(stack_size, dense, k);
    if (fiber == NULL) {
        give_back(k);
        return NULL;
    }
    if (!SEGMENTED)
        k = place_in(fiber);
    init(k, fiber, function, argument, stack_size, dense);
    return k;
}

seff_coroutine_t *seff_coroutine_new_sized(seff_start_fun_t *function, void *argument,
                                           size_t stack_size) {
    return new_on(function, argument, stack_size, false);
}

seff_coroutine_t *seff_coroutine_new(seff_start_fun_t *function, void *argument) {
    return new_on(function, argument, 0, false);
}

seff_coroutine_t *seff_coroutine_new_dense(seff_start_fun_t *function, void *argument,
                                           size_t stack_size) {
    return new_on(function, argument, stack_size, true);
}

void seff_coroutine_reset(seff_coroutine_t *k) {
    if (k != NULL && has_no_stack(k)) {
        haft_fiber_t *made = make_fiber(k->stack_size, k->dense, k);
        if (made != NULL)
            begin(k, made);
        return;
    }
    check_coroutine(k, "seff_coroutine_reset");
    haft_fiber_t *fiber = k->fiber;
    bool inside = lies_inside(k, fiber);
    haft_fiber_reset(fiber, run, k);
    if (inside) {
        seff_coroutine_t kept = *k; /* to Valgrind the place is new */
        *place_in(fiber) = kept;
    }
    begin(k, fiber);
}

/* Called before the fiber of a coroutine that has not ended is freed. */
static void drop(seff_coroutine_t *k) {
    haft_fiber_t *fiber = k->fiber;
    haft_fiber_state_t state = haft_fiber_state(fiber);
    if (state == HAFT_FIBER_RUNNING) /* an error, which haft_fiber_drop reports */
        haft_fiber_drop(fiber);
    /* Fibers of haft.h inside it have cleanups, which may still use the coroutine. */
    if (state == HAFT_FIBER_SUSPENDED && fiber->top != &fiber->scope)
        haft_fiber_reset(fiber, run, k);
}

void seff_coroutine_release(seff_coroutine_t *k) {
    if (k == NULL || !has_no_stack(k))
        check_coroutine(k, "seff_coroutine_release");
    if (k->state != FINISHED)
        drop(k);
    if (HAFTI_UNLIKELY(k->left_large != NULL))
        give_back(k->left_large);
    k->left_large = NULL;
    haft_fiber_t *fiber = k->fiber;
    k->fiber = NULL;
    k->function = NULL;
    ended(k);
    haft_fiber_drop(fiber); /* and `k` itself, if it lies in there */
}

void seff_coroutine_delete(seff_coroutine_t *k) {
    if (k == NULL)
        return;
    seff_coroutine_release(k);
    if (SEGMENTED)
        give_back(k);
}

/* ---- The chain ---- */

/* These functions ask for no room: their callees make do with the last bytes of a segment, as every
   perform does. */
#ifdef SEFF_SEGMENTED
#    define ON_THE_LAST_BYTES __attribute__((no_split_stack))
#else
#    define ON_THE_LAST_BYTES
#endif

ON_THE_LAST_BYTES static seff_coroutine_t *coroutine_of(const haft_fiber_t *fiber) {
    return fiber != NULL && fiber->function == run ? fiber->argument : NULL;
}

ON_THE_LAST_BYTES seff_coroutine_t *seff_current_coroutine(void) {
    const haft_fiber_t *fiber = haft_fiber_current();
    while (fiber != NULL && coroutine_of(fiber) == NULL)
        fiber = haft_fiber_parent(fiber);
    return coroutine_of(fiber);
}

ON_THE_LAST_BYTES void *seff_current_stack_top(void) {
    const seff_coroutine_t *k = seff_current_coroutine();
    if (hafti_segments_limit() != 0)
        return (void *)hafti_segments_limit();
    return k == NULL ? NULL : k->fiber->low;
}

/* A coroutine whose own scope is the current one handles what its mask has. */
seff_coroutine_t *seff_locate_handler(effect_id id) {
    haft_effect_t *effect = seff_effect_of(id);
    hafti_scope_t *scope = hafti_here().current;
    if (HAFTI_LIKELY(scope->kind == HAFTI_SCOPE_FIBER)) {
        seff_coroutine_t *k = coroutine_of(hafti_fiber_of(scope));
        if (k != NULL && (k->handled >> id & 1) != 0)
            return k;
    }
    return coroutine_of(haft_locate(effect));
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

/* The effect that an error in leaving by this number names. */
static haft_effect_t *effect_left_by(effect_id id) {
    return id < MAX_EFFECTS ? &seff_effects[id].effect : &numbered;
}

/* Whether fibers on the way have cleanups. */
static bool check_exit(const seff_coroutine_t *k, effect_id id) {
    bool cleanups;
    check_coroutine(k, "seff_exit");
    if (HAFTI_LIKELY(hafti_here().current == &k->fiber->scope))
        return k->fiber->cleanups;
    if (!is_around(k, &cleanups)) /* an error, which haft_exit reports */
        haft_exit(k->fiber, effect_left_by(id), NULL, 0);
    return cleanups;
}

static __attribute__((noreturn)) void leave(seff_coroutine_t *k, effect_id id, void *payload) {
    k->left = payload;
    k->left_by = id;
    haft_exit(k->fiber, &numbered, NULL, 0);
}

void seff_exit(seff_coroutine_t *k, effect_id id, void *payload) {
    if (check_exit(k, id) && payload != NULL && id != RETURN_EFFECT_ID)
        fail(HAFT_ERROR_BAD_ARGUMENT, effect_left_by(id),
             "seff_exit and seff_throw do not know how large the payload is, and cleanups that run "
             "on the way would overwrite it. Use EXIT or THROW.");
    leave(k, id, payload);
}

static void *kept_in(seff_coroutine_t *k, effect_id id, const void *payload, size_t size) {
    void *kept = k->left_small;
    if (size > sizeof k->left_small) {
        kept = reallocate(k->left_large, size);
        if (kept == NULL)
            fail(HAFT_ERROR_NO_MEMORY, effect_left_by(id),
                 "No memory for the payload of an effect.");
        k->left_large = kept;
    }
    return copy(kept, payload, size);
}

void seff_exit_sized(seff_coroutine_t *k, effect_id id, void *payload, size_t size) {
    (void)check_exit(k, id);
    leave(k, id,
          HAFTI_LIKELY(size == sizeof k->left_small[0])
              ? memcpy(k->left_small, payload, sizeof k->left_small[0])
              : kept_in(k, id, payload, size));
}

/* Throws where the chain has no handler that seff.h knows: to a fiber of haft.h, or to the default
   handler. */
static __attribute__((noreturn)) void throw_elsewhere(effect_id id, void *payload) {
    haft_effect_t *effect = seff_effect_of(id);
    if (haft_locate(effect) != NULL)
        haft_throw(effect, payload, 0);
    ((default_handler_t *)haft_default(effect))(payload);
    fail_with(HAFT_ERROR_CAME_BACK, effect,
              "The effect '%s' (%s) was thrown, but its default handler came back. Perform it, or "
              "resume a coroutine around the throw with HANDLES(%s).");
}

void seff_throw(effect_id id, void *payload) {
    seff_coroutine_t *k = seff_locate_handler(id);
    if (k != NULL)
        seff_exit(k, id, payload);
    throw_elsewhere(id, payload);
}

void seff_throw_sized(effect_id id, void *payload, size_t size) {
    seff_coroutine_t *k = seff_locate_handler(id);
    if (k != NULL)
        seff_exit_sized(k, id, payload, size);
    throw_elsewhere(id, payload);
}
