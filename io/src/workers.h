/* SPDX-License-Identifier: MIT */
/* The threads of a run, and what they share. */
#ifndef HAFTI_IO_WORKERS_H
#define HAFTI_IO_WORKERS_H

#include "state.h"
#include "parking.h"
#include "queue.h"
#include "calls.h"

#include <haft/shown.h>
#include <haft/turns.h>

/* Returns a record that was never used; NULL: no memory. It stays a record of this kind, of
   whichever worker. */
void *hafti_io_new_record(hafti_io_worker_t *worker, hafti_io_records_t *records, size_t size);
/* Frees all records, of both kinds, at the end of the run. */
void hafti_io_free_records(hafti_io_worker_t *worker);
/* For debuggers, as the further lists of this name (shown.c). */
extern const haft_shown_t hafti_io_shown_records[];

struct hafti_io_descriptor; /* descriptors.h */

enum { HAFTI_IO_TASKS_BETWEEN_POLLS = 64 }; /* at most, so that neither I/O nor timers starve */

/*
 * The kinds of operations on a descriptor: the name of each for people, and the events of poll(2)
 * after which it is tried again (of POLL its own).
 *
 *   `buffer` is       | of
 *   where to tell which memory it is | READ_LENT
 *   an array of `size` parts         | READ_PARTS, WRITE_PARTS
 *   a struct msghdr                  | RECEIVE_MESSAGE, SEND_MESSAGE
 *   a bool, whether it has begun     | CONNECT
 *   the bytes                        | the others that transfer some, up to SEND
 */
#define HAFTI_IO_KINDS(one)                                                                        \
    one(READ, "read", POLLIN) one(WRITE, "write", POLLOUT) one(RECEIVE, "receive", POLLIN)         \
        one(READ_LENT, "read", POLLIN) one(READ_PARTS, "read", POLLIN)                             \
            one(WRITE_PARTS, "write", POLLOUT) one(RECEIVE_MESSAGE, "receive", POLLIN)             \
                one(SEND_MESSAGE, "send", POLLOUT) one(SEND, "send", POLLOUT)                      \
                    one(ACCEPT, "accept", POLLIN) one(CONNECT, "connect", POLLOUT)                 \
                        one(POLL, "poll", 0)

#define HAFTI_IO_KIND_ITSELF(kind, name, events) HAFTI_IO_##kind,
enum hafti_io_kind { HAFTI_IO_KINDS(HAFTI_IO_KIND_ITSELF) };

struct hafti_io_operation {
    enum hafti_io_kind kind;
    int descriptor;
    int flags; /* POLL: events */
    void *buffer;
    size_t size;
    struct sockaddr *address;
    socklen_t *address_size;
};
const char *hafti_io_kind_name(enum hafti_io_kind kind);

/* A send that is made later, and the cell of the task that waits for the answer. */
typedef struct {
    hafti_io_cell_t *cell;
    hafti_io_lent_t *lent; /* to be given back; if it has failed, the sender's again, or NULL */
    uint64_t settled;      /* the back end's */
    unsigned place;        /* likewise */
    bool failed;
    int result; /* then: an error, or how many bytes were sent */
} hafti_io_sending_t;
enum { HAFTI_IO_LATER = -4097 }; /* no error number is that large */

/* `buffer` is as of the operation of that kind. */
typedef ssize_t hafti_io_transfer_t(hafti_io_runner_t *runner, enum hafti_io_kind kind,
                                    int descriptor, const void *buffer, size_t size);
