/* The output of debug_print_metastack. */
#include "../../../cpp/tests/check.hpp"

#include "cpp-effects/cpp-effects.h"
#include <memory>
#include <sstream>
#include <string>
namespace eff = cpp_effects;

struct First : eff::command<int> {};
struct Second : eff::command<> {};

class Outer : public eff::flat_handler<void, First, eff::no_manage<Second>> {
    void handle_command(First, eff::resumption<void(int)> r) override {
        eff::debug_print_metastack();
        std::move(r).resume(1);
    }
    void handle_command(Second, eff::resumption<void()> r) override { std::move(r).tail_resume(); }
};
class Inner : public eff::flat_handler<void, eff::plain<Second>> {
    void handle_command(Second) override { eff::debug_print_metastack(); }
};

struct written {
    std::ostringstream text;
    std::streambuf *before = std::cout.rdbuf(text.rdbuf());
    ~written() { std::cout.rdbuf(before); }
};
template <typename F>
static std::string what(F function) {
    written here;
    function();
    return here.text.str();
}

#ifdef __cpp_rtti
static const std::string bottom = "0:N11cpp_effects9metaframeE\n";
static const std::string outer = "5Outer[5First][6Second]\n", inner = "5Inner[6Second]\n";
#else
static const std::string bottom = "0:cpp_effects::metaframe\n";
static const std::string
    outer = "cpp_effects::handler<void, void, First, cpp_effects::no_manage<Second>>"
            "[First][Second]\n",
    inner = "cpp_effects::handler<void, void, cpp_effects::plain<Second>>[Second]\n";
#endif

/* Compilers differ in the spaces between brackets. */
static std::string squeezed(std::string text) {
    for (std::size_t at; (at = text.find("> >")) != std::string::npos;)
        text.erase(at + 1, 1);
    return text;
}

static void every_handler_has_a_line() {
    CHECK(what([] { eff::debug_print_metastack(); }) == bottom);
    std::string all = what([] {
        eff::handle<Outer>(7, [] { eff::handle<Inner>([] { eff::debug_print_metastack(); }); });
    });
    CHECK(squeezed(all) == "-2:" + inner + "7:" + outer + bottom);
}

static void clauses_run_outside_their_handler() {
    std::string plain = what([] {
        eff::handle<Outer>(7, [] { eff::handle<Inner>(3, [] { eff::invoke_command(Second{}); }); });
    });
    CHECK(squeezed(plain) == "7:" + outer + bottom);
    std::string general = what([] {
        eff::handle<Outer>(7, [] { eff::handle<Inner>(3, [] { eff::invoke_command(First{}); }); });
    });
    CHECK(general == bottom);
}

static void other_handlers_are_left_out() {
    struct Effect : haft::effect<int> {};
    std::string all = what([] {
        eff::handle<Outer>(1, [] {
            haft::handle([] {
                eff::resumption<void()>(std::function<void()>(eff::debug_print_metastack)).resume();
            }).with([](Effect) { return 1; });
        });
    });
    CHECK(squeezed(all) == "1:" + outer + bottom);
}

static void one_handler_in_two_frames_has_two_labels() {
    auto shared = std::make_shared<Outer>();
    std::string all = what([&] {
        eff::handle_with(
            1,
            [&] {
                eff::handle_with(
                    2, [] { eff::debug_print_metastack(); }, shared);
            },
            shared);
    });
    CHECK(squeezed(all) == "2:" + outer + "1:" + outer + bottom);
}

int main() {
    every_handler_has_a_line();
    clauses_run_outside_their_handler();
    other_handlers_are_left_out();
    one_handler_in_two_frames_has_two_labels();
}
// SPDX-License-Identifier: MIT
