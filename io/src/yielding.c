/* SPDX-License-Identifier: MIT */
/*
 * Yielding. A yield needs the loop only now and then. Where the next task has yielded, too, the one
 * that yields hands over to it by one switch, and does what the loop does between two tasks; where
 * there is no other task it just goes on. In each case the task counts as resumed, so that the loop
 * has its turn when it is to look at more than `ready`.
 */
#include "running.h"
#include "returns.h"
#include "valid.h"

/* Whether the loop would resume the first of the ready tasks next, if there is one, or else the
   task that yields, and would do nothing before. */
static inline bool needs_no_loop(const hafti_io_worker_t *worker) {
    return hafti_io_is_plain_turn(worker) && HAFTI_IO_LIKELY(!worker->offered) &&
           HAFT_IS_FOR_LOOP(&worker->turn, haft_io_yield) &&
           HAFTI_IO_LIKELY(!worker->running->task->moves);
}

/* The first of the ready tasks, if it has yielded, too, and goes on. */
static inline hafti_io_runner_t *next_by_yield(const hafti_io_worker_t *worker) {
    const haft_io_task_t *next = HAFTI_IO_OWNER(worker->ready.next, haft_io_task_t, queued);
    return HAFTI_IO_LIKELY(hafti_io_has_yielded(next) && !hafti_io_is_withdrawn(next->runner) &&
                           !next->moves)
               ? next->runner
               : NULL;
}

/* Does what the loop does between two tasks. */
static inline __attribute__((always_inline)) void
take_turns(hafti_io_worker_t *worker, hafti_io_runner_t *next, const bool owns) {
    hafti_io_runner_t *runner = worker->running;
    haft_io_task_t *task = runner->task, *next_task = next->task;
    hafti_io_note_yield(worker, runner);
    hafti_io_enqueue(worker, task);
    hafti_io_set_state(task, HAFTI_IO_READY);
    hafti_io_unlink(&next_task->queued);
    HAFTI_IO_CHECK(next, worker, next_task);
    HAFTI_IO_COUNT(worker->resumed);
    if (owns)
        hafti_io_stand_on(worker, next->owns ? hafti_io_own_thread_of(next) : worker->home);
    hafti_io_begin_turn(worker, next, worker->shared, owns);
}

/* Goes on with the same task: there is no other that could run. */
static inline int goes_on(hafti_io_worker_t *worker) {
    HAFTI_IO_COUNT(worker->resumed);
    worker->operations = worker->turn_begins;
    return hafti_io_reply_to_yield(worker->running);
}

static HAFTI_IO_COLD int cancelled(void) {
    bool before = haft_io_return_cancels(true);
    int code = haft_io_unwind_cancelled();
    haft_io_return_cancels(before);
    return code;
}

/* Without optimisation each inlined perform has variables of its own, some 1,300 bytes in clang's
   code: several of them in one frame do not fit on a dense stack. */
#ifdef __OPTIMIZE__
#    define INLINE_IF_OPTIMISED inline __attribute__((always_inline))
#else
#    define INLINE_IF_OPTIMISED __attribute__((noinline))
#endif
static INLINE_IF_OPTIMISED int yield_by_loop(void) {
    return HAFT_PERFORM(haft_io_yield);
}

/* Where tasks yield in turn, each lets the next go on by a switch from here, which takes three
   quarters of the time of the way through the loop (bench/io, yield). */
static inline __attribute__((always_inline)) int yield_on(hafti_io_worker_t *worker,
                                                          const bool owns) {
    if (HAFTI_IO_UNLIKELY(!needs_no_loop(worker)))
        return yield_by_loop();
    if (hafti_io_ring_empty(&worker->ready))
        return goes_on(worker);
    hafti_io_runner_t *next = next_by_yield(worker);
    haft_reply_t reply = HAFT_REPLY(haft_io_yield, 0);
    if (HAFTI_IO_UNLIKELY(next == NULL || !haft_claim_next(&worker->turn, next->fiber, reply)))
        return yield_by_loop();
    take_turns(worker, next, owns);
    return HAFT_HAND_OVER(&worker->turn, haft_io_yield, next->fiber, reply);
}

static inline __attribute__((always_inline)) int yield(void) {
    hafti_io_worker_t *worker = hafti_io_worker();
    if (HAFTI_IO_UNLIKELY(worker == NULL || worker->running == NULL))
        return yield_by_loop();
    if (hafti_io_watches() != 0) {
        hafti_io_look_at(worker->running);
        if (hafti_io_is_told())
            return yield_by_loop();
    }
    if (HAFTI_IO_LIKELY(!worker->by_loop))
        return yield_on(worker, false);
    return worker->forked ? yield_by_loop() : yield_on(worker, true);
}

HAFTI_IO_HOT HAFTI_IO_RETURNS_BY_JUMP int haft_io_yield_or_cancelled(void) {
    int code = yield();
    return HAFTI_IO_LIKELY(code == 0) ? 0 : cancelled();
}
