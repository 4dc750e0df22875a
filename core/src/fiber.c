/* SPDX-License-Identifier: MIT */
/*
 * Making a fiber, in a stack of any kind (kinds.c). The layout is drawn in haft/inner/layout.h;
 * ending.c has the other end of its life.
 *
 * Invariant: the gate is open exactly while the fiber is suspended or new, and is not being
 * resumed; if the gate is closed, `state` tells whether the fiber is finished, running or freed.
 */
#include "fiber.h"

/* The maker of a fiber is the most likely to resume it. */
static void own(const hafti_thread_t *thread, haft_fiber_t *fiber) {
    __atomic_store_n(&fiber->owner, thread->current->serial, __ATOMIC_RELAXED);
}

/* A stack that the thread keeps, if an ordinary fiber is asked for; otherwise NULL. */
HAFTI_INLINE haft_fiber_t *take_ordinary(hafti_thread_t *thread,
                                         const haft_fiber_options_t *options) {
    bool ordinary = options->stack_size == 0 && options->memory == NULL &&
                    options->memory_size == 0 && !options->segmented && !options->dense &&
                    !haft_tools_active;
    return HAFTI_LIKELY(ordinary) ? haft_pool_take_kept(thread, haft_default_size) : NULL;
}

HAFTI_INLINE haft_fiber_t *begin_ordinary(const hafti_thread_t *thread, haft_fiber_t *fiber,
                                          const char *name, bool cleanups,
                                          void *(*function)(void *), void *argument) {
    if (fiber->kind != HAFT_KIND_POOL)
        __builtin_unreachable(); /* threads keep no others (pool.c) */
    haft_furnish(fiber, name);
    fiber->cleanups = HAFT_UNWINDS && cleanups;
    own(thread, fiber);
    haft_wind_up(fiber, function, argument);
    HAFT_CHECK_FIBER(fiber);
    return fiber;
}

/* Not inlined: a small frame of the caller's is enough for an ordinary fiber. */
static __attribute__((noinline)) haft_fiber_t *new_of_kind(hafti_thread_t *thread,
                                                           const haft_fiber_options_t *options,
                                                           void *(*function)(void *),
                                                           void *argument) {
    haft_fiber_t *fiber = haft_kind_for(options)->make(thread, options);
    if (fiber == NULL)
        return NULL;
    haft_furnish(fiber, options->name);
    bool room = fiber->kind == HAFT_KIND_FIXED
                    ? options->memory_size >= HAFT_UNWINDING_MINIMUM
                    : !options->dense || options->stack_size >= HAFT_UNWINDING_MINIMUM;
    fiber->cleanups = HAFT_UNWINDS && room && !options->no_cleanups;
    if (HAFTI_UNLIKELY(haft_tools_active || fiber->kind != HAFT_KIND_POOL) &&
        !haft_tools_born(fiber)) {
        haft_kind_of(fiber)->given_up(fiber);
        haft_kind_of(fiber)->give(fiber);
        return haft_tools_exhausted();
    }
    own(thread, fiber);
    haft_wind_up(fiber, function, argument);
    HAFT_CHECK_FIBER(fiber);
    return fiber;
}

static haft_fiber_t *new_with(const haft_fiber_options_t *options, void *(*function)(void *),
                              void *argument) {
    hafti_thread_t *thread = haft_thread_ready();
    haft_check_here(thread);
    haft_check_uses(thread, NULL, "made");
    if (function == NULL)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL, "A fiber needs a function to run (NULL).");
    haft_fiber_t *fiber = take_ordinary(thread, options);
    return HAFTI_LIKELY(fiber != NULL) ? begin_ordinary(thread, fiber, options->name,
                                                        !options->no_cleanups, function, argument)
                                       : new_of_kind(thread, options, function, argument);
}

/* The program was compiled for another version. */
static HAFTI_COLD haft_fiber_t *new_with_sized(const haft_fiber_options_t *given, size_t size,
                                               void *(*function)(void *), void *argument) {
    haft_fiber_options_t known = {.stack_size = 0};
    __builtin_memcpy(&known, given, size < sizeof known ? size : sizeof known);
    return new_with(&known, function, argument);
}

haft_fiber_t *hafti_fiber_new_sized(const haft_fiber_options_t *given, size_t size,
                                    void *(*function)(void *), void *argument) {
    static const haft_fiber_options_t usual = {.stack_size = 0};
    if (HAFTI_UNLIKELY(given != NULL && size != sizeof usual))
        return new_with_sized(given, size, function, argument);
    return new_with(given == NULL ? &usual : given, function, argument);
}

haft_fiber_t *haft_fiber_new(void *(*function)(void *), void *argument) {
    hafti_thread_t *thread = hafti_thread();
    haft_fiber_t *fiber = NULL;
    if (HAFTI_LIKELY(function != NULL && !haft_tools_active))
        fiber = haft_pool_take_kept(thread, haft_default_size);
    if (HAFTI_UNLIKELY(fiber == NULL))
        return haft_fiber_new_with(NULL, function, argument);
    return begin_ordinary(thread, fiber, NULL, true, function, argument);
}
