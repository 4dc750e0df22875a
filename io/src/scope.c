/* SPDX-License-Identifier: MIT */
/*
 * Scopes: which tasks are waited for, and how a cancel spreads.
 *
 * The scopes of a run are a tree. A task is spawned in one, its home. Once it waits it is in the
 * list of the innermost scope that it has opened since, or of its home. A cancel goes down from a
 * scope to the scopes below and wins the cells of the tasks in them; from then on what waits there
 * is refused. Shielded scopes stop it.
 *
 * The body of a scope runs on a fiber of its own inside its task's: so that it can be unwound up to
 * the scope, also in C, where nothing else catches.
 */
#include "tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Reporting a cancel ---- */

/* Under the lock of the scope, or before anybody knows it. */
static void take_on_cancel(haft_io_scope_t *scope, haft_io_on_cancel_t **told) {
    if (HAFTI_IO_LIKELY(scope->on_cancel == NULL))
        return;
    scope->on_cancel->next = *told;
    *told = scope->on_cancel;
    scope->on_cancel = NULL;
}

/* Called without any lock: it may do anything, and may end itself. */
static void tell_cancel(haft_io_on_cancel_t *told) {
    while (HAFTI_IO_UNLIKELY(told != NULL)) {
        haft_io_on_cancel_t *next = told->next;
        told->done(told, true);
        told = next;
    }
}

/* A cancel has reached a waiter in the scope, or an `on_cancel`. If a deadline caused it, the scope
   with that deadline ends with -ETIMEDOUT, because something was interrupted. */
static void cut_short(haft_io_scope_t *scope) {
    if (!__atomic_load_n(&scope->cancelled, __ATOMIC_ACQUIRE))
        return;
    haft_io_scope_t *by = scope->cancelled_by;
    hafti_io_lock_scope(by);
    if (by->late && by->code == 0)
        by->code = -ETIMEDOUT;
    hafti_io_unlock_scope(by);
}

static void tell_end(haft_io_on_cancel_t **on_cancel) {
    if (HAFTI_IO_UNLIKELY(*on_cancel != NULL))
        (*on_cancel)->done(*on_cancel, false);
    *on_cancel = NULL;
}

/* ---- Starting and finishing ---- */

static void cancel_locked(haft_io_scope_t *scope, int code);

static void time_out(hafti_io_timer_t *timer) {
    haft_io_scope_t *scope = HAFTI_IO_OWNER(timer, haft_io_scope_t, timer);
    hafti_io_lock_scope(scope);
    scope->late = true;
    cancel_locked(scope, 0);
}

void hafti_io_scope_start(haft_io_scope_t *scope, hafti_io_worker_t *worker, haft_io_scope_t *outer,
                          const haft_io_scope_options_t *options, bool opener_moves) {
    *scope = (haft_io_scope_t){
        .outer = outer,
        .shared = worker->shared,
        .split = worker->shared && !opener_moves,
        .worker = worker,
        .name = options->name,
        .timer.fire = time_out,
        .deadline = options->deadline != 0 ? options->deadline : HAFT_IO_FOREVER,
        .failures = options->failures,
        .on_cancel = options->on_cancel,
        .on_failure = options->on_failure,
        .scope_of_spawns = options->scope_of_spawns,
        .shielded = options->shielded,
        .moves = worker->shared && (options->moves || (outer != NULL && outer->moves))};
    hafti_io_ring(&scope->inner);
    hafti_io_ring(&scope->tasks);
    hafti_io_ring(&scope->ended);
    hafti_io_ring(&scope->tasks_here);
    hafti_io_ring(&scope->ended_here);
    if (scope->split)
        scope->live = HAFTI_IO_UNMERGED;
    if (scope->failures != NULL)
        scope->failures->count = 0;
    if (outer == NULL)
        return;
    haft_io_on_cancel_t *told = NULL;
    hafti_io_lock_scope(outer);
    hafti_io_append(&outer->inner, &scope->sibling);
    scope->cancelled = outer->cancelled && !scope->shielded;
    scope->cancelled_by = outer->cancelled_by;
    if (HAFTI_IO_UNLIKELY(scope->cancelled))
        take_on_cancel(scope, &told);
    hafti_io_unlock_scope(outer);
    if (HAFTI_IO_UNLIKELY(told != NULL))
        cut_short(scope);
    tell_cancel(told);
}

