// SPDX-License-Identifier: MIT
/* shift0 and reset, one-shot delimited control, from an effect and a handler of it. */
#include <functional>
#include <haft.hpp>
#include <iostream>
#include <string>
#include <vector>

/* The rest of the body of a reset, which waits for the result of a shift0. */
template <typename Answer, typename Result>
using rest = haft::resumption<Answer(Result)>;

template <typename Answer, typename Result>
struct Shift : haft::effect<Result> {
    std::function<Answer(rest<Answer, Result>)> function;
};

/* Takes the rest of the innermost reset, and lets that answer what `function` makes of it. */
template <typename Answer, typename Result>
Result shift0(std::function<Answer(rest<Answer, Result>)> function) {
    return haft::perform(Shift<Answer, Result>{.function = std::move(function)});
}

/* Result: of the shift0s in it. A clause runs outside of its handler, as the function of a shift0
   does; and resuming puts the handler back, as calling the rest does. */
template <typename Answer, typename Result, typename Body>
Answer reset(Body body) {
    return haft::handle(std::move(body))
        .with([](Shift<Answer, Result> call, rest<Answer, Result> k) {
            return call.function(std::move(k));
        });
}

using Text = std::string;
struct nothing {};

/* A text with a hole: the rest of the text waits for the value. */
Text with_hole(Text value) {
    return reset<Text, Text>([&] {
        Text name = shift0<Text, Text>(
            [&](rest<Text, Text> k) { return std::move(k).resume(value) + " (filled in)"; });
        return "hello, " + name + "!";
    });
}

/* Leaves the reset at once when a factor is zero: the rest is dropped. */
int product(const std::vector<int> &numbers) {
    return reset<int, nothing>([&] {
        int result = 1;
        for (int number : numbers) {
            if (number == 0)
                shift0<int, nothing>([](rest<int, nothing>) { return 0; });
            std::cout << "times " << number << '\n';
            result *= number;
        }
        return result;
    });
}

/* A walk turned inside out: the rest of the walk is kept, and resumed when more is wanted. */
struct cursor {
    int value;
    rest<cursor, nothing> next;
};
struct tree {
    int value;
    std::vector<tree> children;
};
void walk(const tree &node) {
    shift0<cursor, nothing>([&](rest<cursor, nothing> k) {
        return cursor{node.value, std::move(k)};
    });
    for (const tree &child : node.children)
        walk(child);
}

int main() {
    std::cout << with_hole("world") << '\n';
    std::cout << product({2, 3, 4}) << '\n';
    std::cout << product({2, 0, 4}) << '\n';

    tree root{1, {{2, {{3, {}}}}, {4, {}}}};
    cursor at = reset<cursor, nothing>([&] { return walk(root), cursor{0, {}}; });
    for (; at.next; at = std::move(at.next).resume({}))
        std::cout << at.value << ' ';
    std::cout << '\n';

    /* shift0 in the function of a shift0 takes what lies up to the next reset. */
    std::cout << reset<Text, Text>([] {
        Text page = reset<Text, Text>([] {
            Text line = shift0<Text, Text>([](rest<Text, Text> inner) {
                return shift0<Text, Text>([&](rest<Text, Text> outer) {
                    return std::move(outer).resume(std::move(inner).resume("both")) + " closed";
                });
            });
            return line + " in a line";
        });
        return page + " in a page,";
    }) << '\n';
}
