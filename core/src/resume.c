/* SPDX-License-Identifier: MIT */
/*
 * The out-of-line paths of resuming and suspending: the first resume, a new parent, another handled
 * set, another thread, exceptions in flight, tools that want to be told, special stacks; and the
 * untyped calls.
 */
#include "internal.h"

_Static_assert(offsetof(haft_fiber_t, context) == 0 && offsetof(haft_fiber_t, resumer) == 64,
               "the switch knows where the contexts are");

haft_effect_t haft_id_return = {.name = "return",
                                .where = "haft.h",
                                .payload_size = sizeof(haft_payload_return),
                                .default_clause = {.effect = &haft_id_return}};
/* The ways in which a fiber comes back to its resumer without a request. */
haft_effect_t haft_special_unwinding = {.name =
                                            "unwinding"}; /* go on up to the fiber in the payload */
haft_effect_t haft_special_exception = {.name = "exception"}; /* a foreign exception, the payload */
haft_effect_t haft_special_dropped = {.name = "dropped"};     /* the fiber is unwound, as asked */

/* ---- Exceptions being handled belong to the fiber that handles them ---- */

static haft_exceptions_t exceptions_put_aside(haft_thread_t *thread) {
    haft_exceptions_t mine = *thread->globals;
    if (HAFT_UNLIKELY(haft_exceptions_in(thread->exceptions)))
        *thread->globals = haft_no_exceptions;
    return mine;
}

/* What is in flight on arrival (an exception that leaves a fiber) counts on. */
static void exceptions_put_back(haft_thread_t *thread, haft_exceptions_t mine) {
    if (HAFT_UNLIKELY(mine.caught != NULL || mine.uncaught != 0)) {
        thread->globals->caught = mine.caught;
        thread->globals->uncaught += mine.uncaught;
    }
}

/* ---- Crossing the border of a fiber ---- */

HAFT_INLINE haft_words_t cross_told(haft_fiber_t *fiber, enum haft_crossing crossing,
                                    haft_words_t words) {
    bool into = crossing == HAFT_INTO;
    if (HAFT_UNLIKELY(haft_tools_active))
        haft_tools_before(fiber, crossing);
    words = !into           ? haft_switch_out_of(fiber, words.first, words.second)
            : words.special ? haft_switch_into_specially(fiber, words.first, words.second)
                            : haft_switch_into(fiber, words.first);
    if (HAFT_UNLIKELY(haft_tools_active))
        haft_tools_after(fiber, crossing);
    return words;
}

/* Apart, because a small stack has no room for the language's words. */
static HAFT_COLD haft_words_t cross_in_language(const haft_language_t *language,
                                                haft_fiber_t *fiber, enum haft_crossing crossing,
                                                haft_words_t words) {
    haft_language_state_t mine;
    language->before(fiber, crossing, &mine);
    words = cross_told(fiber, crossing, words);
    language->after(fiber, crossing, &mine);
    return words;
}

HAFT_INLINE haft_words_t cross(const haft_thread_t *thread, haft_fiber_t *fiber,
                               enum haft_crossing crossing, haft_words_t words) {
    return HAFT_UNLIKELY(thread->language != NULL)
               ? cross_in_language(thread->language, fiber, crossing, words)
               : cross_told(fiber, crossing, words);
}

/* ---- Resuming ---- */

static const char *state_text(const haft_fiber_t *fiber) {
    switch (haft_fiber_state(fiber)) {
    case HAFT_FIBER_FINISHED:
        return "it has finished";
    case HAFT_FIBER_FREED:
        return "it has been freed";
    default:
        return "it is running, here or on another thread";
    }
}

static HAFT_COLD void not_resumable(const haft_fiber_t *fiber, haft_error_code_t code,
                                    const char *what) {
    haft_fail(code, haft_awaited(fiber), fiber, "%s cannot be %s: %s.", haft_fiber_label(fiber),
              what, state_text(fiber));
}

void haft_resume_raced(haft_fiber_t *fiber) {
    haft_fail(HAFT_ERROR_NOT_RESUMABLE, haft_awaited(fiber), fiber,
              "%s is being resumed by two threads at once. Only one may own a suspended fiber.",
              haft_fiber_label(fiber));
}

