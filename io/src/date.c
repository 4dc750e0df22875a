/* SPDX-License-Identifier: MIT */
/* The date, and the time roughly: of the machine, of a simulation, or of a tape. */
#include "tape/tape.h"

#include <time.h>

static HAFTI_IO_COLD int64_t taped_roughly(hafti_io_tape_t *tape) {
    HAFTI_IO_UNTAPED;
    return hafti_io_tape_number(tape, HAFTI_IO_TAPED_NOW_ROUGHLY,
                                tape->replays ? 0 : hafti_io_clock_roughly());
}

int64_t haft_io_now_roughly(void) {
    hafti_io_tape_t *tape = hafti_io_tape_here();
    if (HAFTI_IO_UNLIKELY(tape != NULL))
        return taped_roughly(tape);
    const hafti_io_simulated_t *simulated = hafti_io_simulated();
    return simulated != NULL ? simulated->now : hafti_io_clock_roughly();
}

static HAFTI_IO_COLD struct timespec taped_date(hafti_io_tape_t *tape) {
    struct timespec now = {0, 0};
    HAFTI_IO_UNTAPED;
    if (!tape->replays)
        clock_gettime(CLOCK_REALTIME, &now);
    hafti_io_tape_bytes(tape, HAFTI_IO_TAPED_DATE, &now, sizeof now);
    return now;
}

struct timespec haft_io_date(void) {
    hafti_io_tape_t *tape = hafti_io_tape_here();
    if (HAFTI_IO_UNLIKELY(tape != NULL))
        return taped_date(tape);
    const haft_io_task_t *task = hafti_io_this_task();
    if (task != NULL && task->worker->simulated != NULL)
        return hafti_io_simulated_date(task->worker->simulated);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now;
}
