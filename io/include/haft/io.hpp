// SPDX-License-Identifier: MIT
/*
 * Haft I/O for C++20: tasks, scopes, synchronisation and I/O over haft/io.h, headers only.
 *
 *     #include <haft/io.hpp>
 *     namespace io = haft::io;
 *
 *     int main() {
 *         io::run([] {
 *             io::listener listener("::", 7000);
 *             for (io::socket connection : listener)
 *                 io::spawn([connection = std::move(connection)] {
 *                     for (std::string_view line : io::lines(connection))
 *                         connection.write_all(line);
 *                 });
 *         });
 *     }
 *
 * Errors are std::system_error. An exception that leaves the body or a task of a scope cancels the
 * scope; when all of its tasks have ended, the first such exception is thrown where the scope was
 * opened. A join throws what its task threw, too.
 *
 * A cancel is the exception haft::io::cancelled, thrown by the wait that it reaches, and by each wait
 * that follows outside of shield(): who catches it only delays it. That is so too in a destructor,
 * which must catch it, or wait inside shield(). haft_io_fail and HAFT_THROW of C are no exceptions: only
 * catch (...) sees them, and must rethrow.
 *
 * Tasks that were started by haft_io_spawn of C, not from here, unwind as haft/io.h says.
 */
#ifndef HAFT_IO_HPP
#define HAFT_IO_HPP

/* C keeps the names of structs and functions apart; -Wshadow sees one hide the other. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include "io.h"
#pragma GCC diagnostic pop

#include <cerrno>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cxxabi.h>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace haft::io {

/* What a cancelled wait throws. */
struct __attribute__((visibility("default"))) cancelled : std::exception {
    const char *what() const noexcept override { return "haft: the task was cancelled"; }
};

namespace detail {

/* Passes a result of haft/io.h on, or throws the error that it is. */
template <std::signed_integral N>
N checked(N result, const char *what) {
    if (result == -ECANCELED)
        throw cancelled();
    if (result < 0)
        throw std::system_error(static_cast<int>(-result), std::generic_category(), what);
    return result;
}

/* True when it was done, false at the deadline. */
inline bool in_time(int result, const char *what) {
    return result != -ETIMEDOUT && checked(result, what) >= 0;
}

/* void as a value. */
template <typename T>
using kept = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <typename F>
auto call(F &function) -> kept<std::invoke_result_t<F &>> {
    if constexpr (std::is_void_v<std::invoke_result_t<F &>>)
        return function(), std::monostate();
    else
        return function();
}

/* A scope as the tasks in it see it: where their exceptions go. It is a task-local value. */
struct frame {
    haft_io_scope_t *scope = nullptr;
    haft_io_mutex_t mutex = {};
    std::exception_ptr failure;

    void fail(std::exception_ptr exception) {
        while (!haft_io_try_lock(&mutex))
            continue;
        if (failure == nullptr)
            failure = std::move(exception);
        haft_io_unlock(&mutex);
        haft_io_cancel(scope);
    }
};
__attribute__((visibility("default"))) inline char frame_key;

inline void need_run() {
    if (haft_io_local(&frame_key) == nullptr)
        throw std::logic_error("haft: a task or scope is started outside of haft::io::run()");
}

/* The frame of the current task is this one while it lives. */
class entered {
  public:
    explicit entered(frame &to) : before(haft_io_local(&frame_key)) {
        checked(haft_io_set_local(&frame_key, &to), "a scope");
    }
    ~entered() { haft_io_set_local(&frame_key, before); }
    entered(const entered &) = delete;
    entered &operator=(const entered &) = delete;

  private:
    void *before;
};

/* What a call left: a value, or an exception. */
template <typename T>
struct outcome {
    std::optional<kept<T>> value;
    std::exception_ptr failure;

    /* Calls the function; what it throws is kept, except for the unwinding of a fiber, which passes. */
    template <typename F>
    void take_from(F &function) {
        try {
            value.emplace(call(function));
        } catch (abi::__forced_unwind &) {
            throw;
        } catch (...) {
            failure = std::current_exception();
        }
    }
    bool was_cancelled() const {
        try {
            if (failure != nullptr)
                std::rethrow_exception(failure);
        } catch (const cancelled &) {
            return true;
        } catch (...) {
        }
        return false;
    }
    T take() {
        if (failure != nullptr)
            std::rethrow_exception(failure);
        if constexpr (!std::is_void_v<T>)
            return std::move(*value);
    }
};

template <typename F>
struct body {
    using result = std::invoke_result_t<F &>;
    F &function;
    bool first = false; /* of its task: no frame is around it */
    frame in = {};
    outcome<result> out = {};

    static void *enter(void *argument) {
        auto &self = *static_cast<body *>(argument);
        haft_io_return_cancels(true);
        self.in.scope = haft_io_this_scope();
        if (self.first)
            haft_io_set_local(&frame_key, &self.in);
        self.out.take_from(self.function);
        if (self.out.failure != nullptr && !self.out.was_cancelled())
            self.in.fail(self.out.failure);
        return nullptr;
    }
    /* When all tasks have ended. */
    result leave(int code, const char *what) {
        if (in.failure != nullptr)
            std::rethrow_exception(in.failure);
        checked(code, what);
        return out.take();
    }
};

template <typename F>
struct job {
    using result = std::invoke_result_t<F &>;
    F function;
    std::shared_ptr<outcome<result>> out;

