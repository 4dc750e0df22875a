// SPDX-License-Identifier: MIT
/* A recursive producer as a range, and two producers compared element by element. */
#include <haft/generator.hpp>
#include <iostream>
#include <memory>
#include <vector>

struct tree {
    std::unique_ptr<tree> left, right;
    int value;
};

std::unique_ptr<tree> leaf(int value) {
    return std::make_unique<tree>(tree{nullptr, nullptr, value});
}
std::unique_ptr<tree> node(std::unique_ptr<tree> left, int value, std::unique_ptr<tree> right) {
    return std::make_unique<tree>(tree{std::move(left), std::move(right), value});
}

void walk(const tree *at) {
    if (at == nullptr)
        return;
    walk(at->left.get());
    haft::yield(at->value);
    walk(at->right.get());
}

haft::generator<int> elements(const tree *root) {
    return haft::generator<int>([root] { walk(root); });
}

/* Do two trees of different shapes hold the same sequence? */
bool same_fringe(const tree *a, const tree *b) {
    auto left = elements(a), right = elements(b);
    auto x = left.begin(), y = right.begin();
    for (; x != left.end() && y != right.end(); ++x, ++y)
        if (*x != *y)
            return false;
    return x == left.end() && y == right.end();
}

int main() {
    auto balanced = node(leaf(1), 2, leaf(3));
    auto slanted = node(nullptr, 1, node(nullptr, 2, leaf(3)));
    auto other = node(leaf(1), 2, leaf(4));

    for (int value : elements(balanced.get()))
        std::cout << value << ' ';
    std::cout << '\n' << std::boolalpha;
    std::cout << "the same as the slanted one: " << same_fringe(balanced.get(), slanted.get())
              << '\n';
    std::cout << "the same as the other one: " << same_fringe(balanced.get(), other.get()) << '\n';

    haft::generator<int> fibonacci([](haft::yielder<int> yield) {
        for (int a = 0, b = 1;; b += std::exchange(a, b))
            yield(a);
    });
    for (int value : fibonacci) {
        if (value > 100)
            break; /* the producer is unwound with the generator */
        std::cout << value << ' ';
    }
    std::cout << '\n';
}
