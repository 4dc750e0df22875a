/* SPDX-License-Identifier: MIT */
/*
 * Deep handlers: a table of clauses around a computation.
 *
 * A handler whose clauses all run in place is a scope in the frame of haft_handle. Any other has a
 * fiber, and `drive` is the loop of the paper around it, written once: it resumes, dispatches the
 * request to its clause, and ends with the clause's answer. A clause that ends in
 * haft_tail_resume comes back into the loop, so that such clauses run in constant space. The first
 * turn of the loop that haft_resumption_resume runs is inlined into its caller
 * (haft/inner/general.h).
 *
 * A resumption names its fiber and the number of the capture. Every use counts that number up, so
 * that a second use, or a use after the fiber's end, is recognised.
 */
#include "copies.h"

static const haft_clause_t *clause_of(const haft_handler_t *handler, const haft_effect_t *effect) {
    for (uint32_t i = 0; i < handler->handles.count; i++)
        if (handler->handles.clauses[i].effect == effect)
            return &handler->handles.clauses[i];
    return NULL;
}

const char haft_no_answer = 0;

/* ---- The loop ---- */

typedef void *never_clause_t(void *state, void *payload);

/* How drive resumes with a reply that is to be freed; an answer's `next` has it as a mark. */
enum { WAKE_COPY = HAFTI_WAKE_CALL + 1, COPY_MARK = 1 };

static void *run_never(haft_fiber_t *fiber, haft_request_t request) {
    HAFT_SCOPED haft_fiber_t *owned = fiber;
    const haft_clause_t *clause = clause_of(fiber->handler, request.effect);
    return ((never_clause_t *)clause->function)(owned->scope.state, request.payload);
}

/* A computation that was dropped has no answer. */
static HAFTI_COLD void *no_answer_of(haft_fiber_t *fiber) {
    haft_fiber_drop(fiber);
    return HAFT_NO_ANSWER;
}

/* The answer of a computation that has ended: by returning, or by an effect that it threw. */
static void *answer_of(haft_fiber_t *fiber, void *payload, uintptr_t effect) {
    haft_request_t request = {(haft_effect_t *)effect, payload};
    if (!haft_finished(request))
        return request.effect == &haft_special_dropped ? no_answer_of(fiber)
                                                       : run_never(fiber, request);
    const haft_handler_t *handler = fiber->handler;
    void *state = fiber->scope.state;
    void *result = ((haft_payload_return *)request.payload)->result;
    haft_fiber_drop(fiber);
    return handler->on_return != NULL ? handler->on_return(state, result) : result;
}

/* While the computation runs it is the loop's; when the loop is unwound meanwhile, it ends. */
HAFTI_INLINE void free_owned(haft_fiber_t **owned) {
    if (*owned != NULL)
        haft_fiber_drop(*owned);
}

/* Takes back what haft_tail_resume has promised: the fiber waits as before. */
static HAFTI_COLD void take_promise_back(haft_fiber_t *fiber) {
    haft_forget_promised(fiber);
    fiber->scope.shot--;
}

void hafti_drop_left(haft_resumption_t k) {
    if (HAFTI_UNLIKELY(haft_image_of(k) != NULL)) {
        haft_resumption_drop(k);
        return;
    }
    if (k.fiber->scope.shot == k.shot + 1)
        take_promise_back(k.fiber);
    if (k.fiber->scope.shot == k.shot)
        haft_resumption_drop(k);
}

/* Resumes by the out-of-line path. The words are special if the computation has ended. */
static HAFT_ONE_FUNCTION HAFTI_COLD hafti_words_t resume_slowly(haft_fiber_t *fiber, void *word,
                                                                unsigned wake) {
    const haft_handles_t *handles = fiber->scope.handles;
    if (wake == WAKE_COPY) { /* a copied reply: this frame has it until the performer has */
        size_t size = hafti_awaited(fiber)->result_size;
        void *here = __builtin_alloca(size);
        __builtin_memcpy(here, word, size);
        haft_free_reply(word);
        word = here;
    }
    __attribute__((cleanup(free_owned))) haft_fiber_t *owned = fiber;
    haft_request_t request = wake == HAFTI_WAKE_CALL
                                 ? haft_enter(fiber, word, HAFTI_WAKE_CALL, handles)
                             : wake == HAFTI_WAKE_UNWIND ? haft_resume_unwinding(fiber, handles)
                                                         : hafti_resume_slow(fiber, word, handles);
    owned = NULL;
    return (hafti_words_t){request.payload, (uintptr_t)request.effect,
                           fiber->state == HAFT_FIBER_FINISHED};
}

