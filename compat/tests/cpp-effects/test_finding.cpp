/* Handlers that are looked for, by label or command, and what is public of them. */
#include "../../../cpp/tests/check.hpp"

#include "cpp-effects/cpp-effects.h"
#include <memory>
namespace eff = cpp_effects;

struct Ask : eff::command<int> {};
struct Tell : eff::command<> {
    int value;
};

class Answers : public eff::flat_handler<int, eff::plain<Ask>> {
  public:
    explicit Answers(int given) : answer(given) {}

  private:
    int answer;
    int handle_command(Ask) override { return answer; }
};
class Listens : public eff::flat_handler<int, Tell> {
  public:
    int told = 0;

  private:
    int handle_command(Tell t, eff::resumption<int()> r) override {
        told += t.value;
        return std::move(r).tail_resume();
    }
};

static void handlers_are_found_by_their_label() {
    CHECK(eff::handle<Answers>(
              7,
              [] {
                  return eff::handle<Answers>(
                      8,
                      [] {
                          eff::handler_ref outer = eff::find_handler(7),
                                           inner = eff::find_handler(8);
                          CHECK(outer != inner && inner == eff::find_handler(8));
                          return eff::invoke_command(outer, Ask{}) * 10 +
                                 eff::static_invoke_command<Answers>(inner, Ask{});
                      },
                      2);
              },
              1) == 12);
}

static void handlers_are_found_by_a_command() {
    CHECK(eff::handle<Answers>(
              [] {
                  return eff::handle_ref<Listens>([](eff::handler_ref listens) {
                      CHECK(eff::find_handler<Tell>() == listens);
                      CHECK(eff::find_handler<Ask>() != listens);
                      eff::handler_ref found = eff::find_handler<Ask>();
                      return eff::handle<Answers>(
                          [&] {
                              return eff::invoke_command(found, Ask{}) * 10 +
                                     eff::invoke_command(eff::find_handler<Ask>(), Ask{});
                          },
                          2);
                  });
              },
              1) == 12);
}

static void a_handler_of_haft_is_found_too() {
    CHECK(haft::handle([] {
              eff::handler_ref found = eff::find_handler<Ask>();
              CHECK(*found == nullptr);
              return eff::invoke_command(found, Ask{});
          }).with([](Ask) { return 3; }) == 3);
}

static void a_reference_leads_to_the_handler_and_its_label() {
    auto handler = std::make_shared<Listens>();
    eff::handle_with(
        5,
        [&] {
            eff::handler_ref found = eff::find_handler<Tell>();
            CHECK(*found == handler.get() && (*found)->label == 5 && handler->label == 5);
            return 0;
        },
        handler);
}

static void clauses_may_be_called() {
    Answers answers(4);
    eff::handler<int, int, eff::plain<Ask>> &clauses = answers;
    CHECK(clauses.handle_command(Ask{}) == 4);
    Listens listens;
    eff::handler<int, int, Tell> &other = listens;
    eff::resumption<int()> rest(std::function<int()>([] { return 6; }));
    CHECK(other.handle_command(Tell{{}, 2}, std::move(rest)) == 6 && listens.told == 2);
}

static void a_resumption_is_made_of_a_reference_to_its_data() {
    auto start = eff::wrap<Answers>([] { return eff::invoke_command(Ask{}); }, 9);
    eff::resumption_data<void, int> *released = start.release();
    CHECK(!start && released != nullptr);
    eff::resumption<int()> again(*released);
    CHECK(std::move(again).resume() == 9);
}

int main() {
    handlers_are_found_by_their_label();
    handlers_are_found_by_a_command();
    a_handler_of_haft_is_found_too();
    a_reference_leads_to_the_handler_and_its_label();
    clauses_may_be_called();
    a_resumption_is_made_of_a_reference_to_its_data();
}
// SPDX-License-Identifier: MIT
