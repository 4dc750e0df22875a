/*
 * The fuzzer: bytes become a random program (random_program.h) or a race (races.h), and what is
 * observed of it on libhaft must be what the model predicts.
 *
 *     test_fuzz                       5 seconds; 30 with HAFT_CAMPAIGN=long
 *     test_fuzz --endless             until something fails
 *     test_fuzz --programs N          N programs, in the time that they take
 *     test_fuzz --seed SEED ...       from this seed on; else from a random one (printed), or
 *                                     with HAFT_CAMPAIGN from 1
 *     test_fuzz --file FILE           the input in a file, once
 *     test_fuzz --signals ...         signals whose handler performs interrupt one program in eight
 *     test_fuzz --aborts ...          programs whose errors abort, each in a child
 *     test_fuzz --as-is ...           what fails is not made smaller
 *
 * Each input has a seed of its own, one more than that of the input before. A campaign runs in a
 * child process. When an input fails there, or crashes or hangs, its seed is printed, it is made
 * smaller with every try in a process of its own, and is printed as a program and left in a file
 * for --file. One that does not fail alone wants those before it: run --seed from further back.
 *
 * With clang the same bytes come from libFuzzer (fuzz_with_libfuzzer), which looks at the coverage
 * of the library. `run` is the entry of both.
 */
#include "races.h"
#include "random_program.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <haft.h>
#include <iostream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct event {
    int64_t kind, first, second;
    bool operator==(const event &other) const = default;
};

/* The observed events of one run, in memory that a child shares with its parent. */
struct event_log {
    static constexpr size_t MOST = 1 << 16;
    size_t count;
    event events[MOST];
};

template <typename T>
T *share() {
    void *memory =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    return static_cast<T *>(memory);
}

event_log *const expected = share<event_log>(), *const seen = share<event_log>();
event_log *observed;

bool same_logs() {
    return expected->count == seen->count &&
           std::equal(expected->events, expected->events + expected->count, seen->events);
}

/* Describes the last common events of the two logs, and the next event of each. */
std::string difference() {
    static const char *const names[EVENTS] = {
        "result", "error",     "cleanup",       "caught",  "request", "thrown", "returned",
        "clause", "defaulted", "return clause", "missing", "broken",  "leaked"};
    std::ostringstream text;
    auto line = [&](const char *who, const event_log *log, size_t i) {
        text << who;
        if (i < log->count)
            text << names[log->events[i].kind] << " " << log->events[i].first << " "
                 << log->events[i].second << "\n";
        else
            text << "nothing\n";
    };
    size_t at = 0;
    while (at < expected->count && at < seen->count && expected->events[at] == seen->events[at])
        at++;
    for (size_t i = at < 8 ? 0 : at - 8; i < at; i++)
        line("both:  ", expected, i);
    line("model: ", expected, at);
    line("haft:  ", seen, at);
    return text.str();
}

std::string ending_of(int status) {
    return WIFSIGNALED(status) ? "it ended by signal " + std::to_string(WTERMSIG(status)) + "\n"
                               : "it exited with " + std::to_string(WEXITSTATUS(status)) + "\n";
}

constexpr unsigned LONGEST_RUN = 30; /* seconds, of one input */

