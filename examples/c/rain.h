/* SPDX-License-Identifier: MIT */
/* A model of two probabilistic programs: it draws and observes, and its handler decides what that
   means. */
#ifndef RAIN_H
#define RAIN_H

#include <haft.h>

HAFT_EFFECT(flip, bool, { double p; });
HAFT_EFFECT(observe, void, { double likelihood; });

/* Does it rain, if rain was forecast and the grass was wet on three days? */
static void *rain(void *unused) {
    (void)unused;
    bool rains = HAFT_PERFORM(flip, 0.2);
    HAFT_PERFORM(observe, rains ? 0.8 : 0.3);
    for (int day = 0; day < 3; day++) {
        bool sprinkler = HAFT_PERFORM(flip, rains ? 0.1 : 0.4);
        HAFT_PERFORM(observe, rains && sprinkler ? 0.99 : rains ? 0.8 : sprinkler ? 0.9 : 0.05);
    }
    return (void *)(intptr_t)rains;
}

#endif
