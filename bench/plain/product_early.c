/* SPDX-License-Identifier: MIT */
/* product_early, plain C: the zero is reported up through the frames by a flag. */
#include "../program.h"

#include <stdbool.h>

static NOINLINE bool product(const list_t *list, int64_t *result) {
    if (!list) {
        *result = 1;
        return true;
    }
    if (list->head == 0)
        return false;
    int64_t rest;
    if (!product(list->tail, &rest))
        return false;
    OPAQUE(rest);
    *result = list->head * rest;
    return true;
}

static int64_t run(const list_t *list) {
    int64_t result;
    return product(list, &result) ? result : 0;
}

int main(int argc, char **argv) {
    return program_product_early(argc, argv, run);
}