/* Runs something in a process of its own and returns how that ended. */
int in_child(const std::function<void()> &what, bool silent, unsigned longest = LONGEST_RUN) {
    std::fflush(nullptr);
    pid_t child = fork();
    if (child < 0)
        abort();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        alarm(longest);
        if (silent)
            dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        what();
        _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

/* ThreadSanitizer lets a child of a process with threads start none, and what two threads do to one
   fiber is the race that it reports. */
#ifndef __has_feature
#    define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
constexpr bool thread_sanitizer = true;
#else
constexpr bool thread_sanitizer = false;
#endif

/* Programs whose first error aborts, in children of a process with threads: only when it is asked
   for. */
bool with_aborts;

/* "" if libhaft does what the model does. */
std::string judge_program(const program_t *program) {
    observed = expected;
    expected->count = seen->count = 0;
    outcome_t outcome = run_on_model(program);
    observed = seen;
    if (program->escape != BY_ABORT) {
        if (outcome != ENDS)
            return "";
        run_on_haft(program);
        return same_logs() ? "" : difference();
    }
    if (outcome == UNKNOWN || thread_sanitizer || !with_aborts)
        return "";
    int status = in_child([&] { run_on_haft(program); }, true);
    bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    if (outcome == ABORTS ? !aborted : status != 0)
        return (outcome == ABORTS ? "it should abort; " : "it should end; ") + ending_of(status);
    return same_logs() ? "" : difference();
}

/* Performing in a signal handler is a mistake (docs/misuse.md): only when it is asked for. */
bool with_signals;

using choices_t = std::vector<uint16_t>;

bool is_race(const choices_t &choices) {
    return !choices.empty() && choices[0] % 32 == 31;
}

std::string judge(const choices_t &choices) {
    if (is_race(choices)) {
        char verdict[512] = "";
        if (!thread_sanitizer)
            run_race(choices.data(), choices.size(), verdict, sizeof verdict);
        return verdict;
    }
    random_program program(choices, with_signals);
    return judge_program(program.get());
}

std::string show(const choices_t &choices) {
    std::ostringstream text;
    if (is_race(choices)) {
        char race[4096] = "";
        show_race(choices.data(), choices.size(), race, sizeof race);
        text << race;
    } else {
        random_program program(choices, with_signals);
        text << *program.get();
    }
    return text.str();
}

/* Two bytes are a choice. */
choices_t choices_of(const uint8_t *data, size_t size) {
    choices_t choices(size / 2);
    for (size_t i = 0; i < choices.size(); i++)
        choices[i] = static_cast<uint16_t>(data[2 * i] | data[2 * i + 1] << 8);
    return choices;
}

/* 0 if the input holds; else prints what does not. */
int run(const uint8_t *data, size_t size) {
    choices_t choices = choices_of(data, size);
    std::string verdict = judge(choices);
    if (verdict.empty())
        return 0;
    std::cout << show(choices) << verdict << std::flush;
    return 1;
}

} // namespace

void observe(event_kind_t kind, int64_t first, int64_t second) {
    if (observed->count < event_log::MOST)
        observed->events[observed->count++] = {kind, first, second};
}

#ifdef HAFT_LIBFUZZER

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (run(data, size) != 0)
        abort();
    return 0;
}

#else

