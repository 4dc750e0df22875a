/* SPDX-License-Identifier: MIT */
/*
 * Thread pointers: for a scheduler that gives fibers thread-local storage of their own, by writing
 * the thread pointer before it resumes one, and again when it is suspended. The storage holds a
 * state of this library, too: the code under that thread pointer has serials and C++ exceptions of
 * its own, and the roots of handlers, the stacks and the alternate signal stack of the thread on
 * which it runs.
 *
 *     haft_thread_pointer_join(pointer, &serials);          when the storage has been made
 *     haft_thread_pointer_carry(own, pointer);              write the thread pointer
 *     request = haft_resume(fiber, ...);                    under `pointer`
 *     haft_thread_pointer_carry(pointer, own);              write the thread's own
 *     haft_thread_pointer_leave(pointer, &serials);         before the storage is freed
 *
 * The handlers around the code are the same before and after each write.
 */
#ifndef HAFT_THREAD_POINTERS_H
#define HAFT_THREAD_POINTERS_H

#include "../haft.h"

/*
 * Lets fibers run under `pointer` on the calling thread, which is under its own. Before they run
 * under it on another thread, that thread calls this again, with NULL for `serials`. `*serials` is
 * 0, or what haft_thread_pointer_leave has stored for storage that is no longer used: numbers are
 * few. False: the thread runs on a segmented fiber, which cannot be left so.
 */
HAFTI_API bool haft_thread_pointer_join(char *pointer, const uint64_t *serials);
/* To be called under `pointer`, on the first fiber, before any code that may throw. */
HAFTI_API void haft_thread_pointer_begin(void);
/* To be called under another pointer, when no fiber will run under `pointer` again. */
HAFTI_API void haft_thread_pointer_leave(char *pointer, uint64_t *serials);

/* Where the thread's state lies from its thread pointer. */
HAFTI_INLINE intptr_t hafti_thread_distance(void) {
#if defined(__x86_64__)
    intptr_t distance;
    __asm__("movq hafti_thread_state@gottpoff(%%rip), %0" : "=r"(distance));
    return distance;
#else
    char *pointer;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(pointer));
    return (char *)hafti_thread() - pointer;
#endif
}

/* The code goes on under `to` instead of `from`, with the same handlers around it. */
HAFTI_INLINE void haft_thread_pointer_carry(const char *from, char *to) {
    intptr_t distance = hafti_thread_distance();
    ((hafti_thread_t *)(void *)(to + distance))->current =
        ((const hafti_thread_t *)(const void *)(from + distance))->current;
}

#endif
