/* §2.3 of the paper: what is acquired in a coroutine is released when it ends, last first. */
/* clang-format off */
#include "paper_defer.h"

void *uses_resources(void *arg) {
    void *ptr1 = malloc_scoped(256); void *ptr2 = malloc_scoped(512);
    FILE *f = fopen_scoped("/dev/null", "r");
    printf("%d resources are in use\n", deferred);
    return ptr1 != NULL && ptr2 != NULL && f != NULL ? "all there" : "not all there";
}

int main(void) {
    printf("%s\n", (char *)run_with_handle_defer(uses_resources, NULL));
    printf("%d resources are in use\n", deferred);
}
/* SPDX-License-Identifier: MIT */
