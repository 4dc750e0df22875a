/* Exceptions and handlers: where an exception goes, what is unwound, and what each fiber sees of
 * it. */
#include "check.hpp"

#include <haft.hpp>
#include <stdexcept>
#include <string>

struct Get : haft::effect<int> {};
struct Outer : haft::effect<int> {};
struct Stop : haft::effect<> {};

struct problem {
    int number;
    counted life;
};

static const void *identity;

static void passes_through_handlers_with_its_identity() {
    for (bool general : {false, true}) {
        auto body = [] {
            counted local;
            haft::perform(Get{});
            problem p{7, {}};
            try {
                throw p;
            } catch (problem &thrown) {
                identity = &thrown;
                throw;
            }
        };
        try {
            if (general)
                haft::handle([&] {
                    haft::handle(body).with(
                        [](Get, haft::resumption<void(int)> k) { std::move(k).resume(1); });
                }).with([](Outer, haft::resumption<void(int)>) {});
            else
                haft::handle(body).with([](Get) { return 1; });
            CHECK(false);
        } catch (problem &caught) {
            CHECK(&caught == identity);
            CHECK(caught.number == 7);
        }
        CHECK(counted::alive == 0);
    }
}

static void a_clause_in_place_throws_to_its_handler() {
    std::string trace;
    auto body = [&] {
        struct note {
            std::string &trace;
            ~note() { trace += "unwound "; }
        } note{trace};
        try {
            haft::perform(Get{});
        } catch (const std::runtime_error &) {
            trace += "caught by the performer ";
        }
        trace += "went on ";
    };
    auto throwing = [](Get) -> int { throw std::runtime_error("clause"); };
    /* Without a fiber. */
    CHECK(thrown_by<std::runtime_error>([&] { haft::handle(body).with(throwing); }).what() ==
          std::string("clause"));
    CHECK(trace == "unwound ");
    /* Beside a general clause, with a fiber. */
    trace = "";
    thrown_by<std::runtime_error>(
        [&] { haft::handle(body).with(throwing, [](Outer, haft::resumption<void(int)>) {}); });
    CHECK(trace == "unwound ");
    /* Through handlers and fibers that lie between. */
    trace = "";
    thrown_by<std::runtime_error>([&] {
        haft::handle([&] {
            haft::handle([&] {
                haft::handle([&] {
                    haft::handle(body).with([](Stop) {});
                }).with([](Outer, haft::resumption<void(int)>) {});
                trace += "went on ";
            }).with([](Stop, haft::resumption<void()>) {});
        }).with(throwing);
    });
    CHECK(trace == "unwound ");
    trace = "";
    thrown_by<std::runtime_error>([&] {
        haft::handle([&] {
            haft::handle([&] {
                haft::handle([&] {
                    haft::handle(body).with([](Stop) {});
                }).with([](Outer, haft::resumption<void(int)>) {});
                trace += "went on ";
            }).with([](Outer) { return 1; });
        }).with(throwing, [](Stop, haft::resumption<void()>) {});
    });
    CHECK(trace == "unwound ");
}

/* A clause as in a list, and among lambdas; without a fiber, and beside a general clause. */
struct raising_handler : haft::handler<haft::raising<Get>> {
    int operator()(Get) { throw std::runtime_error("clause"); }
};

static void a_raising_clause_throws_at_the_perform() {
    std::string trace;
    auto body = [&] {
        try {
            haft::perform(Get{});
        } catch (const std::runtime_error &caught) {
            trace += caught.what();
        }
        trace += haft::perform(Get{}) == 7 ? " and goes on" : "";
    };
    auto throwing = haft::raising([times = 0](Get) mutable -> int {
        return times++ == 0 ? throw std::runtime_error("clause") : 7;
    });
    haft::handle(body).with(throwing);
    CHECK(trace == "clause and goes on");
    trace = "";
    haft::handle(body).with(throwing, [](Outer, haft::resumption<void(int)>) {});
    CHECK(trace == "clause and goes on");
    trace = "";
    haft::handle([&] { /* what lies between is not left */
                       haft::handle(body).with([](Outer, haft::resumption<void(int)>) {});
    })
        .with(throwing);
    CHECK(trace == "clause and goes on");
    CHECK(thrown_by<std::runtime_error>([] {
              haft::handle([] { return haft::perform(Get{}); }).with_new<raising_handler>();
          }).what() == std::string("clause"));
    try {
        throw 1;
    } catch (int) { /* the performer's own exception stays */
        trace = "";
        haft::handle(body).with(throwing);
        CHECK(trace == "clause and goes on" && std::current_exception() != nullptr);
    }
}

