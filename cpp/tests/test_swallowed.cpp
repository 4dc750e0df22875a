// SPDX-License-Identifier: MIT
/* A catch (...) without `throw;` around a perform whose computation is unwound: where the block
   ends, the unwinding goes on, whatever has begun it and however the block ends. */
#include "last_words.hpp"

#include <exception>
#include <functional>
#include <haft.hpp>
#include <haft/turns.h>
#include <optional>
#include <stdexcept>
#include <string>

HAFT_EFFECT(ended, void, {});

namespace {

struct Stop : haft::effect<> {};
struct Get : haft::effect<int> {};
struct Other : haft::effect<int> {};

using inner_t = const std::function<void()> &;

std::string told; /* what runs, in order */
int entered;      /* how many blocks have caught the unwinding */
bool went_on;     /* code behind a block has run */

/* ---- Frames with a catch-all; each calls `inner` ---- */

void that_is_empty(inner_t inner) {
    try {
        inner();
    } catch (...) {
        entered++;
    }
    went_on = true;
}
void that_returns(inner_t inner) {
    try {
        inner();
    } catch (...) {
        entered++;
        return;
    }
    went_on = true;
}
int that_returns_a_value(inner_t inner) {
    try {
        inner();
        return 1;
    } catch (...) {
        entered++;
        return 2;
    }
}
void in_a_loop(inner_t inner) {
    for (;;) {
        try {
            inner();
            break;
        } catch (...) {
            entered++;
            continue;
        }
    }
    went_on = true;
}
void that_jumps(inner_t inner) {
    try {
        inner();
    } catch (...) {
        entered++;
        goto out;
    }
out:
    went_on = true;
}
void with_objects(inner_t inner) {
    counted around;
    try {
        counted inside;
        inner();
    } catch (...) {
        entered++;
        counted in_block;
    }
    counted behind;
    went_on = true;
}
void two_levels(inner_t inner) {
    try {
        that_is_empty(inner);
    } catch (...) {
        entered++;
    }
    went_on = true;
}
void two_levels_of_one_function(inner_t inner) {
    try {
        try {
            inner();
        } catch (...) {
            entered++;
        }
        went_on = true;
    } catch (...) {
        entered++;
    }
    went_on = true;
}
void around_one_that_rethrows(inner_t inner) {
    try {
        try {
            inner();
        } catch (...) {
            entered++;
            throw;
        }
    } catch (...) {
        entered++;
    }
    went_on = true;
}
void that_rethrows_around_one_that_does_not(inner_t inner) {
    try {
        that_is_empty(inner);
    } catch (...) {
        entered++;
        throw;
    }
    went_on = true;
}
void around_a_landing_in_the_block(inner_t inner) {
    try {
        inner();
    } catch (...) {
        entered++;
        try {
            haft::handle([] {
                counted local;
                haft::perform(Other{});
            }).with([](Other) -> int { throw 3; });
        } catch (int) {
        }
    }
    went_on = true;
}
struct calls_in_destructor {
    inner_t inner;
    ~calls_in_destructor() noexcept(false) { that_is_empty(inner); }
};
void in_a_destructor(inner_t inner) {
    { calls_in_destructor local{inner}; }
    went_on = true;
}
void that_handles_an_exception_of_its_own(inner_t inner) {
    try {
        inner();
    } catch (...) {
        entered++;
        try {
            throw std::runtime_error("its own");
        } catch (const std::exception &) {
        }
    }
    went_on = true;
}
void that_performs(inner_t inner) {
    try {
        inner();
    } catch (...) {
        entered++;
        told += std::to_string(haft::perform(Get{}));
    }
    went_on = true;
}
void inside_of_a_handler_in_place(inner_t inner) {
    haft::handle([&] { that_is_empty(inner); }).with([](Other) { return 1; });
    went_on = true;
}
void around_a_handler_in_place(inner_t inner) {
    that_is_empty([&] { haft::handle([&] { inner(); }).with([](Other) { return 1; }); });
    went_on = true;
}
void on_a_fiber_further_in(inner_t inner) {
    haft::handle([&] { that_is_empty(inner); }).with([](Other, haft::resumption<void(int)> k) {
        std::move(k).resume(1);
    });
    went_on = true;
}
void around_a_fiber(inner_t inner) {
    that_is_empty([&] {
        haft::handle([&] { inner(); }).with([](Other, haft::resumption<void(int)> k) {
            std::move(k).resume(1);
        });
    });
    went_on = true;
}
void on_both_sides_of_a_fiber(inner_t inner) {
    that_is_empty([&] { on_a_fiber_further_in(inner); });
    went_on = true;
}

struct {
    const char *name;
    std::function<void(inner_t)> frame;
    int blocks;
} const frames[] = {
    {"that_is_empty", that_is_empty, 1},
    {"that_returns", that_returns, 1},
    {"that_returns_a_value",
     [](inner_t inner) {
         (void)that_returns_a_value(inner);
         went_on = true;
     },
     1},
    {"in_a_loop", in_a_loop, 1},
    {"that_jumps", that_jumps, 1},
    {"with_objects", with_objects, 1},
    {"two_levels", two_levels, 2},
    {"two_levels_of_one_function", two_levels_of_one_function, 2},
    {"around_one_that_rethrows", around_one_that_rethrows, 2},
    {"that_rethrows_around_one_that_does_not", that_rethrows_around_one_that_does_not, 2},
    {"around_a_landing_in_the_block", around_a_landing_in_the_block, 1},
    {"in_a_destructor", in_a_destructor, 1},
    {"that_handles_an_exception_of_its_own", that_handles_an_exception_of_its_own, 1},
    {"that_performs", that_performs, 1},
    {"inside_of_a_handler_in_place", inside_of_a_handler_in_place, 1},
    {"around_a_handler_in_place", around_a_handler_in_place, 1},
    {"on_a_fiber_further_in", on_a_fiber_further_in, 1},
    {"around_a_fiber", around_a_fiber, 1},
    {"on_both_sides_of_a_fiber", on_both_sides_of_a_fiber, 2},
};

/* ---- What unwinds ---- */

/* Runs `body` under a handler of Get, in which nothing but what it tells may be left behind. */
template <typename Run>
void check(const char *frame, const char *cause, int blocks, Run run) {
    auto is = [&](bool so, const char *what) {
        if (!so) {
            std::fprintf(stderr, "%s, %s: %s\n", frame, cause, what);
            std::exit(1);
        }
    };
    told.clear();
    entered = 0;
    went_on = false;
    haft::handle(run).with([](Get) { return 5; });
    is(entered == blocks, "each block is entered once");
    is(!went_on, "nothing behind a block runs");
    is(counted::alive == 0, "all objects are gone");
    is(told.ends_with("."), "the cause has its end");
    is(std::uncaught_exceptions() == 0 && std::current_exception() == nullptr,
       "no exception is left");
    is(haft_pool_report().stacks == 0, "no stack is left");
}

void *address_of(const std::function<void(inner_t)> &frame) {
    return const_cast<void *>(static_cast<const void *>(&frame));
}
void *perform_stop(void *frame) {
    (*static_cast<const std::function<void(inner_t)> *>(frame))([] { haft::perform(Stop{}); });
    return nullptr;
}
void *throw_ended(void *frame) {
    (*static_cast<const std::function<void(inner_t)> *>(frame))([] { HAFT_THROW(ended); });
    return nullptr;
}

void the_unwinding_goes_on_where_the_block_ends() {
    for (const auto &each : frames) {
        const char *name = each.name;
        const auto &frame = each.frame;
        int blocks = each.blocks;
        auto body = [&](auto perform) {
            return [&frame, perform] {
                counted local;
                frame([&] {
                    counted inside;
                    perform();
                });
            };
        };
        auto stops = body([] { haft::perform(Stop{}); });
        check(name, "a drop", blocks, [&] {
            haft::handle(stops).with([](Stop, haft::resumption<void()> k) {
                std::move(k).drop();
                told += ".";
            });
        });
        check(name, "a resumption's end", blocks, [&] {
            haft::handle(stops).with([](Stop, haft::resumption<void()>) {});
            told += ".";
        });
        check(name, "a drop from elsewhere", blocks, [&] {
            std::optional<haft::resumption<void()>> kept;
            haft::handle(stops).with(
                [&](Stop, haft::resumption<void()> k) { kept = std::move(k); });
            kept.reset();
            told += ".";
        });
        check(name, "a never clause", blocks,
              [&] { haft::handle(stops).with(haft::never([](Stop) { told += "."; })); });
        check(name, "a never clause that throws", blocks, [&] {
            try {
                haft::handle(stops).with(haft::never([](Stop) { throw 7; }));
            } catch (int seven) {
                told += seven == 7 ? "." : "?";
            }
        });
        check(name, "a clause in place that throws", blocks, [&] {
            try {
                haft::handle(stops).with([](Stop) { throw 7; });
            } catch (int seven) {
                told += seven == 7 ? "." : "?";
            }
        });
        check(name, "a clause in place that throws, of a handler with a fiber", blocks, [&] {
            try {
                haft::handle(stops).on({.name = "own"}).with([](Stop) { throw 7; });
            } catch (int seven) {
                told += seven == 7 ? "." : "?";
            }
        });
        check(name, "the drop of a fiber of C", blocks, [&] {
            haft_fiber_t *fiber = haft_fiber_new(perform_stop, address_of(frame));
            haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES_ALL);
            haft_fiber_drop(fiber);
            told += ".";
        });
        check(name, "a throw of C", blocks, [&] {
            haft_fiber_t *fiber = haft_fiber_new(throw_ended, address_of(frame));
            haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ended));
            told += request.effect == HAFT_ID(ended) ? "." : "?";
            haft_fiber_drop(fiber);
        });
    }
}

