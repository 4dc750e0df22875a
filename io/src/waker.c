/* SPDX-License-Identifier: MIT */
/* What ends a thread's wait in its back end: an eventfd, which the back end watches. */
#include "base.h"

#include <sys/eventfd.h>
#include <unistd.h>

int hafti_io_waker_open(void) {
    int waker = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return waker >= 0 ? waker : -errno;
}

void hafti_io_waker_wake(int waker) {
    uint64_t one = 1;
    int saved = errno;
    while (write(waker, &one, sizeof one) < 0 && errno == EINTR)
        continue;
    errno = saved;
}

void hafti_io_waker_reset(int waker) {
    uint64_t count;
    while (read(waker, &count, sizeof count) < 0 && errno == EINTR)
        continue;
}
