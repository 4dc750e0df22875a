/* The programs measured in §4 of the paper: state by four handlers, the recursive generator, and
   exceptions. */
/* clang-format off */
#include "cpp-effects/cpp-effects.h"
#include "cpp-effects/clause-modifiers.h"
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
namespace eff = cpp_effects;

template <typename S>
struct Put : eff::command<> {
    S newState;
};
template <typename S>
struct Get : eff::command<S> { };

template <typename S>
void put(S s) {
    eff::invoke_command(Put<S>{{}, s});
}
template <typename S>
S get() {
    return eff::invoke_command(Get<S>{});
}

template <typename S, template <typename> typename Modifier>
class StatefulGeneral : public eff::handler<S, void, Modifier<Put<S>>, Modifier<Get<S>>> {
public:
    StatefulGeneral(S initialState) : state(initialState) { }
private:
    S state;
    S handle_command(Put<S> p, eff::resumption<S()> r) override
    {
        state = p.newState;
        return std::move(r).tail_resume();
    }
    S handle_command(Get<S>, eff::resumption<S(S)> r) override
    {
        return std::move(r).tail_resume(state);
    }
    S handle_return() override
    {
        return state;
    }
};
template <typename Cmd>
using managed = Cmd;
template <typename S>
using Stateful = StatefulGeneral<S, managed>;
template <typename S>
using StatefulNoManage = StatefulGeneral<S, eff::no_manage>;

template <typename S>
class StatefulPlain : public eff::handler<S, void, eff::plain<Put<S>>, eff::plain<Get<S>>> {
public:
    StatefulPlain(S initialState) : state(initialState) { }
private:
    S state;
    void handle_command(Put<S> p) override
    {
        state = p.newState;
    }
    S handle_command(Get<S>) override
    {
        return state;
    }
    S handle_return() override
    {
        return state;
    }
};

template <typename H>
int64_t state()
{
    return eff::handle<H>([]() {
        for (int i = 0; i < 50000; i++) {
            put(get<int64_t>() + 1);
        }
    }, 0);
}

template <typename H>
int64_t state_static()
{
    auto label = eff::fresh_label();
    return eff::handle<H>(label, [label]() {
        for (int i = 0; i < 50000; i++) {
            eff::static_invoke_command<H>(label, Put<int64_t>{{},
                eff::static_invoke_command<H>(label, Get<int64_t>{}) + 1});
        }
    }, 0);
}

struct Tree {
    std::unique_ptr<Tree> left, right;
    int value;
};
std::unique_ptr<Tree> full(int depth, int& next)
{
    if (depth == 1) { return std::make_unique<Tree>(Tree{nullptr, nullptr, next++}); }
    auto left = full(depth - 1, next);
    return std::make_unique<Tree>(Tree{std::move(left), full(depth - 1, next), 0});
}

struct Yield : eff::command<> {
    int value;
};
struct Step {
    int value;
    eff::resumption<std::optional<Step>()> next;
};
class Leaves : public eff::handler<std::optional<Step>, void, Yield> {
    std::optional<Step> handle_command(Yield y, eff::resumption<std::optional<Step>()> r) override
    {
        return Step{y.value, std::move(r)};
    }
    std::optional<Step> handle_return() override
    {
        return {};
    }
};
void walk(int64_t label, const Tree* tree)
{
    if (tree->left == nullptr) {
        eff::static_invoke_command<Leaves>(label, Yield{{}, tree->value});
        return;
    }
    walk(label, tree->left.get());
    walk(label, tree->right.get());
}

struct Error : eff::command<> { };
class Catch : public eff::flat_handler<int, eff::no_resume<Error>> {
    int handle_command(Error) override
    {
        return 1;
    }
};

int main()
{
    std::cout << state<Stateful<int64_t>>() << ' ' << state_static<Stateful<int64_t>>() << ' '
              << state<StatefulNoManage<int64_t>>() << ' '
              << state_static<StatefulNoManage<int64_t>>() << ' '
              << state<StatefulPlain<int64_t>>() << ' ' << state_static<StatefulPlain<int64_t>>()
              << std::endl;

    int leaves = 0;
    auto tree = full(10, leaves);
    auto label = eff::fresh_label();
    int sum = 0;
    auto step = eff::handle<Leaves>(label, [&]() { walk(label, tree.get()); });
    while (step) {
        sum += step->value;
        step = std::move(step->next).resume();
    }
    std::cout << leaves << " leaves, " << sum << std::endl;

    int caught = 0;
    for (int i = 0; i < 1000; i++) {
        caught += eff::handle<Catch>([i]() {
            if (i % 2 == 0) { eff::invoke_command(Error{}); }
            return 0;
        });
    }
    std::cout << caught << " of 1000" << std::endl;
}
// SPDX-License-Identifier: MIT
