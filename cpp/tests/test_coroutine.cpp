/* Coroutines: values both ways, from however deep, until an answer. */
#include "check.hpp"

#include <haft/coroutine.hpp>
#include <memory>
#include <string>
#include <vector>

struct Get : haft::effect<int> {};
struct Stop : haft::effect<> {};

static void values_go_both_ways() {
    haft::coroutine<double, int> average([](haft::exchanger<double, int> yield, int value) {
        double sum = 0;
        for (int count = 1;; count++) {
            sum += value;
            value = yield(sum / count);
        }
    });
    CHECK(*average.resume(10) == 10.0);
    CHECK(*average.resume(20) == 15.0);
    CHECK(*average.resume(0) == 10.0);
    CHECK(!average.finished());
}

static void the_body_returns_an_answer() {
    haft::coroutine<int, std::string, std::string> joined(
        [](haft::exchanger<int, std::string> yield, const std::string &first) {
            std::string second = yield(1);
            return first + second + yield(2);
        });
    CHECK(*joined.resume("a") == 1 && *joined.resume("b") == 2);
    CHECK(joined.resume("c") == nullptr && joined.finished());
    CHECK(joined.answer() == "abc");
    thrown_by<std::logic_error>([&] { joined.answer(); });
    thrown_by<std::logic_error>([&] { joined.resume("d"); });
}

struct tree {
    std::unique_ptr<tree> left, right;
    int value;
};

/* Walks a tree until it is told to prune the branch. */
static void walk(const tree *node, haft::exchanger<int, bool> yield) {
    if (node == nullptr || !yield(node->value))
        return;
    walk(node->left.get(), yield);
    walk(node->right.get(), yield);
}

static void producers_recurse() {
    auto leaf = [](int value) { return std::make_unique<tree>(tree{nullptr, nullptr, value}); };
    tree root{std::make_unique<tree>(tree{leaf(3), leaf(4), 2}), leaf(5), 1};
    haft::coroutine<int, bool> nodes(
        [&](haft::exchanger<int, bool> yield, bool) { walk(&root, yield); });
    std::vector<int> seen;
    for (int *value = nodes.resume(true); value != nullptr; value = nodes.resume(*value != 2))
        seen.push_back(*value);
    CHECK(seen == std::vector<int>({1, 2, 5}));
}

static void either_side_may_say_nothing() {
    int steps = 0;
    haft::coroutine<> ticking([&](haft::exchanger<void> yield) {
        for (; steps < 2; steps++)
            yield();
    });
    CHECK(ticking.resume() && ticking.resume() && !ticking.resume() && steps == 2);
    ticking.answer();
    haft::coroutine<void, int, int> summing([](haft::exchanger<void, int> yield, int sum) {
        while (int more = yield())
            sum += more;
        return sum;
    });
    for (int value : {3, 4, 5, 0})
        summing.resume(value);
    CHECK(summing.finished() && summing.answer() == 12);
    haft::coroutine<int> counting([](auto yield) { yield(1), yield(2); });
    CHECK(*counting.resume() == 1 && *counting.resume() == 2 && counting.resume() == nullptr);
}

static void references_and_move_only_values_travel() {
    int cells[2] = {1, 2};
    haft::coroutine<int &, int &, int &> both(
        [&](haft::exchanger<int &, int &> yield, int &first) -> int & {
            first++;
            yield(first)++;
            return cells[1];
        });
    CHECK(both.resume(cells[0]) == &cells[0] && cells[0] == 2);
    CHECK(both.resume(cells[1]) == nullptr && cells[1] == 3);
    CHECK(&both.answer() == &cells[1]);

    using pointer = std::unique_ptr<int>;
    haft::coroutine<pointer, pointer, pointer> passing(
        [](haft::exchanger<pointer, pointer> yield, pointer first) {
            pointer second = yield(std::move(first));
            ++*second;
            return second;
        });
    pointer out = std::move(*passing.resume(std::make_unique<int>(1)));
    CHECK(*out == 1);
    passing.resume(std::make_unique<int>(2));
    CHECK(*passing.answer() == 3);

    const std::string constant = "constant";
    haft::coroutine<std::string> copied([&](auto yield) { yield(constant); });
    *copied.resume() += "!";
    CHECK(constant == "constant");
    haft::coroutine<const std::string &> seen([&](auto yield) { yield(constant); });
    CHECK(seen.resume() == &constant);
}