/* One set of operations that wait: epoll, io_uring, simulated. */
typedef struct hafti_io_backend {
    const char *name;
    int (*start)(hafti_io_worker_t *worker); /* 0 or a negative error number */
    void (*stop)(hafti_io_worker_t *worker);
    /* Called on the stack of a task, which waits in it. */
    ssize_t (*operate)(hafti_io_runner_t *runner, hafti_io_operation_t *operation);
    /* The same for the most frequent operations in a run that is alone: READ, RECEIVE without flags
       and address, READ_LENT and WRITE. Fewer frames lie on the stack of a waiting task, and so
       fewer returns are mispredicted when it goes on: on io_uring this saves 0.3 us of a message of
       8 us, on epoll a third of the instructions (bench/io, echo). A back end that has no shorter
       way has hafti_io_transfer_generally, which calls `operate`. */
    hafti_io_transfer_t *transfer;
    /* From now on bytes that can be read there wake the waiters, also bytes that have come already;
       the caller becomes a waiter before the next poll. False: they do not, or there is something
       to read. NULL: they never do. */
    bool (*watch)(hafti_io_worker_t *worker, struct hafti_io_descriptor *entry, int descriptor);
    /* Sends memory that is lent, of the last message before a rest. Returns how many bytes were
       sent, or an error; or HAFTI_IO_LATER: the memory is the back end's, which sends it before the
       next poll, and if that fails stores the error in `sending` and wins its cell. NULL: the back
       end cannot. */
    ssize_t (*send_last)(hafti_io_worker_t *worker, int descriptor, hafti_io_sending_t *sending,
                         hafti_io_lent_t *lent, size_t size);
    /* Called after HAFTI_IO_LATER, when the cell was won: sends the memory, if there was no
       poll. */
    void (*settle)(hafti_io_worker_t *worker, const hafti_io_sending_t *sending);
    int (*close)(hafti_io_worker_t *worker, int descriptor);
    /* The descriptor, which was waited on by the worker, is about to be closed; any thread. NULL:
       nothing. */
    void (*forget)(hafti_io_worker_t *worker, int descriptor);
    /* haft_io_poll, on the stack of a task as `operate`. */
    int (*poll_several)(hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                        int64_t deadline, unsigned turn);
    /* Wins the cells of waits whose events have come; waits for events at most this long (negative:
       forever). */
    void (*poll)(hafti_io_worker_t *worker, int64_t nanoseconds);
    void (*interrupt)(hafti_io_worker_t *worker); /* ends a poll; any thread */
    /* The descriptor that is readable when a poll would find something, the same each time, or an
       error. It is called after a poll, by a run in steps. */
    int (*descriptor)(const hafti_io_worker_t *worker);
} hafti_io_backend_t;

/* Where a run in steps stands still (stepping.c). */
HAFT_EFFECT(hafti_io_pause, void, {});
typedef struct hafti_io_pauses {
    int descriptor;
    int64_t deadline; /* of its first timer */
} hafti_io_pauses_t;
HAFTI_IO_COLD __attribute__((noreturn)) void hafti_io_waits_in_child(const haft_io_task_t *task);

/* The time at which a simulation begins. */
#define HAFTI_IO_BEGINNING HAFT_IO_SECOND

/* The ready tasks of a simulation, from which the next is drawn. They are moved here from the
   worker's `ready`, and stay linked; one goes back, so that `ready` is empty only if no task is
   ready. */
typedef struct hafti_io_lots {
    haft_io_task_t **tasks;
    size_t count, room;
    hafti_io_link_t ring;
} hafti_io_lots_t;

/* The state that replaces chance and time in a run for tests (simulation.c). */
typedef struct hafti_io_simulated {
    uint64_t seed;
    uint64_t random; /* the state of the generator */
    /* A second stream, for the bytes that the program asks for: it may ask once in a process and
       keep the bytes, and later runs must still repeat. */
    uint64_t random_bytes;
    int64_t now;
    int64_t date; /* in seconds, when `now` was HAFTI_IO_BEGINNING */
    hafti_io_lots_t lots;
    bool short_counts;
    bool network, files;
    unsigned faults_one_in;
    unsigned switches_one_in;
    const hafti_io_backend_t *backend;
    const haft_io_calls_t *calls;
} hafti_io_simulated_t;
static inline struct timespec hafti_io_simulated_date(const hafti_io_simulated_t *simulated) {
    int64_t passed = simulated->now - HAFTI_IO_BEGINNING;
    return (struct timespec){simulated->date + passed / HAFT_IO_SECOND, passed % HAFT_IO_SECOND};
}

enum { HAFTI_IO_MOST_KEPT = 256 }; /* blocks of lent memory */
enum { HAFTI_IO_PLACES = 256 };    /* places of waits that a worker remembers */

/* A searching worker's memory of another's queue (stealing.c). */
typedef struct hafti_io_seen {
    uint16_t end;   /* where the queue ended when this look for it began */
    uint16_t looks; /* scans since then, while not all of what was there has gone */
    uint16_t steps; /* of its owner's until the last look: tasks put, and started */
} hafti_io_seen_t;

/* The fields that every turn of the loop and every operation touches stand first, on few lines of
   the processor's caches: where little is done between two polls, the kernel evicts them
   meanwhile. */
