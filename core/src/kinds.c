/* SPDX-License-Identifier: MIT */
/*
 * The kinds of stacks: in the pool, in memory of the caller, in segments. Their differences are in
 * the table at the end, which all other code uses.
 */
#include "stacks.h"

#ifndef HAFT_FREESTANDING
#    include <errno.h>
#endif

enum { HEADER_ALIGNMENT = 64, DENSE_LEAST = 1024, DENSE_MOST = 8192 };

static void nothing(haft_fiber_t *fiber) {
    (void)fiber;
}

/* Sizes from 8 KiB on are for ordinary stacks, too. */
static HAFTI_COLD void check_dense(const haft_fiber_options_t *options) {
    bool given = options->memory != NULL;
    size_t size = options->stack_size;
    if (given || options->segmented)
        haft_fail(
            HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
            "A dense fiber (haft_fiber_options_t.dense) lies beside others in the pool: leave "
            "out .dense, or %s.",
            given ? ".memory and .memory_size" : ".segmented");
    if (size < DENSE_MOST && size != 0 && (size < DENSE_LEAST || (size & (size - 1)) != 0))
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
                  "A dense fiber was asked for with a stack of %zu bytes: there are such of 1024, "
                  "2048 (or 0), 4096 and 8192 bytes, and larger ones that are ordinary stacks.",
                  size);
}

/* ---- Memory of the caller ---- */

static haft_fiber_t *make_fixed(hafti_thread_t *thread, const haft_fiber_options_t *options) {
    (void)thread;
    void *memory = options->memory;
    size_t size = options->memory_size;
    if (options->dense)
        check_dense(options);
    if (memory == NULL || size < HAFT_FIBER_MINIMUM)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
                  "A fiber in memory of the caller needs at least %zu bytes; it was given %zu.",
                  HAFT_FIBER_MINIMUM, memory == NULL ? 0 : size);
    if (size > UINTPTR_MAX - (uintptr_t)memory)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
                  "A fiber was given %zu bytes of memory: there are not as many from there on.",
                  size);
    uintptr_t end = ((uintptr_t)memory + size) & ~(uintptr_t)(HEADER_ALIGNMENT - 1);
    haft_fiber_t *fiber =
        (haft_fiber_t *)((end - sizeof *fiber) & ~(uintptr_t)(HEADER_ALIGNMENT - 1));
    if (!haft_fibers_list(fiber, memory, size, options->name, true))
        return NULL;
    fiber->kind = HAFT_KIND_FIXED;
    return fiber;
}

/* A fiber in memory of the caller that has finished has left the list, and is to run again. */
static bool again_fixed(haft_fiber_t *fiber) {
    char *memory = fiber->low - HAFT_CANARY_WORDS * sizeof(uint64_t);
    if (!haft_fibers_list(fiber, memory, (size_t)((char *)(fiber + 1) - memory), fiber->name,
                          false))
        return false;
    if (fiber->tools == NULL && !haft_tools_born(fiber)) {
        haft_fibers_unlist(fiber);
        haft_set_finished(fiber);
        haft_fail(HAFT_ERROR_NO_MEMORY, NULL, fiber, "No memory for a sanitizer's records of %s.",
                  haft_fiber_label(fiber));
    }
    haft_tools_reset(fiber);
    return true;
}

static void *ended_fixed(haft_fiber_t *fiber, void *payload) {
    haft_fibers_unlist(fiber);
    haft_tools_ended(fiber);
    return haft_settle_kept(fiber, payload);
}

static void no_longer_fixed(haft_fiber_t *fiber) {
    haft_fibers_unlist(fiber);
}

#ifdef HAFT_FREESTANDING

static haft_fiber_t *make_pooled(hafti_thread_t *thread, const haft_fiber_options_t *options) {
    (void)thread, (void)options;
    return haft_pool_exhausted(0);
}

static haft_fiber_t *make_segmented(hafti_thread_t *thread, const haft_fiber_options_t *options) {
    (void)thread, (void)options;
    haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
              "A freestanding program has no segmented fibers.");
}

