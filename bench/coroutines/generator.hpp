// SPDX-License-Identifier: MIT
// The plain, non-recursive generator that C++23 will bring: one coroutine, values by co_yield.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace bench {

template <class T>
class generator {
  public:
    struct promise_type {
        T current{};
        generator get_return_object() {
            return generator(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(T value) noexcept {
            current = value;
            return {};
        }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };

    generator(generator &&other) noexcept : coroutine(std::exchange(other.coroutine, nullptr)) {}
    generator &operator=(generator &&) = delete;
    ~generator() {
        if (coroutine)
            coroutine.destroy();
    }

    // False at the end; else `value` is the next one.
    bool next() {
        coroutine.resume();
        return !coroutine.done();
    }
    const T &value() const { return coroutine.promise().current; }

  private:
    explicit generator(std::coroutine_handle<promise_type> started) : coroutine(started) {}
    std::coroutine_handle<promise_type> coroutine;
};

} // namespace bench
