// SPDX-License-Identifier: MIT
/*
 * Haft I/O for C++20: locks, conditions, events, barriers and once flags, with the names of the
 * standard library. Part of haft/io.hpp, which includes it.
 *
 * Each object is one of haft/io_sync.h and nothing else: it neither moves nor allocates, and any
 * thread may use it. The destructors do nothing, so no task may wait in an object that ends.
 */
#ifndef HAFT_IO_SYNC_HPP
#define HAFT_IO_SYNC_HPP

#include "io_time.hpp"

#include <concepts>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace haft::io {

/* A TimedLockable, for std::unique_lock, std::scoped_lock and std::lock_guard. */
class mutex {
  public:
    mutex() = default;
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;
    void lock() { detail::checked(haft_io_mutex_lock(&state), "lock"); }
    bool try_lock() { return haft_io_mutex_try_lock(&state); }
    template <typename Clock, typename Duration>
    bool try_lock_until(std::chrono::time_point<Clock, Duration> time) {
        return detail::in_time(haft_io_mutex_lock_until(&state, detail::deadline_of(time)), "lock");
    }
    template <typename Rep, typename Period>
    bool try_lock_for(std::chrono::duration<Rep, Period> time) {
        return try_lock_until(from_now(time));
    }
    void unlock() { haft_io_mutex_unlock(&state); }
    haft_io_mutex_t *native_handle() { return &state; }

  private:
    haft_io_mutex_t state = {};
};

/* A SharedTimedLockable, for std::shared_lock too. It is not recursive. */
class shared_mutex {
  public:
    shared_mutex() = default;
    shared_mutex(const shared_mutex &) = delete;
    shared_mutex &operator=(const shared_mutex &) = delete;
    void lock() { detail::checked(haft_io_rwlock_write_lock(&state), "lock"); }
    bool try_lock() { return haft_io_rwlock_try_write_lock(&state); }
    template <typename Clock, typename Duration>
    bool try_lock_until(std::chrono::time_point<Clock, Duration> time) {
        return detail::in_time(haft_io_rwlock_write_lock_until(&state, detail::deadline_of(time)),
                               "lock");
    }
    template <typename Rep, typename Period>
    bool try_lock_for(std::chrono::duration<Rep, Period> time) {
        return try_lock_until(from_now(time));
    }
    void unlock() { haft_io_rwlock_unlock(&state); }
    void lock_shared() { detail::checked(haft_io_rwlock_read_lock(&state), "lock_shared"); }
    bool try_lock_shared() { return haft_io_rwlock_try_read_lock(&state); }
    template <typename Clock, typename Duration>
    bool try_lock_shared_until(std::chrono::time_point<Clock, Duration> time) {
        return detail::in_time(haft_io_rwlock_read_lock_until(&state, detail::deadline_of(time)),
                               "lock_shared");
    }
    template <typename Rep, typename Period>
    bool try_lock_shared_for(std::chrono::duration<Rep, Period> time) {
        return try_lock_shared_until(from_now(time));
    }
    void unlock_shared() { haft_io_rwlock_unlock(&state); }

  private:
    haft_io_rwlock_t state = {};
};

class semaphore {
  public:
    explicit semaphore(std::uint64_t count) { state.count = count; }
    semaphore(const semaphore &) = delete;
    semaphore &operator=(const semaphore &) = delete;
    void acquire() { detail::checked(haft_io_semaphore_acquire(&state), "acquire"); }
    bool try_acquire() { return haft_io_semaphore_try_acquire(&state); }
    template <typename Clock, typename Duration>
    bool try_acquire_until(std::chrono::time_point<Clock, Duration> time) {
        return detail::in_time(haft_io_semaphore_acquire_until(&state, detail::deadline_of(time)),
                               "acquire");
    }
    template <typename Rep, typename Period>
    bool try_acquire_for(std::chrono::duration<Rep, Period> time) {
        return try_acquire_until(from_now(time));
    }
    void release(std::uint64_t count = 1) {
        for (; count > 0; count--)
            haft_io_semaphore_release(&state);
    }

  private:
    haft_io_semaphore_t state = {};
};

