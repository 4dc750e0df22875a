/* SPDX-License-Identifier: MIT */
/* Declarations that the files of the back end on io_uring share. */
#ifndef HAFTI_IO_URING_H
#define HAFTI_IO_URING_H

#include "../alone.h"
#include "../memcheck.h"

#include <liburing.h>
#include <poll.h>

enum {
    HAFTI_IO_MOST_SENT = 256, /* between two polls */
    HAFTI_IO_COMPLETIONS = 8192,
    HAFTI_IO_MOST_PROVIDED = 4096 /* blocks for what arrives */
};

typedef struct hafti_io_uring_state hafti_io_uring_state_t;
typedef struct hafti_io_arrivals hafti_io_arrivals_t;
typedef struct hafti_io_provided hafti_io_provided_t;

struct hafti_io_uring_state {
    struct io_uring ring;
    pid_t process; /* of the ring: a child of fork has none */
    bool watches_waker,
        watches_edges; /* the kernel tells when the worker's waker, or its epoll, is readable */
    bool no_multishot_accept; /* the kernel does not know it */
    bool no_multishot_receive;
    hafti_io_worker_t *worker; /* whose this is */
    hafti_io_link_t accepts, receives;
    bool accept_ended; /* since the last poll a task has ceased to wait for one of `accepts`, or the
                          kernel to give it */
    hafti_io_provided_t *provided; /* NULL: not needed yet */
    bool sends_at_once;  /* a send without an answer has been made when the kernel has taken it */
    int signal, signals; /* see "a descriptor" in thread_ring.c; -1: none */
    uint64_t settled;    /* counts how often every request was taken and answered */
    /* To be given back then: what is sent with the next poll; NULL where that has failed. */
    unsigned lent_count;
    hafti_io_lent_t *lent[HAFTI_IO_MOST_SENT];
    /* Called by a completion; a pointer, since ring.c is a floor below arrivals.c. */
    void (*arrived)(hafti_io_uring_state_t *state, hafti_io_arrivals_t *arrivals,
                    const struct io_uring_cqe *completion);
};

/* ---- The ring (ring.c) ---- */

/* In the data of a completion: the rest is a hafti_io_arrivals_t, or a hafti_io_sending_t; else a
   request. */
enum { HAFTI_IO_OF_ARRIVALS = 1, HAFTI_IO_OF_SENDINGS = 2 };

/* Whether the error means that the system does not allow io_uring. */
bool hafti_io_uring_is_refusal(int code);
static inline bool hafti_io_uring_has_number(const struct io_uring *ring) {
    return ring->ring_fd >= 0;
}
/* Submits the requests, or some of them: the kernel takes no more while it keeps completions that
   had no room. */
void hafti_io_uring_submit(hafti_io_uring_state_t *state);
/* Asks the kernel to report when the worker's waker, or its epoll, is readable. The second function
   ends that, and returns false if the kernel takes no requests any more. */
HAFTI_IO_COLD void hafti_io_uring_watch_both(hafti_io_uring_state_t *state);
bool hafti_io_uring_unwatch_both(hafti_io_uring_state_t *state);

/* Returns an entry after the kernel has taken some, since there was no room. */
HAFTI_IO_COLD struct io_uring_sqe *hafti_io_uring_next_entry(hafti_io_uring_state_t *state);
static inline struct io_uring_sqe *hafti_io_uring_entry(hafti_io_uring_state_t *state) {
    struct io_uring_sqe *entry = io_uring_get_sqe(&state->ring);
    return HAFTI_IO_LIKELY(entry != NULL) ? entry : hafti_io_uring_next_entry(state);
}
/* Asks the kernel to cancel the request with this data. */
void hafti_io_uring_ask_back(hafti_io_uring_state_t *state, void *data);
/* Like io_uring_register(2), but also for a ring that has no number. */
int hafti_io_uring_register(const struct io_uring *ring, unsigned operation, void *argument,
                            unsigned count);
