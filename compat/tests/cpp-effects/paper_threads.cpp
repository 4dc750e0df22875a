/* §2.2 of the paper, as printed, and Kill of §2.4. */
/* clang-format off */
#include "cpp-effects/cpp-effects.h"
#include "cpp-effects/clause-modifiers.h"
#include <functional>
#include <iostream>
#include <list>
namespace eff = cpp_effects;

struct Yield : eff::command<> { };
struct Fork : eff::command<> {
    std::function<void()> proc;
};
struct Kill : eff::command<> { };
void yield()
{
    eff::invoke_command(Yield{});
}
void fork(std::function<void()> proc)
{
    eff::invoke_command(Fork{{}, proc});
}
void kill()
{
    eff::invoke_command(Kill{});
}

void worker(int k)
{
    for (int i = 0; i < 10; ++i) {
        std::cout << k;
        yield();
    }
}
void starter()
{
    for (int i = 0; i < 5; ++i) {
        fork(std::bind(worker, i));
    }
}

using Res = eff::resumption<void()>;
class Scheduler : public eff::handler<void, void, Yield, Fork, eff::no_resume<Kill>> {
public:
    static void Start(std::function<void()> f)
    {
        queue.push_back(eff::wrap<Scheduler>(f));
        while (!queue.empty()) {
            Res resumption = std::move(queue.front());
            queue.pop_front();
            std::move(resumption).resume();
        }
    }
private:
    static std::list<Res> queue;
    void handle_command(Yield, Res r) override
    {
        queue.push_back(std::move(r));
    }
    void handle_command(Fork f, Res r) override
    {
        queue.push_back(std::move(r));
        queue.push_back(eff::wrap<Scheduler>(f.proc));
    }
    void handle_command(Kill) override { }
    void handle_return() override { }
};
std::list<Res> Scheduler::queue;

struct Farewell {
    ~Farewell() { std::cout << "(gone)"; }
};
void mortal(int k)
{
    Farewell farewell;
    for (int i = 0; i < 10; ++i) {
        std::cout << k;
        if (i == k) { kill(); }
        yield();
    }
}

int main()
{
    Scheduler::Start(starter);
    std::cout << std::endl;
    Scheduler::Start([] {
        for (int i = 0; i < 3; ++i) {
            fork(std::bind(mortal, i));
        }
    });
    std::cout << std::endl;
}
// SPDX-License-Identifier: MIT