/* The computation has stopped for good; while what has left it goes on here, it is the loop's. */
static void *payload_arrived(haft_fiber_t *fiber, void *payload, uintptr_t effect) {
    __attribute__((cleanup(free_owned))) haft_fiber_t *owned = fiber;
    payload = hafti_arrived(fiber, (haft_effect_t *)effect, payload).payload;
    owned = NULL;
    return payload;
}

void *hafti_answer_of_ended(haft_fiber_t *fiber, void *payload, uintptr_t effect) {
    return answer_of(fiber, payload_arrived(fiber, payload, effect), effect);
}

/* Resumes by the inlined path, where that may be taken. */
HAFTI_INLINE hafti_words_t resume(haft_fiber_t *fiber, void *word) {
    hafti_here_t here = hafti_here();
    if (HAFTI_UNLIKELY(!hafti_resumes_again(here, fiber)))
        return resume_slowly(fiber, word, HAFTI_WAKE_REPLY);
    hafti_words_t words = hafti_resume_now(here, fiber, word);
    if (HAFTI_UNLIKELY(words.special))
        words.first = payload_arrived(fiber, words.first, words.second);
    else
        hafti_open_gate(fiber);
    return words;
}

/* The clause has promised its own computation and returned something else: the promise is
   undone. */
static HAFTI_COLD void forgotten(haft_fiber_t *fiber) {
    take_promise_back(fiber);
    haft_fail(HAFT_ERROR_BAD_ARGUMENT, hafti_awaited(fiber), fiber,
              "A clause of '%s' has called haft_tail_resume and returned something else. Write "
              "`return haft_tail_resume(k, reply);`.",
              ((const haft_handler_t *)fiber->handler)->name);
}

static HAFTI_COLD void answered_twice(const haft_fiber_t *fiber) {
    haft_fail(
        HAFT_ERROR_USED_RESUMPTION, hafti_awaited(fiber), fiber,
        "A clause has returned what haft_tail_resume gave it a second time. Return it once, at "
        "once.");
}

/* The `shot` of a fiber that the clause may have dropped: it may be another thread's by now. */
static HAFT_UNINSTRUMENTED uint64_t shot_of(const haft_fiber_t *fiber) {
    return __atomic_load_n(&fiber->scope.shot, __ATOMIC_RELAXED);
}

/* Whether the fiber's header can be read even after the clause has dropped the fiber. */
HAFTI_INLINE bool header_lasts(const haft_fiber_t *fiber) {
    return HAFTI_LIKELY(fiber->kind == HAFT_KIND_POOL) || haft_stage_is_pooled(fiber);
}

/* The fiber that the clause has promised to resume, which need not be its own. */
HAFTI_INLINE haft_fiber_t *next_of(haft_answer_t answer) {
    return (haft_fiber_t *)(answer.next & ~(uintptr_t)COPY_MARK);
}

/* A promise of another computation than the clause's, or of a copy that has been put on the fiber
   since. Returns the answer: so nothing else is in use after this call. */
static HAFTI_COLD haft_answer_t promised_otherwise(haft_answer_t answer, haft_fiber_t *fiber,
                                                   uint64_t shot, bool lasts) {
    haft_fiber_t *next = next_of(answer);
    if (next != fiber && lasts && shot_of(fiber) == shot + 1) {
        if (next->scope.shot & 1)
            take_promise_back(next);
        forgotten(fiber);
    }
    if ((next->scope.shot & 1) == 0)
        answered_twice(next);
    next->scope.shot++;
    return answer;
}

/* The promise is kept: the computation is about to be resumed. `lasts`: the header of the clause's
   own fiber can be read even after that is dropped. */
