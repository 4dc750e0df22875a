/* SPDX-License-Identifier: MIT */
/*
 * Closing a descriptor that tasks of several runs may wait on: all runs of the process, and how one
 * of them ends the waits of its tasks for a thread that is not its own.
 *
 * A run that closes a descriptor ends the waits of its own tasks, and forgets the descriptor; then
 * the next run that knows it does the same, and the last run closes it. So a descriptor that one
 * run closes is closed everywhere.
 *
 *   the run         | its table of descriptors is | closed by
 *   is shared       | any thread's                | the thread that asks
 *   is alone        | its thread's                | its thread, later, after a hand-over
 *
 * A descriptor that is handed over is open until its run's thread has taken it, which it does after
 * its next poll, or when the run ends: so its number is not reused meanwhile. It is in the list
 * `crew->handed_over`, by its number plus one, which takes no memory: `entry->next` is the next,
 * and no other thread puts it there while `entry->handed_over` is true.
 *
 * A task may begin to wait on a descriptor just when another thread closes it and finds no run that
 * knows it. The closing thread counts itself in `hafti_io_closing_count`, then looks for a run that
 * knows the descriptor, and enters the list `closing` if there is none. A waiter announces itself
 * in `waited_on`, and an operation of several system calls in `uses`; then it looks at the count:
 * at least one of the two sees the other. The waiter lets a close of the number end before it asks
 * the kernel: by then the number is free or the next file's, as if the wait had begun later.
 *
 * If there is no other run, none of this is done: a closing thread counts itself in `alone`, and
 * looks at `runs_count`. A run that begins counts itself there, and waits until the threads that
 * had looked earlier have closed; so its tasks do not begin to wait beside them.
 *
 * A caller of haft_io_close_by, the asker, is in the list `askers`, and asks one run after another
 * that knows the descriptor, from the newest on, to close it. When no task of such a run waits on
 * the descriptor, and none of its operations is under way, the run notifies the asker, and leaves
 * the file open. A wait that begins on the number meanwhile gets -EBADF. So no run has to be asked
 * twice, and one that has begun since need not be asked. Then the asker moves to the list
 * `closing`, and calls the function. By then no run closes the number any more: a run that was
 * handed the descriptor reports completion to the asker itself; a run that is already closing it is
 * asked as well.
 */
#include "descriptors.h"
#include "tape/tape.h"

static hafti_io_crew_t *runs;
static uint32_t runs_lock; /* of `runs`, `closing` and `askers` */
static int runs_count;     /* any thread reads */
static int alone;          /* threads that close without a look at the runs; any thread */
static hafti_io_link_t closing = {&closing, &closing}, askers = {&askers, &askers};
unsigned hafti_io_closing_count;

/* ---- The runs ---- */

