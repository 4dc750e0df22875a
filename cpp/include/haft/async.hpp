// SPDX-License-Identifier: MIT
/*
 * async and await: functions that run beside their caller, and futures for their results.
 *
 *     haft::run([] {
 *         haft::future<page> first = haft::async([] { return fetch("a"); });
 *         haft::future<page> second = haft::async([] { return fetch("b"); });
 *         show(haft::await(first), haft::await(second));
 *     });
 *
 * async() forks a thread (thread.hpp); await() suspends the current thread until the value has
 * come, and moves it out, or throws the function's exception. No function on the way has to be
 * marked: await may be called from anywhere inside haft::run. A value that is not a function's
 * result comes from a haft::promise, which any thread may complete.
 *
 * A future is awaited once, by one thread. It may outlive its run(). Dropping a future does not
 * stop its function; if the function then throws, the exception leaves run(), because no await can
 * receive it (thread.hpp). The exception of a promise whose future is dropped is lost.
 */
#ifndef HAFT_ASYNC_HPP
#define HAFT_ASYNC_HPP

#include "thread.hpp"

#include <deque>
#include <functional>
#include <ranges>
#include <tuple>
#include <variant>

namespace haft {

/* Thrown by await() when the promise was destroyed without being completed. */
struct HAFT_SHARED broken_promise : std::runtime_error {
    broken_promise()
        : std::runtime_error("haft: the promise was destroyed without a value or an exception") {}
};

namespace detail {

template <typename T>
struct promised final : outcome<T> {
    void throw_abandoned() const override { throw broken_promise(); }
};

struct all_futures;

} // namespace detail

/* A value to come: void, a reference, or any type that can be moved. Move-only. */
template <typename T = void>
class future {
  public:
    using value_type = T;

    /* An empty future: nothing to wait for. */
    future() = default;
    /* The future of a thread's result. That thread can no longer be killed. */
    future(thread<T> &&from) noexcept : held(std::move(from.held)) {}

    /* Whether there is something to await. */
    bool valid() const { return static_cast<bool>(held); }
    /* Whether await() would return without waiting. */
    bool ready() const { return held.done(); }

  private:
    explicit future(detail::reference<detail::outcome<T>> of) : held(std::move(of)) {}
    detail::claim<detail::outcome<T>> held;

    template <typename>
    friend class promise;
    friend struct detail::all_futures;
    template <typename Value>
    friend Value await(future<Value> &);
};

/* Starts `function` in a thread, with options as for fork(). Throws as fork() does. */
template <typename F>
future<std::invoke_result_t<F &>> async(thread_options options, F function) {
    return fork(std::move(options), std::move(function));
}
template <std::invocable F>
future<std::invoke_result_t<F &>> async(F function) {
    return fork(std::move(function));
}

/*
 * Waits for the value, and moves it out of the future, which is empty afterwards. May throw the
 * function's exception, thread_killed, or broken_promise. Throws std::logic_error if the future is
 * empty (awaited before, moved from, default-constructed), while another thread awaits it, in the
 * thread that is to complete it, and if it would have to wait outside of run().
 */
template <typename T>
HAFT_DETAIL_INLINE T await(future<T> &value) {
    return value.held.collect("await()");
}
template <typename T>
T await(future<T> &&value) {
    return await(value);
}

/*
 * Provides the value, or the exception, of a future. Move-only. If the promise is destroyed before
 * it was completed, await() throws broken_promise. It must be completed on the thread of the system
 * on which the future is awaited; in a program that includes haft/io_threads.hpp, where tasks may
 * await it, on any thread.
 */
template <typename T = void>
class promise {
  public:
    promise() : state(new detail::promised<T>) {}
    promise(promise &&) noexcept = default;
    promise &operator=(promise other) noexcept {
        std::swap(state, other.state);
        std::swap(given, other.given);
        return *this;
    }
    ~promise() {
        if (state && state->now == is::pending)
            become(*state, is::abandoned);
    }

    /* Its future. Throws std::logic_error the second time. */
    future<T> get_future() {
        if (!state || std::exchange(given, true))
            throw std::logic_error("haft: get_future() was called a second time on a promise, or "
                                   "on one that was moved from");
        return future<T>(detail::reference<detail::outcome<T>>(&*state));
    }

    /* Completes the promise; a waiting thread becomes ready. Throws std::logic_error the second
       time, or for a null exception pointer, and whatever the constructor of the value throws. */
    template <typename Value = T>
    requires(!std::is_void_v<T>) void set_value(Value &&value) {
        detail::promised<T> &kept = pending("set_value()");
        kept.value.fill([&]() -> T { return static_cast<Value &&>(value); });
        become(kept, is::value);
    }
    void set_value() requires std::is_void_v<T> { become(pending("set_value()"), is::value); }
    void set_exception(std::exception_ptr exception) {
        detail::promised<T> &failed = pending("set_exception()");
        if (exception == nullptr)
            throw std::logic_error("haft: set_exception() was given no exception, a null pointer");
        failed.failure = std::move(exception);
        become(failed, is::failure);
    }

