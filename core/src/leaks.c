/* SPDX-License-Identifier: MIT */
/*
 * LeakSanitizer: memory to which only fibers refer is not a leak.
 *
 * It looks for pointers in the stack of every thread that it knows, and in its globals. Stacks that
 * are not running are shown to it before it looks, at the end of the process: its own look is
 * registered earlier, and so comes later.
 */
#define _GNU_SOURCE
#include "whole.h"

#include <pthread.h>
#include <stdlib.h>

extern void __lsan_register_root_region(const void *start, size_t size) __attribute__((weak));

static void show_fiber(haft_fiber_t *fiber, void *unused) {
    (void)unused;
    const char *sp = fiber->context.sp;
    const char *from = haft_fiber_state(fiber) == HAFT_FIBER_RUNNING ? fiber->low : sp;
    if (haft_fiber_state(fiber) == HAFT_FIBER_FINISHED || from < fiber->low || from > fiber->high)
        from = (const char *)fiber;
    __lsan_register_root_region(from, (size_t)((const char *)(fiber + 1) - from));
}

/* A thread that ends the process on a fiber has frames on its own stack. */
static void show_own_stack(void) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    const haft_fiber_t *outermost = NULL;
    for (haft_fiber_t *fiber = haft_fiber_here(); fiber != NULL; fiber = haft_resumer_of(fiber))
        outermost = fiber;
    if (outermost == NULL || pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    const char *sp = outermost->resumer.sp;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0 && sp > (const char *)low &&
        sp < (const char *)low + size)
        __lsan_register_root_region(sp, (size_t)((const char *)low + size - sp));
    pthread_attr_destroy(&attributes);
}

static void show_at_exit(void) {
    haft_pool_each(show_fiber, NULL);
    show_own_stack();
}

void haft_leaks_watch(void) {
    if (__lsan_register_root_region)
        (void)atexit(show_at_exit);
}
