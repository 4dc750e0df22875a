/* SPDX-License-Identifier: MIT */
/* Two tasks, one of which computes three times as much as the other: test_flame.sh samples them. */
#include <haft/io.h>

#include <stdint.h>

static volatile uint64_t seen; /* so that nothing is optimised away */

__attribute__((noinline)) static uint64_t step(uint64_t number) {
    for (int i = 0; i < 1000; i++)
        number = number * UINT64_C(6364136223846793005) + 1;
    seen = number;
    return number;
}
__attribute__((noinline)) static uint64_t mill(uint64_t times) {
    uint64_t number = times;
    while (times-- > 0)
        number = step(number);
    return number;
}
static void *parse(void *unused) {
    for (int i = 0; i < 300; i++) {
        seen = mill(1500);
        haft_io_yield();
    }
    return unused;
}
static void *compress(void *unused) {
    for (int i = 0; i < 300; i++) {
        seen = mill(500);
        haft_io_yield();
    }
    return unused;
}
static void *both(void *unused) {
    haft_io_spawn(parse, NULL);
    haft_io_spawn(compress, NULL);
    return unused;
}

int main(void) {
    return haft_io_run(both, NULL) != 0;
}
