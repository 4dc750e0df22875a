/*
 * Deep handlers: a table of clauses around a computation.
 *
 * A handler whose clauses all run in place is a scope in the frame of haft_handle. Any other has a
 * fiber, and `drive` is the loop of the paper around it, written once: it resumes, dispatches the
 * request to its clause, and ends with the clause's answer. A clause that ends in
 * haft_tail_continue comes back into the loop, so that such clauses run in constant space.
 *
 * A resumption names its fiber and the number of the capture. Every use counts that number up, so
 * that a second use, or a use after the fiber's end, is recognised.
 */
#include "internal.h"

/* What haft_tail_continue returns: an address that no answer can have. */
static char tail_marker;

static void *answer_of(haft_fiber_t *fiber, void *result) {
    const haft_handler_t *handler = fiber->handler;
    void *state = fiber->scope.state;
    haft_fiber_free(fiber);
    return handler->on_return != NULL ? handler->on_return(state, result) : result;
}

static const haft_clause_t *clause_of(const haft_handler_t *handler, const haft_effect_t *effect) {
    for (uint32_t i = 0; i < handler->handles.count; i++)
        if (handler->handles.clauses[i].effect == effect)
            return &handler->handles.clauses[i];
    return NULL;
}

uint32_t haft_clause_kind(const haft_fiber_t *fiber, const haft_effect_t *effect) {
    const haft_handler_t *handler = fiber->handler;
    if (handler == NULL || fiber->scope.handles != &handler->handles)
        return HAFT_CLAUSE_REQUEST;
    const haft_clause_t *clause = clause_of(handler, effect);
    if (clause == NULL || clause->kind == HAFT_CLAUSE_TAIL)
        haft_fail(
            HAFT_ERROR_UNHANDLED, effect, fiber,
            "The effect '%s' (%s) cannot be sent out of %s: its handler '%s' has no clause that "
            "takes a computation for it.",
            effect->name, effect->where, haft_fiber_label(fiber), handler->name);
    return clause->kind;
}

typedef void *never_clause_t(void *state, void *payload);
typedef void *general_clause_t(void *state, void *payload, haft_resumption_t k);

static void *run_never(haft_fiber_t *fiber, haft_request_t request) {
    HAFT_SCOPED haft_fiber_t *owned = fiber;
    const haft_clause_t *clause = clause_of(fiber->handler, request.effect);
    if (clause->kind != HAFT_CLAUSE_NEVER)
        haft_fail(HAFT_ERROR_CAME_BACK, request.effect, NULL,
                  "The effect '%s' (%s) was thrown, but its clause in '%s' resumes. Perform it, or "
                  "handle it with HAFT_NEVER.",
                  request.effect->name, request.effect->where,
                  ((const haft_handler_t *)fiber->handler)->name);
    return ((never_clause_t *)clause->function)(owned->scope.state, request.payload);
}

/* A clause that is unwound, by an exception or by being dropped, drops what it had not used. */
static void drop_unused(haft_resumption_t *k) {
    if (k->fiber != NULL && k->fiber->shot == k->shot)
        haft_drop(*k);
}

static void *run_general(haft_fiber_t *fiber, haft_request_t request) {
    const haft_clause_t *clause = clause_of(fiber->handler, request.effect);
    __attribute__((cleanup(drop_unused))) haft_resumption_t unused = {fiber, ++fiber->shot};
    void *answer = ((general_clause_t *)clause->function)(fiber->scope.state, request.payload,
                                                          (haft_resumption_t){fiber, fiber->shot});
    unused.fiber = NULL;
    return answer;
}

static bool large_reply(const haft_fiber_t *fiber) {
    return fiber->awaits->result_size > sizeof(void *);
}

static void free_reply(void **reply) {
    haft_free_reply(*reply);
}

/* What haft_tail_continue has left for the handler that called the clause. */
static haft_fiber_t *take_tail(void) {
    haft_thread_t *thread = haft_thread();
    haft_fiber_t *fiber = thread->tail;
    if (fiber == NULL || fiber->result != &tail_marker)
        haft_fail(
            HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
            "A clause returned what haft_tail_continue had given to another one. Write `return "
            "haft_tail_continue(k, reply);`.");
    thread->tail = NULL;
    fiber->result = NULL;
    return fiber;
}

/* A clause's cleanups run after its haft_tail_continue, and may have handlers of their own. */
static void restore_tail(haft_fiber_t **tail) {
    haft_thread()->tail = *tail;
}

