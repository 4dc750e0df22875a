// SPDX-License-Identifier: MIT
/* Cooperative threads in thirty lines (§2.2): the scheduler is a handler of Yield and Fork. */
#include <deque>
#include <functional>
#include <haft.hpp>
#include <iostream>

struct Yield : haft::effect<> {};
struct Fork : haft::effect<> {
    std::function<void()> body;
};

class Scheduler : public haft::handler<Yield, Fork> {
  public:
    void run(std::function<void()> body) {
        start(std::move(body));
        while (!ready.empty()) {
            auto next = std::move(ready.front());
            ready.pop_front();
            std::move(next).resume();
        }
    }

    void operator()(Yield, haft::resumption<void()> k) { ready.push_back(std::move(k)); }
    void operator()(Fork fork, haft::resumption<void()> k) {
        ready.push_back(std::move(k));
        start(std::move(fork.body));
    }

  private:
    void start(std::function<void()> body) {
        ready.push_back(haft::wrap(std::move(body)).with(*this));
    }
    std::deque<haft::resumption<void()>> ready;
};

void worker(int number) {
    for (int i = 0; i < 10; i++) {
        std::cout << number;
        haft::perform(Yield{});
    }
}

int main() {
    Scheduler scheduler;
    scheduler.run([] {
        for (int i = 0; i < 5; i++)
            haft::perform(Fork{.body = [i] { worker(i); }});
    });
    std::cout << '\n';
}
