// SPDX-License-Identifier: MIT
// A computation on a Boost.Context fiber that sends requests to whoever resumes it: what an
// effect's performer and handler look like when written for boost::context::fiber, the library's
// public one-shot continuation. The destructor unwinds an unfinished computation.
#pragma once

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace bench {

// One pool for the process: the stacks are reused, as every library measured here reuses them.
inline boost::context::pooled_fixedsize_stack &stack_pool(std::size_t size) {
    static boost::context::pooled_fixedsize_stack pool(size);
    return pool;
}

template <class Request, class Reply>
class requester {
  public:
    template <class Body>
    explicit requester(Body body) : requester(body, stack_pool(64 * 1024)) {}

    template <class Body, class Stacks>
    requester(Body body, Stacks &&allocator)
        : performer(std::allocator_arg, std::forward<Stacks>(allocator),
                    [this, body](boost::context::fiber &&resumer) {
                        driver = std::move(resumer);
                        body(*this);
                        finished = true;
                        return std::move(driver);
                    }) {}

    requester(const requester &) = delete;
    requester &operator=(const requester &) = delete;

    // For the driver: false when the computation has finished; else `request` holds its request,
    // and `reply` is to be set before the next resume.
    bool resume() {
        performer = std::move(performer).resume();
        return !finished;
    }

    // For the computation.
    Reply perform(Request wanted) {
        request = wanted;
        driver = std::move(driver).resume();
        return reply;
    }

    Request request{};
    Reply reply{};

  private:
    bool finished = false;
    boost::context::fiber driver, performer;
};

} // namespace bench
