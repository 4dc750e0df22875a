#define _GNU_SOURCE
#include "unaware.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MUCH = 200 * 1024 };

static void touch(volatile char *frame) {
    for (int i = 0; i < MUCH; i += 512)
        frame[i] = 1;
}

long unaware_sum(long first, long second) {
    volatile char frame[MUCH];
    touch(frame);
    return first + second + frame[0] - 1;
}

void unaware_fill(void) {
    volatile char frame[2000];
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = 1;
}

long unaware_call(long (*function)(long), long argument) {
    volatile char frame[MUCH];
    touch(frame);
    long result = function(argument);
    return result + frame[512] - 1;
}

haft_effect_t *unaware_resume(haft_fiber_t *fiber, const haft_handles_t *handles) {
    volatile char frame[MUCH];
    touch(frame);
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, handles);
    return frame[512] == 1 ? request.effect : NULL;
}

bool unaware_dump_contains(const char *text) {
    FILE *stream = tmpfile();
    (void)haft_fibers_dump(fileno(stream));
    rewind(stream);
    bool contains = false;
    for (char line[512]; fgets(line, sizeof line, stream) != NULL;)
        contains |= strstr(line, text) != NULL;
    fclose(stream);
    return contains;
}
/* SPDX-License-Identifier: MIT */
