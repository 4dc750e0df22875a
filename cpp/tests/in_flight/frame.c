/* A frame of C whose cleanup waits, in the way of an exception of C++. */
#include <haft.h>

void wait_here(void);
void throw_here(void);
void frame_of_c(void);

static void waiting(int *local) {
    (void)local;
    wait_here();
}

void frame_of_c(void) {
    __attribute__((cleanup(waiting), unused)) int local = 0;
    throw_here();
}
/* SPDX-License-Identifier: MIT */
