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
 * To end a poll is to write to an eventfd, which stays readable until a poll has found it so: also
 * if that begins later. Debug builds check what of this one thread can see (valid.c).
 */
#include "scheduler.h"
#include "own_threads.h"
#include "resting.h"
#include "returns.h"
#include "tape/replaying.h"
#include "valid.h"

#include <stdlib.h>

enum {
    /* Upper limit while woken tasks are still queued; polling sooner would wake further tasks
       before these have run. */
    POLLED_BETWEEN_POLLS = 256,
    MOST_IDLE_RUNNERS = 64
};

/* ---- The ready queue ---- */

/* Tasks that the last poll has woken take turns with the others, so that started work ends, and
   frees its stack, before ever more is started. */
static bool polled_turn(const hafti_io_worker_t *worker) {
    return worker->resumed % 2 == 0 && !hafti_io_ring_empty(&worker->polled);
}

static inline __attribute__((always_inline)) void bring(const void *memory, int first, int end) {
#pragma GCC unroll 16
    for (int line = first; line < end; line++)
        __builtin_prefetch((const void *)((uintptr_t)memory + (uintptr_t)(line * HAFTI_IO_LINE)));
}

/* Often many were woken at once, each long after it has used its memory. So a task's memory is
   brought into the processor's caches while some before it run. That saves 0.3 to 0.7 us of the 9
   us of a message (bench/io, echo). */
static void foresee(hafti_io_worker_t *worker) {
    enum { AHEAD = 3 }; /* tasks, with that which is to run */
    /* Lines: below a task's cell, for the frames of what it does next; above it, for its frames;
       below its fiber's header, for the scope of its operations; of the header. */
    enum { BELOW = 3, ABOVE = 8, SCOPE = 7, SCOPE_END = 3, HEADER = 4 };
    const hafti_io_link_t *link = worker->polled.next;
    for (unsigned i = 0; i < worker->foreseen && link != &worker->polled; i++)
        link = link->next;
    for (; worker->foreseen < AHEAD && link != &worker->polled; link = link->next) {
        const haft_io_task_t *task = HAFTI_IO_OWNER(link, haft_io_task_t, queued);
        worker->foreseen++;
        if (task->runner->fiber == NULL) { /* it rests */
            bring(task->runner, 0, ABOVE);
            continue;
        }
        bring(task->runner->fiber, 0, HEADER);
        bring(task->runner->fiber, -SCOPE, -SCOPE_END);
        /* A canceller may have it at this moment (cell.c). */
        const void *cell = __atomic_load_n(&task->runner->cell, __ATOMIC_RELAXED);
        bring(cell, -BELOW, ABOVE);
    }
    if (link != &worker->polled)
        __builtin_prefetch(HAFTI_IO_OWNER(link, haft_io_task_t, queued)->runner);
}

static haft_io_task_t *first_ready(hafti_io_worker_t *worker) {
    return hafti_io_ring_empty(&worker->ready)
               ? NULL
               : HAFTI_IO_OWNER(worker->ready.next, haft_io_task_t, queued);
}

static haft_io_task_t *dequeue(hafti_io_worker_t *worker) {
    haft_io_task_t *task = first_ready(worker);
    if (task != NULL)
        hafti_io_unlink(&task->queued);
    return task;
}

static bool has_room(hafti_io_lots_t *lots) {
    if (lots->count < lots->room)
        return true;
    size_t room = lots->room == 0 ? 64 : 2 * lots->room;
    haft_io_task_t **grown = realloc(lots->tasks, room * sizeof(haft_io_task_t *));
    if (grown == NULL)
        return false;
    lots->tasks = grown;
    lots->room = room;
    return true;
}

/* Takes a lot out of the list. */
static haft_io_task_t *take_lot(hafti_io_lots_t *lots, size_t index) {
    haft_io_task_t *task = lots->tasks[index];
    lots->tasks[index] = lots->tasks[--lots->count];
    hafti_io_unlink(&task->queued);
    return task;
}

