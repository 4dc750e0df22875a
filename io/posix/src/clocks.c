/* SPDX-License-Identifier: MIT */
/*
 * Clocks and random bytes: in a simulation time is virtual for the tasks, which sleep in virtual
 * time, the date goes on from the one that the simulation was given, and random bytes are what the
 * seed decides.
 */
#include "simulations.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>

static __attribute__((noinline)) bool is_in_simulation(void) {
    return haft_io_seed() != 0 && hafti_posix_on_task();
}
static inline bool is_simulated(void) {
    return hafti_posix_may_simulate() && is_in_simulation();
}

/* ---- Clocks ---- */

static struct timespec virtual_time(void) {
    int64_t now = HAFT_PERFORM(haft_io_now);
    return (struct timespec){now / HAFT_IO_SECOND, now % HAFT_IO_SECOND};
}

/* False: the clock measures something else than time, such as the work of a processor. */
static bool read_virtual_clock(clockid_t clock, struct timespec *time) {
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_REALTIME_ALARM:
    case CLOCK_TAI:
        *time = haft_io_date();
        return true;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_BOOTTIME:
    case CLOCK_BOOTTIME_ALARM:
        *time = virtual_time();
        return true;
    default:
        return false;
    }
}

HAFT_POSIX_EXPORT int clock_gettime(clockid_t clock, struct timespec *time) {
    return is_simulated() && read_virtual_clock(clock, time) ? 0
                                                             : SYSTEM(clock_gettime)(clock, time);
}

HAFT_POSIX_EXPORT int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    if (!is_simulated())
        return SYSTEM(gettimeofday)(time, zone);
    if (zone != NULL)
        SYSTEM(gettimeofday)(time, zone);
    struct timespec date = haft_io_date();
    *time = (struct timeval){date.tv_sec, date.tv_nsec / HAFT_IO_MICROSECOND};
    return 0;
}

HAFT_POSIX_EXPORT time_t time(time_t *place) {
    if (!is_simulated())
        return SYSTEM(time)(place);
    time_t date = haft_io_date().tv_sec;
    if (place != NULL)
        *place = date;
    return date;
}

HAFT_POSIX_EXPORT int timespec_get(struct timespec *time, int base) {
    if (base != TIME_UTC || !is_simulated())
        return SYSTEM(timespec_get)(time, base);
    *time = haft_io_date();
    return base;
}

/* ---- Chance ---- */

/* Draws bytes in the simulation of the calling task. */
static void draw(void *bytes, size_t size) {
    haft_io_simulated_calls()->random(bytes, size);
}
static uint32_t draw_word(void) {
    uint32_t word;
    draw(&word, sizeof word);
    return word;
}

HAFT_POSIX_EXPORT ssize_t getrandom(void *bytes, size_t size, unsigned flags) {
    const unsigned known = GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE;
    if (bytes == NULL || (flags & ~known) != 0 || !is_simulated())
        return SYSTEM(getrandom)(bytes, size, flags);
    draw(bytes, size);
    return (ssize_t)size;
}

HAFT_POSIX_EXPORT int getentropy(void *bytes, size_t size) {
    if (bytes == NULL || size > 256 || !is_simulated())
        return SYSTEM(getentropy)(bytes, size);
    draw(bytes, size);
    return 0;
}

#if __GLIBC_PREREQ(2, 36)
HAFT_POSIX_EXPORT uint32_t arc4random(void) {
    return is_simulated() ? draw_word() : SYSTEM(arc4random)();
}

HAFT_POSIX_EXPORT void arc4random_buf(void *bytes, size_t size) {
    if (is_simulated())
        draw(bytes, size);
    else
        SYSTEM(arc4random_buf)(bytes, size);
}

HAFT_POSIX_EXPORT uint32_t arc4random_uniform(uint32_t bound) {
    if (!is_simulated())
        return SYSTEM(arc4random_uniform)(bound);
    if (bound < 2)
        return 0;
    uint32_t uneven = -bound % bound; /* so many words more than a multiple of `bound` */
    uint32_t word;
    do
        word = draw_word();
    while (word < uneven);
    return word % bound;
}
#endif

/* Functions that std::random_device calls: that of libstdc++, which uses the processor's RDSEED or
   RDRAND, and that of libc++. (Weak: a C++ library that is linked statically has its own.) */
typedef unsigned random_device_t(void *device);
static unsigned ask_device(const char *name, void *device) {
    random_device_t *function;
    void *address = dlsym(RTLD_NEXT, name);
    memcpy(&function, &address, sizeof function);
    return function(device);
}

#define RANDOM_DEVICE(name, symbol)                                                                \
    __attribute__((weak)) random_device_t name __asm__(symbol);                                    \
    HAFT_POSIX_EXPORT unsigned name(void *device) {                                                \
        return is_simulated() ? draw_word() : ask_device(symbol, device);                          \
    }
RANDOM_DEVICE(hafti_posix_random_device_of_libstdcxx, "_ZNSt13random_device9_M_getvalEv")
RANDOM_DEVICE(hafti_posix_random_device_of_libcxx, "_ZNSt3__113random_deviceclEv")

/* ---- By syscall ---- */

static bool is_of_time_or_chance(long number) {
    switch (number) {
    case SYS_getrandom:
    case SYS_clock_gettime:
    case SYS_gettimeofday:
#ifdef SYS_time
    case SYS_time:
#endif
        return true;
    default:
        return false;
    }
}

bool hafti_posix_simulated_call(long number, long first, long second, long third, long *result) {
    if (!is_of_time_or_chance(number) || !is_simulated())
        return false;
    if (number == SYS_getrandom)
        *result = getrandom((void *)first, (size_t)second, (unsigned)third);
    else if (number == SYS_clock_gettime && second != 0)
        *result = clock_gettime((clockid_t)first, (struct timespec *)second);
    else if (number == SYS_gettimeofday && first != 0)
        *result = gettimeofday((struct timeval *)first, (void *)second);
#ifdef SYS_time
    else if (number == SYS_time)
        *result = time((time_t *)first);
#endif
    else /* without a place for the time: the kernel returns the error */
        return false;
    return true;
}
