/* Exceptions through computations and handlers. */
#include "../../../cpp/tests/check.hpp"

#include "cpp-effects/cpp-effects.h"
#include <exception>
#include <stdexcept>
#include <string>
namespace eff = cpp_effects;

struct Ask : eff::command<int> {};
struct Stop : eff::command<> {};

class Asker : public eff::flat_handler<int, Ask, eff::no_resume<Stop>> {
  public:
    explicit Asker(bool refuses = false) : refusing(refuses) {}

  private:
    bool refusing;
    counted life;
    int handle_command(Ask, eff::resumption<int(int)> r) override {
        if (refusing)
            throw std::runtime_error("refused");
        return std::move(r).resume(1);
    }
    int handle_command(Stop) override { throw std::logic_error("stopped"); }
};

static void the_bodys_go_to_who_resumed_it() {
    auto body = [] {
        counted local;
        eff::invoke_command(Ask{});
        throw std::runtime_error("thrown");
        return 1;
    };
    CHECK(thrown_by<std::runtime_error>([&] { eff::handle<Asker>(body); }).what() ==
          std::string("thrown"));
    CHECK(thrown_by<std::runtime_error>([&] { eff::wrap<Asker>(body).resume(); }).what() ==
          std::string("thrown"));
    CHECK(eff::handle<Asker>([&] {
              try {
                  return eff::handle<Asker>(body);
              } catch (const std::runtime_error &) {
                  return 10 + eff::invoke_command(Ask{});
              }
          }) == 11);
    CHECK(counted::alive == 0);
}

static void a_clauses_go_to_the_handlers_context() {
    CHECK(thrown_by<std::runtime_error>([] {
              eff::handle<Asker>(
                  [] {
                      counted local;
                      try {
                          return eff::invoke_command(Ask{});
                      } catch (const std::runtime_error &) {
                          return 5; /* not its */
                      }
                  },
                  true);
          }).what() == std::string("refused"));
    CHECK(thrown_by<std::logic_error>([] {
              eff::handle<Asker>([] {
                  counted local;
                  eff::invoke_command(Stop{});
                  return 1;
              });
          }).what() == std::string("stopped"));
    CHECK(counted::alive == 0);
}

static void commands_can_be_invoked_while_one_is_handled() {
    CHECK(eff::handle<Asker>([] {
              try {
                  throw std::runtime_error("first");
              } catch (const std::runtime_error &) {
                  int got = eff::invoke_command(Ask{});
                  try {
                      throw;
                  } catch (const std::runtime_error &again) {
                      return got + (again.what() == std::string("first") ? 10 : 0);
                  }
              }
          }) == 11);
    struct asking {
        int &got;
        ~asking() { got = eff::invoke_command(Ask{}) + 100 * std::uncaught_exceptions(); }
    };
    CHECK(eff::handle<Asker>([] {
              int got = 0;
              try {
                  asking guard{got};
                  throw 1;
              } catch (int) {
              }
              return got;
          }) == 101);
}

class Returning : public eff::handler<int, void, Ask> {
    int handle_command(Ask, eff::resumption<int(int)> r) override {
        return std::move(r).tail_resume(1);
    }
    int handle_return() override { throw std::runtime_error("on return"); }
};
static void a_return_clauses_go_to_who_resumed() {
    CHECK(thrown_by<std::runtime_error>([] {
              eff::handle<Returning>([] { eff::invoke_command(Ask{}); });
          }).what() == std::string("on return"));
}

int main() {
    the_bodys_go_to_who_resumed_it();
    a_clauses_go_to_the_handlers_context();
    commands_can_be_invoked_while_one_is_handled();
    a_return_clauses_go_to_who_resumed();
}
// SPDX-License-Identifier: MIT