/* Any of the ready tasks, each with the same chance, in the same time however many there are. */
static HAFTI_IO_COLD haft_io_task_t *dequeue_at_random(hafti_io_worker_t *worker) {
    hafti_io_lots_t *lots = &worker->simulated->lots;
    while (!hafti_io_ring_empty(&worker->ready) && has_room(lots)) {
        haft_io_task_t *task = dequeue(worker);
        hafti_io_append(&lots->ring, &task->queued);
        lots->tasks[lots->count++] = task;
    }
    if (lots->count == 0)
        return dequeue(worker);
    haft_io_task_t *task = take_lot(lots, hafti_io_random(worker->simulated, lots->count));
    if (lots->count != 0 && hafti_io_ring_empty(&worker->ready))
        hafti_io_enqueue(worker, take_lot(lots, lots->count - 1));
    return task;
}

static inline bool is_to_look(const hafti_io_worker_t *worker) {
    return (int)(worker->resumed - worker->look_at) >= 0;
}

static bool fits_any_runner(const haft_io_task_t *task) {
    return task->runner == NULL && task->stack == 0;
}

static bool has_yielded(const haft_io_task_t *task) {
    return task->runner != NULL && task->runner->yielded;
}

static HAFTI_IO_HOT haft_io_task_t *dequeue_polled(hafti_io_worker_t *worker) {
    haft_io_task_t *task = HAFTI_IO_OWNER(worker->polled.next, haft_io_task_t, queued);
    foresee(worker);
    worker->foreseen--;
    hafti_io_unlink(&task->queued);
    return task;
}

/* Takes the first task that the last poll has woken, if it rests. */
static HAFTI_IO_HOT haft_io_task_t *take_rested(hafti_io_worker_t *worker) {
    haft_io_task_t *task = HAFTI_IO_OWNER(worker->polled.next, haft_io_task_t, queued);
    if (task->runner->fiber != NULL || task->stack != 0 ||
        worker->resumed - worker->polled_at >= POLLED_BETWEEN_POLLS)
        return NULL;
    dequeue_polled(worker);
    HAFTI_IO_CHECK(next, worker, task);
    hafti_io_end_rest(task);
    HAFTI_IO_COUNT(worker->resumed);
    return task;
}

static inline __attribute__((always_inline)) haft_io_task_t *take_new(hafti_io_worker_t *worker,
                                                                      const bool shared) {
    if (!shared && !hafti_io_ring_empty(&worker->polled) &&
        (polled_turn(worker) || hafti_io_ring_empty(&worker->ready)))
        return take_rested(worker);
    if (is_to_look(worker) || polled_turn(worker)) /* as always in a simulation */
        return NULL;
    haft_io_task_t *task = first_ready(worker);
    if (HAFTI_IO_LIKELY(task != NULL)) {
        if (!fits_any_runner(task))
            return NULL;
        hafti_io_unlink(&task->queued);
    } else {
        task = shared ? hafti_io_take_offered(worker) : NULL;
        if (task == NULL)
            return NULL;
        if (HAFTI_IO_UNLIKELY(!fits_any_runner(task))) { /* for the loop */
            hafti_io_enqueue(worker, task);
            return NULL;
        }
    }
    HAFTI_IO_COUNT(worker->resumed);
    return task;
}
static HAFTI_IO_COLD void tell_run(hafti_io_worker_t *worker, const haft_io_task_t *task) {
    if (hafti_io_is_traced())
        hafti_io_trace(HAFTI_IO_EVENT_RUN, task, task->name, false, 0, 0);
    if (worker->tape != NULL)
        hafti_io_tape_goes_on(worker, task);
}
/* Where the worker is not plain. */
static __attribute__((noinline)) haft_io_task_t *take_new_generally(hafti_io_worker_t *worker) {
    haft_io_task_t *task = worker->shared ? take_new(worker, true) : take_new(worker, false);
    if (task != NULL && hafti_io_is_told())
        tell_run(worker, task);
    return task;
}
haft_io_task_t *hafti_io_take_new(hafti_io_worker_t *worker) {
    return HAFTI_IO_LIKELY(worker->plain) ? take_new(worker, false) : take_new_generally(worker);
}

/* The task, the first of the others, or NULL, unless one that the last poll has woken goes before
   it. */
static inline haft_io_task_t *or_polled(hafti_io_worker_t *worker, haft_io_task_t *task) {
    if (HAFTI_IO_LIKELY(hafti_io_ring_empty(&worker->polled)))
        return task;
    if (task != NULL && !has_yielded(task))
        return task;
    if (task != NULL) /* A yielding task lets all others go first. */
        hafti_io_append(&worker->polled, &task->queued);
    return dequeue_polled(worker);
}