/* ---- Another unwinding leaves the block ---- */

struct Leave : haft::effect<> {};

void leave_a_block_in_a_block() {
    try {
        try {
            haft::perform(Stop{});
        } catch (...) {
            entered++;
            haft::perform(Leave{});
        }
        went_on = true;
    } catch (...) {
        entered++;
    }
    went_on = true;
}
struct lands_in_destructor {
    ~lands_in_destructor() {
        try {
            haft::handle([] { haft::perform(Other{}); }).with([](Other) -> int { throw 3; });
        } catch (int) {
        }
    }
};
void leave_a_block_with_landings() {
    try {
        try {
            haft::perform(Stop{});
        } catch (...) {
            entered++;
            lands_in_destructor();
            lands_in_destructor local;
            haft::perform(Leave{});
        }
        went_on = true;
    } catch (...) {
        entered++;
    }
    went_on = true;
}

/* Each way to unwind a frame, and each to unwind it from its block, by a handler further out or by
   the same. */
void the_unwinding_that_leaves_a_block_goes_on_from_the_next() {
    auto check_with = [](const char *name, auto stops, auto leaves) {
        for (auto frame : {leave_a_block_in_a_block, leave_a_block_with_landings}) {
            auto run = [frame] {
                counted local;
                frame();
            };
            auto check_run = [name](const char *handlers, auto handled) {
                check(handlers, name, 2, [&] {
                    try {
                        handled();
                    } catch (int seven) {
                        told += seven == 7 ? "" : "?";
                    }
                    told += ".";
                });
            };
            check_run("two handlers",
                      [&] { haft::handle([&] { haft::handle(run).with(stops); }).with(leaves); });
            check_run("one handler", [&] { haft::handle(run).with(stops, leaves); });
        }
    };
    auto drop_stop = [](Stop, haft::resumption<void()> k) { std::move(k).drop(); };
    auto drop_leave = [](Leave, haft::resumption<void()> k) { std::move(k).drop(); };
    auto throw_stop = [](Stop) { throw 7; };
    auto throw_leave = [](Leave) { throw 7; };
    check_with("drop, drop", drop_stop, drop_leave);
    check_with("drop, throw", drop_stop, throw_leave);
    check_with("throw, drop", throw_stop, drop_leave);
    check_with("throw, throw", throw_stop, throw_leave);
    check_with("never, never", haft::never([](Stop) {}), haft::never([](Leave) {}));
}

