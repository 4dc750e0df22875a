/* Generators: ranges over producers that yield from anywhere. */
#include "check.hpp"

#include <haft/generator.hpp>
#include <memory>
#include <ranges>
#include <string>
#include <vector>

static_assert(std::ranges::input_range<haft::generator<int>>);
static_assert(std::ranges::view<haft::generator<int>>);
static_assert(std::ranges::view<haft::generator<const std::string &>>);
static_assert(std::is_nothrow_move_constructible_v<haft::generator<int>>);
static_assert(
    std::is_same_v<std::ranges::range_value_t<haft::generator<const std::string &>>, std::string>);

struct Get : haft::effect<int> {};

struct tree {
    std::unique_ptr<tree> left, right;
    int value;
};

static std::unique_ptr<tree> full(int depth, int &counter) {
    if (depth == 0)
        return nullptr;
    auto left = full(depth - 1, counter);
    int value = counter++;
    return std::make_unique<tree>(tree{std::move(left), full(depth - 1, counter), value});
}

static void walk(const tree *node, haft::yielder<int> yield) {
    if (node == nullptr)
        return;
    walk(node->left.get(), yield);
    yield(node->value);
    walk(node->right.get(), yield);
}

static void a_recursive_producer_is_a_range() {
    int counter = 0;
    auto root = full(10, counter);
    int expected = 0;
    haft::generator<int> values([&](haft::yielder<int> yield) { walk(root.get(), yield); });
    for (int value : values)
        CHECK(value == expected++);
    CHECK(expected == 1023);
}

static void an_endless_producer_is_stopped_and_unwound() {
    {
        haft::generator<int> naturals([](auto yield) {
            counted local;
            for (int i = 0;; i++)
                yield(i);
        });
        CHECK(counted::alive == 0);
        int sum = 0;
        for (int value : naturals) {
            if (value == 100)
                break;
            sum += value;
        }
        CHECK(sum == 4950 && counted::alive == 1);
        CHECK(*naturals.next() == 101);
        CHECK(*naturals.begin() == 101);
    }
    CHECK(counted::alive == 0);
}

static void elements_are_the_objects_that_were_yielded() {
    std::vector<std::string> words = {"a", "b"};
    haft::generator<std::string &> by_reference([&](auto yield) {
        for (auto &word : words)
            yield(word);
    });
    for (std::string &word : by_reference)
        word += "!";
    CHECK(words[0] == "a!" && words[1] == "b!");
    haft::generator<std::unique_ptr<int>> move_only(
        [](auto yield) { yield(std::make_unique<int>(3)); });
    for (auto &pointer : move_only)
        CHECK(*std::unique_ptr<int>(std::move(pointer)) == 3);
    haft::generator<const std::string &> constant([&](auto yield) { yield(words[1]); });
    CHECK(&*constant.begin() == &words[1]);
    const int five = 5;
    haft::generator<int> copied([&](auto yield) { yield(five); });
    ++*copied.begin();
    CHECK(five == 5);
}

static void yield_finds_the_generator_of_its_type() {
    auto helper = [](int number) {
        haft::yield(number);
        haft::yield(std::to_string(number));
    };
    haft::generator<std::string> texts([&] {
        haft::generator<int> numbers([&] { helper(4), helper(5); });
        for (int number : numbers)
            haft::yield(std::string("number ") + std::to_string(number));
    });
    std::string all;
    for (auto &text : texts)
        all += text + ",";
    CHECK(all == "number 4,4,number 5,5,");
}

static void producers_nest_and_yield_outwards() {
    haft::generator<int> outer([](haft::yielder<int> yield_outside) {
        haft::generator<int> inner([=](haft::yielder<int> yield) {
            yield(1);
            yield_outside(10);
            yield(2);
        });
        for (int value : inner)
            yield_outside(value);
    });
    std::vector<int> got;
    for (int value : outer)
        got.push_back(value);
    CHECK(got == std::vector<int>({1, 10, 2}));
}

static void exceptions_end_the_sequence() {
    haft::generator<int> breaking([](auto yield) {
        yield(1);
        throw 5;
    });
    auto at = breaking.begin();
    CHECK(*at == 1);
    CHECK(thrown_by<int>([&] { ++at; }) == 5);
    CHECK(at == breaking.end());
    CHECK(breaking.begin() == breaking.end() && breaking.next() == nullptr);
}

static void a_producer_that_is_dropped_ends_the_sequence() {
    haft::generator<int> asking([](auto yield) { yield(haft::perform(Get{})); });
    int answer = haft::handle([&] {
                     return *asking.next();
                 }).with([](Get, haft::resumption<int(int)>) { return -1; });
    CHECK(answer == -1 && asking.next() == nullptr);
}

