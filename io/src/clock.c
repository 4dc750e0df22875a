/* SPDX-License-Identifier: MIT */
/* The time, and what a thread does that waits as such. */
#include "base.h"

#include <poll.h>
#include <time.h>

int64_t hafti_io_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * HAFT_IO_SECOND + now.tv_nsec;
}

int64_t hafti_io_clock_roughly(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec * HAFT_IO_SECOND + now.tv_nsec;
}

int hafti_io_poll_blocking(struct pollfd *entries, size_t count, int64_t deadline) {
    for (;;) {
        int64_t now = hafti_io_clock();
        int64_t left = deadline > now ? deadline - now : 0;
        struct timespec limit = {left / HAFT_IO_SECOND, left % HAFT_IO_SECOND};
        int ready = HAFTI_IO_RESULT(
            ppoll(entries, count, deadline != HAFT_IO_FOREVER ? &limit : NULL, NULL));
        if (ready != -EINTR)
            return ready;
    }
}

void hafti_io_pause(unsigned turn) {
    enum { LONGEST = 32 };
    struct timespec pause = {.tv_nsec = HAFT_IO_MILLISECOND * (turn < LONGEST ? turn : LONGEST)};
    int saved = errno;
    nanosleep(&pause, NULL);
    errno = saved;
}

int hafti_io_close_file(int descriptor) {
    int code = HAFTI_IO_RESULT(close(descriptor));
    return code != -EINTR ? code : 0;
}
