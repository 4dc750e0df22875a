/*
 * The property: a random program observes on libhaft exactly what it observes on the abstract
 * machine.
 *
 *     test_property                          5,000 programs; 100,000 with HAFT_CAMPAIGN=long
 *     HAFT_PROPERTY_PROGRAMS=n               n programs
 *     RC_PARAMS='seed=n' test_property       the same programs again; the seed is printed
 *     HAFT_PROPERTY_ISOLATE=1                each program in a process of its own
 *
 * RapidCheck makes the choices that programs are made from, and shrinks them when a program fails.
 * The campaign runs in a child process. The program that fails there, or crashes, is made again and
 * shrunk with every try in a process of its own: what one leaves behind then cannot disturb the
 * next.
 */
#include "random_program.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <haft.h>
#include <iostream>
#include <random>
#include <rapidcheck.h>
#include <sstream>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct event {
    int64_t kind, first, second;
    bool operator==(const event &other) const = default;
};
using event_log = std::vector<event>;

event_log *observed;

bool log_of(bool (*run)(const program_t *), const program_t *program, event_log &log) {
    observed = &log;
    return run(program);
}

bool run_on_libhaft(const program_t *program) {
    run_on_haft(program);
    return true;
}

/* What the two logs have in common at the end of what they share, and what each has next. */
std::string difference(const event_log &expected, const event_log &seen) {
    static const char *const names[EVENTS] = {
        "result", "error",     "cleanup",       "caught",  "request", "thrown", "returned",
        "clause", "defaulted", "return clause", "missing", "broken",  "leaked"};
    std::ostringstream text;
    auto line = [&](const char *who, const event_log &log, size_t i) {
        text << who;
        if (i < log.size())
            text << names[log[i].kind] << " " << log[i].first << " " << log[i].second << "\n";
        else
            text << "nothing\n";
    };
    size_t at = 0;
    while (at < expected.size() && at < seen.size() && expected[at] == seen[at])
        at++;
    for (size_t i = at < 8 ? 0 : at - 8; i < at; i++)
        line("both:  ", expected, i);
    line("model: ", expected, at);
    line("haft:  ", seen, at);
    return text.str();
}

/* "" if the property holds. */
std::string judge(const program_t *program) {
    event_log expected, seen;
    if (!log_of(run_on_model, program, expected))
        return "";
    log_of(run_on_libhaft, program, seen);
    return expected == seen ? "" : difference(expected, seen);
}

std::string judge_isolated(const program_t *program) {
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    std::fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        alarm(10);
        std::string verdict = judge(program);
        if (write(ends[1], verdict.data(), verdict.size()) < 0)
            _exit(2);
        _exit(0);
    }
    close(ends[1]);
    std::string verdict;
    char buffer[512];
    for (ssize_t size; (size = read(ends[0], buffer, sizeof buffer)) > 0;)
        verdict.append(buffer, static_cast<size_t>(size));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (verdict.empty() && status != 0)
        verdict = WIFSIGNALED(status)
                      ? "haft ended by signal " + std::to_string(WTERMSIG(status)) + "\n"
                      : "haft exited\n";
    return verdict;
}

/* Shrinking that goes on for longer stops at the smallest program found so far. */
constexpr int LONGEST_SHRINKING = 120; /* seconds */

/* How many programs the campaign had judged when it failed; in memory that it shares with its
 * parent. */
int *judged;

int campaign(bool isolated) {
    int skip = isolated ? *judged - 1 : 0;
    const std::time_t started = std::time(nullptr);
    bool failed = false;
    bool holds =
        rc::check("programs observe on libhaft what they observe on the abstract machine", [&] {
            const auto generator =
                rc::gen::resize(400, rc::gen::container<std::vector<uint16_t>>(rc::gen::resize(
                                         100, rc::gen::inRange<uint16_t>(0, 5040))));
            const auto choices = isolated ? *generator : *rc::gen::noShrink(generator);
            if (isolated && skip-- > 0)
                return;
            if (!isolated)
                ++*judged;
            if (failed && std::time(nullptr) - started > LONGEST_SHRINKING)
                return;
            random_program program(choices);
            std::string verdict = isolated ? judge_isolated(program.get()) : judge(program.get());
            if (!verdict.empty() && !isolated)
                _exit(1);
            if (!verdict.empty()) {
                failed = true;
                std::ostringstream text;
                text << *program.get() << verdict;
                RC_FAIL(text.str());
            }
        });
    return holds ? 0 : 1;
}

} // namespace

void observe(event_kind_t kind, int64_t first, int64_t second) {
    observed->push_back({kind, first, second});
}

int main() {
    const char *long_campaign = std::getenv("HAFT_CAMPAIGN");
    const char *count = std::getenv("HAFT_PROPERTY_PROGRAMS");
    const char *given = std::getenv("RC_PARAMS");
    std::string programs = count != nullptr ? count
                           : long_campaign != nullptr && std::string(long_campaign) == "long"
                               ? "100000"
                               : "5000";
    std::string parameters =
        "max_success=" + programs + " " +
        (given != nullptr ? given : "seed=" + std::to_string(std::random_device()()));
    setenv("RC_PARAMS", parameters.c_str(), 1);
    haft_set_stack_size(256 * 1024); /* small: every program ends with a look at all stacks */
    std::cout << "RC_PARAMS='" << parameters << "'" << std::endl;
    void *shared =
        mmap(nullptr, sizeof *judged, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    judged = static_cast<int *>(shared);
    if (std::getenv("HAFT_PROPERTY_ISOLATE") != nullptr)
        return campaign(true);
    pid_t child = fork();
    if (child == 0)
        return campaign(false);
    int status = 0;
    waitpid(child, &status, 0);
    if (status == 0)
        return 0;
    std::cout << "Program " << *judged
              << " failed; now shrinking it, each try in a process of its own." << std::endl;
    campaign(true);
    return 1;
}
