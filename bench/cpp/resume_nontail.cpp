// SPDX-License-Identifier: MIT
// resume_nontail, Haft for C++: a general clause that continues first and works on the answer.
#include "../program.h"

#include <haft.hpp>

struct Operate : haft::effect<void> {
    std::int64_t operand;
};

int main(int argc, char **argv) {
    std::int64_t count = program_argument(argc, argv, 5), start = 0;
    for (int repeat = 0; repeat < 1000; repeat++)
        start = haft::handle([count, start] {
                    for (std::int64_t i = count; i > 0; i--)
                        haft::perform<Operate>(i);
                    return start;
                }).with([](Operate operate, haft::resumption<std::int64_t()> k) {
            return program_operator(operate.operand, std::move(k).resume());
        });
    return program_result(start);
}