struct hafti_io_worker {
    hafti_io_link_t
        ready; /* the queue of tasks that can run here, and of new ones that must not be stolen */
    hafti_io_link_t polled; /* the queue of those that the last poll has woken */
    hafti_io_link_t *woken; /* where what can go on goes: `ready`; `polled` while the loop polls */
    unsigned foreseen;      /* so many of `polled`, from the first on, have been prefetched */
    bool shared;            /* the run is */
    /* The run is not shared, this is no child of fork, no close is put off, and no trace or record
       is kept: then frequent work takes short paths, which saves 0.7 us of a message of 9 us on
       epoll, and a fifth of the time of one through a channel (bench/io, echo and channel). Rarer
       conditions are tested at the end of these paths, so they cost nothing on them. */
    bool plain;
    bool favours;        /* the first of `ready` goes before tasks that have not started */
    bool searching;      /* counted as such in the crew's parking */
    unsigned operations; /* of the running task's turn, by their weight */
    unsigned resumed;    /* tasks; queues take turns by it; any thread reads */
    unsigned look_at;    /* at this count of `resumed` the loop looks at more than `ready` */
    unsigned index;      /* in the crew */
    /* A line ends. */
    hafti_io_crew_t *crew;
    const hafti_io_backend_t *backend;
    void *backend_state;
    haft_turn_t turn; /* of the loop */
    hafti_io_runner_t
        *running;        /* NULL: between tasks; read by the watchdog, also in a signal handler */
    int *error;          /* errno: of the thread, or of the storage on which the code stands */
    size_t waiting;      /* tasks that wait for the back end */
    unsigned rounds;     /* of the loop: polls, done or not; any thread reads */
    unsigned lent_count; /* of `lent` */
    /* A line ends. */
    haft_io_task_t *inbox; /* tasks readied by other threads, last first; any thread */
    int sleeping;          /* in a poll that may block; any thread */
    int posting;           /* threads that put something into the inbox right now */
    int64_t clock;        /* when it polled last; while it has no timer, some milliseconds before */
    bool forked;          /* this is a child of the process that it was made in */
    bool times_polls;     /* for counters.polling */
    uint16_t turn_begins; /* a turn begins at this count of `operations`: not 0 if a simulation may
                             switch at each */
    unsigned polled_at;   /* `resumed` at the last poll */
    unsigned unlooked;    /* number resumed before the first look; in a simulation 0 */
    bool offered;         /* there may be new tasks in `queue` or the overflow */
    bool by_loop;         /* a task that yields does not hand over as ever: `forked`, or `owns` */
    hafti_io_timers_t timers;        /* the first words of which belong to the line */
    hafti_io_simulated_t *simulated; /* NULL: a real run */
    struct hafti_io_tape *tape;      /* of a run that is recorded or replayed; or NULL */
    /* The calls on descriptors of the system, and on those of a simulation; and by which it makes
       sockets and names files. Chosen when the run begins. */
    const haft_io_calls_t *calls, *simulated_calls, *network_calls, *file_calls;
    haft_io_counters_t counters;               /* any thread reads */
    hafti_io_lent_t *lent[HAFTI_IO_MOST_KEPT]; /* that its next reads may have */
    unsigned put_off;  /* closes that are left to users of the descriptor; in a run that is alone */
    unsigned searches; /* how often it looks for work before it sleeps */
    int64_t slept_at;  /* when it slept last */
    int64_t doze; /* nobody wakes it to search in its next sleep, of at most so long; 0: a sleep
                          is one until it is woken */
    bool dozes;   /* in such a sleep */
    const haft_io_around_sleep_t *around_sleep; /* or NULL */
    hafti_io_pauses_t *pauses;                  /* in place of sleeping; or NULL */
    unsigned unsearched,
        unsearched_next; /* how often it sleeps without a search, now and the next time */
    int epoll, waker;    /* or -1: see epoll.c, waker.c */
    hafti_io_runner_t *idle;
    unsigned idle_count;
    unsigned free_count; /* counted in a shared run only */
    haft_io_task_t *free;
    hafti_io_runner_t *free_runners; /* records without a fiber */
    hafti_io_records_t tasks, runners;
    hafti_io_block_t *blocks; /* of both */
    uint64_t fair_at;         /* the count of tasks when a waiter was not favoured */
    int dives_to; /* the newest offered go first, down to this number; negative: the oldest do */
    pthread_t thread;
    pid_t thread_number;                         /* the system's, for haft-top and debuggers */
    struct hafti_io_glimpse *glimpse;            /* asked for of its thread; any thread */
    hafti_io_seen_t seen[HAFTI_IO_MOST_THREADS]; /* by index in the crew */
    /* Once it has had a task with thread-locals of its own (own_threads.h): what the thread pointer
       leads to now, and what it leads to between tasks. */
    bool owns;
    struct hafti_io_own_thread *stands_on, *home;
    uint64_t place_of_home[8];
    uint64_t looked_at[HAFTI_IO_PLACES]; /* places where its tasks have waited (initialisers.c) */
    unsigned spread;        /* tasks that were spread to it, and have not ended; any thread */
    hafti_io_queue_t queue; /* of new tasks, in a shared run; any thread takes */
};
_Static_assert(offsetof(hafti_io_worker_t, crew) == HAFTI_IO_LINE &&
                   offsetof(hafti_io_worker_t, inbox) == 2 * HAFTI_IO_LINE &&
                   offsetof(hafti_io_worker_t, timers.due) < 3 * HAFTI_IO_LINE,
               "lines end where it is said");

