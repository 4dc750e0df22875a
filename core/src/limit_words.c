/* SPDX-License-Identifier: MIT */
/*
 * Work of a switch that leaves or reaches code on a segmented fiber. (segments.c has the segments
 * themselves.)
 *
 * Invariants
 * - While code runs on a segmented fiber, `thread->segmented` is that fiber and
 *   `thread->exceptions` points to something that is never empty, and not to the exceptions of C++:
 *   so no inlined hot path, which knows nothing of limit words, switches away from the fiber. All
 *   other code runs with the limit word 0. Hence only a switch away from code on a segmented fiber
 *   saves anything, and the switch back restores it.
 * - Functions that do not check their stack (HAFT_FOREIGN, and functions of this library that need
 *   much stack) run on the foreign stack; every thread that has run a segmented fiber has one. The
 *   beginning of its free part moves only when such a function resumes a fiber: the calls of that
 *   fiber begin below.
 *
 *     high | f called by fiber A | haft_resume(B) | g called by fiber B | ...free... | guard | low
 *                                                 ^ hafti_thread_stack_pointer while B runs
 *
 * - A suspended fiber leaves nothing on the foreign stack: a suspension that would is an error.
 */
#include "stacks.h"

#include <errno.h>
#include <sys/mman.h>

bool haft_foreign_calls_seen;

enum { FOREIGN_STACK = 9 * 1024 * 1024, GUARD = 1024 * 1024 };

static bool on_foreign_stack(const hafti_thread_t *thread, const void *address) {
    return thread->foreign_stack != NULL &&
           (uintptr_t)address - (uintptr_t)thread->foreign_stack < FOREIGN_STACK;
}

const char *haft_segments_fault(const void *address) {
    const hafti_thread_t *thread = hafti_thread();
    if (thread->segmented == NULL)
        return NULL;
    if (on_foreign_stack(thread, address))
        return "a function called through HAFT_FOREIGN has overflowed the stack that the thread "
               "has "
               "for those";
#ifdef HAFTI_SEGMENTS
    if (hafti_segments_limit() != 0 && !hafti_segment_intact(hafti_segments_limit()))
        return HAFTI_SEGMENT_OVERFLOW;
#endif
    return NULL;
}

void haft_foreign_stack_free(hafti_thread_t *thread) {
    if (thread->foreign_stack != NULL)
        munmap(thread->foreign_stack, FOREIGN_STACK);
    thread->foreign_stack = NULL;
}

void haft_abandon_foreign_call(hafti_thread_t *thread, const haft_fiber_t *fiber) {
#ifdef HAFTI_SEGMENTS
    haft_footing_t *call = thread->foreign_calls;
    if (call == NULL || !on_foreign_stack(thread, fiber->resumer.sp))
        return;
    hafti_thread_stack_pointer = call->foreign_stack;
    thread->foreign_calls = call->outer;
#else
    (void)thread, (void)fiber;
#endif
}

void haft_check_foreign_calls(const haft_fiber_t *target, const haft_effect_t *effect) {
    const hafti_thread_t *thread = hafti_thread();
    const haft_fiber_t *fiber = haft_fiber_here();
    bool foreign = thread->segmented != NULL && hafti_segments_limit() == 0;
    for (; !foreign && fiber != NULL && fiber != target; fiber = haft_resumer_of(fiber))
        foreign = on_foreign_stack(thread, fiber->resumer.sp);
    if (foreign)
        haft_fail(HAFT_ERROR_NOT_AROUND, effect, target,
                  "The effect '%s' cannot suspend %s: a segmented fiber inside it is in a function "
                  "called through HAFT_FOREIGN, which runs on a stack of the thread.",
                  effect->name, haft_fiber_label(target));
}

bool haft_on_this_fiber(const void *sp) {
#ifdef HAFTI_SEGMENTS
    const haft_fiber_t *segmented = hafti_thread()->segmented;
    void *low, *high;
    if (segmented != NULL)
        return hafti_segments_find(&(hafti_segments_t){segmented->segments}, sp, &low, &high);
#endif
    return haft_fiber_here() == haft_fiber_at(sp);
}

