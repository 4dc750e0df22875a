/* SPDX-License-Identifier: MIT */
/* threads, Haft, through seff.h. */
#include "../threads.h"

#include <seff.h>

DEFINE_EFFECT(yield, 0, void, {});

static void *count(void *number) {
    for (int turn = 0; turn < THREADS_TURNS; turn++)
        PERFORM(yield);
    return number;
}

static int64_t threads_run(int64_t number) {
    seff_coroutine_t *k = seff_coroutine_new(count, &number);
    while (!seff_finished(seff_resume(k, NULL, HANDLES(yield))))
        BARRIER();
    seff_coroutine_delete(k);
    return number;
}

int main(int argc, char **argv) {
    return threads_program(argc, argv);
}
