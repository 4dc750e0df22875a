// SPDX-License-Identifier: MIT
// product_early, C++20 coroutines: a thousand nested tasks, dropped while the innermost waits for
// an answer.
#include "../program.h"
#include "requester.hpp"

struct nothing {};

using abort_channel = bench::channel<nothing, int64_t>;

static bench::task<int64_t> product(abort_channel &aborts, const list_t *list) {
    if (!list)
        co_return 1;
    if (list->head == 0)
        co_return co_await aborts.perform({});
    int64_t rest = co_await product(aborts, list->tail);
    co_return list->head *rest;
}

static int64_t run(const list_t *list) {
    abort_channel aborts;
    bench::task<int64_t> computation = product(aborts, list);
    return aborts.resume(computation) ? 0 : computation.result();
}

int main(int argc, char **argv) {
    return program_product_early(argc, argv, run);
}
