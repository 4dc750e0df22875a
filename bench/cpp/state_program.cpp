// SPDX-License-Identifier: MIT
/* The state example as a program of its own: its compile time and size, beside plain C++. */
#include "../program.h"

#include <haft.hpp>

struct Get : haft::effect<int64_t> {};
struct Put : haft::effect<> {
    int64_t value;
};

static void increment(int64_t times) {
    for (; times > 0; times--)
        haft::perform(Put{.value = haft::perform(Get{}) + 1});
}

int main(int argc, char **argv) {
    int64_t times = program_argument(argc, argv, 5);
    int64_t state = 0;
    haft::handle([=] {
        increment(times);
    }).with([&](Get) { return state; }, [&](Put put) { state = put.value; });
    return program_result(state);
}
