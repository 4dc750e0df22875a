#include "commands.hpp"

int sum_in_library(std::int64_t label) {
    int left = cpp_effects::invoke_command(label, Number{});
    return cpp_effects::invoke_command(Sum{{}, left, cpp_effects::invoke_command(Number{})});
}
int handle_in_library(int (*body)()) {
    return cpp_effects::handle<Adder>(7, body);
}
// SPDX-License-Identifier: MIT
