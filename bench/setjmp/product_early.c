/* SPDX-License-Identifier: MIT */
/* product_early, setjmp in its own trade: the zero jumps out of the thousand frames. */
#undef _FORTIFY_SOURCE

#include "../program.h"

#include <setjmp.h>

static jmp_buf handler;

static NOINLINE int64_t product(const list_t *list) {
    if (!list)
        return 1;
    if (list->head == 0)
        _longjmp(handler, 1);
    int64_t rest = product(list->tail);
    OPAQUE(rest);
    return list->head * rest;
}

static NOINLINE int64_t run(const list_t *list) {
    return _setjmp(handler) == 0 ? product(list) : 0;
}

int main(int argc, char **argv) {
    return program_product_early(argc, argv, run);
}
