/* Every way to handle a computation, every way to invoke a command. */
#include "../../../cpp/tests/check.hpp"

#include "cpp-effects/cpp-effects.h"
#include <memory>
#include <string>
#include <type_traits>
namespace eff = cpp_effects;

struct Ask : eff::command<int> {};
struct Tell : eff::command<> {
    std::string text;
};

static_assert(std::is_same_v<Ask::out_type, int>);
static_assert(std::is_same_v<Tell::out_type, void>);
static_assert(std::is_same_v<Ask::resumption_type<char>, char(int)>);
static_assert(std::is_same_v<Tell::resumption_type<char>, char()>);

/* Answers questions, and makes its answer of all that it was told and what the body returned. */
class Listener : public eff::handler<std::string, int, Ask, Tell> {
  public:
    explicit Listener(int given, std::string start = "") : answer(given), told(std::move(start)) {}

  private:
    int answer;
    std::string told;
    std::string handle_command(Ask, eff::resumption<std::string(int)> r) override {
        return std::move(r).resume(answer);
    }
    std::string handle_command(Tell t, eff::resumption<std::string()> r) override {
        told += t.text;
        return std::move(r).tail_resume();
    }
    std::string handle_return(int result) override { return told + std::to_string(result); }
};
static_assert(std::is_same_v<Listener::answer_type, std::string>);
static_assert(std::is_same_v<Listener::body_type, int>);

class Quiet : public eff::flat_handler<int, Ask> {
    int handle_command(Ask, eff::resumption<int(int)> r) override { return std::move(r).resume(1); }
};
class Silent : public eff::flat_handler<void, eff::no_manage<Ask>> {
    void handle_command(Ask, eff::resumption<void(int)> r) override { std::move(r).resume(2); }
};

static int ask() {
    return eff::invoke_command(Ask{});
}
static void tell(std::string text) {
    eff::invoke_command(Tell{{}, std::move(text)});
}
static int talk() {
    tell("a");
    int got = ask();
    tell("b");
    return got;
}

static void bodies_are_callables_of_any_kind() {
    struct Object {
        std::unique_ptr<int> own = std::make_unique<int>(3);
        int operator()() { return *own + ask(); }
    };
    CHECK(eff::handle<Listener>(talk, 7) == "ab7");
    CHECK(eff::handle<Listener>(&talk, 7, "start") == "startab7");
    std::function<int()> function = talk;
    CHECK(eff::handle<Listener>(function, 8) == "ab8");
    CHECK(eff::handle<Listener>(Object{}, 8) == "11");
    CHECK(eff::handle<Listener>([n = 1]() mutable { return ++n; }, 8) == "2");
    CHECK(eff::handle<Listener>([] { return 'a'; }, 8) == "97");
    CHECK(eff::handle<Quiet>(ask) == 1);
    int got = 0;
    eff::handle<Silent>([&] { return got = ask(); });
    CHECK(got == 2);
}

static void handlers_have_labels() {
    CHECK(eff::handle<Listener>(
              5, [] { return eff::invoke_command(5, Ask{}); }, 7) == "7");
    CHECK(eff::handle<Listener>(
              5,
              [] {
                  return eff::handle<Quiet>(6, [] {
                      return eff::invoke_command(5, Ask{}) * 100 +
                             eff::invoke_command(6, Ask{}) * 10 + ask();
                  });
              },
              7) == "711");
    CHECK(eff::handle<Listener>(
              5, [] { return eff::static_invoke_command<Listener>(5, Ask{}); }, 7) == "7");
    CHECK(eff::handle<Listener>(
              5, [] { return eff::static_invoke_command(5, Ask{}); }, 7) == "7");
    CHECK(eff::handle<Listener>([] { return eff::static_invoke_command<Listener>(Ask{}); }, 7) ==
          "7");
}