static HAFTI_IO_COLD void report_open_scope(const haft_io_scope_t *scope) {
    const haft_io_scope_t *inner = HAFTI_IO_OWNER(scope->inner.next, haft_io_scope_t, sibling);
    hafti_io_misuse("The scope '%s' ends before the scope '%s', which was opened in it by "
                    "haft_io_scope_open: close that first, with haft_io_scope_close_until.",
                    hafti_io_scope_name(scope), hafti_io_scope_name(inner));
}

bool hafti_io_scope_finish(haft_io_scope_t *scope) {
    hafti_io_cell_t cell = {HAFTI_IO_WAITING, scope->owner};
    hafti_io_scope_merge(scope);
    hafti_io_lock_scope(scope);
    bool waits = __atomic_load_n(&scope->live, __ATOMIC_ACQUIRE) != 0;
    bool can_wait = !hafti_io_is_in_child(scope->owner);
    if (waits && can_wait)
        scope->closer = &cell;
    hafti_io_unlock_scope(scope);
    if (waits && can_wait) {
        bool timed = hafti_io_linked(&scope->timer.link);
        scope->owner->runner->stays += timed; /* with the timer, which may still come */
        hafti_io_cell_wait(&cell, HAFTI_IO_TO_THE_END, HAFT_IO_FOREVER, "the tasks of its scope");
        scope->owner->runner->stays -= timed;
    }
    hafti_io_worker_t *worker = scope->owner != NULL ? scope->owner->worker : scope->worker;
    hafti_io_scope_take_returned(scope);
    while (!hafti_io_ring_empty(&scope->ended_here))
        hafti_io_task_forget(HAFTI_IO_OWNER(scope->ended_here.next, haft_io_task_t, queued),
                             worker);
    while (!hafti_io_ring_empty(&scope->ended))
        hafti_io_task_forget(HAFTI_IO_OWNER(scope->ended.next, haft_io_task_t, queued), worker);
    hafti_io_timer_remove(&worker->timers, &scope->timer);
    if (HAFTI_IO_UNLIKELY(!hafti_io_ring_empty(&scope->inner)))
        report_open_scope(scope);
    if (scope->outer == NULL)
        return waits;
    hafti_io_lock_scope(scope->outer);
    hafti_io_unlink(&scope->sibling);
    hafti_io_unlock_scope(scope->outer);
    return waits;
}

/* ---- Cancelling ---- */

/* Under its lock. */
static void cancel_tasks(haft_io_scope_t *scope, haft_io_scope_t *by) {
    scope->cancelled_by = by;
    if (scope->shared)
        HAFTI_IO_SHOW(&scope->cancelled, true); /* before a look at the tasks' cells */
    else
        __atomic_store_n(&scope->cancelled, true, __ATOMIC_RELAXED);
    for (hafti_io_link_t *link = scope->tasks.next; link != &scope->tasks; link = link->next)
        hafti_io_cell_cancel(HAFTI_IO_OWNER(link, hafti_io_runner_t, link), scope->shared);
    if (!scope->split)
        return;
    hafti_io_guard(&scope->lock_here);
    for (hafti_io_link_t *link = scope->tasks_here.next; link != &scope->tasks_here;
         link = link->next)
        hafti_io_cell_cancel(HAFTI_IO_OWNER(link, hafti_io_runner_t, link), true);
    hafti_io_unguard(&scope->lock_here);
}

haft_io_scope_t *hafti_io_next_scope(haft_io_scope_t *at, const haft_io_scope_t *top, bool down,
                                     unsigned *depth) {
    hafti_io_link_t *next = down ? at->inner.next : &at->inner;
    *depth += 1;
    while (next == &at->inner) {
        *depth -= 1;
        if (at == top)
            return NULL;
        haft_io_scope_t *outer = at->outer;
        next = at->sibling.next;
        hafti_io_unlock_scope(at);
        at = outer;
    }
    at = HAFTI_IO_OWNER(next, haft_io_scope_t, sibling);
    hafti_io_lock_scope(at);
    return at;
}

