/* SPDX-License-Identifier: MIT */
/*
 * Clocks and chance: in a simulation time is virtual for the tasks, which sleep in virtual time, and
 * random bytes are what the seed decides. The date goes on from that at which the process has first
 * asked for it there.
 */
#include "internal.h"

static int64_t nanoseconds_of(const struct timespec *time) {
    return time->tv_sec * HAFT_IO_SECOND + time->tv_nsec;
}
static struct timespec time_of(int64_t nanoseconds) {
    return (struct timespec){nanoseconds / HAFT_IO_SECOND, nanoseconds % HAFT_IO_SECOND};
}

static __attribute__((noinline)) bool is_in_simulation(void) {
    return haft_io_seed() != 0 && haft_posix_on_task();
}
static inline bool is_simulated(void) {
    return haft_posix_may_simulate() && is_in_simulation();
}

int64_t haft_posix_date_from(int64_t now) {
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

static struct timespec virtual_date(void) {
    int64_t now = HAFT_PERFORM(haft_io_now);
    return time_of(now + haft_posix_date_from(now));
}

HAFT_POSIX_EXPORT int clock_gettime(clockid_t clock, struct timespec *time) {
    bool is_date = clock == CLOCK_REALTIME;
    bool is_virtual = is_date || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME;
    if (!is_virtual || !is_simulated())
        return SYSTEM(clock_gettime)(clock, time);
    *time = is_date ? virtual_date() : time_of(HAFT_PERFORM(haft_io_now));
    return 0;
}

HAFT_POSIX_EXPORT int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    if (zone != NULL || !is_simulated())
        return SYSTEM(gettimeofday)(time, zone);
    struct timespec date = virtual_date();
    *time = (struct timeval){date.tv_sec, date.tv_nsec / HAFT_IO_MICROSECOND};
    return 0;
}

HAFT_POSIX_EXPORT time_t time(time_t *place) {
    if (!is_simulated())
        return SYSTEM(time)(place);
    time_t date = virtual_date().tv_sec;
    if (place != NULL)
        *place = date;
    return date;
}

HAFT_POSIX_EXPORT int timespec_get(struct timespec *time, int base) {
    if (base != TIME_UTC || !is_simulated())
        return SYSTEM(timespec_get)(time, base);
    *time = virtual_date();
    return base;
}

/* ---- Chance ---- */

HAFT_POSIX_EXPORT ssize_t getrandom(void *bytes, size_t size, unsigned flags) {
    const unsigned known = GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE;
    if (bytes == NULL || (flags & ~known) != 0 || !is_simulated())
        return SYSTEM(getrandom)(bytes, size, flags);
    haft_io_simulated_calls()->random(bytes, size);
    return (ssize_t)size;
}

HAFT_POSIX_EXPORT int getentropy(void *bytes, size_t size) {
    if (bytes == NULL || size > 256 || !is_simulated())
        return SYSTEM(getentropy)(bytes, size);
    haft_io_simulated_calls()->random(bytes, size);
    return 0;
}
