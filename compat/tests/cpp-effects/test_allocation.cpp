/* Nothing is allocated for handlers, invocations and resumptions, released or not. */
#include "../../../cpp/tests/check.hpp"

#include "cpp-effects/cpp-effects.h"
#include <cstdlib>
#include <new>
namespace eff = cpp_effects;

static int allocations;
void *operator new(std::size_t size) {
    allocations++;
    void *memory = std::malloc(size);
    if (memory == nullptr)
        throw std::bad_alloc();
    return memory;
}
void operator delete(void *memory) noexcept {
    std::free(memory);
}
void operator delete(void *memory, std::size_t) noexcept {
    std::free(memory);
}

struct Get : eff::command<int> {};
struct Put : eff::command<> {
    int value;
};
class State : public eff::flat_handler<int, eff::plain<Get>, Put> {
  public:
    explicit State(int start) : state(start) {}

  private:
    int state;
    int handle_command(Get) override { return state; }
    int handle_command(Put p, eff::resumption<int()> r) override {
        state = p.value;
        return std::move(r).tail_resume();
    }
};

int main() {
    int calls = 0, sum = 0;
    auto body = [&calls](eff::handler_ref ref) {
        calls++;
        eff::invoke_command(Put{{}, eff::invoke_command(7, Get{}) + 1});
        eff::invoke_command(ref, Put{{}, eff::static_invoke_command<State>(7, Get{}) + 1});
        return eff::invoke_command(Get{});
    };
    for (int i = 0; i < 10; i++) {
        sum += eff::handle_ref<State>(7, body, i);
        sum += eff::wrap<State>([] { return eff::invoke_command(Get{}); }, i).resume();
    }
    CHECK(calls == 10 && sum == 110);

    /* A list of released resumptions. */
    eff::resumption_data<void, int> *released[10];
    for (int i = 0; i < 10; i++)
        released[i] = eff::wrap<State>([] { return eff::invoke_command(Get{}); }, i).release();
    for (auto *data : released)
        sum += eff::resumption<int()>(data).resume();
    CHECK(sum == 155);
    CHECK(allocations == 0);
}
// SPDX-License-Identifier: MIT
