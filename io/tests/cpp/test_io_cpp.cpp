// SPDX-License-Identifier: MIT
// haft/io.hpp: results and exceptions of tasks, what a cancel is in C++, what its RAII types release.
#include <haft/io.hpp>

#include "../check_io.h"

#include <mutex>
#include <stdexcept>
#include <vector>

namespace io = haft::io;
using namespace std::chrono_literals;

static void a_join_returns_what_the_task_returned() {
    std::string text = io::run([] {
        auto number = io::async([] { return std::make_unique<int>(42); });
        auto nothing = io::async([] { io::yield(); });
        nothing.join();
        return std::to_string(*number.join());
    });
    CHECK(text == "42");
}

static void an_exception_of_a_task_leaves_its_scope_and_cancels_the_others() {
    bool unwound = false, seen = false, caught = false;
    io::run([&] {
        try {
            io::scope([&] {
                io::spawn([&] {
                    struct guard {
                        bool &left;
                        ~guard() { left = true; }
                    } here{unwound};
                    try {
                        io::sleep_for(1h);
                    } catch (const io::cancelled &) {
                        seen = true;
                        throw;
                    }
                });
                io::yield();
                io::spawn([] { throw std::out_of_range("a task"); });
            });
        } catch (const std::out_of_range &) {
            caught = true;
        }
    });
    CHECK(unwound && seen && caught);
}

static void a_join_throws_what_the_task_threw() {
    int caught = 0;
    try {
        io::run([&] {
            auto failing = io::async([] { throw std::out_of_range("a task"); });
            try {
                io::shield([&] { failing.join(); });
            } catch (const std::out_of_range &) {
                caught++;
            }
        });
    } catch (const std::out_of_range &) {
        caught++;
    }
    CHECK_EQUAL(caught, 2);
}

static void a_cancel_that_is_swallowed_comes_back_at_the_next_wait() {
    int caught = 0;
    try {
        io::run([&] {
            io::cancel();
            for (int i = 0; i < 2; i++) {
                try {
                    io::sleep_for(1h);
                } catch (...) {
                    caught++;
                }
            }
            io::shield([&] { io::sleep_for(1us); });
            caught++;
        });
    } catch (const io::cancelled &) {
        caught++;
    }
    CHECK_EQUAL(caught, 4);
}

static void a_deadline_is_an_error_that_says_so() {
    bool late = false;
    io::run([&] {
        CHECK_EQUAL(io::with_deadline(1h, [] { return 7; }), 7);
        try {
            io::with_deadline(1ms, [] { io::sleep_for(1h); });
        } catch (const std::system_error &error) {
            late = error.code() == std::errc::timed_out;
        }
    });
    CHECK(late);
}

static void a_mutex_is_lockable_and_given_back_by_an_exception() {
    io::run([] {
        io::mutex mutex;
        std::vector<int> order;
        io::scope([&] {
            for (int i = 0; i < 2; i++)
                io::spawn([&, i] {
                    std::lock_guard lock(mutex);
                    order.push_back(i);
                    io::yield();
                    order.push_back(i);
                });
        });
        CHECK(order == (std::vector<int>{0, 0, 1, 1}));
        std::unique_lock held(mutex);
        CHECK(!mutex.try_lock_until(io::clock::now()));
    });
}

static void lines_come_one_by_one_and_descriptors_are_closed() {
    int before = check_descriptors();
    std::vector<std::string> got;
    io::run([&] {
        int ends[2];
        CHECK_EQUAL(haft_io_pipe(ends), 0);
        io::descriptor reader(ends[0]), writer(ends[1]);
        io::spawn([writer = std::move(writer)] {
            writer.write_all("one\ntw");
            io::yield();
            writer.write_all("o\n\n" + std::string(10000, 'x'));
        });
        for (std::string_view line : io::lines(reader))
            got.emplace_back(line);
    });
    CHECK_EQUAL(got.size(), 4);
    CHECK(got[0] == "one\n" && got[1] == "two\n" && got[2] == "\n" && got[3].size() == 10000);
    CHECK_EQUAL(check_descriptors(), before);
}

int main() {
    check_backend();
    a_join_returns_what_the_task_returned();
    an_exception_of_a_task_leaves_its_scope_and_cancels_the_others();
    a_join_throws_what_the_task_threw();
    a_cancel_that_is_swallowed_comes_back_at_the_next_wait();
    a_deadline_is_an_error_that_says_so();
    a_mutex_is_lockable_and_given_back_by_an_exception();
    lines_come_one_by_one_and_descriptors_are_closed();
}
