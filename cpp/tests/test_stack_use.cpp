/* A resume that is no tail call keeps little of the stack, whatever the type of the answer. */
#include "stack_use.hpp"

#include <haft.hpp>
#include <optional>
#include <string>

struct Ask : haft::effect<int> {};
struct Tell : haft::effect<> {};
struct Read : haft::effect<std::string> {};

template <typename Effect, typename Answer, typename... Value>
static long of_nested_resumes(Answer last, Value... value) {
    using result = haft::result_of<Effect>;
    using resumption = haft::resumption<
        typename std::conditional_t<std::is_void_v<result>, std::type_identity<Answer()>,
                                    haft::detail::signature<Answer, result>>::type>;
    return stack_use::bytes_a_level([&] {
        (void)haft::handle([] {
            for (int i = 0; i < stack_use::LEVELS; i++)
                haft::perform(Effect{});
        })
            .with(
                [&](Effect, resumption k) -> Answer {
                    stack_use::level();
                    Answer rest = std::move(k).resume(value...);
                    __asm__ volatile("" : : "r"(&rest) : "memory");
                    return rest;
                },
                haft::on_return([&] { return last; }));
    });
}

static void nested_resumes_are_small() {
    stack_use::at_most("int", 128, of_nested_resumes<Ask>(1, 2));
    stack_use::at_most("long, no value", 128, of_nested_resumes<Tell>(1L));
    stack_use::at_most("optional<long>", 192, of_nested_resumes<Ask>(std::optional<long>(), 2));
    stack_use::at_most("optional<long>, no value", 192,
                       of_nested_resumes<Tell>(std::optional<long>()));
    stack_use::at_most("string", 192, of_nested_resumes<Ask>(std::string(), 2));
    stack_use::at_most("optional<long> for a string", 256,
                       of_nested_resumes<Read>(std::optional<long>(), std::string()));
}

int main() {
    nested_resumes_are_small();
}
// SPDX-License-Identifier: MIT
