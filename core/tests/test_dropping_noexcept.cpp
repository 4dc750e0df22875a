// Dropping a fiber and throwing from it do not pass a noexcept function: C++ terminates, as for an
// exception. Fibers without cleanups are not unwound.
#include <haft.h>

#include "check.h"

HAFT_EFFECT(wait, void, {});

static void wait_noexcept() noexcept {
    HAFT_PERFORM(wait);
}
static void throw_noexcept() noexcept {
    HAFT_THROW(wait);
}
static void *wait_inside(void *unused) {
    wait_noexcept();
    return unused;
}
static void *throw_inside(void *unused) {
    throw_noexcept();
    return unused;
}

static haft_fiber_t *started(void *(*function)(void *), bool no_cleanups) {
    haft_fiber_options_t options = {};
    options.no_cleanups = no_cleanups;
    haft_fiber_t *k = haft_fiber_new_with(&options, function, nullptr);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
    return k;
}
static void drop() {
    haft_fiber_drop(started(wait_inside, false));
}
static void leave() {
    haft_fiber_drop(started(throw_inside, false));
}

static void dropping_terminates_at_a_noexcept_function() {
    const char *message = "was being unwound when the program was terminated: a function on it is "
                          "noexcept, which nothing can leave.";
    CHECK_ABORTS(drop, message);
    CHECK_ABORTS(leave, message);
}
static void fibers_without_cleanups_are_not_unwound() {
    haft_fiber_drop(started(wait_inside, true));
    haft_fiber_t *k = started(throw_inside, true);
    CHECK_EQUAL(haft_fiber_state(k), HAFT_FIBER_FINISHED);
    haft_fiber_drop(k);
}

int main() {
    RUN(dropping_terminates_at_a_noexcept_function);
    RUN(fibers_without_cleanups_are_not_unwound);
    return check_end();
}
// SPDX-License-Identifier: MIT