/* Checks the result of a submit: reports it if the system refuses io_uring by now. */
void hafti_io_uring_check(int code);
/* Takes the completions, and wakes their waiters. */
void hafti_io_uring_take_completions(hafti_io_uring_state_t *state);
/* A poll that does not wait, in a task. */
HAFTI_IO_COLD void hafti_io_uring_look(hafti_io_uring_state_t *state);

/* ---- Requests of tasks (asking.c) ---- */

/* A request, in the frame of a task that waits. */
typedef struct hafti_io_uring_request {
    hafti_io_waiter_t waiter;
    int result;
    bool done;
} hafti_io_uring_request_t;

/* Makes the request, which is submitted with the next poll. Until the kernel has answered, the task
   stays on this thread. */
static inline void hafti_io_uring_begin(haft_io_task_t *task, struct io_uring_sqe *entry,
                                        hafti_io_uring_request_t *request) {
    request->done = false;
    io_uring_sqe_set_data(entry, request);
    task->worker->waiting++;
    if (HAFTI_IO_UNLIKELY(task->worker->shared))
        task->runner->stays++;
}
/* Waits until the kernel has answered the first request; an answer to the second, which may be the
   same, wakes the task, too. */
void hafti_io_uring_await_answer(hafti_io_uring_request_t *request, hafti_io_uring_request_t *other,
                                 haft_io_task_t *task, enum hafti_io_kind kind);
/* Withdraws a request after a cancel, or when its descriptor was closed; returns when the kernel no
   longer uses the buffer. */
HAFTI_IO_COLD void hafti_io_uring_withdraw(hafti_io_uring_request_t *request, haft_io_task_t *task,
                                           enum hafti_io_kind kind);
/* The answer to a request that has been waited for. */
static inline int hafti_io_uring_answer(hafti_io_uring_request_t *request, haft_io_task_t *task,
                                        enum hafti_io_kind kind, uint8_t nature) {
    if (HAFTI_IO_UNLIKELY(!request->done))
        hafti_io_uring_withdraw(request, task, kind);
    /* A success belongs to the file that was asked for, also if its number was closed since. */
    if ((nature == HAFTI_IO_UNKNOWN || request->result < 0) &&
        hafti_io_was_closed(&request->waiter))
        return -EBADF;
    return request->result;
}

/*
 * To cancel a request the kernel walks one of its 256 lists of requests (HAFTI_IO_COMPLETIONS / 32,
 * and never more) from the newest on, whereas tasks are cancelled from the oldest on. So no further
 * requests are made while this many tasks wait: further waits are for edges, and every wait is
 * cancelled at the same cost, however many others there are.
 */
enum { HAFTI_IO_MOST_ASKED = HAFTI_IO_COMPLETIONS };
static inline bool hafti_io_uring_is_crowded(const hafti_io_worker_t *worker) {
    return worker->waiting >= HAFTI_IO_MOST_ASKED;
}

/* Learns what the descriptor is, as far as the kernel's requests differ by it. */
HAFTI_IO_COLD void hafti_io_uring_learn_nature(hafti_io_descriptor_t *entry, int descriptor);
static inline uint8_t hafti_io_uring_nature(const hafti_io_descriptor_t *entry) {
    return __atomic_load_n(&entry->nature, __ATOMIC_RELAXED);
}
static inline bool hafti_io_uring_sends(const hafti_io_operation_t *o) {
    return o->kind == HAFTI_IO_WRITE || o->kind == HAFTI_IO_SEND;
}
/* The size, but at most what a system call transfers at once. */
static inline unsigned hafti_io_uring_at_once(size_t size) {
    enum { MOST = 0x7ffff000 };
    return size < MOST ? (unsigned)size : MOST;
}
/* Sends never block for buffer space; they fail with -EAGAIN. A send is complete once the kernel
   accepts it, so a peer's reply may trigger the next send before the first task resumes. */
