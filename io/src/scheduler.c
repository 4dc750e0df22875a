/* SPDX-License-Identifier: MIT */
/*
 * The scheduler of a thread: a loop on its own stack that resumes tasks, in the order in which they
 * became ready, and polls the back end when there are none. In a run of several threads, tasks that
 * have not started are in a queue apart (stealing.c), and the two take turns.
 *
 * A task runs on the fiber of a runner. A runner whose task has ended takes the next one itself if
 * that is new, so a task that never waits costs no fiber and no switch. A suspended task is resumed
 * by the loop; or, if it has yielded, by a task of the same worker that yields.
 *
 *   scheduler.c  the loop
 *   choosing.c   which task is next
 *   runners.c    the fibers of tasks, and what runs on them
 *   yielding.c   yields, with the loop and without
 *
 *   loop -- haft_resume --> runner's fiber: haft_handle(operations)
 *                              task's function
 *                                 a scope's body, on a fiber inside; and so on
 *        <-- hafti_io_park ----  a task that waits, however deep; haft_io_yield: one that can go on
 *        <-- hafti_io_unwind --  a task that was cancelled or has failed: its fiber is finished,
 *                                and begins anew
 *        <-- return ----------  a runner that is not needed any more
 *
 * How a task is woken. Its states are in state.h, those of its cell in cell.c. The winner of the
 * cell calls hafti_io_ready, once for each wait:
 *
 *   on             | for a task that is             | what becomes of it
 *   its worker's   | PARKED                         | READY, the last of `ready`; of `polled` while
 *   thread         |                                |   the loop polls, unless the run is simulated
 *                  | PARKED, and keeps a place      | READY, there
 *                  | PARKED, moves, `stays` is 0    | OFFERED, in a queue open to any worker
 *                  | RUNNING: it looks at what the  | READY, the last of `ready`, and still runs;
 *                  |   kernel has done (asking.c)   |   when it waits, run() leaves it READY
 *   another thread | PARKED, or RUNNING and about   | it goes into the inbox as it is; its worker
 *                  |   to wait                      |   takes it from there between tasks, when it
 *                  |                                |   is PARKED, and does the above
 *                  | NEW, and was spread            | the same; the last of `ready`
 *                  |   (stealing.c)                 |
 *
 * A task that yields is RUNNING until the loop has it back, and then goes on as from PARKED. If the
 * loop would only resume the next, which has yielded, too, the task hands over to that itself; if
 * there is no other it just goes on. Then it does what the loop does between two tasks. So it
 * counts as resumed, and the loop has its turn when it is to look at more than `ready`.
 *
 * Why no wake-up is lost. A thread sleeps in the poll of its back end. The waker writes the news,
 * and the sleeper writes the flag that it sleeps; each writes first and then reads what the other
 * writes, both SEQ_CST, so at least one of them sees the other's write.
 *
 *   what comes       | the waker writes  | then looks at      | the sleeper writes  | then looks at
 *   mail             | inbox             | sleeping (to 0)    | sleeping = 1        | inbox
 *   the end of the   | crew->ended       | sleeping (to 0) of | sleeping = 1        | ended
 *     run, if shared |                   |   every worker     |                     |
 *   a task for any   | a queue or the    | crew->parking      | its bit in parking, | all queues,
 *     worker         |   overflow        |                    |   one searcher less |   overflow
 *   a dump, by a     | crew->asked       | nothing: wakes all |                     |
 *     signal         |                   |                    |                     |
 *   a close for      | crew->handed_over | nothing: wakes it  |                     |
 *     others         |                   |                    |                     |
 *   a timer          | its own thread, between tasks: the time of the first is read when the poll
 *                    |   begins
 *   a descriptor     | the kernel, which ends the poll
 *
 *   the flag           | is set by its worker         | is cleared by
 *   sleeping           | before the poll              | the waker, which then ends the poll; its
 *                      |                              |   worker when it has risen
 *   its bit in parking | after `sleeping`             | the waker, which makes it search, counts
 *                      |                              |   it, and then does as for mail; its worker
 *                      |                              |   when it has risen
 *   searching          | when it begins to search, or | its worker when it has a task, or gives its
 *                      |   rises and was counted      |   count back for the bit
 *
 * To end a poll, the waker writes to an eventfd, which stays readable until a poll has found it so:
 * also if that begins later. Debug builds check the part of this that one thread can see (valid.c).
 */