static void the_innermost_handler_with_a_label_is_meant() {
    auto nested = [](std::int64_t outer, std::int64_t inner, std::int64_t asked) {
        return eff::handle<Listener>(
            outer,
            [=] {
                return eff::handle<Quiet>(inner, [=] {
                    int sum = 0;
                    for (int i = 0; i < 3; i++)
                        sum = sum * 10 + eff::invoke_command(asked, Ask{});
                    return sum;
                });
            },
            7);
    };
    CHECK(nested(1, 2, 1) == "777");
    CHECK(nested(1, 2, 2) == "111");
    CHECK(nested(1, 1, 1) == "111");
    /* Labels that share a place in the cache. */
    CHECK(nested(4, 8, 4) == "777");
    CHECK(nested(4, 8, 8) == "111");
    CHECK(nested(INT64_MAX, INT64_MAX - 1, INT64_MAX) == "777");
    CHECK(nested(1, INT64_C(1) << 32 | 1, 1) == "777");
}

static void the_meaning_of_a_label_follows_the_handlers() {
    /* The same fiber, resumed under a handler with the label of one further out. */
    eff::resumption<int()> inner = eff::wrap<Quiet>([] {
        int first = eff::invoke_command(1, Ask{});
        tell("");
        return first * 10 + eff::invoke_command(1, Ask{});
    });
    struct Catch : eff::flat_handler<int, Tell> {
        eff::resumption<int()> *kept;
        explicit Catch(eff::resumption<int()> *where) : kept(where) {}
        int handle_command(Tell, eff::resumption<int()> r) override {
            *kept = std::move(r);
            return 0;
        }
    };
    CHECK(eff::handle<Listener>(
              1,
              [&] {
                  eff::resumption<int()> kept;
                  eff::handle<Catch>([&] { return std::move(inner).resume(); }, &kept);
                  return eff::handle<Quiet>(1, [&] { return std::move(kept).resume(); });
              },
              7) == "71");
}

static void fresh_labels_differ() {
    std::int64_t one = eff::fresh_label(), other = eff::fresh_label();
    CHECK(one != other && one < 0 && other < 0 && one != -2 && other != -2);
    CHECK(eff::handle<Listener>(
              one,
              [=] {
                  return eff::handle<Quiet>(other, [=] { return eff::invoke_command(one, Ask{}); });
              },
              7) == "7");
}

static void a_reference_is_to_one_handler() {
    auto asks = [](eff::handler_ref outer) {
        return eff::handle_ref<Quiet>([=](eff::handler_ref inner) {
            eff::handler_ref copy;
            copy = outer;
            return eff::invoke_command(copy, Ask{}) * 1000 +
                   eff::invoke_command(inner, Ask{}) * 100 +
                   eff::static_invoke_command<Listener>(outer, Ask{}) * 10 +
                   eff::static_invoke_command<Quiet>(inner, Ask{});
        });
    };
    CHECK(eff::handle_ref<Listener>(asks, 7) == "7171");
    CHECK(eff::handle_ref<Listener>(3, asks, 7) == "7171");
    CHECK(eff::handle_with_ref(asks, std::make_shared<Listener>(7)) == "7171");
    CHECK(eff::handle_with_ref(3, asks, std::make_shared<Listener>(7)) == "7171");
    CHECK(eff::handle_ref<Listener>(
              3, [](eff::handler_ref) { return eff::invoke_command(3, Ask{}); }, 7) == "7");
}

static void existing_handlers_can_be_used_again() {
    auto handler = std::make_shared<Listener>(7, "-");
    CHECK(eff::handle_with(talk, handler) == "-ab7");
    CHECK(eff::handle_with(4, talk, handler) == "-abab7");
    /* In two computations at once, under labels of their own. */
    CHECK(eff::handle_with(
              1,
              [&] {
                  std::string inner = eff::handle_with(
                      2, [] { return eff::invoke_command(1, Ask{}); }, handler);
                  tell(inner);
                  return 5;
              },
              handler) == "-abab-abab75");
    std::shared_ptr<eff::flat_handler<int, Ask>> base = std::make_shared<Quiet>();
    CHECK(eff::handle_with(ask, base) == 1);
    CHECK((eff::handle_with<eff::flat_handler<int, Ask>>(ask, std::make_shared<Quiet>())) == 1);
}

int main() {
    bodies_are_callables_of_any_kind();
    handlers_have_labels();
    the_innermost_handler_with_a_label_is_meant();
    the_meaning_of_a_label_follows_the_handlers();
    fresh_labels_differ();
    a_reference_is_to_one_handler();
    existing_handlers_can_be_used_again();
}
// SPDX-License-Identifier: MIT
