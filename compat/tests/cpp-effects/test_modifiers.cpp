/* Clause modifiers, alone and nested. The header on its own brings the other one along. */
#include "cpp-effects/clause-modifiers.h"

#include "../../../cpp/tests/check.hpp"

#include <stdexcept>
#include <string>
namespace eff = cpp_effects;

struct Get : eff::command<int> {};
struct Put : eff::command<> {
    int value;
};
struct Stop : eff::command<> {
    const std::string &why;
};
struct Outer : eff::command<int> {};

template <template <typename> typename ForGet, template <typename> typename ForPut>
class State : public eff::flat_handler<int, ForGet<Get>, ForPut<Put>> {
  public:
    explicit State(int start) : state(start) {}

  private:
    int state;
    int handle_command(Get) override { return state; }
    void handle_command(Put p) override { state = p.value; }
};
template <typename Cmd>
using plain_no_manage = eff::plain<eff::no_manage<Cmd>>;
template <typename Cmd>
using no_manage_plain = eff::no_manage<eff::plain<Cmd>>;

static int count() {
    for (int i = 0; i < 10; i++)
        eff::invoke_command(Put{{}, eff::invoke_command(Get{}) + 1});
    return eff::invoke_command(Get{});
}

static void plain_clauses_reply_at_once() {
    CHECK((eff::handle<State<eff::plain, eff::plain>>(count, 1)) == 11);
    CHECK((eff::handle<State<plain_no_manage, no_manage_plain>>(count, 1)) == 11);
    CHECK((eff::handle<State<eff::plain, eff::plain>>(
              4,
              [] {
                  eff::invoke_command(4, Put{{}, 9});
                  return eff::invoke_command(4, Get{});
              },
              1)) == 9);
}

/* All modifiers in one handler. */
class Mixed : public eff::handler<std::string, int, eff::plain<Get>, eff::no_manage<Put>,
                                  eff::no_manage<eff::no_resume<Stop>>> {
    int state = 0;
    int handle_command(Get) override { return state; }
    std::string handle_command(Put p, eff::resumption<std::string()> r) override {
        state = p.value;
        return std::move(r).tail_resume();
    }
    /* The object to which the command refers is still there. */
    std::string handle_command(Stop s) override {
        return s.why + " " + std::to_string(counted::alive);
    }
    std::string handle_return(int result) override { return std::to_string(result); }
};

static void modifiers_mix() {
    CHECK(eff::handle<Mixed>(count) == "10");
    CHECK(eff::handle<Mixed>([] {
              counted local;
              count();
              std::string why = "stopped in the middle of things";
              eff::invoke_command(Stop{{}, why});
              return 1;
          }) == "stopped in the middle of things 1");
    CHECK(counted::alive == 0);
    CHECK(eff::wrap<Mixed>([] {
              eff::invoke_command(Stop{{}, std::string("early")});
              return 1;
          }).resume() == "early 0");
}

/* A clause's own commands go to the handlers further out, also when they suspend it. */
class Forwarding : public eff::flat_handler<int, eff::plain<Get>> {
    int handle_command(Get) override {
        return eff::invoke_command(Outer{}) + 10 * eff::invoke_command(Get{});
    }
};
class Counting : public eff::flat_handler<int, Outer, Get> {
    int next = 0;
    int handle_command(Outer, eff::resumption<int(int)> r) override {
        return std::move(r).resume(++next);
    }
    int handle_command(Get, eff::resumption<int(int)> r) override {
        return std::move(r).tail_resume(5);
    }
};

static void plain_clauses_run_outside_their_handler() {
    CHECK(eff::handle<Counting>([] {
              return eff::handle<Forwarding>(
                  [] { return eff::invoke_command(Get{}) * 100 + eff::invoke_command(Get{}); });
          }) == 5152);
}

class Refusing : public eff::flat_handler<int, eff::plain<Get>, eff::plain<Put>, Outer> {
    int handle_command(Get) override { throw std::runtime_error("no"); }
    void handle_command(Put) override {}
    int handle_command(Outer, eff::resumption<int(int)> r) override {
        return std::move(r).resume(3);
    }
};

static void exceptions_of_plain_clauses_come_out_of_the_invocation() {
    CHECK(eff::handle<Refusing>([] {
              counted local;
              int caught = 0;
              for (int i = 0; i < 3; i++)
                  try {
                      eff::invoke_command(Get{});
                  } catch (const std::runtime_error &) {
                      caught++;
                      /* The handler is still there, also while the exception is handled. */
                      eff::invoke_command(Put{{}, 1});
                      caught += eff::invoke_command(Outer{});
                  }
              return caught;
          }) == 12);
    CHECK(thrown_by<std::runtime_error>([] { eff::handle<Refusing>(count); }).what() ==
          std::string("no"));
    CHECK(counted::alive == 0);
}

int main() {
    plain_clauses_reply_at_once();
    modifiers_mix();
    plain_clauses_run_outside_their_handler();
    exceptions_of_plain_clauses_come_out_of_the_invocation();
}
// SPDX-License-Identifier: MIT
