// SPDX-License-Identifier: MIT
// threads, Boost.Context on stacks of 8 KiB from malloc.
#include "../threads.h"

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>

#include <memory>
#include <utility>

namespace context = boost::context;

static int64_t threads_run(int64_t number) {
    context::fiber fiber(std::allocator_arg, context::fixedsize_stack(8 * 1024),
                         [](context::fiber &&driver) {
                             for (int turn = 0; turn < THREADS_TURNS; turn++)
                                 driver = std::move(driver).resume();
                             return std::move(driver);
                         });
    while (fiber)
        fiber = std::move(fiber).resume();
    return number;
}

int main(int argc, char **argv) {
    return threads_program(argc, argv);
}
