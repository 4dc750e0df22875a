/* SPDX-License-Identifier: MIT */
/* What a simulation's seed decides: splitmix64. */
#include "workers.h"

static uint64_t next(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t hafti_io_random(hafti_io_simulated_t *simulated, uint64_t bound) {
    return next(&simulated->random) % bound;
}

void hafti_io_random_bytes(hafti_io_simulated_t *simulated, void *bytes, size_t size) {
    unsigned char *byte = bytes;
    for (size_t i = 0; i < size; i++)
        byte[i] = (unsigned char)next(&simulated->random_bytes);
}
