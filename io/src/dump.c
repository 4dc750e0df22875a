/* SPDX-License-Identifier: MIT */
/*
 * The inside of a run: its scopes and tasks as text, and counters.
 *
 * The tree is walked from the root down, with the locks of the scopes on the way, which keep their
 * lists and the tasks in these. Before that, the table of descriptors is read for which task waits
 * on which descriptor. The text is collected, and written when no lock is held.
 *
 * A stack is walked while its task is PARKED. In a run of several threads another one may be about
 * to resume it:
 *
 *   the thread that looks              | the thread that resumes (run in scheduler.c)
 *   takes look_lock, sets looked_at    | sets the task's state to RUNNING
 *   membarrier: on every thread, what  |
 *     was before it is done, and seen  |
 *   walks the stack if the state is    | if looked_at is set, waits for look_lock
 *     PARKED; then gives both back     | goes on
 */
#include "inside.h"

#include <execinfo.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *hafti_io_state_name(const haft_io_task_t *task) {
    switch (hafti_io_state(task)) {
    case HAFTI_IO_RUNNING:
        return "runs";
    case HAFTI_IO_READY:
    case HAFTI_IO_OFFERED:
    case HAFTI_IO_NEW:
        return "is ready";
    default:
        return "is about to wait";
    }
}

/* ---- Stacks ---- */

