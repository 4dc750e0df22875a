/* SPDX-License-Identifier: MIT */
/*
 * Blocking work of a run that has a tape. The work's memory is the program's, which the library
 * does not know. So a replay calls the function again, on a thread as the pool has them, when it
 * has ended by the tape: it computes the same again. The answers of the C library to it, which come
 * by libhaft-posix, are kept with the answer of the work.
 */
#include "../operations.h"
#include "replaying.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct work {
    void (*function)(void *);
    void *argument;
    void (*left)(void *);
    hafti_io_tape_t tape; /* what it asks for */
} work_t;

static void call_with_tape(void *argument) {
    work_t *work = argument;
    hafti_io_work_tape = &work->tape;
    work->function(work->argument);
    hafti_io_work_tape = NULL;
}

static void *call_on_thread(void *argument) {
    call_with_tape(argument);
    return NULL;
}

/* This thread waits for it, and no task goes on meanwhile. */
static void call_apart(work_t *work) {
    pthread_t thread;
    if (hafti_io_start_thread(&thread, call_on_thread, work) == 0)
        pthread_join(thread, NULL);
    else
        call_with_tape(work);
}

static int replay_work(hafti_io_runner_t *runner, HAFT_PAYLOAD(haft_io_call_blocking) * p) {
    const hafti_io_tape_t *tape = runner->worker->tape;
    const hafti_io_entry_t *entry = hafti_io_tape_await(runner, HAFTI_IO_TAPED_WORK, -1);
    int code = (int)entry->result;
    if (code != 0) {
        if (p->left != NULL)
            p->left(p->argument);
        return code;
    }
    work_t work = {.function = p->function, .argument = p->argument, .tape = *tape};
    work.tape.at = (unsigned char *)(uintptr_t)entry->bytes;
    work.tape.end = work.tape.at + entry->size;
    work.tape.next.after = NULL;
    call_apart(&work);
    return 0;
}

static void leave(void *argument) {
    work_t *work = argument;
    work->left(work->argument);
    free(work->tape.part);
    free(work);
}

static int keep_work(hafti_io_runner_t *runner, HAFT_PAYLOAD(haft_io_call_blocking) * p) {
    work_t *work = calloc(1, sizeof *work);
    if (work == NULL) {
        if (p->left != NULL)
            p->left(p->argument);
        return -ENOMEM;
    }
    work->function = p->function;
    work->argument = p->argument;
    work->left = p->left;
    work->tape.grows = true;
    work->tape.file = -1;
    int code = hafti_io_pool_call(runner, call_with_tape, work, p->left != NULL ? leave : NULL,
                                  HAFTI_IO_CANCELLABLE);
    bool is_left = code != 0 && p->left != NULL; /* it may still be under way */
    size_t size =
        !is_left && work->tape.part != NULL ? (size_t)(work->tape.at - work->tape.part) : 0;
    hafti_io_keep(runner->worker->tape, HAFTI_IO_TAPED_WORK, -1, code,
                  size != 0 ? work->tape.part : NULL, size);
    if (!is_left) {
        free(work->tape.part);
        free(work);
    }
    return code;
}

int hafti_io_call_taped(hafti_io_runner_t *runner, HAFT_PAYLOAD(haft_io_call_blocking) * p) {
    if (runner->worker->tape->replays)
        return replay_work(runner, p);
    runner->taped = true;
    int code = keep_work(runner, p);
    runner->taped = false;
    return code;
}
