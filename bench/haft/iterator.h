/* SPDX-License-Identifier: MIT */
/* iterator for Haft, whatever handles it: the effect and the computation. */
#ifndef BENCH_HAFT_ITERATOR_H
#define BENCH_HAFT_ITERATOR_H

#include "../program.h"

#include <haft.h>

HAFT_EFFECT(emit, void, { int64_t value; });

static void *range(void *last) {
    int64_t end = *(int64_t *)last;
    for (int64_t value = 0; value <= end; value++)
        HAFT_PERFORM(emit, value);
    return NULL;
}

#endif
