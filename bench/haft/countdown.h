/* SPDX-License-Identifier: MIT */
/* countdown for Haft, whatever handles it: the effects and the computation. */
#ifndef BENCH_HAFT_COUNTDOWN_H
#define BENCH_HAFT_COUNTDOWN_H

#include "../program.h"

#include <haft.h>

HAFT_EFFECT(get, int64_t, {});
HAFT_EFFECT(put, void, { int64_t new_value; });

static void *countdown(void *unused) {
    (void)unused;
    for (;;) {
        int64_t value = HAFT_PERFORM(get);
        if (value == 0)
            return NULL;
        HAFT_PERFORM(put, value - 1);
    }
}

#endif
