/* SPDX-License-Identifier: MIT */
/*
 * The wait cell: every waiter has one word in its own frame, and the first party to swap it has
 * won.
 *
 *   word                  | written by
 *   WAITING               | the waiter, when it makes the cell
 *   CLAIMED, then         |
 *   WOKEN, ARMS + n       | the party that the waiter waits for: a lock's holder, the sender, the
 *                         |   back end
 *   CANCELLED             | the task that cancels the waiter's scope
 *   TIMED_OUT             | the waiter's timer
 *
 * The winner lets the waiter run again; every other party fails to swap it, and gives what it had
 * to the next waiter. The waiter withdraws its cell from where it had put it, and then looks which
 * party has won. So a result that was handed over is never lost to a cancel, nor a cancel to a
 * result.
 *
 * The cell is gone as soon as the waiter runs again. So a party that refers to a cell must keep the
 * waiter from withdrawing it until the party has tried to win it: by the lock of the list that the
 * cell is in, or by being on the waiter's own thread.
 */
#include "system_call.h"
#include "waits.h"

#include <haft/turns.h>

void hafti_io_cell_give_up(hafti_io_cell_t *cell) {
    if (!hafti_io_cell_claim(cell))
        hafti_io_cell_wait(cell, HAFTI_IO_TO_THE_END, HAFT_IO_FOREVER, "a wake-up on its way");
}

/*
 * A cell that a cancel can win is found through the task's runner. In a shared run the canceller
 * may be another thread, and the cell may go at any time: so the canceller swaps it for CELL_TAKEN
 * while it looks at the cell, and the waiter does not leave until NULL stands there. The lock of
 * the task's scope keeps the task itself alive.
 */