static void *drive(haft_fiber_t *fiber, void *word, enum haft_wake wake) {
    __attribute__((unused, cleanup(restore_tail))) haft_fiber_t *tail = haft_thread()->tail;
    void *copied = NULL;
    for (;;) {
        const haft_handler_t *handler = fiber->handler;
        haft_request_t request;
        {
            __attribute__((unused, cleanup(free_reply))) void *reply = copied;
            HAFT_SCOPED haft_fiber_t *owned = fiber;
            request = wake == HAFT_WAKE_REPLY ? haft_resume_hot(fiber, word, &handler->handles)
                                              : haft_enter(fiber, word, wake, &handler->handles);
            owned = NULL;
        }
        if (haft_finished(request))
            return answer_of(fiber, ((haft_payload_return *)request.payload)->result);
        if (fiber->state == HAFT_FIBER_FINISHED)
            return run_never(fiber, request);
        void *answer = run_general(fiber, request);
        if (answer != &tail_marker)
            return answer;
        fiber = take_tail();
        word = fiber->argument;
        copied = large_reply(fiber) ? word : NULL;
        wake = HAFT_WAKE_REPLY;
    }
}

/* ---- Installing ---- */

static bool in_place(const haft_handler_t *handler) {
    for (uint32_t i = 0; i < handler->handles.count; i++)
        if (handler->handles.clauses[i].kind != HAFT_CLAUSE_TAIL)
            return false;
    return true;
}

void haft_scope_push(haft_scope_t *scope, const haft_handles_t *handles, void *state) {
    haft_thread_t *thread = haft_thread_ready();
    scope->outer = thread->current;
    scope->handles = handles;
    haft_scope_renew(thread, scope);
    scope->state = state;
    scope->kind = HAFT_SCOPE_STACKLESS;
    scope->slow = 0;
    thread->current = scope;
}

static void pop(haft_scope_t **scope) {
    haft_scope_pop(*scope);
}

static void *handle_in_place(const haft_handler_t *handler, void *state, void *(*body)(void *),
                             void *argument) {
    haft_scope_t scope;
    void *result;
    haft_scope_push(&scope, &handler->handles, state);
    {
        __attribute__((cleanup(pop), unused)) haft_scope_t *pushed = &scope;
        result = body(argument);
    }
    return handler->on_return != NULL ? handler->on_return(state, result) : result;
}

void *haft_handle_with(const haft_fiber_options_t *options, const haft_handler_t *handler,
                       void *state, void *(*body)(void *), void *argument) {
    haft_check_given(handler, "haft_handle", "handler");
    haft_check_given((void *)(uintptr_t)body, "haft_handle", "body");
    if (in_place(handler))
        return handle_in_place(handler, state, body, argument);
    haft_fiber_t *fiber = haft_fiber_create(options, body, argument);
    if (fiber == NULL)
        return NULL;
    fiber->handler = handler;
    fiber->scope.state = state;
    return drive(fiber, NULL, HAFT_WAKE_REPLY);
}

void *haft_handle(const haft_handler_t *handler, void *state, void *(*body)(void *),
                  void *argument) {
    return haft_handle_with(&(haft_fiber_options_t){.stack_size = 0}, handler, state, body,
                            argument);
}

/* ---- Using a resumption ---- */

static haft_fiber_t *use(haft_resumption_t k, const char *what) {
    haft_fiber_t *fiber = k.fiber;
    if (fiber == NULL || fiber->shot != k.shot)
        haft_fail(HAFT_ERROR_USED_RESUMPTION, fiber == NULL ? NULL : fiber->awaits, fiber,
                  "A resumption of the effect '%s' cannot be %s: it has been used already.",
                  fiber == NULL || fiber->awaits == NULL ? "?" : fiber->awaits->name, what);
    fiber->shot++;
    return fiber;
}

void *haft_continue(haft_resumption_t k, void *reply) {
    return drive(use(k, "continued"), reply, HAFT_WAKE_REPLY);
}

void *haft_continue_raising(haft_resumption_t k, void *(*raise)(void *), void *argument) {
    haft_call_t call = {raise, argument};
    haft_check_given((void *)(uintptr_t)raise, "haft_continue_raising", "function to call");
    return drive(use(k, "continued"), &call, HAFT_WAKE_CALL);
}

void *haft_tail_continue(haft_resumption_t k, void *reply) {
    haft_fiber_t *fiber = use(k, "continued");
    /* A large reply lies in the block of the clause, which is about to end. */
    if (large_reply(fiber) && reply != NULL)
        reply = haft_copy_reply(fiber->awaits, reply);
    fiber->argument = reply;
    fiber->result = &tail_marker;
    haft_thread()->tail = fiber;
    return &tail_marker;
}

void haft_drop(haft_resumption_t k) {
    haft_fiber_free(use(k, "dropped"));
}

haft_effect_t *haft_resumption_effect(haft_resumption_t k) {
    return k.fiber != NULL && k.fiber->shot == k.shot ? k.fiber->awaits : NULL;
}
