/* A resume that is no tail call keeps no more of the stack than with the original, 192 to 208
 * bytes. */
#include "../../../cpp/tests/stack_use.hpp"

#include "cpp-effects/cpp-effects.h"
#include <optional>
#include <string>
namespace eff = cpp_effects;

struct Ask : eff::command<int> {};
struct Tell : eff::command<> {};

template <typename Answer>
class Nested : public eff::handler<Answer, void, Ask, Tell> {
    Answer handle_command(Ask, eff::resumption<Answer(int)> r) override {
        stack_use::level();
        Answer rest = std::move(r).resume(1);
        __asm__ volatile("" : : "r"(&rest) : "memory");
        return rest;
    }
    Answer handle_command(Tell, eff::resumption<Answer()> r) override {
        stack_use::level();
        return std::move(r).resume();
    }
    Answer handle_return() override { return Answer(); }
};
template <>
void Nested<void>::handle_command(Ask, eff::resumption<void(int)> r) {
    stack_use::level();
    std::move(r).resume(1);
    __asm__ volatile("");
}

template <typename Answer, typename Command>
static long of_nested_resumes() {
    return stack_use::bytes_a_level([] {
        (void)eff::handle<Nested<Answer>>([] {
            for (int i = 0; i < stack_use::LEVELS; i++)
                eff::invoke_command(Command{});
        });
    });
}

static void nested_resumes_are_small() {
    stack_use::at_most("void", 192, of_nested_resumes<void, Ask>());
    stack_use::at_most("int", 192, of_nested_resumes<int, Ask>());
    stack_use::at_most("int, no value", 192, of_nested_resumes<int, Tell>());
    stack_use::at_most("optional<long>", 208, of_nested_resumes<std::optional<long>, Ask>());
    stack_use::at_most("optional<long>, no value", 192,
                       of_nested_resumes<std::optional<long>, Tell>());
    stack_use::at_most("string", 256, of_nested_resumes<std::string, Ask>());
}

int main() {
    nested_resumes_are_small();
}
// SPDX-License-Identifier: MIT
