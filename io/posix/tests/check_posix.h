/* SPDX-License-Identifier: MIT */
/* Helpers for the tests of libhaft-posix: two ends, much to send, and a task that takes it. */
#ifndef HAFT_POSIX_TESTS_CHECK_H
#define HAFT_POSIX_TESTS_CHECK_H

#include "../../tests/check_io.h"

#include <haft/posix.h>

#include <unistd.h>

static int ends[2];

enum { LARGE = 1 << 20 };
static char large[LARGE];

/* Reads to the end, where so many bytes have come. */
BODY(drain) {
    static char buffer[LARGE / 8];
    size_t sum = 0;
    for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
        sum += (size_t)got;
    CHECK_EQUAL(sum, (size_t)(intptr_t)argument);
    return NULL;
}

#endif
