#include "commands.hpp"

int sum_in_other_unit(std::int64_t label) {
    int left = cpp_effects::invoke_command(label, Number{});
    return cpp_effects::invoke_command(Sum{{}, left, cpp_effects::invoke_command(Number{})});
}
// SPDX-License-Identifier: MIT
