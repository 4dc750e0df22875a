/* SPDX-License-Identifier: MIT */
/*
 * Finding the handler of an effect when the cache of the current scope does not have it: a walk
 * outwards, once for as long as the chain keeps its shape and the thread's table has room.
 */
#include "lookup.h"

static const haft_clause_t slow_request = {.kind = HAFTI_CLAUSE_SLOW};
static const haft_clause_t any_clause = {.kind = HAFT_CLAUSE_REQUEST};

const haft_handles_t haft_handles_all = {.all = 1};

void hafti_declare(const haft_effect_t *effect, uint32_t shape, const char *where) {
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

/* Reads the scope's cache. An entry also holds for scopes further in, unless one of them handles
   the effect, or needs the out-of-line switch. */
static bool knows(hafti_scope_t *scope, haft_effect_t *effect, unsigned slot, bool slow,
                  hafti_found_t *found) {
    hafti_found_t read;
    bool is_known = (hafti_read_either(hafti_entry_in(scope, slot), effect, &read) ||
                     hafti_read_either(hafti_second_entry(scope, effect), effect, &read)) &&
                    (!slow || (read.with & HAFTI_CLAUSE_MARK) != 0);
    if (is_known)
        *found = read;
    return is_known;
}

/* Walks to the handler; or, unless `known` is NULL, to the first scope that has the effect in its
   cache: so the first perform of a new fiber does not cost its depth. Then `*known`, which was
   empty, is that scope's entry. */
HAFTI_INLINE haft_handled_t walk(hafti_scope_t *from, haft_effect_t *effect, unsigned slot,
                                 uint32_t shape, hafti_found_t *known) {
    haft_handled_t found = {.slow = haft_tools_active};
    hafti_thread_t *thread = hafti_thread();
    for (hafti_scope_t *scope = from; scope != NULL; scope = scope->outer) {
        if (known != NULL && HAFTI_UNLIKELY(scope->filled != 0) &&
            knows(scope, effect, slot, found.slow, known))
            return found;
        (void)haft_scope_serial(thread, scope);
        found.slow |= scope->slow;
        found.clause = clause_for(scope->handles, effect, shape);
        if (found.clause != NULL) {
            found.scope = scope;
            return found;
        }
        found.passed++;
    }
    return found;
}

haft_handled_t haft_search(hafti_scope_t *from, haft_effect_t *effect, uint32_t shape) {
    return walk(from, effect, 0, shape, NULL);
}

hafti_found_t haft_found_of(haft_handled_t handled, haft_effect_t *effect) {
    const haft_clause_t *clause = handled.clause;
    if (clause->kind == HAFT_CLAUSE_TAIL || clause->kind == HAFT_CLAUSE_NEVER)
        return (hafti_found_t){(uintptr_t)clause + HAFTI_CLAUSE_MARK, handled.scope};
    uintptr_t with = haft_sent_by(hafti_fiber_of(handled.scope), clause, effect);
    if (handled.slow && with == (uintptr_t)effect)
        with = (uintptr_t)&slow_request;
    return (hafti_found_t){with + (handled.slow ? HAFTI_CLAUSE_MARK : 0), handled.scope};
}

/* ---- Remembering ---- */

/*
 * A signal handler may perform, and thus look up, anywhere in here. It reads the previous content
 * of an entry, or nothing: the key is emptied first and written last. It writes nothing if it has
 * interrupted a writer. A writer may never continue, because a handler may leave by siglongjmp; so
 * the writer's mark is its position on the stack: a handler is further in, or on the alternate
 * stack.
 */

static HAFTI_COLD bool interrupts(const char *here, const char *there) {
    haft_on_signal_stack_t on = haft_on_signal_stack(here, there);
    return on.here == on.there ? here < there : on.here;
}

static bool begin_to_write(hafti_thread_t *thread) {
    const char *here = __builtin_frame_address(0);
    if (HAFTI_UNLIKELY(thread->looking != NULL && interrupts(here, thread->looking)))
        return false;
    thread->looking = here;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return true;
}

static void end_to_write(hafti_thread_t *thread) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread->looking = NULL;
}

