/* SPDX-License-Identifier: MIT */
/*
 * Unwinding by force, by the unwinder of the platform; and what the runtime of C++ knows of it.
 */
#include "forced.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The last byte of the class is for an unwinding that a catch-all has caught. It shows whether
   another unwinding has begun since, one that leaves the block, which lets go of the first. */
enum { CLASS_SIZE = 8, LAST = CLASS_SIZE - 1 };
static const char unwinding_class[CLASS_SIZE] = {'H', 'A', 'F', 'T', 'U', 'N', 'W', 'D'};
static const char class_of_left = 'L';

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
        if (memcmp(caught + before, unwinding_class, LAST) == 0)
            return (struct _Unwind_Exception *)(void *)(caught + before);
    return NULL;
}

static void stop_counting(void) {
    hafti_thread_t *thread = hafti_thread();
    if (thread->globals != &haft_no_exceptions)
        thread->globals->uncaught--;
}

bool haft_unwinding_was_left(struct _Unwind_Exception *exception) {
    char *last = (char *)&exception->exception_class + LAST;
    stop_counting();
    if (*last != class_of_left)
        return false;
    *last = unwinding_class[LAST];
    return true;
}

/* Whether an unwinding has started on this thread and has not landed. Code that gcc makes
   terminates in the middle of it, and has caught nothing. */
static __thread __attribute__((tls_model("initial-exec"))) bool on_its_way;

void haft_unwinding_goes_on(bool goes_on) {
    on_its_way = goes_on;
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

/* std::uncaught_exceptions() is to see it, so that guards that commit or roll back at the end of a
   scope roll back. */
static void unwinding_starts(void) {
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    hafti_thread_t *thread = hafti_thread();
    if (thread->globals == &haft_no_exceptions)
        return;
    thread->globals->uncaught++;
    pthread_once(&watched, watch_terminate);
}

void haft_force_unwinding(void *record, _Unwind_Exception_Cleanup_Fn swallowed,
                          _Unwind_Stop_Fn stop, void *argument) {
    struct _Unwind_Exception *exception = record;
    struct _Unwind_Exception *left = unwinding_caught(); /* perhaps the same record */
    memset(exception, 0, sizeof *exception);
    memcpy(&exception->exception_class, unwinding_class, sizeof exception->exception_class);
    exception->exception_cleanup = swallowed;
    if (left != NULL)
        ((char *)&left->exception_class)[LAST] = class_of_left;
    haft_tools_unwinding();
    unwinding_starts();
    _Unwind_ForcedUnwind(exception, stop, argument);
}
