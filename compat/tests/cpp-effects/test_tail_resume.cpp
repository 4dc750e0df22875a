/* tail_resume: constant space where it ends a clause, a resume elsewhere. */
#include "../../../core/tests/check.h"

#include "cpp-effects/cpp-effects.h"
#include <list>
#include <memory>
#include <string>
namespace eff = cpp_effects;

static const int times = check_times(10000000);

struct Next : eff::command<int> {};
struct Yield : eff::command<> {};

template <typename Answer>
class Numbers : public eff::flat_handler<Answer, Next> {
    int next = 0;
    Answer handle_command(Next, eff::resumption<Answer(int)> r) override {
        return later(std::move(r));
    }
    /* "or a function called by a command clause" */
    Answer later(eff::resumption<Answer(int)> r) { return std::move(r).tail_resume(next++); }
};

static void a_clause_that_tail_resumes_takes_constant_space() {
    long sum = 0;
    eff::handle<Numbers<void>>([&] {
        for (int i = 0; i < times; i++)
            sum += eff::invoke_command(Next{});
    });
    CHECK(sum == static_cast<long>(times) * (times - 1) / 2);
    CHECK(eff::handle<Numbers<std::string>>([] {
              int last = 0;
              for (int i = 0; i < times / 10; i++)
                  last = eff::invoke_command(Next{});
              return std::to_string(last);
          }) == std::to_string(times / 10 - 1));
}

/* On a fiber of haft.hpp, and within a clause. */
struct Begin : haft::effect<int> {};
class Outer : public eff::flat_handler<int, Yield> {
    int handle_command(Yield, eff::resumption<int()> r) override {
        eff::handle<Numbers<void>>([] {
            for (int i = 0; i < times / 100; i++)
                eff::invoke_command(Next{});
        });
        return std::move(r).tail_resume();
    }
};
static void it_does_on_every_stack() {
    long sum = haft::handle([] {
                   long count = 0;
                   eff::handle<Numbers<void>>([&] {
                       for (int i = 0; i < times / 10; i++, count++)
                           eff::invoke_command(Next{});
                   });
                   return haft::perform(Begin{}) + count;
               }).with([](Begin, haft::resumption<long(int)> k) { return std::move(k).resume(1); });
    CHECK_EQUAL(sum, times / 10 + 1);
    CHECK(eff::handle<Outer>([] {
              for (int i = 0; i < 10; i++)
                  eff::invoke_command(Yield{});
              return 3;
          }) == 3);
}

/* Tail-resumes another computation than its own: a scheduler without a loop. */
class Scheduler : public eff::flat_handler<void, Yield> {
  public:
    static inline std::list<eff::resumption<void()>> queue;
    static void next() {
        if (queue.empty())
            return;
        auto r = std::move(queue.front());
        queue.pop_front();
        std::move(r).tail_resume();
    }

  private:
    void handle_command(Yield, eff::resumption<void()> r) override {
        queue.push_back(std::move(r));
        next();
    }
};

static void any_resumption_can_be_tail_resumed() {
    long turns[3] = {};
    for (long &turn : turns)
        Scheduler::queue.push_back(eff::wrap<Scheduler>([&turn] {
            for (int i = 0; i < times / 10; i++, turn++)
                eff::invoke_command(Yield{});
        }));
    while (!Scheduler::queue.empty())
        Scheduler::next(); /* outside clauses, it is resume */
    CHECK(turns[0] == times / 10 && turns[1] == times / 10 && turns[2] == times / 10);
}

/* A function as a resumption is called after the clause, too: when the clause has dropped its own
   resumption, and with it the handler, whose members the function must not use. */
class Replacing : public eff::flat_handler<std::string, Yield> {
  public:
    explicit Replacing(std::string &where) : trace(where) {}

  private:
    std::string &trace;
    std::string handle_command(Yield, eff::resumption<std::string()>) override {
        struct note {
            std::string &trace;
            ~note() { trace += "clause ends, "; }
        } leaving{trace};
        eff::resumption<std::string()> other([&told = trace] {
            told += "function runs";
            return std::string("replaced");
        });
        return std::move(other).tail_resume();
    }
};

static void functions_can_be_tail_resumed() {
    std::string trace;
    auto held = std::make_shared<int>();
    CHECK(eff::handle<Replacing>(
              [held] {
                  eff::invoke_command(Yield{});
                  return std::string();
              },
              trace) == "replaced");
    CHECK(trace == "clause ends, function runs");
    CHECK_EQUAL(held.use_count(), 1);
}

/* The clause's answer is of another type, or the code is not the clause's: it resumes at once. */
class Converting : public eff::flat_handler<std::string, Yield> {
    std::string handle_command(Yield, eff::resumption<std::string()> r) override {
        auto number = eff::wrap<Numbers<int>>([] { return eff::invoke_command(Next{}) + 4; });
        std::string first = std::to_string(std::move(number).tail_resume());
        return first + std::move(r).resume();
    }
};
class Plainly : public eff::flat_handler<int, eff::plain<Yield>> {
  public:
    explicit Plainly(eff::resumption<int()> given) : inner(std::move(given)) {}

  private:
    eff::resumption<int()> inner;
    void handle_command(Yield) override { CHECK(std::move(inner).tail_resume() == 8); }
};
class Around : public eff::flat_handler<int, Next> {
    int handle_command(Next, eff::resumption<int(int)> r) override {
        auto inner = eff::wrap<Numbers<int>>([] { return 8; });
        auto body = [] {
            eff::invoke_command(Yield{});
            return 2;
        };
        CHECK(eff::handle<Plainly>(body, std::move(inner)) == 2);
        int got = eff::handle<Numbers<int>>(
            [] { return eff::wrap<Numbers<int>>([] { return 5; }).tail_resume() + 1; });
        return std::move(r).tail_resume(got);
    }
};

static void elsewhere_it_resumes_at_once() {
    CHECK(eff::wrap<Numbers<int>>([] { return eff::invoke_command(Next{}) + 4; }).tail_resume() ==
          4);
    CHECK(eff::handle<Converting>([] {
              eff::invoke_command(Yield{});
              return std::string("!");
          }) == "4!");
    CHECK(eff::handle<Around>([] { return eff::invoke_command(Next{}); }) == 6);
}

/* A resumption that was tail-resumed but never runs is dropped. */
class Failing : public eff::flat_handler<void, Yield> {
    void handle_command(Yield, eff::resumption<void()> r) override {
        std::move(r).tail_resume();
        throw 1;
    }
};
static void a_clause_that_throws_drops_what_it_tail_resumed() {
    auto held = std::make_shared<int>();
    int caught = 0;
    try {
        eff::handle<Failing>([held] {
            auto local = held;
            eff::invoke_command(Yield{});
            CHECK(false);
        });
    } catch (int thrown) {
        caught = thrown;
    }
    CHECK_EQUAL(caught, 1);
    CHECK_EQUAL(held.use_count(), 1);
}

int main() {
    RUN(a_clause_that_tail_resumes_takes_constant_space);
    RUN(it_does_on_every_stack);
    RUN(any_resumption_can_be_tail_resumed);
    RUN(functions_can_be_tail_resumed);
    RUN(elsewhere_it_resumes_at_once);
    RUN(a_clause_that_throws_drops_what_it_tail_resumed);
    return check_end();
}
// SPDX-License-Identifier: MIT