HAFTI_INLINE haft_answer_t promised_by(haft_answer_t answer, haft_fiber_t *fiber, uint64_t shot,
                                       bool lasts) {
    haft_fiber_t *next = next_of(answer);
    if (HAFTI_UNLIKELY(next != fiber || next->scope.shot != shot + 1))
        return promised_otherwise(answer, fiber, shot, lasts);
    next->scope.shot = shot + 2;
    return answer;
}
HAFTI_INLINE unsigned wake_of(haft_answer_t answer) {
    return answer.next & COPY_MARK ? (unsigned)WAKE_COPY : (unsigned)HAFTI_WAKE_REPLY;
}

/* The loop of the paper. Neither inlined nor cloned: its frames are known by its address. */
static HAFT_ONE_FUNCTION void *drive(haft_fiber_t *fiber, void *word, unsigned wake) {
    bool lasts = header_lasts(fiber);
    for (;;) {
        hafti_words_t words = HAFTI_LIKELY(wake == HAFTI_WAKE_REPLY)
                                  ? resume(fiber, word)
                                  : resume_slowly(fiber, word, wake);
        if (HAFTI_UNLIKELY(words.special))
            return answer_of(fiber, words.first, words.second);
        uint64_t shot = fiber->scope.shot;
        haft_answer_t answer = hafti_run_general(fiber, words, shot);
        if (answer.next == 0) {
            if (HAFTI_UNLIKELY(lasts && shot_of(fiber) == shot + 1))
                forgotten(fiber);
            return answer.value;
        }
        answer = promised_by(answer, fiber, shot, lasts);
        if (HAFTI_UNLIKELY(next_of(answer) != fiber)) {
            fiber = next_of(answer);
            lasts = header_lasts(fiber);
        }
        word = answer.value;
        wake = wake_of(answer);
    }
}

void *hafti_answer_of_promise(haft_fiber_t *fiber, uint64_t shot, haft_answer_t answer) {
    bool lasts = header_lasts(fiber);
    if (answer.next != 0) {
        answer = promised_by(answer, fiber, shot, lasts);
        return drive(next_of(answer), answer.value, wake_of(answer));
    }
    if (lasts && shot_of(fiber) == shot + 1)
        forgotten(fiber);
    return answer.value;
}

/* ---- Installing ---- */

static bool in_place(const haft_handler_t *handler) {
    for (uint32_t i = 0; i < handler->handles.count; i++)
        if (handler->handles.clauses[i].kind != HAFT_CLAUSE_TAIL)
            return false;
    return true;
}

HAFTI_INLINE void push(hafti_thread_t *thread, hafti_scope_t *scope, uint64_t serial,
                       const haft_handles_t *handles, void *state) {
    scope->outer = thread->current;
    scope->handles = handles;
    scope->serial = serial;
    for (unsigned i = 0; i < HAFTI_CACHE_SLOTS; i++)
        scope->cache[i].key = 0; /* earlier content of the frame */
    scope->filled = 0;
    scope->state = state;
    scope->kind = HAFTI_SCOPE_STACKLESS;
    scope->slow = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* signal handlers see whole scopes */
    thread->current = scope;
}

/* Called on a thread that has not used the library, or whose block of serials is used up. */
static HAFTI_COLD void push_slowly(hafti_scope_t *scope, const haft_handles_t *handles,
                                   void *state) {
    hafti_thread_t *thread = haft_thread_ready();
    push(thread, scope, haft_stamp_block(thread), handles, state);
}

/* (The rare case is a jump at the end, so that the usual one saves no registers.) */
void haft_scope_push(hafti_scope_t *scope, const haft_handles_t *handles, void *state) {
    hafti_thread_t *thread = hafti_thread();
    uint64_t serial = HAFTI_LIKELY(thread->current != &haft_unborn) ? haft_next_stamp(thread) : 0;
    if (HAFTI_UNLIKELY(serial << HAFTI_THREAD_BITS == 0))
        push_slowly(scope, handles, state);
    else
        push(thread, scope, serial, handles, state);
}