#include "running.h"
#include "valid.h"

/* ---- A task's turn ---- */

/* Changes to the other loop, whose first task this is. */
static HAFTI_IO_COLD void change_loops(hafti_io_worker_t *worker, haft_io_task_t *task) {
    hafti_io_own_threads_start(worker);
    hafti_io_append(worker->ready.next, &task->queued);
}

static HAFTI_IO_COLD void trace_hold(const hafti_io_runner_t *runner) {
    enum { MOST = 24 };
    void *addresses[MOST];
    const haft_io_task_t *task = runner->task;
    int count = haft_fiber_backtrace(runner->fiber, addresses, MOST);
    count = haft_programs_frames(addresses, count, (const void *)(uintptr_t)task->function, true);
    hafti_io_trace_frames(task, addresses, count);
}

static HAFTI_IO_COLD void trace_suspended(const hafti_io_runner_t *runner,
                                          enum hafti_io_event event, const char *waits_for) {
    hafti_io_trace(event, runner->task, waits_for, false, 0, 0);
    if (hafti_io_trace_held_longest())
        trace_hold(runner);
}

static inline void has_parked(hafti_io_worker_t *worker, hafti_io_runner_t *runner,
                              const bool traced) {
    haft_io_task_t *task = runner->task;
    if (HAFTI_IO_UNLIKELY(task == NULL)) {
        hafti_io_runner_rests(worker, runner);
        return;
    }
    if (traced && hafti_io_is_traced())
        trace_suspended(runner, HAFTI_IO_EVENT_PARK, runner->waits_for);
    runner->saved_errno = *worker->error;
    if (HAFTI_IO_LIKELY(hafti_io_state(task) == HAFTI_IO_RUNNING)) { /* not READY */
        HAFTI_IO_CHECK(waiting, worker, task);
        hafti_io_set_state(task, HAFTI_IO_PARKED);
    }
}

/* The reply with which a suspended task is resumed. */
static inline haft_reply_t reply_to(const hafti_io_runner_t *runner) {
    return runner->yielded ? HAFT_REPLY(haft_io_yield, hafti_io_reply_to_yield(runner))
                           : HAFT_NO_REPLY;
}

/* Inlined into the loops: with one frame less the processor predicts the returns. False: the worker
   needs the loop for tasks with thread-locals of their own (`owns`). */
static inline __attribute__((always_inline)) bool run(hafti_io_worker_t *worker,
                                                      haft_io_task_t *task, const bool shared,
                                                      const bool traced, const bool owns) {
    HAFTI_IO_CHECK(next, worker, task);
    hafti_io_rest_t *rest = NULL;
    if (task->runner != NULL && HAFTI_IO_UNLIKELY(task->runner->fiber == NULL))
        rest = hafti_io_end_rest(task);
    hafti_io_runner_t *runner = task->runner;
    if (runner == NULL) {
        task->worker = worker;
        runner = hafti_io_runner_for(worker, task);
        if (runner == NULL) {
            if (!worker->owns && hafti_io_has_own_thread(task)) {
                change_loops(worker, task);
                return false;
            }
            if (rest != NULL)
                hafti_io_rest_for_stack(rest, task);
            else
                hafti_io_task_has_no_stack(task);
            return true;
        }
        runner->task = task;
        runner->yielded = false;
        runner->saved_errno = *worker->error;
    }
    haft_reply_t reply = reply_to(runner);
    hafti_io_begin_turn(worker, runner, shared, owns);
    if (traced)
        hafti_io_tell_run(worker, task);
    haft_fiber_t *fiber = runner->fiber;
    if (owns && runner->owns)
        hafti_io_stand_on(worker, hafti_io_own_thread_of(runner));
    haft_request_t request = haft_resume_turn(&worker->turn, &fiber, reply, HAFTI_IO_FROM_TASKS);
    runner = worker->running; /* the task may have handed over */
    if (owns && HAFTI_IO_LIKELY(!worker->forked))
        hafti_io_stand_on(worker, worker->home);
    for (;;) {
        if (HAFTI_IO_LIKELY(request.effect == HAFT_ID(hafti_io_park))) {
            hafti_io_set_running(worker, NULL);
            has_parked(worker, runner, traced);
            return true;
        }
        if (HAFTI_IO_UNLIKELY(request.effect != HAFT_ID(haft_io_yield)))
            break;
        if (HAFTI_IO_LIKELY(!worker->forked)) {
            hafti_io_note_yield(worker, runner);
            if (traced && hafti_io_is_traced())
                trace_suspended(runner, HAFTI_IO_EVENT_YIELD, NULL);
            hafti_io_set_running(worker, NULL);
            hafti_io_let_go_on_anywhere(worker, runner->task);
            return true;
        }
        /* In a child of fork the others are the parent's. */
        request =
            haft_resume(runner->fiber, HAFT_REPLY(haft_io_yield, hafti_io_reply_to_yield(runner)),
                        HAFTI_IO_FROM_TASKS);
    }
    hafti_io_set_running(worker, NULL);
    if (owns && runner->owns) {
        hafti_io_stand_on(worker, worker->home);
        if (haft_finished(request))
            hafti_io_own_runner_free(runner);
        else
            hafti_io_begin_farewell(worker, runner, request.payload);
        return true;
    }
    if (haft_finished(request))
        hafti_io_runner_free(runner);
    else
        hafti_io_task_was_unwound(worker, runner, request.payload);
    return true;
}

