/* SPDX-License-Identifier: MIT */
/* Waiting: the cell of a wait, the list of an object's waiters, and what a scope knows of them. */
#ifndef HAFTI_IO_WAITS_H
#define HAFTI_IO_WAITS_H

#include "ready.h"

/* Gives up a cell that others know, on which its task does not wait after all; takes what has been
   won. */
void hafti_io_cell_give_up(hafti_io_cell_t *cell);
/* Whether the running task's stack, up to its innermost scope, is being unwound. It is not any more
   when an exception of C++ has taken the place of that. */
bool hafti_io_is_unwinding(hafti_io_runner_t *runner);
/* Ends the wait of the runner's task by a cancel; under the lock of its scope, which is `shared` or
   not. */
void hafti_io_cell_cancel(hafti_io_runner_t *runner, bool shared);
uint32_t hafti_io_cell_wait(hafti_io_cell_t *cell, enum hafti_io_wait_kind kind, int64_t deadline,
                            const char *waits_for);

/*
 * Looks at a task that is about to wait, unless its last wait was at this place (initialisers.c). A
 * place is the caller of the waiting function and the depth of its stack; hafti_io_look_at finds
 * both for the function into which it is inlined.
 */
void hafti_io_find_initialisers(void); /* before the first task */
HAFTI_IO_COLD void hafti_io_look_for_initialiser(const haft_io_task_t *task, const char *caller,
                                                 const void *frames);
static inline __attribute__((always_inline)) void hafti_io_look_at(hafti_io_runner_t *runner) {
    if (hafti_io_watches() & HAFTI_IO_LOOKS_FOR_INITIALISERS) {
        const char *caller = __builtin_return_address(0);
        const char *frames = __builtin_dwarf_cfa();
        uint16_t place = (uint16_t)((uintptr_t)caller ^ (uintptr_t)frames);
        if (HAFTI_IO_UNLIKELY(runner->looked_at != place)) {
            runner->looked_at = place;
            hafti_io_look_for_initialiser(runner->task, caller, frames);
        }
    }
}

/* Shows the cell of a task that is about to wait to cancels of its scope. False: that has been
   cancelled, and the cell won by it. */
bool hafti_io_show_to_cancels(hafti_io_runner_t *runner, hafti_io_cell_t *cell);
/* When it has been won: no canceller looks at it any more. */
void hafti_io_hide_from_cancels(hafti_io_runner_t *runner, hafti_io_cell_t *cell);

/* Puts the runner's task, which is about to wait, into its scope's list. */
void hafti_io_scope_list(haft_io_scope_t *scope, hafti_io_runner_t *runner);
void hafti_io_scope_unlist(haft_io_scope_t *scope, hafti_io_runner_t *runner);
/* In a shared run: a task of this home is made, or has ended, by the worker. */
static inline void hafti_io_scope_count_up_shared(haft_io_scope_t *home,
                                                  const hafti_io_worker_t *worker) {
    if (home->split && home->worker == worker && !home->merged)
        HAFTI_IO_COUNT(home->live_here);
    else
        __atomic_fetch_add(&home->live, 1, __ATOMIC_RELAXED);
}
void hafti_io_scope_count_down_shared(haft_io_scope_t *home, hafti_io_worker_t *worker);
/* Stops the separate counting, before a task waits for `live` to be 0; called by the worker's
   thread. */
void hafti_io_scope_merge(haft_io_scope_t *scope);
/* How many tasks of this home have not ended, or had not some time ago. */
static inline size_t hafti_io_scope_live(const haft_io_scope_t *scope) {
    size_t live = __atomic_load_n(&scope->live, __ATOMIC_RELAXED);
    if (live > HAFTI_IO_UNMERGED / 2)
        live += __atomic_load_n(&scope->live_here, __ATOMIC_RELAXED) - HAFTI_IO_UNMERGED;
    return live;
}
/* A record of `ended_here` was given up by another worker. */
void hafti_io_scope_return(haft_io_scope_t *home, haft_io_task_t *task);

/*
 * The turn of a task: how much it may do without a wait before the others of its thread go first.
 * Every operation that may wait, or that polls for what others have to do, counts before it has
 * done anything, by the time that it is likely to take. Operations that wake others (unlock,
 * release, signal) never wait for a turn, because they are called where nothing may wait.
 */
