/* SPDX-License-Identifier: MIT */
/* The function of the hot-split benchmark (§4.1.2, figures 6 and 7): a frame of about 0x800 bytes,
 * m multiplications in a chain, no calls. The file that includes this is compiled with or without
 * -fsplit-stack; with it, the same body gets the prologue's check and, where too little is left of
 * a segment, a segment. */
#ifndef BENCH_HOTSPLIT_H
#define BENCH_HOTSPLIT_H

#include "harness.h"

#define HOTSPLIT_MULTIPLICATIONS 0, 5, 10, 15, 20

#define HOTSPLIT_FUNCTION(multiplications, work)                                                   \
    static NOINLINE void hotsplit_##multiplications(void) {                                        \
        static volatile double source = 1.5, factor_source = 1.0;                                  \
        char array[0x800];                                                                         \
        char *kept = array;                                                                        \
        if (multiplications > 0) {                                                                 \
            double product = source, factor = factor_source;                                       \
            work;                                                                                  \
            source = product;                                                                      \
        }                                                                                          \
        OPAQUE(kept);                                                                              \
    }

#define HOTSPLIT_5                                                                                 \
    product *= factor, product *= factor, product *= factor, product *= factor, product *= factor

HOTSPLIT_FUNCTION(0, (void)factor)
HOTSPLIT_FUNCTION(5, HOTSPLIT_5)
HOTSPLIT_FUNCTION(10, (HOTSPLIT_5, HOTSPLIT_5))
HOTSPLIT_FUNCTION(15, (HOTSPLIT_5, HOTSPLIT_5, HOTSPLIT_5))
HOTSPLIT_FUNCTION(20, (HOTSPLIT_5, HOTSPLIT_5, HOTSPLIT_5, HOTSPLIT_5))

/* The function with that many multiplications. */
static inline void (*hotsplit_function(intptr_t multiplications))(void) {
    static void (*const functions[])(void) = {hotsplit_0, hotsplit_5, hotsplit_10, hotsplit_15,
                                              hotsplit_20};
    return functions[multiplications / 5];
}

#endif