/* ---- The loop ---- */

/*
 * The back end is polled again when PERIOD has passed. Reading the clock takes as long as resuming
 * a task that does little. So it is read only after as many tasks as lately ran in that time, and
 * not at all if no task waits.
 */
static const int64_t PERIOD = 50 * HAFT_IO_MICROSECOND;
enum { UNLOOKED_AFTER_SLEEP = 8 };

/* `spent` is the time in which the tasks since the last poll have run. */
static bool has_passed(hafti_io_worker_t *worker, int64_t spent) {
    unsigned resumed = worker->resumed - worker->polled_at;
    bool passed = spent >= PERIOD;
    unsigned most = passed ? (unsigned)(resumed * PERIOD / spent) : resumed * 2;
    worker->unlooked = most < 1                              ? 1
                       : most > HAFTI_IO_TASKS_BETWEEN_POLLS ? HAFTI_IO_TASKS_BETWEEN_POLLS
                                                             : most;
    worker->look_at = worker->polled_at + worker->unlooked;
    return passed;
}

static HAFTI_IO_HOT __attribute__((noinline)) bool poll_is_due_by_time(hafti_io_worker_t *worker) {
    if (worker->simulated != NULL)
        return false;
    return has_passed(worker, hafti_io_is_awaited(worker) ? hafti_io_clock() - worker->clock : 0);
}

/* How long a poll may take; negative: forever. */
static int64_t time_to_sleep(hafti_io_worker_t *worker) {
    const int64_t most = worker->dozes ? worker->doze : -1;
    int64_t next =
        worker->timers.count != 0 ? hafti_io_timers_next(&worker->timers) : HAFT_IO_FOREVER;
    if (next == HAFT_IO_FOREVER)
        return most;
    int64_t now = hafti_io_worker_now(worker), left = next > now ? next - now : 0;
    return most >= 0 && most < left ? most : left;
}

/* True: there was nothing to do, and the worker has announced that it sleeps. */
static bool falls_asleep(hafti_io_worker_t *worker) {
    if (HAFTI_IO_UNLIKELY(worker->shared))
        return hafti_io_falls_asleep(worker);
    HAFTI_IO_SHOW(&worker->sleeping, 1);
    return __atomic_load_n(&worker->inbox, __ATOMIC_SEQ_CST) == NULL;
}

static bool has_work(const hafti_io_worker_t *worker) {
    return !hafti_io_ring_empty(&worker->ready) || !hafti_io_ring_empty(&worker->polled) ||
           worker->offered || __atomic_load_n(&worker->inbox, __ATOMIC_SEQ_CST) != NULL;
}

/* Suspends the fiber of the run, whose worker has announced that it sleeps; between the polls its
   thread is not one of a run. */
static HAFTI_IO_COLD void pause_in_poll(hafti_io_worker_t *worker, int64_t nanoseconds) {
    worker->backend->poll(worker, 0);
    if (has_work(worker))
        return;
    *worker->pauses =
        (hafti_io_pauses_t){worker->backend->descriptor(worker),
                            nanoseconds < 0 ? HAFT_IO_FOREVER : hafti_io_clock() + nanoseconds};
    hafti_io_this_worker = NULL;
    HAFT_PERFORM(hafti_io_pause);
    hafti_io_this_worker = worker;
    worker->backend->poll(worker, 0);
}