/* Claiming from elsewhere than the scope that resumed the fiber last. The stamp in `owner` is a mark:
   as long as it is there, no other thread can have come in on the hot path. */
static uint64_t claim_foreign(haft_thread_t *thread, haft_fiber_t *fiber) {
    uint64_t mark = haft_stamp(thread);
    uint64_t owner = __atomic_exchange_n(&fiber->owner, mark, __ATOMIC_SEQ_CST);
    if (owner != 0 && !haft_drawn_on(owner, thread))
        haft_thread_barrier();
    if (__atomic_exchange_n(&fiber->gate, HAFT_GATE_CLOSED, __ATOMIC_SEQ_CST) == HAFT_GATE_CLOSED ||
        __atomic_load_n(&fiber->owner, __ATOMIC_SEQ_CST) != mark)
        haft_resume_raced(fiber);
    return owner;
}

HAFT_INLINE uint64_t claim(haft_thread_t *thread, haft_fiber_t *fiber, haft_error_code_t code,
                           const char *what) {
    uint64_t gate = __atomic_load_n(&fiber->gate, __ATOMIC_RELAXED);
    if (gate == HAFT_GATE_CLOSED)
        not_resumable(fiber, code, what);
    uint64_t serial = haft_scope_serial(thread, thread->current);
    if (__atomic_load_n(&fiber->owner, __ATOMIC_RELAXED) == serial) {
        /* As on the hot path: see haft/hot.h. */
        __atomic_store_n(&fiber->gate, HAFT_GATE_CLOSED, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (__atomic_load_n(&fiber->owner, __ATOMIC_RELAXED) != serial)
            haft_resume_raced(fiber);
        return serial;
    }
    return claim_foreign(thread, fiber);
}

/* After a claim that returned `before`, and until the next serial is drawn: gives the fiber the owner
   `after`. If a thread has tried to claim it meanwhile, the mark of that one stays. */
HAFT_INLINE void set_owner(haft_thread_t *thread, haft_fiber_t *fiber, uint64_t before,
                           uint64_t after) {
    uint64_t serial = thread->current->serial;
    uint64_t mine = before == serial ? serial : thread->stamp; /* what claim_foreign wrote */
    if (mine != after)
        (void)__atomic_compare_exchange_n(&fiber->owner, &mine, after, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST);
}

uint64_t haft_claim(haft_thread_t *thread, haft_fiber_t *fiber, haft_error_code_t code,
                    const char *what) {
    return claim(thread, fiber, code, what);
}

/* Makes the fiber anybody's: nobody can be on its hot path. */
static void release(haft_thread_t *thread, haft_fiber_t *fiber, uint64_t owner) {
    set_owner(thread, fiber, owner, 0);
    __atomic_store_n(&fiber->gate, HAFT_GATE_OPEN, __ATOMIC_RELEASE);
}

void haft_fiber_detach(haft_fiber_t *fiber) {
    haft_check_given(fiber, "haft_fiber_detach", "fiber");
    haft_thread_t *thread = haft_thread_ready();
    release(thread, fiber, claim(thread, fiber, HAFT_ERROR_NOT_RESUMABLE, "detached"));
}

void haft_handles_changed(haft_fiber_t *fiber) {
    haft_check_given(fiber, "haft_handles_changed", "fiber");
    haft_thread_t *thread = haft_thread_ready();
    uint64_t owner = claim(thread, fiber, HAFT_ERROR_NOT_RESUMABLE, "detached");
    fiber->set = HAFT_SET_NONE;
    fiber->scope.handles = &haft_handles_none;
    release(thread, fiber, owner);
}

/* What was derived from the chain outwards of these scopes no longer holds. */
static void renew(haft_thread_t *thread, haft_scope_t *from, const haft_scope_t *end) {
    for (haft_scope_t *scope = from; scope != end; scope = scope->outer)
        haft_scope_renew(thread, scope);
}

void haft_in_place_moved(haft_scope_t *performer, const haft_scope_t *outer) {
    renew(haft_thread(), performer, outer);
}

/* Whether the fiber now handles other effects than before. */
static bool set_handles(haft_fiber_t *fiber, const haft_handles_t *handles) {
    const haft_handles_t *before = fiber->scope.handles;
    if (before == handles)
        return false;
    bool same = haft_same_effects(before, handles);
    if (HAFT_UNLIKELY(haft_is_driven(fiber)))
        haft_use_up(fiber); /* its handler has lost it: a resumption that is kept is used up */
    fiber->scope.handles = handles;
    fiber->set = haft_number_of(handles);
    return !same;
}

/* The fiber is suspended, and the code that resumed it has arrived back. */
HAFT_INLINE void open_gate(haft_fiber_t *fiber) {
    bool slow = haft_resume_slowly || fiber->scope.slow || fiber->checked;
    __atomic_store_n(&fiber->gate, slow ? HAFT_GATE_SLOW : HAFT_GATE_OPEN, __ATOMIC_RELEASE);
}

HAFT_INLINE haft_request_t enter(haft_thread_t *thread, haft_fiber_t *fiber, void *word,
                                 enum haft_wake wake, const haft_handles_t *handles,
                                 uint64_t owner) {
    haft_scope_t *current = thread->current;
    set_owner(thread, fiber, owner, thread->current->serial);
    bool changed = set_handles(fiber, handles);
    changed |= fiber->state == HAFT_FIBER_NEW || owner != current->serial;
    if (HAFT_UNLIKELY(thread->segmented != NULL))
        changed |= haft_resumes_from_foreign_call(fiber);
    if (changed)
        renew(thread, fiber->top, fiber->scope.outer);
    fiber->scope.outer = current;
    fiber->state = HAFT_FIBER_RUNNING;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* signal handlers see whole scopes */
    thread->current = fiber->top;
    haft_exceptions_t mine = exceptions_put_aside(thread);
    haft_footing_t footing;
    haft_leave_segments(thread, &footing);
    fiber->within = footing.fiber;
    haft_words_t words =
        cross(thread, fiber, HAFT_INTO, (haft_words_t){word, wake, wake != HAFT_WAKE_REPLY});
    haft_return_to_segments(&footing);
    if (fiber->within == footing.fiber)
        fiber->within = NULL; /* unless it stopped in another one */
    exceptions_put_back(haft_thread(), mine);
    if (words.special) {
        if (fiber->kind == HAFT_KIND_FIXED)
            words.first = haft_fixed_ended(fiber, words.first);
        return haft_arrived(fiber, (haft_effect_t *)words.second, words.first);
    }
    open_gate(fiber);
    if (fiber->checked)
        haft_check_stack(fiber, fiber->context.sp, fiber->within);
    return (haft_request_t){(haft_effect_t *)words.second, words.first};
}

haft_request_t haft_unwind_claimed(haft_fiber_t *fiber, uint64_t owner) {
    return enter(haft_thread(), fiber, fiber, HAFT_WAKE_UNWIND, &haft_handles_none, owner);
}

/* Claims the fiber for a resume. */
HAFT_INLINE uint64_t claim_to_resume(haft_thread_t *thread, haft_fiber_t *fiber) {
    haft_check_own(fiber, "resumed");
    haft_check_uses(thread, fiber, "resumed");
    return claim(thread, fiber, HAFT_ERROR_NOT_RESUMABLE, "resumed");
}

haft_request_t haft_enter(haft_fiber_t *fiber, void *word, enum haft_wake wake,
                          const haft_handles_t *handles) {
    haft_thread_t *thread = haft_thread_ready();
    uint64_t owner = claim_to_resume(thread, fiber);
    return enter(thread, fiber, word, wake, handles, owner);
}

/* The first resume of an ordinary fiber by the scope that made it: nothing inside it has a parent,
   a cache or a context worth a look. */
HAFT_INLINE haft_request_t resume_new(haft_thread_t *thread, haft_fiber_t *fiber, void *word,
                                      const haft_handles_t *handles) {
    haft_scope_t *current = thread->current;
    fiber->gate = HAFT_GATE_CLOSED;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (HAFT_UNLIKELY(fiber->owner != current->serial))
        haft_resume_raced(fiber);
    haft_scope_renew(thread, &fiber->scope);
    fiber->scope.handles = handles;
    fiber->scope.outer = current;
    fiber->state = HAFT_FIBER_RUNNING;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread->current = &fiber->scope;
    haft_words_t words = haft_switch_into(fiber, word);
    if (words.special)
        return haft_arrived(fiber, (haft_effect_t *)words.second, words.first);
    open_gate(fiber);
    return (haft_request_t){(haft_effect_t *)words.second, words.first};
}

/* Whether resume_new may do it. */
HAFT_INLINE bool is_simply_new(const haft_thread_t *thread, const haft_fiber_t *fiber) {
    return HAFT_LIKELY(fiber->gate == HAFT_GATE_NEW && fiber->owner == thread->current->serial &&
                       !haft_exceptions_in(thread->exceptions));
}

haft_request_t haft_resume_slow(haft_fiber_t *fiber, void *word, const haft_handles_t *handles) {
    haft_thread_t *thread = haft_thread_ready();
    haft_check_given(fiber, "haft_resume", "fiber");
    haft_check_given(handles, "haft_resume", "set of effects");
    if (is_simply_new(thread, fiber))
        return resume_new(thread, fiber, word, handles);
    return haft_enter(fiber, word, HAFT_WAKE_REPLY, handles);
}

static HAFT_COLD __attribute__((noreturn)) void wrong_reply(const haft_fiber_t *fiber,
                                                            uintptr_t awaits_, haft_reply_t given) {
    const haft_effect_t *awaits = haft_effect_in(awaits_), *reply = haft_effect_in(given.to);
    if (awaits == NULL)
        haft_fail(
            HAFT_ERROR_WRONG_TYPE, reply, fiber,
            "%s was resumed with a reply to the effect '%s' (%s), but it has not started. Give "
            "it HAFT_NO_REPLY.",
            haft_fiber_label(fiber), reply->name, reply->where);
    if (reply == NULL)
        haft_no_reply(awaits);
    haft_fail(
        HAFT_ERROR_WRONG_TYPE, awaits, fiber,
        "%s waits for a reply to the effect '%s' (%s), and was resumed with one to '%s' (%s). "
        "Give it HAFT_REPLY(%s...).",
        haft_fiber_label(fiber), awaits->name, awaits->where, reply->name, reply->where,
        awaits->name);
}

void haft_check_reply(const haft_fiber_t *fiber, uintptr_t awaits, haft_reply_t reply) {
    if (HAFT_UNLIKELY(!haft_is_reply_to(awaits, reply.to)))
        wrong_reply(fiber, awaits, reply);
}

haft_request_t haft_resume_checked(haft_fiber_t *fiber, haft_reply_t reply,
                                   const haft_handles_t *handles) {
    haft_thread_t *thread = haft_thread_ready();
    haft_check_given(fiber, "haft_resume", "fiber");
    haft_check_given(handles, "haft_resume", "set of effects");
    if (is_simply_new(thread, fiber) && HAFT_LIKELY(reply.to == 0))
        return resume_new(thread, fiber, NULL, handles);
    uint64_t owner = claim_to_resume(thread, fiber);
    if (HAFT_UNLIKELY(!haft_is_reply_to(fiber->scope.awaits, reply.to))) {
        release(thread, fiber, owner);
        wrong_reply(fiber, fiber->scope.awaits, reply);
    }
    return enter(thread, fiber, reply.word, HAFT_WAKE_REPLY, handles, owner);
}

void *haft_raise(void *argument) {
    haft_raising_t raising =
        *(const haft_raising_t *)argument; /* who gave it goes on if `raise` performs */
    haft_reply_t reply = raising.raise(raising.argument);
    haft_check_reply(raising.fiber, raising.awaits, reply);
    return reply.word;
}

haft_request_t haft_resume_calling(haft_fiber_t *fiber, void *(*function)(void *), void *argument,
                                   const haft_handles_t *handles) {
    haft_call_t call = {function, argument};
    haft_check_given(fiber, "haft_discontinue", "fiber");
    haft_check_given(handles, "haft_discontinue", "set of effects");
    return haft_enter(fiber, &call, HAFT_WAKE_CALL, handles);
}

haft_request_t haft_discontinue(haft_fiber_t *fiber, haft_raise_t *raise, void *argument,
                                const haft_handles_t *handles) {
    haft_check_given(fiber, "haft_discontinue", "fiber");
    haft_check_given((void *)(uintptr_t)raise, "haft_discontinue", "function to call");
    haft_raising_t raising = {raise, argument, fiber, fiber->scope.awaits};
    return haft_resume_calling(fiber, haft_raise, &raising, handles);
}

haft_request_t haft_arrived(haft_fiber_t *fiber, haft_effect_t *effect, void *payload) {
    if (HAFT_LIKELY(effect == HAFT_ID(return )))
        return (haft_request_t){effect, payload};
    haft_unwind_on(fiber, effect, payload);
    return (haft_request_t){effect, payload};
}

/* ---- Suspending ---- */

static void *suspend_slow(haft_fiber_t *fiber, haft_effect_t *effect, uintptr_t with, void *payload,
                          bool slow) {
    haft_thread_t *thread = haft_thread();
    if (HAFT_UNLIKELY(haft_foreign_calls_seen))
        haft_check_foreign_calls(fiber, effect);
    fiber->top = thread->current;
    fiber->scope.awaits = HAFT_AWAITING(effect, effect->result_size);
    thread->current = fiber->scope.outer;
    haft_exceptions_t mine = exceptions_put_aside(thread);
    haft_footing_t footing;
    haft_leave_segments(thread, &footing);
    fiber->within = footing.fiber;
    if (slow) { /* the next resume has to take the slow path, too */
        uint64_t owner = fiber->scope.outer->serial;
        (void)__atomic_compare_exchange_n(&fiber->owner, &owner, 0, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST);
    }
    haft_words_t words = cross(thread, fiber, HAFT_OUT_OF, (haft_words_t){payload, with, false});
    haft_return_to_segments(&footing);
    if (fiber->within == footing.fiber)
        fiber->within = NULL; /* unless another one has resumed it */
    exceptions_put_back(haft_thread(), mine);
    return words.special ? haft_woken(words.first, words.second) : words.first;
}

typedef struct performed {
    haft_fiber_t *fiber;
    haft_effect_t *effect;
    void *payload;
} performed_t;

static void exit_with(void *argument) {
    const performed_t *performed = argument;
    haft_exit(performed->fiber, performed->effect, performed->payload,
              performed->effect->payload_size);
}

/* Reports an effect whose default was found, and taken away since. */
static void check_default(const haft_clause_t *clause, haft_effect_t *effect) {
    if (clause == &effect->default_clause)
        haft_unhandled(effect);
}

/* On a segmented fiber this and what it calls have to do with the last bytes of a segment. */
void *haft_suspend_slow(haft_found_t found, haft_effect_t *effect, void *payload) {
    haft_fiber_t *fiber = haft_fiber_of(found.scope);
    const haft_clause_t *clause = haft_clause_of(found);
    check_default(clause, effect);
    haft_check_suspends(haft_thread(), effect);
    if (clause == NULL)
        return suspend_slow(fiber, effect, found.with, payload, false);
    if (clause->kind == HAFT_CLAUSE_NEVER) {
        performed_t performed = {fiber, effect, payload};
        haft_on_thread_stack(exit_with, &performed);
    }
    return suspend_slow(fiber, effect, haft_sent_by(fiber, clause, effect), payload, true);
}

/* Whether crossing from the current scope out of `fiber` needs the slow switch; an error when
   `fiber` is not around the current scope. */
static bool around(haft_thread_t *thread, haft_fiber_t *fiber, const haft_effect_t *effect) {
    bool slow = haft_tools_active;
    for (haft_scope_t *scope = thread->current; scope != NULL; scope = scope->outer) {
        slow |= scope->slow;
        if (fiber != NULL && scope == &fiber->scope)
            return slow;
    }
    haft_fail(
        HAFT_ERROR_NOT_AROUND, effect, fiber,
        "The effect '%s' cannot be sent out of %s: that fiber is not around the current code.",
        effect->name, haft_fiber_label(fiber));
}

void *haft_yield_slow(haft_fiber_t *fiber, haft_effect_t *effect, unsigned slot, void *payload) {
    haft_thread_t *thread = haft_thread_ready();
    haft_check_own(fiber, "suspended");
    haft_check_suspends(thread, effect);
    bool slow = around(thread, fiber, effect);
    const haft_clause_t *clause = haft_clause_taking(fiber, effect);
    if (clause != NULL && clause->kind == HAFT_CLAUSE_NEVER)
        haft_exit(fiber, effect, payload, effect->payload_size);
    haft_found_t found = haft_look_for(effect, slot, effect->default_clause.shape);
    haft_here_t here = haft_here();
    if (found.scope == &fiber->scope && haft_clause_of(found) == NULL &&
        !haft_exceptions_pending(here))
        return haft_suspend(here, fiber, HAFT_AWAITING(effect, effect->result_size), found.with,
                            payload);
    return suspend_slow(fiber, effect, haft_sent_by(fiber, clause, effect), payload, slow);
}

void *haft_woken(void *word, uintptr_t wake) {
    if (wake == HAFT_WAKE_UNWIND)
        haft_unwind(word, HAFT_CALLERS_FRAME());
    const haft_call_t *call = word;
    return call->function(call->argument);
}

HAFT_INLINE HAFT_UNINSTRUMENTED __attribute__((noreturn)) void
part(haft_thread_t *thread, haft_fiber_t *fiber, haft_effect_t *effect, void *payload) {
    fiber->state = HAFT_FIBER_FINISHED;
    thread->current = fiber->scope.outer;
    haft_switch_out_for_good(fiber, payload, (uintptr_t)effect);
}

HAFT_UNINSTRUMENTED void haft_leave(haft_fiber_t *fiber, haft_effect_t *effect, void *payload) {
    haft_thread_t *thread = haft_thread();
    /* An unwinding by force ends here. Catch-alls that rethrew it have counted it as an exception. */
    if (effect != &haft_special_exception && haft_exceptions_in(thread->exceptions))
        *thread->globals = haft_no_exceptions;
    if (fiber->checked) {
        char *here = __builtin_frame_address(0);
        haft_check_stack(fiber, fiber->high, NULL); /* the canary: `here` may be further in */
        if (here >= fiber->low && here < fiber->high)
            fiber->context.sp = here; /* its resumer uses what is below */
    }
    if (thread->language != NULL)
        thread->language->left(thread->current, fiber);
    haft_end_segments(thread);
    if (haft_tools_active)
        haft_tools_before(fiber, HAFT_OUT_FOR_GOOD);
    part(thread, fiber, effect, payload);
}

/* Before the fiber's function. */
static HAFT_COLD void arrive(haft_fiber_t *fiber, void *word, uintptr_t wake) {
    if (haft_tools_active)
        haft_tools_after(fiber, HAFT_OUT_OF);
    if (fiber->kind == HAFT_KIND_SEGMENTED)
        haft_enter_segments(fiber);
    if (wake == HAFT_WAKE_CALL)
        (void)haft_woken(word, wake);
}

void haft_fiber_run(haft_fiber_t *fiber, void *word, uintptr_t wake) {
    if (HAFT_UNLIKELY(haft_tools_active || fiber->kind == HAFT_KIND_SEGMENTED ||
                      wake == HAFT_WAKE_CALL))
        arrive(fiber, word, wake);
    fiber->result = fiber->function(fiber->argument);
}

HAFT_UNINSTRUMENTED void haft_fiber_returned(haft_fiber_t *fiber) {
    haft_thread_t *thread = haft_thread();
    if (HAFT_UNLIKELY(fiber->kind != HAFT_KIND_POOL || thread->language != NULL ||
                      haft_tools_active))
        haft_leave(fiber, HAFT_ID(return ), &fiber->result);
    part(thread, fiber, HAFT_ID(return ), &fiber->result);
}

/* ---- The untyped calls ---- */

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
    haft_here_t here = haft_here();
    haft_found_t found = haft_find(here, effect, slot_of(effect), effect->default_clause.shape);
    const haft_clause_t *clause = haft_clause_in_place(found);
    if (clause != NULL) {
        haft_function_t *function = haft_clause_function(clause);
        void *state = found.scope->state;
        __attribute__((unused, cleanup(haft_in_place_end))) haft_in_place_t in_place =
            haft_in_place_begin(here, found.scope);
        effect->call(function, state, payload, result_size == 0 ? &nothing : result);
    } else {
        haft_unpack(effect, haft_perform_found(here, found, effect, payload, result_size),
                    result_size == 0 ? &nothing : result, result_size);
    }
}

