/* SPDX-License-Identifier: MIT */
/* Reports of fibers to sanitizers and Valgrind. All are no-ops while no such tool is there. */
#ifndef HAFT_TOOLS_H
#define HAFT_TOOLS_H

#include "ground.h"

#ifndef HAFT_FREESTANDING

extern bool haft_tools_active;
void haft_tools_detect(void);
/* Whether a tool wants to know of every stack: segmented fibers then get ordinary ones. */
bool haft_tools_know_stacks(void);
/* Whether a tool reads, at the end, all memory that it believes to be there. */
bool haft_tools_reads_all(void);
/* False: no memory for the sanitizer's records. */
bool haft_tools_born(haft_fiber_t *fiber);
/* Reports that; returns NULL, with errno. */
haft_fiber_t *haft_tools_exhausted(void);
void haft_tools_gone(haft_fiber_t *fiber);
/* Called on every thread that uses libhaft. */
void haft_tools_thread_start(void);
void haft_tools_thread_exit(void);
/* Called around every out-of-line switch across `fiber`'s border. */
void haft_tools_before(haft_fiber_t *fiber, enum haft_crossing crossing);
void haft_tools_after(haft_fiber_t *fiber, enum haft_crossing crossing);
/* The stack, memory of the caller, is empty, except for the payload that a throw has left on it. */
void haft_tools_ended(haft_fiber_t *fiber);
/* The fiber's stack is empty and will be used again. */
void haft_tools_reset(haft_fiber_t *fiber);
/* The code that had resumed the fiber will not run again, nor be unwound. */
void haft_tools_abandon(haft_fiber_t *fiber);
/* Frames of the current stack are about to be left without returning. */
void haft_tools_unwinding(void);
/* Why the fiber's stack cannot be copied; NULL: it can. */
const char *haft_tools_hold(const haft_fiber_t *fiber);
/* Whether a tool is told of what is written to stacks from elsewhere: copies, and the following. */
extern bool haft_tools_told_of_copies;
void haft_tools_written(void *low, size_t size);
/* Memory of an empty stack is about to be written from elsewhere. */
HAFTI_INLINE void haft_tools_reserved(void *low, size_t size) {
    if (HAFTI_UNLIKELY(haft_tools_told_of_copies))
        haft_tools_written(low, size);
}
size_t haft_tools_shadow_size(size_t size);
void haft_tools_copy_out(char *to, char *from, size_t size);
void haft_tools_copy_in(char *to, const char *from, size_t size);
/* A copy of a part of a stack is followed by so many bytes of a tool's. */
HAFTI_INLINE size_t haft_shadow_size(size_t size) {
    return HAFTI_UNLIKELY(haft_tools_told_of_copies) ? haft_tools_shadow_size(size) : 0;
}
HAFTI_INLINE void haft_copy_out(char *to, char *from, size_t size) {
    if (HAFTI_UNLIKELY(haft_tools_told_of_copies))
        haft_tools_copy_out(to, from, size);
    else
        __builtin_memcpy(to, from, size);
}
HAFTI_INLINE void haft_copy_in(char *to, const char *from, size_t size) {
    if (HAFTI_UNLIKELY(haft_tools_told_of_copies))
        haft_tools_copy_in(to, from, size);
    else
        __builtin_memcpy(to, from, size);
}
/* A copy has been put on the fiber: the code inside stopped on the stack of `innermost`, and that
   of `resumer`, unless it is NULL, waits outside. False: no memory. */
bool haft_tools_stand(haft_fiber_t *fiber, const haft_fiber_t *innermost,
                      const haft_fiber_t *resumer);
void haft_tools_stack(haft_fiber_t *fiber, char *low, char *high);

#endif

#endif
