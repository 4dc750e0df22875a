/* SPDX-License-Identifier: MIT */
/*
 * Segmented fibers among the others: what a switch has to do where code on segments is left or
 * reached. (segments.c has the segments themselves.)
 *
 * Invariants
 * - While code runs on a segmented fiber, `thread->segmented` is that fiber and
 * `thread->exceptions` are not those of C++ but something that is never empty: no inlined hot path,
 * which knows nothing of limit words, ever switches away from there. Everything else runs with the
 * limit word 0. Hence only whoever leaves code on a segmented fiber has anything to save, and
 * restores it on coming back.
 * - Functions that do not check their stack (HAFT_FOREIGN, and this library where it needs much)
 * run on the foreign stack, of which every thread that has run a segmented fiber has one. Where its
 * free part begins changes only when such a function resumes a fiber: that fiber's own calls begin
 * below.
 *
 *     high | f called by fiber A | haft_resume(B) | g called by fiber B | ...free... | guard | low
 *                                                 ^ haft_thread_stack_pointer while B runs
 *
 * - A suspended fiber leaves nothing on the foreign stack: what would is an error.
 */
#include "stacks.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

bool haft_foreign_calls_seen;

enum { FOREIGN_STACK = 9 * 1024 * 1024, GUARD = 1024 * 1024 };

static bool on_foreign_stack(const haft_thread_t *thread, const void *address) {
    return thread->foreign_stack != NULL &&
           (uintptr_t)address - (uintptr_t)thread->foreign_stack < FOREIGN_STACK;
}

const char *haft_segments_fault(const void *address) {
    const haft_thread_t *thread = haft_thread();
    if (thread->segmented == NULL)
        return NULL;
    if (on_foreign_stack(thread, address))
        return "a function called through HAFT_FOREIGN has overflowed the stack that the thread "
               "has "
               "for those";
#ifdef HAFT_SEGMENTS
    if (haft_segments_limit() != 0 && !haft_segment_intact(haft_segments_limit()))
        return HAFT_SEGMENT_OVERFLOW;
#endif
    return NULL;
}

void haft_foreign_stack_free(haft_thread_t *thread) {
    if (thread->foreign_stack != NULL)
        munmap(thread->foreign_stack, FOREIGN_STACK);
    thread->foreign_stack = NULL;
}

void haft_abandon_foreign_call(haft_thread_t *thread, const haft_fiber_t *fiber) {
#ifdef HAFT_SEGMENTS
    haft_footing_t *call = thread->foreign_calls;
    if (call == NULL || !on_foreign_stack(thread, fiber->resumer.sp))
        return;
    haft_thread_stack_pointer = call->foreign_stack;
    thread->foreign_calls = call->outer;
#else
    (void)thread, (void)fiber;
#endif
}

void haft_check_foreign_calls(const haft_fiber_t *target, const haft_effect_t *effect) {
    const haft_thread_t *thread = haft_thread();
    const haft_fiber_t *fiber = haft_fiber_here();
    bool foreign = thread->segmented != NULL && haft_segments_limit() == 0;
    for (; !foreign && fiber != NULL && fiber != target; fiber = haft_resumer_of(fiber))
        foreign = on_foreign_stack(thread, fiber->resumer.sp);
    if (foreign)
        haft_fail(HAFT_ERROR_NOT_AROUND, effect, target,
                  "The effect '%s' cannot suspend %s: a segmented fiber inside it is in a function "
                  "called through HAFT_FOREIGN, which runs on a stack of the thread.",
                  effect->name, haft_fiber_label(target));
}

bool haft_on_this_fiber(const void *sp) {
#ifdef HAFT_SEGMENTS
    const haft_fiber_t *segmented = haft_thread()->segmented;
    void *low, *high;
    if (segmented != NULL)
        return haft_segments_find(&(haft_segments_t){segmented->segments}, sp, &low, &high);
#endif
    return haft_fiber_here() == haft_fiber_at(sp);
}

