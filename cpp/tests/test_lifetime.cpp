/* How long handlers, bodies and computations live (§3.5). For ASan and Valgrind as much as by
 * itself. */
#include "check.hpp"

#include <haft.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct Get : haft::effect<int> {};
struct Log : haft::effect<> {
    std::string message;
};
struct Pause : haft::effect<> {};

class Logger : public haft::handler<Log, haft::never<Pause>> {
  public:
    explicit Logger(std::string text) : separator(std::move(text)) {}
    std::string on_return() { return ""; }
    std::string operator()(Log log, haft::resumption<std::string()> k) {
        std::string rest = std::move(k).resume();
        return log.message + separator + rest; /* the computation is over by now */
    }
    std::string operator()(Pause) { return "paused" + separator; }

  private:
    std::string separator;
    counted life;
};

static void log_three() {
    for (const char *word : {"one", "two", "three"})
        haft::perform(Log{.message = word});
}

static void a_clause_uses_its_handler_after_the_resume() {
    const std::string separator = " and, at some length, ";
    CHECK(haft::handle(log_three).with_new<Logger>(separator) ==
          "one" + separator + "two" + separator + "three" + separator);
    CHECK(haft::handle(log_three).with(std::make_shared<Logger>("; ")) == "one; two; three; ");
    CHECK(haft::handle([] {
              haft::perform(Log{.message = "a"});
              haft::perform(Pause{});
          }).with_new<Logger>(", ") == "a, paused, ");
    CHECK(counted::alive == 0);
}

static void a_clause_uses_its_captures_after_a_drop() {
    auto text = std::make_shared<std::string>("a text of some length, not in place");
    std::string got = haft::handle([] {
                          haft::perform(Pause{});
                          return std::string();
                      }).with([text](Pause, haft::resumption<std::string()> k) {
        std::move(k).drop();
        return *text;
    });
    CHECK(got == *text && text.use_count() == 1);
}

static haft::resumption<std::string()> global;

static void a_resumption_outlives_its_handle() {
    {
        std::string first = haft::handle([] {
                                counted local;
                                log_three();
                                return std::string("end");
                            })
                                .with([separator = std::string(" (some text that is long)"),
                                       c = counted()](Log log, haft::resumption<std::string()> k) {
                                    global = std::move(k);
                                    return log.message + separator;
                                });
        CHECK(first == "one (some text that is long)");
    }
    CHECK(counted::alive == 2);
    CHECK(std::move(global).resume() == "two (some text that is long)");
    CHECK(std::move(global).resume() == "three (some text that is long)");
    CHECK(std::move(global).resume() == "end");
    CHECK(counted::alive == 0);
}

static void assigning_over_a_live_resumption_drops_it() {
    auto start = [] {
        haft::handle([] {
            counted local;
            haft::perform(Pause{});
            return std::string();
        }).with([](Pause, haft::resumption<std::string()> k) {
            global = std::move(k);
            return std::string();
        });
    };
    start();
    start();
    CHECK(counted::alive == 1);
    global = {};
    CHECK(counted::alive == 0);
}

static void a_resumption_may_hold_itself() {
    /* In its handler, which is given by reference: dropped with the handler. */
    struct Keeper : haft::handler<Pause> {
        std::optional<haft::resumption<void()>> kept;
        void operator()(Pause, haft::resumption<void()> k) { kept = std::move(k); }
    };
    {
        Keeper keeper;
        haft::handle([] {
            counted local;
            haft::perform(Pause{});
            haft::perform(Pause{});
        }).with(keeper);
        CHECK(counted::alive == 1);
        std::move(*keeper.kept).resume();
        CHECK(counted::alive == 1);
    }
    CHECK(counted::alive == 0);
    /* In its own handler, given by value, until the computation ends. */
    auto pointer = std::make_unique<Keeper>();
    Keeper *keeper = pointer.get();
    haft::handle([] {
        counted local;
        haft::perform(Pause{});
    }).with(std::move(pointer));
    CHECK(counted::alive == 1);
    haft::resumption<void()> self = std::move(*keeper->kept);
    std::move(self).resume();
    CHECK(counted::alive == 0);
    /* On its own stack: dropped from within, by what is dropped. */
    std::shared_ptr<haft::resumption<void()>> cell = std::make_shared<haft::resumption<void()>>();
    std::weak_ptr<haft::resumption<void()>> watch = cell;
    haft::handle([cell] {
        auto mine = cell;
        counted local;
        haft::perform(Pause{});
    }).with([watch](Pause, haft::resumption<void()> k) { *watch.lock() = std::move(k); });
    CHECK(counted::alive == 1);
    haft::resumption<void()> out = std::move(*cell);
    *cell = std::move(out);
    std::move(*cell).drop();
    CHECK(counted::alive == 0);
}

class Answering : public haft::handler<Get> {
  public:
    explicit Answering(int with) : value(with) {}
    int operator()(Get, haft::resumption<int(int)> k) { return std::move(k).resume(value); }