namespace {

/* Seconds, in all and of one try. */
constexpr int LONGEST_SHRINKING = 60;
constexpr unsigned LONGEST_TRY = 3;
constexpr size_t MOST_CHOICES = 600;

/* The input of a seed, as bytes. */
std::vector<uint8_t> input_of(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<uint8_t> bytes(2 * (1 + random() % MOST_CHOICES));
    for (uint8_t &byte : bytes)
        byte = static_cast<uint8_t>(random() >> 32);
    return bytes;
}

struct progress {
    uint64_t seed; /* of the input that is running */
    uint64_t inputs;
};
progress *const done = share<progress>();

/* Says how in `failure`. */
bool fails_alone(const choices_t &choices, std::string &failure) {
    struct text {
        char characters[4096];
    };
    static text *const verdict = share<text>();
    /* A race, or a signal, does not come out the same every time. */
    const int attempts = is_race(choices) ? 30 : 3;
    for (int attempt = 0; attempt < attempts; attempt++)
        if (int status = in_child(
                [&] {
                    verdict->characters[0] = '\0';
                    const std::string said = judge(choices);
                    said.copy(verdict->characters, sizeof *verdict - 1);
                    _exit(said.empty() ? 0 : 1);
                },
                true, LONGEST_TRY);
            status != 0) {
            failure = WIFSIGNALED(status) || verdict->characters[0] == '\0' ? ending_of(status)
                                                                            : verdict->characters;
            std::memset(verdict, 0, sizeof *verdict);
            return true;
        }
    return false;
}

/* Cuts out pieces, then makes numbers smaller, for as long as it fails. */
choices_t shrink(choices_t choices, std::string &failure) {
    const time_t until = time(nullptr) + LONGEST_SHRINKING;
    auto better = [&](choices_t &&candidate) {
        if (time(nullptr) > until || candidate == choices || !fails_alone(candidate, failure))
            return false;
        choices = std::move(candidate);
        return true;
    };
    for (bool smaller = true; smaller && time(nullptr) <= until;) {
        smaller = false;
        for (size_t piece = choices.size(); piece > 0; piece /= 2)
            for (size_t at = 0; at + piece <= choices.size();) {
                choices_t candidate = choices;
                auto from = candidate.begin() + static_cast<std::ptrdiff_t>(at);
                candidate.erase(from, from + static_cast<std::ptrdiff_t>(piece));
                if (better(std::move(candidate)))
                    smaller = true;
                else
                    at += piece;
            }
        for (size_t at = 0; at < choices.size(); at++)
            for (uint16_t number : {0, choices[at] / 2, choices[at] - 1}) {
                choices_t candidate = choices;
                candidate[at] = number;
                if (choices[at] != 0 && better(std::move(candidate)))
                    smaller = true;
            }
    }
    return choices;
}

void leave_in_file(const choices_t &choices, const std::string &name) {
    std::ofstream file(name, std::ios::binary);
    for (uint16_t choice : choices)
        file << static_cast<char>(choice & 0xff) << static_cast<char>(choice >> 8);
    std::cout << "Again: test_fuzz --file " << name << std::endl;
}

int explain(uint64_t seed, bool as_is) {
    std::cout << "The input of seed " << seed << " failed, after " << done->inputs << " others."
              << std::endl;
    if (as_is)
        return 1;
    const std::vector<uint8_t> bytes = input_of(seed);
    choices_t choices = choices_of(bytes.data(), bytes.size());
    std::string failure;
    if (!fails_alone(choices, failure)) {
        std::cout << "It does not fail alone: it wants those before it, or luck." << std::endl;
        return 1;
    }
    choices = shrink(std::move(choices), failure);
    std::cout << show(choices) << failure;
    leave_in_file(choices, "fuzz-" + std::to_string(seed) + ".input");
    return 1;
}

struct campaign {
    /* The test suite runs the same inputs every time. */
    uint64_t seed = std::getenv("HAFT_CAMPAIGN") != nullptr ? 1 : std::random_device()();
    uint64_t programs = UINT64_MAX;
    double seconds = 5;
    const char *file = nullptr;
    bool as_is = false;
};

double now() {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

int run_campaign(const campaign &campaign) {
    std::cout << "seed " << campaign.seed << std::endl;
    int status = in_child(
        [&] {
            const double until = now() + campaign.seconds;
            for (done->seed = campaign.seed; done->inputs < campaign.programs && now() < until;
                 done->seed++, done->inputs++) {
                alarm(LONGEST_RUN);
                const std::vector<uint8_t> bytes = input_of(done->seed);
                if (run(bytes.data(), bytes.size()) != 0)
                    _exit(1);
            }
        },
        false);
    if (status != 0)
        return explain(done->seed, campaign.as_is);
    std::cout << done->inputs << " inputs" << std::endl;
    return 0;
}

int run_file(const char *name) {
    std::ifstream file(name, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)),
                                  std::istreambuf_iterator<char>());
    return run(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
}

} // namespace

int main(int count, char **arguments) {
    const char *length = std::getenv("HAFT_CAMPAIGN");
    campaign campaign;
    if (length != nullptr && std::strcmp(length, "long") == 0)
        campaign.seconds = 30;
    for (int i = 1; i < count; i++) {
        const std::string option = arguments[i];
        if (option == "--endless") {
            campaign.seconds = HUGE_VAL;
        } else if (option == "--programs" && i + 1 < count) {
            campaign.programs = std::strtoull(arguments[++i], nullptr, 0);
            campaign.seconds = HUGE_VAL;
        } else if (option == "--seed" && i + 1 < count) {
            campaign.seed = std::strtoull(arguments[++i], nullptr, 0);
        } else if (option == "--signals") {
            with_signals = true;
        } else if (option == "--aborts") {
            with_aborts = true;
        } else if (option == "--as-is") {
            campaign.as_is = true;
        } else if (option == "--file" && i + 1 < count) {
            campaign.file = arguments[++i];
        } else {
            std::cout << "usage: test_fuzz [--endless | --programs N] [--seed SEED] [--signals] "
                         "[--as-is] | "
                         "--file FILE"
                      << std::endl;
            return 2;
        }
    }
    return campaign.file != nullptr ? run_file(campaign.file) : run_campaign(campaign);
}

#endif
// SPDX-License-Identifier: MIT
