/* SPDX-License-Identifier: MIT */
/* threads, Haft, by requests. */
#include "../threads.h"

#include <haft.h>

HAFT_EFFECT(yield, void, {});

static void *count(void *number) {
    for (int turn = 0; turn < THREADS_TURNS; turn++)
        HAFT_PERFORM(yield);
    return number;
}

static int64_t threads_run(int64_t number) {
    haft_fiber_t *fiber = haft_fiber_new(count, &number);
    while (!haft_finished(haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(yield))))
        BARRIER();
    haft_fiber_drop(fiber);
    return number;
}

int main(int argc, char **argv) {
    return threads_program(argc, argv);
}