static void write_entry(hafti_scope_t *scope, hafti_cache_entry_t *entry, uintptr_t key,
                        hafti_found_t found) {
    scope->filled |= (uint8_t)(1u << (entry - scope->cache));
    entry->key = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    entry->found = found;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    entry->key = key + (found.with & HAFTI_CLAUSE_MARK);
}

void haft_remember(hafti_thread_t *thread, unsigned slot, uintptr_t key, hafti_found_t found) {
    if (begin_to_write(thread)) {
        write_entry(thread->current, hafti_entry_in(thread->current, slot), key, found);
        end_to_write(thread);
    }
}

static bool has(const hafti_cache_entry_t *entry, const haft_effect_t *effect) {
    const uintptr_t marks = HAFTI_CLAUSE_MARK | HAFTI_AT_MARK | HAFTI_OTHER_MARK;
    return entry->key == 0 || (entry->key & ~marks) == (uintptr_t)effect;
}

/*
 * The entry that an effect gets: that of its slot, or otherwise its second one. If other effects
 * have both and there is an empty entry, that becomes its second one, in all scopes. (What it
 * leaves behind elsewhere is never read again.) When the cache is full an entry is evicted: as a
 * rule the one at the effect's second place. Now and then the effect moves all the same, because an
 * entry elsewhere may be such a leftover.
 */
static hafti_cache_entry_t *entry_for(hafti_thread_t *thread, hafti_scope_t *scope,
                                      haft_effect_t *effect, unsigned slot) {
    enum { SIZE = sizeof(hafti_cache_entry_t), FULL = (1 << HAFTI_CACHE_SLOTS) - 1, STAYS = 8 };
    hafti_cache_entry_t *entry = hafti_entry_in(scope, slot);
    if (HAFTI_LIKELY(has(entry, effect)))
        return entry;
    entry = hafti_second_entry(scope, effect);
    if (has(entry, effect))
        return entry;
    uint32_t turn = thread->moves++;
    if (scope->filled != FULL)
        slot = (unsigned)__builtin_ctz(~(unsigned)scope->filled);
    else if (turn % STAYS == 0)
        slot = turn / STAYS % HAFTI_CACHE_SLOTS;
    else
        return entry;
    __atomic_store_n(&effect->place, slot * SIZE, __ATOMIC_RELAXED);
    return &scope->cache[slot];
}

static void write_known(haft_known_t *known, uint64_t serial, haft_effect_t *effect,
                        hafti_found_t found) {
    known->serial = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    known->effect = effect;
    known->found = found;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    known->serial = serial;
}

static bool is_for(const haft_known_t *known, uint64_t serial, const haft_effect_t *effect) {
    return known->serial == serial && known->effect == effect;
}

/* Like hafti_read_entry. */
static bool read_known(const haft_known_t *known, uint64_t serial, const haft_effect_t *effect,
                       hafti_found_t *found) {
    if (!is_for(known, serial, effect))
        return false;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    *found = known->found;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return is_for(known, serial, effect);
}

/* ---- Looking up ---- */

static haft_unhandled_t *on_unhandled;

haft_unhandled_t *haft_set_unhandled(haft_unhandled_t *function) {
    return __atomic_exchange_n(&on_unhandled, function, __ATOMIC_ACQ_REL);
}

/* The address to which the function in which this stands returns. It takes 16 bytes of the stack of
   each look-up, which a freestanding program has no use for. */
#ifdef HAFT_FREESTANDING
#    define PERFORMER NULL
#else
#    define PERFORMER __builtin_return_address(0)
#endif

