// SPDX-License-Identifier: MIT
/* Mutable state as an effect: one program under three handlers, which give its effects other
   meanings. */
#include <haft.hpp>
#include <iostream>
#include <string>
#include <vector>

template <typename S>
struct Get : haft::effect<S> {};
template <typename S>
struct Put : haft::effect<> {
    S value;
};

int count_to_three() {
    for (int i = 0; i < 3; i++)
        haft::perform(Put<int>{.value = haft::perform(Get<int>{}) + 1});
    return haft::perform(Get<int>{});
}

/* A cell: clauses without a resumption are called in place. */
template <typename S>
struct Cell : haft::handler<Get<S>, Put<S>> {
    S state;
    explicit Cell(S initial) : state(std::move(initial)) {}
    S operator()(Get<S>) { return state; }
    void operator()(Put<S> put) { state = std::move(put.value); }
};

/* Reports every state, innermost first, after the computation is done. */
struct Tracer : haft::handler<Get<int>, Put<int>> {
    int state = 0;
    int operator()(Get<int>) { return state; }
    std::string operator()(Put<int> put, haft::resumption<std::string()> k) {
        int before = std::exchange(state, put.value);
        std::string rest = std::move(k).resume();
        return std::to_string(before) + " -> " + rest;
    }
    std::string on_return(int last) { return std::to_string(last); }
};

int main() {
    Cell<int> cell(100);
    std::cout << haft::handle(count_to_three).with(cell) << ", the cell holds " << cell.state
              << '\n';

    std::cout << haft::handle(count_to_three).with_new<Tracer>() << '\n';

    /* A transaction: an exception or an abort leaves the cell as it was. */
    std::vector<int> log;
    int answer = haft::handle([] { return count_to_three() + count_to_three(); })
                     .with([&](Get<int>) { return log.empty() ? 0 : log.back(); },
                           [&](Put<int> put, haft::resumption<int()> k) {
                               log.push_back(put.value);
                               if (log.size() > 4)
                                   return -1; /* k is dropped: the computation is unwound */
                               return std::move(k).resume();
                           });
    std::cout << answer << " after " << log.size() << " writes\n";
}