/* The state that the workers of a run share; the first worker is the thread that has called
   haft_io_run. */
struct hafti_io_crew {
    hafti_io_worker_t *workers[HAFTI_IO_MOST_THREADS];
    int64_t date_offset; /* the date minus the clock, when the run began; for debuggers */
    unsigned count;      /* any thread reads */
    bool ended;          /* the last task has; any thread */
    hafti_io_parking_t parking;
    haft_io_scope_t root;
    haft_io_task_t *main; /* until it has ended; if `root` is split, by the first worker's thread */
    struct hafti_io_descriptors *descriptors;
    haft_fiber_options_t stacks; /* of tasks */
    int blocking_threads;
    bool times_polls;
    bool own_thread_locals;     /* of all tasks */
    bool observed;              /* by threads that are none of its own */
    struct hafti_io_pool *pool; /* under the lock until it is there */
    uint32_t lock;              /* for what follows */
    haft_io_task_t **overflow;  /* a ring of new tasks that a queue had no room for */
    size_t overflow_first, overflow_count, overflow_size; /* the count is read by any thread */
    haft_io_task_t *spare; /* records of tasks that a worker had too many of */
    uint32_t look_lock;    /* held while walking the stacks of suspended tasks */
    bool looked_at;        /* stacks are being walked: a thread that is to resume a task waits for
                              the lock; any thread */
    unsigned asked;        /* by signals and other threads (asked.c); any thread */
    void (*do_as_asked)(hafti_io_crew_t *crew);
    const haft_handler_t
        *operations; /* what handles them in place on a task's stack; its state is the runner */
    uint32_t handed_over; /* descriptors to close, in a run that is alone; any thread */
    unsigned closers;     /* threads that close a descriptor for this run; any thread */
    hafti_io_crew_t *next_run;
    uint64_t number; /* greater than those of all runs that began earlier; not 0 */
    int dump_signal, trace_signal;
    hafti_io_crew_t *next_listening; /* of those with a signal */
    struct hafti_io_watchdog *watchdog;
    struct hafti_io_top *top;
};
/* Whether operations need not count themselves on their descriptors (descriptors.c). */
static inline bool hafti_io_uses_uncounted(const hafti_io_worker_t *worker) {
    return HAFTI_IO_LIKELY(worker->plain) ||
           (!worker->shared && !worker->forked && worker->put_off == 0);
}
/* Computes `plain` after one of its conditions has changed; by the worker's thread. A trace that
   another thread has begun or ended is seen when the worker polls. */
static inline void hafti_io_set_plain(hafti_io_worker_t *worker) {
    worker->plain =
        !worker->shared && !worker->forked && worker->put_off == 0 && !hafti_io_is_told();
}
int64_t hafti_io_worker_now(const hafti_io_worker_t *worker);
/* Whether a poll that comes late would keep a task or a timer waiting. */
static inline bool hafti_io_is_awaited(const hafti_io_worker_t *worker) {
    return worker->waiting != 0 || worker->timers.count != 0 || worker->shared;
}
/* Reads the time into `clock`. */
void hafti_io_set_clock(hafti_io_worker_t *worker);

/* The calling thread's worker, until its loop has ended (NULL). */
void hafti_io_set_worker(hafti_io_worker_t *worker);
/* Gives what a thread pointer `to` leads to the calling thread's worker; `from` is the pointer
   under which the caller is. */
void hafti_io_copy_worker(const char *from, char *to);
/* Ends the worker's poll, if it is in one that may block, or the next; any thread. */
void hafti_io_rouse(hafti_io_worker_t *worker);

/* Called before and after the wait of a task that the back end will end. */
static inline void hafti_io_count_in(haft_io_task_t *task) {
    task->worker->waiting++;
    task->runner->counted = true;
}
static inline void hafti_io_count_out(haft_io_task_t *task) {
    if (task->runner->counted)
        task->worker->waiting--;
    task->runner->counted = false;
}

