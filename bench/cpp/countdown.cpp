// SPDX-License-Identifier: MIT
// countdown, Haft for C++: general clauses that end by continuing.
#include "../program.h"

#include <haft.hpp>

struct Get : haft::effect<std::int64_t> {};
struct Put : haft::effect<void> {
    std::int64_t new_value;
};

static void countdown() {
    while (std::int64_t value = haft::perform<Get>())
        haft::perform<Put>(value - 1);
}

int main(int argc, char **argv) {
    std::int64_t state = program_argument(argc, argv, 5);
    haft::handle(countdown).with(
        [&](Get, haft::resumption<void(std::int64_t)> k) {
            return std::move(k).tail_resume(state);
        },
        [&](Put put, haft::resumption<void()> k) {
            state = put.new_value;
            return std::move(k).tail_resume();
        });
    return program_result(state);
}
