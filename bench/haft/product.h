/* SPDX-License-Identifier: MIT */
/* product_early for Haft, whatever handles it: the effect and the computation. */
#ifndef BENCH_HAFT_PRODUCT_H
#define BENCH_HAFT_PRODUCT_H

#include "../program.h"

#include <haft.h>

HAFT_EFFECT(aborted, void, {});

/* A function of its own: a perform in product itself would make each of its thousand frames save
   all registers (docs/guide.md, What costs what). */
static NOINLINE void abort_product(void) {
    HAFT_PERFORM(aborted);
}

static NOINLINE int64_t product(const list_t *list) {
    if (!list)
        return 1;
    if (list->head == 0)
        abort_product();
    int64_t rest = product(list->tail);
    OPAQUE(rest);
    return list->head * rest;
}

static void *compute_product(void *list) {
    return (void *)(intptr_t)product(list);
}

/* One product: the fiber that waits at the abort is freed with its thousand frames. */
static inline int64_t product_on_fiber(const haft_fiber_options_t *options, const list_t *list) {
    int64_t result = 0;
    haft_fiber_t *k = haft_fiber_new_with(options, compute_product, (void *)(uintptr_t)list);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(aborted));
    HAFT_MATCH(request) {
        HAFT_RETURN(value) {
            result = (intptr_t)value;
        }
        HAFT_CASE(aborted, payload) {
            result = 0;
        }
    }
    haft_fiber_drop(k);
    return result;
}

#endif
