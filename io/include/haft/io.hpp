// SPDX-License-Identifier: MIT
/*
 * Haft I/O for C++20: tasks, scopes, synchronisation and I/O over haft/io.h, headers only.
 *
 *     #include <haft/io.hpp>
 *     namespace io = haft::io;
 *
 *     int main() {
 *         io::listener listener("::", 7000);
 *         io::run([&] {
 *             io::supervise([&] { // one connection that fails does not end the others
 *                 for (io::socket connection : listener)
 *                     io::spawn([connection = std::move(connection)] {
 *                         for (std::string_view line : io::lines(connection))
 *                             connection.write_all(line);
 *                     });
 *             });
 *         });
 *     }
 *
 * Sections: time; running and scopes; tasks; several at once; stop tokens; values of tasks;
 * synchronisation; promises; channels; descriptors; sockets; files and blocking work; signals and
 * processes. haft/io.h says what a wait is, in which order waiters are served, and on which thread
 * a task runs; its functions work with everything here.
 *
 * A scope waits for its tasks after its body has returned. By then the local variables of the body
 * (or of run()'s body) are gone. So declare what tasks refer to outside of the scope, or capture it
 * by value, or join the tasks in the body.
 *
 * Errors are std::system_error with a code of the generic category, which compares with std::errc.
 * Functions ending in _until or _for give up at a time. Functions that the standard library has
 * under the same name return false then; the others throw std::errc::timed_out.
 *
 * Exceptions: an exception that leaves the body or a task of a scope cancels the scope; when all of
 * its tasks have ended, the scope throws the exception where it was opened. If there were several,
 * the scope throws the first and gives the others to scope_options::failures, or writes them to
 * standard error if that is not set. An exception that a join has thrown belongs to the joiner: the
 * scope throws it only if it leaves the body or a task again, or if the body is interrupted
 * afterwards.
 *
 * A cancel is the exception haft::io::cancelled, thrown by the wait that it interrupts and by every
 * later wait outside of shield(); so catching it only delays it. A wait in a destructor throws it,
 * too: the destructor must catch it, or wait inside shield(). `cancelled` ends a task quietly. A
 * cancelled scope returns its body's result if the body has returned; otherwise it throws
 * `cancelled`.
 *
 * haft_io_fail, and tasks started by C's haft_io_spawn, unwind without an exception object:
 * destructors run, and only catch (...) notices, which must rethrow.
 */
#ifndef HAFT_IO_HPP
#define HAFT_IO_HPP

/* The same test as in haft.hpp. */
#if __cplusplus <= 201703L
#    error "haft/io.hpp is C++20: compile with -std=c++20 or later"
#    include <haft/io.hpp is C++20>
#elif !defined(__cpp_exceptions)
#    error "haft/io.hpp needs exceptions: compile without -fno-exceptions"
#    include <haft/io.hpp needs exceptions>
#elif !__has_include(<stop_token>)
#    error "haft/io.hpp needs std::stop_token, which this standard library does not have"
#    include <haft/io.hpp needs std::stop_token>
#endif

#include "io_detail.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <future>
#include <initializer_list>
#include <iterator>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <ranges>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <tuple>

namespace haft::io {

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

/* ---- Running and scopes --------------------------------------------------------------------- */

struct run_options {
    int threads = 1;               /* number of threads that run tasks; 0: one for each processor */
    const char *backend = nullptr; /* see haft_io_run_options_t */
    std::size_t stack_size = 0;    /* of tasks and of scopes' bodies; 0: haft_stack_size() */
    int blocking_threads = 0;
    int dump_signal = 0;                  /* the signal on which the run dumps its tasks */
    std::chrono::nanoseconds watchdog{0}; /* a task that holds its thread for longer is reported */
    bool times_polls = false;
    bool moves = false; /* all tasks move between threads; see haft/io.h, "scopes" */
    bool dense = false; /* for very many tasks: small stacks; see haft_io_run_options_t */
    /* Tasks have thread-local variables of their own; see haft/io.h, "thread-locals". Where they
       cannot be had, run() and spawn() throw io::error with -ENOTSUP. */
    bool own_thread_locals = false;
    bool observed = false; /* other threads may look into the run; see haft_io_dump_run */
    const char *record = nullptr; /* the run is recorded in this file; see haft/io.h, "recording" */
    const char *replay = nullptr; /* the run is the one that was recorded in this file */
    const char *top = nullptr; /* a socket for haft-top; see haft_io_run_options_t */
    std::vector<std::exception_ptr> *failures = nullptr; /* as in scope_options */
};

template <typename T>
class task;

struct task_options {
    const char *name = nullptr;     /* for the dump; not copied; nullptr: the caller's name */
    bool moves = false;             /* even if its scope's tasks do not */
    bool spread = false;            /* start on the least loaded thread; for this and the next see
                                   haft_io_task_options_t */
    std::size_t stack_size = 0;     /* 0: as the run's */
    bool own_thread_locals = false; /* also if the run's other tasks have not */
};

/* An open scope: valid until it ends, for its body and its tasks. */
class scope_ref {
  public:
    explicit scope_ref(detail::frame &frame) : at{frame.scope, &frame} {}
    explicit scope_ref(const detail::home &home) : at(home) {}
    /* One that haft/io.h has opened, for a task that is in it or below it: an exception that leaves
       a task there is a failure of that scope, with HAFT_IO_BY_EXCEPTION and its text. */
    explicit scope_ref(haft_io_scope_t *scope) : at(detail::home::of(scope)) {}
    /* Cancels the body and the tasks of the scope. Only tasks of the run may call this. Does
       nothing for a scope outside of a run. */
    void cancel() const {
        if (at.scope != nullptr)
            haft_io_scope_cancel(at.scope);
    }
    /* Like the functions of these names, but in this scope. */
    template <std::invocable F>
    void spawn(F function) const {
        spawn(task_options{}, std::move(function));
    }
    template <std::invocable F>
    void spawn(task_options options, F function) const;
    template <std::invocable F>
    task<std::invoke_result_t<F &>> async(F function) const {
        return async(task_options{}, std::move(function));
    }
    template <std::invocable F>
    task<std::invoke_result_t<F &>> async(task_options options, F function) const;
    template <std::invocable F>
    task<std::invoke_result_t<F &>> async_handled(task_options options, F function) const;