void hafti_io_cell_cancel(hafti_io_runner_t *runner, bool shared) {
    hafti_io_cell_t *cell = __atomic_load_n(&runner->cell, __ATOMIC_SEQ_CST);
    if (cell == NULL)
        return;
    if (!shared) {
        hafti_io_cell_win(cell, HAFTI_IO_CANCELLED);
        return;
    }
    if (!__atomic_compare_exchange_n(&runner->cell, &cell, HAFTI_IO_CELL_TAKEN, false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return;
    bool won = hafti_io_cell_claim(cell);
    __atomic_store_n(&runner->cell, NULL, __ATOMIC_RELEASE);
    if (won)
        hafti_io_cell_finish(cell, HAFTI_IO_CANCELLED);
}

void hafti_io_hide_from_cancels(hafti_io_runner_t *runner, hafti_io_cell_t *cell) {
    if (HAFTI_IO_LIKELY(!runner->worker->shared)) {
        runner->cell = NULL;
        return;
    }
    if (__atomic_compare_exchange_n(&runner->cell, &cell, NULL, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_ACQUIRE))
        return;
    unsigned turns = 0;
    while (__atomic_load_n(&runner->cell, __ATOMIC_ACQUIRE) != NULL)
        hafti_io_relax(&turns);
}

bool hafti_io_show_to_cancels(hafti_io_runner_t *runner, hafti_io_cell_t *cell) {
    if (HAFTI_IO_LIKELY(!runner->worker->shared))
        runner->cell = cell;
    else
        HAFTI_IO_SHOW(&runner->cell, cell); /* before a look at the scope */
    /* The loser finds the task in the ready queue, and must not run it twice. */
    if (HAFTI_IO_LIKELY(!__atomic_load_n(&runner->scope->cancelled, __ATOMIC_SEQ_CST)) ||
        !hafti_io_cell_swap(cell, HAFTI_IO_CANCELLED))
        return true;
    hafti_io_hide_from_cancels(runner, cell);
    return false;
}

static HAFTI_IO_COLD uint32_t wait_as_thread(hafti_io_cell_t *cell, int64_t deadline) {
    if (deadline < 0)
        deadline = 0;
    struct timespec until = {deadline / HAFT_IO_SECOND, deadline % HAFT_IO_SECOND};
    for (;;) {
        uint32_t word = __atomic_load_n(&cell->word, __ATOMIC_ACQUIRE);
        if (word > HAFTI_IO_CLAIMED)
            return word;
        bool for_ever = deadline == HAFT_IO_FOREVER || word == HAFTI_IO_CLAIMED;
        const struct timespec *limit = for_ever ? NULL : &until;
        if (hafti_io_futex(&cell->word, FUTEX_WAIT_BITSET, word, limit) == -ETIMEDOUT)
            hafti_io_cell_swap(cell, HAFTI_IO_TIMED_OUT);
    }
}

typedef struct deadline {
    hafti_io_timer_t timer;
    hafti_io_cell_t *cell;
} deadline_t;

static void time_out(hafti_io_timer_t *timer) {
    hafti_io_cell_win(HAFTI_IO_OWNER(timer, deadline_t, timer)->cell, HAFTI_IO_TIMED_OUT);
}

static HAFTI_IO_COLD void leave_gate(hafti_io_runner_t *runner) {
    int saved = *runner->worker->error;
    runner->gated = false;
    runner->gate->leave(runner->gate);
    *runner->worker->error = saved;
}

/* Waits for the event of a gate, which no cancel cuts short, and clears it. */
static HAFTI_IO_COLD void wait_turn(haft_io_task_t *task, haft_io_event_t *event) {
    hafti_io_guard(&event->lock);
    if (!event->set) {
        hafti_io_cell_t cell = {HAFTI_IO_WAITING, task};
        hafti_io_place_t place = {.cell = &cell, .outcome = HAFTI_IO_WOKEN};
        hafti_io_take_place(&event->waiting, &place);
        hafti_io_unguard(&event->lock);
        hafti_io_cell_wait(&cell, HAFTI_IO_TO_THE_END, HAFT_IO_FOREVER, "its turn");
        hafti_io_guard(&event->lock);
    }
    event->set = false;
    hafti_io_unguard(&event->lock);
}

static HAFTI_IO_COLD void enter_gate(hafti_io_runner_t *runner) {
    haft_io_event_t *turn = runner->gate->enter(runner->gate);
    if (turn != NULL)
        wait_turn(runner->task, turn);
    runner->gated = true;
}

/* Where the runtimes of C++ keep a thread's exceptions, which go with the fiber; absent in programs
   of C. */
extern const struct {
    void *caught;
    unsigned in_flight;
} * __cxa_get_globals(void) __attribute__((weak));

bool hafti_io_is_unwinding(hafti_io_runner_t *runner) {
    if (HAFTI_IO_UNLIKELY(runner->unwinding)) {
        const haft_fiber_t *fiber = haft_locate(HAFT_ID(hafti_io_unwind));
        runner->unwinding = fiber == NULL || haft_is_thrown_from(fiber);
    }
    return runner->unwinding;
}

/* Whether the task's stack is unwound: by force, or by an exception of C++. */
static bool is_unwound(hafti_io_runner_t *runner) {
    return hafti_io_is_unwinding(runner) ||
           (__cxa_get_globals && __cxa_get_globals()->in_flight != 0);
}

/* False in a simulation that may switch at each operation: there the seed decides. */
static bool keeps_its_turn(const hafti_io_worker_t *worker) {
    hafti_io_simulated_t *simulated = worker->simulated;
    return simulated != NULL && simulated->switches_one_in != 0 &&
           hafti_io_random(simulated, simulated->switches_one_in) != 0;
}

/* In a child of fork the task goes on at once, and has to keep the gate. No cancel keeps a cleanup
   from work that it can do at once, however much that is. */
bool hafti_io_goes_on_after_others(enum hafti_io_wait_kind kind) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL || task->runner->closes || keeps_its_turn(task->worker))
        return true;
    hafti_io_runner_t *runner = task->runner;
    hafti_io_look_at(runner);
    bool gated = runner->gated && !runner->worker->forked;
    if (gated)
        leave_gate(runner);
    bool goes_on = HAFT_PERFORM(haft_io_yield) == 0 || is_unwound(runner);
    if (gated)
        enter_gate(runner);
    return goes_on || kind == HAFTI_IO_TO_THE_END;
}