static void sleep_in_poll(hafti_io_worker_t *worker, int64_t nanoseconds) {
    const haft_io_around_sleep_t *around = worker->around_sleep;
    if (HAFTI_IO_UNLIKELY(worker->pauses != NULL) && nanoseconds != 0 &&
        worker->backend->descriptor != NULL) {
        pause_in_poll(worker, nanoseconds);
    } else if (HAFTI_IO_LIKELY(around == NULL) || nanoseconds == 0 || worker->simulated != NULL) {
        worker->backend->poll(worker, nanoseconds);
    } else if (around->falls_asleep()) {
        worker->backend->poll(worker, nanoseconds);
        around->wakes();
    } else {
        worker->backend->poll(worker, 0);
    }
}

int haft_io_set_around_sleep(const haft_io_around_sleep_t *around) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        return haft_io_refuse(-ESRCH, __func__,
                              "this is outside of a task: call it in the first task of a run");
    if (task->worker->shared)
        return haft_io_refuse(-EINVAL, __func__,
                              "the run has several threads, which sleep each for themselves: begin "
                              "it with .threads = 1");
    task->worker->around_sleep = around;
    return 0;
}

static HAFTI_IO_HOT void poll_backend(hafti_io_worker_t *worker, bool may_sleep) {
    int64_t began = HAFTI_IO_UNLIKELY(worker->times_polls) ? hafti_io_worker_now(worker) : 0;
    if (worker->simulated == NULL)
        worker->woken = &worker->polled;
    worker->foreseen = 0;
    if (may_sleep || worker->waiting != 0)
        HAFTI_IO_COUNT(worker->counters.polls);
    if (may_sleep) {
        HAFTI_IO_CHECK(idle, worker);
        sleep_in_poll(worker, falls_asleep(worker) ? time_to_sleep(worker) : 0);
        if (HAFTI_IO_UNLIKELY(worker->shared))
            hafti_io_rises(worker);
        else
            __atomic_store_n(&worker->sleeping, 0, __ATOMIC_RELAXED);
        HAFTI_IO_CHECK(risen, worker);
    } else if (worker->waiting != 0) {
        worker->backend->poll(worker, 0);
    }
    hafti_io_take_mail(worker);
    int64_t polled_before = worker->clock;
    hafti_io_set_clock(worker);
    if (HAFTI_IO_LIKELY(worker->simulated == NULL)) {
        if (may_sleep)
            worker->unlooked = UNLOOKED_AFTER_SLEEP;
        else if (hafti_io_is_awaited(worker) && worker->resumed != worker->polled_at)
            has_passed(worker, worker->clock - polled_before);
    }
    if (HAFTI_IO_UNLIKELY(worker->times_polls))
        __atomic_fetch_add(&worker->counters.polling, (uint64_t)(worker->clock - began),
                           __ATOMIC_RELAXED);
    if (worker->timers.count != 0)
        hafti_io_timers_advance(&worker->timers, worker->clock);
    worker->woken = &worker->ready;
    HAFTI_IO_COUNT(worker->rounds);
    worker->polled_at = worker->resumed;
    worker->look_at = worker->resumed + worker->unlooked;
    if (HAFTI_IO_UNLIKELY(worker->shared)) /* other workers' overflow, too */
        worker->offered = hafti_io_has_offered(worker);
    if (HAFTI_IO_UNLIKELY(__atomic_load_n(&worker->crew->asked, __ATOMIC_RELAXED) != 0))
        worker->crew->do_as_asked(worker->crew);
    if (HAFTI_IO_UNLIKELY(__atomic_load_n(&worker->crew->handed_over, __ATOMIC_RELAXED) != 0))
        hafti_io_take_handed_over(worker->crew);
}

static HAFTI_IO_COLD void poll_traced(hafti_io_worker_t *worker, bool may_sleep) {
    if (!hafti_io_is_traced()) { /* it is recorded or replayed */
        poll_backend(worker, may_sleep);
        return;
    }
    hafti_io_trace(HAFTI_IO_EVENT_POLL, NULL, NULL, false, 0, may_sleep);
    poll_backend(worker, may_sleep);
    hafti_io_trace(HAFTI_IO_EVENT_POLLED, NULL, NULL, false, 0, 0);
}

