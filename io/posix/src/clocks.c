/* SPDX-License-Identifier: MIT */
/*
 * Clocks: in a simulation they are virtual for the tasks, which sleep in virtual time. The date goes
 * on from that at which the process has first asked for it there.
 */
#include "internal.h"

static int64_t nanoseconds_of(const struct timespec *time) {
    return time->tv_sec * HAFT_IO_SECOND + time->tv_nsec;
}

/* How far the date is from the simulations' time. */
static int64_t date_from(int64_t now) {
    static int64_t distance;
    if (__atomic_load_n(&distance, __ATOMIC_RELAXED) == 0) {
        struct timespec date;
        int64_t none = 0;
        SYSTEM(clock_gettime)(CLOCK_REALTIME, &date);
        __atomic_compare_exchange_n(&distance, &none, nanoseconds_of(&date) - now, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(&distance, __ATOMIC_RELAXED);
}

HAFT_POSIX_EXPORT int clock_gettime(clockid_t clock, struct timespec *time) {
    bool is_date = clock == CLOCK_REALTIME;
    bool is_virtual = is_date || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME;
    if (!is_virtual || haft_io_seed() == 0 || !haft_posix_on_task())
        return SYSTEM(clock_gettime)(clock, time);
    int64_t now = HAFT_PERFORM(haft_io_now);
    if (is_date)
        now += date_from(now);
    *time = (struct timespec){now / HAFT_IO_SECOND, now % HAFT_IO_SECOND};
    return 0;
}