/* `place`: the address to which the code that performs would have returned, if it is known. */
static HAFTI_COLD __attribute__((noreturn)) void unhandled_at(haft_effect_t *effect,
                                                              const void *place) {
    haft_fiber_t *fiber = haft_fiber_here();
    haft_unhandled_t *function = __atomic_load_n(&on_unhandled, __ATOMIC_ACQUIRE);
    if (function != NULL)
        function(effect);
    const char *where = effect->where; /* (A freestanding program has no strcmp.) */
    bool is_of_cpp = where[0] == 'C' && where[1] == '+' && where[2] == '+' && where[3] == '\0';
    haft_fail(
        HAFT_ERROR_UNHANDLED, effect, fiber,
        "Nobody handles the effect '%s' (%s), performed on %s%s. Handle it in a call around the "
        "perform, or give it a default with %s.",
        effect->name, effect->where, haft_fiber_label(fiber), haft_place_label(place),
        is_of_cpp ? "haft::set_default" : "HAFT_SET_DEFAULT");
}

void hafti_unhandled(haft_effect_t *effect) {
    unhandled_at(effect, NULL);
}

static hafti_found_t by_handler_or_default(hafti_thread_t *thread, haft_handled_t handled,
                                           haft_effect_t *effect, uint32_t shape) {
    if (handled.clause != NULL)
        return haft_found_of(handled, effect);
    const haft_clause_t *clause = clause_for(
        &(haft_handles_t){1, 0, HAFTI_SET_FIXED, &effect->default_clause}, effect, shape);
    return (hafti_found_t){(uintptr_t)clause + HAFTI_CLAUSE_MARK, &haft_home(thread)->defaults};
}

#if !defined(NDEBUG) && !defined(HAFT_FREESTANDING)
const char *haft_invalid_known(hafti_thread_t *thread, haft_effect_t *effect, hafti_found_t known) {
    uint32_t shape = effect->default_clause.shape;
    haft_handled_t handled = haft_search(thread->current, effect, shape);
    hafti_found_t found = by_handler_or_default(thread, handled, effect, shape);
    return known.scope == found.scope && known.with == found.with
               ? NULL
               : "what a scope remembers is what a walk finds";
}
#endif

/* The effect is unhandled: its only clause is a default that does not exist. */
HAFTI_INLINE bool is_unhandled(hafti_found_t found, const haft_effect_t *effect) {
    return HAFTI_UNLIKELY(hafti_clause_of(found) == &effect->default_clause) &&
           haft_default(effect) == NULL;
}

/*
 * A walk that has gone far leaves what it found in every eighth scope that it went past, if that
 * has a place to spare: so when computations nested deep end one after the other, and each performs
 * the effect in its cleanups, each walk is short. A walk past a scope that needs the out-of-line
 * switch leaves nothing.
 */
enum { STRIDE = 8 };

static HAFTI_COLD void remember_on_the_way(hafti_thread_t *thread, haft_handled_t handled,
                                           haft_effect_t *effect, unsigned slot,
                                           hafti_found_t found) {
    hafti_scope_t *scope = thread->current;
    if (handled.slow || is_unhandled(found, effect) || haft_is_observed(thread) ||
        !begin_to_write(thread))
        return;
    for (unsigned i = 0; i < handled.passed; i++, scope = scope->outer) {
        hafti_cache_entry_t *entry = hafti_entry_in(scope, slot);
        if (i % STRIDE == STRIDE - 1 && has(entry, effect))
            write_entry(scope, entry, (uintptr_t)effect, found);
    }
    end_to_write(thread);
}

static __attribute__((noinline)) hafti_found_t find(hafti_thread_t *thread, haft_effect_t *effect,
                                                    unsigned slot, uint32_t shape) {
    hafti_found_t known = {0, NULL};
    bool is_declared_so = shape == effect->default_clause.shape;
    haft_handled_t handled = is_declared_so ? walk(thread->current, effect, slot, shape, &known)
                                            : haft_search(thread->current, effect, shape);
    bool is_known = known.scope != NULL;
    if (is_known)
        HAFT_CHECK_KNOWN(thread, effect, known);
    hafti_found_t found = is_known ? known : by_handler_or_default(thread, handled, effect, shape);
    if (HAFTI_UNLIKELY(handled.passed >= STRIDE) && is_declared_so)
        remember_on_the_way(thread, handled, effect, slot, found);
    return found;
}

