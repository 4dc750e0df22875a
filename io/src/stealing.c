/* SPDX-License-Identifier: MIT */
/*
 * Runs of several threads: where new tasks wait to be started, which thread starts them, and which
 * threads sleep. (Moving tasks that can go on wait in the same queues.)
 *
 *   haft_io_spawn -> the spawner's queue (queue.h) -> its own worker, or one that has nothing to do
 *                 -> the crew's overflow, when that is full, or by its turn -> any worker
 *
 * A thread that finds nothing to do searches for a while, then sleeps in its back end (parking.h).
 * It is woken for mail, by what it waits for there, or to search. It searches for longer when that
 * has paid lately: something was found, or it was woken by another thread as soon as it slept. If
 * other processes want its processor, a searching thread uses up its share of it, and does not get
 * it when there is work. So a thread that was interrupted for long during a search goes to sleep at
 * once the next times.
 *
 * Bringing a task to another thread takes longer than running a short one, and tasks that talk to
 * each other are faster on one thread. So a thread steals a task only after some scans during which
 * the task's worker did next to nothing, and after more scans from a quick worker. (The first tasks
 * of a worker are slow, because their stacks are new.) Scans interrupted by incoming mail still
 * count, or a worker with much mail would never steal. Scanning disturbs the victim's cache lines,
 * and a thief that shares the victim's processor keeps it from running; so scans are spaced out,
 * and the thief yields between them.
 *
 * Where tasks are short, their worker takes them all before they are worth stealing, and each that
 * it spawns would wake the thief for nothing. So a thread that has searched in vain, although there
 * were tasks, dozes: it looks again after a while, and nobody wakes it to search. It steals what it
 * sees at two such looks.
 *
 * A task that serves a connection usually starts at once where it was spawned, and waits there: it
 * would never be stolen, and the accepting thread would have them all. So the first task spawned
 * after an accept goes to the worker that has the fewest of these, and stays there.
 *
 * A worker takes its own tasks by age. The exception is a join of a new task in the joiner's own
 * queue: then the newest, which are its siblings, go first, down to that task. So a batch runs
 * without a switch for each, a tree runs depth first, and thieves find the oldest tasks, which are
 * the largest parts of a tree.
 */
#include "ready.h"

#include <sched.h>
#include <stdlib.h>

enum {
    LEAST_SEARCHES = 4,      /* before a thread sleeps */
    MOST_SEARCHES = 128,     /* the same; about as long as it takes to sleep and be woken */
    STOLEN_AT_ONCE = 32,     /* most */
    OVERFLOW_TURN = 16,      /* after this many tasks the overflow comes first */
    OVERFLOW_AT_FIRST = 256, /* its size */
    LOOKS_BETWEEN_YIELDS = 4,
    LEAST_UNSEARCHED = 256, /* sleeps without a search, after one that was interrupted */
    MOST_UNSEARCHED = 8192,
    FEW_STEPS = 2, /* of a worker from one look at its queue to the next, which is a microsecond */
    LEAST_LOOKS = 16, /* at a task, before it is stolen from a worker that takes so few steps */
    MOST_LOOKS = 32,  /* before it is stolen from any */
    LOOKS_AFTER_DOZES = 2
};

/* ---- The overflow ---- */

static size_t overflow_count(const hafti_io_crew_t *crew) {
    return __atomic_load_n(&crew->overflow_count, __ATOMIC_SEQ_CST);
}

/* Under the lock. */
static HAFTI_IO_COLD bool overflow_grow(hafti_io_crew_t *crew) {
    size_t size = crew->overflow_size != 0 ? crew->overflow_size * 2 : OVERFLOW_AT_FIRST;
    haft_io_task_t **tasks = malloc(size * sizeof *tasks);
    if (tasks == NULL)
        return false;
    for (size_t i = 0; i < crew->overflow_count; i++)
        tasks[i] = crew->overflow[(crew->overflow_first + i) % crew->overflow_size];
    free(crew->overflow);
    crew->overflow = tasks;
    crew->overflow_first = 0;
    crew->overflow_size = size;
    return true;
}

/* False: no memory. */
static bool overflow_put(hafti_io_crew_t *crew, haft_io_task_t *task) {
    hafti_io_guard(&crew->lock);
    bool fits = crew->overflow_count < crew->overflow_size || overflow_grow(crew);
    if (fits) {
        crew->overflow[(crew->overflow_first + crew->overflow_count) % crew->overflow_size] = task;
        HAFTI_IO_SHOW(&crew->overflow_count, crew->overflow_count + 1);
    }
    hafti_io_unguard(&crew->lock);
    return fits;
}

