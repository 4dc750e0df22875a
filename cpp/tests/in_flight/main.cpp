/* A computation that is dropped while a cleanup of C waits, which an exception of C++ runs. */
#include "../check.hpp"

#include <exception>
#include <haft.hpp>

struct Wait : haft::effect<> {};

extern "C" {
void frame_of_c();
void wait_here() {
    haft::perform(Wait{});
}
void throw_here() {
    throw counted();
}
}

static void the_computation_is_unwound_and_the_exception_is_lost() {
    bool left = false;
    struct leaving {
        bool &flag;
        ~leaving() { flag = true; }
    };
    haft::handle([&] {
        leaving local{left};
        counted object;
        frame_of_c();
    }).with([](Wait, haft::resumption<void()> k) {
        CHECK(counted::alive == 2);
        std::move(k).drop();
    });
    CHECK(left);
    CHECK(std::uncaught_exceptions() == 0);
    CHECK(counted::alive == 1); /* the exception: only the frame of C has known it */
    counted::alive = 0;
}

static void what_is_resumed_goes_on_with_its_exception() {
    thrown_by<counted>([] {
        haft::handle([] { frame_of_c(); }).with([](Wait, haft::resumption<void()> k) {
            std::move(k).resume();
        });
    });
    CHECK(counted::alive == 0);
}

int main() {
    the_computation_is_unwound_and_the_exception_is_lost();
    what_is_resumed_goes_on_with_its_exception();
}
// SPDX-License-Identifier: MIT