  private:
    detail::home at;
};

/* The body of a scope: a function without parameters, or one that takes the scope. */
template <typename F>
concept scope_body = std::invocable<F &> || std::invocable<F &, scope_ref>;

/* Runs the body as the first task, waits until all tasks have ended, and returns the body's result
   or throws. */
template <scope_body F>
decltype(auto) run(const run_options &options, F function) {
    detail::body<F, scope_ref> body{function, options.failures, "run", true};
    haft_io_run_options_t given = {};
    given.threads = options.threads;
    given.backend = options.backend;
    given.stack_size = options.stack_size;
    given.blocking_threads = options.blocking_threads;
    given.dump_signal = options.dump_signal;
    given.watchdog = options.watchdog.count();
    given.times_polls = options.times_polls;
    given.moves = options.moves;
    given.dense = options.dense;
    given.own_thread_locals = options.own_thread_locals;
    given.observed = options.observed;
    given.record = options.record;
    given.replay = options.replay;
    given.top = options.top;
    return body.leave(haft_io_run_with(&given, &body.enter, &body), "run");
}
template <scope_body F>
decltype(auto) run(F function) {
    return io::run(run_options{}, std::move(function));
}

/* Like run(), for tests: repeatable, in virtual time (haft_io_simulate). */
struct simulation_options {
    std::uint64_t seed = 0;
    bool short_counts = false;
    bool network = false;
    bool files = false;
    unsigned faults_one_in = 0;
    unsigned switches_one_in = 0;
    std::int64_t date =
        0; /* when it begins: seconds since 1970 began (UTC); 0: the year 2025 begins */
};
template <scope_body F>
decltype(auto) simulate(simulation_options how, F function) {
    detail::body<F, scope_ref> body{function, nullptr, "simulation", true};
    haft_io_simulation_options_t given = {};
    given.seed = how.seed;
    given.short_counts = how.short_counts;
    given.network = how.network;
    given.files = how.files;
    given.faults_one_in = how.faults_one_in;
    given.switches_one_in = how.switches_one_in;
    given.date = how.date;
    return body.leave(haft_io_simulate_with(&given, &body.enter, &body), "simulate");
}

struct scope_options {
    const char *name = nullptr; /* for the dump; not copied */
    /* when the scope is cancelled; it then throws timed_out */
    clock::time_point deadline = forever;
    bool shielded = false; /* no cancel from outside reaches into it */
    std::vector<std::exception_ptr> *failures = nullptr; /* receives all exceptions, in order */
    bool moves = false; /* tasks in it, and in scopes below it, move between threads */
    /* Is called with each exception of a task, in that task, where it may wait. The scope then goes
       on, as the scope of a server with one task for each connection must. An exception that this
       function throws, or that the body throws, still ends the scope. */
    detail::failure_function on_failure = {};
};
/* For scope_options::on_failure: writes a line to standard error. */
inline void print_failure(const std::exception_ptr &failure, std::string_view task) {
    try {
        std::rethrow_exception(failure);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "haft: the task '%.*s' has failed: %s\n",
                     static_cast<int>(task.size()), task.data(), error.what());
    } catch (...) {
        std::fprintf(stderr, "haft: the task '%.*s' has failed\n", static_cast<int>(task.size()),
                     task.data());
    }
}

/*
 * Calls the body in a new scope, waits until all tasks that were spawned there have ended, and
 * returns the body's result or throws. Outside of a run there are no tasks and no deadlines: the
 * body is simply called.
 */
template <scope_body F>
decltype(auto) scope(const scope_options &options, F function) {
    haft_io_scope_options_t given = {};
    given.name = options.name;
    if (options.deadline != forever) /* 0 would mean no deadline */
        given.deadline = std::max(detail::deadline_of(options.deadline), std::int64_t(1));
    given.shielded = options.shielded;
    given.moves = options.moves;
    return detail::open_scope<F, scope_ref>(given, options.failures, function, nullptr,
                                            options.on_failure ? &options.on_failure : nullptr);
}
template <scope_body F>
decltype(auto) scope(F function) {
    return io::scope(scope_options{}, std::move(function));
}
/* A scope with a deadline: a time of any clock, which is read once, or a duration from now. Throws
   timed_out if the deadline interrupted the body or a task of the scope. If all of them had
   finished their work when the time came, this returns the body's result. */
template <typename Clock, typename Duration, scope_body F>
decltype(auto) with_deadline(std::chrono::time_point<Clock, Duration> deadline, F function) {
    scope_options options;
    options.deadline = clock::time_point(clock::duration(detail::deadline_of(deadline)));
    return io::scope(options, std::move(function));
}
template <typename Rep, typename Period, scope_body F>
decltype(auto) with_deadline(std::chrono::duration<Rep, Period> time, F function) {
    return io::with_deadline(from_now(time), std::move(function));
}
/* A scope that outlives the failure of a task; the function is told of each failure. */
template <scope_body F>
decltype(auto) supervise(detail::failure_function on_failure, F function) {
    scope_options options;
    options.on_failure = std::move(on_failure);
    return io::scope(options, std::move(function));
}
template <scope_body F>
decltype(auto) supervise(F function) {
    return io::supervise(print_failure, std::move(function));
}

/*
 * A deadline for the block in which the object lives, without a scope and so without a second
 * stack: when its time has come, the task's current wait throws std::errc::timed_out, and so does
 * every later wait in the block. See haft_io_deadline_set. Has no effect outside of a run.
 *
 *     io::deadline idle(30s);
 *     connection.read(buffer);
 */
class deadline {
  public:
    template <typename Rep, typename Period>
    explicit deadline(std::chrono::duration<Rep, Period> time) {
        set(time);
    }
    template <typename Clock, typename Duration>
    explicit deadline(std::chrono::time_point<Clock, Duration> time) {
        set(time);
    }
    deadline(const deadline &) = delete;
    deadline &operator=(const deadline &) = delete;
    ~deadline() { haft_io_deadline_end(&state); }
    /* Sets the deadline again, from now on. */
    template <typename Rep, typename Period>
    void set(std::chrono::duration<Rep, Period> time) {
        set(from_now(time));
    }
    template <typename Clock, typename Duration>
    void set(std::chrono::time_point<Clock, Duration> time) {
        haft_io_deadline_set(&state, detail::deadline_of(time));
    }
    bool passed() const { return haft_io_deadline_passed(&state); }