static haft_io_task_t *overflow_take(hafti_io_crew_t *crew) {
    if (overflow_count(crew) == 0)
        return NULL;
    haft_io_task_t *task = NULL;
    hafti_io_guard(&crew->lock);
    if (crew->overflow_count != 0) {
        task = crew->overflow[crew->overflow_first];
        crew->overflow_first = (crew->overflow_first + 1) % crew->overflow_size;
        __atomic_store_n(&crew->overflow_count, crew->overflow_count - 1, __ATOMIC_SEQ_CST);
    }
    hafti_io_unguard(&crew->lock);
    return task;
}

/* ---- Waking ---- */

static void wake_one(hafti_io_crew_t *crew) {
    int index = hafti_io_parking_wake(&crew->parking);
    if (HAFTI_IO_UNLIKELY(index >= 0))
        hafti_io_rouse(crew->workers[index]);
}

static bool anything_offered(const hafti_io_crew_t *crew) {
    unsigned count = __atomic_load_n(&crew->count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < count; i++)
        if (hafti_io_queue_count(&crew->workers[i]->queue) != 0)
            return true;
    return overflow_count(crew) != 0;
}

void hafti_io_end_run(hafti_io_crew_t *crew) {
    __atomic_store_n(&crew->ended, true, __ATOMIC_SEQ_CST);
    unsigned count = __atomic_load_n(&crew->count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < count; i++)
        hafti_io_rouse(crew->workers[i]);
}

/* ---- Offering and taking ---- */

void hafti_io_offer(hafti_io_worker_t *worker, haft_io_task_t *task) {
    if (task->runner == NULL)
        task->number = hafti_io_queue_tail(hafti_io_queue_look(&worker->queue));
    else
        hafti_io_set_state(task, HAFTI_IO_OFFERED);
    if (HAFTI_IO_UNLIKELY(!hafti_io_queue_put(&worker->queue, task)) &&
        !overflow_put(worker->crew, task)) {
        /* No memory to share it by: it stays here. */
        if (task->runner != NULL)
            hafti_io_settle(worker, task);
        hafti_io_enqueue(worker, task);
        return;
    }
    worker->offered = true;
    wake_one(worker->crew);
}

/* ---- Spreading ---- */

/* The worker that has the fewest such tasks; of several, the spawner's own, or the next. */
static hafti_io_worker_t *least_loaded(hafti_io_worker_t *worker) {
    hafti_io_crew_t *crew = worker->crew;
    unsigned count = __atomic_load_n(&crew->count, __ATOMIC_ACQUIRE);
    hafti_io_worker_t *least = worker;
    unsigned fewest = __atomic_load_n(&worker->spread, __ATOMIC_RELAXED);
    for (unsigned i = 1; i < count && fewest != 0; i++) {
        hafti_io_worker_t *other = crew->workers[(worker->index + i) % count];
        unsigned spread = __atomic_load_n(&other->spread, __ATOMIC_RELAXED);
        if (spread < fewest) {
            least = other;
            fewest = spread;
        }
    }
    return least;
}

void hafti_io_spread(hafti_io_worker_t *worker, haft_io_task_t *task) {
    if (task->moves) {
        hafti_io_offer(worker, task);
        return;
    }
    hafti_io_worker_t *least = least_loaded(worker);
    __atomic_fetch_add(&least->spread, 1, __ATOMIC_RELAXED);
    task->spread = true;
    if (least == worker)
        hafti_io_enqueue(worker, task);
    else
        hafti_io_post(least, task);
}

/* ---- Newest first ---- */

static bool is_inside(uint64_t ends, uint16_t number) {
    return (uint16_t)(number - hafti_io_queue_head(ends)) < hafti_io_queue_inside(ends);
}

void hafti_io_dive_to(hafti_io_worker_t *worker, const haft_io_task_t *task) {
    uint64_t ends = hafti_io_queue_look(&worker->queue);
    if (is_inside(ends, task->number) && hafti_io_queue_read(&worker->queue, task->number) == task)
        worker->dives_to = task->number;
}

