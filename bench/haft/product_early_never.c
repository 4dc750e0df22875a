/* SPDX-License-Identifier: MIT */
/* product_early, Haft, by a never-resuming clause. */
#include "product.h"

static void *on_aborted(void *state, HAFT_PAYLOAD(aborted) * payload) {
    (void)state, (void)payload;
    return (void *)0;
}

HAFT_HANDLER(catching, NULL, HAFT_NEVER(aborted, on_aborted));

static int64_t run(const list_t *list) {
    static const haft_fiber_options_t options = {.no_cleanups = true};
    void *argument = (void *)(uintptr_t)list;
    return (intptr_t)haft_handle_with(&options, &catching, NULL, compute_product, argument);
}

int main(int argc, char **argv) {
    return program_product_early(argc, argv, run);
}