/* No signal handler, which may close a descriptor, interrupts the holder of the lock. */
static void lock_runs(sigset_t *before) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
    hafti_io_guard(&runs_lock);
}
static void unlock_runs(const sigset_t *before) {
    hafti_io_unguard(&runs_lock);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

void hafti_io_run_begins(hafti_io_crew_t *crew, bool is_listed) {
    static uint64_t last_number;
    sigset_t before;
    lock_runs(&before);
    crew->number = ++last_number;
    if (is_listed) {
        crew->next_run = runs;
        runs = crew;
        HAFTI_IO_SHOW(&runs_count, runs_count + 1);
    }
    unlock_runs(&before);
    unsigned turns = 0;
    while (__atomic_load_n(&alone, __ATOMIC_SEQ_CST) > 0)
        hafti_io_relax(&turns);
}

void hafti_io_run_ends(hafti_io_crew_t *crew) {
    sigset_t before;
    lock_runs(&before);
    hafti_io_crew_t **place = &runs;
    while (*place != NULL && *place != crew)
        place = &(*place)->next_run;
    if (*place != NULL) { /* There is none in a child of fork. */
        *place = crew->next_run;
        __atomic_store_n(&runs_count, runs_count - 1, __ATOMIC_RELEASE);
    }
    unlock_runs(&before);
    unsigned turns = 0;
    while (__atomic_load_n(&crew->closers, __ATOMIC_ACQUIRE) != 0)
        hafti_io_relax(&turns);
    hafti_io_take_handed_over(crew);
}

void hafti_io_forget_runs(void) {
    runs = NULL;
    runs_lock = 0;
    runs_count = 0;
    alone = 0;
    hafti_io_ring(&closing);
    hafti_io_ring(&askers);
    hafti_io_closing_count = 0;
}

/* ---- Handing over ---- */

static int hand_over(hafti_io_crew_t *crew, hafti_io_descriptor_t *entry, int descriptor) {
    hafti_io_worker_t *worker = crew->workers[0];
    if (__atomic_exchange_n(&entry->handed_over, true, __ATOMIC_SEQ_CST))
        return -EBADF;
    uint32_t next = __atomic_load_n(&crew->handed_over, __ATOMIC_RELAXED);
    do
        entry->next = next;
    while (!__atomic_compare_exchange_n(&crew->handed_over, &next, (uint32_t)descriptor + 1, true,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    worker->backend->interrupt(worker);
    return 0;
}

void hafti_io_take_handed_over(hafti_io_crew_t *crew) {
    hafti_io_worker_t *worker = crew->workers[0];
    uint32_t next = __atomic_exchange_n(&crew->handed_over, 0, __ATOMIC_SEQ_CST);
    while (next != 0) {
        int descriptor = (int)(next - 1);
        hafti_io_descriptor_t *entry = hafti_io_descriptor(crew->descriptors, descriptor, false);
        next = entry->next;
        __atomic_store_n(&entry->handed_over, false, __ATOMIC_SEQ_CST);
        worker->backend->close(worker, descriptor);
    }
}

/* ---- Closing ---- */

/* A run forgets the descriptor before it calls the system's close or hands the descriptor on. The
   asker waits for the end of that. */
static hafti_io_descriptor_t *known_to(const hafti_io_crew_t *crew, int descriptor, bool asks) {
    hafti_io_descriptor_t *entry = hafti_io_descriptor(crew->descriptors, descriptor, false);
    if (entry == NULL)
        return NULL;
    uint32_t uses = __atomic_load_n(&entry->uses, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&entry->waited_on, __ATOMIC_SEQ_CST) ||
                   (uses & (asks ? UINT32_MAX : ~HAFTI_IO_RELEASING)) != 0
               ? entry
               : NULL;
}

/* The closing thread. */
typedef struct close_now {
    hafti_io_link_t link; /* others write it, under the lock, while it is */
    bool listed;          /* in `closing`, or in `askers` */
    int descriptor;
    bool asks;
    haft_io_task_t *task; /* that closes; NULL: another thread does */
    bool within;          /* a function by which it closes, already */
    /* The following fields are an asker's. */
    const hafti_io_crew_t *asked;
    uint64_t number;       /* of that, or the least that has been asked */
    bool told;             /* by it */
    hafti_io_cell_t *cell; /* by which the closing thread waits for that */
} close_now_t;

/* Begins to look for runs that know the descriptor. */
static close_now_t begin_close(int descriptor, bool asks) {
    __atomic_fetch_add(&hafti_io_closing_count, 1, __ATOMIC_SEQ_CST);
    haft_io_task_t *task = hafti_io_this_task();
    return (close_now_t){.descriptor = descriptor,
                         .asks = asks,
                         .task = task,
                         .within = task != NULL && task->runner->closes,
                         .number = UINT64_MAX};
}
static void end(close_now_t *now) {
    if (now->listed) {
        sigset_t before;
        lock_runs(&before);
        hafti_io_unlink(&now->link);
        unlock_runs(&before);
    }
    __atomic_fetch_sub(&hafti_io_closing_count, 1, __ATOMIC_RELEASE);
    if (now->task != NULL)
        now->task->runner->closes = now->within;
}

typedef struct known {
    hafti_io_crew_t *crew; /* does not end before its `closers` are counted down */
    hafti_io_descriptor_t *entry;
} known_t;

/* The next run that knows the descriptor; NULL: none, and the caller is in `closing`. */
static known_t next_run(close_now_t *now) {
    known_t next = {NULL, NULL};
    sigset_t before;
    lock_runs(&before);
    if (now->asks && !now->listed)
        hafti_io_append(&askers, &now->link);
    for (next.crew = runs; next.crew != NULL; next.crew = next.crew->next_run)
        if (next.crew->number < now->number &&
            (next.entry = known_to(next.crew, now->descriptor, now->asks)) != NULL)
            break;
    if (next.crew != NULL) {
        __atomic_fetch_add(&next.crew->closers, 1, __ATOMIC_RELAXED);
        now->asked = next.crew;
        now->number = next.crew->number;
        now->told = false;
    } else {
        if (now->asks)
            hafti_io_unlink(&now->link);
        hafti_io_append(&closing, &now->link);
    }
    now->listed = now->asks || next.crew == NULL;
    unlock_runs(&before);
    return next;
}

/* Hands the descriptor over, unless the asker was told meanwhile: then it would be closed after the
   asker has called its function. */
static int hand_over_unless_told(known_t next, const close_now_t *now) {
    sigset_t before;
    lock_runs(&before);
    int code = now->told ? 0 : hand_over(next.crew, next.entry, now->descriptor);
    unlock_runs(&before);
    return code;
}

static int close_in(known_t next, const close_now_t *now) {
    const haft_io_task_t *task = hafti_io_this_task();
    hafti_io_worker_t *worker = next.crew->workers[0];
    bool by_its_own = task != NULL && task->worker == worker;
    int code = worker->shared || by_its_own ? worker->backend->close(worker, now->descriptor)
                                            : hand_over_unless_told(next, now);
    __atomic_fetch_sub(&next.crew->closers, 1, __ATOMIC_RELEASE);
    return code;
}

static HAFTI_IO_COLD int close_in_next_run(int descriptor) {
    close_now_t now = begin_close(descriptor, false);
    known_t next = next_run(&now);
    int code = next.crew != NULL ? close_in(next, &now) : hafti_io_close_file(descriptor);
    end(&now);
    return code;
}

/* False: there are other runs than the caller's own. */
static bool close_alone(int descriptor, int *code) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    int own = worker != NULL && worker->simulated == NULL;
    __atomic_fetch_add(&alone, 1, __ATOMIC_SEQ_CST);
    bool is_alone = __atomic_load_n(&runs_count, __ATOMIC_SEQ_CST) <= own;
    if (HAFTI_IO_LIKELY(is_alone))
        *code = hafti_io_close_file(descriptor);
    __atomic_fetch_sub(&alone, 1, __ATOMIC_RELEASE);
    return is_alone;
}

/* The run has forgotten the descriptor. Returns whether an asker wanted that; if the descriptor has
   been handed over since, the asker is told when it has been taken. */
static HAFTI_IO_COLD bool tell_askers(const hafti_io_crew_t *crew, int descriptor) {
    const hafti_io_descriptor_t *entry = hafti_io_descriptor(crew->descriptors, descriptor, false);
    bool some = false;
    sigset_t before;
    lock_runs(&before);
    bool later = entry != NULL && __atomic_load_n(&entry->handed_over, __ATOMIC_RELAXED);
    for (const hafti_io_link_t *link = askers.next; link != &askers; link = link->next) {
        close_now_t *asker = HAFTI_IO_OWNER(link, close_now_t, link);
        if (asker->descriptor != descriptor || asker->asked != crew)
            continue;
        some = true;
        if (later)
            continue;
        asker->told = true;
        if (asker->cell != NULL)
            hafti_io_cell_win(asker->cell, HAFTI_IO_WOKEN);
        asker->cell = NULL;
    }
    unlock_runs(&before);
    return some;
}

int hafti_io_close_elsewhere(const hafti_io_crew_t *crew, int descriptor) {
    if (HAFTI_IO_UNLIKELY(__atomic_load_n(&hafti_io_closing_count, __ATOMIC_SEQ_CST) != 0) &&
        crew != NULL && tell_askers(crew, descriptor))
        return 0;
    if (__libc_single_threaded) /* No thread can begin a run meanwhile. */
        return hafti_io_close_file(descriptor);
    int cancels, code;
    /* pthread_cancel would leave the list, and the counts, as they are in between. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
    if (HAFTI_IO_UNLIKELY(!close_alone(descriptor, &code)))
        code = close_in_next_run(descriptor);
    pthread_setcancelstate(cancels, &cancels);
    return code;
}

/* Whether another task closes it: a function that closes may use the number. */
static bool is_in(const hafti_io_link_t *list, int descriptor) {
    const haft_io_task_t *task = hafti_io_this_task();
    bool is = false;
    for (const hafti_io_link_t *link = list->next; link != list; link = link->next) {
        const close_now_t *now = HAFTI_IO_OWNER(link, close_now_t, link);
        is |= now->descriptor == descriptor && (task == NULL || now->task != task);
    }
    return is;
}

HAFTI_IO_COLD int hafti_io_await_close(int descriptor) {
    for (unsigned turns = 0;; hafti_io_relax(&turns)) {
        sigset_t before;
        lock_runs(&before);
        bool is_asked = is_in(&askers, descriptor), is_closing = is_in(&closing, descriptor);
        unlock_runs(&before);
        if (is_asked || !is_closing)
            return is_asked ? -EBADF : 0;
    }
}

/* ---- By a function of the caller's ---- */

/* A simulation does not know what runs outside of it: its thread sleeps. */
static haft_io_task_t *who_waits(void) {
    haft_io_task_t *task = hafti_io_this_task();
    return task != NULL && task->worker->simulated == NULL ? task : NULL;
}

static void await_word(close_now_t *now) {
    hafti_io_cell_t cell = {HAFTI_IO_WAITING, who_waits()};
    sigset_t before;
    lock_runs(&before);
    bool told = now->told;
    if (!told)
        now->cell = &cell;
    unlock_runs(&before);
    if (!told)
        hafti_io_cell_wait(&cell, HAFTI_IO_TO_THE_END, HAFT_IO_FOREVER,
                           "a descriptor to be closed");
}

static void end_waits(close_now_t *now) {
    HAFTI_IO_UNTAPED;
    for (known_t next; (next = next_run(now)).crew != NULL;) {
        close_in(next, now);
        await_word(now);
    }
}

static int close_by(int descriptor, int (*function)(void *), void *argument) {
    /* The function may throw. */
    __attribute__((cleanup(end))) close_now_t now = begin_close(descriptor, true);
    end_waits(&now);
    if (now.task != NULL)
        now.task->runner->closes = true;
    return function(argument);
}

/* A thread of a run outside of a task: the run closes after its next poll, or when the operation of
   a task has ended. */
static bool is_used(const hafti_io_descriptor_t *entry) {
    return (__atomic_load_n(&entry->uses, __ATOMIC_RELAXED) & ~HAFTI_IO_RELEASING) != 0;
}
static bool would_wait_for_itself(int descriptor) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    if (worker == NULL || worker->forked)
        return false;
    const hafti_io_descriptor_t *entry = known_to(worker->crew, descriptor, true);
    return entry != NULL && (!worker->shared || is_used(entry));
}

int haft_io_close_by(int descriptor, int (*function)(void *), void *argument) {
    if (hafti_io_is_simulated(descriptor))
        return -EBADF;
    const hafti_io_tape_t *tape = hafti_io_tape_here();
    if (tape != NULL && tape->replays) /* the tape decides how its waits end */
        return function(argument);
    if (hafti_io_this_task() != NULL) /* It may go on on another thread. */
        return close_by(descriptor, function, argument);
    if (would_wait_for_itself(descriptor))
        hafti_io_misuse(
            "haft_io_close_by was called for the descriptor %d on a thread of the run "
            "that uses it, outside of a task, as in a function of on_cancel: the thread "
            "would wait for itself. Call it in a task.",
            descriptor);
    int cancels;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
    int code = close_by(descriptor, function, argument);
    pthread_setcancelstate(cancels, &cancels);
    return code;
}

const haft_shown_t hafti_io_shown_runs[] = {HAFT_SHOWN_ADDRESS("runs", runs), HAFT_SHOWN_END};
