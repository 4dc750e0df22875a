/* SPDX-License-Identifier: MIT */
/* Hot split, Haft's segmented stacks (§3.3.2, §4.1.2): compiled with -fsplit-stack. A fiber
 * descends until less is left of its segment than the function needs, and calls it from there in
 * a loop, so that every call moves to the next segment and back.
 *
 *   hotsplit-segmented   that loop
 *   hotsplit-unsplit     the same code on a segment that is large enough: the prologue's check
 */
#include "../hotsplit.h"

#include <haft.h>

typedef struct task {
    void (*function)(void);
    uint64_t operations;
    uintptr_t
        margin; /* descend until less than this is left of the segment; 0: make room instead */
} task_t;

/* Bytes left of the current segment, by the limit that the prologues compare with. */
static inline uintptr_t bytes_left(void) {
    uintptr_t limit;
    __asm__ volatile("movq %%fs:0x70, %0" : "=r"(limit));
    return (uintptr_t)__builtin_frame_address(0) - limit;
}

static void work(const task_t *task) {
    void (*function)(void) = task->function;
    for (uint64_t i = 0; i < task->operations; i++) {
        OPAQUE(function);
        function();
    }
}

static NOINLINE void descend(const task_t *task) {
    if (bytes_left() > task->margin) {
        descend(task);
        BARRIER();
        return;
    }
    work(task);
}

/* On a segment made for a frame of this size, which is more than the function's. */
static NOINLINE void with_room(const task_t *task) {
    char room[0x2000];
    char *kept = room;
    OPAQUE(kept);
    work(task);
    BARRIER();
}

static void *start(void *argument) {
    const task_t *task = argument;
    if (task->margin != 0)
        descend(task);
    else
        with_room(task);
    return NULL;
}

static void measure(benchmark_t *benchmark, uintptr_t margin) {
    task_t task = {hotsplit_function(benchmark->parameter), benchmark->operations, margin};
    haft_fiber_options_t options = {.segmented = true};
    haft_fiber_t *k = haft_fiber_new_with(&options, start, &task);
    benchmark_start(benchmark);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES());
    benchmark_stop(benchmark);
    haft_fiber_drop(k);
}

BENCHMARK_SERIES("hotsplit-segmented", hotsplit_segmented, HOTSPLIT_MULTIPLICATIONS) {
    measure(benchmark, 0x600);
}

BENCHMARK_SERIES("hotsplit-unsplit", hotsplit_unsplit, HOTSPLIT_MULTIPLICATIONS) {
    measure(benchmark, 0);
}