void *throw_ended_and_go_on(void *) {
    try {
        haft::handle([] {
            try {
                HAFT_THROW(ended);
            } catch (...) {
                haft::perform(Leave{});
            }
        }).with([](Leave) { throw 7; });
    } catch (int) {
    }
    return nullptr;
}
void a_fiber_that_goes_on_is_not_thrown_from() {
    haft_fiber_t *fiber = haft_fiber_new(throw_ended_and_go_on, nullptr);
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ended));
    CHECK(request.effect == HAFT_ID(return ) && !haft_is_thrown_from(fiber));
    haft_fiber_drop(fiber);
    CHECK(std::uncaught_exceptions() == 0 && haft_pool_report().stacks == 0);
}

/* ---- An exception takes the unwinding's place ---- */

int translated(int times) {
    try {
        haft::perform(Stop{});
    } catch (...) {
        entered++;
        throw std::runtime_error("from the block");
    }
    return times;
}

int translated_further_out(int times) {
    try {
        try {
            that_is_empty([] { haft::perform(Stop{}); });
        } catch (...) {
            entered++;
            throw;
        }
    } catch (...) {
        entered++;
        throw std::runtime_error("from the block");
    }
    return times;
}

/* Returns what the handler's end is, for each way to unwind. */
template <typename Body>
std::string ends_of(Body body) {
    told.clear();
    entered = 0;
    auto end = [](auto run) {
        try {
            told += run() + ";";
        } catch (const std::runtime_error &error) {
            told += std::string(error.what()) + ";";
        } catch (int number) {
            told += "thrown " + std::to_string(number) + ";";
        }
        CHECK(std::uncaught_exceptions() == 0 && std::current_exception() == nullptr);
        CHECK(counted::alive == 0);
        CHECK(haft_pool_report().stacks == 0);
    };
    end([&] {
        return haft::handle(body).with([](Stop, haft::resumption<std::string()> k) -> std::string {
            std::move(k).drop();
            return "dropped";
        });
    });
    end([&] {
        return haft::handle(body).with(
            haft::never([](Stop) -> std::string { return "the clause"; }));
    });
    end([&] { return haft::handle(body).with([](Stop) { throw 7; }); });
    end([&] { return haft::handle(body).on({.name = "own"}).with([](Stop) { throw 7; }); });
    return told;
}