  private:
    haft_io_deadline_t state = {};
};

/* Calls the function where no cancel from outside reaches it: for cleanups that must wait. */
template <scope_body F>
decltype(auto) shield(F function) {
    scope_options options;
    options.shielded = true;
    return io::scope(options, std::move(function));
}

/* Cancels the innermost scope that the caller is in. Does nothing outside of a run. In a handler of
   haft/http.hpp it cancels the request: its tasks, and the handler, by io::cancelled. See
   haft_io_cancel. */
inline void cancel() {
    detail::checked(haft_io_cancel(), "cancel");
}
/* The innermost scope that the caller is in, opened by run(), scope() or their kin, or by
   haft/io.h. */
inline scope_ref this_scope() {
    detail::home here = detail::home::current();
    if (here.scope == nullptr)
        detail::throw_outside();
    return scope_ref(here);
}
/* The outermost scope of the run: for tasks that are to outlive the scopes around the call that
   starts them. */
inline scope_ref run_scope() {
    haft_io_scope_t *outermost = haft_io_run_scope();
    if (outermost == nullptr)
        detail::throw_outside();
    return scope_ref(outermost);
}

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
    haft_io_task_options_t given = {};
    given.scope = at.is_current && here == at.scope ? nullptr : at.scope;
    given.name = options.name;
    given.moves = options.moves;
    given.spread = options.spread;
    given.stack_size = options.stack_size;
    given.own_thread_locals = options.own_thread_locals;
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

/* ---- Synchronisation ------------------------------------------------------------------------ */

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

/* ---- Stop tokens ---------------------------------------------------------------------------- */

/* Calls the body in a scope that is cancelled when the token is stopped, by any thread. */
template <scope_body F>
decltype(auto) with_stop(std::stop_token token, F function) {
    event ended;
    std::stop_callback stopped(token, [&] { ended.set(); });
    return io::scope([&](scope_ref outside) -> decltype(auto) {
        outside.spawn([&, outside] {
            ended.wait();
            if (token.stop_requested())
                outside.cancel();
        });
        struct at_end {
            event &of;
            ~at_end() { of.set(); }
        } here{ended};
        return io::scope(std::ref(function));
    });
}

/* Calls the body with a token that is stopped when the surrounding scope is cancelled: for code
   that checks tokens, also on other threads. The cancelling thread stops the token, so the body
   need not wait to notice; if the scope has been cancelled before, the token is stopped from the
   beginning. Callbacks of the token run on the cancelling thread and must not wait. A deadline
   passes only when the thread looks at its timers: code that computes under one on a task's thread
   must yield now and then, or be called by call_blocking(). Outside of a run nothing stops the
   token. */
template <std::invocable<std::stop_token> F>
decltype(auto) with_stop_token(F function) {
    std::stop_source source;
    auto body = [&]() -> decltype(auto) { return std::invoke(function, source.get_token()); };
    return detail::open_scope<decltype(body), scope_ref>(
        {}, nullptr, body, std::make_unique<detail::stop_on_cancel>(source));
}

/* ---- Promises ------------------------------------------------------------------------------- */

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

/* ---- Channels ------------------------------------------------------------------------------- */

/*
 * Carries values, in order, between tasks and threads. A send waits while `capacity` values are
 * inside; with capacity 0, until a receiver takes the value. After close() nothing can be sent;
 * what is inside can still be received. It is also the range of what is received, until it is
 * closed:
 *     for (std::string name : names) ...
 * Destroy it when no task waits for it; values inside are destroyed, too.
 */
template <typename T>
class channel {
    /* The channel of C copies bytes. Values that cannot be copied so travel in boxes. */
    static constexpr bool boxed =
        !(std::is_trivially_copyable_v<T> && std::is_trivially_default_constructible_v<T>);
    using slot = std::conditional_t<boxed, T *, T>;

  public:
    explicit channel(std::size_t capacity = 0)
        : handle(haft_io_channel_new(sizeof(slot), capacity)) {
        if (handle == nullptr)
            throw std::bad_alloc();
    }
    channel(const channel &) = delete;
    channel &operator=(const channel &) = delete;
    ~channel() {
        slot inside{};
        if constexpr (boxed)
            while (haft_io_channel_try_receive(handle, &inside) == 0)
                delete inside;
        haft_io_channel_free(handle);
    }

    /* False: the channel has been closed. A value that was not sent stays the caller's, also after
       a deadline or a cancel, if T is assignable. */
    bool send(T &&value) { return send_until(forever, std::move(value)); }
    bool send(const T &value) { return send_until(forever, value); }
    template <typename Clock, typename Duration>
    bool send_until(std::chrono::time_point<Clock, Duration> time, T &&value) {
        parcel sent(value);
        return sent.was(haft_io_channel_send_until(handle, sent.at(), detail::deadline_of(time)),
                        value);
    }
    template <typename Clock, typename Duration>
    bool send_until(std::chrono::time_point<Clock, Duration> time, const T &value) {
        return send_until(time, T(value));
    }
    template <typename Rep, typename Period>
    bool send_for(std::chrono::duration<Rep, Period> time, T &&value) {
        return send_until(from_now(time), std::move(value));
    }
    template <typename Rep, typename Period>
    bool send_for(std::chrono::duration<Rep, Period> time, const T &value) {
        return send_until(from_now(time), value);
    }
    /* Sends without waiting. False: the channel is full, has no waiting receiver, or is closed; the
       value stays the caller's. */
    bool try_send(T &value) {
        parcel sent(value);
        int code = haft_io_channel_try_send(handle, sent.at());
        return sent.was(code == -EAGAIN ? -EPIPE : code, value);
    }
    bool try_send(T &&value) { return try_send(value); }

    /* std::nullopt: the channel has been closed and is empty. */
    std::optional<T> receive() { return receive_until(forever); }
    template <typename Clock, typename Duration>
    std::optional<T> receive_until(std::chrono::time_point<Clock, Duration> time) {
        slot got{};
        return opened(got, haft_io_channel_receive_until(handle, std::addressof(got),
                                                         detail::deadline_of(time)));
    }
    template <typename Rep, typename Period>
    std::optional<T> receive_for(std::chrono::duration<Rep, Period> time) {
        return receive_until(from_now(time));
    }
    /* Receives without waiting; std::nullopt also if there is no value now. */
    std::optional<T> try_receive() {
        slot got{};
        int code = haft_io_channel_try_receive(handle, std::addressof(got));
        return code == -EAGAIN ? std::nullopt : opened(got, code);
    }
    void close() { haft_io_channel_close(handle); }

