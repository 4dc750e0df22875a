/* SPDX-License-Identifier: MIT */
/*
 * Closing a descriptor that tasks of several runs may wait on: all runs of the process, and how one of them ends
 * the waits of its tasks for a thread that is not its own.
 *
 * A run that closes a descriptor ends the waits of its own tasks, and forgets it; then the next run that knows
 * it does the same, and the last one closes it. So who asks a run to close a descriptor has it closed everywhere.
 *
 *   the run         | its table of descriptors is | who closes for it
 *   is shared       | any thread's                | the thread that asks
 *   is alone        | its thread's                | its thread, later: the descriptor is handed over
 *
 * A descriptor that is handed over is open until its run's thread has taken it, which it does after its next poll,
 * or when the run ends: so nobody gets its number meanwhile. It is in the list `crew->handed_over`, by its number
 * plus one, which takes no memory: `entry->next` is the next, and nobody else puts it there while
 * `entry->handed_over` is true.
 *
 * A task may begin to wait just when another thread closes, for which no run knew the descriptor. Who closes counts
 * itself in `haft_io_closing_count`, then looks for a run that knows it, and is in the list `closing` if there is none.
 * Who waits says so in `waited_on`, then looks at the count: one of the two sees the other. The waiter lets a close of
 * its number end, and then asks the kernel for it: it is nobody's by then, or the next file's, as if the wait had
 * begun later.
 *
 * Where there is no other run, none of this is done: who closes counts itself in `alone`, and looks at `runs_count`.
 * A run that begins counts itself there, and waits until those who had looked before have closed; so its tasks
 * do not begin to wait beside them.
 */
#include "internal.h"

static haft_io_crew_t *runs;
static uint32_t runs_lock; /* of `runs` and `closing` */
static int runs_count;     /* any thread reads */
static int alone;          /* threads that close without a look at the runs; any thread */
static haft_io_link_t closing = {&closing, &closing};
unsigned haft_io_closing_count;

/* ---- The runs ---- */