static HAFTI_IO_HOT __attribute__((noinline)) haft_io_task_t *
dequeue_any(hafti_io_worker_t *worker) {
    if (worker->simulated != NULL)
        return worker->tape != NULL ? hafti_io_tape_next(worker) : dequeue_at_random(worker);
    if (polled_turn(worker))
        return dequeue_polled(worker);
    haft_io_task_t *task = dequeue(worker);
    while (task != NULL && hafti_io_state(task) == HAFTI_IO_PARKED) /* it kept a place in vain */
        task = dequeue(worker);
    return or_polled(worker, task);
}

/* Chooses a task of this worker. In every fourth turn it prefers one that the last poll has not
   woken. */
static haft_io_task_t *dequeue_own(hafti_io_worker_t *worker) {
    bool others_turn =
        hafti_io_ring_empty(&worker->polled) || worker->favours || worker->resumed % 4 == 0;
    return or_polled(worker, others_turn ? dequeue(worker) : NULL);
}

static haft_io_task_t *dequeue_shared(hafti_io_worker_t *worker) {
    bool started_first = worker->favours || worker->resumed % 2 == 0;
    haft_io_task_t *task = started_first ? dequeue_own(worker) : NULL;
    worker->favours = false;
    if (task == NULL) {
        task = hafti_io_take_offered(worker);
        worker->offered = task != NULL;
    }
    if (task == NULL)
        task = dequeue_own(worker);
    if (task == NULL)
        task = hafti_io_search(worker);
    return task;
}

/* ---- Runners ---- */

static void begin_task(hafti_io_runner_t *runner, haft_io_task_t *task) {
    task->runner = runner;
    task->worker = runner->worker;
    runner->spawned_at = task->spawned_at;
    runner->scope = task->home;
    runner->cell = NULL;
    runner->waits_for = NULL;
    runner->looked_at = 0;
    runner->yielded = runner->listed = false;
    runner->unwinding = runner->returns_cancels = runner->counted = runner->gated = false;
    runner->unarmed = false;
    runner->accepted = false;
    runner->refused = 0;
    runner->stays = 0;
    runner->timer = NULL;
    runner->rest = NULL;
    runner->unsent = NULL;
    runner->own = NULL;
}

static inline __attribute__((always_inline)) void run_task(hafti_io_runner_t *runner) {
    haft_io_task_t *task = runner->task;
    begin_task(runner, task);
    HAFTI_IO_COUNT(runner->worker->counters.tasks);
    hafti_io_set_state(task, HAFTI_IO_RUNNING);
    runner->worker->operations = runner->worker->turn_begins;
    task->result = task->function(task->argument);
    if (runner->rest != NULL)
        hafti_io_begin_rest(runner);
    else
        hafti_io_task_end(task, 0);
}

static void *run_tasks(void *argument) {
    hafti_io_runner_t *runner = argument;
    while (runner->task != NULL) {
        run_task(runner);
        runner->task = hafti_io_take_new(runner->worker);
        if (runner->task == NULL)
            HAFT_PERFORM(hafti_io_park);
    }
    return NULL;
}
static void *run_runner(void *argument) {
    return haft_handle(((const hafti_io_runner_t *)argument)->worker->crew->operations, argument,
                       run_tasks, argument);
}

static void *run_single_task(void *argument) {
    hafti_io_runner_t *runner = argument;
    run_task(runner);
    runner->task = NULL;
    return NULL;
}
static void *run_single_runner(void *argument) {
    return haft_handle(((const hafti_io_runner_t *)argument)->worker->crew->operations, argument,
                       run_single_task, argument);
}

/* ---- Tasks with thread-locals of their own ---- */

/*
 * Each has a runner, a fiber and a thread pointer of its own. The worker's loop is another one once
 * it has such a task: so the loops of other runs have no instruction for them.
 *
 *   on the runner's fiber, under its pointer         in the loop, under the thread's
 *     run_own_task: begins, calls the function,        own_runner_new: storage, fiber
 *       the destructors, and ends the task     ---->   finished: storage and runner are freed
 *     or it was unwound                        ---->   begin_farewell: the fiber begins anew
 *     farewell: the destructors, and the end   ---->   finished: as above
 *
 * The destructors are shielded from cancels, which must not unwind a destructor of C++.
 */