static inline void hafti_io_uring_prepare_send(struct io_uring_sqe *entry, int descriptor,
                                               const void *buffer, size_t size) {
    io_uring_prep_send(entry, descriptor, buffer, hafti_io_uring_at_once(size),
                       MSG_NOSIGNAL | MSG_DONTWAIT);
}
/* Makes one request to the kernel: the operation itself, for a descriptor of that nature, or
   (HAFTI_IO_UNKNOWN) a wait until the descriptor is ready. */
int hafti_io_uring_ask(hafti_io_runner_t *runner, hafti_io_descriptor_t *known,
                       const hafti_io_operation_t *operation, uint8_t nature);
/* Tries the operation, after `turn` waits in vain. -EAGAIN: it has to wait. */
ssize_t hafti_io_uring_attempt(const hafti_io_descriptor_t *known, hafti_io_operation_t *operation,
                               unsigned turn);
/* Waits until the descriptor is ready for the operation; for an edge after turns that were in vain,
   or beside many other waits. */
int hafti_io_uring_await(hafti_io_runner_t *runner, hafti_io_descriptor_t *known,
                         const hafti_io_operation_t *operation, unsigned turn);

/* ---- Memory for what arrives (providing.c) ---- */

/* The memory that the kernel may put bytes into. The number of a slot is that of its buffer. */
struct hafti_io_provided {
    struct io_uring_buf_ring *ring;
    unsigned used;              /* slots; the others are empty */
    unsigned taken, most_taken; /* by the kernel since the last poll; at most, by one */
    int64_t until;              /* then there may be fewer */
    hafti_io_lent_t *slots[HAFTI_IO_MOST_PROVIDED];
};
enum { HAFTI_IO_PROVIDED_GROUP = 1 };

/* False: the kernel, or memory, does not allow it. */
HAFTI_IO_COLD bool hafti_io_begin_to_provide(hafti_io_uring_state_t *state);
/* Gives the kernel a block to receive into. If there is no memory (NULL), the slot stays empty. */
static inline void hafti_io_provide(hafti_io_provided_t *provided, unsigned slot,
                                    hafti_io_lent_t *block) {
    provided->slots[slot] = block;
    if (block == NULL)
        return;
    io_uring_buf_ring_add(provided->ring, block->bytes, HAFT_IO_LENT_SIZE, (unsigned short)slot,
                          io_uring_buf_ring_mask(HAFTI_IO_MOST_PROVIDED), 0);
    io_uring_buf_ring_advance(provided->ring, 1);
}
/* Provides more memory, after more bytes came at once than the kernel had memory for. */
HAFTI_IO_COLD void hafti_io_provide_more(const hafti_io_uring_state_t *state,
                                         hafti_io_provided_t *provided);
/* Whether the kernel has been provided with more memory than at first. Then a poll waits no longer
   than a second, and this is to be called after it. */
bool hafti_io_provides_many(const hafti_io_uring_state_t *state);
void hafti_io_provide_no_more_than_needed(hafti_io_uring_state_t *state);
/* Takes the memory back that the kernel had, at the end of the run or when the ring is gone. */
bool hafti_io_stop_providing(const hafti_io_uring_state_t *state);
void hafti_io_free_provided(hafti_io_provided_t *provided);

/* ---- What arrives by itself (arrivals.c) ---- */

/* The events of poll(2) of a descriptor for which something has arrived. */
enum { HAFTI_IO_ARRIVED = POLLIN | POLLRDNORM };

/* Arrivals that the kernel delivers without further requests; `entry->arrivals` while it may, or
   while there are some left. */
struct hafti_io_arrivals {
    hafti_io_link_t link; /* in the state */
    hafti_io_descriptor_t *entry;
    int descriptor;
    bool receives;         /* bytes in lent memory; else connections, each in a block without any */
    bool asked;            /* the kernel has not reported that it has stopped */
    bool asked_back;       /* but was told to stop */
    hafti_io_lent_t *last; /* of a queue, in a circle; not NULL if `count` is not 0 */
    unsigned count;
    int code; /* the error that has ended it, for the next reader; or 0 */
} __attribute__((aligned(HAFTI_IO_LINE)));

