/* SPDX-License-Identifier: MIT */
/* Searches of haft/multi_shot.hpp on tasks of haft/io.hpp. */
#include <haft/io.hpp>
#include <haft/multi_shot.hpp>

#include "../check_io.h"

#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace io = haft::io;
using namespace std::chrono_literals;

namespace {

struct Choose : haft::effect<int> {
    int count;
};

/* Gives the digits of all numbers with so many; each waits in between. */
std::vector<int> numbers(int digits, int *ended) {
    using answers = std::vector<int>;
    return haft::handle_multi_shot(
        [=] {
            int number = 0;
            for (int i = 0; i < digits; i++) {
                number = number * 2 + haft::perform<Choose>(2);
                io::yield();
            }
            if (ended != nullptr && ++*ended == 3)
                io::cancel();
            io::yield();
            return answers{number};
        },
        [](Choose choose, haft::multi_shot<answers(int)> k) {
            answers all;
            for (int i = 0; i < choose.count; i++)
                for (int answer : k.resume(i))
                    all.push_back(answer);
            return all;
        });
}

void search_by_tasks() {
    io::scope([](io::scope_ref scope) {
        for (int i = 0; i < 20; i++)
            scope.spawn([] {
                std::vector<int> found = numbers(4, nullptr);
                CHECK_EQUAL(found.size(), 16);
                for (int j = 0; j < 16; j++)
                    CHECK_EQUAL(found[static_cast<std::size_t>(j)], j);
            });
    });
}
void tasks_search_at_the_same_time() {
    io::run([] {
        search_by_tasks();
        std::size_t stacks = haft_pool_report().stacks; /* those that the run keeps for tasks */
        search_by_tasks();
        CHECK_EQUAL(haft_pool_report().stacks, stacks);
    });
}

void cancels_and_deadlines_end_searches() {
    io::run([] {
        std::size_t stacks = haft_pool_report().stacks;
        int ended = 0;
        bool was_cancelled = false;
        try {
            io::scope([&] { (void)numbers(3, &ended); });
        } catch (const io::cancelled &) {
            was_cancelled = true;
        }
        CHECK(was_cancelled);
        CHECK_EQUAL(ended, 3);
        CHECK_EQUAL(haft_pool_report().stacks, stacks);
        bool too_late = false;
        try {
            io::with_deadline(10ms, [] {
                for (;;)
                    (void)numbers(5, nullptr);
            });
        } catch (const std::system_error &error) {
            too_late = error.code() == std::errc::timed_out;
        }
        CHECK(too_late);
        CHECK_EQUAL(haft_pool_report().stacks, stacks);
    });
}

struct refused {
    std::string message;
};
void refuse(const haft_error_t *error) {
    throw refused{error->message};
}
template <typename Body>
void check_refused(Body body) {
    haft_error_handler_t *before = haft_set_error_handler(refuse);
    std::string message;
    try {
        (void)haft::handle_multi_shot(
            body, [](Choose, haft::multi_shot<int(int)> k) { return k.resume(1); });
    } catch (const refused &error) {
        message = error.message;
    }
    haft_set_error_handler(before);
    CHECK_CONTAINS(message.c_str(), "waits in a frame with cleanups or destructors");
}
void locks_scopes_and_deadlines_inside_are_refused() {
    if (CHECK_ADDRESS_SANITIZER)
        return; /* whose own cleanups cannot be told from others */
    io::run([] {
        io::mutex lock;
        check_refused([&] {
            std::lock_guard<io::mutex> held(lock);
            return haft::perform<Choose>(2);
        });
        CHECK(lock.try_lock());
        lock.unlock();
        check_refused([] { return io::scope([] { return haft::perform<Choose>(2); }); });
        check_refused([] { return io::shield([] { return haft::perform<Choose>(2); }); });
        check_refused([] {
            io::deadline soon(1h);
            return haft::perform<Choose>(2);
        });
    });
}

} // namespace

int main() {
    if (CHECK_THREAD_SANITIZER)
        return 77;
    check_backend();
    RUN(tasks_search_at_the_same_time);
    RUN(cancels_and_deadlines_end_searches);
    RUN(locks_scopes_and_deadlines_inside_are_refused);
    return check_end();
}
