// SPDX-License-Identifier: MIT
// countdown, C++20 coroutines: Get and Set are requests to the driver, which holds the state.
#include "../program.h"
#include "requester.hpp"

enum class operation { get, set };

struct request {
    operation what;
    int64_t value;
};

using state_channel = bench::channel<request, int64_t>;

static bench::task<void> countdown(state_channel &state) {
    for (;;) {
        int64_t value = co_await state.perform({operation::get, 0});
        if (value == 0)
            co_return;
        co_await state.perform({operation::set, value - 1});
    }
}

int main(int argc, char **argv) {
    int64_t value = program_argument(argc, argv, 5);
    state_channel state;
    bench::task<void> computation = countdown(state);
    while (state.resume(computation)) {
        if (state.request.what == operation::get)
            state.reply = value;
        else
            value = state.request.value;
    }
    return program_result(value);
}