  private:
    int value;
    counted life;
};

static void handlers_are_swapped_in_flight() {
    auto body = [] {
        counted local;
        int sum = 0;
        for (int i = 0; i < 4; i++)
            sum = sum * 10 + haft::perform(Get{});
        return sum;
    };
    Answering third(3);
    CHECK(haft::handle(body).with([&](Get, haft::resumption<int(int)> k) {
        return std::move(k).resume_with(Answering(2), 1);
    }) == 1222);
    CHECK(haft::handle(body).with([&](Get, haft::resumption<int(int)> k) {
        return std::move(k).resume_with(third, 1);
    }) == 1333);
    CHECK(haft::handle(body).with([&](Get, haft::resumption<int(int)> k) {
        return std::move(k).resume_with([](Get) { return 5; }, 1);
    }) == 1555);
    /* Again and again, and to and fro: the clause that swapped uses its captures afterwards. */
    struct Alternating : haft::handler<Get> {
        int value;
        std::string text = "a text of some length, not in place";
        explicit Alternating(int with) : value(with) {}
        int operator()(Get, haft::resumption<int(int)> k) {
            int answer = std::move(k).resume_with(Alternating(value % 2 + 1), value);
            CHECK(text.size() > 20);
            return answer;
        }
    };
    CHECK(haft::handle(body).with_new<Alternating>(1) == 1212);
    /* With another answer, and with the body's result named. */
    auto text = haft::clauses([](Get) { return 6; },
                              haft::on_return([](int number) { return std::to_string(number); }));
    CHECK(haft::handle(body).with([&](Get, haft::resumption<int(int)> k) {
        return static_cast<int>(std::move(k).resume_with(text, 1).size());
    }) == 4);
    CHECK(haft::handle(body).with(
              [&](Get, haft::resumption<std::string(int)> k) {
                  return std::move(k).resume_with<int>(text, 2);
              },
              haft::on_return([](int) { return std::string("not asked"); })) == "2666");
    CHECK(thrown_by<std::logic_error>([&] {
              haft::handle(body).with(
                  [&](Get, haft::resumption<std::string(int)> k) {
                      return std::string(
                          1, std::move(k).resume_with(haft::clauses([](Get) { return 6; }), 2)[0]);
                  },
                  haft::on_return([](int) { return std::string("not asked"); }));
          }).what() != nullptr);
    CHECK(counted::alive == 1); /* `third` */
}

static void what_is_dropped_is_unwound_innermost_first() {
    std::string trace;
    struct note {
        std::string &trace;
        char letter;
        ~note() { trace += letter; }
    };
    haft::handle([&] {
        note a{trace, 'a'};
        haft::handle([&] {
            note b{trace, 'b'};
            haft::handle([&] {
                note c{trace, 'c'};
                haft::perform(Pause{});
            }).with([](Get) { return 1; });
        }).with([](Log, haft::resumption<void()>) {});
        trace += '!';
    }).with([](Pause, haft::resumption<void()>) {});
    CHECK(trace == "cba");
}

static void what_is_dropped_may_still_perform() {
    int sum = 0;
    struct guard {
        ~guard() { haft::perform(Log{.message = "x"}); }
    };
    haft::handle([] {
        guard outer;
        haft::handle([] {
            guard inner;
            haft::perform(Pause{});
        }).with([](Pause, haft::resumption<void()>) {});
    }).with([&](Log) { sum++; });
    CHECK(sum == 2);
}

static void bodies_are_kept_with_the_computation() {
    auto text = std::make_shared<int>(1);
    haft::resumption<int()> kept;
    haft::handle([text] {
        haft::perform(Pause{});
        return *text;
    }).with([&](Pause, haft::resumption<int()> k) {
        kept = std::move(k);
        return 0;
    });
    CHECK(text.use_count() == 2);
    CHECK(std::move(kept).resume() == 1);
    CHECK(text.use_count() == 1);
}

static void a_constructor_that_throws_leaves_nothing() {
    struct Broken : haft::handler<Pause> {
        counted before;
        Broken() { throw 1; }
        void operator()(Pause, haft::resumption<void()>) {}
    };
    thrown_by<int>([] { haft::handle([c = counted()] {}).with_new<Broken>(); });
    CHECK(counted::alive == 0);
}

int main() {
    a_clause_uses_its_handler_after_the_resume();
    a_clause_uses_its_captures_after_a_drop();
    a_resumption_outlives_its_handle();
    assigning_over_a_live_resumption_drops_it();
    a_resumption_may_hold_itself();
    handlers_are_swapped_in_flight();
    what_is_dropped_is_unwound_innermost_first();
    what_is_dropped_may_still_perform();
    bodies_are_kept_with_the_computation();
    a_constructor_that_throws_leaves_nothing();
}
// SPDX-License-Identifier: MIT
