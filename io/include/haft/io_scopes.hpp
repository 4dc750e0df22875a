// SPDX-License-Identifier: MIT
/*
 * Haft I/O for C++20: runs, simulations and scopes. Part of haft/io.hpp, which includes it.
 *
 * Each function here calls a body, waits until the tasks that were started in it have ended, and
 * then returns the body's result or throws one exception. detail::body does that for all of them.
 */
#ifndef HAFT_IO_SCOPES_HPP
#define HAFT_IO_SCOPES_HPP

#include "io_options.hpp"
#include "io_time.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace haft::io {

/* See haft_io_run_options_t. Where tasks cannot have thread-local variables of their own
   (haft/io.h, "thread-locals"), run() and spawn() throw std::errc::not_supported. */
#define HAFTI_IO_FIELDS(FIELD, OWN)                                                                \
    FIELD(int, threads, 1) /* number of threads that run tasks; 0: one for each processor */       \
    FIELD(const char *, backend, nullptr)                                                          \
    FIELD(std::size_t, stack_size, 0) /* of tasks and of scopes' bodies; 0: haft_stack_size() */   \
    FIELD(int, blocking_threads, 0)                                                                \
    FIELD(int, dump_signal, 0) /* the signal on which the run dumps its tasks */                   \
    /* a task that holds its thread for longer is reported */                                      \
    FIELD(std::chrono::nanoseconds, watchdog, {})                                                  \
    FIELD(bool, times_polls, false)                                                                \
    FIELD(bool, moves, false) /* all tasks move between threads; see haft/io.h, "scopes" */        \
    FIELD(bool, dense, false) /* for very many tasks: small stacks; see haft_io_run_options_t */   \
    FIELD(bool, own_thread_locals, false)                                                          \
    FIELD(bool, observed, false) /* other threads may look into the run; see haft_io_dump_run */   \
    /* the run is recorded in this file; see haft/io.h, "recording" */                             \
    FIELD(const char *, record, nullptr)                                                           \
    FIELD(const char *, replay, nullptr) /* the run is the one that was recorded in this file */   \
    /* a folder for requests that fail, and how large the record of one may get */                 \
    FIELD(const char *, keep_requests, nullptr)                                                    \
    FIELD(std::size_t, kept_size, 0)                                                               \
    FIELD(const char *, top, nullptr) /* a socket for haft-top; see haft_io_run_options_t */       \
    OWN(std::vector<std::exception_ptr> *, failures, nullptr) /* as in scope_options */
struct run_options {
    HAFT_IO_OPTIONS(haft_io_run_options_t, HAFTI_IO_FIELDS)
};
#undef HAFTI_IO_FIELDS

template <typename T>
class task;

/* See haft_io_task_options_t. */
#define HAFTI_IO_FIELDS(FIELD, OWN)                                                                \
    FIELD(const char *, name, nullptr) /* for the dump; not copied; nullptr: the caller's name */  \
    FIELD(bool, moves, false)          /* even if its scope's tasks do not */                      \
    /* It starts on the least loaded thread; for this and the next see haft_io_task_options_t. */  \
    FIELD(bool, spread, false)                                                                     \
    FIELD(std::size_t, stack_size, 0)     /* 0: as the run's */                                    \
    FIELD(bool, own_thread_locals, false) /* also if the run's other tasks have not */
struct task_options {
    HAFT_IO_OPTIONS(haft_io_task_options_t, HAFTI_IO_FIELDS)
};
#undef HAFTI_IO_FIELDS

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
    haft_io_run_options_t given = options.as_c();
    return body.leave(haft_io_run_with(&given, &body.enter, &body), "run");
}
template <scope_body F>
decltype(auto) run(F function) {
    return io::run(run_options{}, std::move(function));
}

/* Like run(), for tests: repeatable, in virtual time (haft_io_simulate). */
#define HAFTI_IO_FIELDS(FIELD, OWN)                                                                \
    FIELD(std::uint64_t, seed, 0)                                                                  \
    FIELD(bool, short_counts, false)                                                               \
    FIELD(bool, network, false)                                                                    \
    FIELD(bool, files, false)                                                                      \
    FIELD(unsigned, faults_one_in, 0)                                                              \
    FIELD(unsigned, switches_one_in, 0)                                                            \
    /* When it begins: seconds since 1970 began (UTC); 0: the year 2025 begins. */                 \
    FIELD(std::int64_t, date, 0)