/* Works with a lock of `mutex`. A cancelled wait locks it again before it throws. */
class condition_variable {
  public:
    condition_variable() = default;
    condition_variable(const condition_variable &) = delete;
    condition_variable &operator=(const condition_variable &) = delete;
    void notify_one() { haft_io_condition_signal(&state); }
    void notify_all() { haft_io_condition_broadcast(&state); }
    void wait(std::unique_lock<mutex> &lock) {
        detail::checked(haft_io_condition_wait(&state, lock.mutex()->native_handle()), "wait");
    }
    template <std::predicate P>
    void wait(std::unique_lock<mutex> &lock, P until) {
        while (!until())
            wait(lock);
    }
    template <typename Clock, typename Duration>
    std::cv_status wait_until(std::unique_lock<mutex> &lock,
                              std::chrono::time_point<Clock, Duration> time) {
        int code = haft_io_condition_wait_until(&state, lock.mutex()->native_handle(),
                                                detail::deadline_of(time));
        return detail::in_time(code, "wait") ? std::cv_status::no_timeout : std::cv_status::timeout;
    }
    template <typename Clock, typename Duration, std::predicate P>
    bool wait_until(std::unique_lock<mutex> &lock, std::chrono::time_point<Clock, Duration> time,
                    P until) {
        while (!until())
            if (wait_until(lock, time) == std::cv_status::timeout)
                return until();
        return true;
    }
    template <typename Rep, typename Period>
    std::cv_status wait_for(std::unique_lock<mutex> &lock,
                            std::chrono::duration<Rep, Period> time) {
        return wait_until(lock, from_now(time));
    }
    template <typename Rep, typename Period, std::predicate P>
    bool wait_for(std::unique_lock<mutex> &lock, std::chrono::duration<Rep, Period> time, P until) {
        return wait_until(lock, from_now(time), std::move(until));
    }

  private:
    haft_io_condition_t state = {};
};

/* An event is either set or not; a wait ends when it is set. */
class event {
  public:
    event() = default;
    event(const event &) = delete;
    event &operator=(const event &) = delete;
    haft_io_event_t *native_handle() { return &state; }
    void set() { haft_io_event_set(&state); }
    void clear() { haft_io_event_clear(&state); }
    void wait() { detail::checked(haft_io_event_wait(&state), "wait"); }
    template <typename Clock, typename Duration>
    bool wait_until(std::chrono::time_point<Clock, Duration> time) {
        return detail::in_time(haft_io_event_wait_until(&state, detail::deadline_of(time)), "wait");
    }
    template <typename Rep, typename Period>
    bool wait_for(std::chrono::duration<Rep, Period> time) {
        return wait_until(from_now(time));
    }

  private:
    haft_io_event_t state = {};
};

/* `count` callers wait for each other, round after round. */
class barrier {
  public:
    explicit barrier(std::uint32_t count) { state.needed = count; }
    barrier(const barrier &) = delete;
    barrier &operator=(const barrier &) = delete;
    /* True for the caller that arrived last. A caller that gives up counts as not arrived. */
    bool arrive_and_wait() { return arrive_and_wait_until(forever); }
    template <typename Clock, typename Duration>
    bool arrive_and_wait_until(std::chrono::time_point<Clock, Duration> time) {
        return detail::checked(haft_io_barrier_wait_until(&state, detail::deadline_of(time)),
                               "arrive") == 1;
    }
    template <typename Rep, typename Period>
    bool arrive_and_wait_for(std::chrono::duration<Rep, Period> time) {
        return arrive_and_wait_until(from_now(time));
    }

  private:
    haft_io_barrier_t state = {};
};

class once_flag {
  public:
    once_flag() = default;
    once_flag(const once_flag &) = delete;
    once_flag &operator=(const once_flag &) = delete;

  private:
    template <typename Clock, typename Duration, std::invocable F>
    friend void call_once_until(once_flag &flag, std::chrono::time_point<Clock, Duration> time,
                                F function);
    haft_io_once_t state = {};
};
/* Calls the function unless a call with this flag has already returned; while a call is under way,
   other callers wait for it, at most until the time. After an exception the next caller calls
   again. */
template <typename Clock, typename Duration, std::invocable F>
void call_once_until(once_flag &flag, std::chrono::time_point<Clock, Duration> time, F function) {
    auto call = [](void *argument) { (*static_cast<F *>(argument))(); };
    detail::checked(
        haft_io_once_call_until(&flag.state, call, &function, detail::deadline_of(time)),
        "call_once");
}
template <typename Rep, typename Period, std::invocable F>
void call_once_for(once_flag &flag, std::chrono::duration<Rep, Period> time, F function) {
    io::call_once_until(flag, from_now(time), std::move(function));
}
template <std::invocable F>
void call_once(once_flag &flag, F function) {
    io::call_once_until(flag, forever, std::move(function));
}

} // namespace haft::io

#endif