static inline hafti_io_own_thread_t *own_thread_of(const hafti_io_runner_t *runner) {
    return runner->fiber->argument;
}

static void *call_destructors(void *argument) {
    hafti_io_own_thread_end(argument);
    return NULL;
}

static inline void end_own_thread(hafti_io_runner_t *runner) {
    hafti_io_own_thread_t *thread = own_thread_of(runner);
    if (hafti_io_own_thread_has_destructors(thread))
        haft_io_shield(call_destructors, thread);
}

void haft_io_own_thread_destroy(void) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    hafti_io_runner_t *runner = worker != NULL ? worker->running : NULL;
    if (runner != NULL && runner->owns)
        end_own_thread(runner);
}

static void *run_own_task(void *argument) {
    hafti_io_runner_t *runner = argument;
    haft_io_task_t *task = runner->task;
    begin_task(runner, task);
    HAFTI_IO_COUNT(runner->worker->counters.tasks);
    hafti_io_set_state(task, HAFTI_IO_RUNNING);
    runner->worker->operations = runner->worker->turn_begins;
    void *result = task->function(task->argument);
    while (runner->rest != NULL)
        result = hafti_io_go_on_without_rest(runner);
    end_own_thread(runner);
    task->result = result;
    hafti_io_task_end(task, 0);
    runner->task = NULL;
    return NULL;
}
static void *run_own_runner(void *argument) {
    hafti_io_runner_t *runner = ((const hafti_io_own_thread_t *)argument)->runner;
    hafti_io_own_thread_begin();
    return haft_handle(runner->worker->crew->operations, runner, run_own_task, runner);
}

static void *farewell(void *argument) {
    hafti_io_runner_t *runner = argument;
    haft_io_task_t *task = runner->task;
    begin_task(runner, task);
    hafti_io_set_state(task, HAFTI_IO_RUNNING);
    end_own_thread(runner);
    hafti_io_task_end(task, own_thread_of(runner)->unwound_with);
    runner->task = NULL;
    return NULL;
}
static void *run_farewell(void *argument) {
    hafti_io_runner_t *runner = ((const hafti_io_own_thread_t *)argument)->runner;
    return haft_handle(runner->worker->crew->operations, runner, farewell, runner);
}

/* The function of the task has been unwound, and its fiber has ended with it. */
static HAFTI_IO_COLD void begin_farewell(hafti_io_worker_t *worker, hafti_io_runner_t *runner,
                                         const haft_payload_hafti_io_unwind *unwound) {
    haft_io_task_t *task = runner->task;
    hafti_io_drop_unsent(runner);
    hafti_io_check_leaving(task, "has ended");
    if (runner->listed)
        hafti_io_scope_unlist(task->home, runner);
    runner->listed = false;
    own_thread_of(runner)->unwound_with = unwound->code;
    runner->yielded = false;
    haft_fiber_reset(runner->fiber, run_farewell, own_thread_of(runner));
    hafti_io_set_state(task, HAFTI_IO_READY);
    hafti_io_enqueue(worker, task);
}

/* In a loop of other tasks. From now on the worker has the other loop, and the task is its
   first. */
static HAFTI_IO_COLD void change_loops(hafti_io_worker_t *worker, haft_io_task_t *task) {
    hafti_io_own_threads_start(worker);
    hafti_io_append(worker->ready.next, &task->queued);
}

/* ---- Their runners ---- */

static void runner_forget(hafti_io_runner_t *runner) {
    runner->next = runner->worker->free_runners;
    runner->worker->free_runners = runner;
}

/* Its fiber calls the function, with `own_thread` or else with the runner. */
static hafti_io_runner_t *runner_with(hafti_io_worker_t *worker, haft_io_task_t *task,
                                      void *(*function)(void *),
                                      hafti_io_own_thread_t *own_thread) {
    hafti_io_runner_t *runner = worker->free_runners;
    if (runner != NULL)
        worker->free_runners = runner->next;
    else if ((runner = hafti_io_new_record(worker, &worker->runners, sizeof *runner)) == NULL)
        return NULL;
    *runner = (hafti_io_runner_t){.worker = worker, .single = task->stack != 0};
    runner->fiber =
        hafti_io_fiber_of(task, function, own_thread != NULL ? (void *)own_thread : runner);
    if (runner->fiber != NULL)
        return runner;
    runner_forget(runner);
    return NULL;
}

