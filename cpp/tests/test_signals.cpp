/* Handlers of signals that perform effects whose clauses run in place. */
#include "check.hpp"

#include <csignal>
#include <haft.hpp>
#include <sys/time.h>

struct Get : haft::effect<long> {};
struct Add : haft::effect<long> {
    long value;
};
struct Tick : haft::effect<long> {};
struct Tock : haft::effect<long> {};
struct Level : haft::effect<long> {};

static volatile long signals, wrong_answers;

static void perform_there(int) {
    signals = signals + 1;
    bool wrong = haft::perform(Tick{}) != 11 || haft::perform(Tock{}) != 12;
    wrong |=
        haft::handle([] { return haft::perform(Level{}); }).with([](Level) { return 14L; }) != 14;
    if (wrong)
        wrong_answers = wrong_answers + 1;
}

static void interrupt_every(suseconds_t period) {
    itimerval timer = {{0, period}, {0, period}};
    setitimer(ITIMER_REAL, &timer, nullptr);
}

/* The compiler decides which slots the effects share: so there are several, and new scopes. */
static void the_interrupted_code_gets_its_own_answers() {
    struct sigaction action = {};
    action.sa_handler = perform_there;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGALRM, &action, nullptr);
    auto interrupted = [] {
        interrupt_every(100);
        for (long i = 0; i < check_times(500000); i++) {
            long sum = 0;
            bool wrong = haft::handle([] {
                             return haft::perform(Get{}) + haft::perform(Add{.value = 3}) +
                                    haft::perform(Get{}) + haft::perform(Level{});
                         }).with([&](Get) { return i; }, [&](Add a) { return sum += a.value; }) !=
                         2 * i + 3 + 13;
            if (wrong)
                wrong_answers = wrong_answers + 1;
        }
        interrupt_every(0);
    };
    haft::handle([&] {
        haft::handle(interrupted).with([](Level) { return 13L; });
    }).with([](Tick) { return 11L; }, [](Tock) { return 12L; });
    CHECK(wrong_answers == 0);
}

int main() {
    the_interrupted_code_gets_its_own_answers();
}
// SPDX-License-Identifier: MIT
