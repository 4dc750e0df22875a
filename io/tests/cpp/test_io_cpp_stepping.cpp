/* SPDX-License-Identifier: MIT */
/* A run in steps, from C++: what the body returns or throws comes at the end, and a loop that is not
   the run's waits for its descriptor and its time. */
#include <haft/io.hpp>

#include "../../../core/tests/check.h"

#include <algorithm>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <thread>

namespace io = haft::io;
using namespace std::chrono_literals;

/* Acts like another library's loop: it waits between steps, never in one. */
template <typename F>
static void drive(io::stepper<F> &tasks) {
    CHECK_EQUAL(tasks.descriptor(), -1);
    while (tasks.step()) {
        auto left = std::chrono::ceil<std::chrono::milliseconds>(
            std::min(tasks.deadline(), io::from_now(1h)) - io::clock::now());
        pollfd entry = {tasks.descriptor(), POLLIN, 0};
        poll(&entry, 1, std::max(0, static_cast<int>(left.count())));
    }
    CHECK_EQUAL(tasks.descriptor(), -1);
}

static const char *backend;

static void returns_what_the_body_returns() {
    io::stepper tasks({.backend = backend}, [] {
        auto ends = io::socket::pair();
        io::spawn([&] { ends.second.write_all("hello"), ends.second.close(); });
        io::sleep_for(1ms);
        return ends.first.read_all();
    });
    drive(tasks);
    CHECK(tasks.end() == "hello");
}

static void throws_what_a_task_throws() {
    bool unwound = false;
    io::stepper tasks({.backend = backend}, [&](io::scope_ref scope) {
        scope.spawn([] {
            io::sleep_for(1ms);
            throw std::out_of_range("too far");
        });
        struct at_end {
            bool &done;
            ~at_end() { done = true; }
        } noting{unwound};
        io::sleep_for(1h);
    });
    drive(tasks);
    CHECK(unwound);
    try {
        tasks.end();
        CHECK(false);
    } catch (const std::out_of_range &failed) {
        CHECK(failed.what() == std::string("too far"));
    }
    CHECK(!tasks.step() && tasks.deadline() == io::forever); /* it has ended */
}

static void ends_the_run_with_the_object() {
    bool done = false;
    {
        io::stepper tasks({.backend = backend}, [&] {
            io::sleep_for(1ms);
            done = true;
        });
        CHECK(tasks.step());
        CHECK(!done && tasks.deadline() != io::forever);
    }
    CHECK(done);
}

/* ... which leaves the run as it was. */
static void is_not_ended_by_another_thread() {
    io::stepper tasks([] {
        io::sleep_for(1ms);
        return 42;
    });
    auto refuse = [&] {
        try {
            tasks.end();
            CHECK(false);
        } catch (const std::system_error &refused) {
            CHECK_EQUAL(refused.code().value(), EXDEV);
            CHECK(std::string(refused.what()).find("step and end it there") != std::string::npos);
        }
    };
    std::thread(refuse).join();
    CHECK(tasks.step());
    std::thread(refuse).join();
    CHECK_EQUAL(tasks.end(), 42);
}

static void refuses_what_is_none() {
    io::stepper tasks({.backend = "none such"}, [] {});
    try {
        tasks.step();
        tasks.end();
        CHECK(false);
    } catch (const std::system_error &refused) {
        CHECK_EQUAL(refused.code().value(), EINVAL);
    }
    io::stepper outer([&] {
        try {
            io::stepper inner([] {});
            inner.step();
            CHECK(false);
        } catch (const std::system_error &refused) {
            CHECK_EQUAL(refused.code().value(), EBUSY);
        }
    });
    outer.end();
}

int main() {
    const char *const backends[] = {nullptr, "io_uring"};
    for (const char *one : backends) {
        backend = one;
        try {
            io::run({.backend = one}, [] {});
        } catch (const std::system_error &) {
            continue; /* the system refuses it */
        }
        RUN(returns_what_the_body_returns);
        RUN(throws_what_a_task_throws);
        RUN(ends_the_run_with_the_object);
    }
    fclose(stderr); /* the mistakes print a line */
    RUN(is_not_ended_by_another_thread);
    RUN(refuses_what_is_none);
    return check_end();
}