void haft_yield(haft_fiber_t *fiber, haft_effect_t *effect, void *payload, size_t size,
                void *result, size_t result_size) {
    char nothing; /* instead of a NULL */
    check_untyped("haft_yield", effect, payload, size, result, result_size);
    haft_unpack(effect, haft_yield_hot(fiber, effect, slot_of(effect), payload, result_size),
                result_size == 0 ? &nothing : result, result_size);
}

void haft_throw(haft_effect_t *effect, const void *payload, size_t size) {
    haft_check_thrown("haft_throw", NULL, effect, payload, size);
    (void)haft_thread_ready();
    haft_here_t here = haft_here();
    haft_found_t found = haft_find(here, effect, slot_of(effect), effect->default_clause.shape);
    const haft_clause_t *clause = haft_clause_in_place(found);
    if (clause == NULL) {
        check_default(haft_clause_of(found), effect);
        haft_exit(haft_fiber_of(found.scope), effect, payload, size);
    }
    /* A clause in place may leave by itself: by another throw, or the like. */
    {
        uint64_t result[(effect->result_size + 15) / 8];
        __attribute__((unused, cleanup(haft_in_place_end))) haft_in_place_t in_place =
            haft_in_place_begin(here, found.scope);
        effect->call(haft_clause_function(clause), found.scope->state, (void *)(uintptr_t)payload,
                     result);
    }
    haft_fail(HAFT_ERROR_CAME_BACK, effect, NULL,
              "The effect '%s' (%s) was thrown, but its handler runs in place and came back. "
              "Throw only effects whose handlers do not resume.",
              effect->name, effect->where);
}