    /* Receives only when it is asked whether there is a value. */
    class iterator {
      public:
        using iterator_concept = std::input_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        explicit iterator(channel &from) : of(&from) {}
        T &&operator*() const {
            look();
            return std::move(*value);
        }
        iterator &operator++() {
            look();
            value.reset();
            return *this;
        }
        void operator++(int) { ++*this; }
        bool operator==(std::default_sentinel_t) const {
            look();
            return !value.has_value();
        }

      private:
        void look() const {
            if (!value.has_value())
                if (std::optional<T> got = of->receive())
                    value.emplace(std::move(*got));
        }
        channel *of;
        mutable std::optional<T> value;
    };
    iterator begin() { return iterator(*this); }
    std::default_sentinel_t end() const { return {}; }

    /* For select(): a value to send, or space for a received one. */
    class parcel {
      public:
        explicit parcel(T &value) : inside(packed(value)) {}
        parcel(parcel &&other) noexcept : inside(std::move(other.inside)) {
            if constexpr (boxed)
                other.inside = nullptr;
        }
        ~parcel() {
            if constexpr (boxed)
                delete inside;
        }
        const void *at() const { return std::addressof(inside); }
        bool was(int code) {
            if (code == -EPIPE)
                return false;
            detail::checked(code, "send");
            if constexpr (boxed)
                inside = nullptr;
            return true;
        }
        /* A value that was not sent is moved back. */
        bool was(int code, T &value) {
            if constexpr (boxed && std::is_move_assignable_v<T>)
                if (code != 0)
                    value = std::move(*inside);
            return was(code);
        }

      private:
        static slot packed(T &value) {
            if constexpr (boxed)
                return new T(std::move(value));
            else
                return std::move(value);
        }
        slot inside;
    };

  private:
    template <typename U, typename F>
    friend struct on_receive;
    template <typename U, typename F>
    friend struct on_send;

    static std::optional<T> opened(slot &got, int code) {
        if (code == -EPIPE)
            return std::nullopt;
        detail::checked(code, "receive");
        if constexpr (boxed) {
            std::unique_ptr<T> box(got);
            return std::move(*box);
        } else {
            return std::move(got);
        }
    }
    haft_io_channel_t *handle;
};

/* A case of select(): receive, and call the function with the value, or with std::nullopt if the
   channel has been closed and is empty. A pointer to a channel may be nullptr: such a case is never
   chosen, so a loop sets the pointer of a closed channel to nullptr. */
template <typename T, typename F>
struct on_receive {
    on_receive(channel<T> *from, F call)
        : of(from != nullptr ? from->handle : nullptr), function(std::move(call)) {}
    on_receive(channel<T> &from, F call) : on_receive(std::addressof(from), std::move(call)) {}
    haft_io_select_case_t choice() {
        haft_io_select_case_t made = {};
        made.channel = of;
        made.receive = std::addressof(got);
        return made;
    }
    void done(int code) { function(channel<T>::opened(got, code)); }

  private:
    haft_io_channel_t *of;
    F function;
    typename channel<T>::slot got{};
};
/* A case of select(): send the value, and call the function with true; with false if the channel
   has been closed. */
template <typename T, typename F>
struct on_send {
    on_send(channel<T> *to, std::type_identity_t<T> value, F call)
        : of(to != nullptr ? to->handle : nullptr), sent(value), function(std::move(call)) {}
    on_send(channel<T> &to, std::type_identity_t<T> value, F call)
        : on_send(std::addressof(to), std::move(value), std::move(call)) {}
    haft_io_select_case_t choice() {
        haft_io_select_case_t made = {};
        made.channel = of;
        made.send = sent.at();
        return made;
    }
    void done(int code) { function(sent.was(code)); }

  private:
    haft_io_channel_t *of;
    typename channel<T>::parcel sent;
    F function;
};

/* A case of select(): call the function when the event is set. */
template <typename F>
struct on_event {
    on_event(event &awaited, F call) : of(&awaited), function(std::move(call)) {}
    haft_io_select_case_t choice() {
        haft_io_select_case_t made = {};
        made.event = of->native_handle();
        return made;
    }
    void done(int) { function(); }

  private:
    event *of;
    F function;
};

/*
 * Waits until one of the cases can be done, does it, and returns its index; if several can, no case
 * is passed over again and again. With a time: returns std::nullopt if that passes first. Cases are
 * on_receive, on_send, on_event, on_ready, on_signal.
 *     io::select(io::on_receive(numbers, [](std::optional<int> number) { ... }),
 *                io::on_send(words, "a word", [](bool sent) { ... }));
 */
template <typename Clock, typename Duration, typename... Cases>
std::optional<std::size_t> select_until(std::chrono::time_point<Clock, Duration> time,
                                        Cases &&...cases) {
    std::array<haft_io_select_case_t, sizeof...(Cases)> choices = {cases.choice()...};
    std::int64_t deadline = detail::deadline_of(time);
    int chosen = haft_io_select_until(choices.data(), choices.size(), deadline);
    if (chosen == -ETIMEDOUT && deadline != HAFT_IO_FOREVER)
        return std::nullopt;
    detail::checked(chosen, "select");
    std::size_t index = static_cast<std::size_t>(chosen), at = 0;
    ((at++ == index ? cases.done(choices[index].code) : void()), ...);
    return index;
}
template <typename Rep, typename Period, typename... Cases>
std::optional<std::size_t> select_for(std::chrono::duration<Rep, Period> time, Cases &&...cases) {
    return io::select_until(from_now(time), std::forward<Cases>(cases)...);
}
template <typename... Cases>
std::size_t select(Cases &&...cases) {
    return *io::select_until(forever, std::forward<Cases>(cases)...);
}

/* ---- Descriptors ---------------------------------------------------------------------------- */