/* No handler of a signal, which may close, interrupts who has the lock. */
static void lock_runs(sigset_t *before) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
    haft_io_guard(&runs_lock);
}
static void unlock_runs(const sigset_t *before) {
    haft_io_unguard(&runs_lock);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

void haft_io_run_begins(haft_io_crew_t *crew) {
    sigset_t before;
    lock_runs(&before);
    crew->next_run = runs;
    runs = crew;
    __atomic_store_n(&runs_count, runs_count + 1, __ATOMIC_SEQ_CST);
    unlock_runs(&before);
    unsigned turns = 0;
    while (__atomic_load_n(&alone, __ATOMIC_SEQ_CST) > 0)
        haft_io_relax(&turns);
}

void haft_io_run_ends(haft_io_crew_t *crew) {
    sigset_t before;
    lock_runs(&before);
    haft_io_crew_t **place = &runs;
    while (*place != NULL && *place != crew)
        place = &(*place)->next_run;
    if (*place != NULL) { /* There is none in a child of fork. */
        *place = crew->next_run;
        __atomic_store_n(&runs_count, runs_count - 1, __ATOMIC_RELEASE);
    }
    unlock_runs(&before);
    unsigned turns = 0;
    while (__atomic_load_n(&crew->closers, __ATOMIC_ACQUIRE) != 0)
        haft_io_relax(&turns);
    haft_io_take_handed_over(crew);
}

void haft_io_forget_runs(void) {
    runs = NULL;
    runs_lock = 0;
    runs_count = 0;
    alone = 0;
    haft_io_ring(&closing);
    haft_io_closing_count = 0;
}

/* ---- Handing over ---- */

static int hand_over(haft_io_crew_t *crew, haft_io_descriptor_t *entry, int descriptor) {
    haft_io_worker_t *worker = crew->workers[0];
    if (__atomic_exchange_n(&entry->handed_over, true, __ATOMIC_ACQ_REL))
        return -EBADF;
    uint32_t next = __atomic_load_n(&crew->handed_over, __ATOMIC_RELAXED);
    do
        entry->next = next;
    while (!__atomic_compare_exchange_n(&crew->handed_over, &next, (uint32_t)descriptor + 1, true,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    worker->backend->interrupt(worker);
    return 0;
}

void haft_io_take_handed_over(haft_io_crew_t *crew) {
    haft_io_worker_t *worker = crew->workers[0];
    uint32_t next = __atomic_exchange_n(&crew->handed_over, 0, __ATOMIC_SEQ_CST);
    while (next != 0) {
        int descriptor = (int)(next - 1);
        haft_io_descriptor_t *entry = haft_io_descriptor(crew->descriptors, descriptor, false);
        next = entry->next;
        __atomic_store_n(&entry->handed_over, false, __ATOMIC_RELEASE);
        worker->backend->close(worker, descriptor);
    }
}

/* ---- Closing ---- */

/* A run that has the system's close called, or has handed it on, has forgotten the descriptor before. */
static haft_io_descriptor_t *known_to(const haft_io_crew_t *crew, int descriptor) {
    haft_io_descriptor_t *entry = haft_io_descriptor(crew->descriptors, descriptor, false);
    return entry != NULL &&
                   (__atomic_load_n(&entry->waited_on, __ATOMIC_SEQ_CST) || haft_io_is_used(entry))
               ? entry
               : NULL;
}

typedef struct close_now {
    haft_io_link_t link; /* in `closing` */
    int descriptor;
} close_now_t;

static int close_unknown(close_now_t *now) {
    sigset_t before;
    int code = haft_io_close_file(now->descriptor);
    lock_runs(&before);
    haft_io_unlink(&now->link);
    unlock_runs(&before);
    return code;
}

static HAFT_IO_COLD int close_in_next_run(int descriptor) {
    close_now_t now = {.descriptor = descriptor};
    haft_io_descriptor_t *entry = NULL;
    sigset_t before;
    lock_runs(&before);
    __atomic_fetch_add(&haft_io_closing_count, 1, __ATOMIC_SEQ_CST);
    haft_io_crew_t *crew = runs;
    while (crew != NULL && (entry = known_to(crew, descriptor)) == NULL)
        crew = crew->next_run;
    if (crew != NULL)
        __atomic_fetch_add(&crew->closers, 1, __ATOMIC_RELAXED);
    else
        haft_io_append(&closing, &now.link);
    unlock_runs(&before);
    int code;
    if (crew == NULL) {
        code = close_unknown(&now);
    } else {
        code = crew->root.shared ? crew->workers[0]->backend->close(crew->workers[0], descriptor)
                                 : hand_over(crew, entry, descriptor);
        __atomic_fetch_sub(&crew->closers, 1, __ATOMIC_RELEASE);
    }
    __atomic_fetch_sub(&haft_io_closing_count, 1, __ATOMIC_RELEASE);
    return code;
}

/* False: there are other runs than the caller's own. */
static bool close_alone(int descriptor, int *code) {
    const haft_io_worker_t *worker = haft_io_worker();
    int own = worker != NULL && worker->simulated == NULL;
    __atomic_fetch_add(&alone, 1, __ATOMIC_SEQ_CST);
    bool is_alone = __atomic_load_n(&runs_count, __ATOMIC_SEQ_CST) <= own;
    if (HAFT_IO_LIKELY(is_alone))
        *code = haft_io_close_file(descriptor);
    __atomic_fetch_sub(&alone, 1, __ATOMIC_RELEASE);
    return is_alone;
}

int haft_io_close_elsewhere(int descriptor) {
    if (__libc_single_threaded) /* Nobody can begin a run meanwhile. */
        return haft_io_close_file(descriptor);
    int cancels, code;
    /* pthread_cancel would leave the list, and the counts, as they are in between. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
    if (HAFT_IO_UNLIKELY(!close_alone(descriptor, &code)))
        code = close_in_next_run(descriptor);
    pthread_setcancelstate(cancels, &cancels);
    return code;
}

static bool is_being_closed(int descriptor) {
    bool is = false;
    sigset_t before;
    lock_runs(&before);
    for (const haft_io_link_t *link = closing.next; link != &closing; link = link->next)
        is |= HAFT_IO_OWNER(link, close_now_t, link)->descriptor == descriptor;
    unlock_runs(&before);
    return is;
}

HAFT_IO_COLD void haft_io_await_close(int descriptor) {
    unsigned turns = 0;
    while (is_being_closed(descriptor))
        haft_io_relax(&turns);
}