    static void *start(void *argument) {
        std::unique_ptr<job> self(static_cast<job *>(argument));
        haft_io_return_cancels(true);
        self->out->take_from(self->function);
        if (self->out->failure != nullptr && !self->out->was_cancelled())
            static_cast<frame *>(haft_io_local(&frame_key))->fail(self->out->failure);
        return nullptr;
    }
};

using duration = std::chrono::nanoseconds;

} // namespace detail

/* ---- Time ----------------------------------------------------------------------------------- */

/* The clock of haft_io_now, which is virtual in a simulation. Its time points are deadlines. */
struct clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<clock>;
    static constexpr bool is_steady = true;
    static time_point now() noexcept { return time_point(duration(haft_io_now())); }
};

inline void sleep_until(clock::time_point deadline) {
    detail::checked(haft_io_sleep_until(deadline.time_since_epoch().count()), "sleep_until");
}
template <typename Rep, typename Period>
void sleep_for(std::chrono::duration<Rep, Period> time) {
    detail::checked(haft_io_sleep(std::chrono::ceil<detail::duration>(time).count()), "sleep_for");
}
inline void yield() {
    detail::checked(haft_io_yield(), "yield");
}

/* ---- Running and scopes --------------------------------------------------------------------- */

/* Runs the function as the first task, and returns what it returns, when all tasks have ended. Throws the
   first exception that left a task. */
template <std::invocable F>
std::invoke_result_t<F &>
run(F function, const haft_io_options_t &options = {
                    .threads = 1, .backend = nullptr, .stack_size = 0, .blocking_threads = 0}) {
    detail::body<F> body{function, true};
    int code = haft_io_run(&detail::body<F>::enter, &body, &options);
    return body.leave(code, "run");
}

/*
 * Calls the function in a new scope, and returns what it returns, when all tasks that were spawned there
 * have ended. After a cancel of the scope it throws `cancelled`, after its deadline std::system_error with
 * std::errc::timed_out.
 */
template <std::invocable F>
std::invoke_result_t<F &> scope_with(const haft_io_scope_options_t &options, F function) {
    detail::need_run();
    detail::body<F> body{function};
    /* Left after the tasks have ended: nobody shares the local value then, and it is replaced in place. */
    detail::entered here(body.in);
    int code = haft_io_scope_with(&options, &detail::body<F>::enter, &body, nullptr);
    return body.leave(code, "scope");
}
template <std::invocable F>
decltype(auto) scope(F function) {
    return scope_with(haft_io_scope_options_t{}, std::move(function));
}
template <std::invocable F>
decltype(auto) with_deadline(clock::time_point deadline, F function) {
    haft_io_scope_options_t options = {};
    options.deadline = deadline.time_since_epoch().count();
    return scope_with(options, std::move(function));
}
template <typename Rep, typename Period, std::invocable F>
decltype(auto) with_deadline(std::chrono::duration<Rep, Period> time, F function) {
    return with_deadline(clock::now() + std::chrono::ceil<detail::duration>(time),
                         std::move(function));
}
/* No cancel from outside reaches into the call: for cleanups that must wait. */
template <std::invocable F>
decltype(auto) shield(F function) {
    haft_io_scope_options_t options = {};
    options.shielded = true;
    return scope_with(options, std::move(function));
}

/* Cancels the innermost scope that the caller is in. */
inline void cancel() {
    haft_io_cancel(haft_io_this_scope());
}

/* ---- Tasks ---------------------------------------------------------------------------------- */

/* A task whose result is wanted. Joined once, by a task of the run, before its scope ends. */
template <typename T>
class [[nodiscard]] task {
  public:
    /* Waits for the end of the task; returns what its function returned, or throws what it threw. */
    T join() {
        if (handle == nullptr)
            throw std::logic_error("haft: a task is joined a second time");
        detail::checked(haft_io_join(std::exchange(handle, nullptr), nullptr), "join");
        return out->take();
    }

  private:
    template <std::invocable F>
    friend task<std::invoke_result_t<F &>> async(F function);
    haft_io_task_t *handle = nullptr;
    std::shared_ptr<detail::outcome<T>> out;
};

/* Starts the function as a task of the innermost scope that run(), scope() or their kin have opened. */
template <std::invocable F>
task<std::invoke_result_t<F &>> async(F function) {
    using result = std::invoke_result_t<F &>;
    detail::need_run();
    task<result> made;
    made.out = std::make_shared<detail::outcome<result>>();
    auto job = std::make_unique<detail::job<F>>(detail::job<F>{std::move(function), made.out});
    made.handle = haft_io_async(&detail::job<F>::start, job.get());
    if (made.handle == nullptr)
        throw std::bad_alloc();
    (void)job.release();
    return made;
}
/* The same for a task whose result is not wanted. */
template <std::invocable F>
void spawn(F function) {
    using result = std::invoke_result_t<F &>;
    detail::need_run();
    auto job = std::make_unique<detail::job<F>>(
        detail::job<F>{std::move(function), std::make_shared<detail::outcome<result>>()});
    detail::checked(haft_io_spawn(&detail::job<F>::start, job.get()), "spawn");
    (void)job.release();
}

