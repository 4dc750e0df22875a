/* SPDX-License-Identifier: MIT */
/*
 * The order of a replay. The loop asks the tape which task goes on. A task that asks for an answer
 * which is not next waits, without anything that would wake it: when the tape has its turn next,
 * its cell is won here. All other waits, for locks, channels and times, are those of the run that
 * was recorded, and end as they did there.
 */
#include "replaying.h"
#include "../resting.h"

/* A poll of several waits has its own cell, which another task may win. */
static void park(hafti_io_runner_t *runner, hafti_io_tape_t *tape, unsigned kind, int descriptor) {
    hafti_io_cell_t own = {HAFTI_IO_WAITING, runner->task}, *cell = runner->poll_cell;
    if (cell == NULL)
        cell = &own;
    runner->poll_cell = NULL;
    uint32_t number = hafti_io_tape_number_of(tape, runner->task);
    tape->tasks[number] = (hafti_io_taped_task_t){.task = runner->task,
                                                  .cell = cell,
                                                  .kind = kind,
                                                  .descriptor = descriptor,
                                                  .asked = tape->asked};
    tape->asked = NULL;
    hafti_io_cell_wait(cell, HAFTI_IO_TO_THE_END, HAFT_IO_FOREVER, hafti_io_tape_name(kind));
    tape->asked = tape->tasks[number].asked;
    tape->tasks[number].cell = NULL; /* The tasks may be elsewhere than before. */
}

const hafti_io_entry_t *hafti_io_tape_await(hafti_io_runner_t *runner, unsigned kind,
                                            int descriptor) {
    hafti_io_tape_t *tape = runner->worker->tape;
    for (;;) {
        const hafti_io_entry_t *next = hafti_io_tape_look(tape);
        if (next->kind == kind && next->descriptor == descriptor) {
            hafti_io_tape_take(tape);
            return next;
        }
        if (next->kind != HAFTI_IO_TAPED_RUN && next->kind != HAFTI_IO_TAPED_TIME)
            tape->differs(tape, kind, descriptor);
        park(runner, tape, kind, descriptor);
    }
}

/* Makes the task READY, if only the tape keeps it. */
static void wake(const hafti_io_taped_task_t *taped) {
    haft_io_task_t *task = taped->task;
    if (hafti_io_state(task) != HAFTI_IO_PARKED)
        return;
    if (taped->cell != NULL)
        hafti_io_cell_win(taped->cell, HAFTI_IO_WOKEN);
    else if (task->runner->fiber == NULL)
        hafti_io_wake_rest(task);
}

static bool can_go_on(const haft_io_task_t *task) {
    enum hafti_io_task_state state = hafti_io_state(task);
    return (state == HAFTI_IO_READY || state == HAFTI_IO_NEW) && hafti_io_linked(&task->queued);
}

/* A task of a request may have had a turn for what is off the record (haft_io_kept_pause), for
   which it does not wait here. */
static bool is_empty_turn(const hafti_io_tape_t *tape) {
    const unsigned char *after = tape->next.after;
    return tape->request.iov_base != NULL && after < tape->end &&
           (*after == HAFTI_IO_TAPED_RUN || *after == HAFTI_IO_TAPED_TIME);
}

haft_io_task_t *hafti_io_tape_next(hafti_io_worker_t *worker) {
    hafti_io_tape_t *tape = worker->tape;
    const hafti_io_entry_t *next = hafti_io_tape_look(tape);
    if (next->kind == HAFTI_IO_TAPED_TIME) {
        worker->simulated->now += next->result;
        hafti_io_tape_take(tape);
        return NULL;
    }
    if (next->kind != HAFTI_IO_TAPED_RUN || next->result >= tape->spawned)
        tape->differs(tape, HAFTI_IO_TAPED_TIME, -1);
    const hafti_io_taped_task_t *taped = &tape->tasks[next->result];
    if (hafti_io_tape_number_of(tape, taped->task) != (uint32_t)next->result)
        tape->differs(tape, HAFTI_IO_TAPED_TIME, -1);
    wake(taped);
    if (!can_go_on(taped->task) && is_empty_turn(tape)) {
        hafti_io_tape_take(tape);
        return NULL;
    }
    if (!can_go_on(taped->task))
        tape->differs(tape, HAFTI_IO_TAPED_TIME, -1);
    hafti_io_unlink(&taped->task->queued);
    return taped->task;
}

/* ---- Calls as a whole ---- */

hafti_io_taped_call_t hafti_io_tape_begins(unsigned kind, int descriptor,
                                           const hafti_io_entry_t **entry) {
    hafti_io_tape_t *tape = hafti_io_tape_here();
    *entry = NULL;
    if (tape == NULL)
        return (hafti_io_taped_call_t){.tape = NULL};
    hafti_io_runner_t *runner = hafti_io_worker()->running;
    if (tape->replays) {
        *entry = hafti_io_tape_await(runner, kind, descriptor);
        return (hafti_io_taped_call_t){.tape = NULL};
    }
    runner->taped = true;
    return (hafti_io_taped_call_t){tape, runner, kind, descriptor};
}

int64_t hafti_io_tape_ends(hafti_io_taped_call_t *call, int64_t result, const void *bytes,
                           size_t size) {
    if (call->tape == NULL)
        return result;
    call->runner->taped = false;
    hafti_io_keep(call->runner->worker->tape, call->kind, call->descriptor, result, bytes, size);
    call->tape = NULL;
    return result;
}

void hafti_io_tape_unwound(hafti_io_taped_call_t *call) {
    hafti_io_tape_ends(call, -ECANCELED, NULL, 0);
}

int64_t hafti_io_tape_result(const hafti_io_entry_t *entry, void *into, size_t room) {
    hafti_io_copy_answer(entry, into, room);
    return entry->result != -ECANCELED ? entry->result : haft_io_unwind_cancelled();
}
