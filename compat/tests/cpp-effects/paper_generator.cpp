/* §2.6 of the paper, as printed. */
/* clang-format off */
#include "cpp-effects/cpp-effects.h"
#include <functional>
#include <iostream>
#include <optional>
#include <stdexcept>
namespace eff = cpp_effects;

template <typename T>
struct Yield : eff::command<> {
    T value;
};

template <typename T>
void yield(int64_t label, T x)
{
    eff::static_invoke_command(label, Yield<T>{{}, x});
}

template <typename T>
struct GenState;

template <typename T>
using Result = std::optional<GenState<T>>;

template <typename T>
struct GenState {
    T value;
    eff::resumption<Result<T>()> resumption;
};

template <typename T>
class GeneratorHandler : public eff::handler<Result<T>, void, Yield<T>> {
    Result<T> handle_command(Yield<T> y, eff::resumption<Result<T>()> r) override
    {
        return GenState<T>{y.value, std::move(r)};
    }
    Result<T> handle_return() override
    {
        return {};
    }
};

template <typename T>
class Generator {
public:
    Generator(std::function<void(std::function<void(T)>)> f)
    {
        auto label = eff::fresh_label();
        result = eff::handle<GeneratorHandler<T>>(label, [f, label]() {
            f([label](T x) { yield<T>(label, x); });
        });
    }
    Generator() { } // A dummy generator that generates nothing
    T Value() const
    {
        if (!result) { throw std::out_of_range("Generator::Value"); }
        return result.value().value;
    }
    bool Next()
    {
        if (!result) { throw std::out_of_range("Generator::Next"); }
        result = std::move(result->resumption).resume();
        return result.has_value();
    }
    explicit operator bool() const
    {
        return result.has_value();
    }
private:
    Result<T> result = {};
};

int main()
{
    Generator<int> naturals([](auto yield) {
        int i = 1;
        while (true) { yield(i++); }
    });

    for (int i = 0; i < 100; i++) {
        std::cout << naturals.Value() << std::endl;
        naturals.Next();
    }
}
// SPDX-License-Identifier: MIT
