/* An effect is the same in every translation unit and shared library of a process. */
#include "../check.hpp"
#include "effects.hpp"

int main() {
    auto ask = [](Ask) { return 1; };
    auto tell = [](Tell<int> t) { return t.value; };
    CHECK(haft::handle([] { return ask_in_another_unit(); }).with(ask, tell) == 3);
    CHECK(haft::handle([] { return ask_in_a_library(); }).with(ask, tell) == 4);
    CHECK(haft::handle([] {
              return ask_in_a_library();
          }).with([](Ask, haft::resumption<int(int)> k) { return std::move(k).resume(5); }, tell) ==
          8);
    CHECK(answer_in_a_library(ask_in_another_unit) == 30);
    CHECK(answer_in_a_library(ask_in_a_library) == 40);
}
// SPDX-License-Identifier: MIT
