/* Async/await of §2.5 of the paper, the parts left out there filled in. */
/* clang-format off */
#include "cpp-effects/cpp-effects.h"
#include <iostream>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>
namespace eff = cpp_effects;

struct GenericFuture {
    std::vector<eff::resumption<void()>> awaiting;
};

template <typename T>
class Future : public GenericFuture {
public:
    std::optional<T> value;
    explicit operator bool() const { return value.has_value(); }
    T Value() const { return *value; }
};

struct Yield : eff::command<> { };

struct Await : eff::command<> {
    GenericFuture* future;
};

template <typename T>
T await(Future<T>* future)
{
    if (*future) { return *(future->value); }
    eff::invoke_command(Await{{}, future}); // Suspend until the value is ready
    return future->Value();
}

using Res = eff::resumption<void()>;
std::list<Res> queue;

template <typename T>
class Scheduler : public eff::handler<void, T, Yield, Await> {
public:
    Scheduler(std::shared_ptr<Future<T>> future) : result(future) { }
private:
    std::shared_ptr<Future<T>> result;
    void handle_command(Yield, Res r) override
    {
        queue.push_back(std::move(r));
    }
    void handle_command(Await f, Res r) override
    {
        f.future->awaiting.push_back(std::move(r));
        // going back to the scheduler loop...
    }
    void handle_return(T value) override
    {
        result->value = value;
        for (Res& r : result->awaiting) { queue.push_back(std::move(r)); }
    }
};

template <typename T>
std::shared_ptr<Future<T>> async(std::function<T()> body)
{
    auto future = std::make_shared<Future<T>>();
    queue.push_back(eff::wrap<Scheduler<T>>(body, future));
    return future;
}

int main()
{
    auto answer = async<int>([]() {
        auto name = async<std::string>([]() {
            for (int i = 0; i < 3; i++) {
                std::cout << "naming..." << std::endl;
                eff::invoke_command(Yield{});
            }
            return std::string("forty-two");
        });
        auto number = async<int>([]() {
            std::cout << "counting..." << std::endl;
            return 42;
        });
        std::cout << await(name.get()) << " is ";
        std::cout << await(number.get()) << std::endl;
        return await(number.get());
    });
    while (!queue.empty()) {
        Res r = std::move(queue.front());
        queue.pop_front();
        std::move(r).resume();
    }
    std::cout << answer->Value() << std::endl;
}
// SPDX-License-Identifier: MIT
