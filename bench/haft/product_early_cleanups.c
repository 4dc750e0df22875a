/* SPDX-License-Identifier: MIT */
/* product_early, Haft, with default options: every frame is unwound, in case it has cleanups. */
#include "product.h"

static int64_t run(const list_t *list) {
    static const haft_fiber_options_t options = {.no_cleanups = false};
    return product_on_fiber(&options, list);
}

int main(int argc, char **argv) {
    return program_product_early(argc, argv, run);
}