static void pop(hafti_scope_t **scope) {
    haft_scope_pop(*scope);
}

/* Not inlined: a stack that is left for good is not unwound for its frames (cleanups.c). */
__attribute__((noinline)) void *haft_handle_in_place(const haft_handler_t *handler, void *state,
                                                     void *(*body)(void *), void *argument) {
    hafti_scope_t scope;
    void *result;
    haft_scope_push(&scope, &handler->handles, state);
    {
        __attribute__((cleanup(pop), unused)) hafti_scope_t *pushed = &scope;
        result = body(argument);
    }
    return handler->on_return != NULL ? handler->on_return(state, result) : result;
}

void *hafti_handle_sized(const haft_fiber_options_t *options, size_t size,
                         const haft_handler_t *handler, void *state, void *(*body)(void *),
                         void *argument) {
    haft_check_given(handler, "haft_handle", "handler");
    haft_check_given((void *)(uintptr_t)body, "haft_handle", "body");
    if (in_place(handler))
        return haft_handle_in_place(handler, state, body, argument);
    haft_fiber_t *fiber = hafti_fiber_new_sized(options, size, body, argument);
    if (fiber == NULL)
        return HAFT_NO_ANSWER;
    fiber->handler = handler;
    fiber->scope.handles = &handler->handles;
    fiber->scope.state = state;
    return drive(fiber, NULL, HAFTI_WAKE_REPLY);
}

void *haft_handle(const haft_handler_t *handler, void *state, void *(*body)(void *),
                  void *argument) {
    return haft_handle_with(&(haft_fiber_options_t){.stack_size = 0}, handler, state, body,
                            argument);
}

/* ---- Using a resumption ---- */

#ifdef HAFT_FREESTANDING
static haft_cleanups_t judge(uintptr_t function, bool at_switch) {
    (void)function, (void)at_switch;
    return HAFT_CLEANUPS_UNKNOWN;
}
#else
enum { PROMISED = 64 };
static uintptr_t promised[PROMISED]; /* by the program */
static uint32_t promises;

void haft_may_copy_frames(haft_function_t *function) {
    haft_check_given((void *)(uintptr_t)function, "haft_may_copy_frames", "function");
    uint32_t place = __atomic_fetch_add(&promises, 1, __ATOMIC_RELAXED);
    if (place >= PROMISED) {
        __atomic_store_n(&promises, PROMISED, __ATOMIC_RELAXED);
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
                  "haft_may_copy_frames has been called for more than %d functions.", PROMISED);
    }
    __atomic_store_n(&promised[place], (uintptr_t)function, __ATOMIC_RELEASE);
}

/* A frame of `drive` at a switch has nothing to run, and elsewhere the clause's resumption to drop.
   A frame of resume_slowly drops the fiber inside, which a copy has on a stage. */
static haft_cleanups_t judge(uintptr_t function, bool at_switch) {
    if (function == (uintptr_t)resume_slowly || (function == (uintptr_t)drive && at_switch))
        return HAFT_CLEANUPS_NONE;
    if (function == (uintptr_t)drive)
        return HAFT_CLEANUPS_COPIED;
    for (uint32_t i = 0; i < PROMISED && promised[i] != 0; i++)
        if (__atomic_load_n(&promised[i], __ATOMIC_ACQUIRE) == function)
            return HAFT_CLEANUPS_COPIED;
    return HAFT_CLEANUPS_SOME;
}
#endif

static HAFTI_COLD __attribute__((noreturn)) void used(const haft_fiber_t *fiber, const char *what) {
    haft_fail(HAFT_ERROR_USED_RESUMPTION, fiber == NULL ? NULL : hafti_awaited(fiber), fiber,
              "A resumption of the effect '%s' cannot be %s: it has been used already.",
              fiber == NULL || hafti_awaited(fiber) == NULL ? "?" : hafti_awaited(fiber)->name,
              what);
}