void an_exception_that_leaves_the_block_goes_on_instead() {
    CHECK(ends_of([] {
              counted local;
              return std::to_string(translated(1));
          }) == "from the block;from the block;from the block;from the block;");
    CHECK(entered == 4);
    CHECK(ends_of([] {
              counted local;
              return std::to_string(translated_further_out(1));
          }) == "from the block;from the block;from the block;from the block;");
    CHECK(entered == 12);
}

void where_that_is_caught_the_computation_goes_on() {
    CHECK(ends_of([] {
              counted local;
              try {
                  translated(1);
              } catch (const std::exception &) {
              }
              return std::string("its answer");
          }) == "dropped;its answer;its answer;its answer;");
}

void what_goes_on_may_be_unwound_again() {
    CHECK(ends_of([] {
              counted local;
              for (int i = 0; i < 3; i++)
                  try {
                      translated(1);
                  } catch (const std::exception &) {
                  }
              haft::perform(Stop{});
              return std::string("never");
          }) == "dropped;the clause;thrown 7;thrown 7;");
    CHECK(entered == 12);
}

struct swallows_in_destructor {
    ~swallows_in_destructor() {
        try {
            haft::perform(Stop{});
        } catch (...) {
            entered++;
        }
    }
};

/* The exception for which the destructor runs. (A clause in place that throws has put that aside,
   and ends the program: nothing can leave the destructor.) */
void an_exception_in_flight_goes_on_instead() {
    auto body = [] {
        swallows_in_destructor local;
        throw std::runtime_error("in flight");
    };
    entered = 0;
    std::string ends;
    try {
        haft::handle(body).with([](Stop, haft::resumption<void()> k) { std::move(k).drop(); });
    } catch (const std::runtime_error &error) {
        ends += error.what();
    }
    try {
        haft::handle(body).with(haft::never([](Stop) {}));
    } catch (const std::runtime_error &error) {
        ends += error.what();
    }
    CHECK(ends == "in flightin flight" && entered == 2);
    CHECK(std::uncaught_exceptions() == 0 && haft_pool_report().stacks == 0);
}

/* ---- Nothing can leave a function that is noexcept ---- */

void swallow_in_noexcept() noexcept {
    that_is_empty([] { haft::perform(Stop{}); });
}
const char expected[] = "a function on it is noexcept, which nothing can leave.";

void a_block_in_noexcept_ends_the_program_in_words() {
    CHECK(last_words([] {
              haft::handle(swallow_in_noexcept).with([](Stop, haft::resumption<void()>) {});
          }).find(expected) != std::string::npos);
    CHECK(last_words([] {
              haft::handle([] {
                  swallows_in_destructor local;
              }).with([](Stop, haft::resumption<void()>) {});
          }).find(expected) != std::string::npos);
    CHECK(last_words([] {
              haft::handle(swallow_in_noexcept).with([](Stop) { throw 7; });
          }).find(expected) != std::string::npos);
}

} // namespace

int main() {
    the_unwinding_goes_on_where_the_block_ends();
    the_unwinding_that_leaves_a_block_goes_on_from_the_next();
    a_fiber_that_goes_on_is_not_thrown_from();
    an_exception_that_leaves_the_block_goes_on_instead();
    where_that_is_caught_the_computation_goes_on();
    what_goes_on_may_be_unwound_again();
    an_exception_in_flight_goes_on_instead();
    a_block_in_noexcept_ends_the_program_in_words();
}
