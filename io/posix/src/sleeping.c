/* SPDX-License-Identifier: MIT */
/*
 * Sleeping. A cancelled sleep ends early, with ECANCELED. A caller that asks for the remaining time
 * expects one error, EINTR, after which it sleeps for the rest: it gets EINTR with nothing left, so
 * its loop ends. (sleep, which has no error, returns the remaining time.)
 */
#include "internal.h"

/* Sleeps. Returns 0, or the error that has ended the sleep early. */
static int sleep_until(int64_t deadline) {
    hafti_posix_end_if_asked();
    return HAFT_PERFORM(haft_io_sleep_until, deadline) == 0 ? 0 : hafti_posix_cancelled();
}

static struct timespec left_until(int64_t deadline) {
    int64_t left = deadline - HAFT_PERFORM(haft_io_now);
    return left <= 0 ? (struct timespec){0, 0}
                     : (struct timespec){left / HAFT_IO_SECOND, left % HAFT_IO_SECOND};
}

static int sleep_for(const struct timespec *duration, struct timespec *left) {
    if (duration == NULL)
        return -EFAULT;
    bool is_over = duration->tv_sec == 0 && duration->tv_nsec == 0;
    int64_t deadline = hafti_posix_deadline(duration);
    int code = deadline < 0 ? (int)deadline : sleep_until(deadline);
    if (code == 0 || deadline < 0)
        return code;
    if (left != NULL)
        *left = code == -EINTR ? left_until(deadline) : (struct timespec){0, 0};
    return is_over ? 0 : left != NULL ? -EINTR : code;
}

HAFT_POSIX_EXPORT int nanosleep(const struct timespec *duration, struct timespec *left) {
    if (!hafti_posix_on_task())
        return SYSTEM(nanosleep)(duration, left);
    int before = hafti_posix_error();
    int code = sleep_for(duration, left);
    hafti_posix_set_error(code == 0 ? before : -code);
    return code == 0 ? 0 : -1;
}

HAFT_POSIX_EXPORT int usleep(useconds_t microseconds) {
    if (!hafti_posix_on_task())
        return SYSTEM(usleep)(microseconds);
    return nanosleep(&(struct timespec){microseconds / 1000000, microseconds % 1000000 * 1000L},
                     NULL);
}

HAFT_POSIX_EXPORT unsigned sleep(unsigned seconds) {
    if (!hafti_posix_on_task())
        return SYSTEM(sleep)(seconds);
    int64_t deadline = hafti_posix_deadline(&(struct timespec){seconds, 0});
    if (sleep_until(deadline) == 0)
        return 0;
    int64_t left = deadline - HAFT_PERFORM(haft_io_now);
    return left > 0 ? (unsigned)((left + HAFT_IO_SECOND - 1) / HAFT_IO_SECOND) : 0;
}

HAFT_POSIX_EXPORT int thrd_sleep(const struct timespec *duration, struct timespec *left) {
    if (!hafti_posix_on_task())
        return SYSTEM(thrd_sleep)(duration, left);
    int code = sleep_for(duration, left);
    return code == 0 ? 0 : code == -EINVAL || code == -EFAULT ? -2 : -1;
}

HAFT_POSIX_EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                                      struct timespec *left) {
    if (time == NULL || !hafti_posix_on_task())
        return SYSTEM(clock_nanosleep)(clock, flags, time, left);
    int64_t deadline = hafti_posix_deadline_at(clock, time);
    if (deadline < 0) /* An invalid time, or one of another clock. */
        return SYSTEM(clock_nanosleep)(clock, flags, time, left);
    if ((flags & TIMER_ABSTIME) == 0)
        return -sleep_for(time, left);
    return -sleep_until(deadline);
}

/* A loop that yields until another thread has done something may wait for a task. */
HAFT_POSIX_EXPORT int sched_yield(void) {
    if (hafti_posix_on_task())
        HAFT_PERFORM(haft_io_yield);
    return SYSTEM(sched_yield)();
}

HAFT_POSIX_ALSO(__nanosleep, nanosleep)
