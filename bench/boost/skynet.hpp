// SPDX-License-Identifier: MIT
// skynet, Boost.Context on stacks of 8 KiB from malloc.
#pragma once
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>

#include <memory>
#include <new>
#include <utility>

namespace context = boost::context;

struct computation_t {
    context::fiber performer, driver;
};

#include "../skynet.h"

static void skynet_begin(skynet_t *one) {
    ::new (&one->computation) computation_t;
    one->computation.performer = context::fiber(
        std::allocator_arg, context::fixedsize_stack(8 * 1024), [one](context::fiber &&driver) {
            one->computation.driver = std::move(driver);
            skynet_run(one);
            return std::move(one->computation.driver);
        });
}

static bool skynet_resume(skynet_t *one) {
    one->computation.performer = std::move(one->computation.performer).resume();
    return static_cast<bool>(one->computation.performer);
}

static void skynet_yield(skynet_t *one) {
    one->computation.driver = std::move(one->computation.driver).resume();
}
