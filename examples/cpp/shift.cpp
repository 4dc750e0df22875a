/* shift0 and reset: one-shot delimited control. */
#include <haft/reset.hpp>
#include <iostream>
#include <string>
#include <vector>

/* A text with a hole: the rest of the text waits for the value. */
using Text = std::string;

Text with_hole(Text value) {
    return haft::reset([&] {
        Text name = haft::shift0(
            [&](haft::continuation<Text(Text)> rest) { return rest(value) + " (filled in)"; });
        return "hello, " + name + "!";
    });
}

/* Leaves the reset at once when a factor is zero: the continuation is dropped. */
int product(const std::vector<int> &numbers) {
    return haft::reset([&] {
        int result = 1;
        for (int number : numbers) {
            if (number == 0)
                haft::shift0([](haft::continuation<int()>) { return 0; });
            std::cout << "times " << number << '\n';
            result *= number;
        }
        return result;
    });
}

/* A walk turned inside out: the rest of the walk is kept, and called when more is wanted. */
struct cursor {
    int value;
    haft::continuation<cursor()> next;
};
struct tree {
    int value;
    std::vector<tree> children;
};
void walk(const tree &node) {
    haft::shift0([&](haft::continuation<cursor()> rest) {
        return cursor{node.value, std::move(rest)};
    });
    for (const tree &child : node.children)
        walk(child);
}
cursor start(const tree &root) {
    return haft::reset([&] {
        walk(root);
        return cursor{0, {}};
    });
}

int main() {
    std::cout << with_hole("world") << '\n';
    std::cout << product({2, 3, 4}) << '\n';
    std::cout << product({2, 0, 4}) << '\n';

    tree root{1, {{2, {{3, {}}}}, {4, {}}}};
    for (cursor at = start(root); at.next; at = at.next())
        std::cout << at.value << ' ';
    std::cout << '\n';

    /* shift0 in the function of a shift0 takes what lies up to the next reset. */
    std::cout << haft::reset([] {
        Text page = haft::reset([] {
            Text line = haft::shift0([](haft::continuation<Text(Text)> inner) {
                return haft::shift0([&](haft::continuation<Text(Text)> outer) {
                    return outer(inner("both")) + " closed";
                });
            });
            return line + " in a line";
        });
        return page + " in a page,";
    }) << '\n';

    /* A prompt names its reset. */
    std::cout << haft::reset([](haft::prompt<Text> page) {
        int lines = haft::reset([&] {
            return 1 + page.shift0(
                           [](haft::continuation<Text(int)> rest) { return rest(2) + " in all"; });
        });
        return std::to_string(lines) + " lines";
    }) << '\n';
}