static void a_clause_in_place_throws_while_others_are_handled() {
    for (int fiber = 0; fiber < 2; fiber++) {
        try {
            throw 1;
        } catch (int) {
            auto body = [] {
                try {
                    throw 2L;
                } catch (long) {
                    haft::perform(Get{});
                }
            };
            auto clause = [](Get) -> int {
                CHECK(std::uncaught_exceptions() == 0);
                throw std::string("clause");
            };
            try {
                if (fiber)
                    haft::handle(body).with(clause, [](Stop, haft::resumption<void()>) {});
                else
                    haft::handle(body).with(clause);
                CHECK(false);
            } catch (std::string &text) {
                CHECK(text == "clause");
            }
            try {
                throw;
            } catch (int number) {
                CHECK(number == 1);
            }
        }
        CHECK(std::uncaught_exceptions() == 0);
        CHECK(std::current_exception() == nullptr);
    }
}

static void a_clause_in_place_catches_for_itself() {
    int got = haft::handle([] { return haft::perform(Get{}); }).with([](Get) {
        try {
            throw 5;
        } catch (int number) {
            return number;
        }
    });
    CHECK(got == 5);
}

static void a_general_clause_throws_and_the_computation_is_unwound() {
    thrown_by<std::runtime_error>([] {
        haft::handle([] {
            counted local;
            try {
                haft::perform(Get{});
            } catch (const std::runtime_error &) {
                CHECK(false);
            }
        }).with([](Get, haft::resumption<void(int)>) -> void {
            throw std::runtime_error("clause");
        });
    });
    CHECK(counted::alive == 0);
}

static void a_clause_that_is_dropped_itself_is_unwound() {
    /* The clause of Get, in place, performs Stop, whose handler drops everything. */
    for (bool in_catch : {false, true}) {
        auto inner = [in_catch] {
            counted local;
            if (!in_catch) {
                haft::perform(Get{});
                return;
            }
            try {
                throw 1;
            } catch (int) {
                haft::perform(Get{});
            }
        };
        int answer = haft::handle([&] {
                         haft::handle(inner).with([](Get) {
                             counted local;
                             haft::perform(Stop{});
                             return 1;
                         });
                         return 1;
                     }).with(haft::never([](Stop) { return 2; }));
        CHECK(answer == 2);
        CHECK(counted::alive == 0);
        CHECK(std::uncaught_exceptions() == 0);
    }
}

static void discontinue_throws_at_the_perform() {
    int answer = haft::handle([] {
                     try {
                         return haft::perform(Get{});
                     } catch (const std::out_of_range &) {
                         return -1;
                     }
                 }).with([](Get, haft::resumption<int(int)> k) {
        return std::move(k).discontinue(std::out_of_range("x"));
    });
    CHECK(answer == -1);
    auto pointer = std::make_exception_ptr(problem{3, {}});
    CHECK(thrown_by<problem>([&] {
              haft::handle([] {
                  haft::perform(Get{});
              }).with([&](Get, haft::resumption<void(int)> k) {
                  std::move(k).discontinue(std::move(pointer));
              });
          }).number == 3);
    CHECK(counted::alive == 0);
    /* A computation that is not started: the exception goes to the caller that would have started it. */
    auto start = haft::wrap([] { CHECK(false); }).with([](Get, haft::resumption<void(int)>) {});
    thrown_by<int>([&] { std::move(start).discontinue(4); });
}

