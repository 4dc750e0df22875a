/* SPDX-License-Identifier: MIT */
/*
 * Unwinding by force, by the unwinder of the platform; and what the runtime of C++ knows of it.
 */
#include "forced.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/*
 * The class of an unwinding: a name, and what has no other room in its record. `before` exceptions
 * were in flight when it began, and `counted` are in flight with it, as of the frame that it has
 * come to last: libstdc++ counts it once more for each catch-all that rethrows it.
 *
 * While a catch-all has it, other unwindings may come to frames of the block: `left` counts them,
 * and each `leaves` the block, unless it lands inside. (`by_itself`: one of them has the same
 * record.) Then what counts for the first counts for the other: the catch-all that catches the
 * other next may be in the same frame, and nothing is called in between.
 *
 * A record may serve another stack while a catch-all has it. When the unwinding there is `over`,
 * the class no longer describes this stack.
 */
typedef struct unwinding_class {
    char name[4];
    uint8_t before;
    uint8_t left : 5, by_itself : 1, leaves : 1, over : 1;
    uint16_t counted;
} unwinding_class_t;
_Static_assert(sizeof(unwinding_class_t) == sizeof(_Unwind_Exception_Class),
               "the unwinder's record has room for it");
static const char name[sizeof((unwinding_class_t *)0)->name] = {'H', 'A', 'F', 'T'};

static unwinding_class_t class_of(const struct _Unwind_Exception *unwinding) {
    unwinding_class_t class;
    memcpy(&class, &unwinding->exception_class, sizeof class);
    return class;
}
static void set_class(struct _Unwind_Exception *unwinding, unwinding_class_t class) {
    memcpy(&unwinding->exception_class, &class, sizeof class);
}

/* ---- What the runtime of C++ knows of it ---- */

typedef void terminate_t(void);
extern terminate_t *cxx_set_terminate(terminate_t *handler) __asm__("_ZSt13set_terminatePFvvE")
    __attribute__((weak));
static terminate_t *terminate_before;

/* The unwinding of ours that C++ has caught on this thread, or NULL. Its record of an exception
   ends in the unwinder's, which comes after 80 bytes in libstdc++ and 96 in libc++abi. */
static struct _Unwind_Exception *unwinding_caught(void) {
    char *caught = hafti_thread()->globals->caught;
    for (size_t before = 80; caught != NULL && before <= 96; before += 16)
        if (memcmp(caught + before, name, sizeof name) == 0)
            return (struct _Unwind_Exception *)(void *)(caught + before);
    return NULL;
}

/* Whether an unwinding has started on this thread and has not landed. Code that gcc makes
   terminates in the middle of it, and has caught nothing. */
static __thread __attribute__((tls_model("initial-exec"))) bool on_its_way;

/* The exceptions of C++ on this thread; NULL: there is no C++. */
static hafti_exceptions_t *exceptions_here(void) {
    hafti_exceptions_t *exceptions = hafti_thread()->globals;
    return exceptions == &haft_no_exceptions ? NULL : exceptions;
}

/* Called for each frame, because `caught` may have been put aside when this unwinding began. */
static void note_left(struct _Unwind_Exception *unwinding, struct _Unwind_Exception *caught) {
    unwinding_class_t class = class_of(unwinding);
    bool is_new = caught != NULL && !class.leaves;
    class.leaves = caught != NULL;
    set_class(unwinding, class);
    if (is_new) {
        class = class_of(caught);
        class.left++;
        class.by_itself |= caught == unwinding;
        set_class(caught, class);
    }
}

void haft_unwinding_goes_on(struct _Unwind_Exception *unwinding) {
    const hafti_exceptions_t *exceptions = exceptions_here();
    on_its_way = true;
    note_left(unwinding, unwinding_caught());
    unwinding_class_t class = class_of(unwinding);
    class.counted = exceptions != NULL ? (uint16_t)exceptions->uncaught : 0;
    set_class(unwinding, class);
}
void haft_unwinding_landed(struct _Unwind_Exception *unwinding) {
    struct _Unwind_Exception *caught = unwinding_caught();
    unwinding_class_t class = class_of(unwinding);
    bool leaves = class.leaves;
    on_its_way = false;
    class.over = true;
    set_class(unwinding, class);
    if (caught != NULL && leaves) {
        class = class_of(caught);
        class.left--;
        set_class(caught, class);
    }
}

haft_let_go_t haft_unwinding_let_go(struct _Unwind_Exception *unwinding) {
    unwinding_class_t class = class_of(unwinding);
    hafti_exceptions_t *exceptions = exceptions_here();
    if (class.left != 0) {
        bool by_itself = class.by_itself;
        class.left = class.by_itself = 0;
        class.over = true;
        set_class(unwinding, class);
        return by_itself ? HAFT_BEGUN_AGAIN : HAFT_REPLACED;
    }
    if (exceptions == NULL)
        return HAFT_SWALLOWED;
    class.over = true;
    set_class(unwinding, class);
    exceptions->caught = NULL; /* libc++abi does so when this has returned, which it may not */
    exceptions->uncaught -= (unsigned)(class.counted - class.before);
    on_its_way = exceptions->uncaught == 0;
    return on_its_way ? HAFT_SWALLOWED : HAFT_REPLACED;
}

static bool unwinding_here(void) {
    const hafti_exceptions_t *now = hafti_thread()->globals;
    return on_its_way && now->caught == NULL && now->uncaught != 0;
}

/* A function that is noexcept ends the program when it is to be unwound. */
static void terminated(void) {
    if (unwinding_caught() != NULL || unwinding_here()) {
        const haft_fiber_t *fiber = haft_fiber_here();
        haft_fail(HAFT_ERROR_UNWINDING_STOPPED, NULL, fiber,
                  "%s was being unwound when the program was terminated: a function on it is "
                  "noexcept, which nothing can leave. Let it perform only what is always "
                  "resumed. %s",
                  haft_fiber_label(fiber), haft_advice_of(fiber, ""));
    }
    terminate_before();
    abort();
}

static void watch_terminate(void) {
    if (cxx_set_terminate)
        terminate_before = cxx_set_terminate(terminated);
}

/* Returns how many exceptions were in flight before, without the unwinding that is left, if any. */
static unsigned unwinding_starts(const struct _Unwind_Exception *left) {
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    hafti_exceptions_t *exceptions = exceptions_here();
    if (exceptions == NULL)
        return 0;
    pthread_once(&watched, watch_terminate);
    unsigned before = exceptions->uncaught++;
    if (left == NULL)
        return before;
    unwinding_class_t class = class_of(left);
    return class.over ? 0 : before - (unsigned)(class.counted - class.before);
}

void haft_force_unwinding(void *record, _Unwind_Exception_Cleanup_Fn let_go, _Unwind_Stop_Fn stop,
                          void *argument) {
    struct _Unwind_Exception *unwinding = record;
    unwinding_class_t class = {.before = (uint8_t)unwinding_starts(unwinding_caught())};
    memcpy(class.name, name, sizeof name);
    memset(unwinding, 0, sizeof *unwinding);
    set_class(unwinding, class);
    unwinding->exception_cleanup = let_go;
    haft_tools_unwinding();
    _Unwind_ForcedUnwind(unwinding, stop, argument);
}