/* Functions of hafti_io_backend_t; in a run of several threads nothing is watched. */
bool hafti_io_uring_watch(hafti_io_worker_t *worker, hafti_io_descriptor_t *known, int descriptor);
hafti_io_transfer_t hafti_io_uring_read_lent;
/* A connection, or bytes in lent memory: waits for the next. */
ssize_t hafti_io_take_arrival(hafti_io_runner_t *runner, hafti_io_descriptor_t *known,
                              hafti_io_operation_t *operation);
/* To be called before another operation that does not just write: serves a poll or a read from what
   has arrived, if there is something. -EAGAIN: the kernel is to be asked, and gives nothing by
   itself meanwhile. */
ssize_t hafti_io_use_arrivals(hafti_io_uring_state_t *state, hafti_io_descriptor_t *known,
                              const hafti_io_operation_t *operation);
/* Stops the arrivals for a caller that asks the kernel about the descriptor, whose entry may be
   NULL. True: something has arrived before, and the kernel gives nothing more by itself. */
bool hafti_io_stop_arrivals(hafti_io_uring_state_t *state, const hafti_io_descriptor_t *known);
static inline bool hafti_io_has_arrived(const hafti_io_descriptor_t *known) {
    const hafti_io_arrivals_t *arrivals = known->arrivals;
    return arrivals != NULL && (arrivals->count != 0 || arrivals->code != 0);
}
/* The arrivals as events: those of `events`, and an error in any case. */
static inline short hafti_io_arrived_events(const hafti_io_descriptor_t *known, short events) {
    const hafti_io_arrivals_t *arrivals = known->arrivals;
    if (!hafti_io_has_arrived(known))
        return 0;
    return (short)((events & HAFTI_IO_ARRIVED) | (arrivals->code != 0 ? POLLERR : 0));
}
/* Whether bytes may arrive, none have, and no other task waits for them: then hafti_io_wait_to_read
   waits for them. */
static inline bool hafti_io_may_arrive_for(const hafti_io_descriptor_t *known) {
    const hafti_io_arrivals_t *arrivals = known->arrivals;
    return arrivals != NULL && arrivals->receives && arrivals->asked &&
           !hafti_io_has_arrived(known) && hafti_io_ring_empty(&known->waiters[HAFTI_IO_INWARD]);
}
/* Reads the next of the bytes that have arrived. */
ssize_t hafti_io_uring_read_arrived(hafti_io_runner_t *runner, hafti_io_descriptor_t *known,
                                    int descriptor, const void **bytes);
/* Called by a completion. */
void hafti_io_arrived(hafti_io_uring_state_t *state, hafti_io_arrivals_t *arrivals,
                      const struct io_uring_cqe *completion);
/* Called before a poll, if `accept_ended`: stops requests for listeners on which no task waits. */
void hafti_io_stop_needless_arrivals(hafti_io_uring_state_t *state);
/* To be called before the descriptor is closed. */
void hafti_io_close_arrivals(hafti_io_uring_state_t *state, hafti_io_arrivals_t *arrivals);
/* The error of a send that has found the connection broken: the one that came by itself, if no call
   has returned it yet; otherwise -EPIPE. */
HAFTI_IO_COLD ssize_t hafti_io_why_broken(hafti_io_descriptor_t *known);
/* At the end of the run. */
void hafti_io_end_all_arrivals(hafti_io_uring_state_t *state);

/* ---- The thread's ring (thread_ring.c): functions of hafti_io_backend_t ---- */

int hafti_io_uring_start(hafti_io_worker_t *worker);
void hafti_io_uring_stop(hafti_io_worker_t *worker);
int hafti_io_uring_descriptor(const hafti_io_worker_t *worker);

#endif
