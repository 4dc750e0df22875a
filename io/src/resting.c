/* SPDX-License-Identifier: MIT */
/*
 * Waiting without a stack. The function of the task has returned, and its runner with the fiber is
 * for other tasks. The state of the wait lies in the program's haft_io_rest_t: a runner without a
 * fiber, so that a cancel, a wake-up or a dump finds there what every waiting task has; the cell,
 * the timer, and the place in the descriptor's list.
 *
 *   the task is | from                   | until
 *   RUNNING     | haft_io_rest           | its function returns
 *   PARKED      | then                   | the cell is won: bytes, a cancel, a close, the deadline
 *   READY       | then, or at once where | the loop of its worker ends the rest, and begins the
 *               |   it cannot rest       |   function on a runner, as it does for a NEW task
 *
 * The function reads, and its read finds out why the rest has ended, and waits if the rest has
 * ended early. So nothing is handed over.
 *
 * The back end sends the bytes of haft_io_send_and_rest when the function has returned. Where there
 * is no room for all of them, the task goes on with a function of the library's, which waits for
 * that on a stack, and rests again. Until then the descriptor may be closed, and its number become
 * another file's: its entry in the descriptor's list shows that.
 */
#include "resting.h"
#include "valid.h"

typedef struct hafti_io_rest {
    hafti_io_runner_t runner; /* the first: it is how the rest is found */
    hafti_io_cell_t cell;
    hafti_io_waiter_t waiter;
    hafti_io_timer_t timer;
    int64_t deadline;
    /* Moved into the task when its function has returned: until then the result has their place in
       the task. */
    void *(*function)(void *);
    void *argument;
    int descriptor;
    int code;              /* of the send, or 0 */
    bool is_later;         /* the message is sent with the next poll */
    hafti_io_lent_t *lent; /* of which some is still to be sent, on a stack; or NULL */
    size_t size, sent;
    hafti_io_sending_t sending;
} rest_t;
_Static_assert(sizeof(rest_t) <= sizeof(haft_io_rest_t) &&
                   _Alignof(rest_t) <= _Alignof(haft_io_rest_t),
               "haft_io_rest_t has room for a rest");

/* Whether the rest lies in a frame, which ends before the rest begins. The header of a fiber lies
   above its frames. */
static bool lies_on_stack(const haft_io_task_t *task, const haft_io_rest_t *given) {
    const haft_fiber_t *fiber = task->runner->fiber;
    return (uintptr_t)given > (uintptr_t)__builtin_frame_address(0) &&
           (uintptr_t)given < (uintptr_t)fiber && haft_fiber_current() == fiber;
}

void hafti_io_drop_unsent(hafti_io_runner_t *runner) {
    if (runner->unsent != NULL)
        hafti_io_take_back(runner->unsent);
    runner->unsent = NULL;
}

static rest_t *begin(haft_io_rest_t *given, int descriptor, int64_t deadline,
                     void *(*function)(void *), void *argument) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        hafti_io_misuse("haft_io_rest was called outside of a task.");
    if (function == NULL)
        hafti_io_misuse("A task that rests needs a function to go on with (NULL).");
    if (lies_on_stack(task, given))
        hafti_io_misuse(
            "The task '%s' rests in memory on its own stack, which is given up: keep the "
            "haft_io_rest_t where the argument of its function points to.",
            haft_io_task_name(task));
    hafti_io_check_may_wait(task);
    hafti_io_drop_unsent(task->runner);
    rest_t *rest = (rest_t *)(void *)given;
    rest->descriptor = descriptor;
    rest->deadline = deadline;
    rest->function = function;
    rest->argument = argument;
    rest->code = 0;
    rest->is_later = false;
    rest->lent = NULL;
    task->runner->rest = rest;
    return rest;
}

void haft_io_rest(haft_io_rest_t *given, int descriptor, int64_t deadline,
                  void *(*function)(void *), void *argument) {
    begin(given, descriptor, deadline, function, argument);
}

/* ---- The message that is sent before ---- */

/* Sends on the task's stack. */
static void send_here(rest_t *rest, hafti_io_lent_t *lent) {
    HAFT_IO_SCOPED_LENT const void *const bytes = lent->bytes;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, rest->deadline);
    rest->code = haft_io_write_all(rest->descriptor, (const char *)bytes + rest->sent,
                                   rest->size - rest->sent);
}

void haft_io_send_and_rest(haft_io_rest_t *given, const void *lent, size_t size, int descriptor,
                           int64_t deadline, void *(*function)(void *), void *argument) {
    if (HAFTI_IO_UNLIKELY(size > HAFT_IO_LENT_SIZE || (lent == NULL && size != 0)))
        hafti_io_misuse("haft_io_send_and_rest was given %zu bytes %s: it takes bytes of memory "
                        "that haft_io_lend or haft_io_read_lent has returned.",
                        size, lent == NULL ? "of no memory (NULL)" : "and no memory has as many");
    rest_t *rest = begin(given, descriptor, deadline, function, argument);
    const hafti_io_worker_t *worker = hafti_io_worker();
    if (HAFTI_IO_UNLIKELY(lent == NULL))
        return;
    rest->size = size;
    rest->sent = 0;
    if (hafti_io_uses_uncounted(worker) && worker->backend->send_last != NULL && size != 0)
        worker->running->unsent = hafti_io_block_of(lent);
    else
        send_here(rest, hafti_io_block_of(lent));
}

