/* Every thread has handlers of its own; a computation may go from one to another. */
#include "../../../cpp/tests/check.hpp"

#include "cpp-effects/cpp-effects.h"
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>
namespace eff = cpp_effects;

struct Next : eff::command<int> {};
struct Pause : eff::command<> {};

class Numbers : public eff::flat_handler<int, eff::plain<Next>, Pause> {
  public:
    explicit Numbers(int start) : next(start) {}

  private:
    int next;
    int handle_command(Next) override { return next++; }
    int handle_command(Pause, eff::resumption<int()> r) override {
        return std::move(r).tail_resume();
    }
};

static void every_thread_has_its_own_handlers() {
    std::vector<std::thread> threads;
    std::atomic<int> right = 0;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([t, &right] {
            int last = eff::handle<Numbers>(
                1,
                [] {
                    for (int i = 0; i < 1000; i++) {
                        eff::invoke_command(1, Next{});
                        eff::invoke_command(Pause{});
                    }
                    return eff::invoke_command(Next{});
                },
                t * 10000);
            right += last == t * 10000 + 1000;
        });
    for (std::thread &thread : threads)
        thread.join();
    CHECK(right == 4);
}

static void labels_are_fresh_in_every_thread() {
    std::vector<std::int64_t> labels[4];
    std::vector<std::thread> threads;
    for (auto &mine : labels)
        threads.emplace_back([&mine] {
            for (int i = 0; i < 1000; i++)
                mine.push_back(eff::fresh_label());
        });
    for (std::thread &thread : threads)
        thread.join();
    std::set<std::int64_t> all;
    for (auto &mine : labels)
        all.insert(mine.begin(), mine.end());
    CHECK(all.size() == 4000);
}

class Keeper : public eff::flat_handler<int, Pause> {
  public:
    explicit Keeper(eff::resumption<int()> &where) : kept(where) {}

  private:
    eff::resumption<int()> &kept;
    int handle_command(Pause, eff::resumption<int()> r) override {
        kept = std::move(r);
        return 0;
    }
};

/* In a clause, so that it is suspended in the middle of one. */
class Pausing : public eff::flat_handler<int, Next> {
    int next = 0;
    int handle_command(Next, eff::resumption<int(int)> r) override {
        eff::invoke_command(Pause{});
        return std::move(r).tail_resume(++next);
    }
};

static void a_computation_may_go_from_thread_to_thread() {
    eff::resumption<int()> kept;
    eff::handle<Keeper>(
        [] {
            return eff::handle<Pausing>(2, [] {
                int sum = 0;
                for (int i = 0; i < 100; i++)
                    sum += eff::invoke_command(2, Next{});
                return sum;
            });
        },
        kept);
    int answer = 0;
    while (kept)
        std::thread([&] { answer = std::move(kept).resume(); }).join();
    CHECK(answer == 5050);
}

int main() {
    every_thread_has_its_own_handlers();
    labels_are_fresh_in_every_thread();
    a_computation_may_go_from_thread_to_thread();
}
// SPDX-License-Identifier: MIT
