/* A command is the same in two translation units and in a shared library, and so is a label. */
#include "../../../../cpp/tests/check.hpp"
#include "commands.hpp"

int main() {
    std::int64_t label = cpp_effects::fresh_label();
    CHECK(cpp_effects::handle<Adder>(label, [=] {
              return sum_in_other_unit(label) * 100 + sum_in_library(label);
          }) == 307);
    CHECK(handle_in_library([] { return sum_in_other_unit(7) * 100 + sum_in_library(7); }) == 307);
}
// SPDX-License-Identifier: MIT
