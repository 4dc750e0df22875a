/* SPDX-License-Identifier: MIT */
/* Performing, yielding and throwing by functions, for effects whose types the caller does not
   know. */
#include "resuming.h"

static unsigned slot_of(const haft_effect_t *effect) {
    return (unsigned)((uintptr_t)effect / sizeof *effect);
}

static void check_untyped(const char *function, const haft_effect_t *effect, const void *payload,
                          size_t size, const void *result, size_t result_size) {
    haft_check_given(effect, function, "effect");
    if (size != effect->payload_size || result_size != effect->result_size)
        haft_fail(HAFT_ERROR_WRONG_TYPE, effect, NULL,
                  "The effect '%s' (%s) has a payload of %zu bytes and a result of %zu; it was "
                  "performed with %zu and %zu.",
                  effect->name, effect->where, effect->payload_size, effect->result_size, size,
                  result_size);
    if (size != 0)
        haft_check_given(payload, function, "payload");
    if (result_size != 0)
        haft_check_given(result, function, "place for the result");
}

void haft_perform(haft_effect_t *effect, void *payload, size_t size, void *result,
                  size_t result_size) {
    char nothing; /* instead of a NULL */
    check_untyped("haft_perform", effect, payload, size, result, result_size);
    hafti_here_t here = hafti_here();
    hafti_found_t found = hafti_find(&here, effect, slot_of(effect), effect->default_clause.shape);
    const haft_clause_t *clause = hafti_clause_in_place(found);
    if (clause != NULL) {
        haft_function_t *function = hafti_clause_function(clause);
        void *state = found.scope->state;
        __attribute__((unused, cleanup(hafti_in_place_end))) hafti_in_place_t in_place =
            hafti_in_place_begin(here, found.scope);
        effect->call(function, state, payload, result_size == 0 ? &nothing : result);
    } else {
        hafti_unpack(effect, hafti_perform_found(here, found, effect, payload, result_size),
                     result_size == 0 ? &nothing : result, result_size);
    }
}

void haft_yield(haft_fiber_t *fiber, haft_effect_t *effect, void *payload, size_t size,
                void *result, size_t result_size) {
    char nothing; /* instead of a NULL */
    check_untyped("haft_yield", effect, payload, size, result, result_size);
    hafti_unpack(effect, hafti_yield_hot(fiber, effect, slot_of(effect), payload, result_size),
                 result_size == 0 ? &nothing : result, result_size);
}

/* A clause in place may leave by itself: by another throw, or the like. */
static __attribute__((noinline, noreturn)) void
throw_in_place(hafti_here_t here, hafti_found_t found, haft_effect_t *effect, void *payload) {
    const haft_clause_t *clause = hafti_clause_in_place(found);
    {
        uint64_t result[(effect->result_size + 15) / 8];
        __attribute__((unused, cleanup(hafti_in_place_end))) hafti_in_place_t in_place =
            hafti_in_place_begin(here, found.scope);
        effect->call(hafti_clause_function(clause), found.scope->state, payload, result);
    }
    haft_fail(HAFT_ERROR_CAME_BACK, effect, NULL,
              "The effect '%s' (%s) was thrown, but its handler runs in place and came back. "
              "Throw only effects whose handlers do not resume.",
              effect->name, effect->where);
}

void haft_throw(haft_effect_t *effect, const void *payload, size_t size) {
    haft_check_thrown("haft_throw", NULL, effect, payload, size);
    (void)haft_thread_ready();
    hafti_here_t here = hafti_here();
    hafti_found_t found = hafti_find(&here, effect, slot_of(effect), effect->default_clause.shape);
    if (HAFTI_UNLIKELY(hafti_clause_in_place(found) != NULL))
        throw_in_place(here, found, effect, (void *)(uintptr_t)payload);
    haft_check_default(hafti_clause_of(found), effect);
    haft_exit_checked(hafti_fiber_of(found.scope), effect, payload, size);
}