/*
 * Bytes read into memory that the library lends (haft_io_read_lent); a range. Move-only; gives the
 * memory back. Empty at the end of the stream.
 *
 *     for (io::lent bytes; connection.read(bytes);)
 *         connection.write_all(bytes);
 */
class lent {
  public:
    lent() = default;
    lent(lent &&other) noexcept
        : first(std::exchange(other.first, nullptr)), count(std::exchange(other.count, 0)) {}
    lent &operator=(lent &&other) noexcept {
        lent moved(std::move(other)); /* the memory held until now is given back here */
        std::swap(first, moved.first);
        std::swap(count, moved.count);
        return *this;
    }
    ~lent() { haft_io_give_back(first); }

    const std::byte *data() const { return static_cast<const std::byte *>(first); }
    std::size_t size() const { return count; }
    bool empty() const { return count == 0; }
    const std::byte *begin() const { return data(); }
    const std::byte *end() const { return data() + count; }
    std::string_view text() const { return {static_cast<const char *>(first), count}; }

  private:
    friend class descriptor;
    const void *first = nullptr;
    std::size_t count = 0;
};

/* Owns a descriptor, and closes it. Move-only. Its functions work outside of a run, too, where they
   block. */
class descriptor {
  public:
    descriptor() = default;
    explicit descriptor(int owned) : number(owned) {}
    descriptor(descriptor &&other) noexcept : number(std::exchange(other.number, -1)) {}
    descriptor &operator=(descriptor &&other) noexcept {
        descriptor moved(std::move(other)); /* the descriptor held until now is closed here */
        std::swap(number, moved.number);
        return *this;
    }
    ~descriptor() { close(); }

    int get() const { return number; }
    int release() { return std::exchange(number, -1); }
    explicit operator bool() const { return number >= 0; }
    /* Closes the descriptor. Waits of other tasks on it end with std::errc::bad_file_descriptor. */
    void close() noexcept {
        if (number >= 0)
            haft_io_close(std::exchange(number, -1));
    }

    /* Returns how many bytes were read; 0 at the end of the stream. */
    std::size_t read(std::span<std::byte> into) const {
        return detail::counted(haft_io_read(number, into.data(), into.size()), "read");
    }
    std::size_t read(std::span<char> into) const { return read(std::as_writable_bytes(into)); }
    std::size_t read(std::span<const iovec> into) const {
        return detail::counted(haft_io_readv(number, into.data(), into.size()), "read");
    }
    /* Gives the memory of `into` back, then waits and reads. False at the end of the stream. */
    bool read(lent &into) const {
        into.count = 0;
        into.count = detail::counted(haft_io_read_lent(number, &into.first), "read");
        return into.count != 0;
    }
    /* Reads everything up to the end of the stream. */
    std::string read_all() const {
        std::string text;
        for (std::size_t size = 0, got = 1; got != 0; size += got) {
            text.resize(size + 4096);
            got = read(std::span(text).subspan(size));
            text.resize(size + got);
        }
        return text;
    }
    /* Fewer bytes than there is room for only at the end. */
    std::size_t read_all(std::span<std::byte> into) const {
        return detail::counted(haft_io_read_all(number, into.data(), into.size()), "read_all");
    }
    /* Returns how many bytes were written, at least one. */
    std::size_t write(std::span<const std::byte> bytes) const {
        return detail::counted(haft_io_write(number, bytes.data(), bytes.size()), "write");
    }
    std::size_t write(std::span<const iovec> parts) const {
        return detail::counted(haft_io_writev(number, parts.data(), parts.size()), "write");
    }
    void write_all(std::span<const std::byte> bytes) const {
        detail::checked(haft_io_write_all(number, bytes.data(), bytes.size()), "write_all");
    }
    void write_all(std::string_view text) const { write_all(std::as_bytes(std::span(text))); }
    /* Waits for any of these events of poll(2); returns the ones that have come. */
    short wait_ready(short events) const {
        return static_cast<short>(
            detail::checked(haft_io_wait_ready(number, events), "wait_ready"));
    }
    /* The same; 0: the time has come. */
    template <typename Clock, typename Duration>
    short wait_ready_until(short events, std::chrono::time_point<Clock, Duration> time) const {
        int code = haft_io_wait_ready_until(number, events, detail::deadline_of(time));
        return detail::in_time(code, "wait_ready") ? static_cast<short>(code) : short(0);
    }

  private:
    int number = -1;
};

/* A case of select(): any of these events of poll(2) has come; the function gets the ones that have
   come. */
template <typename F>
struct on_ready {
    on_ready(const descriptor &awaited, short wanted, F call)
        : number(awaited.get()), events(wanted), function(std::move(call)) {}
    haft_io_select_case_t choice() {
        haft_io_select_case_t made = {};
        made.descriptor = number;
        made.events = events;
        return made;
    }
    void done(int came) { function(static_cast<short>(came)); }

  private:
    int number;
    short events;
    F function;
};

struct pipe_ends {
    descriptor read, write;
};
inline pipe_ends pipe() {
    int ends[2];
    detail::checked(haft_io_pipe(ends), "pipe");
    return {descriptor(ends[0]), descriptor(ends[1])};
}

/* The lines of a stream, each with its '\n'; bytes after the last '\n' are a line without one. A
   line is valid until the next. A line longer than `most`, counting its '\n', throws
   std::length_error. The stream must outlive this object. */
class lines {
  public:
    explicit lines(const descriptor &stream, std::size_t most = 1 << 20)
        : from(&stream), longest(std::min(most, std::string().max_size() - 1)) {}
    explicit lines(const descriptor &&, std::size_t = 0) = delete;

    class iterator {
      public:
        using iterator_concept = std::input_iterator_tag;
        using value_type = std::string_view;
        using difference_type = std::ptrdiff_t;
        explicit iterator(lines &in) : of(&in) {}
        std::string_view operator*() const { return of->current(); }
        iterator &operator++() {
            of->advance();
            return *this;
        }
        void operator++(int) { of->advance(); }
        bool operator==(std::default_sentinel_t) const { return of->current().empty(); }

