// SPDX-License-Identifier: MIT
// iterator, Haft for C++: a general clause that sums, and ends by continuing.
#include "../program.h"

#include <haft.hpp>

struct Emit : haft::effect<void> {
    std::int64_t value;
};

int main(int argc, char **argv) {
    std::int64_t last = program_argument(argc, argv, 5), sum = 0;
    haft::handle([last] {
        for (std::int64_t value = 0; value <= last; value++)
            haft::perform<Emit>(value);
    }).with([&](Emit emitted, haft::resumption<void()> k) {
        sum += emitted.value;
        return std::move(k).tail_resume();
    });
    return program_result(sum);
}