/* Called under its lock. Objects that are to be told are added to `told`. */
static void spread(haft_io_scope_t *top, haft_io_on_cancel_t **told) {
    bool down;
    unsigned depth = 0;
    for (haft_io_scope_t *scope = top; scope != NULL;
         scope = hafti_io_next_scope(scope, top, down, &depth)) {
        down = !scope->cancelled && (scope == top || !scope->shielded);
        if (down) {
            cancel_tasks(scope, top);
            take_on_cancel(scope, told);
        }
    }
}

/* Called under the lock, returns without it. `code` 0: the interrupted wait decides. */
static void cancel_locked(haft_io_scope_t *scope, int code) {
    haft_io_on_cancel_t *told = NULL;
    if (scope->code == 0)
        scope->code = code;
    spread(scope, &told);
    if (scope->late && scope->code == 0 && told != NULL)
        scope->code = -ETIMEDOUT;
    hafti_io_unlock_scope(scope);
    tell_cancel(told);
}

void hafti_io_scope_cancel(haft_io_scope_t *scope, int code) {
    hafti_io_lock_scope(scope);
    cancel_locked(scope, code);
}

void haft_io_scope_cancel(haft_io_scope_t *scope) {
    if (hafti_io_is_traced())
        hafti_io_trace(HAFTI_IO_EVENT_CANCEL, hafti_io_this_task(), scope->name, true, 0, 0);
    hafti_io_scope_cancel(scope, -ECANCELED);
}

/* Prints the message of the failure that ends a run, because the run returns a code alone. (An
   exception of C++ reaches the caller of the run; a simulation fails in many ways, and is repeated
   by its seed.) */
static void tell_of_run(const haft_io_scope_t *root, int code, const char *message,
                        const char *name) {
    if (code != HAFT_IO_BY_EXCEPTION &&
        (root->worker->simulated == NULL || root->worker->tape != NULL))
        dprintf(STDERR_FILENO, "haft-io: the run fails in the task '%s': %s (%s)\n", name,
                message != NULL ? message : "", haft_io_error_text(code));
}

/* Its message may be gone when the failures are read. */
static void keep_failure(haft_io_failures_t *failures, const haft_io_failure_t *failure) {
    size_t number = failures->count++;
    if (number >= HAFT_IO_FAILURES_KEPT)
        return;
    failures->failures[number] = *failure;
    if (failure->message == NULL)
        return;
    char *text = failures->texts[number];
    size_t size = strnlen(failure->message, HAFT_IO_FAILURE_TEXT - 1);
    memcpy(text, failure->message, size);
    text[size] = '\0';
    failures->failures[number].message = text;
}

void hafti_io_scope_fail(haft_io_scope_t *scope, int code, const char *message,
                         const haft_io_task_t *task) {
    const haft_io_failure_t failure = {code, message, haft_io_task_name(task)};
    bool is_body = task == scope->owner && !scope->is_bodyless;
    hafti_io_lock_scope(scope);
    if (scope->outer == NULL && scope->code == 0)
        tell_of_run(scope, code, message, failure.task);
    if (scope->failures != NULL)
        keep_failure(scope->failures, &failure);
    if (HAFTI_IO_LIKELY(scope->on_failure == NULL || is_body)) {
        cancel_locked(scope, code);
        return;
    }
    hafti_io_unlock_scope(scope);
    scope->on_failure->failed(scope->on_failure, &failure);
}

static void print_failure(haft_io_on_failure_t *unused, const haft_io_failure_t *failure) {
    (void)unused;
    dprintf(STDERR_FILENO, "haft-io: the task '%s' has failed: %s (%s)\n", failure->task,
            failure->message != NULL ? failure->message : "", haft_io_error_text(failure->code));
}
haft_io_on_failure_t haft_io_print_failures = {print_failure};

/* ---- Going on after a cancel ---- */

/* A task that goes on after its cancel may be in a loop that never ends: it must neither keep the
   others from running nor its processor busy. */