/* NULL: the oldest has its turn. */
static haft_io_task_t *take_newest(hafti_io_worker_t *worker) {
    if (worker->dives_to < 0)
        return NULL;
    if (!is_inside(hafti_io_queue_look(&worker->queue), (uint16_t)worker->dives_to)) {
        worker->dives_to = -1;
        return NULL;
    }
    if (hafti_io_may_favour(worker)) {
        haft_io_task_t *task = hafti_io_queue_take_newest(&worker->queue);
        /* A task that moves and has started would be the newest again after each yield. */
        if (task != NULL && task->runner != NULL)
            worker->dives_to = -1;
        return task;
    }
    /* Takes one of the oldest in between, so that no task starves. */
    worker->fair_at = worker->counters.tasks;
    return NULL;
}

static haft_io_task_t *take_oldest(hafti_io_worker_t *worker) {
    void *own = NULL;
    bool overflow_first = worker->resumed % OVERFLOW_TURN == 0;
    haft_io_task_t *task = overflow_first ? overflow_take(worker->crew) : NULL;
    if (task == NULL && hafti_io_queue_take(&worker->queue, &own, 1) != 0)
        task = own;
    return task != NULL || overflow_first ? task : overflow_take(worker->crew);
}

haft_io_task_t *hafti_io_take_offered(hafti_io_worker_t *worker) {
    haft_io_task_t *task = take_newest(worker);
    if (task == NULL)
        task = take_oldest(worker);
    if (task == NULL)
        return NULL;
    HAFTI_IO_COUNT(worker->queue.started);
    if (HAFTI_IO_UNLIKELY(task->runner != NULL))
        hafti_io_settle(worker, task);
    return task;
}

/* ---- Stealing ---- */

/* A sleep that was shorter was not worth it. */
static const int64_t SHORT_SLEEP = 100 * HAFT_IO_MICROSECOND;

/* Whether to steal a task that was in the queue at an earlier look. */
static bool is_worth_it(const hafti_io_worker_t *other, hafti_io_seen_t *seen, bool dozed) {
    uint64_t ends = hafti_io_queue_look(&other->queue);
    uint16_t steps = (uint16_t)(hafti_io_queue_puts(ends) +
                                __atomic_load_n(&other->queue.started, __ATOMIC_RELAXED));
    bool is_quick = (uint16_t)(steps - seen->steps) > FEW_STEPS;
    seen->steps = steps;
    if (hafti_io_queue_inside(ends) == 0) {
        seen->looks = 0;
        return false;
    }
    if (seen->looks == 0 || (int16_t)(seen->end - hafti_io_queue_head(ends)) <= 0) {
        seen->end = hafti_io_queue_tail(ends);
        seen->looks = 1;
        return false;
    }
    return ++seen->looks >= (dozed ? LOOKS_AFTER_DOZES : is_quick ? MOST_LOOKS : LEAST_LOOKS);
}

/* Takes half of what the other has, into the own queue, which is empty. */
static haft_io_task_t *steal_from(hafti_io_worker_t *worker, hafti_io_worker_t *other,
                                  hafti_io_seen_t *seen) {
    if (!is_worth_it(other, seen, worker->doze != 0))
        return NULL;
    seen->looks = 0;
    void *tasks[STOLEN_AT_ONCE];
    uint32_t count = hafti_io_queue_take(&other->queue, tasks, STOLEN_AT_ONCE);
    if (count == 0)
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        HAFTI_IO_COUNT(worker->counters.steals);
        if (hafti_io_is_traced())
            hafti_io_trace(HAFTI_IO_EVENT_STEAL, tasks[i], NULL, false, other->index, 0);
        if (i != 0)
            hafti_io_queue_put(&worker->queue, tasks[i]);
    }
    worker->offered |= count > 1;
    haft_io_task_t *first = tasks[0];
    if (first->runner != NULL)
        hafti_io_settle(worker, first);
    return first;
}

static haft_io_task_t *look_everywhere(hafti_io_worker_t *worker) {
    hafti_io_crew_t *crew = worker->crew;
    haft_io_task_t *task = hafti_io_take_offered(worker);
    unsigned count = __atomic_load_n(&crew->count, __ATOMIC_ACQUIRE);
    for (unsigned i = 1; i < count && task == NULL; i++) {
        unsigned other = (worker->index + i) % count;
        task = steal_from(worker, crew->workers[other], &worker->seen[other]);
    }
    return task;
}

/* ---- Searching and sleeping ---- */

static bool has_mail(const hafti_io_worker_t *worker) {
    return __atomic_load_n(&worker->inbox, __ATOMIC_SEQ_CST) != NULL ||
           __atomic_load_n(&worker->crew->ended, __ATOMIC_SEQ_CST);
}

