/* How many segments a thousand coroutines take that ask which coroutine they are. */
#include <haft/segments.h>
#include <seff.h>
#include <stdio.h>

DEFINE_EFFECT(wait_here, 4, void, {});

static void *looks(void *argument) {
    (void)argument;
    seff_coroutine_t *k = seff_current_coroutine();
    PERFORM(wait_here);
    return k;
}

int main(void) {
    static seff_coroutine_t k[1000];
    int wrong = 0;
    for (int i = 0; i < 1000; i++) {
        seff_coroutine_init(&k[i], looks, NULL);
        seff_resume(&k[i], NULL, HANDLES(wait_here));
    }
    printf("%ld segments\n", (long)haft_segments_statistics().taken);
    for (int i = 0; i < 1000; i++)
        wrong += seff_resume(&k[i], NULL, HANDLES(wait_here)).payload != &k[i];
    printf("%d wrong\n", wrong);
}
/* SPDX-License-Identifier: MIT */