static HAFTI_IO_COLD void refuse(hafti_io_runner_t *runner) {
    enum { WITHOUT_PAUSE = 64, DOUBLINGS = 4 };
    if (runner->refused < UINT8_MAX)
        runner->refused++;
    int over = runner->refused - WITHOUT_PAUSE;
    if (runner->refused == 1 || runner->worker->forked)
        return;
    if (over <= 0)
        hafti_io_goes_on_after_others(HAFTI_IO_TO_THE_END);
    else
        hafti_io_pause_after_cancel(HAFT_IO_MILLISECOND << (over < DOUBLINGS ? over : DOUBLINGS));
}

/* ---- Opening ---- */

/* The task is in this scope from now on. */
static void enter(haft_io_scope_t *scope, haft_io_task_t *task) {
    hafti_io_runner_t *runner = task->runner;
    scope->owner = task;
    scope->owner_unwinding = runner->unwinding;
    scope->owner_returns_cancels = runner->returns_cancels;
    scope->owner_limits = hafti_io_put_deadlines_aside(runner);
    runner->unwinding = false;
    if (runner->listed)
        hafti_io_scope_unlist(runner->scope, runner);
    runner->scope = scope;
}

/* A task that waits for its scope's tasks is suspended here, and woken as the scope's owner. */
static void check_leaver(const haft_io_scope_t *scope) {
    const haft_io_task_t *owner = scope->owner, *leaver = hafti_io_this_task();
    if (HAFTI_IO_UNLIKELY(leaver == NULL))
        hafti_io_misuse(
            "The scope '%s' of the task '%s' is left outside of a task: a fiber with an "
            "open scope stays with the task that opened it.",
            hafti_io_scope_name(scope), haft_io_task_name(owner));
    if (HAFTI_IO_UNLIKELY(leaver != owner))
        hafti_io_misuse("The scope '%s' of the task '%s' is left by the task '%s': a fiber with an "
                        "open scope stays with the task that opened it.",
                        hafti_io_scope_name(scope), haft_io_task_name(owner),
                        haft_io_task_name(leaver));
    if (HAFTI_IO_UNLIKELY(owner->runner->scope != scope))
        hafti_io_misuse("The task '%s' has left the scope '%s' before one that it opened inside.",
                        haft_io_task_name(owner), hafti_io_scope_name(scope));
    if (HAFTI_IO_UNLIKELY(owner->runner->limits != NULL))
        hafti_io_misuse("The task '%s' has left the scope '%s' with a deadline that it set first "
                        "inside: declare that there, with HAFT_IO_SCOPED_DEADLINE.",
                        haft_io_task_name(owner), hafti_io_scope_name(scope));
}

/* Leaves the scope. True: it has waited for tasks. In a child of fork they do not run: the scope
   ends, and the wait is reported. */
static bool leave(haft_io_scope_t *scope) {
    check_leaver(scope);
    const haft_io_task_t *owner = scope->owner;
    hafti_io_runner_t *runner = owner->runner;
    runner->unwinding = scope->owner_unwinding;
    runner->returns_cancels = scope->owner_returns_cancels;
    if (runner->listed)
        hafti_io_scope_unlist(scope, runner);
    runner->scope = scope->outer;
    hafti_io_take_deadlines_up(runner, scope->owner_limits);
    hafti_io_count_refusals_anew(runner);
    bool waited = hafti_io_scope_finish(scope);
    scope->owner = NULL;
    tell_end(&scope->on_cancel);
    if (waited)
        hafti_io_check_may_wait(owner);
    return waited;
}

/* Ends a scope that an effect or exception of others unwinds. */
static void abandon(haft_io_scope_t *scope) {
    if (scope->owner == NULL)
        return;
    check_leaver(scope);
    hafti_io_scope_cancel(scope, -ECANCELED);
    leave(scope);
}

/* Notes a failure of the task's innermost scope, if there is a task. */
static void note(haft_io_task_t *task, int code, const char *message) {
    if (task != NULL)
        hafti_io_scope_fail(task->runner->scope, code, message, task);
}

/* Runs the body until it returns or is unwound: true, with how it was. Its stack is like that of
   the task. */
