// SPDX-License-Identifier: MIT
/*
 * Haft I/O for C++20: the clock, deadlines, and sleeping. Part of haft/io.hpp, which includes it.
 *
 * Every wait that ends at a time ends at a time of this clock. detail::deadline_of() turns a time
 * of any clock into one, reading the other clock once; no header but this one does such arithmetic.
 */
#ifndef HAFT_IO_TIME_HPP
#define HAFT_IO_TIME_HPP

#include "io_detail.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <type_traits>

namespace haft::io {

/* The clock of haft_io_now, which is virtual in a simulation. Its time points are deadlines. */
struct clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<clock>;
    static constexpr bool is_steady = true;
    static time_point now() noexcept { return time_point(duration(haft_io_now())); }
};
/* The date: in a simulation that of the simulation, which simulation_options::date begins
   (haft_io_date). */
inline std::chrono::system_clock::time_point date() {
    timespec now = haft_io_date();
    return std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(
            std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec)));
}
inline constexpr clock::time_point forever = clock::time_point::max();

/* The time that is `duration` from now; the clock's last, in 292 years, if that is beyond the
   clock; now if it is negative or not a number. */
template <typename Rep, typename Period>
clock::time_point from_now(std::chrono::duration<Rep, Period> time) {
    using seconds = std::chrono::duration<double>;
    clock::time_point now = clock::now();
    if (!(seconds(time) > seconds::zero()))
        return now;
    return seconds(time) >= seconds(forever - now) ? forever - clock::duration(1)
                                                   : now + std::chrono::ceil<clock::duration>(time);
}

namespace detail {
inline std::int64_t deadline_of(clock::time_point time) {
    return time.time_since_epoch().count();
}
/* For the option structs of C, where 0 means no deadline. */
inline std::int64_t in_c(clock::time_point time) {
    return std::max(deadline_of(time), std::int64_t(1));
}
/* Another clock is read once: changing it afterwards has no effect. Distant times are compared as
   floating-point numbers, because the difference, or the time itself in the clock's unit, may
   overflow integers. */
template <typename Clock, typename Duration>
std::int64_t deadline_of(std::chrono::time_point<Clock, Duration> time) {
    using seconds = std::chrono::duration<double>;
    auto now = Clock::now();
    constexpr seconds most = std::common_type_t<Duration, typename Clock::duration>::max();
    const seconds then = time.time_since_epoch(), left = then - seconds(now.time_since_epoch());
    if (left < seconds(-1))
        return deadline_of(clock::now());
    if (then >= most || left >= most)
        return deadline_of(forever);
    return deadline_of(from_now(time - now));
}
} // namespace detail

template <typename Clock, typename Duration>
void sleep_until(std::chrono::time_point<Clock, Duration> time) {
    detail::checked(haft_io_sleep_until(detail::deadline_of(time)), "sleep_until");
}
template <typename Rep, typename Period>
void sleep_for(std::chrono::duration<Rep, Period> time) {
    sleep_until(from_now(time));
}
/* Lets every other task that can run go first. */
inline void yield() {
    detail::checked(haft_io_yield(), "yield");
}

} // namespace haft::io

#endif
