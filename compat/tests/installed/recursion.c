/* Recurses some 3 MiB deep in a coroutine of the default size. */
#include <seff.h>
#include <stdio.h>

static int64_t down(int64_t depth) {
    volatile char frame[1000];
    frame[depth % 1000] = 1;
    return depth == 0 ? 0 : frame[depth % 1000] + down(depth - 1);
}
static void *dives(void *depth) {
    return (void *)down((int64_t)depth);
}

int main(void) {
    seff_coroutine_t *k = seff_coroutine_new_sized(dives, (void *)3000, 256);
    printf("%ld\n", (long)seff_resume(k, NULL, 0).payload);
    seff_coroutine_delete(k);
}
/* SPDX-License-Identifier: MIT */