haft_reply_t haft_reply(const haft_effect_t *effect, const void *value, size_t size) {
    haft_check_given(effect, "haft_reply", "effect");
    if (size != effect->result_size)
        haft_fail(HAFT_ERROR_WRONG_TYPE, effect, NULL,
                  "The effect '%s' (%s) has a result of %zu bytes; the reply has %zu.",
                  effect->name, effect->where, effect->result_size, size);
    if (size == 0)
        return (haft_reply_t){HAFT_AWAITING(effect, 0), NULL};
    haft_check_given(value, "haft_reply", "value");
    return (haft_reply_t){HAFT_AWAITING(effect, size), haft_pack(value, size)};
}

void haft_no_case(const haft_effect_t *effect) {
    haft_check_given(effect, "HAFT_MATCH", "request");
    bool returned = effect == HAFT_ID(return );
    haft_fail(
        HAFT_ERROR_NO_CASE, effect, NULL,
        "No case of a HAFT_MATCH takes the %s '%s' (%s). Add %s%s%s, or HAFT_OTHERWISE(request) "
        "{ } for what is to be passed over.",
        returned ? "request" : "effect", effect->name, effect->where,
        returned ? "HAFT_RETURN(result" : "HAFT_CASE(", returned ? "" : effect->name,
        returned ? ") { ... }" : ", payload) { ... }");
}

void haft_no_reply(const haft_effect_t *effect) {
    haft_fail(
        HAFT_ERROR_NO_REPLY, effect, NULL,
        "The effect '%s' (%s) has a result of %zu bytes, but its handler resumed without one. "
        "Reply with HAFT_REPLY(%s, value).",
        effect->name, effect->where, effect->result_size, effect->name);
}
