// SPDX-License-Identifier: MIT
// product_early, Boost.Context: the abort is a request that is never answered; dropping the fiber
// unwinds its frames, by the exception that the library throws into it.
#include "../program.h"
#include "requester.hpp"

struct nothing {};

using abortable = bench::requester<nothing, int64_t>;

static NOINLINE int64_t product(abortable &computation, const list_t *list) {
    if (!list)
        return 1;
    if (list->head == 0)
        return computation.perform({});
    int64_t rest = product(computation, list->tail);
    OPAQUE(rest);
    return list->head * rest;
}

static int64_t run(const list_t *list) {
    int64_t result = 0;
    abortable computation([&](abortable &self) { result = product(self, list); },
                          bench::stack_pool(128 * 1024));
    return computation.resume() ? 0 : result;
}

int main(int argc, char **argv) {
    return program_product_early(argc, argv, run);
}
