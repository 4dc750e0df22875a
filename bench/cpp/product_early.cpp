// SPDX-License-Identifier: MIT
// product_early, Haft for C++: a clause that never resumes, after the frames are unwound.
#include "../program.h"

#include <haft.hpp>

struct Aborted : haft::effect<void> {};

static NOINLINE void abort_product() {
    haft::perform<Aborted>();
}

static NOINLINE std::int64_t product(const list_t *list) {
    if (!list)
        return 1;
    if (list->head == 0)
        abort_product();
    std::int64_t rest = product(list->tail);
    OPAQUE(rest);
    return list->head * rest;
}

static std::int64_t run(const list_t *list) {
    return haft::handle([list] { return product(list); }).with(haft::never([](Aborted) {
        return std::int64_t{0};
    }));
}

int main(int argc, char **argv) {
    return program_product_early(argc, argv, run);
}
