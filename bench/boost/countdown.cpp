// SPDX-License-Identifier: MIT
// countdown, Boost.Context: Get and Set are requests to the fiber's driver, which holds the state.
#include "../program.h"
#include "requester.hpp"

enum class operation { get, set };

struct request {
    operation what;
    int64_t value;
};

using stateful = bench::requester<request, int64_t>;

static void countdown(stateful &state) {
    for (;;) {
        int64_t value = state.perform({operation::get, 0});
        if (value == 0)
            return;
        state.perform({operation::set, value - 1});
    }
}

int main(int argc, char **argv) {
    int64_t value = program_argument(argc, argv, 5);
    stateful computation(countdown);
    while (computation.resume()) {
        if (computation.request.what == operation::get)
            computation.reply = value;
        else
            value = computation.request.value;
    }
    return program_result(value);
}