static void exchange_finds_the_coroutine_of_its_types() {
    auto helper = [] { return haft::exchange<std::string>(7) + "!"; };
    haft::coroutine<int, std::string, std::string> asking([&](std::string) {
        haft::coroutine<int, int, std::string> inner([&](int) { return helper(); });
        inner.resume(0);
        return inner.answer();
    });
    CHECK(*asking.resume("") == 7);
    CHECK(asking.resume("seven") == nullptr && asking.answer() == "seven!");
}

static void exceptions_go_to_the_resumer_and_end_it() {
    haft::coroutine<int, int, int> breaking([](haft::exchanger<int, int> yield, int first) {
        counted local;
        if (yield(first) == 0)
            throw std::runtime_error("zero");
        return 1;
    });
    breaking.resume(1);
    CHECK(thrown_by<std::runtime_error>([&] { breaking.resume(0); }).what() == std::string("zero"));
    CHECK(breaking.finished() && counted::alive == 0);
    thrown_by<std::logic_error>([&] { breaking.answer(); });
}

static void discontinue_throws_at_the_yield() {
    haft::coroutine<int, int> stubborn([](haft::exchanger<int, int> yield, int value) {
        for (;;) {
            try {
                value = yield(value);
            } catch (const char *) {
                value = -1;
            }
        }
    });
    CHECK(*stubborn.resume(5) == 5);
    CHECK(*stubborn.discontinue("no") == -1);
    CHECK(thrown_by<int>([&] { stubborn.discontinue(3); }) == 3);
    CHECK(stubborn.finished());
    haft::coroutine<int> fresh([](auto yield) { yield(1); });
    CHECK(thrown_by<int>([&] { fresh.discontinue(std::make_exception_ptr(4)); }) == 4);
    CHECK(fresh.finished());
}

static void dropping_unwinds() {
    {
        haft::coroutine<int, int> dropped([](haft::exchanger<int, int> yield, int) {
            counted local;
            haft::coroutine<int> inner([outer = yield](haft::exchanger<int>) {
                counted deeper;
                outer(1);
            });
            inner.resume();
        });
        CHECK(*dropped.resume(0) == 1 && counted::alive == 2);
        haft::coroutine<int, int> moved = std::move(dropped);
        CHECK(dropped.finished() && !moved.finished() && counted::alive == 2);
        thrown_by<std::logic_error>([&] { dropped.resume(0); });
        moved = haft::coroutine<int, int>();
        CHECK(counted::alive == 0);
        haft::coroutine<int> never_started([held = counted()](auto yield) { yield(1); });
        CHECK(counted::alive == 1);
    }
    CHECK(counted::alive == 0);
}

static void a_running_coroutine_cannot_be_resumed() {
    haft::coroutine<int> *self = nullptr;
    haft::coroutine<int> recursive([&](haft::exchanger<int> yield) {
        thrown_by<std::logic_error>([&] { self->resume(); });
        yield(1);
    });
    self = &recursive;
    CHECK(*recursive.resume() == 1);
}

static void effects_go_to_the_resumers_handlers() {
    haft::coroutine<int, int> asking([](haft::exchanger<int, int> yield, int value) {
        for (;;)
            value = yield(value + haft::perform(Get{}));
    });
    for (int base : {10, 20})
        CHECK(haft::handle([&] { return *asking.resume(1); }).with([=](Get) { return base; }) ==
              base + 1);
    CHECK(haft::handle([&] {
              return *asking.resume(2);
          }).with([](Get, haft::resumption<int(int)> k) { return std::move(k).resume(30); }) == 32);
}

static void a_handler_may_drop_what_resumes_a_coroutine() {
    haft::coroutine<int> stopping([](haft::exchanger<int>) {
        counted local;
        haft::perform(Stop{});
    });
    haft::handle([&] { stopping.resume(); }).with(haft::never([](Stop) {}));
    CHECK(counted::alive == 0 && stopping.finished());
}

int main() {
    values_go_both_ways();
    the_body_returns_an_answer();
    producers_recurse();
    either_side_may_say_nothing();
    references_and_move_only_values_travel();
    exchange_finds_the_coroutine_of_its_types();
    exceptions_go_to_the_resumer_and_end_it();
    discontinue_throws_at_the_yield();
    dropping_unwinds();
    a_running_coroutine_cannot_be_resumed();
    effects_go_to_the_resumers_handlers();
    a_handler_may_drop_what_resumes_a_coroutine();
}
// SPDX-License-Identifier: MIT
