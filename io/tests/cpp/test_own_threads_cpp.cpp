// SPDX-License-Identifier: MIT
// Tasks with thread-locals of their own, in C++: objects that wait, exceptions, ids.
#include <haft/io.hpp>

#include "../check_io.h"

#include <set>
#include <stdexcept>
#include <string>
#include <thread>

namespace io = haft::io;
using namespace std::chrono_literals;

enum { TASKS = 100 };

static void run_own(void (*task)(int number), int threads = -1) {
    io::run_options options;
    options.threads = threads;
    options.own_thread_locals = true;
    options.moves = threads > 1;
    io::run(options, [task] {
        for (int i = 0; i < TASKS; i++)
            io::spawn([task, i] { task(i); });
    });
}

/* ---- Objects ---- */

static thread_local int number_of_task;
static int constructed, destroyed;

struct slow {
    int number;
    std::string text;
    slow() : number(number_of_task) {
        io::sleep_for(1ms);
        text = "task" + std::to_string(number) + std::string(50, 'x');
        constructed++;
    }
    ~slow() {
        io::sleep_for(1us);
        CHECK(number == number_of_task && text.starts_with("task" + std::to_string(number)));
        destroyed++;
    }
    slow(const slow &) = delete;
    slow &operator=(const slow &) = delete;
};
static thread_local slow object;

static void an_object_is_constructed_and_destroyed_a_task_and_both_may_wait() {
    constructed = destroyed = 0;
    run_own([](int number) {
        number_of_task = number;
        CHECK_EQUAL(object.number, number);
        const slow *place = &object;
        io::yield();
        CHECK(place == &object && object.number == number);
    });
    CHECK_EQUAL(constructed, TASKS);
    CHECK_EQUAL(destroyed, TASKS);
}

static void an_object_is_destroyed_when_its_task_is_cancelled_or_throws() {
    constructed = destroyed = 0;
    io::run_options options;
    options.own_thread_locals = true;
    io::run(options, [] {
        bool caught = false;
        try {
            io::scope([] {
                for (int i = 1; i <= 10; i++)
                    io::spawn([i] {
                        number_of_task = i;
                        CHECK_EQUAL(object.number, i);
                        if (i == 10)
                            throw std::runtime_error("on purpose");
                        io::sleep_for(1h);
                    });
            });
        } catch (const std::runtime_error &) {
            caught = true;
        }
        CHECK(caught);
    });
    CHECK_EQUAL(constructed, 10);
    CHECK_EQUAL(destroyed, 10);
}

/* ---- Exceptions ---- */

struct yields_while_unwound {
    ~yields_while_unwound() {
        CHECK_EQUAL(std::uncaught_exceptions(), 1);
        io::yield();
        CHECK_EQUAL(std::uncaught_exceptions(), 1);
    }
};
static void throws_and_yields(int number) {
    for (int turn = 0; turn < 5; turn++) {
        try {
            try {
                io::yield();
                throw std::runtime_error(std::to_string(number));
            } catch (const std::exception &error) {
                CHECK_EQUAL(std::stoi(error.what()), number);
                io::yield();
                CHECK_EQUAL(std::uncaught_exceptions(), 0);
                yields_while_unwound guard;
                throw;
            }
        } catch (const std::exception &error) {
            io::yield();
            CHECK_EQUAL(std::stoi(error.what()), number);
            CHECK(std::current_exception() != nullptr);
        }
        CHECK(std::current_exception() == nullptr);
    }
}
static void exceptions_are_the_tasks_over_waits() {
    run_own(throws_and_yields);
    run_own(throws_and_yields, 2);
}

/* ---- Identity ---- */

static std::set<std::thread::id> ids;
static int ids_taken;
static void ids_of_threads_differ() {
    ids.clear();
    ids_taken = 0;
    run_own([](int) {
        auto own = std::this_thread::get_id();
        CHECK(ids.insert(own).second);
        for (ids_taken++; ids_taken < static_cast<int>(TASKS);)
            io::yield(); /* an id may be given again once its task has ended */
        CHECK(own == std::this_thread::get_id());
    });
    CHECK_EQUAL(static_cast<int>(ids.size()), static_cast<int>(TASKS));
}

static void one_task_of_a_run_may_have_its_own() {
    number_of_task = 7;
    io::run([] {
        io::task_options options;
        options.own_thread_locals = true;
        auto task = io::this_scope().async(options, [] { return number_of_task++; });
        CHECK_EQUAL(task.join(), 0);
        CHECK_EQUAL(number_of_task, 7);
    });
}

int main() {
    check_backend();
    if (haft_io_own_thread_locals_refused() != nullptr)
        return 77;
    RUN(an_object_is_constructed_and_destroyed_a_task_and_both_may_wait);
    RUN(an_object_is_destroyed_when_its_task_is_cancelled_or_throws);
    RUN(exceptions_are_the_tasks_over_waits);
    RUN(ids_of_threads_differ);
    RUN(one_task_of_a_run_may_have_its_own);
    return check_end();
}
