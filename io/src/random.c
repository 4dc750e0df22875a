/* SPDX-License-Identifier: MIT */
/* What a simulation's seed decides: splitmix64. */
#include "workers.h"

uint64_t hafti_io_random(hafti_io_simulated_t *simulated, uint64_t bound) {
    uint64_t z = simulated->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % bound;
}