static void effects_go_to_the_consumers_handlers() {
    haft::generator<int> asking([](auto yield) {
        for (;;)
            yield(haft::perform(Get{}));
    });
    for (int answer : {3, 4})
        CHECK(haft::handle([&] { return *asking.next(); }).with([=](Get) { return answer; }) ==
              answer);
    CHECK(haft::handle([&] { return *asking.next(); }).with([](Get, haft::resumption<int(int)> k) {
        return std::move(k).resume(6);
    }) == 6);
}

static void references_are_yielded_as_they_are() {
    std::string text = "lvalue";
    const std::string constant = "constant";
    const std::string *places[] = {&text, &constant, nullptr, nullptr};
    std::vector<std::string> got;
    haft::generator<const std::string &> texts([&](haft::yielder<const std::string &> yield) {
        yield(text);
        yield(constant);
        yield(std::string("temporary"));
        yield("literal");
    });
    for (const std::string &each : texts) {
        CHECK(places[got.size()] == nullptr || places[got.size()] == &each);
        got.push_back(each);
    }
    CHECK(got == std::vector<std::string>({"lvalue", "constant", "temporary", "literal"}));
    /* By the type of the value. */
    haft::generator<const std::string &> found([&] { haft::yield(text), haft::yield(constant); });
    auto at = found.begin();
    CHECK(&*at == &text);
    CHECK(*++at == "constant");
    haft::generator<std::string &> changed([&] { haft::yield(text); });
    for (std::string &each : changed)
        each += "!";
    CHECK(text == "lvalue!");
}

static void an_iterator_of_nothing_is_at_the_end() {
    haft::generator<int>::iterator nothing;
    CHECK(nothing == std::default_sentinel);
    haft::generator<int> empty;
    CHECK(empty.begin() == empty.end());
}

static void generators_move() {
    haft::generator<int> first([](auto yield) { yield(1), yield(2); });
    CHECK(*first.next() == 1);
    haft::generator<int> second = std::move(first);
    CHECK(*second.next() == 2);
    second = haft::generator<int>();
    CHECK(second.begin() == second.end());
    CHECK(first.begin() == first.end());
}

#if !defined(__clang__) || __clang_major__ > 15
static void views_take_generators() {
    std::vector<int> got;
    for (int value : haft::generator<int>([](auto yield) {
                         for (int i = 1;; i++)
                             yield(i * i);
                     }) | std::views::filter([](int value) { return value % 2 == 1; }) |
                         std::views::take(3))
        got.push_back(value);
    CHECK(got == std::vector<int>({1, 9, 25}));
    got.clear();
    haft::generator<int> named([](auto yield) {
        for (int i = 1;; i++)
            yield(i);
    });
    for (int value : named | std::views::take(2))
        got.push_back(value);
    for (int value : named | std::views::drop(1) | std::views::take(2))
        got.push_back(value);
    for (int value : std::move(named) | std::views::take(1))
        got.push_back(value);
    CHECK(got == std::vector<int>({1, 2, 4, 5, 6}));
}
#else
static void views_take_generators() {}
#endif

static void a_yield_outside_of_a_generator_says_so() {
    std::string message;
    try {
        haft::yield(1.5);
    } catch (const std::logic_error &error) {
        message = error.what();
    }
    CHECK(message == "haft: yield() of a value of type double was called outside of a "
                     "haft::generator of that type.");
    haft::generator<int> others([] { haft::yield(std::string("text")); });
    message.clear();
    try {
        for (int number : others)
            (void)number;
    } catch (const std::logic_error &error) {
        message = error.what();
    }
    CHECK(message.find("haft: yield() of a value of type std::") == 0);
    CHECK(message.find("was called outside of a haft::generator of that type.") !=
          std::string::npos);
}

int main() {
    a_yield_outside_of_a_generator_says_so();
    a_recursive_producer_is_a_range();
    an_endless_producer_is_stopped_and_unwound();
    elements_are_the_objects_that_were_yielded();
    yield_finds_the_generator_of_its_type();
    producers_nest_and_yield_outwards();
    exceptions_end_the_sequence();
    a_producer_that_is_dropped_ends_the_sequence();
    effects_go_to_the_consumers_handlers();
    references_are_yielded_as_they_are();
    an_iterator_of_nothing_is_at_the_end();
    generators_move();
    views_take_generators();
}
// SPDX-License-Identifier: MIT
