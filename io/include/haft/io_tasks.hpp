// SPDX-License-Identifier: MIT
/*
 * Haft I/O for C++20: tasks, several functions at once, and values that tasks inherit. Part of
 * haft/io.hpp, which includes it.
 *
 * detail::start() is the only place where a task begins. The task owns its job until it has ended,
 * and a joiner shares it, so that neither outlives what it uses. Results and exceptions travel in
 * the job, never through C.
 */
#ifndef HAFT_IO_TASKS_HPP
#define HAFT_IO_TASKS_HPP

#include "io_scopes.hpp"

#include <atomic>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace haft::io {

/* ---- Tasks ---------------------------------------------------------------------------------- */

/* A task whose result is wanted. It may be joined once, by a task of the run, before its scope
   ends. */
template <typename T>
class [[nodiscard]] task {
  public:
    task() = default;
    task(task &&other) noexcept
        : handle(std::exchange(other.handle, nullptr)), out(std::move(other.out)) {}
    task &operator=(task &&other) noexcept {
        handle = std::exchange(other.handle, nullptr);
        out = std::move(other.out);
        return *this;
    }

    bool joinable() const { return handle != nullptr; }
    /*
     * Waits for the end of the task; returns what its function returned, or throws what it threw.
     * An exception has cancelled the task's scope; a joiner in that scope still gets the exception,
     * not `cancelled`.
     */
    T join() {
        if (handle == nullptr)
            throw std::logic_error("haft: there is no task to join, or it has been joined");
        int code = haft_io_join(std::exchange(handle, nullptr), nullptr);
        if (out->failed.load(std::memory_order_acquire)) {
            out->joined = true;
            std::rethrow_exception(out->failure);
        }
        detail::checked(code, "join");
        return out->take();
    }

  private:
    friend scope_ref;
    task(haft_io_task_t *started, std::shared_ptr<detail::outcome<T>> result)
        : handle(started), out(std::move(result)) {}
    haft_io_task_t *handle = nullptr;
    std::shared_ptr<detail::outcome<T>> out;
};

/* Starts the function as a task of this_scope(). Its captures are destroyed at the end of the
   task. */
template <std::invocable F>
void spawn(task_options options, F function) {
    this_scope().spawn(options, std::move(function));
}
template <std::invocable F>
void spawn(F function) {
    this_scope().spawn(task_options{}, std::move(function));
}
/* Like spawn(), for a task whose result is wanted. */
template <std::invocable F>
task<std::invoke_result_t<F &>> async(task_options options, F function) {
    return this_scope().async(options, std::move(function));
}
template <std::invocable F>
task<std::invoke_result_t<F &>> async(F function) {
    return this_scope().async(task_options{}, std::move(function));
}

namespace detail {
/* Starts the job in that scope, with its frame as the value that the task finds. */
template <typename Job>
haft_io_task_t *start(const home &at, task_options options, std::shared_ptr<Job> job, bool joinable,
                      bool handled = false) {
    const haft_io_scope_t *here = haft_io_this_scope();
    if (at.scope == nullptr || here == nullptr)
        throw_outside();
    inherited by_task(at.frame_around());
    haft_io_task_options_t given = options.as_c();
    given.scope = at.is_current && here == at.scope ? nullptr : at.scope;
    if (options.own_thread_locals && haft_io_own_thread_locals_refused() != nullptr)
        checked(-ENOTSUP, "own_thread_locals");
    job->self = job;
    haft_io_task_t *started = nullptr;
    struct owning {
        std::shared_ptr<Job> *self; /* nullptr: the task has it */
        ~owning() {
            if (self != nullptr)
                *self = nullptr;
        }
    } not_started{&job->self};
    auto *async = handled ? &haft_io_async_handled_with : &haft_io_async_with;
    auto *spawn = handled ? &haft_io_spawn_handled_with : &haft_io_spawn_with;
    bool done = joinable ? (started = async(&given, &Job::start, job.get())) != nullptr
                         : spawn(&given, &Job::start, job.get()) == 0;
    if (!done)
        throw std::bad_alloc();
    not_started.self = nullptr;
    return started;
}
} // namespace detail

template <std::invocable F>
void scope_ref::spawn(task_options options, F function) const {
    detail::start(at, options, std::make_shared<detail::job<F>>(std::move(function)), false);
}
template <std::invocable F>
task<std::invoke_result_t<F &>> scope_ref::async(task_options options, F function) const {
    auto job = std::make_shared<detail::job<F>>(std::move(function));
    haft_io_task_t *handle = detail::start(at, options, job, true);
    return {handle, std::move(job)};
}
template <std::invocable F>
task<std::invoke_result_t<F &>> scope_ref::async_handled(task_options options, F function) const {
    auto job = std::make_shared<detail::job<F>>(std::move(function));
    haft_io_task_t *handle = detail::start(at, options, job, true, true);
    return {handle, std::move(job)};
}

/* Like spawn() and async(), for tasks that have the handlers of effects around this scope, as its
   body has; other tasks have none of their spawner's. See haft_io_spawn_handled_with.

       haft::handle([] {
           io::scope([] { io::spawn_handled([] { haft::perform<user>(); }); });
       }).with([](user) { return "Ada"; });
*/
template <std::invocable F>
void spawn_handled(task_options options, F function) {
    detail::start(detail::home::current(), options,
                  std::make_shared<detail::job<F>>(std::move(function)), false, true);
}
template <std::invocable F>
void spawn_handled(F function) {
    io::spawn_handled(task_options{}, std::move(function));
}
template <std::invocable F>
task<std::invoke_result_t<F &>> async_handled(task_options options, F function) {
    return scope_ref(detail::home::current()).async_handled(options, std::move(function));
}
template <std::invocable F>
task<std::invoke_result_t<F &>> async_handled(F function) {
    return io::async_handled(task_options{}, std::move(function));
}