enum { HAFTI_IO_TURN = 256, HAFTI_IO_LIGHT = 1, HAFTI_IO_OF_SYSTEM = 4 };
/* False: the turn is over. */
static inline bool hafti_io_is_in_turn(hafti_io_worker_t *worker, unsigned weight) {
    return HAFTI_IO_LIKELY((worker->operations += weight) <= HAFTI_IO_TURN);
}
/* Lets the others go first, if the caller is a task. False: a cancel has reached it, as only waits
   of some kinds allow. */
HAFTI_IO_COLD bool hafti_io_goes_on_after_others(enum hafti_io_wait_kind kind);
/* Sleeps for so long, whatever has cancelled the current task. One that is being unwound only lets
   the others go first. */
HAFTI_IO_COLD void hafti_io_pause_after_cancel(int64_t nanoseconds);
/* Both of these, for an operation of the library alone, on any thread. */
static inline bool hafti_io_has_its_turn(enum hafti_io_wait_kind kind) {
    hafti_io_worker_t *worker = hafti_io_worker();
    return HAFTI_IO_LIKELY(worker == NULL || hafti_io_is_in_turn(worker, HAFTI_IO_LIGHT)) ||
           hafti_io_goes_on_after_others(kind);
}

static inline void hafti_io_let_waiter_go_on(hafti_io_cell_t *cell, haft_io_task_t *task,
                                             uint32_t outcome) {
    if (HAFTI_IO_UNLIKELY(task == NULL)) {
        hafti_io_wake_thread(cell);
        return;
    }
    hafti_io_ready(task, outcome);
}
/* True: the caller was first, and the waiter will run. */
static inline bool hafti_io_cell_win(hafti_io_cell_t *cell, uint32_t outcome) {
    haft_io_task_t *task = cell->task;
    if (!hafti_io_cell_swap(cell, outcome))
        return false;
    hafti_io_let_waiter_go_on(cell, task, outcome);
    return true;
}
static inline void hafti_io_cell_finish(hafti_io_cell_t *cell, uint32_t outcome) {
    haft_io_task_t *task = cell->task;
    __atomic_store_n(&cell->word, outcome, __ATOMIC_RELEASE);
    hafti_io_let_waiter_go_on(cell, task, outcome);
}

/* A waiter's entry in the list of an object; in the waiter's frame. The object's lock guards
   everything except the cell. */
typedef struct haft_io_place {
    struct haft_io_place *next, *previous;
    haft_io_waiting_t *list; /* NULL: in none */
    hafti_io_cell_t *cell;
    uint32_t outcome; /* with which its cell is won */
    bool closed;      /* it was won because the channel was closed */
    bool joins;       /* the waiter goes on next, as a joiner does */
    void *value;      /* the value to send, or where to receive it; also of a promise */
} hafti_io_place_t;
/* The cell of a caller that holds the lock and is about to wait. In a child of fork this releases
   the lock and reports the mistake, before anything has been changed. */
static inline hafti_io_cell_t hafti_io_cell_to_wait(uint32_t *lock) {
    haft_io_task_t *task = hafti_io_this_task();
    if (HAFTI_IO_UNLIKELY(hafti_io_is_in_child(task))) {
        hafti_io_unguard(lock);
        hafti_io_waits_in_child(task);
    }
    return (hafti_io_cell_t){HAFTI_IO_WAITING, task};
}
/* Field by field: the code that puts it into a list sets the rest. */
static inline void hafti_io_make_place(hafti_io_place_t *place, hafti_io_cell_t *cell,
                                       uint32_t outcome) {
    place->cell = cell;
    place->outcome = outcome;
    place->closed = place->joins = false;
}
static inline void hafti_io_take_place(haft_io_waiting_t *list, hafti_io_place_t *place) {
    place->list = list;
    place->next = NULL;
    place->previous = list->last;
    *(list->last != NULL ? &list->last->next : &list->first) = place;
    list->last = place;
}
void hafti_io_take_first_place(haft_io_waiting_t *list, hafti_io_place_t *place);
void hafti_io_leave_place(hafti_io_place_t *place);
/* Takes the first place out of a list that is not empty. */
static inline hafti_io_place_t *hafti_io_first_leaves(haft_io_waiting_t *list) {
    hafti_io_place_t *place = list->first;
    list->first = place->next;
    *(place->next != NULL ? &place->next->previous : &list->last) = NULL;
    place->list = NULL;
    return place;
}
/*
 * Both the woken task and its waker may end the object, so neither touches it afterwards. The cells
 * of waiters that are to go on are therefore won under the lock, and the waiters are woken without
 * it.
 */