struct simulation_options {
    HAFT_IO_OPTIONS(haft_io_simulation_options_t, HAFTI_IO_FIELDS)
};
#undef HAFTI_IO_FIELDS
template <scope_body F>
decltype(auto) simulate(simulation_options how, F function) {
    detail::body<F, scope_ref> body{function, nullptr, "simulation", true};
    haft_io_simulation_options_t given = how.as_c();
    return body.leave(haft_io_simulate_with(&given, &body.enter, &body), "simulate");
}

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
 * A run in steps, for a thread whose loop is another library's: see haft_io_stepper_new.
 *
 *     haft::io::stepper tasks([&] { server.serve({.port = 8080}); });
 *     while (tasks.step())
 *         wait until tasks.descriptor() is readable, or the time is tasks.deadline()
 *     tasks.end();
 *
 * The thread that makes it steps and ends it.
 */
template <scope_body F>
class stepper {
  public:
    explicit stepper(F main) : stepper(run_options{}, std::move(main)) {}
    stepper(const run_options &options, F main)
        : function(std::move(main)), called{function, options.failures, "run", true} {
        haft_io_run_options_t given = options.as_c();
        own = haft_io_stepper_new_with(&given, &called.enter, &called);
        if (own == nullptr)
            throw std::bad_alloc();
    }
    stepper(const stepper &) = delete;
    stepper &operator=(const stepper &) = delete;
    /* Ends the run, too; its exception is then a line on standard error. */
    ~stepper() {
        if (own == nullptr)
            return;
        try {
            end();
        } catch (...) {
            print_failure(std::current_exception(), "run");
        }
    }

    /* Runs all tasks that can go on; before that it waits so long, at most, for something to do.
       False: the run has ended. */
    bool step(std::chrono::nanoseconds timeout = {}) {
        return own != nullptr &&
               detail::checked(haft_io_stepper_step(own, timeout.count()), "step") == 1;
    }
    /* The descriptor stays the same from the first step to the end of the run; -1: before or after.
       The time is to be asked for after each step; `forever`: no task waits for one. */
    int descriptor() const { return own != nullptr ? haft_io_stepper_descriptor(own) : -1; }
    clock::time_point deadline() const {
        return own != nullptr ? clock::time_point(clock::duration(haft_io_stepper_deadline(own)))
                              : forever;
    }
    /* Steps until the run has ended, and returns the body's result or throws, as run() does. To be
       called once. Where a step is refused, as on another thread, it throws what step() does, and
       the run is as it was. */
    decltype(auto) end() {
        while (step(std::chrono::nanoseconds(HAFT_IO_FOREVER))) {
        }
        return called.leave(haft_io_stepper_end(std::exchange(own, nullptr)), "run");
    }

  private:
    F function;
    detail::body<F, scope_ref> called;
    haft_io_stepper_t *own = nullptr;
};

/* `on_failure` is called with each exception of a task, in that task, where it may wait. The scope
   then goes on, as the scope of a server with one task for each connection must. An exception that
   this function throws, or that the body throws, still ends the scope. */
#define HAFTI_IO_FIELDS(FIELD, OWN)                                                                \
    FIELD(const char *, name, nullptr) /* for the dump; not copied */                              \
    /* when the scope is cancelled; it then throws timed_out */                                    \
    FIELD(clock::time_point, deadline, forever)                                                    \
    FIELD(bool, shielded, false) /* no cancel from outside reaches into it */                      \
    /* receives all exceptions, in order */                                                        \
    OWN(std::vector<std::exception_ptr> *, failures, nullptr)                                      \
    FIELD(bool, moves, false) /* tasks in it, and in scopes below it, move between threads */      \
    OWN(detail::failure_function, on_failure, {})
struct scope_options {
    HAFT_IO_OPTIONS(haft_io_scope_options_t, HAFTI_IO_FIELDS)
};
#undef HAFTI_IO_FIELDS
/*
 * Calls the body in a new scope, waits until all tasks that were spawned there have ended, and
 * returns the body's result or throws. Outside of a run there are no tasks and no deadlines: the
 * body is simply called.
 */
template <scope_body F>
decltype(auto) scope(const scope_options &options, F function) {
    return detail::open_scope<F, scope_ref>(options.as_c(), options.failures, function, nullptr,
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

} // namespace haft::io

#endif