  private:
    using is = detail::outcome_base::is;
    detail::promised<T> &pending(const char *what) {
        if (!state || state->now != is::pending)
            throw std::logic_error(std::string("haft: ") + what + " was called on a promise that " +
                                   (state ? "was kept before" : "was moved from"));
        return *state;
    }
    static void become(detail::promised<T> &of, is what) {
        of.now = what;
        of.waiting.wake_all();
    }
    detail::reference<detail::promised<T>> state;
    bool given = false;
};

/* ---- Several futures ---- */

namespace detail {

template <typename T>
struct is_future : std::false_type {};
template <typename T>
struct is_future<future<T>> : std::true_type {};
template <typename Range>
concept futures = std::ranges::forward_range<Range> &&
    is_future<std::remove_cvref_t<std::ranges::range_reference_t<Range>>>::value;

template <typename T>
using value_or_nothing = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

struct all_futures {
    /* No exception is thrown before all futures are ready. */
    template <typename T>
    static void wait(future<T> &value) {
        value.held.get("await_all()").wait("await_all()");
    }
    template <typename T>
    static void seen(future<T> &value) {
        value.held.get("await_all()").reports = false;
    }
    template <typename T>
    static value_or_nothing<T> take(future<T> &value) {
        if constexpr (std::is_void_v<T>)
            return await(value), std::monostate{};
        else
            return await(value);
    }
    template <typename T>
    static waiting_list &waiting(future<T> &value, const scheduled *self) {
        outcome<T> &of = value.held.get("await_any()");
        locked by(of.guard());
        of.refuse(self, "await_any()");
        return of.waiting;
    }
};

} // namespace detail

/*
 * Waits for all futures, in whatever order they become ready. Returns their values as a tuple, with
 * std::monostate for void; for a range, as a vector, or void. If some have failed, throws the
 * exception of the first of these in the list, once all are ready. Errors as await().
 */
template <typename... T>
requires(sizeof...(T) >
         0) std::tuple<detail::value_or_nothing<T>...> await_all(future<T> &...values) {
    (detail::all_futures::wait(values), ...);
    (detail::all_futures::seen(values), ...);
    return {detail::all_futures::take(values)...};
}
template <typename... T>
requires(sizeof...(T) > 0) auto await_all(future<T> &&...values) {
    return await_all(values...);
}
template <detail::futures Range>
auto await_all(Range &&values) {
    using T = typename std::remove_cvref_t<std::ranges::range_reference_t<Range>>::value_type;
    for (auto &value : values)
        detail::all_futures::wait(value);
    for (auto &value : values)
        detail::all_futures::seen(value);
    if constexpr (std::is_void_v<T>) {
        for (auto &value : values)
            await(value);
    } else {
        using element = std::conditional_t<std::is_reference_v<T>,
                                           std::reference_wrapper<std::remove_reference_t<T>>, T>;
        std::vector<element> all;
        for (auto &value : values)
            all.push_back(await(value));
        return all;
    }
}

/*
 * Waits until one of the futures is ready, and returns its index; that future must still be
 * awaited. Errors as await(); std::logic_error if there are no futures.
 */
template <detail::futures Range>
std::size_t await_any(Range &&values) {
    for (;;) {
        const scheduled *current = detail::here();
        std::size_t index = 0;
        for (auto &value : values) {
            detail::all_futures::waiting(value, current);
            if (value.ready())
                return index;
            index++;
        }
        if (index == 0)
            throw std::logic_error("haft: await_any() was given no futures");
        detail::caller self("await_any()");
        std::deque<detail::waiter> waiters;
        bool ready = false;
        for (auto &value : values) {
            waiters.emplace_back(detail::all_futures::waiting(value, &self.thread()),
                                 self.thread());
            ready = ready || (detail::shared() && value.ready());
        }
        if (!ready)
            detail::scheduler::suspend(self.thread(), "await_any()", nullptr, false);
    }
}
template <typename... T>
requires(sizeof...(T) > 0) std::size_t await_any(future<T> &...values) {
    for (;;) {
        const scheduled *current = detail::here();
        (detail::all_futures::waiting(values, current), ...);
        std::size_t index = 0;
        if (((values.ready() || (index++, false)) || ...))
            return index;
        detail::caller self("await_any()");
        detail::waiter waiters[] = {
            {detail::all_futures::waiting(values, &self.thread()), self.thread()}...};
        (void)waiters;
        if (!detail::shared() || !(values.ready() || ...))
            detail::scheduler::suspend(self.thread(), "await_any()", nullptr, false);
    }
}

} // namespace haft

#endif
