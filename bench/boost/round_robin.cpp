// SPDX-License-Identifier: MIT
// Many fibers in turn, Boost.Context on stacks of 8 KiB from malloc: each counts and yields.
#include "../harness.h"

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace context = boost::context;

static uint64_t turns[100000];

static context::fiber counting(uint64_t *turn) {
    return context::fiber(std::allocator_arg, context::fixedsize_stack(8 * 1024),
                          [turn](context::fiber &&driver) {
                              for (;;) {
                                  ++*turn;
                                  driver = std::move(driver).resume();
                              }
                              return std::move(driver);
                          });
}

BENCHMARK_SERIES("boost/round-robin", round_robin, 10, 100, 1000, 5000, 10000, 100000) {
    static std::vector<context::fiber> fibers;
    auto count = static_cast<uint64_t>(benchmark->parameter);
    while (fibers.size() < count)
        fibers.push_back(counting(&turns[fibers.size()]));
    benchmark->operations += (count - benchmark->operations % count) % count;
    for (uint64_t i = 0; i < count; i++)
        fibers[i] = std::move(fibers[i]).resume();
    benchmark_start(benchmark);
    for (uint64_t done = 0; done < benchmark->operations; done += count)
        for (uint64_t i = 0; i < count; i++)
            fibers[i] = std::move(fibers[i]).resume();
    benchmark_stop(benchmark);
}
