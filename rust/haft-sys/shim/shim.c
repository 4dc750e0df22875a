/* SPDX-License-Identifier: MIT */
/*
 * What Rust needs of the headers and cannot call: functions that are inlined, and effects that are
 * made while the program runs.
 *
 * An effect of Rust has as payload one word, the address of an object in the performer's frame,
 * into which the handler also writes the answer; so its result is nothing. Nothing is ever unwound
 * through the frames of C here: what Rust gives to C catches its panics.
 */
#include <haft/io.h>
#include <haft/language.h>

#include <dlfcn.h>
#include <stdlib.h>

typedef void clause_t(void *state, void *payload);

static void call_clause(haft_function_t *function, void *state, void *payload, void *result) {
    (void)result;
    ((clause_t *)function)(state, payload);
}

typedef struct haft_rust_effect {
    haft_effect_t effect;
    /* Sets that never change, with this effect alone. */
    haft_clause_t as_request, in_place;
    haft_handles_t request;
    haft_handler_t handler;
} haft_rust_effect_t;

/* For the whole process. `unhandled` is called in place where nobody handles the effect, `in_place`
   with the state of a handler that does so on the performer's stack. NULL: no memory. */
haft_rust_effect_t *haft_rust_effect_new(const char *name, clause_t *unhandled,
                                         clause_t *in_place) {
    haft_rust_effect_t *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    const uint32_t shape = HAFTI_SHAPE(sizeof(void *), 0);
    haft_effect_t *effect = &made->effect;
    *effect = (haft_effect_t){
        .name = name,
        .where = "Rust",
        .payload_size = sizeof(void *),
        .call = call_clause,
        .unhandled = (haft_function_t *)abort,
        .default_clause = {effect, (haft_function_t *)unhandled, HAFT_CLAUSE_TAIL, shape}};
    made->as_request = (haft_clause_t){effect, NULL, HAFT_CLAUSE_REQUEST, shape};
    made->request = (haft_handles_t){1, 0, HAFTI_SET_UNNUMBERED, &made->as_request};
    made->in_place = (haft_clause_t){effect, (haft_function_t *)in_place, HAFT_CLAUSE_TAIL, shape};
    made->handler =
        (haft_handler_t){{1, 0, HAFTI_SET_UNNUMBERED, &made->in_place}, NULL, effect->name};
    return made;
}

void haft_rust_perform(haft_rust_effect_t *effect, void *slot) {
    haft_perform(&effect->effect, &slot, sizeof slot, NULL, 0);
}

/* Calls `body(argument)` on the caller's stack, with the effect handled in place. */
void haft_rust_handle(const haft_rust_effect_t *effect, void *state, void *(*body)(void *),
                      void *argument) {
    (void)haft_handle(&effect->handler, state, body, argument);
}

/* How Rust handles an effect that C has declared. */
typedef struct haft_rust_shared {
    haft_clause_t in_place;
    haft_handler_t handler;
} haft_rust_shared_t;

/* For the whole process. The clause has the effect's own type, and is called in place. NULL: the
   sizes are not those of the effect, or there is no memory. */
haft_rust_shared_t *haft_rust_shared_new(haft_effect_t *effect, const void *clause,
                                         size_t payload_size, size_t result_size) {
    if (effect->payload_size != payload_size || effect->result_size != result_size)
        return NULL;
    haft_rust_shared_t *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->in_place = (haft_clause_t){effect, (haft_function_t *)(uintptr_t)clause, HAFT_CLAUSE_TAIL,
                                     HAFTI_SHAPE(payload_size, result_size)};
    made->handler =
        (haft_handler_t){{1, 0, HAFTI_SET_UNNUMBERED, &made->in_place}, NULL, effect->name};
    return made;
}

/* As haft_rust_handle. */
void haft_rust_shared_handle(const haft_rust_shared_t *effect, void *state, void *(*body)(void *),
                             void *argument) {
    (void)haft_handle(&effect->handler, state, body, argument);
}

/* Starts or resumes a fiber; the slot of the effect that has suspended it, or NULL: it has
   ended. */
void *haft_rust_resume(haft_fiber_t *fiber, const haft_rust_effect_t *effect) {
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, &effect->request);
    return haft_finished(request) ? NULL : *(void **)request.payload;
}

haft_fiber_t *haft_rust_fiber_new(size_t stack_size, void *(*function)(void *), void *argument) {
    return haft_fiber_new_with(&(haft_fiber_options_t){.stack_size = stack_size}, function,
                               argument);
}

int haft_rust_yield(void) {
    return haft_io_yield();
}

haft_io_task_t *haft_rust_self(void) {
    return haft_io_self();
}

/* ---- The end of a thread ---- */

/*
 * Whether the destructors of the thread's thread-local variables have begun to run. They are in one
 * list, of which the last is run first; so behind each entry stands one that notes it. This stands
 * before the C library's function, which std calls for each variable.
 */
typedef int atexit_t(void (*function)(void *), void *argument, void *library);
static __thread bool watched, ends;

static void note_end(void *unused) {
    (void)unused;
    ends = true;
}

__attribute__((visibility("default"))) int __cxa_thread_atexit_impl(void (*function)(void *),
                                                                    void *argument, void *library);
int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *library) {
    atexit_t *next = (atexit_t *)dlsym(RTLD_NEXT, "__cxa_thread_atexit_impl");
    if (next == NULL || next(function, argument, library) != 0)
        return -1;
    watched = next(note_end, NULL, library) == 0;
    return 0;
}

/* To be asked when the thread has a variable with a destructor. */
bool haft_rust_watches_thread(void) {
    return watched;
}

bool haft_rust_thread_ends(void) {
    return ends;
}
