/* SPDX-License-Identifier: MIT */
/* The pool: stacks of reserved addresses. */
#ifndef HAFT_POOL_H
#define HAFT_POOL_H

#include "ground.h"

#ifndef HAFT_FREESTANDING

haft_fiber_t *haft_pool_take_slow(hafti_thread_t *thread, size_t size);
void haft_pool_give_slow(hafti_thread_t *thread, haft_fiber_t *fiber);
haft_fiber_t *haft_pool_take_segmented(hafti_thread_t *thread);
/* A stack that shares its page; an ordinary one if `size` is too large for that. 0: the usual. */
haft_fiber_t *haft_pool_take_dense(hafti_thread_t *thread, size_t size);
/* Reports that there was no stack to take; NULL. */
haft_fiber_t *haft_pool_exhausted(size_t size);
enum { HAFT_THREAD_KEEPS = 64 };
/* A thread keeps free stacks of the default size for itself. */
extern size_t haft_default_size; /* what haft_stack_size returns */
typedef struct haft_batch {
    haft_fiber_t *fibers[HAFT_THREAD_KEEPS];
    struct haft_batch *older, *newer;
} haft_batch_t;
/* A stack that the thread keeps; NULL if it has none of this size. */
HAFTI_INLINE haft_fiber_t *haft_pool_take_kept(hafti_thread_t *thread, size_t size) {
    uint32_t count = thread->idle_count;
    if (HAFTI_UNLIKELY(count == 0 || thread->idle_size != size))
        return NULL;
    thread->idle_count = count - 1;
    return thread->idle->fibers[count - 1];
}
HAFTI_INLINE haft_fiber_t *haft_pool_take(hafti_thread_t *thread, size_t size) {
    haft_fiber_t *fiber = haft_pool_take_kept(thread, size);
    return HAFTI_LIKELY(fiber != NULL) ? fiber : haft_pool_take_slow(thread, size);
}
/* `uses` counts down to the next look at how deep the stack has been. */
HAFTI_INLINE void haft_pool_give(hafti_thread_t *thread, haft_fiber_t *fiber) {
    uint32_t count = thread->idle_count;
    if (HAFTI_UNLIKELY((--fiber->uses & 0xffff) == 0 || fiber->pool != thread->pool ||
                       count == HAFT_THREAD_KEEPS)) {
        haft_pool_give_slow(thread, fiber);
        return;
    }
    thread->idle->fibers[count] = fiber;
    thread->idle_count = count + 1;
}
void haft_pool_thread_exit(hafti_thread_t *thread);
/* The fiber in whose memory `address` lies, guard included; NULL if none. Safe in signal handlers.
 */
haft_fiber_t *haft_pool_fiber_at(const void *address);
void haft_pool_each(void (*visit)(haft_fiber_t *fiber, void *argument), void *argument);
size_t haft_pool_reserved(const haft_fiber_t *fiber);
size_t haft_pool_resident(const haft_fiber_t *fiber);
/* A child of fork must not find a lock held by a thread that it does not have. */
void haft_pool_before_fork(void);
void haft_pool_after_fork(void);
/* The size that stands for the first segments of segmented fibers, headers included. */
#    define HAFT_SEGMENTED_SIZE ((size_t)1200)

#endif

#endif