static void runner_free(hafti_io_runner_t *runner) {
    haft_fiber_drop(runner->fiber);
    runner_forget(runner);
}

static void own_runner_free(hafti_io_runner_t *runner) {
    hafti_io_own_thread_free(own_thread_of(runner));
    runner_free(runner);
}

static __attribute__((noinline)) hafti_io_runner_t *own_runner_new(hafti_io_worker_t *worker,
                                                                   haft_io_task_t *task) {
    hafti_io_own_thread_t *thread = hafti_io_own_thread_new();
    if (thread == NULL)
        return NULL;
    hafti_io_runner_t *runner = runner_with(worker, task, run_own_runner, thread);
    if (runner == NULL) {
        hafti_io_own_thread_free(thread);
        return NULL;
    }
    thread->runner = runner;
    runner->owns = true;
    hafti_io_own_thread_set_stack(thread, runner->fiber->low,
                                  (size_t)(runner->fiber->high - runner->fiber->low));
    return runner;
}

/* With a stack as only this task has it. */
static __attribute__((noinline)) hafti_io_runner_t *single_runner_new(hafti_io_worker_t *worker,
                                                                      haft_io_task_t *task) {
    if (!hafti_io_has_own_thread(task))
        return runner_with(worker, task, run_single_runner, NULL);
    return worker->owns ? own_runner_new(worker, task) : NULL;
}

static hafti_io_runner_t *runner_new(hafti_io_worker_t *worker, haft_io_task_t *task) {
    if (HAFTI_IO_UNLIKELY(task->stack != 0))
        return single_runner_new(worker, task);
    hafti_io_runner_t *runner = worker->idle;
    if (runner == NULL)
        return runner_with(worker, task, run_runner, NULL);
    worker->idle = runner->next;
    worker->idle_count--;
    return runner;
}

/* The effects that suspend a task. */
#define FROM_TASKS HAFT_HANDLES(hafti_io_park, haft_io_yield, hafti_io_unwind)

/* An idle one finds no task, and returns. */
static void runner_ends(hafti_io_runner_t *runner) {
    haft_resume(runner->fiber, HAFT_NO_REPLY, FROM_TASKS);
    runner_free(runner);
}

static void runner_rests(hafti_io_worker_t *worker, hafti_io_runner_t *runner) {
    if (worker->idle_count == MOST_IDLE_RUNNERS) {
        runner_ends(runner);
        return;
    }
    runner->next = worker->idle;
    worker->idle = runner;
    worker->idle_count++;
}

/* Its fiber has ended with it, and begins anew for the next task. */
static void task_was_unwound(hafti_io_worker_t *worker, hafti_io_runner_t *runner,
                             const haft_payload_hafti_io_unwind *unwound) {
    hafti_io_drop_unsent(runner);
    hafti_io_task_end(runner->task, unwound->code);
    if (worker->idle_count == MOST_IDLE_RUNNERS || runner->single) {
        runner_free(runner);
        return;
    }
    haft_fiber_reset(runner->fiber, run_runner, runner);
    runner->task = NULL;
    runner_rests(worker, runner);
}

/* No stack: the task fails before it has run. */
static HAFTI_IO_COLD void task_has_no_stack(haft_io_task_t *task) {
    if (task->even_without_stack)
        task->function(task->argument);
    hafti_io_scope_fail(task->home, -ENOMEM, "no stack for a task", task);
    hafti_io_task_end(task, -ENOMEM);
}