int haft_io_rest_sent(const haft_io_rest_t *rest) {
    return ((const rest_t *)(const void *)rest)->code;
}

/* The function of a task that has come back to a stack to send the rest. A cancel is for the
   program's function. */
static void send_unwithdrawn(rest_t *rest) {
    hafti_io_lent_t *lent = rest->lent;
    rest->lent = NULL;
    haft_io_return_cancels(true);
    send_here(rest, lent);
    haft_io_return_cancels(false);
}

static void *send_and_go_on(void *argument) {
    rest_t *rest = argument;
    send_unwithdrawn(rest);
    if (rest->code != 0)
        return rest->function(rest->argument);
    hafti_io_this_task()->runner->rest = rest;
    return NULL;
}

void *hafti_io_go_on_without_rest(hafti_io_runner_t *runner) {
    rest_t *rest = runner->rest;
    rest->lent = runner->unsent;
    runner->rest = NULL;
    runner->unsent = NULL;
    if (rest->lent != NULL)
        send_unwithdrawn(rest);
    return rest->function(rest->argument);
}

static void note_sent(rest_t *rest, hafti_io_lent_t *lent, ssize_t result) {
    if (result > 0)
        rest->sent = (size_t)result;
    if (hafti_io_send_fails(result))
        rest->code = (int)result;
    if (HAFTI_IO_UNLIKELY(rest->sent != rest->size && rest->code == 0))
        rest->lent = lent;
    else
        hafti_io_take_back(lent);
}

/* Finishes a send that the back end has tried. */
static void settle(rest_t *rest, hafti_io_worker_t *worker) {
    worker->backend->settle(worker, &rest->sending);
    rest->is_later = false;
    if (HAFTI_IO_LIKELY(!rest->sending.failed))
        return;
    note_sent(rest, rest->sending.lent, rest->sending.result);
}

static void send_last(rest_t *rest, hafti_io_worker_t *worker, hafti_io_lent_t *lent) {
    HAFTI_IO_COUNT(worker->counters.operations);
    if (HAFTI_IO_UNLIKELY(!worker->plain))
        hafti_io_trace_operation(rest->runner.task, hafti_io_kind_name(HAFTI_IO_SEND),
                                 rest->descriptor, rest->size);
    rest->sending.cell = &rest->cell;
    ssize_t done =
        worker->backend->send_last(worker, rest->descriptor, &rest->sending, lent, rest->size);
    rest->is_later = done == HAFTI_IO_LATER;
    if (!rest->is_later)
        note_sent(rest, lent, done);
}

/* Gives up the send: the program's function is next. */
static HAFTI_IO_COLD void give_up_unsent(rest_t *rest, haft_io_task_t *task, int code) {
    rest->code = code;
    hafti_io_take_back(rest->lent);
    rest->lent = NULL;
    task->function = rest->function;
    task->argument = rest->argument;
}
static HAFTI_IO_COLD void notice_close(rest_t *rest, haft_io_task_t *task) {
    const hafti_io_operation_t write = {.kind = HAFTI_IO_WRITE, .descriptor = rest->descriptor};
    hafti_io_descriptor_t *entry =
        hafti_io_descriptor(task->worker->crew->descriptors, rest->descriptor, true);
    int code = entry != NULL
                   ? hafti_io_enlist(entry, &rest->waiter, &rest->cell, &write, false, false)
                   : hafti_io_without_entry(rest->descriptor);
    if (code != 0)
        give_up_unsent(rest, task, code);
}
/* Lets the task go on to send the rest, no longer in the descriptor's list. */
static HAFTI_IO_COLD void go_on_to_send(rest_t *rest, haft_io_task_t *task) {
    task->function = send_and_go_on;
    task->argument = rest;
    if (hafti_io_was_closed(&rest->waiter))
        give_up_unsent(rest, task, -EBADF);
}

/* ---- The rest ---- */

static void time_out(hafti_io_timer_t *timer) {
    hafti_io_cell_win(&HAFTI_IO_OWNER(timer, rest_t, timer)->cell, HAFTI_IO_TIMED_OUT);
}

/* Makes bytes wake the task. False: nothing would wake it. The back end is told first: where it
   asks the kernel, no other task may be waiting. No close by another thread ends between the two,
   which would be missed. */
