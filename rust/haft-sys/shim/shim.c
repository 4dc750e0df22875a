/* SPDX-License-Identifier: MIT */
/*
 * Parts of the headers that Rust needs and cannot call: functions that are inlined, and effects
 * that are made while the program runs.
 *
 * The payload of an effect of Rust is an object in the performer's frame, whose type C does not
 * know. The handler writes the answer into it, too, so the effect has no result in C. Nothing is
 * ever unwound through the frames of C here: the functions that Rust gives to C catch their panics.
 */
#include <haft/io_binding.h>
#include <haft/language.h>
#ifdef HAFT_RUST_POSIX
#    include <haft/posix.h>
#endif

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

typedef void clause_t(void *state, void *payload);

static void call_clause(haft_function_t *function, void *state, void *payload, void *result) {
    (void)result;
    ((clause_t *)function)(state, payload);
}

/* An effect of Rust; src/hot.rs reads this, too. */
typedef struct haft_rust_effect {
    /* Sets that never change, with this effect alone. */
    haft_handles_t request, request_by_c;
    haft_effect_t effect;
    uint32_t entry; /* of its slot in the cache of a scope: bytes from the scope */
    haft_clause_t as_request, in_place;
    haft_handler_t handler;
} haft_rust_effect_t;

enum { SIZE_FOR_C = 1 };
static const uint32_t SHAPE = HAFTI_SHAPE(SIZE_FOR_C, 0);

/* Makes an effect for the whole process. `unhandled` is called in place where no handler takes the
   effect, `in_place` with the state of a handler that answers it on the performer's stack. NULL: no
   memory. */
haft_rust_effect_t *haft_rust_effect_new(const char *name, clause_t *unhandled,
                                         clause_t *in_place) {
    haft_rust_effect_t *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    static atomic_uint effects;
    const unsigned slot = atomic_fetch_add(&effects, 1) % HAFTI_CACHE_SLOTS;
    haft_effect_t *effect = &made->effect;
    *effect = (haft_effect_t){
        .name = name,
        .where = "Rust",
        .payload_size = SIZE_FOR_C,
        .call = call_clause,
        .unhandled = (haft_function_t *)abort,
        .default_clause = {effect, (haft_function_t *)unhandled, HAFT_CLAUSE_TAIL, SHAPE}};
    made->entry = offsetof(hafti_scope_t, cache) + slot * sizeof(hafti_cache_entry_t);
    made->as_request = (haft_clause_t){effect, NULL, HAFT_CLAUSE_REQUEST, SHAPE};
    made->request = (haft_handles_t){1, 0, HAFTI_SET_UNNUMBERED, &made->as_request};
    made->request_by_c = made->request;
    made->in_place = (haft_clause_t){effect, (haft_function_t *)in_place, HAFT_CLAUSE_TAIL, SHAPE};
    made->handler =
        (haft_handler_t){{1, 0, HAFTI_SET_UNNUMBERED, &made->in_place}, NULL, effect->name};
    return made;
}

/* The scope around the clause of a handler in place. A default runs outside of all handlers but the
   one by which its task waits, because its function may wait, as any function of a task. */
static hafti_scope_t *around_clause(hafti_here_t *here, hafti_scope_t *handler) {
    const hafti_scope_t *defaults = &hafti_thread()->defaults;
    if (HAFTI_LIKELY(handler != defaults))
        return handler->outer;
    hafti_found_t waits = hafti_find(here, HAFT_ID(haft_io_self), hafti_slot_haft_io_self(),
                                     HAFTI_SHAPE_OF(haft_io_self));
    return waits.scope != defaults ? waits.scope : handler->outer;
}

/* Like HAFT_PERFORM, for an effect whose name the compiler does not know. Returns the address of
   the answer, which haft_rust_go_on was given, or NULL: the handler has written it to the slot. */
void *haft_rust_perform(haft_rust_effect_t *made, void *slot) {
    haft_effect_t *effect = &made->effect;
    const size_t entry = made->entry - offsetof(hafti_scope_t, cache);
    hafti_here_t here = hafti_here();
    hafti_found_t found =
        hafti_find(&here, effect, (unsigned)(entry / sizeof(hafti_cache_entry_t)), SHAPE);
    const haft_clause_t *clause = hafti_clause_in_place(found);
    if (clause == NULL)
        return hafti_perform_found(here, found, effect, slot, 0);
    hafti_scope_t *outer = around_clause(&here, found.scope);
    hafti_in_place_t in_place = {here.current, outer, outer->serial};
    hafti_set_current(here, outer);
    call_clause(hafti_clause_function(clause), found.scope->state, slot, NULL);
    hafti_in_place_end(&in_place);
    return NULL;
}

/* Calls `body(argument)` on the caller's stack, with the effect handled in place. */
void haft_rust_handle(const haft_rust_effect_t *effect, void *state, void *(*body)(void *),
                      void *argument) {
    (void)haft_handle(&effect->handler, state, body, argument);
}

/* The handler of an effect of Rust by a general clause whose resumptions may be copied. */
typedef struct haft_rust_copied {
    haft_clause_t clause;
    haft_handler_t handler;
} haft_rust_copied_t;

typedef haft_answer_t general_t(void *state, void *slot, haft_resumption_t k);

/* Makes such a handler for the whole process. NULL: no memory. */
haft_rust_copied_t *haft_rust_copied_new(haft_rust_effect_t *effect, general_t *clause) {
    haft_rust_copied_t *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->clause = (haft_clause_t){&effect->effect, (haft_function_t *)(uintptr_t)clause,
                                   HAFT_CLAUSE_GENERAL, SHAPE};
    made->handler =
        (haft_handler_t){{1, 0, HAFTI_SET_UNNUMBERED, &made->clause}, NULL, effect->effect.name};
    return made;
}

