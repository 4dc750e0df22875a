/* SPDX-License-Identifier: MIT */
/* Tasks: their making and end, joining, names, values by key. */
#include "own_threads.h"
#include "tape/tape.h"
#include "tasks.h"

#include <limits.h>
#include <stdlib.h>

static void release_value(const hafti_io_binding_t *binding) {
    hafti_io_given_t *given = binding->given;
    if (given == NULL || __atomic_sub_fetch(&given->uses, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    given->release(binding->value);
    free(given);
}

static void release_binding(hafti_io_binding_t *binding) {
    while (binding != NULL && __atomic_sub_fetch(&binding->uses, 1, __ATOMIC_ACQ_REL) == 0) {
        hafti_io_binding_t *outer = binding->outer;
        release_value(binding);
        free(binding);
        binding = outer;
    }
}

static hafti_io_binding_t *use_binding(hafti_io_binding_t *binding) {
    if (binding != NULL)
        __atomic_fetch_add(&binding->uses, 1, __ATOMIC_RELAXED);
    return binding;
}

/* ---- The end, and joining ---- */

/*
 *   task->joiner | by
 *   NOT_JOINABLE | haft_io_spawn, or a joiner that was cancelled: the record is released at the end
 *   NULL         | haft_io_async: at the end the task goes into the list of its home
 *   a cell       | haft_io_join, which waits, and releases the record
 *   ENDING       | the end of the task; it looks at the joiner's cell
 *   HAS_ENDED    | the same; from now on the record is the joiner's, or its home's
 */
static void keep_for_joiner_shared(haft_io_task_t *task, const hafti_io_worker_t *worker) {
    haft_io_scope_t *home = task->home;
    bool here = home->split && home->worker == worker;
    if (here) {
        hafti_io_scope_take_returned(home);
        hafti_io_append(&home->ended_here, &task->queued);
    } else {
        hafti_io_lock_scope(home);
        hafti_io_append(&home->ended, &task->queued);
        hafti_io_unlock_scope(home);
    }
    task->kept = here ? HAFTI_IO_KEPT_HERE : HAFTI_IO_KEPT;
}

/* Gives an ended task to its joiner or its home, or frees it. */
static void hand_over_shared(haft_io_task_t *task, hafti_io_worker_t *worker) {
    hafti_io_cell_t *joiner = __atomic_load_n(&task->joiner, __ATOMIC_RELAXED);
    if (joiner != HAFTI_IO_NOT_JOINABLE)
        joiner = __atomic_exchange_n(&task->joiner, HAFTI_IO_ENDING, __ATOMIC_ACQ_REL);
    if (joiner == HAFTI_IO_NOT_JOINABLE) {
        hafti_io_task_release(task, worker);
        return;
    }
    if (joiner == NULL) {
        keep_for_joiner_shared(task, worker);
        __atomic_store_n(&task->joiner, HAFTI_IO_HAS_ENDED, __ATOMIC_RELEASE);
        return;
    }
    haft_io_task_t *who = joiner->task;
    bool won = hafti_io_cell_claim(joiner);
    __atomic_store_n(&task->joiner, HAFTI_IO_HAS_ENDED, __ATOMIC_RELEASE);
    if (!won)
        return;
    bool is_here = who->worker == worker && !who->moves;
    hafti_io_cell_finish(joiner, HAFTI_IO_WOKEN);
    if (is_here)
        hafti_io_favour(who);
}

static bool swap_joiner(haft_io_task_t *task, hafti_io_cell_t *from, hafti_io_cell_t *to,
                        bool shared) {
    if (HAFTI_IO_UNLIKELY(shared))
        return __atomic_compare_exchange_n(&task->joiner, &from, to, false, __ATOMIC_ACQ_REL,
                                           __ATOMIC_ACQUIRE);
    if (task->joiner != from)
        return false;
    task->joiner = to;
    return true;
}

static void await_end_of(haft_io_task_t *task) {
    unsigned turns = 0;
    while (__atomic_load_n(&task->joiner, __ATOMIC_ACQUIRE) != HAFTI_IO_HAS_ENDED)
        hafti_io_relax(&turns);
}

/* Reports a scope that the task has left open: its home may be gone before what runs in that
   scope. */
static HAFTI_IO_COLD void left_open(const haft_io_task_t *task, const char *what) {
    hafti_io_misuse("The task '%s' %s before it left the scope '%s': a fiber with an open "
                    "scope ends before the task that opened it.",
                    haft_io_task_name(task), what, hafti_io_scope_name(task->runner->scope));
}

void hafti_io_check_leaving(const haft_io_task_t *task, const char *what) {
    const hafti_io_runner_t *runner = task->runner;
    if (HAFTI_IO_UNLIKELY(runner->scope != task->home))
        left_open(task, what);
    if (HAFTI_IO_UNLIKELY(runner->limits != NULL))
        hafti_io_misuse("The task '%s' %s inside of a block with a deadline: declare that with "
                        "HAFT_IO_SCOPED_DEADLINE.",
                        haft_io_task_name(task), what);
}

static HAFTI_IO_COLD void trace_end(const haft_io_task_t *task) {
    hafti_io_trace(HAFTI_IO_EVENT_END, task, NULL, false, (uint64_t)(int64_t)task->code, 0);
    if (task->function == NULL || !hafti_io_trace_held_longest())
        return; /* (a task that a binding drives has no function) */
    void *function = (char *)(uintptr_t)task->function + 1; /* as an address in it */
    hafti_io_trace_frames(task, &function, 1);
}

static inline void end_shared(haft_io_task_t *task, hafti_io_worker_t *worker,
                              haft_io_scope_t *home) {
    hafti_io_crew_t *crew = worker->crew;
    bool opened_root =
        home == &crew->root && home->split && home->worker == worker && task == crew->main;
    if (HAFTI_IO_UNLIKELY(task->spread))
        __atomic_fetch_sub(&worker->spread, 1, __ATOMIC_RELAXED);
    hand_over_shared(task, worker);
    if (HAFTI_IO_UNLIKELY(opened_root)) {
        crew->main = NULL;
        hafti_io_scope_merge(home);
    }
    hafti_io_scope_count_down_shared(home, worker);
}

void hafti_io_task_end(haft_io_task_t *task, int code) {
    haft_io_scope_t *home = task->home;
    hafti_io_worker_t *worker = task->worker;
    hafti_io_runner_t *runner = task->runner;
    if (HAFTI_IO_LIKELY(runner != NULL)) {
        hafti_io_check_leaving(task, "has ended");
        if (runner->listed)
            hafti_io_scope_unlist(home, runner);
    }
    task->code = code;
    hafti_io_set_state(task, HAFTI_IO_ENDED);
    if (HAFTI_IO_UNLIKELY(task->locals != NULL)) {
        release_binding(task->locals);
        task->locals = NULL;
    }
    if (HAFTI_IO_UNLIKELY(!worker->plain)) {
        if (hafti_io_is_traced())
            trace_end(task);
        if (worker->shared) {
            end_shared(task, worker, home);
            return;
        }
    }
    hafti_io_cell_t *joiner = task->joiner;
    if (joiner == HAFTI_IO_NOT_JOINABLE) {
        hafti_io_task_release(task, worker);
    } else {
        task->joiner = HAFTI_IO_HAS_ENDED;
        if (joiner == NULL) {
            hafti_io_append(&home->ended, &task->queued);
            task->kept = HAFTI_IO_KEPT;
        } else {
            haft_io_task_t *who = joiner->task;
            bool has_place = hafti_io_linked(&who->queued);
            if (hafti_io_cell_win(joiner, HAFTI_IO_WOKEN) && !has_place)
                hafti_io_favour(who);
        }
    }
    if (--home->live == 0 && home->closer != NULL)
        hafti_io_cell_win(home->closer, HAFTI_IO_WOKEN);
}

static HAFTI_IO_COLD uint8_t bits_of(size_t stack_size) {
    uint8_t bits = 1;
    while (bits < sizeof(size_t) * CHAR_BIT - 1 && (size_t)1 << bits < stack_size)
        bits++;
    return bits;
}

/* ---- Spawning ---- */

/* Spawns by a scheduler of the program's own, which has no task to return. */
static HAFTI_IO_COLD haft_io_task_t *spawn_elsewhere(void *(*function)(void *), void *argument,
                                                     const hafti_io_cell_t *joiner) {
    static haft_io_task_t somewhere;
    int code = -ESRCH;
    if (joiner == HAFTI_IO_NOT_JOINABLE)
        code = HAFT_PERFORM(haft_io_spawn, function, argument);
    if (code == -ESRCH)
        hafti_io_misuse("A task is spawned outside of a scheduler: call this under haft_io_run.");
    return code == 0 ? &somewhere : NULL;
}

haft_io_scope_t *hafti_io_scope_of_spawns(haft_io_scope_t *here) {
    haft_io_scope_t *chosen = here;
    return HAFTI_IO_LIKELY(here->scope_of_spawns == NULL) || here->scope_of_spawns(&chosen) ? chosen
                                                                                            : NULL;
}

int haft_io_cancel(void) {
    haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        return 0;
    haft_io_scope_t *here = task->runner->scope, *own = hafti_io_scope_of_spawns(here);
    if (own != NULL)
        haft_io_scope_cancel(own);
    return own != here ? haft_io_unwind_cancelled() : 0;
}

static HAFTI_IO_COLD void tell_spawn(haft_io_task_t *task) {
    if (hafti_io_is_traced())
        hafti_io_trace(HAFTI_IO_EVENT_SPAWN, task, task->name, true,
                       (uintptr_t)hafti_io_this_task(), 0);
    if (task->worker->tape != NULL)
        hafti_io_tape_spawned(task->worker->tape, task);
}

/* A task that is in no queue yet; NULL: there is none. */
static inline __attribute__((always_inline)) haft_io_task_t *
new_task(haft_io_task_t *parent, const haft_io_task_options_t *options, void *(*function)(void *),
         void *argument, hafti_io_cell_t *joiner, const void *spawned_at) {
    if (HAFTI_IO_UNLIKELY(options->own_thread_locals) && !hafti_io_may_own_threads())
        return NULL;
    hafti_io_worker_t *worker = parent->worker;
    haft_io_scope_t *home =
        options->scope != NULL ? options->scope : hafti_io_scope_of_spawns(parent->runner->scope);
    if (HAFTI_IO_UNLIKELY(home == NULL))
        return NULL;
    haft_io_task_t *task = hafti_io_task_new(worker, home, function, argument);
    if (HAFTI_IO_UNLIKELY(task == NULL))
        return NULL;
    task->name = options->name != NULL ? options->name : parent->name;
    task->moves |= options->moves && worker->shared;
    task->even_without_stack = options->even_without_stack;
    if (HAFTI_IO_UNLIKELY(options->stack_size != 0))
        task->stack |= bits_of(options->stack_size);
    if (HAFTI_IO_UNLIKELY(options->own_thread_locals))
        task->stack |= HAFTI_IO_OWN_THREAD;
    task->joiner = joiner;
    task->spawned_at = spawned_at;
    if (HAFTI_IO_UNLIKELY(parent->locals != NULL))
        task->locals = use_binding(parent->locals);
    if (HAFTI_IO_UNLIKELY(!worker->plain) && hafti_io_is_told())
        tell_spawn(task);
    return task;
}

/* Puts a new task into a queue, where the worker is not plain. */
static inline void enqueue_new(hafti_io_worker_t *worker, haft_io_task_t *task,
                               const haft_io_task_t *parent, bool spread) {
    if (HAFTI_IO_UNLIKELY((parent->runner->accepted || spread) && worker->shared)) {
        parent->runner->accepted = false;
        hafti_io_spread(worker, task);
    } else {
        hafti_io_enqueue_new(worker, task);
    }
}

static haft_io_task_t *spawn(const haft_io_task_options_t *options, void *(*function)(void *),
                             void *argument, hafti_io_cell_t *joiner, const void *spawned_at) {
    haft_io_task_t *parent = hafti_io_this_task();
    if (HAFTI_IO_UNLIKELY(function == NULL))
        hafti_io_misuse("A task needs a function to run (NULL).");
    if (HAFTI_IO_UNLIKELY(parent == NULL))
        return spawn_elsewhere(function, argument, joiner);
    hafti_io_worker_t *worker = parent->worker;
    haft_io_task_t *task = new_task(parent, options, function, argument, joiner, spawned_at);
    if (HAFTI_IO_UNLIKELY(task == NULL))
        return NULL;
    if (HAFTI_IO_LIKELY(worker->plain))
        hafti_io_enqueue(worker, task);
    else
        enqueue_new(worker, task, parent, options->spread);
    return task;
}

static const haft_io_task_options_t defaults;
/* The caller of the function that the program has called. */
#define CALLER __builtin_return_address(0)

int haft_io_spawn(void *(*function)(void *), void *argument) {
    return spawn(&defaults, function, argument, HAFTI_IO_NOT_JOINABLE, CALLER) != NULL ? 0
                                                                                       : -ENOMEM;
}

haft_io_task_t *haft_io_spawn_known(const haft_io_task_options_t *options,
                                    void *(*function)(void *), void *argument) {
    return spawn(options != NULL ? options : &defaults, function, argument, HAFTI_IO_NOT_JOINABLE,
                 CALLER);
}

static HAFTI_IO_COLD int not_spawned(const haft_io_task_options_t *options) {
    return options != NULL && options->own_thread_locals && hafti_io_own_threads_refused() != NULL
               ? -ENOTSUP
               : -ENOMEM;
}

int haft_io_spawn_with(const haft_io_task_options_t *options, void *(*function)(void *),
                       void *argument) {
    const haft_io_task_t *task = spawn(options != NULL ? options : &defaults, function, argument,
                                       HAFTI_IO_NOT_JOINABLE, CALLER);
    return task != NULL ? 0 : not_spawned(options);
}

bool haft_io_stays(void) {
    const haft_io_task_t *task = hafti_io_this_task();
    return task != NULL && !task->moves;
}

int haft_io_spawn_here(const haft_io_task_options_t *options, void *(*function)(void *),
                       void *argument) {
    haft_io_task_t *parent = hafti_io_this_task();
    if (function == NULL)
        hafti_io_misuse("A task needs a function to run (NULL).");
    if (parent == NULL || parent->moves)
        return -ENOTSUP;
    haft_io_task_t *task = new_task(parent, options != NULL ? options : &defaults, function,
                                    argument, HAFTI_IO_NOT_JOINABLE, CALLER);
    if (task == NULL)
        return not_spawned(options);
    task->moves = false;
    hafti_io_enqueue(parent->worker, task);
    return 0;
}

haft_io_task_t *haft_io_async(void *(*function)(void *), void *argument) {
    return spawn(&defaults, function, argument, NULL, CALLER);
}

haft_io_task_t *haft_io_async_with(const haft_io_task_options_t *options, void *(*function)(void *),
                                   void *argument) {
    return spawn(options != NULL ? options : &defaults, function, argument, NULL, CALLER);
}

static HAFTI_IO_COLD __attribute__((noreturn)) void cannot_be_joined(const haft_io_task_t *task,
                                                                     const haft_io_task_t *self) {
    bool is_free = hafti_io_state(task) == HAFTI_IO_FREE;
    hafti_io_misuse("The task '%s' cannot be joined: %s.", haft_io_task_name(task),
                    self == NULL   ? "its joiner is no task"
                    : self == task ? "it would wait for itself"
                    : is_free      ? "it has been joined, or its scope has ended"
                    : task->joiner == HAFTI_IO_NOT_JOINABLE ? "nobody has asked for its result"
                                                            : "another task joins it");
}

/* False: the caller was cancelled, and has given up the task. */
static bool await_end(haft_io_task_t *task, haft_io_task_t *self) {
    hafti_io_worker_t *worker = self->worker;
    hafti_io_cell_t cell = {HAFTI_IO_WAITING, self};
    hafti_io_check_may_wait(self);
    if (!swap_joiner(task, NULL, &cell, worker->shared)) {
        await_end_of(task); /* which ends right now */
        return true;
    }
    const int outer_dive = hafti_io_let_start_first(self, task);
    uint32_t outcome =
        hafti_io_cell_wait(&cell, HAFTI_IO_CANCELLABLE, HAFT_IO_FOREVER, "a task to end");
    hafti_io_has_let_start_first(self, worker, outer_dive);
    if (outcome != HAFTI_IO_CANCELLED)
        return true;
    if (!swap_joiner(task, &cell, HAFTI_IO_NOT_JOINABLE, worker->shared)) {
        await_end_of(task);
        hafti_io_task_forget(task, self->worker);
    }
    return false;
}

static HAFTI_IO_COLD int join_none(void **result) {
    if (result != NULL)
        *result = NULL;
    return -ENOMEM;
}

int haft_io_join(haft_io_task_t *task, void **result) {
    haft_io_task_t *self = hafti_io_this_task();
    if (HAFTI_IO_UNLIKELY(task == NULL))
        return join_none(result);
    hafti_io_cell_t *joiner = __atomic_load_n(&task->joiner, __ATOMIC_ACQUIRE);
    bool is_open = joiner == NULL || joiner == HAFTI_IO_ENDING || joiner == HAFTI_IO_HAS_ENDED;
    if (HAFTI_IO_UNLIKELY(self == NULL || self == task || hafti_io_state(task) == HAFTI_IO_FREE ||
                          !is_open))
        cannot_be_joined(task, self);
    if (joiner != HAFTI_IO_HAS_ENDED) {
        if (!await_end(task, self))
            return haft_io_unwind_cancelled();
    } else {
        hafti_io_has_its_turn(
            HAFTI_IO_TO_THE_END); /* It may have been the last to hold the handle. */
    }
    int code = task->code;
    if (result != NULL)
        *result = code == 0 ? task->result : NULL;
    hafti_io_task_forget(task, self->worker);
    return code;
}

/* ---- Names and values ---- */

const char *haft_io_inherited_name(void) {
    const haft_io_task_t *task = hafti_io_this_task();
    return task != NULL ? task->name : NULL;
}

void haft_io_task_set_name(const char *name) {
    haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        return;
    __atomic_store_n(&task->name, name, __ATOMIC_RELAXED);
    if (hafti_io_is_traced())
        hafti_io_trace(HAFTI_IO_EVENT_NAME, task, name, true, 0, 0);
}

void *haft_io_local_get(const void *key) {
    haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        return NULL;
    for (const hafti_io_binding_t *binding = task->locals; binding != NULL;
         binding = binding->outer)
        if (binding->key == key)
            return binding->value;
    return NULL;
}

/* Makes the binding in this place the task's own, so that it may be changed. False: no memory. */
static bool make_own(hafti_io_binding_t **place) {
    hafti_io_binding_t *binding = *place;
    if (__atomic_load_n(&binding->uses, __ATOMIC_ACQUIRE) == 1)
        return true;
    hafti_io_binding_t *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return false;
    *copy = (hafti_io_binding_t){use_binding(binding->outer), 1, binding->key, binding->value,
                                 binding->given};
    if (copy->given != NULL)
        __atomic_fetch_add(&copy->given->uses, 1, __ATOMIC_RELAXED);
    *place = copy;
    release_binding(binding);
    return true;
}

/* A key stands in the list once, so the list does not grow with the number of calls. */
static int bind_value(const char *function, const void *key, void *value, hafti_io_given_t *given) {
    haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        hafti_io_misuse("%s was called outside of a task.", function);
    const hafti_io_binding_t *found = task->locals;
    while (found != NULL && found->key != key)
        found = found->outer;
    if (found == NULL) {
        hafti_io_binding_t *binding = value != NULL ? malloc(sizeof *binding) : NULL;
        if (binding == NULL)
            return value != NULL ? -ENOMEM : 0;
        *binding = (hafti_io_binding_t){task->locals, 1, key, value, given};
        task->locals = binding;
        return 0;
    }
    hafti_io_binding_t **place = &task->locals;
    for (; (*place)->key != key; place = &(*place)->outer)
        if (!make_own(place))
            return -ENOMEM;
    if (value == NULL) {
        hafti_io_binding_t *removed = *place;
        *place = use_binding(removed->outer);
        release_binding(removed);
        return 0;
    }
    if (!make_own(place))
        return -ENOMEM;
    release_value(*place);
    (*place)->value = value;
    (*place)->given = given;
    return 0;
}

int haft_io_interrupt(haft_io_task_t *task) {
    if (task->worker->shared)
        return haft_io_refuse(
            -EINVAL, __func__,
            "the run has several threads: only a run of one thread lets a binding "
            "end waits, so begin it with .threads = 1");
    hafti_io_runner_t *runner = task->runner;
    if (runner == NULL || runner->cell == NULL)
        return -EAGAIN;
    return hafti_io_cell_win(runner->cell, HAFTI_IO_CANCELLED) ? 0 : -EAGAIN;
}

bool haft_io_task_stack(void **low, size_t *size) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        return false;
    const haft_fiber_t *fiber = task->runner->fiber;
    *low = fiber->low;
    *size = (size_t)(fiber->high - fiber->low);
    return true;
}

void *haft_io_own_get(void) {
    const haft_io_task_t *task = hafti_io_this_task();
    return task != NULL ? task->runner->own : NULL;
}

void haft_io_own_set(void *pointer) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (task != NULL)
        task->runner->own = pointer;
}

int haft_io_local_set(const void *key, void *value) {
    return bind_value("haft_io_local_set", key, value, NULL);
}

int haft_io_local_give(const void *key, void *value, void (*release)(void *value)) {
    hafti_io_given_t *given = malloc(sizeof *given);
    if (given == NULL)
        return -ENOMEM;
    *given = (hafti_io_given_t){1, release};
    int code = bind_value("haft_io_local_give", key, value, given);
    if (code != 0)
        free(given);
    return code;
}