      private:
        lines *of;
    };
    /* Continues at the line where another iterator stopped. */
    iterator begin() {
        passed = false;
        return iterator(*this);
    }
    std::default_sentinel_t end() const { return {}; }
    /* Reads, as descriptor::read, what follows the line that an iterator last returned, and
       invalidates that line. The next line begins after the bytes that this has read. */
    std::size_t read(std::span<std::byte> into) {
        prepare();
        std::size_t got =
            detail::counted(haft_io_reader_read(&reader, into.data(), into.size()), "read");
        size = 0;
        passed = true;
        return got;
    }
    /* Fewer bytes than there is room for only at the end. */
    std::size_t read_all(std::span<std::byte> into) {
        std::size_t got = 0;
        for (std::size_t more = 1; got < into.size() && more != 0; got += more)
            more = read(into.subspan(got));
        return got;
    }

  private:
    void prepare() {
        reader.descriptor = from->get();
        reader.memory = buffer.data();
        reader.size = buffer.size();
    }
    /* Reads only when it is asked for a line. */
    std::string_view current() {
        passed = false;
        while (size == 0) {
            prepare();
            char *line;
            ssize_t got = haft_io_reader_line(&reader, &line);
            if (got != -EMSGSIZE) {
                size = detail::counted(got, "read");
                break;
            }
            if (buffer.size() > longest)
                throw std::length_error("haft: a line is too long");
            buffer.resize(std::min(2 * buffer.size() + 4096, longest + 1));
        }
        return std::string_view(buffer).substr(reader.start - size, size);
    }
    void advance() {
        if (!passed)
            current();
        passed = false;
        size = 0;
    }

    const descriptor *from;
    std::size_t longest;
    std::string buffer;
    haft_io_reader_t reader = {};
    std::size_t size = 0; /* of the current line; 0: not read yet */
    bool passed = false;  /* the current line was read past before an iterator continues */
};

/* Gathers what is written to a stream, which must outlive this object; flush() writes it. The
   destructor does not wait, so bytes that were never flushed are lost. */
class writer {
  public:
    explicit writer(const descriptor &stream, std::size_t size = 1 << 14) : to(&stream) {
        memory.resize(size);
    }
    explicit writer(const descriptor &&, std::size_t = 0) = delete;
    void write(std::span<const std::byte> bytes) {
        prepare();
        detail::checked(haft_io_writer_write(&state, bytes.data(), bytes.size()), "write");
    }
    void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
    void flush() {
        prepare();
        detail::checked(haft_io_writer_flush(&state), "flush");
    }
    std::size_t gathered() const { return state.end - state.start; }

  private:
    /* Either object may have been moved. */
    void prepare() {
        state.descriptor = to->get();
        state.memory = memory.data();
        state.size = memory.size();
    }
    const descriptor *to;
    std::string memory;
    haft_io_writer_t state = {};
};

/* ---- Sockets -------------------------------------------------------------------------------- */

/* An address of the Internet, or the path of a Unix socket. May be the key of a map. */
class address {
  public:
    address() = default;
    address(const sockaddr *from, socklen_t length) : used(length) {
        if (length > sizeof store)
            throw std::invalid_argument("haft: an address is too long");
        std::memcpy(&store, from, length);
    }
    const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&store); }
    sockaddr *get() { return reinterpret_cast<sockaddr *>(&store); }
    socklen_t size() const { return used; }
    socklen_t *room() {
        used = sizeof store;
        return &used;
    }
    int family() const { return store.ss_family; }
    bool operator==(const address &other) const { return bytes() == other.bytes(); }
    auto operator<=>(const address &other) const { return bytes() <=> other.bytes(); }
    std::uint16_t port() const {
        if (family() == AF_INET)
            return ntohs(reinterpret_cast<const sockaddr_in *>(&store)->sin_port);
        return family() == AF_INET6
                   ? ntohs(reinterpret_cast<const sockaddr_in6 *>(&store)->sin6_port)
                   : 0;
    }
    /* The host without the port: "127.0.0.1". */
    std::string host() const {
        char name[NI_MAXHOST] = "";
        getnameinfo(get(), used, name, sizeof name, nullptr, 0, NI_NUMERICHOST);
        return name;
    }

  private:
    std::string_view bytes() const {
        return {reinterpret_cast<const char *>(&store), std::min<std::size_t>(used, sizeof store)};
    }
    sockaddr_storage store = {};
    socklen_t used = 0;
};

namespace detail {
template <typename Call>
address address_by(Call call, const descriptor &of, const char *what) {
    address result;
    if (call(of.get(), result.get(), result.room()) != 0)
        checked(-errno, what);
    return result;
}
inline address own_address_of(const descriptor &socket) {
    return address_by(&::getsockname, socket, "own_address");
}
} // namespace detail

/* The addresses of a host and a service or port, either of which may be empty. If it is unknown,
   this throws a std::system_error with a code EAI_... of netdb.h, in the category "resolve". So do
   sockets that connect, and listeners that listen, by name. */
inline std::vector<address> resolve(const std::string &host, const std::string &service,
                                    int type = SOCK_STREAM) {
    addrinfo hints = {}, *found = nullptr;
    hints.ai_socktype = type;
    hints.ai_flags = host.empty() ? AI_PASSIVE : 0;
    int code = haft_io_resolve(host.empty() ? nullptr : host.c_str(),
                               service.empty() ? nullptr : service.c_str(), &hints, &found);
    detail::checked(code, host.c_str());
    std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
    std::vector<address> result;
    for (; found != nullptr; found = found->ai_next)
        result.emplace_back(found->ai_addr, found->ai_addrlen);
    return result;
}

/* A connection. */
class socket : public descriptor {
  public:
    using descriptor::descriptor;
    static socket connect(const std::string &host, std::uint16_t port) {
        return socket(detail::checked(haft_io_connect_tcp(host.c_str(), port), [&] {
            return "connect to " + host + ", port " + std::to_string(port);
        }));
    }
    static socket connect_unix(const std::string &path) {
        return socket(detail::checked(haft_io_connect_unix(path.c_str()),
                                      [&] { return "connect to " + path; }));
    }
    /* The two ends of a pair of Unix sockets. */
    static std::pair<socket, socket> pair(int type = SOCK_STREAM) {
        int ends[2];
        detail::checked(haft_io_socket_pair(AF_UNIX, type, 0, ends), "pair");
        return {socket(ends[0]), socket(ends[1])};
    }