bool haft_unwound_to(uintptr_t frame, const void *sp) {
    uintptr_t limit = UINTPTR_MAX;
#ifdef HAFTI_SEGMENTS
    const haft_fiber_t *segmented = hafti_thread()->segmented;
    void *low, *high;
    if (segmented != NULL &&
        hafti_segments_find(&(hafti_segments_t){segmented->segments}, sp, &low, &high))
        limit = (uintptr_t)high;
#endif
    return frame >= (uintptr_t)sp && frame <= limit;
}

#ifdef HAFTI_SEGMENTS

bool haft_foreign_stack_make(hafti_thread_t *thread) {
    if (thread->foreign_stack != NULL)
        return true;
    char *low = mmap(NULL, FOREIGN_STACK, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (low == MAP_FAILED)
        return false;
    if (mprotect(low, GUARD, PROT_NONE) != 0) {
        munmap(low, FOREIGN_STACK);
        errno = ENOMEM;
        return false;
    }
    thread->foreign_stack = low;
    hafti_thread_stack_pointer = low + FOREIGN_STACK;
    return true;
}

void haft_segmented_init(haft_fiber_t *fiber) {
    hafti_segments_t segments;
    hafti_segments_init(&segments, fiber->low, fiber->high);
    fiber->segments = segments.limit;
}

void haft_segmented_reset(haft_fiber_t *fiber) {
    hafti_segments_reset(&(hafti_segments_t){fiber->segments});
}

void haft_segmented_release(haft_fiber_t *fiber) {
    hafti_segments_release(&(hafti_segments_t){fiber->segments});
}

static void stand_on(hafti_thread_t *thread, haft_fiber_t *fiber) {
    if (HAFTI_UNLIKELY(!haft_foreign_stack_make(thread)))
        haft_fail(HAFT_ERROR_NO_MEMORY, NULL, fiber,
                  "No memory for the stack on which segmented fibers call functions that do not "
                  "check theirs.");
    thread->segmented = fiber;
    thread->exceptions = &haft_always_pending;
}

void haft_enter_segments(haft_fiber_t *fiber) {
    stand_on(hafti_thread(), fiber);
    hafti_segments_set_limit(fiber->segments);
}

void haft_footing_end(hafti_thread_t *thread) {
    hafti_segments_set_limit(0);
    thread->segmented = NULL;
    haft_exceptions_at_rest(thread);
}

void haft_footing_leave(hafti_thread_t *thread, haft_footing_t *footing) {
    footing->limit = hafti_segments_limit();
    if (footing->limit == 0) {
        footing->foreign_stack = hafti_thread_stack_pointer;
        footing->outer = thread->foreign_calls;
        thread->foreign_calls = footing;
        /* The caller's frame lies above this one. */
        hafti_thread_stack_pointer = __builtin_frame_address(0);
    } else {
        hafti_segments_check(footing->limit);
    }
    haft_footing_end(thread);
}

void haft_footing_return(const haft_footing_t *footing) {
    hafti_thread_t *thread = hafti_thread();
    stand_on(thread, footing->fiber);
    if (footing->limit == 0) {
        hafti_thread_stack_pointer = footing->foreign_stack;
        thread->foreign_calls = footing->outer;
    }
    hafti_segments_set_limit(footing->limit);
}

bool haft_resumes_from_foreign_call(haft_fiber_t *fiber) {
    if (hafti_segments_limit() != 0)
        return false;
    haft_foreign_calls_seen = true;
    haft_tell_of_switches();
    bool news = !fiber->scope.slow;
    fiber->scope.slow = 1;
    return news;
}

void hafti_segments_failed(const char *message) {
    haft_fail(HAFT_ERROR_STACK_OVERFLOW, NULL, hafti_thread()->segmented, "%s: %s",
              haft_fiber_label(hafti_thread()->segmented), message);
}

#else

bool haft_foreign_stack_make(hafti_thread_t *thread) {
    (void)thread;
    return true;
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
void haft_footing_leave(hafti_thread_t *thread, haft_footing_t *footing) {
    (void)thread, (void)footing;
}
void haft_footing_end(hafti_thread_t *thread) {
    (void)thread;
}
void haft_footing_return(const haft_footing_t *footing) {
    (void)footing;
}
bool haft_resumes_from_foreign_call(haft_fiber_t *fiber) {
    return (void)fiber, false;
}

#endif
