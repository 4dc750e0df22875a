/* §2.1 of the paper, as printed. */
/* clang-format off */
#include "cpp-effects/cpp-effects.h"
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

int inc()
{
    put(get<int>() + 1);
    return get<int>();
}

template <typename Answer, typename S>
class Stateful : public eff::handler<Answer, Answer, Put<S>, Get<S>> {
public:
    Stateful(S initialState) : state(initialState) { }
private:
    S state;
    Answer handle_command(Put<S> p, eff::resumption<Answer()> r) override
    {
        state = p.newState;
        return std::move(r).tail_resume();
    }
    Answer handle_command(Get<S>, eff::resumption<Answer(S)> r) override
    {
        return std::move(r).tail_resume(state);
    }
    Answer handle_return(Answer a) override
    {
        return a;
    }
};

int main()
{
    std::cout << eff::handle<Stateful<int, int>>(inc, 100); // Output: 101
}
// SPDX-License-Identifier: MIT
