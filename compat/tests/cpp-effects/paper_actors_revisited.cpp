/* §2.5 of the paper, actors as an effect, as printed; but spawned bodies have the handler, too. */
/* clang-format off */
#include "cpp-effects/cpp-effects.h"
#include "cpp-effects/clause-modifiers.h"
#include <any>
#include <functional>
#include <iostream>
#include <list>
#include <memory>
#include <queue>
#include <tuple>
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

template <typename Answer, typename S>
class Stateful : public eff::flat_handler<Answer, eff::plain<Put<S>>, eff::plain<Get<S>>> {
public:
    Stateful(S initialState) : state(initialState) { }
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
};

struct Yield : eff::command<> { };
struct Fork : eff::command<> {
    std::function<void()> proc;
};
void yield()
{
    eff::invoke_command(Yield{});
}
void fork(std::function<void()> proc)
{
    eff::invoke_command(Fork{{}, proc});
}

using Res = eff::resumption<void()>;
class Scheduler : public eff::handler<void, void, Yield, Fork> {
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
    void handle_return() override { }
};
std::list<Res> Scheduler::queue;

using Pid = std::shared_ptr<std::queue<std::any>>;

struct Spawn : eff::command<Pid> {
    std::function<void()> body;
};

struct Self : eff::command<Pid> { };

struct Send : eff::command<> {
    Pid p;
    std::any msg;
};

struct Receive : eff::command<std::any> { };

template <typename Answer>
class Act : public eff::flat_handler<Answer, eff::plain<Spawn>, eff::plain<Self>,
    eff::plain<Send>, eff::plain<Receive>> {
    Pid handle_command(Self) override
    {
        return get<Pid>();
    }
    Pid handle_command(Spawn s) override
    {
        auto mailbox = std::make_shared<std::queue<std::any>>();
        fork([=]() {
            eff::handle<Stateful<void, Pid>>(s.body, mailbox);
        });
        return mailbox;
    }
    void handle_command(Send s) override
    {
        s.p->push(s.msg);
    }
    std::any handle_command(Receive) override
    {
        auto mailbox = get<Pid>();
        while (mailbox->empty()) { yield(); }
        auto msg = mailbox->front();
        mailbox->pop();
        return msg;
    }
};

Pid spawn(std::function<void()> body)
{
    return eff::invoke_command(Spawn{{}, [=]() { eff::handle<Act<void>>(body); }});
}

Pid self()
{
    return eff::invoke_command(Self{});
}

template <typename T>
void send(Pid p, T msg)
{
    eff::invoke_command(Send{{}, p, msg});
}

template <typename T>
T receive()
{
    return std::any_cast<T>(eff::invoke_command(Receive{}));
}

void pong()
{
    while (true) {
        auto [pid, n] = receive<std::tuple<Pid, int>>();
        if (n == 0) { return; }
        send<int>(pid, n);
    }
}

void ping()
{
    auto pongPid = spawn(pong);
    for (int i = 1; i <= 10; i++) {
        send<std::tuple<Pid, int>>(pongPid, {self(), i});
        std::cout << receive<int>() << std::endl;
    }
    send<std::tuple<Pid, int>>(pongPid, {self(), 0});
}

int main()
{
    Scheduler::Start([]() { eff::handle<Act<void>>(std::bind(spawn, ping)); });
}
// SPDX-License-Identifier: MIT
