/* SPDX-License-Identifier: MIT */
/*
 * Blocking work of a run that has a tape. Its memory is the program's, which the library does not
 * know. So a replay calls the function again, on a thread as the pool has them, when the tape says
 * that it had ended; what the function computes is there again. What it asks the system for by
 * libhaft-posix is kept with the answer, and answered from it.
 */
#include "../operations.h"
#include "replaying.h"

#include <pthread.h>

typedef struct work {
    void (*function)(void *);
    void *argument;
} work_t;

static void *call_on_thread(void *argument) {
    const work_t *work = argument;
    work->function(work->argument);
    return NULL;
}

/* This thread waits for it, and no task goes on meanwhile. */
static void call_apart(void (*function)(void *), void *argument) {
    work_t work = {function, argument};
    pthread_t thread;
    if (hafti_io_start_thread(&thread, call_on_thread, &work) == 0)
        pthread_join(thread, NULL);
    else
        function(argument);
}

static int replay_work(hafti_io_runner_t *runner, HAFT_PAYLOAD(haft_io_call_blocking) * p) {
    int code = (int)hafti_io_tape_await(runner, HAFTI_IO_TAPED_WORK, -1)->result;
    if (code == 0)
        call_apart(p->function, p->argument);
    else if (p->left != NULL)
        p->left(p->argument);
    return code;
}

int hafti_io_call_taped(hafti_io_runner_t *runner, HAFT_PAYLOAD(haft_io_call_blocking) * p) {
    hafti_io_tape_t *tape = runner->worker->tape;
    bool keeps = !runner->taped && !runner->worker->forked;
    if (keeps && tape->replays)
        return replay_work(runner, p);
    runner->taped = true;
    int code =
        hafti_io_pool_call(runner, p->function, p->argument, p->left, HAFTI_IO_CANCELLABLE);
    if (!keeps)
        return code;
    runner->taped = false;
    hafti_io_keep(tape, HAFTI_IO_TAPED_WORK, -1, code, NULL, 0);
    return code;
}