/* The image of the resumption, if it has one. It is an error if the resumption has been used. */
HAFTI_INLINE haft_image_t *image_of_unused(haft_resumption_t k, const char *what) {
    if (HAFTI_LIKELY(k.fiber != NULL && k.fiber->scope.shot == k.shot))
        return NULL;
    haft_image_t *image = haft_image_of(k);
    if (HAFTI_UNLIKELY(image == NULL))
        used(k.fiber, what);
    return image;
}

/* The word `awaits` of the suspended computation. */
HAFTI_INLINE uintptr_t awaited_by(haft_resumption_t k, const haft_image_t *image) {
    return image != NULL ? haft_image_awaits(image) : k.fiber->awaits;
}

/* The computation stands on its fiber after this; the resumption is used up. */
static haft_fiber_t *use(haft_resumption_t k, haft_image_t *image, const char *what) {
    if (HAFTI_UNLIKELY(image != NULL))
        k = haft_image_stand(k, image, what, judge);
    haft_use_up(k.fiber);
    return k.fiber;
}

void *hafti_resumption_resume_slow(haft_resumption_t k, haft_reply_t reply) {
    haft_image_t *image = image_of_unused(k, "resumed");
    haft_check_reply(k.fiber, awaited_by(k, image), reply);
    return drive(use(k, image, "resumed"), reply.word, HAFTI_WAKE_REPLY);
}

void *haft_resumption_discontinue(haft_resumption_t k, haft_raise_t *raise, void *argument) {
    haft_check_given((void *)(uintptr_t)raise, "haft_resumption_discontinue", "function to call");
    haft_fiber_t *fiber = use(k, image_of_unused(k, "resumed"), "resumed");
    haft_raising_t raising = {raise, argument, fiber};
    haft_call_t call = {haft_raise, &raising};
    return drive(fiber, &call, HAFTI_WAKE_CALL);
}

haft_answer_t hafti_tail_resume_slow(haft_resumption_t k, haft_reply_t reply) {
    haft_image_t *image = image_of_unused(k, "resumed");
    haft_check_reply(k.fiber, awaited_by(k, image), reply);
    if (HAFTI_UNLIKELY(image != NULL))
        k = haft_image_stand(k, image, "resumed", judge);
    haft_fiber_t *fiber = k.fiber;
    bool copied = hafti_awaited(fiber)->result_size > sizeof reply.word;
    /* The reply lies in the block of the clause, which is about to end. */
    if (copied)
        reply.word = fiber->resumer.base = haft_copy_reply(hafti_awaited(fiber), reply.word);
    fiber->scope.shot++;
    return (haft_answer_t){reply.word, (uintptr_t)fiber + (copied ? COPY_MARK : 0)};
}

/* A never clause on whose behalf the computation was being unwound does not run. */
void haft_resumption_drop(haft_resumption_t k) {
    haft_image_t *image = image_of_unused(k, "dropped");
    if (HAFTI_UNLIKELY(image != NULL) && haft_image_forget(k, image))
        return;
    haft_fiber_t *fiber = use(k, image, "dropped");
    if (HAFTI_UNLIKELY(fiber->thrown != NULL))
        haft_forget_kept(fiber);
    if (haft_needs_unwinding(fiber))
        (void)drive(fiber, NULL, HAFTI_WAKE_UNWIND);
    else
        haft_fiber_drop(fiber);
}

haft_effect_t *haft_resumption_effect(haft_resumption_t k) {
    if (k.fiber != NULL && k.fiber->scope.shot == k.shot)
        return hafti_awaited(k.fiber);
    const haft_image_t *image = haft_image_of(k);
    return image != NULL ? hafti_effect_in(haft_image_awaits(image)) : NULL;
}

#ifndef HAFT_FREESTANDING
haft_resumption_t haft_resumption_copy(haft_resumption_t k) {
    haft_image_t *image = image_of_unused(k, "copied");
    haft_check_uses(haft_thread_ready(), k.fiber, "copied");
    return haft_image_copy(k, image, judge, false);
}

haft_resumption_t haft_copy_looked_at(haft_resumption_t k) {
    haft_image_t *image = image_of_unused(k, "copied");
    haft_check_uses(haft_thread_ready(), k.fiber, "copied");
    return haft_image_copy(k, image, judge, true);
}
#endif
