/* A command is copied once on its way to the clause, and never moved; the invoker's stays as it is.
 */
#include "../../../cpp/tests/check.hpp"

#include "cpp-effects/cpp-effects.h"
#include <stdexcept>
#include <string>
namespace eff = cpp_effects;

static int copies, moves;
static bool copies_fail;
struct traced {
    std::string text = "a text of some length, not in place";
    traced() = default;
    traced(const traced &other) : text(other.text) {
        if (copies_fail)
            throw std::runtime_error("no copy");
        copies++;
    }
    traced(traced &&other) : text(std::move(other.text)) { moves++; }
};

struct Tell : eff::command<> {
    traced said;
};
struct Ask : eff::command<int> {
    traced asked;
};
struct Read : eff::command<std::string> { /* a result that does not travel in a word */
    traced which;
};
struct Stop : eff::command<> {
    traced reason;
};

static bool is_whole(const traced &value) {
    return value.text == traced().text;
}

class General : public eff::flat_handler<int, Tell, Ask, Read, eff::no_resume<Stop>> {
    int handle_command(Tell t, eff::resumption<int()> r) override {
        CHECK(is_whole(t.said));
        return std::move(r).resume();
    }
    int handle_command(Ask a, eff::resumption<int(int)> r) override {
        CHECK(is_whole(a.asked));
        return std::move(r).tail_resume(1);
    }
    int handle_command(Read a, eff::resumption<int(std::string)> r) override {
        CHECK(is_whole(a.which));
        return std::move(r).resume("read");
    }
    int handle_command(Stop s) override {
        CHECK(is_whole(s.reason));
        return 5;
    }
};
class Plain : public eff::flat_handler<int, eff::plain<Tell>, eff::plain<Ask>, eff::plain<Read>> {
    void handle_command(Tell t) override { CHECK(is_whole(t.said)); }
    int handle_command(Ask a) override { return is_whole(a.asked) ? 1 : 0; }
    std::string handle_command(Read a) override { return is_whole(a.which) ? "read" : ""; }
};

/* Invokes the command, which has to be copied once and to stay as it was. */
template <typename Command, typename Invoke>
static void copied_once(traced Command::*member, Invoke &&invoke) {
    const Command command{};
    copies = moves = 0;
    invoke(command);
    CHECK(copies == 1 && moves == 0);
    CHECK(is_whole(command.*member));
}
static int invoke_each() {
    copied_once<Tell>(&Tell::said, [](const Tell &c) { eff::invoke_command(c); });
    copied_once<Ask>(&Ask::asked, [](const Ask &c) { CHECK(eff::invoke_command(c) == 1); });
    copied_once<Read>(&Read::which, [](const Read &c) { CHECK(eff::invoke_command(c) == "read"); });
    copied_once<Ask>(&Ask::asked, [](const Ask &c) { CHECK(eff::invoke_command(3, c) == 1); });
    copied_once<Read>(&Read::which,
                      [](const Read &c) { CHECK(eff::invoke_command(3, c) == "read"); });
    return 4;
}

static void commands_are_copied_once_and_never_moved() {
    CHECK(eff::handle<General>(3, invoke_each) == 4);
    CHECK(eff::handle<Plain>(3, invoke_each) == 4);
    copied_once<Stop>(&Stop::reason, [](const Stop &c) {
        CHECK(eff::handle<General>([&c] {
                  eff::invoke_command(c);
                  return 0;
              }) == 5);
    });
}

/* Its clauses may move from what they are given. */
static void handlers_of_haft_get_a_copy() {
    auto steal = [](traced &&given) { std::string taken(std::move(given.text)); };
    haft::handle([] {
        copied_once<Tell>(&Tell::said, [](const Tell &c) { eff::invoke_command(c); });
    }).with([&](Tell t) { steal(std::move(t.said)); });
    haft::handle([] {
        copied_once<Tell>(&Tell::said, [](const Tell &c) { eff::invoke_command(c); });
    }).with([&](Tell t, haft::resumption<void()> k) {
        steal(std::move(t.said));
        std::move(k).resume();
    });
    haft::set_default<Tell>([](void *, Tell *t) { std::string taken(std::move(t->said.text)); });
    copied_once<Tell>(&Tell::said, [](const Tell &c) { eff::invoke_command(c); });
    haft::set_default<Tell>(nullptr);
}

static void a_copy_that_fails_drops_the_computation() {
    for (bool plain : {false, true}) {
        auto body = [] {
            counted local;
            Tell command;
            copies_fail = true;
            eff::invoke_command(command);
            return 1;
        };
        std::string said = thrown_by<std::runtime_error>([&] {
                               plain ? eff::handle<Plain>(body) : eff::handle<General>(body);
                           }).what();
        copies_fail = false;
        CHECK(said == "no copy" && counted::alive == 0);
    }
}

int main() {
    commands_are_copied_once_and_never_moved();
    handlers_of_haft_get_a_copy();
    a_copy_that_fails_drops_the_computation();
}
// SPDX-License-Identifier: MIT