    /* Like recv(2) and send(2), with their flags. */
    std::size_t receive(std::span<std::byte> into, int flags = 0) const {
        return detail::counted(haft_io_receive(get(), into.data(), into.size(), flags), "receive");
    }
    std::size_t send(std::span<const std::byte> bytes, int flags = 0) const {
        return detail::counted(haft_io_send(get(), bytes.data(), bytes.size(), flags), "send");
    }
    /* The addresses of the peer and of this end. Not for simulated sockets. */
    address peer() const { return detail::address_by(&::getpeername, *this, "peer"); }
    address own_address() const { return detail::own_address_of(*this); }
    /* Ends the output: the peer reads the end of the stream. */
    void shutdown(int how = SHUT_WR) const {
        detail::checked(haft_io_shutdown(get(), how), "shutdown");
    }
    /* Pass a descriptor over a Unix socket. The sender keeps its own; the receiver gets a new one
       for the same file, or std::nullopt at the end of the stream. */
    void send_descriptor(const descriptor &passed) const {
        detail::checked(haft_io_send_descriptor(get(), passed.get()), "send_descriptor");
    }
    std::optional<descriptor> receive_descriptor() const {
        int got = haft_io_receive_descriptor(get());
        if (got == -EPIPE)
            return std::nullopt;
        return descriptor(detail::checked(got, "receive_descriptor"));
    }
};

/* See haft_io_listen_options_t. */
struct listen_options {
    int backlog = 0;
    bool reuse_port = false;
};

/* A listening socket, which is also the endless range of the connections that it accepts. */
class listener : public descriptor {
  public:
    /* `host` is a numeric address ("::" for all addresses) or a name. For `port` 0 the system
       chooses a port. `backlog` 0 means the system's maximum. */
    listener(const std::string &host, std::uint16_t port, int backlog = 0)
        : descriptor(detail::checked(haft_io_listen_tcp(host.c_str(), port, backlog), [&] {
              return "listen at " + host + ", port " + std::to_string(port);
          })) {}
    listener(const std::string &host, std::uint16_t port, const listen_options &how)
        : descriptor(listen_with(how, host, port)) {}
    static listener unix_path(const std::string &path, int backlog = 0) {
        return listener(detail::checked(haft_io_listen_unix(path.c_str(), backlog),
                                        [&] { return "listen at " + path; }));
    }
    std::uint16_t port() const {
        return static_cast<std::uint16_t>(detail::checked(haft_io_port(get()), "port"));
    }
    address own_address() const { return detail::own_address_of(*this); }
    socket accept() const { return socket(detail::checked(haft_io_accept(get()), "accept")); }

    /* Accepts only when it is asked for a connection. */
    class iterator {
      public:
        using iterator_concept = std::input_iterator_tag;
        using value_type = socket;
        using difference_type = std::ptrdiff_t;
        explicit iterator(const listener &in) : of(&in) {}
        socket &&operator*() const {
            if (!accepted.has_value())
                accepted = of->accept();
            return std::move(*accepted);
        }
        iterator &operator++() {
            accepted.reset();
            return *this;
        }
        void operator++(int) { ++*this; }
        bool operator==(std::default_sentinel_t) const { return false; }

      private:
        const listener *of;
        mutable std::optional<socket> accepted;
    };
    iterator begin() const { return iterator(*this); }
    std::default_sentinel_t end() const { return {}; }

  private:
    explicit listener(int owned) : descriptor(owned) {}
    static int listen_with(const listen_options &how, const std::string &host, std::uint16_t port) {
        haft_io_listen_options_t options = {};
        options.backlog = how.backlog;
        options.reuse_port = how.reuse_port;
        return detail::checked(haft_io_listen_tcp_with(&options, host.c_str(), port), [&] {
            return "listen at " + host + ", port " + std::to_string(port);
        });
    }
};

/* A UDP socket. */
class datagrams : public descriptor {
  public:
    /* Binds it to this local address; for port 0 the system chooses a port. */
    explicit datagrams(const address &local)
        : descriptor(detail::checked(haft_io_socket(local.family(), SOCK_DGRAM, 0), "datagrams")) {
        detail::checked(haft_io_bind(get(), local.get(), local.size()), "datagrams");
    }
    datagrams(const std::string &host, std::uint16_t port)
        : datagrams(resolve(host, std::to_string(port), SOCK_DGRAM).at(0)) {}
    std::uint16_t port() const {
        return static_cast<std::uint16_t>(detail::checked(haft_io_port(get()), "port"));
    }
    address own_address() const { return detail::own_address_of(*this); }
    /* Returns how many bytes were received, and stores the sender if that is wanted. The rest of a
       datagram longer than the buffer is lost. */
    std::size_t receive(std::span<std::byte> into, address *from = nullptr) const {
        return detail::counted(haft_io_receive_from(get(), into.data(), into.size(), 0,
                                                    from != nullptr ? from->get() : nullptr,
                                                    from != nullptr ? from->room() : nullptr),
                               "receive");
    }
    void send(std::span<const std::byte> bytes, const address &to) const {
        detail::checked(haft_io_send_to(get(), bytes.data(), bytes.size(), 0, to.get(), to.size()),
                        "send");
    }
};

/* ---- Files and blocking work ---------------------------------------------------------------- */

namespace detail {
template <typename F>
struct blocking_call {
    F function;
    outcome<std::invoke_result_t<F &>> out = {};

    static void make(void *argument) {
        auto &self = *static_cast<blocking_call *>(argument);
        self.out.take_from(self.function);
    }
    static void leave(void *argument) { delete static_cast<blocking_call *>(argument); }
};
} // namespace detail

/* Calls the function on a thread where it may block, and returns its result or throws its
   exception. A cancel waits for a call that has begun; with_stop_token() lets the call notice the
   cancel. */
template <std::invocable F>
std::invoke_result_t<F &> call_blocking(F function) {
    detail::blocking_call<F &> call{function};
    detail::checked(haft_io_call_blocking(call.make, &call), "call_blocking");
    return call.out.take();
}

/* The same, but a cancel does not wait for a call that has begun: the function goes on alone, its
   result or exception is destroyed, and the end of the run waits for it. So the function must not
   refer to anything that may end before it. */
template <std::invocable F>
std::invoke_result_t<F &> call_or_leave(F function) {
    auto *call = new detail::blocking_call<F>{std::move(function)};
    detail::checked(haft_io_call_or_leave(call->make, call, call->leave), "call_or_leave");
    return std::unique_ptr<detail::blocking_call<F>>(call)->out.take();
}