/* ---- Synchronisation ------------------------------------------------------------------------ */

/* Lockable, with deadlines of `clock`: for std::lock_guard, std::unique_lock and std::scoped_lock. */
class mutex {
  public:
    mutex() = default;
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;
    void lock() { detail::checked(haft_io_lock(&held), "lock"); }
    bool try_lock() { return haft_io_try_lock(&held); }
    bool try_lock_until(clock::time_point deadline) {
        return detail::in_time(haft_io_lock_until(&held, deadline.time_since_epoch().count()),
                               "try_lock_until");
    }
    void unlock() { haft_io_unlock(&held); }

  private:
    haft_io_mutex_t held = {};
};

class event {
  public:
    void set() { haft_io_set_event(&state); }
    void clear() { haft_io_clear_event(&state); }
    void wait() { detail::checked(haft_io_wait_event(&state), "wait"); }

  private:
    haft_io_event_t state = {};
};

/* ---- Descriptors ---------------------------------------------------------------------------- */

/* Owns a descriptor, and closes it. Move-only. */
class descriptor {
  public:
    descriptor() = default;
    explicit descriptor(int owned) : number(owned) {}
    descriptor(descriptor &&other) noexcept : number(std::exchange(other.number, -1)) {}
    descriptor &operator=(descriptor &&other) noexcept {
        std::swap(number, other.number);
        return *this;
    }
    ~descriptor() { close(); }

    int get() const { return number; }
    explicit operator bool() const { return number >= 0; }
    /* Ends the waits of other tasks on it. */
    void close() noexcept {
        if (number >= 0)
            haft_io_close(std::exchange(number, -1));
    }
    /* How many bytes were read; 0 at the end. */
    std::size_t read(std::span<std::byte> into) const {
        return static_cast<std::size_t>(
            detail::checked(haft_io_read(number, into.data(), into.size()), "read"));
    }
    void write_all(std::span<const std::byte> bytes) const {
        detail::checked(haft_io_write_all(number, bytes.data(), bytes.size()), "write_all");
    }
    void write_all(std::string_view text) const { write_all(std::as_bytes(std::span(text))); }

  private:
    int number = -1;
};

class socket : public descriptor {
  public:
    using descriptor::descriptor;
    static socket connect(const std::string &host, std::uint16_t port) {
        return socket(detail::checked(haft_io_connect_tcp(host.c_str(), port), "connect"));
    }
};

/* A listening socket, and the range of the connections that it accepts, which has no end. */
class listener : public descriptor {
  public:
    listener(const std::string &host, std::uint16_t port, int backlog = 0)
        : descriptor(detail::checked(haft_io_listen_tcp(host.c_str(), port, backlog), "listen")) {}
    std::uint16_t port() const {
        return static_cast<std::uint16_t>(detail::checked(haft_io_port(get()), "port"));
    }
    socket accept() const { return socket(detail::checked(haft_io_accept(get()), "accept")); }

    class iterator {
      public:
        explicit iterator(const listener &in) : of(&in) {}
        socket operator*() const { return of->accept(); }
        iterator &operator++() { return *this; }
        bool operator==(std::default_sentinel_t) const { return false; }

      private:
        const listener *of;
    };
    iterator begin() const { return iterator(*this); }
    std::default_sentinel_t end() const { return {}; }
};

/* The lines of a stream, each with its '\n'; what follows the last one, without. A line is valid until the
   next. To be iterated once; the stream must outlive it. */
class lines {
  public:
    explicit lines(const descriptor &stream) : from(&stream) {}

    class iterator {
      public:
        explicit iterator(lines *in) : of(in) {}
        std::string_view operator*() const { return of->line; }
        iterator &operator++() {
            of->advance();
            return *this;
        }
        bool operator==(std::default_sentinel_t) const { return of->line.empty(); }

      private:
        lines *of;
    };
    iterator begin() {
        advance();
        return iterator(this);
    }
    std::default_sentinel_t end() const { return {}; }

  private:
    void advance() {
        buffer.erase(0, line.size());
        line = {};
        std::size_t looked = 0, end;
        while ((end = buffer.find('\n', looked)) == std::string::npos) {
            looked = buffer.size();
            buffer.resize(looked + 4096);
            std::size_t got =
                from->read(std::as_writable_bytes(std::span(buffer.data() + looked, 4096)));
            buffer.resize(looked + got);
            if (got == 0) {
                line = buffer;
                return;
            }
        }
        line = std::string_view(buffer).substr(0, end + 1);
    }

    const descriptor *from;
    std::string buffer;
    std::string_view line;
};

} // namespace haft::io

#endif
