/*
 * Finding the handler of an effect when the cache of the current scope does not have it: a walk
 * outwards, once for as long as the chain keeps its shape and the thread's table has room.
 */
#include "internal.h"

static const haft_clause_t slow_clause = {.kind = HAFT_CLAUSE_SLOW};
static const haft_clause_t any_clause = {.kind = HAFT_CLAUSE_REQUEST};

const haft_handles_t haft_handles_all = {.all = 1};
const haft_handles_t haft_handles_none = {.all = 0};

void haft_declare(const haft_effect_t *effect, uint32_t shape, const char *where) {
    if (shape != effect->default_clause.shape)
        haft_fail(
            HAFT_ERROR_WRONG_TYPE, effect, NULL,
            "The effect '%s' is declared in two ways, at %s and at %s: the sizes of payload or "
            "result differ. Two libraries may have chosen the same name: give each a prefix.",
            effect->name, effect->where, where);
}

static const haft_clause_t *clause_for(const haft_handles_t *handles, haft_effect_t *effect,
                                       uint32_t shape) {
    if (handles == NULL)
        return NULL;
    for (uint32_t i = 0; i < handles->count; i++) {
        const haft_clause_t *clause = &handles->clauses[i];
        if (clause->effect != effect)
            continue;
        if (clause->shape != shape)
            haft_fail(HAFT_ERROR_WRONG_TYPE, effect, NULL,
                      "The effect '%s' (%s) is declared in two ways: its performer and its handler "
                      "disagree on the size of its payload or result. Two libraries may have "
                      "chosen the same name: give each a prefix.",
                      effect->name, effect->where);
        return clause;
    }
    return handles->all ? &any_clause : NULL;
}

haft_found_t haft_search(haft_scope_t *from, haft_effect_t *effect, uint32_t shape) {
    haft_found_t found = {.slow = haft_tools_active};
    haft_thread_t *thread = haft_thread();
    for (haft_scope_t *scope = from; scope != NULL; scope = scope->outer) {
        (void)haft_scope_serial(thread, scope);
        found.slow |= scope->slow;
        found.clause = clause_for(scope->handles, effect, shape);
        if (found.clause != NULL) {
            found.scope = scope;
            return found;
        }
    }
    return found;
}

const haft_clause_t *haft_cached_clause(const haft_clause_t *clause, bool slow) {
    bool suspends = clause->kind == HAFT_CLAUSE_REQUEST || clause->kind == HAFT_CLAUSE_GENERAL;
    return !suspends ? clause : slow ? &slow_clause : NULL;
}

void haft_unhandled(haft_effect_t *effect) {
    haft_fiber_t *fiber = haft_fiber_here();
    haft_fail(
        HAFT_ERROR_UNHANDLED, effect, fiber,
        "Nobody handles the effect '%s' (%s), performed on %s. Handle it in a call around the "
        "perform, or give it a default with HAFT_SET_DEFAULT.",
        effect->name, effect->where, haft_fiber_label(fiber));
}

static haft_cache_entry_t find(haft_thread_t *thread, haft_effect_t *effect, uint32_t shape) {
    haft_found_t found = haft_search(thread->current, effect, shape);
    if (found.clause == NULL) {
        found.clause = clause_for(&(haft_handles_t){1, 0, &effect->default_clause}, effect, shape);
        found.scope = &thread->defaults;
    } else {
        found.clause = haft_cached_clause(found.clause, found.slow);
    }
    return (haft_cache_entry_t){effect, found.clause, found.scope};
}

haft_cache_entry_t *haft_look_for(haft_effect_t *effect, unsigned slot, uint32_t shape) {
    haft_thread_t *thread = haft_thread_ready();
    haft_scope_t *current = thread->current;
    haft_cache_entry_t *entry = &current->cache[slot % HAFT_CACHE_SLOTS];
    uint64_t hash = (haft_scope_serial(thread, current) ^ (uintptr_t)effect >> 4) *
                    UINT64_C(0x9e3779b97f4a7c15);
    haft_known_t *known = &thread->known[hash >> 32 & (HAFT_KNOWN - 1)];
    if (known->serial != current->serial || known->entry.effect != effect) {
        known->entry = find(thread, effect, shape);
        known->serial = current->serial;
    }
    *entry = known->entry;
    return entry;
}

/* An effect that nobody handles is reported here, under the scopes of its performer, and not by the
   clause that stands for the want of a default. */
haft_cache_entry_t *haft_lookup(haft_effect_t *effect, unsigned slot, uint32_t shape) {
    haft_cache_entry_t *entry = haft_look_for(effect, slot, shape);
    if (entry->clause == &effect->default_clause && haft_get_default(effect) == NULL)
        haft_unhandled(effect);
    return entry;
}

haft_fiber_t *haft_locate(haft_effect_t *effect) {
    haft_thread_t *thread = haft_thread_ready();
    haft_check_given(effect, "haft_locate", "effect");
    haft_found_t found = haft_search(thread->current, effect, effect->default_clause.shape);
    return found.clause != NULL && found.clause->kind != HAFT_CLAUSE_TAIL
               ? haft_fiber_of(found.scope)
               : NULL;
}

haft_function_t *haft_set_default(haft_effect_t *effect, haft_function_t *function) {
    haft_check_given(effect, "haft_set_default", "effect");
    haft_function_t *before =
        __atomic_exchange_n(&effect->default_clause.function,
                            function == NULL ? effect->unhandled : function, __ATOMIC_ACQ_REL);
    return before == effect->unhandled ? NULL : before;
}

haft_function_t *haft_get_default(const haft_effect_t *effect) {
    haft_check_given(effect, "haft_get_default", "effect");
    haft_function_t *function = __atomic_load_n(&effect->default_clause.function, __ATOMIC_ACQUIRE);
    return function == effect->unhandled ? NULL : function;
}
