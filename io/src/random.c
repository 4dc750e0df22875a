/* SPDX-License-Identifier: MIT */
/* Random numbers: the system's, and those of a simulation's seed, by splitmix64. */
#include "tape/tape.h"

#include <sys/random.h>

static uint64_t next(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t hafti_io_random(hafti_io_simulated_t *simulated, uint64_t bound) {
    return next(&simulated->random) % bound;
}

void hafti_io_random_bytes(hafti_io_simulated_t *simulated, void *bytes, size_t size) {
    unsigned char *byte = bytes;
    for (size_t i = 0; i < size; i++)
        byte[i] = (unsigned char)next(&simulated->random_bytes);
}

static int system_random(unsigned char *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t more = HAFTI_IO_RESULT(getrandom(bytes + done, size - done, 0));
        if (more < 0 && more != -EINTR)
            return (int)more;
        done += more > 0 ? (size_t)more : 0;
    }
    return 0;
}

int haft_io_random(void *bytes, size_t size) {
    hafti_io_tape_t *tape = hafti_io_tape_here();
    if (HAFTI_IO_UNLIKELY(tape != NULL)) {
        HAFTI_IO_UNTAPED;
        int code = tape->replays ? 0 : system_random(bytes, size);
        code = (int)hafti_io_tape_number(tape, HAFTI_IO_TAPED_RANDOM, code);
        hafti_io_tape_bytes(tape, HAFTI_IO_TAPED_RANDOM, bytes, code == 0 ? size : 0);
        return code;
    }
    const haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL || task->worker->simulated == NULL)
        return system_random(bytes, size);
    hafti_io_random_bytes(task->worker->simulated, bytes, size);
    return 0;
}
