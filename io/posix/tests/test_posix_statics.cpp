// SPDX-License-Identifier: MIT
// Static local variables of C++ whose initialisers wait, used by several tasks of a thread, and by
// threads.
#include "../../tests/check_io.h"

#include <stdexcept>
#include <thread>

static int begun, failures;
static int64_t duration = 2 * HAFT_IO_MILLISECOND;

/* Fails as often as it is told to. */
static int wait_and_count() {
    begun++;
    haft_io_sleep(duration);
    if (failures > 0) {
        failures--;
        throw std::runtime_error("not yet");
    }
    return 42;
}

template <int Which>
static int value() {
    static const int number = wait_and_count();
    return number;
}

BODY(use_value) {
    CHECK_EQUAL(value<0>(), 42);
    return nullptr;
}
BODY(use_value_that_fails_once) {
    try {
        CHECK_EQUAL(value<1>(), 42);
    } catch (const std::runtime_error &) {
        CHECK_EQUAL(value<1>(), 42);
    }
    return nullptr;
}
BODY(use_value_on_a_thread) {
    CHECK_EQUAL(value<2>(), 42);
    return nullptr;
}
BODY(use_cancelled_value) {
    CHECK_EQUAL(value<3>(), 42);
    return nullptr;
}

enum { TASKS = 8 };
static void *spawn_all(void *argument) {
    void *(*function)(void *) = *static_cast<void *(**)(void *)>(argument);
    for (int i = 0; i < TASKS; i++)
        haft_io_spawn(function, nullptr);
    return nullptr;
}
static void all_use(void *(*function)(void *), int threads, int initialisers) {
    begun = 0;
    haft_io_run_options_t options = {};
    options.threads = threads;
    CHECK_EQUAL(haft_io_run_with(&options, spawn_all, &function), 0);
    CHECK_EQUAL(begun, initialisers);
}

static void a_task_waits_for_another_that_initialises_a_static_variable() {
    all_use(use_value, 1, 1);
    all_use(use_value, 1, 0);
}
static void who_waited_initialises_after_a_failure() {
    failures = 1;
    all_use(use_value_that_fails_once, 1, 2);
}
static void tasks_and_threads_wait_for_each_other() {
    std::thread plain(use_value_on_a_thread, nullptr);
    haft_io_run_options_t options = {};
    options.threads = 2;
    void *(*function)(void *) = use_value_on_a_thread;
    CHECK_EQUAL(haft_io_run_with(&options, spawn_all, &function), 0);
    plain.join();
}

BODY(begin_and_cancel) {
    haft_io_spawn(use_cancelled_value, nullptr);
    haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return nullptr;
}
static void a_cancel_of_the_initialiser_gives_the_variable_to_the_next() {
    begun = 0;
    duration = HAFT_IO_FOREVER;
    CHECK_EQUAL(haft_io_run(begin_and_cancel, nullptr), -ECANCELED);
    duration = 2 * HAFT_IO_MILLISECOND;
    all_use(use_cancelled_value, 1, 1);
}

int main() {
    check_backend();
    RUN(a_task_waits_for_another_that_initialises_a_static_variable);
    RUN(who_waited_initialises_after_a_failure);
    RUN(tasks_and_threads_wait_for_each_other);
    RUN(a_cancel_of_the_initialiser_gives_the_variable_to_the_next);
    return check_end();
}
