// SPDX-License-Identifier: MIT
// Memory of suspended Boost.Context fibers on the stacks that the library makes by default, cut to
// 16 KiB and without guards.
#include "../memory.h"

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>

#include <memory>
#include <new>
#include <utility>

namespace context = boost::context;

int main(int argc, char **argv) {
    int64_t count = argc > 1 ? strtoll(argv[1], nullptr, 10) : 1000;
    auto *all = static_cast<context::fiber *>(memory_array(count, sizeof(context::fiber)));
    memory_use_t before = memory_measure();
    for (int64_t i = 0; i < count; i++) {
        new (&all[i]) context::fiber(std::allocator_arg, context::fixedsize_stack(16 * 1024),
                                     [](context::fiber &&driver) {
                                         driver = std::move(driver).resume();
                                         return std::move(driver);
                                     });
        all[i] = std::move(all[i]).resume();
    }
    memory_use_t after = memory_measure();
    for (int64_t i = 0; i < count; i++) {
        all[i] = std::move(all[i]).resume();
        all[i].~fiber();
    }
    memory_print(count, before, after, memory_measure());
    free(all);
}