/* Lets a later perform of the effect under such a set find it without a search
   (hafti_is_requested); or, where a clause takes the effect, keeps performs from that test. */
static void remember_request(const hafti_scope_t *current, haft_effect_t *effect,
                             hafti_found_t found) {
    uint16_t number = __atomic_load_n(&current->handles->number, __ATOMIC_RELAXED);
    if (found.with != (uintptr_t)effect)
        __atomic_store_n(&effect->requested, 0, __ATOMIC_RELAXED);
    else if (found.scope == current && number >= HAFTI_SET_FIRST)
        __atomic_store_n(&effect->requested, number, __ATOMIC_RELAXED);
}

/* haft_look_for, inlined into its two callers. No slot remembers an unhandled effect: its next
   performer gets here again. `is_error`: that nobody handles the effect is an error. */
HAFTI_INLINE hafti_found_t look_for(hafti_thread_t *thread, haft_effect_t *effect, unsigned slot,
                                    uint32_t shape, bool is_error) {
    hafti_scope_t *current = thread->current;
    HAFT_CHECK_CHAIN(thread);
    uint64_t serial = haft_scope_serial(thread, current);
    uint64_t hash = (serial ^ (uintptr_t)effect >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    haft_known_t *known = &thread->known[hash >> 32 & (HAFT_KNOWN - 1)];
    hafti_found_t found;
    bool is_known = read_known(known, serial, effect, &found);
    if (HAFTI_UNLIKELY(!is_known))
        found = find(thread, effect, slot, shape);
    bool unhandled = is_unhandled(found, effect);
    if (HAFTI_UNLIKELY(unhandled && is_error))
        unhandled_at(effect, PERFORMER);
    if (!unhandled && hafti_clause_in_place(found) == NULL)
        haft_check_suspends(thread, effect);
    remember_request(current, effect, found);
    if (HAFTI_LIKELY(begin_to_write(thread))) {
        if (HAFTI_UNLIKELY(!is_known))
            write_known(known, serial, effect, found);
        if (!unhandled)
            write_entry(current, entry_for(thread, current, effect, slot), (uintptr_t)effect,
                        found);
        end_to_write(thread);
    }
    return found;
}

hafti_found_t haft_look_for(haft_effect_t *effect, unsigned slot, uint32_t shape) {
    return look_for(haft_thread_ready(), effect, slot, shape, false);
}

/* Reports to the observer an effect that is handled in place. The next perform is to get here,
   too. */
static hafti_found_t told(hafti_thread_t *thread, const haft_effect_t *effect,
                          hafti_found_t found) {
    if (hafti_clause_in_place(found) != NULL) {
        haft_scope_forget(thread->current);
        haft_tell_of_clause(effect, found.scope);
    }
    return found;
}

static HAFTI_COLD hafti_found_t lookup_observed(hafti_thread_t *thread, haft_effect_t *effect,
                                                unsigned slot, uint32_t shape) {
    hafti_found_t found = haft_look_for(effect, slot, shape);
    if (is_unhandled(found, effect))
        unhandled_at(effect, NULL);
    return told(thread, effect, found);
}

/* An unhandled effect is reported under the scopes of its performer. */
hafti_found_t hafti_lookup(haft_effect_t *effect, unsigned slot, uint32_t shape) {
    hafti_thread_t *thread = haft_thread_ready();
    if (HAFTI_UNLIKELY(haft_is_observed(thread)))
        return lookup_observed(thread, effect, slot, shape);
    return look_for(thread, effect, slot, shape, true);
}

haft_fiber_t *haft_locate(haft_effect_t *effect) {
    hafti_thread_t *thread = haft_thread_ready();
    haft_check_given(effect, "haft_locate", "effect");
    haft_handled_t found = haft_search(thread->current, effect, effect->default_clause.shape);
    return found.clause != NULL && found.clause->kind != HAFT_CLAUSE_TAIL
               ? hafti_fiber_of(found.scope)
               : NULL;
}

/* The function of a removed default stays in place for threads that are about to call it; the kind
   sends all others to the slow path. */
haft_function_t *haft_set_default(haft_effect_t *effect, haft_function_t *function) {
    haft_check_given(effect, "haft_set_default", "effect");
    haft_clause_t *clause = &effect->default_clause;
    haft_function_t *before = haft_default(effect);
    if (function != NULL)
        __atomic_store_n(&clause->function, function, __ATOMIC_RELEASE);
    __atomic_store_n(&clause->kind, function != NULL ? HAFT_CLAUSE_TAIL : HAFTI_CLAUSE_SLOW,
                     __ATOMIC_RELEASE);
    return before;
}

haft_function_t *haft_default(const haft_effect_t *effect) {
    haft_check_given(effect, "haft_default", "effect");
    const haft_clause_t *clause = &effect->default_clause;
    uint32_t kind = __atomic_load_n(&clause->kind, __ATOMIC_ACQUIRE);
    haft_function_t *function = __atomic_load_n(&clause->function, __ATOMIC_ACQUIRE);
    return kind != HAFT_CLAUSE_TAIL || function == effect->unhandled ? NULL : function;
}

/* ---- Sending an effect out of a fiber ---- */

static const haft_clause_t *clause_of(const haft_handler_t *handler, const haft_effect_t *effect) {
    for (uint32_t i = 0; i < handler->handles.count; i++)
        if (handler->handles.clauses[i].effect == effect)
            return &handler->handles.clauses[i];
    return NULL;
}

uintptr_t haft_sent_by(const haft_fiber_t *fiber, const haft_clause_t *clause,
                       const haft_effect_t *effect) {
    bool general = clause != NULL && clause->kind == HAFT_CLAUSE_GENERAL && haft_is_driven(fiber);
    return general ? (uintptr_t)clause : (uintptr_t)effect;
}

const haft_clause_t *haft_clause_taking(const haft_fiber_t *fiber, const haft_effect_t *effect) {
    const haft_handler_t *handler = fiber->handler;
    if (!haft_is_driven(fiber))
        return NULL;
    const haft_clause_t *clause = clause_of(handler, effect);
    if (clause == NULL || clause->kind == HAFT_CLAUSE_TAIL)
        haft_fail(
            HAFT_ERROR_UNHANDLED, effect, fiber,
            "The effect '%s' (%s) cannot be sent out of %s: its handler '%s' has no clause that "
            "takes a computation for it.",
            effect->name, effect->where, haft_fiber_label(fiber), handler->name);
    return clause;
}

/* ---- Performing to a handler by name ---- */

hafti_found_t haft_lookup_at(hafti_scope_t *target, haft_effect_t *effect, unsigned slot,
                             uint32_t shape) {
    hafti_thread_t *thread = haft_thread_ready();
    hafti_scope_t *scope = thread->current;
    bool slow = haft_tools_active;
    for (; scope != NULL && scope != target; scope = scope->outer) {
        (void)haft_scope_serial(thread, scope);
        slow |= scope->slow;
    }
    if (scope == NULL)
        haft_fail(
            HAFT_ERROR_NOT_AROUND, effect, NULL,
            "The effect '%s' cannot be performed to that handler: it is not around the current "
            "code.",
            effect->name);
    haft_handled_t handled = haft_search(target, effect, shape);
    if (handled.scope != target)
        unhandled_at(effect, PERFORMER);
    handled.slow |= slow;
    hafti_found_t found = haft_found_of(handled, effect);
    if (hafti_clause_in_place(found) == NULL)
        haft_check_suspends(thread, effect);
    haft_remember(thread, slot, (uintptr_t)effect + HAFTI_AT_MARK, found);
    return HAFTI_UNLIKELY(haft_is_observed(thread)) ? told(thread, effect, found) : found;
}
