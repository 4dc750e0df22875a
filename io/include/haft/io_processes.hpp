// SPDX-License-Identifier: MIT
/*
 * Haft I/O for C++20: signals and child processes. Part of haft/io.hpp, which includes it.
 */
#ifndef HAFT_IO_PROCESSES_HPP
#define HAFT_IO_PROCESSES_HPP

#include "io_descriptors.hpp"
#include "io_options.hpp"

#include <cerrno>
#include <csignal>
#include <initializer_list>
#include <optional>
#include <pthread.h>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace haft::io {

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

/* See haft_io_process_options_t. */
#define HAFTI_IO_FIELDS(FIELD, OWN)                                                                \
    /* "NAME=value"; std::nullopt: the caller's. */                                                \
    OWN(std::optional<std::vector<std::string>>, environment, {})                                  \
    FIELD(std::string, folder, {}) /* its working directory; empty: the caller's */                \
    FIELD(bool, group, false) /* the child leads a process group of its own, for kill_group() */
struct process_options {
    HAFT_IO_OPTIONS(haft_io_process_options_t, HAFTI_IO_FIELDS)
};
#undef HAFTI_IO_FIELDS

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
        haft_io_process_options_t given = options.as_c();
        given.streams = numbers;
        std::vector<const char *> environment;
        if (options.environment.has_value()) {
            environment = texts_of(*options.environment);
            given.environment = environment.data();
        }
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