void hafti_io_pause_after_cancel(int64_t nanoseconds) {
    haft_io_task_t *task = hafti_io_this_task();
    if (task->runner->closes || is_unwound(task->runner)) {
        hafti_io_goes_on_after_others(HAFTI_IO_TO_THE_END);
        return;
    }
    hafti_io_cell_t cell = {HAFTI_IO_WAITING, task};
    int64_t until = hafti_io_worker_now(task->worker) + nanoseconds;
    hafti_io_cell_wait(&cell, HAFTI_IO_TO_THE_END, until, "a time, cancelled before");
}

/* Every task that waits has this frame on its stack: so a wait with a deadline has a function of
   its own. */
static uint32_t wait(hafti_io_cell_t *cell, enum hafti_io_wait_kind kind, const char *waits_for) {
    hafti_io_runner_t *runner = cell->task->runner;
    hafti_io_worker_t *worker = runner->worker;
    if (HAFTI_IO_UNLIKELY(!runner->listed))
        hafti_io_scope_list(runner->scope, runner);
    if (kind == HAFTI_IO_CANCELLABLE && !hafti_io_show_to_cancels(runner, cell))
        return HAFTI_IO_CANCELLED;
    bool gated = runner->gated;
    if (HAFTI_IO_UNLIKELY(gated))
        leave_gate(runner);
    hafti_io_suspend(runner, worker, waits_for);
    if (kind == HAFTI_IO_CANCELLABLE)
        hafti_io_hide_from_cancels(runner, cell);
    uint32_t outcome = __atomic_load_n(&cell->word, __ATOMIC_ACQUIRE);
    if (HAFTI_IO_UNLIKELY(gated))
        enter_gate(runner);
    return outcome;
}

static __attribute__((noinline)) uint32_t wait_until(hafti_io_cell_t *cell,
                                                     enum hafti_io_wait_kind kind, int64_t deadline,
                                                     const char *waits_for) {
    hafti_io_runner_t *runner = cell->task->runner;
    deadline_t limit = {.timer.fire = time_out, .cell = cell};
    hafti_io_timer_add(&runner->worker->timers, &limit.timer, deadline);
    runner->timer = &limit.timer;
    uint32_t outcome = wait(cell, kind, waits_for);
    hafti_io_timer_remove(&runner->worker->timers, &limit.timer);
    runner->timer = NULL;
    return outcome;
}

uint32_t hafti_io_cell_wait(hafti_io_cell_t *cell, enum hafti_io_wait_kind kind, int64_t deadline,
                            const char *waits_for) {
    const haft_io_task_t *task = cell->task;
    if (HAFTI_IO_UNLIKELY(task == NULL))
        return wait_as_thread(cell, deadline);
    hafti_io_check_may_wait(task);
    hafti_io_look_at(task->runner);
    if (HAFTI_IO_UNLIKELY(kind == HAFTI_IO_CANCELLABLE && hafti_io_is_withdrawn(task->runner)) &&
        hafti_io_cell_swap(cell, HAFTI_IO_CANCELLED))
        return HAFTI_IO_CANCELLED;
    if (deadline != HAFT_IO_FOREVER)
        return wait_until(cell, kind, deadline, waits_for);
    return wait(cell, kind, waits_for);
}

haft_io_gate_t *haft_io_gate_set(haft_io_gate_t *gate) {
    haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        hafti_io_misuse("haft_io_gate_set was called outside of a task.");
    hafti_io_runner_t *runner = task->runner;
    haft_io_gate_t *before = runner->gated ? runner->gate : NULL;
    runner->gate = gate;
    runner->gated = gate != NULL;
    return before;
}