/* ---- Several at once ------------------------------------------------------------------------ */

namespace detail {
/* The elements of a range, as functions to be called once: by reference if the range owns them. */
template <typename R>
auto function_of(R &&element) {
    if constexpr (std::is_lvalue_reference_v<R>)
        return [&element] { return detail::call(element); };
    else
        return [function = std::move(element)]() mutable { return detail::call(function); };
}
template <typename R>
using result_of_each = kept<std::invoke_result_t<std::ranges::range_reference_t<R>>>;
} // namespace detail

template <typename R>
concept functions =
    std::ranges::input_range<R> && std::invocable<std::ranges::range_reference_t<R>>;

/*
 * Calls the functions as tasks of a new scope, and returns a tuple of their results, with
 * std::monostate for void. An exception of one cancels the others.
 */
template <std::invocable... F>
auto all(F... calls) {
    std::tuple<std::optional<detail::kept<std::invoke_result_t<F &>>>...> results;
    io::scope([&](scope_ref here) {
        std::apply(
            [&](auto &...result) {
                (here.spawn([&] { result.emplace(detail::call(calls)); }), ...);
            },
            results);
    });
    return std::apply(
        [](auto &...result) {
            if (!(result.has_value() && ...)) /* a cancel from outside, without a failure */
                throw cancelled();
            return std::tuple<detail::kept<std::invoke_result_t<F &>>...>(
                std::move(result).value()...);
        },
        results);
}
/* The same for a range of functions; returns a vector. */
template <functions R>
auto all(R &&calls) {
    std::vector<task<detail::result_of_each<R>>> tasks;
    std::vector<detail::result_of_each<R>> results;
    io::scope([&](scope_ref here) {
        for (auto &&element : calls)
            tasks.push_back(here.async(
                detail::function_of<decltype(element)>(std::forward<decltype(element)>(element))));
        results.reserve(tasks.size());
        for (auto &each : tasks)
            results.push_back(each.join());
    });
    return results;
}

/*
 * Calls the functions as tasks of a new scope, and returns the result of the one that returned
 * first, in a variant whose index is the function's. By then the others have been cancelled and
 * have ended. If any of them throws, before or after that, this throws the exception.
 */
template <std::invocable... F>
requires(sizeof...(F) > 0) auto first(F... calls) {
    std::optional<std::variant<detail::kept<std::invoke_result_t<F &>>...>> winner;
    std::atomic<bool> decided = false;
    io::scope([&](scope_ref here) {
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            (here.spawn([&, here] {
                auto result = detail::call(calls);
                if (!decided.exchange(true)) {
                    winner.emplace(std::in_place_index<I>, std::move(result));
                    here.cancel();
                }
            }),
             ...);
        }
        (std::index_sequence_for<F...>());
    });
    if (!winner.has_value())
        throw cancelled();
    return std::move(*winner);
}
/* The same for a non-empty range of functions; returns the index and the result. */
template <functions R>
auto first(R &&calls) {
    std::optional<std::pair<std::size_t, detail::result_of_each<R>>> winner;
    std::atomic<bool> decided = false;
    io::scope([&](scope_ref here) {
        std::size_t index = 0;
        for (auto &&element : calls) {
            auto function =
                detail::function_of<decltype(element)>(std::forward<decltype(element)>(element));
            here.spawn([&, here, index, function = std::move(function)]() mutable {
                auto result = function();
                if (!decided.exchange(true)) {
                    winner.emplace(index, std::move(result));
                    here.cancel();
                }
            });
            index++;
        }
        if (index == 0)
            throw std::invalid_argument("haft: first() of no functions");
    });
    if (!winner.has_value())
        throw cancelled();
    return std::move(*winner);
}

/* ---- Values of tasks ------------------------------------------------------------------------ */

/*
 * A value that the tasks of a scope share without passing it on. It is declared static:
 *     static io::local<std::string> user;
 */
template <typename T>
class local {
  public:
    local() = default;
    local(const local &) = delete;
    local &operator=(const local &) = delete;
    /* Calls the body in a new scope. The value is set for the body and for the tasks spawned in
       that scope, but not for tasks spawned from there into an outer scope. Only tasks may call
       this. */
    template <scope_body F>
    decltype(auto) with(T value, F function) {
        if (haft_io_this_scope() == nullptr)
            throw std::logic_error("haft: a value of tasks is set outside of haft::io::run()");
        detail::local_binding binding{this, haft_io_local_get(this), detail::current_bindings()};
        detail::bound here(this, std::addressof(value)), known(&detail::bindings_key, &binding);
        return io::scope([&](scope_ref inside) -> decltype(auto) {
            binding.scope = detail::current_frame();
            if constexpr (std::invocable<F &, scope_ref>)
                return std::invoke(function, inside);
            else
                return std::invoke(function);
        });
    }
    /* nullptr: no value is set around the caller. */
    T *get() const { return static_cast<T *>(haft_io_local_get(this)); }
    T &operator*() const { return *get(); }
    T *operator->() const { return get(); }
    explicit operator bool() const { return get() != nullptr; }

  private:
    [[maybe_unused]] char address = 0;
};

} // namespace haft::io

#endif