/* The calling thread's worker. Looked up afresh by every call: a task may be on another thread than
   before. */
extern __thread __attribute__((tls_model("initial-exec"), visibility("hidden")))
hafti_io_worker_t *hafti_io_this_worker;
#if defined(__x86_64__)
static inline hafti_io_worker_t *hafti_io_worker(void) {
    hafti_io_worker_t *worker;
    uintptr_t place;
    __asm__("movq hafti_io_this_worker@gottpoff(%%rip), %0" : "=r"(place));
    __asm__ volatile("movq %%fs:0(%1), %0" : "=r"(worker) : "r"(place));
    return worker;
}
#else
hafti_io_worker_t *hafti_io_worker(void);
#endif
/* The simulation that the caller is in; NULL: none. */
static inline hafti_io_simulated_t *hafti_io_simulated(void) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    return worker != NULL ? worker->simulated : NULL;
}
/* The calls by which the caller acts on the descriptor, makes sockets, and names files. */
static inline const haft_io_calls_t *hafti_io_calls_of(int descriptor) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    if (worker == NULL)
        return &hafti_io_machine;
    return HAFTI_IO_UNLIKELY(descriptor >= HAFTI_IO_FIRST_SIMULATED) ? worker->simulated_calls
                                                                     : worker->calls;
}
static inline const haft_io_calls_t *hafti_io_network_calls(void) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    return worker != NULL ? worker->network_calls : &hafti_io_machine;
}
static inline const haft_io_calls_t *hafti_io_file_calls(void) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    return worker != NULL ? worker->file_calls : &hafti_io_machine;
}
/* Whether the caller is in a simulation, and the descriptor is of what exists there only. */
static inline bool hafti_io_is_simulated(int descriptor) {
    return descriptor >= HAFTI_IO_FIRST_SIMULATED && hafti_io_simulated() != NULL;
}
/* The task on whose stack the caller is, or NULL. Like haft_io_self(), except that inside the
   scheduler's clauses haft_io_self() is NULL; about three times as fast. */
static inline haft_io_task_t *hafti_io_this_task(void) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    const hafti_io_runner_t *runner = worker != NULL ? worker->running : NULL;
    return runner != NULL ? runner->task : NULL;
}
/* Whether the task, or NULL, is in a child of fork, where it cannot wait. */
static inline bool hafti_io_is_in_child(const haft_io_task_t *task) {
    return task != NULL && task->worker->forked;
}
/* Adds the timers of the task's deadlines before it is suspended: from now on they may pass. */
HAFTI_IO_COLD void hafti_io_arm_all(hafti_io_runner_t *runner);
static inline void hafti_io_arm_deadlines(hafti_io_runner_t *runner) {
    if (HAFTI_IO_UNLIKELY(runner->unarmed))
        hafti_io_arm_all(runner);
}
/* Reports a wait in a child of fork, before anything is changed for the task that is about to
   wait. */
static inline void hafti_io_check_may_wait(const haft_io_task_t *task) {
    if (HAFTI_IO_UNLIKELY(hafti_io_is_in_child(task)))
        hafti_io_waits_in_child(task);
}
/* Puts the task into the worker's inbox; any thread. */
void hafti_io_post(hafti_io_worker_t *worker, haft_io_task_t *task);
/* Puts the task at the end of the queue of its worker, which is the caller's. */
static inline void hafti_io_enqueue(hafti_io_worker_t *worker, haft_io_task_t *task) {
    hafti_io_append(&worker->ready, &task->queued);
}

/* Waits until no thread walks stacks. */
HAFTI_IO_COLD void hafti_io_await_look(hafti_io_crew_t *crew);

/* A number below `bound`, which is not 0. */
uint64_t hafti_io_random(hafti_io_simulated_t *simulated, uint64_t bound);
void hafti_io_random_bytes(hafti_io_simulated_t *simulated, void *bytes, size_t size);

/* From now on std::terminate on a task names it; in programs of C nothing. */
void hafti_io_watch_terminate(void);

/* Reports a mistake, and the task concerned, to core's error handler. That may leave, so the caller
   must have changed nothing, and must hold no lock. */
HAFTI_IO_COLD __attribute__((noreturn, format(printf, 1, 2))) void
hafti_io_misuse(const char *format, ...);
/* -EBUSY, with its words (haft_io_refuse). */
HAFTI_IO_COLD int hafti_io_refuse_run_inside(const char *function);

#endif