static inline bool poll_is_due(hafti_io_worker_t *worker) {
    if (HAFTI_IO_LIKELY(!hafti_io_is_to_look(worker)))
        return false;
    unsigned resumed = worker->resumed - worker->polled_at;
    if (!hafti_io_ring_empty(&worker->polled))
        return resumed >= HAFTI_IO_POLLED_BETWEEN_POLLS;
    return resumed >= HAFTI_IO_TASKS_BETWEEN_POLLS || poll_is_due_by_time(worker);
}

/* The next task, if only `ready` has to be looked at. NULL: all of it has to be. */
static inline haft_io_task_t *dequeue_plainly(hafti_io_worker_t *worker) {
    hafti_io_link_t *first = worker->ready.next;
    if (HAFTI_IO_UNLIKELY(!hafti_io_is_plain_turn(worker) || first == &worker->ready))
        return NULL;
    haft_io_task_t *task = HAFTI_IO_OWNER(first, haft_io_task_t, queued);
    hafti_io_unlink(first);
    return HAFTI_IO_LIKELY(hafti_io_state(task) != HAFTI_IO_PARKED)
               ? task
               : NULL; /* its place was in vain */
}

/* The loops are compiled for each case, so that what they do costs nothing where it is not traced,
   and where no task has thread-locals of its own. They return true when the run has ended, or false
   when a case has changed, which they see at a poll, or by a task. */
static inline __attribute__((always_inline)) bool loop_alone(hafti_io_worker_t *worker,
                                                             const bool traced, const bool owns) {
    const haft_io_scope_t *root = &worker->crew->root;
    for (;;) {
        haft_io_task_t *task = dequeue_plainly(worker);
        if (HAFTI_IO_UNLIKELY(task == NULL)) {
            if (root->live == 0) /* no task is left that could have been ready */
                return true;
            if (!poll_is_due(worker))
                task = hafti_io_dequeue_any(worker);
            if (task == NULL) {
                bool may_sleep =
                    hafti_io_ring_empty(&worker->ready) && hafti_io_ring_empty(&worker->polled);
                traced ? poll_traced(worker, may_sleep) : poll_backend(worker, may_sleep);
                if (traced != hafti_io_is_told())
                    return false;
                continue;
            }
        }
        HAFTI_IO_COUNT(worker->resumed);
        if (!run(worker, task, false, traced, owns))
            return false;
    }
}

static inline __attribute__((always_inline)) bool loop_shared(hafti_io_worker_t *worker,
                                                              const bool traced, const bool owns) {
    while (!__atomic_load_n(&worker->crew->ended, __ATOMIC_ACQUIRE)) {
        bool is_due = poll_is_due(worker);
        haft_io_task_t *task = is_due ? NULL : hafti_io_dequeue_shared(worker);
        if (task == NULL) {
            bool has_mail = __atomic_load_n(&worker->inbox, __ATOMIC_RELAXED) != NULL;
            bool may_sleep = !is_due && !has_mail;
            traced ? poll_traced(worker, may_sleep) : poll_backend(worker, may_sleep);
            if (traced != hafti_io_is_told())
                return false;
            continue;
        }
        if (worker->searching)
            hafti_io_stops_searching(worker);
        HAFTI_IO_COUNT(worker->resumed);
        if (HAFTI_IO_UNLIKELY(task->moves) && task->runner != NULL) {
            if (!worker->owns && hafti_io_has_own_thread(task)) { /* it has started elsewhere */
                change_loops(worker, task);
                return false;
            }
            hafti_io_set_timers(worker, task);
        }
        if (!run(worker, task, true, traced, owns))
            return false;
    }
    return true;
}

static HAFTI_IO_COLD bool loop_traced(hafti_io_worker_t *worker) {
    return worker->shared ? loop_shared(worker, true, true) : loop_alone(worker, true, true);
}
static __attribute__((noinline)) bool loop_owning(hafti_io_worker_t *worker) {
    return worker->shared ? loop_shared(worker, false, true) : loop_alone(worker, false, true);
}

HAFTI_IO_HOT void hafti_io_loop(hafti_io_worker_t *worker) {
    bool has_ended = false;
    while (!has_ended) {
        hafti_io_set_plain(worker);
        if (hafti_io_is_told())
            has_ended = loop_traced(worker);
        else if (HAFTI_IO_UNLIKELY(worker->owns))
            has_ended = loop_owning(worker);
        else
            has_ended = worker->shared ? loop_shared(worker, false, false)
                                       : loop_alone(worker, false, false);
    }
}
