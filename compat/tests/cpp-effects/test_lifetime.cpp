/* How long handlers live (§3.5), and what becomes of computations that are not finished. */
#include "../../../cpp/tests/check.hpp"

#include "cpp-effects/cpp-effects.h"
#include <memory>
#include <string>
namespace eff = cpp_effects;

struct Log : eff::command<> {
    std::string message;
};
struct Pause : eff::command<> {};

class Logger : public eff::handler<std::string, void, Log, eff::no_resume<Pause>> {
  public:
    explicit Logger(std::string text) : separator(std::move(text)) {}

  private:
    std::string separator;
    counted life;
    std::string handle_command(Log l, eff::resumption<std::string()> r) override {
        std::string rest = std::move(r).resume();
        return l.message + separator + rest; /* the computation is over by now */
    }
    std::string handle_command(Pause) override { return "paused" + separator; }
    std::string handle_return() override { return ""; }
};

static void log_three() {
    for (const char *word : {"one", "two", "three"})
        eff::invoke_command(Log{{}, word});
}

static void a_clause_uses_its_handler_after_the_resume() {
    const std::string text = " and, at some length, ";
    const std::string all = "one" + text + "two" + text + "three" + text;
    CHECK(eff::handle<Logger>(log_three, text) == all);
    CHECK(eff::handle_with(log_three, std::make_shared<Logger>(text)) == all);
    CHECK(eff::wrap<Logger>(log_three, text).resume() == all);
    CHECK(eff::handle<Logger>(
              [] {
                  eff::invoke_command(Log{{}, "a"});
                  eff::invoke_command(Pause{});
              },
              ", ") == "a, paused, ");
    CHECK(counted::alive == 0);
}

static eff::resumption<void()> global;

/* A clause that keeps the computation for later, and then uses its members. */
class Keeper : public eff::flat_handler<void, Pause> {
  public:
    explicit Keeper(std::string &where) : trace(where) {}
    ~Keeper() override { trace += "~"; }

  private:
    std::string &trace;
    std::string text = "kept. ";
    counted life;
    void handle_command(Pause, eff::resumption<void()> r) override {
        global = std::move(r);
        trace += text;
    }
    void handle_return() override { trace += "returned. "; }
};
static void pause_twice() {
    counted local;
    eff::invoke_command(Pause{});
    eff::invoke_command(Pause{});
}

static void handlers_live_as_long_as_their_computations() {
    std::string trace;
    eff::handle<Keeper>(pause_twice, trace);
    CHECK(trace == "kept. " && counted::alive == 2);
    std::move(global).resume();
    CHECK(trace == "kept. kept. " && counted::alive == 2);
    std::move(global).resume();
    CHECK(trace == "kept. kept. returned. ~" && counted::alive == 0);
    trace.clear();
    eff::handle<Keeper>(pause_twice, trace);
    global = {};
    CHECK(trace == "kept. ~" && counted::alive == 0);
    auto shared = std::make_shared<Keeper>(trace);
    eff::handle_with(pause_twice, shared);
    CHECK(shared.use_count() == 2);
    global = {};
    CHECK(shared.use_count() == 1 && counted::alive == 1);
    shared.reset();
    CHECK(counted::alive == 0);
}

static void a_clause_may_drop_its_computation_and_go_on() {
    class Dropping : public eff::flat_handler<int, Pause> {
        std::string text = "a text of some length, not in place";
        int handle_command(Pause, eff::resumption<int()> r) override {
            { auto dropped = std::move(r); }
            CHECK(counted::alive == 0);
            return static_cast<int>(text.size());
        }
    };
    CHECK(eff::handle<Dropping>([] {
              pause_twice();
              return 0;
          }) == 35);
}

static void what_is_dropped_is_unwound_through_handlers() {
    std::string trace;
    struct note {
        std::string &trace;
        char letter;
        ~note() { trace += letter; }
    };
    class Neutral : public eff::flat_handler<void, Log> {
        void handle_command(Log, eff::resumption<void()> r) override { std::move(r).resume(); }
    };
    eff::handle<Keeper>(
        [&] {
            note a{trace, 'a'};
            eff::handle<Neutral>([&] {
                note b{trace, 'b'};
                eff::invoke_command(Log{{}, "x"});
                note c{trace, 'c'};
                eff::invoke_command(Pause{});
                trace += '!';
            });
        },
        trace);
    CHECK(trace == "kept. ");
    global = {};
    CHECK(trace == "kept. cba~" && counted::alive == 0);
}

static void bodies_live_with_their_computation() {
    auto number = std::make_shared<int>(1);
    std::string trace;
    eff::handle<Keeper>(
        [number] {
            eff::invoke_command(Pause{});
            *number = 2;
        },
        trace);
    CHECK(number.use_count() == 2);
    std::move(global).resume();
    CHECK(number.use_count() == 1 && *number == 2);
}

static void handlers_that_cannot_be_moved_or_made() {
    class Fixed : public eff::flat_handler<int, Pause> {
      public:
        Fixed() = default;
        Fixed(const Fixed &) = delete;
        Fixed &operator=(const Fixed &) = delete;

      private:
        int handle_command(Pause, eff::resumption<int()> r) override {
            return std::move(r).tail_resume();
        }
    };
    CHECK(eff::handle<Fixed>([] { return 3; }) == 3);
    class Broken : public eff::flat_handler<int, Pause> {
      public:
        Broken() { throw 1; }

      private:
        counted before;
        int handle_command(Pause, eff::resumption<int()>) override { return 1; }
    };
    CHECK(thrown_by<int>([] { eff::handle<Broken>([c = counted()] { return 3; }); }) == 1);
    CHECK(thrown_by<int>([] { (void)eff::wrap<Broken>([c = counted()] { return 3; }); }) == 1);
    CHECK(counted::alive == 0);
}

int main() {
    a_clause_uses_its_handler_after_the_resume();
    handlers_live_as_long_as_their_computations();
    a_clause_may_drop_its_computation_and_go_on();
    what_is_dropped_is_unwound_through_handlers();
    bodies_live_with_their_computation();
    handlers_that_cannot_be_moved_or_made();
}
// SPDX-License-Identifier: MIT
