/* SPDX-License-Identifier: MIT */
/* Sleeping. A cancelled sleep ends early and returns the remaining time, as after a signal. */
#include "internal.h"

/* Sleeps until the deadline. 0, or -ECANCELED with what is left. */
static int sleep_until(int64_t deadline, struct timespec *left) {
    int code = HAFT_PERFORM(haft_io_sleep_until, deadline);
    if (code != 0 && left != NULL) {
        int64_t nanoseconds = deadline - HAFT_PERFORM(haft_io_now);
        nanoseconds = nanoseconds > 0 ? nanoseconds : 0;
        *left = (struct timespec){nanoseconds / HAFT_IO_SECOND, nanoseconds % HAFT_IO_SECOND};
    }
    return code == 0 ? 0 : haft_posix_cancelled();
}

static int sleep_for(const struct timespec *duration, struct timespec *left) {
    if (duration == NULL)
        return -EFAULT;
    int64_t deadline = haft_posix_deadline(duration);
    return deadline < 0 ? (int)deadline : sleep_until(deadline, left);
}

HAFT_POSIX_EXPORT int nanosleep(const struct timespec *duration, struct timespec *left) {
    if (!haft_posix_on_task())
        return SYSTEM(nanosleep)(duration, left);
    int before = haft_posix_error();
    return (int)haft_posix_answer(sleep_for(duration, left), before);
}

HAFT_POSIX_EXPORT int usleep(useconds_t microseconds) {
    if (!haft_posix_on_task())
        return SYSTEM(usleep)(microseconds);
    return nanosleep(&(struct timespec){microseconds / 1000000, microseconds % 1000000 * 1000L},
                     NULL);
}

HAFT_POSIX_EXPORT unsigned sleep(unsigned seconds) {
    if (!haft_posix_on_task())
        return SYSTEM(sleep)(seconds);
    struct timespec left = {0, 0};
    sleep_for(&(struct timespec){seconds, 0}, &left);
    return (unsigned)(left.tv_sec + (left.tv_nsec != 0));
}

HAFT_POSIX_EXPORT int thrd_sleep(const struct timespec *duration, struct timespec *left) {
    if (!haft_posix_on_task())
        return SYSTEM(thrd_sleep)(duration, left);
    int code = sleep_for(duration, left);
    return code == 0 ? 0 : code == -ECANCELED ? -1 : -2;
}

HAFT_POSIX_EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                                      struct timespec *left) {
    if (time == NULL || !haft_posix_on_task())
        return SYSTEM(clock_nanosleep)(clock, flags, time, left);
    int64_t deadline = haft_posix_deadline_at(clock, time);
    if (deadline < 0) /* An invalid time, or one of another clock. */
        return SYSTEM(clock_nanosleep)(clock, flags, time, left);
    if ((flags & TIMER_ABSTIME) == 0)
        return -sleep_for(time, left);
    return -sleep_until(deadline, NULL);
}

/* A loop that yields until another thread has done something may wait for a task. */
HAFT_POSIX_EXPORT int sched_yield(void) {
    if (haft_posix_on_task())
        HAFT_PERFORM(haft_io_yield);
    return SYSTEM(sched_yield)();
}

HAFT_POSIX_ALSO(__nanosleep, nanosleep)