static bool waits_for_bytes(rest_t *rest, haft_io_task_t *task) {
    hafti_io_worker_t *worker = task->worker;
    const hafti_io_operation_t read = {.kind = HAFTI_IO_READ_LENT, .descriptor = rest->descriptor};
    hafti_io_descriptor_t *entry =
        hafti_io_descriptor(worker->crew->descriptors, rest->descriptor, true);
    if (entry == NULL || worker->backend->watch == NULL ||
        (worker->shared && hafti_io_begin_use(worker, rest->descriptor) != 0))
        return false;
    bool waits = worker->backend->watch(worker, entry, rest->descriptor);
    if (waits && hafti_io_uses_uncounted(worker) &&
        hafti_io_ring_empty(&entry->waiters[HAFTI_IO_INWARD]))
        hafti_io_enlist_first(entry, &rest->waiter, &rest->cell, HAFTI_IO_INWARD);
    else
        waits =
            waits && hafti_io_enlist(entry, &rest->waiter, &rest->cell, &read, true, false) == 0;
    if (waits)
        hafti_io_count_in(task);
    if (worker->shared)
        hafti_io_end_use(worker, rest->descriptor);
    return waits;
}

/* Makes the task one that waits, until the time at most; nothing else wakes it yet. */
static void begin_to_wait(rest_t *rest, haft_io_task_t *task, int64_t deadline) {
    hafti_io_worker_t *worker = task->worker;
    const void *spawned_at = task->runner != NULL ? task->runner->spawned_at : NULL;
    rest->runner = (hafti_io_runner_t){.task = task,
                                       .worker = worker,
                                       .scope = task->home,
                                       .waits_for = hafti_io_kind_name(HAFTI_IO_READ),
                                       .waits_since = worker->clock,
                                       .stays = 1, /* with the worker, which has its timer */
                                       .spawned_at = spawned_at};
    rest->cell = (hafti_io_cell_t){HAFTI_IO_WAITING, task};
    rest->waiter = (hafti_io_waiter_t){.descriptor = NULL};
    rest->timer = (hafti_io_timer_t){.fire = time_out};
    task->runner = &rest->runner;
    hafti_io_scope_list(task->home, &rest->runner);
    if (deadline != HAFT_IO_FOREVER) {
        hafti_io_timer_add(&worker->timers, &rest->timer, deadline);
        rest->runner.timer = &rest->timer;
    }
}

void hafti_io_begin_rest(hafti_io_runner_t *runner) {
    haft_io_task_t *task = runner->task;
    hafti_io_worker_t *worker = runner->worker;
    rest_t *rest = runner->rest;
    hafti_io_check_leaving(task, "rests");
    if (HAFTI_IO_UNLIKELY(!worker->plain) && hafti_io_is_traced())
        hafti_io_trace(HAFTI_IO_EVENT_PARK, task, "a rest", false, 0, 0);
    if (runner->listed) /* the task has waited on its stack */
        hafti_io_scope_unlist(task->home, runner);
    task->function = rest->function;
    task->argument = rest->argument;
    begin_to_wait(rest, task, rest->deadline);
    if (runner->unsent != NULL) {
        send_last(rest, worker, runner->unsent);
        runner->unsent = NULL;
    }
    bool has_failed = rest->lent != NULL || rest->code != 0;
    if (!hafti_io_show_to_cancels(&rest->runner, &rest->cell))
        hafti_io_let_go_on(worker, task);
    else if (has_failed || !waits_for_bytes(rest, task))
        hafti_io_cell_win(&rest->cell, HAFTI_IO_WOKEN);
    /* The number may become another file's, to which the message must not go. */
    if (HAFTI_IO_UNLIKELY(rest->is_later && rest->waiter.descriptor == NULL))
        settle(rest, worker);
    if (HAFTI_IO_UNLIKELY(rest->lent != NULL && rest->waiter.descriptor == NULL))
        notice_close(rest, task);
    if (hafti_io_state(task) == HAFTI_IO_RUNNING) { /* not READY */
        HAFTI_IO_CHECK(waiting, worker, task);
        hafti_io_set_state(task, HAFTI_IO_PARKED);
    }
}

hafti_io_rest_t *hafti_io_end_rest(haft_io_task_t *task) {
    rest_t *rest = (rest_t *)task->runner;
    hafti_io_hide_from_cancels(&rest->runner, &rest->cell);
    hafti_io_scope_unlist(task->home, &rest->runner);
    hafti_io_timer_remove(&task->worker->timers, &rest->timer);
    hafti_io_count_out(task);
    if (rest->is_later)
        settle(rest, task->worker);
    if (rest->waiter.descriptor != NULL)
        hafti_io_delist(&rest->waiter);
    if (HAFTI_IO_UNLIKELY(rest->lent != NULL))
        go_on_to_send(rest, task);
    task->runner = NULL;
    return rest;
}

void hafti_io_rest_for_stack(hafti_io_rest_t *rest, haft_io_task_t *task) {
    static const int64_t PAUSE = 100 * HAFT_IO_MILLISECOND;
    begin_to_wait(rest, task, hafti_io_worker_now(task->worker) + PAUSE);
    rest->runner.waits_for = "memory for a stack";
    if (rest->lent != NULL)
        notice_close(rest, task);
    hafti_io_set_state(task, HAFTI_IO_PARKED);
}

void hafti_io_wake_rest(haft_io_task_t *task) {
    hafti_io_cell_win(&((rest_t *)task->runner)->cell, HAFTI_IO_WOKEN);
}
