// SPDX-License-Identifier: MIT
/* haft/io.hpp: tasks with the handlers of their spawner; what their clauses throw. */
#include <haft.hpp>
#include <haft/io.hpp>

#include "../check_io.h"

#include <atomic>

namespace io = haft::io;
using namespace std::chrono_literals;

struct user : haft::effect<std::string> {};
struct price : haft::effect<int> {
    int of;
};

static std::atomic<int> ended;

static int ask(int of) {
    struct at_end {
        ~at_end() { ended++; }
    } noting;
    CHECK(haft::perform<user>() == "Ada");
    io::sleep_for(1ms);
    return haft::perform<price>(of);
}

static auto priced = [](price asked) {
    io::yield();
    return asked.of > 0 ? asked.of * 2 : throw std::out_of_range("no such price");
};

static void inherits() {
    int total = haft::handle([] {
                    return io::scope([] {
                        io::task<int> one = io::async_handled([] { return ask(1); });
                        io::task<int> two =
                            io::async_handled({.name = "two"}, [] { return ask(2); });
                        io::spawn_handled([] { ask(3); });
                        return one.join() + two.join();
                    });
                }).with([](user) { return std::string("Ada"); }, priced);
    CHECK(total == 6);
}

/* The exception leaves the perform, fails the task, and with that the scope; and so it leaves
   handle(). */
static void throws() {
    ended = 0;
    try {
        haft::handle([] {
            io::scope([] {
                io::spawn_handled([] { ask(-1); });
                io::sleep_for(1000s);
            });
        }).with([](user) { return std::string("Ada"); }, priced);
        CHECK(false);
    } catch (const std::out_of_range &caught) {
        CHECK(caught.what() == std::string("no such price") && ended == 1);
    }
    haft::handle([] { /* beside a fiber, further in */
                      io::scope([] {
                          io::spawn_handled([] {
                              try {
                                  haft::handle([] {
                                      haft::perform<price>(-1);
                                  }).with([](user, haft::resumption<void(std::string)>) {});
                                  CHECK(false);
                              } catch (const std::out_of_range &) {
                                  ended++;
                              }
                          });
                      });
    })
        .with(priced);
    CHECK(ended == 2);
}

/* The words are those of the scope's failure; what was captured is destroyed. */
static void refuses() {
    auto captured = std::make_shared<int>(1);
    try {
        io::scope([&] {
            haft::handle([&] { io::spawn_handled([captured] { CHECK(false); }); }).with(priced);
        });
        CHECK(false);
    } catch (const std::system_error &refused) {
        CHECK(refused.code() == std::errc::not_supported);
    }
    CHECK(captured.use_count() == 1);
}

int main() {
    for (void (*body)() : {inherits, throws, refuses}) {
        io::simulate({.seed = 1, .switches_one_in = 2}, body);
        for (int threads : {1, 2})
            io::run({.threads = threads}, body);
    }
    return check_end();
}