static void discontinue_without_an_exception_is_an_error_that_says_so() {
    std::string message;
    haft::handle([&] {
        try {
            haft::perform(Outer{});
        } catch (const std::logic_error &error) {
            message = error.what();
        }
    }).with([](Outer, haft::resumption<void(int)> k) {
        std::move(k).discontinue(std::exception_ptr());
    });
    CHECK(message.find("discontinue() was given no exception") != std::string::npos);
}

static void each_fiber_has_its_own_exceptions() {
    haft::resumption<void(int)> kept;
    auto hold = [&](Get, haft::resumption<void(int)> k) { kept = std::move(k); };
    haft::handle([] {
        try {
            throw 1;
        } catch (int) {
            haft::perform(Get{});
            CHECK(std::current_exception() != nullptr);
            try {
                throw;
            } catch (int number) {
                CHECK(number == 1);
            }
        }
        CHECK(std::current_exception() == nullptr);
        struct guard {
            ~guard() {
                CHECK(std::uncaught_exceptions() == 1);
                haft::perform(Get{});
                CHECK(std::uncaught_exceptions() == 1);
            }
        };
        try {
            guard g;
            throw 2;
        } catch (int) {
        }
        CHECK(std::uncaught_exceptions() == 0);
    }).with(hold);
    CHECK(std::current_exception() == nullptr && std::uncaught_exceptions() == 0);
    try {
        throw 'x';
    } catch (char) {
        std::move(kept).resume(1);
        CHECK(std::uncaught_exceptions() == 0);
        try {
            throw;
        } catch (char c) {
            CHECK(c == 'x');
        }
    }
    std::move(kept).resume(1);
    CHECK(std::current_exception() == nullptr && std::uncaught_exceptions() == 0);
}

static void dropping_passes_a_catch_all_that_rethrows() {
    haft::handle([] {
        counted local;
        try {
            haft::perform(Get{});
        } catch (...) {
            throw;
        }
    }).with([](Get, haft::resumption<void(int)>) {});
    CHECK(counted::alive == 0);
    CHECK(std::uncaught_exceptions() == 0);
    thrown_by<int>([] {
        haft::handle([] {
            try {
                haft::perform(Get{});
            } catch (...) {
                throw;
            }
        }).with([](Get) -> int { throw 1; });
    });
    CHECK(std::uncaught_exceptions() == 0);
}

static void handling_works_in_destructors_during_unwinding() {
    struct guard {
        ~guard() {
            int got =
                haft::handle([] {
                    return haft::perform(Get{}) + 1;
                }).with([](Get, haft::resumption<int(int)> k) { return std::move(k).resume(41); });
            CHECK(got == 42);
            CHECK(std::uncaught_exceptions() == 1);
        }
    };
    thrown_by<int>([] {
        guard g;
        throw 1;
    });
}

static void a_default_handler_throws_to_the_performer() {
    haft::set_default<Outer>([](void *, Outer *) -> int { throw std::runtime_error("default"); });
    int got = 0;
    try {
        haft::perform(Outer{});
    } catch (const std::runtime_error &) {
        got = 1;
    }
    CHECK(got == 1);
    haft::set_default<Outer>(nullptr);
}

int main() {
    passes_through_handlers_with_its_identity();
    a_clause_in_place_throws_to_its_handler();
    a_raising_clause_throws_at_the_perform();
    a_clause_in_place_throws_while_others_are_handled();
    a_clause_in_place_catches_for_itself();
    a_general_clause_throws_and_the_computation_is_unwound();
    a_clause_that_is_dropped_itself_is_unwound();
    discontinue_throws_at_the_perform();
    discontinue_without_an_exception_is_an_error_that_says_so();
    each_fiber_has_its_own_exceptions();
    dropping_passes_a_catch_all_that_rethrows();
    handling_works_in_destructors_during_unwinding();
    a_default_handler_throws_to_the_performer();
}
// SPDX-License-Identifier: MIT
