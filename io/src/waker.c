/* SPDX-License-Identifier: MIT */
/* The waker, which ends a thread's wait in its back end: an eventfd, which the back end watches. */
#include "base.h"
#include "system_call.h"

#include <sys/eventfd.h>

int hafti_io_waker_open(void) {
    int waker = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return waker >= 0 ? waker : -errno;
}

/* The system's own call: the C library's functions may be libhaft-posix's, which for what is no
   socket make six calls. */
static void transfer(long number, int waker, uint64_t *count) {
    while (hafti_io_system_call(number, waker, (long)count, sizeof *count, 0, 0, 0) == -EINTR)
        continue;
}

void hafti_io_waker_wake(int waker) {
    transfer(SYS_write, waker, &(uint64_t){1});
}

void hafti_io_waker_reset(int waker) {
    transfer(SYS_read, waker, &(uint64_t){0});
}
