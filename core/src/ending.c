/* SPDX-License-Identifier: MIT */
/* The end of a fiber: it is freed, or reset for another run. */
#include "fiber.h"

/* Takes a finished fiber. If several threads want it, one gets it. */
HAFTI_INLINE bool take_finished(haft_fiber_t *fiber) {
    if (HAFTI_LIKELY(hafti_is_alone())) {
        bool finished = fiber->state == HAFT_FIBER_FINISHED;
        if (finished)
            fiber->state = HAFT_FIBER_DROPPED;
        return finished;
    }
    uint32_t finished = HAFT_FIBER_FINISHED;
    return __atomic_compare_exchange_n(&fiber->state, &finished, HAFT_FIBER_DROPPED, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static char *late_payload(const haft_fiber_t *fiber) {
    char *stopped = fiber->context.sp;
    bool waits = haft_fiber_state(fiber) == HAFT_FIBER_SUSPENDED && hafti_awaited(fiber) != NULL;
    bool stopped_here = waits && hafti_awaited(fiber)->spoils && haft_fiber_at(stopped) == fiber;
    return stopped_here && fiber->kind != HAFT_KIND_SEGMENTED ? stopped : NULL;
}

/* Not instrumented: to the thread sanitizer the stack is another thread's. */
static HAFT_UNINSTRUMENTED void spoil(char *from, const char *to) {
    haft_tools_reserved(from, (size_t)(to - from));
    for (volatile char *byte = from; byte < to; byte++)
        *byte = (char)0xdb;
}

/* Reports to the observer the end of a suspended fiber that has nothing to unwind. */
HAFTI_INLINE void tell_of_drop(const haft_fiber_t *fiber) {
    if (HAFTI_UNLIKELY(haft_is_observed(hafti_thread())))
        haft_tell_of_fiber(HAFT_OBSERVED_DROP, fiber, hafti_awaited(fiber));
}

/* A fiber that is to be dropped or reset. `claimed`: no other thread can use it, but it may have
   frames. `taken`: it has no frames any more. `payload`: where on its stack the payload of the
   awaited effect begins, if that is to be overwritten. */
typedef struct ending {
    haft_fiber_t *fiber;
    bool claimed, taken;
    char *payload;
} ending_t;

/* Ends what a fiber that is not running was doing, and takes it. */
static void finish(ending_t *ending, const char *what) {
    haft_fiber_t *fiber = ending->fiber;
    haft_check_uses(haft_thread_ready(), fiber, what);
    /* A cleanup may send an effect out of the fiber: that is dropped, too. */
    while (!take_finished(fiber)) {
        uint64_t owner = haft_claim(haft_thread_ready(), fiber, HAFT_ERROR_IN_USE, what);
        ending->claimed = true;
        HAFT_CHECK_CLAIMED(fiber);
        haft_use_up(fiber);
        bool waits = fiber->state != HAFT_FIBER_NEW;
        if (waits && haft_needs_unwinding(fiber)) {
            (void)haft_unwind_claimed(fiber, owner);
            continue;
        }
        if (waits) {
            tell_of_drop(fiber);
            haft_abandon_inside(fiber);
        }
        haft_kind_of(fiber)->given_up(fiber);
        fiber->state = HAFT_FIBER_DROPPED;
        break;
    }
    ending->claimed = ending->taken = true;
    if (HAFTI_UNLIKELY(fiber->thrown != NULL))
        haft_forget_kept(fiber);
}

haft_request_t haft_resume_unwinding(haft_fiber_t *fiber, const haft_handles_t *handles) {
    if (HAFTI_LIKELY(haft_needs_unwinding(fiber)))
        return haft_enter(fiber, fiber, HAFTI_WAKE_UNWIND, handles);
    haft_check_own(fiber, "dropped");
    (void)haft_claim(haft_thread_ready(), fiber, HAFT_ERROR_IN_USE, "dropped");
    haft_use_up(fiber);
    tell_of_drop(fiber);
    haft_abandon_inside(fiber);
    haft_kind_of(fiber)->given_up(fiber);
    haft_set_finished(fiber);
    return (haft_request_t){&haft_special_dropped, NULL};
}

static void release(const ending_t *dropped) {
    haft_fiber_t *fiber = dropped->fiber;
    if (!dropped->claimed || (!dropped->taken && !take_finished(fiber)))
        return; /* It was not ours to drop, and the error handler has left. */
    if (HAFTI_UNLIKELY(fiber->thrown != NULL))
        haft_forget_kept(fiber);
    if (fiber->tools != NULL)
        haft_tools_gone(fiber);
    if (dropped->payload != NULL)
        spoil(dropped->payload, fiber->high);
    fiber->state = HAFT_FIBER_DROPPED;
    haft_kind_of(fiber)->give(fiber);
}

/* Drops a fiber that has not finished, or that has left something behind. */
static HAFTI_COLD void drop_slow(haft_fiber_t *fiber) {
    haft_check_own(fiber, "dropped");
    /* Runs also when a cleanup of the fiber leaves for somewhere further out. */
    __attribute__((unused, cleanup(release)))
    ending_t dropped = {.fiber = fiber, .payload = late_payload(fiber)};
    finish(&dropped, "dropped");
}

static HAFTI_COLD void dropped_twice(const haft_fiber_t *fiber) {
    haft_fail(HAFT_ERROR_IN_USE, NULL, fiber,
              "%s was dropped by two threads at once. Only one may own a fiber that has finished.",
              haft_fiber_label(fiber));
}

/* Whether it is a finished copy: its stack stays for the next copy. */
static bool is_finished_copy(const haft_fiber_t *fiber) {
    return fiber->kind == HAFT_KIND_COPIED && fiber->state == HAFT_FIBER_FINISHED &&
           fiber->thrown == NULL && fiber->tools == NULL;
}

void haft_fiber_drop(haft_fiber_t *fiber) {
    if (fiber == NULL)
        return;
    if (HAFTI_UNLIKELY(fiber->state != HAFT_FIBER_FINISHED || fiber->kind != HAFT_KIND_POOL ||
                       fiber->language != NULL || fiber->thrown != NULL || fiber->tools != NULL)) {
        if (is_finished_copy(fiber) && take_finished(fiber))
            return;
        drop_slow(fiber);
        return;
    }
    if (HAFTI_UNLIKELY(!take_finished(fiber)))
        dropped_twice(fiber);
    haft_pool_give(haft_thread_ready(), fiber);
}

void haft_fiber_reset(haft_fiber_t *fiber, void *(*function)(void *), void *argument) {
    haft_check_given(fiber, "haft_fiber_reset", "fiber");
    if (function == NULL)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, fiber, "A fiber needs a function to run (NULL).");
    haft_check_own(fiber, "reset");
    ending_t ending = {.fiber = fiber};
    finish(&ending, "reset");
    if (!haft_kind_of(fiber)->again(fiber))
        return;
    /* `owner` stays: it may be the mark of a thread that tries to claim the fiber. */
    haft_wind_up(fiber, function, argument);
}