static bool run_body(haft_io_task_t *task, void *(*body)(void *), void *argument, void **result,
                     int *code) {
    HAFT_SCOPED haft_fiber_t *fiber = task != NULL ? hafti_io_fiber_of(task, body, argument)
                                                   : haft_fiber_new_with(NULL, body, argument);
    if (fiber == NULL) {
        *result = NULL;
        *code = -ENOMEM;
        note(task, *code, "no stack for the body of a scope");
        return true;
    }
    if (task != NULL)
        task->runner->scope->body = fiber;
    bool was_unwound = false;
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(hafti_io_unwind));
    HAFT_MATCH(request) {
        HAFT_CASE(hafti_io_unwind, payload) {
            *result = NULL;
            *code = payload->code;
            was_unwound = true;
        }
        HAFT_RETURN(value) {
            *result = value;
        }
    }
    return was_unwound;
}

int haft_io_scope_with(const haft_io_scope_options_t *options, void *(*body)(void *),
                       void *argument, void **result) {
    static const haft_io_scope_options_t defaults;
    haft_io_task_t *task = hafti_io_this_task();
    int code = 0;
    if (options == NULL)
        options = &defaults;
    if (body == NULL)
        hafti_io_misuse("A scope needs a body to call (NULL).");
    void *unused;
    if (result == NULL)
        result = &unused;
    if (task == NULL) {
        __attribute__((cleanup(tell_end), unused)) haft_io_on_cancel_t *on_cancel =
            options->on_cancel;
        return run_body(NULL, body, argument, result, &code) ? code : 0;
    }

    hafti_io_has_its_turn(HAFTI_IO_TO_THE_END);
    __attribute__((cleanup(abandon))) haft_io_scope_t scope;
    hafti_io_scope_start(&scope, task->worker, task->runner->scope, options, task->moves);
    enter(&scope, task);
    hafti_io_scope_set_timer(&scope);
    bool was_unwound = run_body(task, body, argument, result, &code);
    bool waited = leave(&scope);
    if (scope.code == -ETIMEDOUT && task->runner->late) /* a deadline around the scope has ended
                                                           it */
        refuse(task->runner);
    if (scope.code != 0)
        return scope.code;
    /* A cancel from outside also unwinds a task that waits for a scope's tasks: their work may be
       half done. */
    bool from_outside = !scope.shielded && hafti_io_is_cancelled(scope.outer);
    return was_unwound || (waited && from_outside) ? haft_io_unwind_cancelled() : 0;
}

int haft_io_scope(void *(*body)(void *), void *argument, void **result) {
    return haft_io_scope_with(NULL, body, argument, result);
}

/* ---- Without a body ---- */

bool haft_io_scope_is_in(const haft_io_scope_t *scope, const haft_io_scope_t *around) {
    while (scope != NULL && scope != around)
        scope = scope->outer;
    return scope != NULL;
}

haft_io_scope_t *haft_io_scope_open(const haft_io_scope_options_t *options,
                                    haft_io_scope_t *around) {
    static const haft_io_scope_options_t defaults;
    haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        hafti_io_misuse("A scope is opened outside of a scheduler: call haft_io_scope_open under "
                        "haft_io_run.");
    if (around == NULL)
        around = task->runner->scope;
    if (!haft_io_scope_is_in(task->runner->scope, around))
        hafti_io_misuse("The task '%s' opens a scope in the scope '%s', which it is not in.",
                        haft_io_task_name(task), hafti_io_scope_name(around));
    haft_io_scope_t *scope = aligned_alloc(_Alignof(haft_io_scope_t), sizeof *scope);
    if (scope == NULL)
        return NULL;
    hafti_io_scope_start(scope, task->worker, around, options != NULL ? options : &defaults,
                         task->moves);
    scope->owner = task;
    scope->is_bodyless = true;
    hafti_io_scope_set_timer(scope);
    return scope;
}

static void check_closer(const haft_io_scope_t *scope) {
    const haft_io_task_t *closer = hafti_io_this_task();
    if (closer != scope->owner)
        hafti_io_misuse("The scope '%s' of the task '%s' is closed by %s%s: the task that opened a "
                        "scope closes it.",
                        hafti_io_scope_name(scope), haft_io_task_name(scope->owner),
                        closer != NULL ? "the task " : "no task",
                        closer != NULL ? haft_io_task_name(closer) : "");
    if (!haft_io_scope_is_in(closer->runner->scope, scope->outer))
        hafti_io_misuse("The scope '%s' is closed after the scope '%s', in which it was opened.",
                        hafti_io_scope_name(scope), hafti_io_scope_name(scope->outer));
}

