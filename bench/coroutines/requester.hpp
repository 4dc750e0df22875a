// SPDX-License-Identifier: MIT
// Computations as C++20 coroutines that send requests to whoever resumes them: what an effect's
// performer and handler look like when written for stackless coroutines. Every function between
// the driver and a perform is itself a coroutine, a `task`, and is awaited.
//
// A channel remembers the innermost suspended coroutine, so a resume goes there directly however
// deep the tasks are nested (the manner of a recursive std::generator), and a finished task
// continues its awaiter by symmetric transfer.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace bench {

template <class T>
class task;

namespace detail {

struct promise_base {
    std::coroutine_handle<> awaiter = std::noop_coroutine();

    struct final_awaiter {
        bool await_ready() noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> done) noexcept {
            return done.promise().awaiter;
        }
        void await_resume() noexcept {}
    };

    std::suspend_always initial_suspend() noexcept { return {}; }
    final_awaiter final_suspend() noexcept { return {}; }
    void unhandled_exception() { std::terminate(); }
};

template <class T>
struct promise : promise_base {
    T value{};
    task<T> get_return_object();
    void return_value(T result) { value = result; }
    T result() { return value; }
};

template <>
struct promise<void> : promise_base {
    task<void> get_return_object();
    void return_void() {}
    void result() {}
};

} // namespace detail

template <class T>
class [[nodiscard]] task {
  public:
    using promise_type = detail::promise<T>;
    using handle = std::coroutine_handle<promise_type>;

    explicit task(handle started) : coroutine(started) {}
    task(task &&other) noexcept : coroutine(std::exchange(other.coroutine, nullptr)) {}
    task &operator=(task &&) = delete;
    ~task() {
        if (coroutine)
            coroutine.destroy();
    }

    bool await_ready() { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiter) {
        coroutine.promise().awaiter = awaiter;
        return coroutine;
    }
    T await_resume() { return coroutine.promise().result(); }

    std::coroutine_handle<> entry() const { return coroutine; }
    bool done() const { return coroutine.done(); }
    T result() const { return coroutine.promise().result(); }

  private:
    handle coroutine;
};

template <class T>
task<T> detail::promise<T>::get_return_object() {
    return task<T>(task<T>::handle::from_promise(*this));
}

inline task<void> detail::promise<void>::get_return_object() {
    return task<void>(task<void>::handle::from_promise(*this));
}

template <class Request, class Reply>
class channel {
  public:
    struct awaiter {
        channel &where;
        bool await_ready() { return false; }
        void await_suspend(std::coroutine_handle<> caller) { where.performer = caller; }
        Reply await_resume() { return where.reply; }
    };

    // For the computation.
    awaiter perform(Request wanted) {
        request = wanted;
        return {*this};
    }

    // For the driver: false when the computation has finished; else `request` holds its request,
    // and `reply` is to be set before the next resume.
    template <class T>
    bool resume(const task<T> &computation) {
        (performer ? performer : computation.entry()).resume();
        return !computation.done();
    }

    Request request{};
    Reply reply{};

  private:
    std::coroutine_handle<> performer = nullptr;
};

} // namespace bench
