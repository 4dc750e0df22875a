/* SPDX-License-Identifier: MIT */
/* Thread-local storage of a fiber's own: see haft/thread_pointers.h. The state there is never
   started as a thread's is, nor does it exit as one: it has a home. */
#include "whole.h"

#include "haft/thread_pointers.h"

extern hafti_exceptions_t *__cxa_get_globals(void) __attribute__((weak));

static hafti_thread_t *state_in(char *pointer) {
    return (hafti_thread_t *)(void *)(pointer + hafti_thread_distance());
}

bool haft_thread_pointer_join(char *pointer, const uint64_t *serials) {
    hafti_thread_t *home = haft_thread_ready(), *thread = state_in(pointer);
    if (home->segmented != NULL)
        return false;
    thread->home = home;
    thread->known = home->known;
    thread->signal_low = home->signal_low;
    thread->signal_size = home->signal_size;
    thread->language = home->language;
    if (serials != NULL && (thread->stamp = *serials) == 0)
        haft_stamp_block(thread);
    return true;
}

void haft_thread_pointer_begin(void) {
    hafti_thread_t *thread = hafti_thread();
    thread->globals = __cxa_get_globals ? __cxa_get_globals() : &haft_no_exceptions;
    haft_exceptions_at_rest(thread);
}

void haft_thread_pointer_leave(char *pointer, uint64_t *serials) {
    hafti_thread_t *thread = state_in(pointer);
    haft_foreign_stack_free(thread);
    *serials = thread->stamp;
}
