/* SPDX-License-Identifier: MIT */
/* product_early, Haft: frames that promise to have nothing to clean up are dropped at no cost. */
#include "product.h"

static int64_t run(const list_t *list) {
    static const haft_fiber_options_t options = {.no_cleanups = true};
    return product_on_fiber(&options, list);
}

int main(int argc, char **argv) {
    return program_product_early(argc, argv, run);
}
