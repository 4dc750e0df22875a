/* SPDX-License-Identifier: MIT */
/* threads, plain C: functions of the threads themselves. */
#include "../threads.h"

static NOINLINE void yield(void) {
    BARRIER();
}

static int64_t threads_run(int64_t number) {
    for (int turn = 0; turn < THREADS_TURNS; turn++)
        yield();
    return number;
}

int main(int argc, char **argv) {
    return threads_program(argc, argv);
}