const haft_stack_kind_t haft_stack_kinds[] = {
    [HAFT_KIND_POOL] = {.make = make_pooled},
    [HAFT_KIND_FIXED] = {make_fixed, nothing, ended_fixed, no_longer_fixed, again_fixed, nothing},
    [HAFT_KIND_SEGMENTED] = {.make = make_segmented},
};

#else

/* ---- The pool ---- */

static haft_fiber_t *make_pooled(hafti_thread_t *thread, const haft_fiber_options_t *options) {
    size_t size = options->stack_size != 0 ? options->stack_size : haft_stack_size();
    haft_fiber_t *fiber;
    bool dense = HAFTI_UNLIKELY(options->dense);
    if (dense)
        check_dense(options);
    if (dense && haft_tools_know_stacks()) { /* whose frames are large */
        dense = false;
        size = size > haft_stack_size() ? size : haft_stack_size();
    }
    if (HAFTI_UNLIKELY(dense))
        fiber = haft_pool_take_dense(thread, options->stack_size);
    else
        fiber = haft_pool_take(thread, size);
    return fiber != NULL ? fiber : haft_pool_exhausted(size);
}

static void *ended_pooled(haft_fiber_t *fiber, void *payload) {
    (void)fiber;
    return payload;
}

static bool again_pooled(haft_fiber_t *fiber) {
    haft_tools_reset(fiber);
    return true;
}

static void give_pooled(haft_fiber_t *fiber) {
    haft_pool_give(hafti_thread(), fiber);
}

/* ---- Segments ---- */

static HAFTI_COLD haft_fiber_t *make_segmented(hafti_thread_t *thread,
                                               const haft_fiber_options_t *options) {
#    ifdef HAFTI_SEGMENTS
    if (options->dense)
        check_dense(options);
    if (options->memory != NULL || options->memory_size != 0)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
                  "A segmented fiber cannot lie in memory of the caller.");
    haft_fiber_t *fiber = haft_pool_take_segmented(thread);
    if (fiber == NULL)
        return haft_pool_exhausted(HAFT_SEGMENTED_SIZE);
    if (!haft_foreign_stack_make(thread)) { /* here is more room for it than on the first segment */
        haft_pool_give(thread, fiber);
        errno = ENOMEM;
        return haft_pool_exhausted(HAFT_SEGMENTED_SIZE);
    }
    haft_segmented_init(fiber);
    return fiber;
#    else
    (void)thread, (void)options;
    haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
              "Segmented fibers need -fsplit-stack, which compilers have for x86-64 Linux only.");
#    endif
}

static bool again_segmented(haft_fiber_t *fiber) {
    haft_tools_reset(fiber);
    haft_segmented_reset(fiber);
    return true;
}

static void give_segmented(haft_fiber_t *fiber) {
    haft_segmented_release(fiber);
    give_pooled(fiber);
}

/* In the order of the fields: make, begins, ended, given_up, again, give. */
const haft_stack_kind_t haft_stack_kinds[] = {
    [HAFT_KIND_POOL] = {make_pooled, nothing, ended_pooled, nothing, again_pooled, give_pooled},
    [HAFT_KIND_FIXED] = {make_fixed, nothing, ended_fixed, no_longer_fixed, again_fixed, nothing},
    [HAFT_KIND_SEGMENTED] = {make_segmented, haft_enter_segments, ended_pooled, nothing,
                             again_segmented, give_segmented},
    [HAFT_KIND_UNGUARDED] = {make_pooled, nothing, ended_pooled, nothing, again_pooled,
                             give_pooled},
    [HAFT_KIND_COPIED] = {make_pooled, nothing, ended_pooled, haft_stage_abandoned, again_pooled,
                          haft_stage_left},
};

#endif

const haft_stack_kind_t *haft_kind_for(const haft_fiber_options_t *options) {
    if (HAFTI_UNLIKELY(options->segmented) && !haft_tools_know_stacks())
        return &haft_stack_kinds[HAFT_KIND_SEGMENTED];
    bool given = options->memory != NULL || options->memory_size != 0;
    return &haft_stack_kinds[given ? HAFT_KIND_FIXED : HAFT_KIND_POOL];
}