/* Calls `body(argument)`, on a fiber. A computation that is dropped there is given up, and not
   unwound: Rust has promised that nothing needs it. False: no memory for a stack. */
bool haft_rust_copied_handle(const haft_rust_copied_t *made, void *state, void *(*body)(void *),
                             void *argument) {
    const haft_fiber_options_t options = {.no_cleanups = true};
    return haft_handle_with(&options, &made->handler, state, body, argument) != HAFT_NO_ANSWER;
}

/* Resumes a computation that waits in haft_rust_perform, which returns the address of the answer.
   This returns when the computation has ended, or its clause has. */
void haft_rust_go_on(haft_rust_effect_t *made, haft_resumption_t k, void *answer) {
    const haft_reply_t reply = {HAFTI_AWAITING(&made->effect, 0), answer};
    (void)haft_resumption_resume(k, reply);
}

/* A handler in Rust of an effect that C has declared. */
typedef struct haft_rust_shared {
    haft_clause_t in_place;
    haft_handler_t handler;
} haft_rust_shared_t;

/* Makes such a handler for the whole process. The clause has the effect's own type, and is called
   in place. NULL: the sizes are not those of the effect, or there is no memory. */
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

/* Like haft_rust_handle. */
void haft_rust_shared_handle(const haft_rust_shared_t *effect, void *state, void *(*body)(void *),
                             void *argument) {
    (void)haft_handle(&effect->handler, state, body, argument);
}

/* Starts or resumes a fiber. Under `request` the fiber may be suspended and resumed by src/hot. */
haft_request_t haft_rust_resume(haft_fiber_t *fiber, const haft_rust_effect_t *effect) {
    bool is_ordinary =
        fiber->context.gate != HAFTI_GATE_SLOW && (fiber->resumer.room & HAFTI_ROOM_LOOK) == 0;
    return haft_resume(fiber, HAFT_NO_REPLY,
                       is_ordinary ? &effect->request : &effect->request_by_c);
}

haft_fiber_t *haft_rust_fiber_new(size_t stack_size, void *(*function)(void *), void *argument) {
    return haft_fiber_new_with(&(haft_fiber_options_t){.stack_size = stack_size}, function,
                               argument);
}

haft_io_task_t *haft_rust_self(void) {
    return haft_io_self();
}

/* ---- Records of the system ---- */

typedef struct haft_rust_status {
    uint64_t size;
    int64_t modified;
    uint32_t modified_nanoseconds, mode;
} haft_rust_status_t;

/* Like haft_io_stat, but stores only the fields that Rust reads. */
int haft_rust_stat(const char *path, haft_rust_status_t *status) {
    struct stat found;
    const int code = haft_io_stat(path, &found);
    if (code == 0)
        *status = (haft_rust_status_t){(uint64_t)found.st_size, found.st_mtim.tv_sec,
                                       (uint32_t)found.st_mtim.tv_nsec, found.st_mode};
    return code;
}

/* Like haft_io_list_directory; haft_rust_entries_free frees the list. */
int haft_rust_list(const char *path, void **entries) {
    struct dirent **list = NULL;
    const int count = haft_io_list_directory(path, &list);
    *entries = list;
    return count;
}

const char *haft_rust_entry_name(void *entries, size_t index) {
    return ((struct dirent **)entries)[index]->d_name;
}

void haft_rust_entries_free(void *entries, size_t count) {
    struct dirent **list = entries;
    for (size_t i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

static bool fill(sigset_t *set, const int *signals, size_t count) {
    sigemptyset(set);
    for (size_t i = 0; i < count; i++)
        if (sigaddset(set, signals[i]) != 0)
            return false;
    return true;
}

/* Blocks the signals for the calling thread and those that it starts. */
int haft_rust_signals_block(const int *signals, size_t count) {
    sigset_t set;
    return fill(&set, signals, count) ? -pthread_sigmask(SIG_BLOCK, &set, NULL) : -EINVAL;
}

int haft_rust_signal_wait(const int *signals, size_t count) {
    sigset_t set;
    return fill(&set, signals, count) ? haft_io_signal_wait(&set) : -EINVAL;
}

/* ---- Standard output ---- */

#ifdef HAFT_RUST_POSIX
/* std writes to these under locks that let in the thread which holds them, and so any of its tasks:
   std can only panic then. */
__attribute__((constructor)) static void block_standard_output(void) {
    haft_posix_block_writes(STDOUT_FILENO);
    haft_posix_block_writes(STDERR_FILENO);
}
#endif

/* ---- The end of a thread ---- */

/*
 * Notes when the destructors of the thread's thread-local variables begin to run. They are in one
 * list, which is run from its end; so behind each entry another one is added, which notes the
 * begin. The function below stands before the C library's, which std calls for each variable.
 */
typedef int atexit_t(void (*function)(void *), void *argument, void *library);
static __thread bool watched, ends_now;
static __thread void (*to_be_told)(void); /* a function of Rust */

/* Gives new serials to the scopes around the running code, so that its next resumes go through
   C. */
static void note_end(void *unused) {
    (void)unused;
    ends_now = true;
    if (to_be_told == NULL)
        return;
    hafti_in_place_moved(hafti_thread()->current, NULL);
    to_be_told();
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

/* Lets the function be called, once or more, when the destructors begin. False: this C library does
   not allow it. To be called when the thread has a variable with a destructor. */
bool haft_rust_watch_thread(void (*ends)(void)) {
    to_be_told = ends;
    if (ends_now)
        ends();
    return watched;
}