/* A file. It is also a descriptor, with a position. */
class file : public descriptor {
  public:
    using descriptor::descriptor;
    /* Like open(2). */
    explicit file(const std::string &path, int flags = O_RDONLY, mode_t mode = 0666)
        : descriptor(checked_open(path, flags, mode)) {}
    std::size_t pread(std::int64_t offset, std::span<std::byte> into) const {
        return detail::counted(haft_io_pread(get(), into.data(), into.size(), offset), "pread");
    }
    std::size_t pwrite(std::int64_t offset, std::span<const std::byte> bytes) const {
        return detail::counted(haft_io_pwrite(get(), bytes.data(), bytes.size(), offset), "pwrite");
    }
    /* Returns when the data is on the disk. */
    void fsync() const { detail::checked(haft_io_fsync(get()), "fsync"); }
    /* Sends bytes from `offset`, which it advances, to a socket without copying them through the
       program. Returns how many; 0 at the end of the file. */
    std::size_t send_to(const socket &to, std::int64_t &offset, std::size_t most) const {
        return detail::counted(haft_io_send_file(to.get(), get(), &offset, most), "send_to");
    }

  private:
    static int checked_open(const std::string &path, int flags, mode_t mode) {
        return detail::checked(haft_io_open(path.c_str(), flags, mode), path.c_str());
    }
};

/* Like mkdir(2), remove(3), rename(2), stat(2); the names in a directory, sorted, without "." and
   "..". */
inline void mkdir(const std::string &path, mode_t mode = 0777) {
    detail::checked(haft_io_mkdir(path.c_str(), mode), path.c_str());
}
inline void remove(const std::string &path) {
    detail::checked(haft_io_remove(path.c_str()), path.c_str());
}
inline void rename(const std::string &from, const std::string &to) {
    detail::checked(haft_io_rename(from.c_str(), to.c_str()), from.c_str());
}
inline struct ::stat stat(const std::string &path) {
    struct stat result = {};
    detail::checked(haft_io_stat(path.c_str(), &result), path.c_str());
    return result;
}
inline std::vector<std::string> list_directory(const std::string &path) {
    dirent **entries = nullptr;
    int count = detail::checked(haft_io_list_directory(path.c_str(), &entries), path.c_str());
    auto free_all = [count](dirent **all) {
        std::for_each_n(all, count, std::free);
        std::free(all);
    };
    std::unique_ptr<dirent *, decltype(free_all)> owned(entries, free_all);
    std::vector<std::string> names;
    std::for_each_n(entries, count, [&](const dirent *entry) {
        std::string name = entry->d_name;
        if (name != "." && name != "..")
            names.push_back(std::move(name));
    });
    return names;
}

/* ---- Signals and processes ------------------------------------------------------------------ */

/* Blocks these signals for the calling thread and the threads started afterwards; make this object
   before run(). The signals stay blocked. */
class signals {
  public:
    signals(std::initializer_list<int> numbers) {
        sigemptyset(&set);
        for (int number : numbers)
            sigaddset(&set, number);
        if (int code = pthread_sigmask(SIG_BLOCK, &set, nullptr))
            detail::checked(-code, "signals");
    }
    /* Waits for the next signal and returns its number; a signal that came while no task waited is
       returned at once. */
    int wait() const { return detail::checked(haft_io_signal_wait(&set), "wait"); }
    const sigset_t *native_handle() const { return &set; }

  private:
    sigset_t set;
};
/* A case of select(): one of the signals has come; the function gets its number. */
template <typename F>
struct on_signal {
    on_signal(const signals &awaited, F call) : of(&awaited), function(std::move(call)) {}
    haft_io_select_case_t choice() {
        haft_io_select_case_t made = {};
        made.signals = of->native_handle();
        return made;
    }
    void done(int number) { function(number); }

  private:
    const signals *of;
    F function;
};

/* The standard streams of a child; nullptr: the caller's own. */
struct streams {
    const descriptor *in = nullptr, *out = nullptr, *error = nullptr;
};

struct process_options {
    using strings = std::vector<std::string>;
    std::optional<strings> environment = {}; /* "NAME=value"; std::nullopt: the caller's */
    std::string folder = {};                 /* its working directory; empty: the caller's */
    /* the child leads a process group of its own, for kill_group() */
    bool group = false;
};

/* A child process. One that was never waited for remains a zombie, as in C. */
class process {
  public:
    /* Starts a program, which is searched in the caller's PATH, with its arguments. */
    explicit process(const std::vector<std::string> &arguments, const streams &its = {},
                     const process_options &options = {}) {
        auto number_of = [](const descriptor *stream) {
            return stream != nullptr ? stream->get() : -1;
        };
        int numbers[3] = {number_of(its.in), number_of(its.out), number_of(its.error)};
        haft_io_process_options_t given = {};
        given.streams = numbers;
        std::vector<const char *> environment;
        if (options.environment.has_value()) {
            environment = texts_of(*options.environment);
            given.environment = environment.data();
        }
        given.folder = options.folder.empty() ? nullptr : options.folder.c_str();
        given.group = options.group;
        number =
            detail::checked(haft_io_process_start_with(&given, texts_of(arguments).data()), [&] {
                return "process " + (arguments.empty() ? "without a name" : arguments[0]);
            });
    }
    pid_t id() const { return number; }
    /* Waits for the end of the process; may be called once. The status is that of waitpid(2). */
    int wait() const {
        int status = 0;
        detail::checked(haft_io_process_wait(number, &status), "wait");
        return status;
    }
    void kill(int signal) const { send(number, signal); }
    /* Sends the signal to the process and all that it has started, if the options gave it a
       group. */
    void kill_group(int signal) const { send(-number, signal); }

  private:
    static void send(pid_t whom, int signal) {
        if (::kill(whom, signal) != 0)
            detail::checked(-errno, "kill");
    }
    static std::vector<const char *> texts_of(const std::vector<std::string> &strings) {
        std::vector<const char *> texts;
        for (const std::string &each : strings)
            texts.push_back(each.c_str());
        texts.push_back(nullptr);
        return texts;
    }

    pid_t number = -1;
};

} // namespace haft::io

#endif