/* Lets the caller walk stacks. False: none may be walked. */
static bool begin_look(hafti_io_crew_t *crew) {
    if (!crew->root.shared)
        return true; /* All tasks are this thread's. */
    hafti_io_guard(&crew->look_lock);
    __atomic_store_n(&crew->looked_at, true, __ATOMIC_SEQ_CST);
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static void end_look(hafti_io_crew_t *crew) {
    if (!crew->root.shared)
        return;
    __atomic_store_n(&crew->looked_at, false, __ATOMIC_RELEASE); /* what was read, was before */
    hafti_io_unguard(&crew->look_lock);
}

static void add_frames(hafti_io_text_t *text, int depth, void *const *addresses, int count) {
    char **names = backtrace_symbols(addresses, count);
    text->failed |= names == NULL;
    for (int i = 0; i < count && names != NULL; i++)
        hafti_io_add(text, "%*s%s\n", depth * 2, "", names[i]);
    free(names);
}

static void add_backtrace(hafti_io_text_t *text, int depth, const haft_io_task_t *task) {
    enum { MOST = 64 };
    void *addresses[MOST];
    int count = haft_io_task_backtrace(task, addresses, MOST);
    count = haft_programs_frames(addresses, count, (const void *)(uintptr_t)task->function, true);
    add_frames(text, depth, addresses, count);
}

int haft_io_task_backtrace(const haft_io_task_t *task, void **addresses, int size) {
    if (task == hafti_io_this_task())
        return backtrace(addresses, size);
    return task->runner->fiber != NULL ? haft_fiber_backtrace(task->runner->fiber, addresses, size)
                                       : 0;
}

/* ---- All tasks ---- */

static size_t visit_list(const hafti_io_link_t *tasks,
                         void (*visit)(void *state, const haft_io_task_t *task), void *state) {
    size_t count = 0;
    for (const hafti_io_link_t *link = tasks->next; link != tasks; link = link->next) {
        visit(state, HAFTI_IO_OWNER(link, hafti_io_runner_t, link)->task);
        count++;
    }
    return count;
}

size_t hafti_io_visit_tasks(haft_io_scope_t *root,
                            void (*visit)(void *state, const haft_io_task_t *task), void *state) {
    size_t living = 0, visited = 0;
    unsigned depth = 0;
    hafti_io_lock_scope(root);
    for (haft_io_scope_t *scope = root; scope != NULL;
         scope = hafti_io_next_scope(scope, root, true, &depth)) {
        living += hafti_io_scope_live(scope);
        visited += visit_list(&scope->tasks, visit, state);
        hafti_io_guard(&scope->lock_here);
        visited += visit_list(&scope->tasks_here, visit, state);
        hafti_io_unguard(&scope->lock_here);
    }
    hafti_io_unlock_scope(root);
    return living > visited ? living - visited : 0;
}

/* ---- Which task waits on which descriptor ---- */

/* A wait is identified by the time when it began: the task may have had others since. */
typedef struct wait {
    const haft_io_task_t *task;
    const char *waits_for;
    int64_t since;
    int descriptor;
} wait_t;

typedef struct view {
    hafti_io_text_t text;
    int64_t now;
    bool backtraces;              /* stacks may be looked at */
    const haft_io_task_t **tasks; /* all that have waited, by their addresses; if so */
    size_t tasks_count, tasks_room;
    wait_t *waits; /* by task, and then by descriptor */
    size_t waits_count, waits_room;
} view_t;

static wait_t wait_of(const haft_io_task_t *task, int descriptor) {
    return (wait_t){task, __atomic_load_n(&task->runner->waits_for, __ATOMIC_RELAXED),
                    __atomic_load_n(&task->runner->waits_since, __ATOMIC_RELAXED), descriptor};
}

static void note_wait(void *state, int descriptor, const haft_io_task_t *task) {
    view_t *view = state;
    if (view->waits_count == view->waits_room) {
        enum { FEW = 64 };
        size_t room = view->waits_room * 2 + FEW;
        wait_t *waits = realloc(view->waits, room * sizeof *waits);
        view->text.failed |= waits == NULL;
        if (waits == NULL)
            return;
        view->waits = waits;
        view->waits_room = room;
    }
    view->waits[view->waits_count++] = wait_of(task, descriptor);
}

static int compare_waits(const void *left, const void *right) {
    const wait_t *a = left, *b = right;
    if (a->task != b->task)
        return (uintptr_t)a->task < (uintptr_t)b->task ? -1 : 1;
    return a->descriptor - b->descriptor;
}

static size_t first_wait_of(const view_t *view, const haft_io_task_t *task) {
    size_t from = 0, to = view->waits_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if ((uintptr_t)view->waits[middle].task < (uintptr_t)task)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static void add_descriptors(view_t *view, const wait_t *wait) {
    enum { MOST = 8 };
    size_t first = first_wait_of(view, wait->task), count = 0;
    while (first + count < view->waits_count && view->waits[first + count].task == wait->task &&
           view->waits[first + count].waits_for == wait->waits_for &&
           view->waits[first + count].since == wait->since)
        count++;
    for (size_t i = 0; i < count && i < MOST; i++)
        hafti_io_add(&view->text, "%s%d",
                     i != 0      ? ", "
                     : count > 1 ? " on descriptors "
                                 : " on descriptor ",
                     view->waits[first + i].descriptor);
    if (count > MOST)
        hafti_io_add(&view->text, " and %zu more", count - MOST);
}

/* ---- The holders of mutexes ---- */

static void note_task(void *state, const haft_io_task_t *task) {
    view_t *view = state;
    if (view->tasks_count == view->tasks_room) {
        enum { FEW = 64 };
        size_t room = view->tasks_room * 2 + FEW;
        const haft_io_task_t **grown = realloc(view->tasks, room * sizeof *grown);
        if (grown == NULL)
            return; /* then some have no name */
        view->tasks = grown;
        view->tasks_room = room;
    }
    view->tasks[view->tasks_count++] = task;
}

static int compare_tasks(const void *left, const void *right) {
    const haft_io_task_t *a = *(const haft_io_task_t *const *)left,
                         *b = *(const haft_io_task_t *const *)right;
    return (uintptr_t)a < (uintptr_t)b ? -1 : a != b;
}

/* Records of the run's tasks stay in memory, also when these end meanwhile. */
static void note_all_tasks(view_t *view, haft_io_scope_t *root) {
    hafti_io_visit_tasks(root, note_task, view);
    if (view->tasks_count != 0)
        qsort(view->tasks, view->tasks_count, sizeof *view->tasks, compare_tasks);
}

/* The task may be one of another run, or have ended without an unlock. */
static void add_holder(view_t *view, const haft_io_mutex_t *mutex) {
    const haft_io_task_t *holder = __atomic_load_n(&mutex->holder, __ATOMIC_RELAXED);
    const haft_io_task_t *const *found =
        holder != NULL && view->tasks_count != 0
            ? bsearch(&holder, view->tasks, view->tasks_count, sizeof holder, compare_tasks)
            : NULL;
    const char *name = found != NULL ? __atomic_load_n(&holder->name, __ATOMIC_RELAXED) : NULL;
    hafti_io_add(&view->text, " at %p", (const void *)mutex);
    if (!mutex->held)
        hafti_io_add(&view->text, ", which is free");
    else if (found != NULL)
        hafti_io_add(&view->text, ", held by '%s'", name != NULL ? name : "");
    else
        hafti_io_add(&view->text, ", held by %s",
                     holder != NULL ? "a task that has not waited yet, or is of another run"
                                    : "a thread");
}

/* The cell is in the frame of the task, which stays as it is while it may be looked at. */
static void add_object(view_t *view, const haft_io_task_t *task, const wait_t *wait) {
    const hafti_io_cell_t *cell = __atomic_load_n(&task->runner->cell, __ATOMIC_RELAXED);
    if (view->backtraces && wait->waits_for == hafti_io_a_mutex && cell != NULL &&
        cell != HAFTI_IO_CELL_TAKEN)
        add_holder(view, ((const hafti_io_mutex_wait_t *)cell)->mutex);
}

/* ---- The tree ---- */

static void add_task(view_t *view, int depth, const haft_io_task_t *task) {
    hafti_io_text_t *text = &view->text;
    const char *name = __atomic_load_n(&task->name, __ATOMIC_RELAXED);
    wait_t wait = wait_of(task, -1);
    hafti_io_add(text, "%*stask '%s' ", depth * 2, "", name != NULL ? name : "");
    if (wait.waits_for == NULL || hafti_io_state(task) != HAFTI_IO_PARKED) {
        hafti_io_add(text, "%s\n", hafti_io_state_name(task));
        return;
    }
    hafti_io_add(text, "waits for: %s", wait.waits_for);
    add_descriptors(view, &wait);
    add_object(view, task, &wait);
    int64_t since = view->now > wait.since ? view->now - wait.since : 0;
    hafti_io_add(text, ", %lld ms\n", (long long)(since / HAFT_IO_MILLISECOND));
    if (view->backtraces && task->runner->fiber != NULL)
        add_backtrace(text, depth + 2, task);
}

/* Adds a line for each task; returns how many they are. */
static ptrdiff_t add_tasks(view_t *view, int depth, const hafti_io_link_t *tasks) {
    ptrdiff_t count = 0;
    for (const hafti_io_link_t *link = tasks->next; link != tasks; link = link->next) {
        add_task(view, depth, HAFTI_IO_OWNER(link, hafti_io_runner_t, link)->task);
        count++;
    }
    return count;
}

/* The number of the scope's tasks that have not waited yet, minus the number of tasks in scopes
   below that have. Called under its lock. */
static ptrdiff_t add_scope(view_t *view, int depth, haft_io_scope_t *scope) {
    ptrdiff_t unlisted = (ptrdiff_t)hafti_io_scope_live(scope);
    hafti_io_add(&view->text, "%*sscope '%s'%s%s\n", depth * 2, "", hafti_io_scope_name(scope),
                 scope->cancelled ? ", cancelled" : "", scope->shielded ? ", shielded" : "");
    unlisted -= add_tasks(view, depth + 1, &scope->tasks);
    hafti_io_guard(&scope->lock_here);
    unlisted -= add_tasks(view, depth + 1, &scope->tasks_here);
    hafti_io_unguard(&scope->lock_here);
    return unlisted;
}

/* Adds all scopes; returns the number of all tasks that have not waited yet. */
static ptrdiff_t add_scopes(view_t *view, haft_io_scope_t *root) {
    enum { DEEPEST = 64 }; /* that is indented */
    ptrdiff_t unlisted = 0;
    unsigned depth = 0;
    hafti_io_lock_scope(root);
    for (haft_io_scope_t *scope = root; scope != NULL;
         scope = hafti_io_next_scope(scope, root, true, &depth))
        unlisted += add_scope(view, depth < DEEPEST ? (int)depth : DEEPEST, scope);
    hafti_io_unlock_scope(root);
    return unlisted;
}

/* Adds the task that the worker runs now, of an observed run: one that has not waited yet is in no
   list. */
static void add_running(view_t *view, hafti_io_worker_t *worker) {
    static pthread_mutex_t one_asks = PTHREAD_MUTEX_INITIALIZER;
    hafti_io_glimpse_t glimpse = {.task = NULL};
    if (__atomic_load_n(&worker->running, __ATOMIC_RELAXED) == NULL)
        return;
    pthread_mutex_lock(&one_asks);
    bool is_seen = hafti_io_watchdog_glimpse(worker, &glimpse);
    pthread_mutex_unlock(&one_asks);
    if (!is_seen || glimpse.task == NULL)
        return;
    hafti_io_add(&view->text, "task '%s' has thread %u\n", glimpse.name, worker->index);
    add_frames(&view->text, 2, glimpse.addresses, view->backtraces ? glimpse.count : 0);
}

static int dump(hafti_io_crew_t *crew, int64_t now, bool backtraces, bool from_outside,
                int descriptor) {
    view_t view = {.now = now, .backtraces = backtraces};
    unsigned threads = __atomic_load_n(&crew->count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < threads && from_outside && crew->observed; i++)
        add_running(&view, crew->workers[i]);
    hafti_io_visit_waiters(crew->descriptors, note_wait, &view);
    if (view.waits_count != 0)
        qsort(view.waits, view.waits_count, sizeof *view.waits, compare_waits);
    if (backtraces)
        view.backtraces = begin_look(crew);
    if (view.backtraces)
        note_all_tasks(&view, &crew->root);
    ptrdiff_t unlisted = add_scopes(&view, &crew->root);
    if (backtraces)
        end_look(crew);
    if (unlisted > 0)
        hafti_io_add(&view.text, "and %td tasks that have not waited yet\n", unlisted);
    int code = hafti_io_text_write(&view.text, descriptor);
    free(view.waits);
    free(view.tasks);
    return code;
}

int hafti_io_dump_crew(hafti_io_crew_t *crew, bool backtraces, int descriptor) {
    return dump(crew, hafti_io_worker_now(crew->workers[0]), backtraces, false, descriptor);
}

int hafti_io_refuse_outside(const char *function) {
    return haft_io_refuse(-ESRCH, function,
                          "this is outside of a task, which has no run to look into: call it under "
                          "haft_io_run");
}

int haft_io_dump_with(const haft_io_dump_options_t *options, int descriptor) {
    const haft_io_task_t *task = hafti_io_this_task();
    bool backtraces = options != NULL && options->backtraces;
    if (task == NULL)
        return hafti_io_refuse_outside("haft_io_dump");
    return hafti_io_dump_crew(task->worker->crew, backtraces, descriptor);
}

/* The thread of a task that computes has not looked at the clock. */
int haft_io_dump_run(haft_io_scope_t *run, const haft_io_dump_options_t *options, int descriptor) {
    hafti_io_crew_t *crew = run->worker->crew;
    bool backtraces = options != NULL && options->backtraces;
    return crew->root.shared ? dump(crew, hafti_io_clock(), backtraces, true, descriptor)
                             : -ENOTSUP;
}

int haft_io_dump(int descriptor) {
    return haft_io_dump_with(NULL, descriptor);
}

/* ---- Counters ---- */

size_t haft_io_living(void) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        return 0;
    haft_io_scope_t *root = &task->worker->crew->root;
    size_t living = 0;
    unsigned depth = 0;
    hafti_io_lock_scope(root);
    for (haft_io_scope_t *scope = root; scope != NULL;
         scope = hafti_io_next_scope(scope, root, true, &depth))
        living += hafti_io_scope_live(scope);
    hafti_io_unlock_scope(root);
    return living;
}

static uint64_t read_counter(const uint64_t *counter) {
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

int haft_io_count(haft_io_counters_t *counters) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        return hafti_io_refuse_outside(__func__);
    const hafti_io_crew_t *crew = task->worker->crew;
    *counters = (haft_io_counters_t){.tasks = 0};
    unsigned count = __atomic_load_n(&crew->count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < count; i++) {
        const haft_io_counters_t *one = &crew->workers[i]->counters;
        counters->tasks += read_counter(&one->tasks);
        counters->steals += read_counter(&one->steals);
        counters->operations += read_counter(&one->operations);
        counters->polls += read_counter(&one->polls);
        counters->wakes += read_counter(&one->wakes);
        counters->polling += read_counter(&one->polling);
    }
    return 0;
}