/* Pauses until the next scan, because each disturbs working threads. True: mail has come. */
static bool pause_for_mail(const hafti_io_worker_t *worker) {
    enum { MOMENTS = 4, INSTRUCTIONS = 16 };
    for (int i = 0; i < MOMENTS; i++) {
        for (int j = 0; j < INSTRUCTIONS; j++)
#if defined(__x86_64__)
            __builtin_ia32_pause();
#else
            __asm__ volatile("yield" : : : "memory");
#endif
        if (has_mail(worker))
            return true;
    }
    return false;
}

/* Longer than some looks take, and shorter than what the system gives another process at a time. */
static const int64_t INTERRUPTED = 100 * HAFT_IO_MICROSECOND;

/* Yields to the thread that has the work, and may be waiting for this processor. */
static HAFTI_IO_COLD void give_way(hafti_io_worker_t *worker, int64_t *since) {
    sched_yield();
    int64_t now = hafti_io_clock();
    if (now - *since > INTERRUPTED) {
        worker->unsearched = worker->unsearched_next;
        if (worker->unsearched_next < MOST_UNSEARCHED)
            worker->unsearched_next *= 2;
    }
    *since = now;
}

/* In the longest a worker starts fewer tasks than hafti_io_seen_t.end tells apart. */
static const int64_t FIRST_DOZE = 100 * HAFT_IO_MICROSECOND,
                     LONGEST_DOZE = 800 * HAFT_IO_MICROSECOND;

static void searched_in_vain(hafti_io_worker_t *worker) {
    if (anything_offered(worker->crew)) { /* it has not waited for long enough yet */
        worker->searches = MOST_SEARCHES;
        worker->doze = worker->doze == 0             ? FIRST_DOZE
                       : worker->doze < LONGEST_DOZE ? 2 * worker->doze
                                                     : LONGEST_DOZE;
        return;
    }
    worker->doze = worker->doze > FIRST_DOZE ? worker->doze / 2 : 0;
    if (worker->searches > LEAST_SEARCHES)
        worker->searches /= 2;
}

haft_io_task_t *hafti_io_search(hafti_io_worker_t *worker) {
    if (!worker->searching) {
        worker->searching = true;
        hafti_io_parking_search(&worker->crew->parking);
    }
    int64_t since = worker->unsearched == 0 ? hafti_io_clock() : 0;
    const unsigned most = worker->doze != 0 ? 1 : worker->searches;
    for (unsigned i = 0; i < most; i++) {
        haft_io_task_t *task = look_everywhere(worker);
        if (task != NULL)
            worker->doze = 0;
        if (task == NULL && worker->unsearched != 0)
            break;
        if (task != NULL || pause_for_mail(worker)) {
            worker->searches = MOST_SEARCHES;
            return task;
        }
        if (i % LOOKS_BETWEEN_YIELDS == LOOKS_BETWEEN_YIELDS - 1)
            give_way(worker, &since);
    }
    searched_in_vain(worker);
    return NULL;
}

void hafti_io_stops_searching(hafti_io_worker_t *worker) {
    worker->searching = false;
    if (hafti_io_parking_found(&worker->crew->parking) && anything_offered(worker->crew))
        wake_one(worker->crew);
}

bool hafti_io_falls_asleep(hafti_io_worker_t *worker) {
    __atomic_store_n(&worker->sleeping, 1, __ATOMIC_SEQ_CST);
    worker->dozes = worker->doze != 0;
    if (worker->dozes)
        hafti_io_parking_found(&worker->crew->parking);
    else
        hafti_io_parking_sleep(&worker->crew->parking, worker->index);
    worker->searching = false;
    worker->slept_at = hafti_io_clock();
    return (worker->dozes || !anything_offered(worker->crew)) && !has_mail(worker);
}

void hafti_io_rises(hafti_io_worker_t *worker) {
    bool was_roused = __atomic_exchange_n(&worker->sleeping, 0, __ATOMIC_RELAXED) == 0;
    if (worker->unsearched != 0)
        worker->unsearched--;
    else
        worker->unsearched_next = LEAST_UNSEARCHED; /* Nothing has interrupted the last search. */
    if (was_roused && hafti_io_clock() - worker->slept_at < SHORT_SLEEP)
        worker->searches = MOST_SEARCHES;
    worker->searching =
        !worker->dozes && hafti_io_parking_rise(&worker->crew->parking, worker->index);
    worker->dozes = false;
}

void hafti_io_settle(hafti_io_worker_t *worker, haft_io_task_t *task) {
    task->worker = worker;
    task->runner->worker = worker;
    hafti_io_set_state(task, HAFTI_IO_READY);
}