/* Claims the first place whose cell can be won; NULL: there is none. */
static inline hafti_io_place_t *hafti_io_claim_first(haft_io_waiting_t *list) {
    while (list->first != NULL) {
        hafti_io_place_t *place = hafti_io_first_leaves(list);
        if (HAFTI_IO_LIKELY(hafti_io_cell_claim(place->cell)))
            return place;
    }
    return NULL;
}
static inline void hafti_io_let_go(const hafti_io_place_t *place) {
    if (place != NULL)
        hafti_io_cell_finish(place->cell, place->outcome);
}
/* Claims all, in a list by their `next`. */
hafti_io_place_t *hafti_io_claim_all(haft_io_waiting_t *list);
void hafti_io_let_all_go(hafti_io_place_t *places);
/* Waits in the list; called under the lock, returns without it. Returns 0, and in `*given`, if that
   is not NULL, the value that the waker gave to the place; -ETIMEDOUT or -ECANCELED. */
int hafti_io_wait_in(uint32_t *lock, haft_io_waiting_t *list, int64_t deadline,
                     enum hafti_io_wait_kind kind, const char *waits_for, void **given);
/* The same for a place that has been taken, when the lock has been released. */
int hafti_io_wait_at(hafti_io_place_t *place, uint32_t *lock, int64_t deadline,
                     enum hafti_io_wait_kind kind, const char *waits_for);
int hafti_io_code_of(uint32_t outcome);

/*
 * Called before and after the wait of a task for the end of another, which goes first if it has not
 * started. The first returns a value that the second puts back.
 */
static inline int hafti_io_let_start_first(haft_io_task_t *self, haft_io_task_t *task) {
    const int outer_dive = self->worker->dives_to;
    if (hafti_io_state(task) == HAFTI_IO_NEW)
        hafti_io_favour_new(self->worker, task, self);
    return outer_dive;
}
/* The worker is that of the task before its wait. */
static inline void hafti_io_has_let_start_first(haft_io_task_t *self, hafti_io_worker_t *worker,
                                                int outer_dive) {
    if (HAFTI_IO_UNLIKELY(worker->shared) && self->worker == worker)
        worker->dives_to = outer_dive;
    if (HAFTI_IO_UNLIKELY(hafti_io_linked(&self->queued))) /* it has not waited */
        hafti_io_unlink(&self->queued);
}

/* Suspends the runner's task until its cell has been won. */
static inline __attribute__((always_inline)) void hafti_io_suspend(hafti_io_runner_t *runner,
                                                                   const hafti_io_worker_t *worker,
                                                                   const char *waits_for) {
    __atomic_store_n(&runner->waits_since, worker->clock, __ATOMIC_RELAXED);
    __atomic_store_n(&runner->waits_for, waits_for, __ATOMIC_RELAXED);
    hafti_io_arm_deadlines(runner);
    HAFT_PERFORM(hafti_io_park);
    __atomic_store_n(&runner->waits_for, NULL, __ATOMIC_RELAXED);
}

/* Like hafti_io_cell_wait, but inlined. */
static inline __attribute__((always_inline)) uint32_t
hafti_io_wait_here(hafti_io_cell_t *cell, enum hafti_io_wait_kind kind, int64_t deadline,
                   const char *waits_for) {
    const haft_io_task_t *task = cell->task;
    if (HAFTI_IO_UNLIKELY(deadline != HAFT_IO_FOREVER || task == NULL))
        return hafti_io_cell_wait(cell, kind, deadline, waits_for);
    hafti_io_runner_t *runner = task->runner;
    const hafti_io_worker_t *worker = runner->worker;
    if (HAFTI_IO_UNLIKELY(!worker->plain || !runner->listed || runner->gated ||
                          hafti_io_is_withdrawn(runner)))
        return hafti_io_cell_wait(cell, kind, deadline, waits_for);
    hafti_io_look_at(runner);
    if (kind == HAFTI_IO_CANCELLABLE)
        runner->cell = cell;
    hafti_io_suspend(runner, worker, waits_for);
    runner->cell = NULL;
    return __atomic_load_n(&cell->word, __ATOMIC_ACQUIRE);
}

#endif
