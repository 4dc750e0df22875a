// SPDX-License-Identifier: MIT
// Memory of suspended C++20 coroutines, one frame each: stackless, so the least there is, and no
// recursion without a further frame on the heap for every level.
#include "../memory.h"
#include "requester.hpp"

#include <new>

struct nothing {};

using outlet = bench::channel<nothing, nothing>;

struct waiting {
    outlet out;
    bench::task<void> computation;
};

static bench::task<void> wait_once(outlet &out) {
    co_await out.perform({});
}

int main(int argc, char **argv) {
    int64_t count = argc > 1 ? strtoll(argv[1], nullptr, 10) : 1000;
    auto *all = static_cast<waiting *>(memory_array(count, sizeof(waiting)));
    memory_use_t before = memory_measure();
    for (int64_t i = 0; i < count; i++) {
        outlet *out = new (&all[i].out) outlet;
        new (&all[i].computation) bench::task<void>(wait_once(*out));
        out->resume(all[i].computation);
    }
    memory_use_t after = memory_measure();
    for (int64_t i = 0; i < count; i++) {
        all[i].out.resume(all[i].computation);
        all[i].computation.~task();
    }
    memory_print(count, before, after, memory_measure());
    free(all);
}