/* Sets the runner that the watchdog finds. */
static void set_running(hafti_io_worker_t *worker, hafti_io_runner_t *runner) {
    __atomic_store_n(&worker->running, runner, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void has_parked(hafti_io_worker_t *worker, hafti_io_runner_t *runner,
                              const bool traced) {
    haft_io_task_t *task = runner->task;
    if (HAFTI_IO_UNLIKELY(task == NULL)) {
        runner_rests(worker, runner);
        return;
    }
    if (traced && hafti_io_is_traced())
        hafti_io_trace(HAFTI_IO_EVENT_PARK, task, runner->waits_for, false, 0, 0);
    runner->saved_errno = *worker->error;
    if (HAFTI_IO_LIKELY(hafti_io_state(task) == HAFTI_IO_RUNNING)) { /* not READY */
        HAFTI_IO_CHECK(waiting, worker, task);
        hafti_io_set_state(task, HAFTI_IO_PARKED);
    }
}

static inline int reply_to_yield(const hafti_io_runner_t *runner) {
    return HAFTI_IO_UNLIKELY(hafti_io_is_withdrawn(runner)) ? -ECANCELED : 0;
}

/* The reply with which a suspended task is resumed. */
static inline haft_reply_t reply_to(const hafti_io_runner_t *runner) {
    return runner->yielded ? HAFT_REPLY(haft_io_yield, reply_to_yield(runner)) : HAFT_NO_REPLY;
}

/* Before the task is resumed. */
static inline void begin_turn(hafti_io_worker_t *worker, hafti_io_runner_t *runner,
                              const bool shared, const bool owns) {
    hafti_io_set_state(runner->task, HAFTI_IO_RUNNING);
    set_running(worker, runner);
    /* A thread that walks stacks has seen that the task runs, or is seen here: dump.c has the
       barrier between. */
    if (shared && HAFTI_IO_UNLIKELY(__atomic_load_n(&worker->crew->looked_at, __ATOMIC_ACQUIRE)))
        hafti_io_await_look(worker->crew);
    worker->operations = worker->turn_begins;
    if (!owns || !runner->owns) /* whose errno nobody else changes */
        *worker->error = runner->saved_errno;
    runner->yielded = false;
}

/* When the task is suspended, or about to be. */
static inline void note_yield(const hafti_io_worker_t *worker, hafti_io_runner_t *runner) {
    runner->yielded = true;
    runner->saved_errno = *worker->error;
    hafti_io_arm_deadlines(runner);
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
        runner = runner_new(worker, task);
        if (runner == NULL) {
            if (!worker->owns && hafti_io_has_own_thread(task)) {
                change_loops(worker, task);
                return false;
            }
            if (rest != NULL)
                hafti_io_rest_for_stack(rest, task);
            else
                task_has_no_stack(task);
            return true;
        }
        runner->task = task;
        runner->yielded = false;
        runner->saved_errno = *worker->error;
    }
    haft_reply_t reply = reply_to(runner);
    begin_turn(worker, runner, shared, owns);
    if (traced)
        tell_run(worker, task);
    haft_fiber_t *fiber = runner->fiber;
    if (owns && runner->owns)
        hafti_io_stand_on(worker, own_thread_of(runner));
    haft_request_t request = haft_resume_turn(&worker->turn, &fiber, reply, FROM_TASKS);
    runner = worker->running; /* the task may have handed over */
    if (owns && HAFTI_IO_LIKELY(!worker->forked))
        hafti_io_stand_on(worker, worker->home);
    for (;;) {
        if (HAFTI_IO_LIKELY(request.effect == HAFT_ID(hafti_io_park))) {
            set_running(worker, NULL);
            has_parked(worker, runner, traced);
            return true;
        }
        if (HAFTI_IO_UNLIKELY(request.effect != HAFT_ID(haft_io_yield)))
            break;
        if (HAFTI_IO_LIKELY(!worker->forked)) {
            note_yield(worker, runner);
            if (traced && hafti_io_is_traced())
                hafti_io_trace(HAFTI_IO_EVENT_YIELD, runner->task, NULL, false, 0, 0);
            set_running(worker, NULL);
            hafti_io_let_go_on_anywhere(worker, runner->task);
            return true;
        }
        /* In a child of fork the others are the parent's. */
        request = haft_resume(runner->fiber, HAFT_REPLY(haft_io_yield, reply_to_yield(runner)),
                              FROM_TASKS);
    }
    set_running(worker, NULL);
    if (owns && runner->owns) {
        hafti_io_stand_on(worker, worker->home);
        if (haft_finished(request))
            own_runner_free(runner);
        else
            begin_farewell(worker, runner, request.payload);
        return true;
    }
    if (haft_finished(request))
        runner_free(runner);
    else
        task_was_unwound(worker, runner, request.payload);
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

/* True: there was nothing to do, and the worker says that it sleeps, from now on. */
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

/* The fiber of the run is suspended, while the worker says that it sleeps; between the polls its
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
    if (HAFTI_IO_UNLIKELY(worker->shared)) /* also of what other workers had no room for */
        worker->offered = hafti_io_has_offered(worker);
    if (HAFTI_IO_UNLIKELY(__atomic_load_n(&worker->crew->asked, __ATOMIC_RELAXED) != 0))
        worker->crew->do_as_asked(worker->crew);
    if (HAFTI_IO_UNLIKELY(__atomic_load_n(&worker->crew->handed_over, __ATOMIC_RELAXED) != 0))
        hafti_io_take_handed_over(worker->crew);
}

static HAFTI_IO_COLD void poll_traced(hafti_io_worker_t *worker, bool may_sleep) {
    hafti_io_trace(HAFTI_IO_EVENT_POLL, NULL, NULL, false, 0, may_sleep);
    poll_backend(worker, may_sleep);
    hafti_io_trace(HAFTI_IO_EVENT_POLLED, NULL, NULL, false, 0, 0);
}

static inline bool poll_is_due(hafti_io_worker_t *worker) {
    if (HAFTI_IO_LIKELY(!is_to_look(worker)))
        return false;
    unsigned resumed = worker->resumed - worker->polled_at;
    if (!hafti_io_ring_empty(&worker->polled))
        return resumed >= POLLED_BETWEEN_POLLS;
    return resumed >= HAFTI_IO_TASKS_BETWEEN_POLLS || poll_is_due_by_time(worker);
}

/* Whether all that is to be looked at is the queue of ready tasks, as mostly. */
static inline bool is_plain_turn(const hafti_io_worker_t *worker) {
    return HAFTI_IO_LIKELY(!is_to_look(worker) && hafti_io_ring_empty(&worker->polled));
}

/* NULL: look properly. */
static inline haft_io_task_t *dequeue_plainly(hafti_io_worker_t *worker) {
    hafti_io_link_t *first = worker->ready.next;
    if (HAFTI_IO_UNLIKELY(!is_plain_turn(worker) || first == &worker->ready))
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
                task = dequeue_any(worker);
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
        haft_io_task_t *task = is_due ? NULL : dequeue_shared(worker);
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

/* ---- Yielding ---- */

/* Whether the loop would resume the first of the ready tasks next, if there is one, or else the
   task that yields, and would do nothing before. */
static inline bool needs_no_loop(const hafti_io_worker_t *worker) {
    return is_plain_turn(worker) && HAFTI_IO_LIKELY(!worker->offered) &&
           HAFT_IS_FOR_LOOP(&worker->turn, haft_io_yield) &&
           HAFTI_IO_LIKELY(!worker->running->task->moves);
}

/* The first of the ready tasks, if it has yielded, too, and goes on. */
static inline hafti_io_runner_t *next_by_yield(const hafti_io_worker_t *worker) {
    const haft_io_task_t *next = HAFTI_IO_OWNER(worker->ready.next, haft_io_task_t, queued);
    return HAFTI_IO_LIKELY(has_yielded(next) && !hafti_io_is_withdrawn(next->runner) &&
                           !next->moves)
               ? next->runner
               : NULL;
}

/* Does what the loop does between two tasks. */
static inline __attribute__((always_inline)) void
take_turns(hafti_io_worker_t *worker, hafti_io_runner_t *next, const bool owns) {
    hafti_io_runner_t *runner = worker->running;
    haft_io_task_t *task = runner->task, *next_task = next->task;
    note_yield(worker, runner);
    hafti_io_enqueue(worker, task);
    hafti_io_set_state(task, HAFTI_IO_READY);
    hafti_io_unlink(&next_task->queued);
    HAFTI_IO_CHECK(next, worker, next_task);
    HAFTI_IO_COUNT(worker->resumed);
    if (owns)
        hafti_io_stand_on(worker, next->owns ? own_thread_of(next) : worker->home);
    begin_turn(worker, next, worker->shared, owns);
}

/* There is no other task that could run. */
static inline int goes_on(hafti_io_worker_t *worker) {
    HAFTI_IO_COUNT(worker->resumed);
    worker->operations = worker->turn_begins;
    return reply_to_yield(worker->running);
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

void hafti_io_free_runners(hafti_io_worker_t *worker) {
    while (worker->idle != NULL) {
        hafti_io_runner_t *runner = worker->idle;
        worker->idle = runner->next;
        runner_ends(runner);
    }
}