int haft_io_scope_close_until(haft_io_scope_t *scope, int64_t deadline) {
    if (scope == NULL)
        return 0;
    check_closer(scope);
    const haft_io_task_t *owner = scope->owner;
    if (deadline < scope->deadline && deadline > 0) {
        scope->deadline = deadline;
        hafti_io_scope_set_timer(scope);
    } else if (deadline <= 0) {
        hafti_io_scope_cancel(scope, -ECANCELED);
    }
    bool waited = hafti_io_scope_finish(scope);
    tell_end(&scope->on_cancel);
    int code = scope->code;
    free(scope);
    if (waited)
        hafti_io_check_may_wait(owner);
    return code;
}

int haft_io_shield(void *(*body)(void *), void *argument) {
    return haft_io_scope_with(&(haft_io_scope_options_t){.shielded = true}, body, argument, NULL);
}

haft_io_scope_t *haft_io_this_scope(void) {
    haft_io_task_t *task = hafti_io_this_task();
    return task != NULL ? task->runner->scope : NULL;
}

haft_io_scope_t *haft_io_run_scope(void) {
    haft_io_scope_t *scope = haft_io_this_scope();
    while (scope != NULL && scope->outer != NULL)
        scope = scope->outer;
    return scope;
}

/* ---- Unwinding ---- */

bool haft_io_return_cancels(bool returns) {
    haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        return false;
    bool before = task->runner->returns_cancels;
    task->runner->returns_cancels = returns;
    return before;
}

int haft_io_unwind_cancelled(void) {
    haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        return -ECANCELED;
    hafti_io_runner_t *runner = task->runner;
    bool is_late = runner->late && !hafti_io_is_cancelled(runner->scope);
    if (!is_late)
        cut_short(runner->scope);
    if (!is_late && !hafti_io_is_unwinding(runner) && !runner->returns_cancels) {
        runner->unwinding = true;
        HAFT_THROW(hafti_io_unwind, -ECANCELED);
    }
    refuse(runner);
    return is_late ? -ETIMEDOUT : -ECANCELED;
}

void haft_io_fail(int code, const char *message) {
    haft_io_task_t *task = hafti_io_this_task();
    if (code >= 0)
        hafti_io_misuse("haft_io_fail takes a negative error number; it was given %d.", code);
    if (task != NULL && hafti_io_is_unwinding(task->runner))
        hafti_io_misuse(
            "The task '%s' fails while it is unwound (%s). A cleanup notes a failure with "
            "haft_io_note_failure, and goes on.",
            haft_io_task_name(task), message);
    /* First of all, before failures that its cleanups note. */
    note(task, code, message);
    if (task != NULL)
        task->runner->unwinding = true;
    HAFT_THROW(hafti_io_unwind, code);
}

void haft_io_note_failure(int code, const char *message) {
    haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        hafti_io_misuse("haft_io_note_failure was called outside of a task (%s).", message);
    if (code >= 0)
        hafti_io_misuse("haft_io_note_failure takes a negative error number; it was given %d.",
                        code);
    note(task, code, message);
}

/* An effect that nobody handles is the failure of the task that has performed it, as
   haft_io_fail. A stack that is being unwound cannot be left once more: there it is reported. */
static haft_unhandled_t *unhandled_before;

static void fail_task(const haft_effect_t *effect) {
    char message[300];
    const haft_io_task_t *task = hafti_io_this_task();
    if (task != NULL && !hafti_io_is_unwinding(task->runner)) {
        snprintf(message, sizeof message,
                 "Nobody handles the effect '%s' (%s). Handle it around the perform, in the task "
                 "itself: a task has none of its spawner's handlers",
                 effect->name, effect->where);
        haft_io_fail(-ENOTSUP, message);
    }
    if (unhandled_before != NULL)
        unhandled_before(effect);
}

static __attribute__((constructor)) void take_unhandled(void) {
    unhandled_before = haft_set_unhandled(fail_task);
}
static __attribute__((destructor)) void leave_unhandled(void) {
    haft_unhandled_t *last = haft_set_unhandled(unhandled_before);
    if (last != fail_task) /* another library's, which calls this one's */
        haft_set_unhandled(last);
}