bool haft_unwound_to(uintptr_t frame, const void *sp) {
    uintptr_t limit = UINTPTR_MAX;
#ifdef HAFT_SEGMENTS
    const haft_fiber_t *segmented = haft_thread()->segmented;
    void *low, *high;
    if (segmented != NULL &&
        haft_segments_find(&(haft_segments_t){segmented->segments}, sp, &low, &high))
        limit = (uintptr_t)high;
#endif
    return frame >= (uintptr_t)sp && frame <= limit;
}

#ifdef HAFT_SEGMENTS

void haft_foreign_stack_make(haft_thread_t *thread) {
    if (thread->foreign_stack != NULL)
        return;
    char *low = mmap(NULL, FOREIGN_STACK, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (low == MAP_FAILED || mprotect(low, GUARD, PROT_NONE) != 0)
        haft_fail(HAFT_ERROR_NO_MEMORY, NULL, NULL,
                  "No memory for the stack on which segmented fibers call functions that do not "
                  "check theirs: %s.",
                  strerror(errno));
    thread->foreign_stack = low;
    haft_thread_stack_pointer = low + FOREIGN_STACK;
}

void haft_segmented_init(haft_fiber_t *fiber) {
    haft_segments_t segments;
    haft_segments_init(&segments, fiber->low, fiber->high);
    fiber->segments = segments.limit;
}

void haft_segmented_reset(haft_fiber_t *fiber) {
    haft_segments_reset(&(haft_segments_t){fiber->segments});
}

void haft_segmented_release(haft_fiber_t *fiber) {
    haft_segments_release(&(haft_segments_t){fiber->segments});
}

static void stand_on(haft_thread_t *thread, haft_fiber_t *fiber) {
    haft_foreign_stack_make(thread);
    thread->segmented = fiber;
    thread->exceptions = &haft_always_pending;
}

void haft_enter_segments(haft_fiber_t *fiber) {
    stand_on(haft_thread(), fiber);
    haft_segments_set_limit(fiber->segments);
}

void haft_footing_end(haft_thread_t *thread) {
    haft_segments_set_limit(0);
    thread->segmented = NULL;
    haft_exceptions_at_rest(thread);
}

void haft_footing_leave(haft_thread_t *thread, haft_footing_t *footing) {
    footing->limit = haft_segments_limit();
    if (footing->limit == 0) {
        footing->foreign_stack = haft_thread_stack_pointer;
        footing->outer = thread->foreign_calls;
        thread->foreign_calls = footing;
        /* The caller's frame lies above this one. */
        haft_thread_stack_pointer = __builtin_frame_address(0);
    } else {
        haft_segments_check(footing->limit);
    }
    haft_footing_end(thread);
}

void haft_footing_return(const haft_footing_t *footing) {
    haft_thread_t *thread = haft_thread();
    stand_on(thread, footing->fiber);
    if (footing->limit == 0) {
        haft_thread_stack_pointer = footing->foreign_stack;
        thread->foreign_calls = footing->outer;
    }
    haft_segments_set_limit(footing->limit);
}

bool haft_resumes_from_foreign_call(haft_fiber_t *fiber) {
    if (haft_segments_limit() != 0)
        return false;
    haft_foreign_calls_seen = true;
    bool news = !fiber->scope.slow;
    fiber->scope.slow = 1;
    return news;
}

void haft_segments_failed(const char *message) {
    haft_fail(HAFT_ERROR_STACK_OVERFLOW, NULL, haft_thread()->segmented, "%s: %s",
              haft_fiber_label(haft_thread()->segmented), message);
}

#else

void haft_foreign_stack_make(haft_thread_t *thread) {
    (void)thread;
}
void haft_segmented_init(haft_fiber_t *fiber) {
    (void)fiber;
}
void haft_segmented_reset(haft_fiber_t *fiber) {
    (void)fiber;
}
void haft_segmented_release(haft_fiber_t *fiber) {
    (void)fiber;
}
void haft_enter_segments(haft_fiber_t *fiber) {
    (void)fiber;
}
void haft_footing_leave(haft_thread_t *thread, haft_footing_t *footing) {
    (void)thread, (void)footing;
}
void haft_footing_end(haft_thread_t *thread) {
    (void)thread;
}
void haft_footing_return(const haft_footing_t *footing) {
    (void)footing;
}
bool haft_resumes_from_foreign_call(haft_fiber_t *fiber) {
    return (void)fiber, false;
}

#endif
