// SPDX-License-Identifier: MIT
/*
 * Haft I/O for C++20: promises and futures between tasks and threads. Part of haft/io.hpp, which
 * includes it.
 *
 * The value is given once, by whichever call first sets `taken`; the event that is set afterwards
 * lets a reader see it. A promise that ends without a value breaks its future.
 */
#ifndef HAFT_IO_PROMISES_HPP
#define HAFT_IO_PROMISES_HPP

#include "io_sync.hpp"

#include <atomic>
#include <exception>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>

namespace haft::io {

/* Like std::promise and std::future, whose errors they throw, but between tasks and threads. */
template <typename T>
class promise;

namespace detail {
template <typename T>
struct promised : outcome<T> {
    event kept_or_broken;
    std::atomic<bool> taken = false; /* the value is being given */
};
} // namespace detail

template <typename T>
class future {
  public:
    future() = default;
    future(future &&) = default;
    future &operator=(future &&) = default;
    bool valid() const { return state != nullptr; }
    void wait() const { needed().kept_or_broken.wait(); }
    template <typename Clock, typename Duration>
    std::future_status wait_until(std::chrono::time_point<Clock, Duration> time) const {
        return needed().kept_or_broken.wait_until(time) ? std::future_status::ready
                                                        : std::future_status::timeout;
    }
    template <typename Rep, typename Period>
    std::future_status wait_for(std::chrono::duration<Rep, Period> time) const {
        return wait_until(from_now(time));
    }
    /* May be called once. A cancelled wait has not taken the value. */
    T get() {
        wait();
        return std::exchange(state, nullptr)->take();
    }

  private:
    friend promise<T>;
    explicit future(std::shared_ptr<detail::promised<T>> of) : state(std::move(of)) {}
    detail::promised<T> &needed() const {
        if (state == nullptr)
            throw std::future_error(std::future_errc::no_state);
        return *state;
    }
    std::shared_ptr<detail::promised<T>> state;
};

template <typename T>
class promise {
  public:
    promise() : state(std::make_shared<detail::promised<T>>()) {}
    promise(promise &&other) noexcept = default;
    promise &operator=(promise &&other) noexcept {
        promise moved(std::move(other)); /* the promise held until now is broken here */
        std::swap(state, moved.state);
        std::swap(retrieved, moved.retrieved);
        return *this;
    }
    ~promise() {
        if (state != nullptr && !state->taken)
            set_exception(
                std::make_exception_ptr(std::future_error(std::future_errc::broken_promise)));
    }
    future<T> get_future() {
        if (state == nullptr)
            throw std::future_error(std::future_errc::no_state);
        if (std::exchange(retrieved, true))
            throw std::future_error(std::future_errc::future_already_retrieved);
        return future<T>(state);
    }
    void set_value() requires std::is_void_v<T> {
        give([](auto &to) { to.value.emplace(); });
    }
    void set_value(detail::kept<T> value) requires(!std::is_void_v<T>) {
        give([&](auto &to) { to.value.emplace(std::move(value)); });
    }
    void set_exception(std::exception_ptr exception) {
        give([&](auto &to) { to.failure = std::move(exception); });
    }

  private:
    template <typename Give>
    void give(Give into) {
        if (state == nullptr)
            throw std::future_error(std::future_errc::no_state);
        if (state->taken.exchange(true))
            throw std::future_error(std::future_errc::promise_already_satisfied);
        try {
            into(*state);
        } catch (...) {
            state->taken = false;
            throw;
        }
        state->kept_or_broken.set();
    }
    std::shared_ptr<detail::promised<T>> state;
    bool retrieved = false;
};

} // namespace haft::io

#endif
