/* SPDX-License-Identifier: MIT */
/* Declarations that the files of the back end on io_uring share. */
#ifndef HAFTI_IO_URING_H
#define HAFTI_IO_URING_H

#include "alone.h"
#include "memcheck.h"

#include <liburing.h>
#include <poll.h>

typedef struct hafti_io_provided hafti_io_provided_t;

enum { HAFTI_IO_MOST_SENT = 256 }; /* between two polls */

typedef struct hafti_io_uring_state {
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
    bool sends_at_once; /* a send without an answer has been made when the kernel has taken it */
    int signal, signals; /* see "a descriptor" in uring.c; -1: none */
    uint64_t settled;   /* counts how often it had taken and answered all that it was asked for */
    /* To be given back then: what is sent with the next poll; NULL where that has failed. */
    unsigned lent_count;
    hafti_io_lent_t *lent[HAFTI_IO_MOST_SENT];
} hafti_io_uring_state_t;

/* ---- Requests (uring.c) ---- */

/* When the kernel has taken some, since there is no room. */
HAFTI_IO_COLD struct io_uring_sqe *hafti_io_uring_next_entry(hafti_io_uring_state_t *state);
static inline struct io_uring_sqe *hafti_io_uring_entry(hafti_io_uring_state_t *state) {
    struct io_uring_sqe *entry = io_uring_get_sqe(&state->ring);
    return HAFTI_IO_LIKELY(entry != NULL) ? entry : hafti_io_uring_next_entry(state);
}
/* The kernel is to cancel what has this data. */
void hafti_io_uring_ask_back(hafti_io_uring_state_t *state, void *data);
/* Like io_uring_register(2), but also for a ring that has no number. */
int hafti_io_uring_register(const struct io_uring *ring, unsigned operation, void *argument,
                            unsigned count);
/* Checks the result of a submit: reports it if the system refuses io_uring by now. */
void hafti_io_uring_check(int code);
/* Tells their waiters. */
void hafti_io_uring_take_completions(hafti_io_uring_state_t *state);
/* A poll that does not wait, in a task. */
HAFTI_IO_COLD void hafti_io_uring_look(hafti_io_uring_state_t *state);
/* Tries the operation, after `turn` waits in vain. -EAGAIN: it has to wait. */
ssize_t hafti_io_uring_attempt(const hafti_io_descriptor_t *known, hafti_io_operation_t *operation,
                               unsigned turn);
/* Waits until the descriptor is ready for the operation; for an edge after turns that were in vain,
   or beside many other waits. */
int hafti_io_uring_await(hafti_io_runner_t *runner, hafti_io_descriptor_t *known,
                         const hafti_io_operation_t *operation, unsigned turn);

/* ---- What arrives by itself (arrivals.c) ---- */

/* The events of poll(2) that what has arrived is. */
enum { HAFTI_IO_ARRIVED = POLLIN | POLLRDNORM };

/* In the data of a completion: the rest is a hafti_io_arrivals_t, or a hafti_io_sending_t; else a
   request. */
enum { HAFTI_IO_OF_ARRIVALS = 1, HAFTI_IO_OF_SENDINGS = 2 };

/* Arrivals that the kernel delivers without further requests; `entry->arrivals` while it may, or
   while there are some left. */
typedef struct hafti_io_arrivals {
    hafti_io_link_t link; /* in the state */
    hafti_io_descriptor_t *entry;
    int descriptor;
    bool receives;         /* bytes in lent memory; else connections, each in a block without any */
    bool asked;            /* the kernel has not said that it has stopped */
    bool asked_back;       /* but was told to */
    hafti_io_lent_t *last; /* of a queue, in a circle; not NULL if `count` is not 0 */
    unsigned count;
    int code; /* the error that has ended it, for the next reader; or 0 */
} __attribute__((aligned(HAFTI_IO_LINE))) hafti_io_arrivals_t;

/* Functions of hafti_io_backend_t; in a run of several threads nothing is watched. */
bool hafti_io_uring_watch(hafti_io_worker_t *worker, hafti_io_descriptor_t *known, int descriptor);
ssize_t hafti_io_uring_read_lent(hafti_io_runner_t *runner, int descriptor, const void **bytes);
/* A connection, or bytes in lent memory: waits for the next. */
ssize_t hafti_io_take_arrival(hafti_io_runner_t *runner, hafti_io_descriptor_t *known,
                              hafti_io_operation_t *operation);
/* Before another operation that does not just write: a poll or a read is of what has arrived, if
   there is something. -EAGAIN: the kernel is to be asked, and gives nothing by itself meanwhile. */
ssize_t hafti_io_use_arrivals(hafti_io_uring_state_t *state, hafti_io_descriptor_t *known,
                              const hafti_io_operation_t *operation);
/* For a caller that asks the kernel about the descriptor, whose entry may be NULL. True: something
   has arrived before, and the kernel gives nothing more by itself. */
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
/* Bytes may arrive, none have, and no other task waits for them: hafti_io_wait_to_read does. */
static inline bool hafti_io_may_arrive_for(const hafti_io_descriptor_t *known) {
    const hafti_io_arrivals_t *arrivals = known->arrivals;
    return arrivals != NULL && arrivals->receives && arrivals->asked &&
           !hafti_io_has_arrived(known) && hafti_io_ring_empty(&known->waiters[HAFTI_IO_INWARD]);
}
/* The next bytes, of those that have arrived. */
ssize_t hafti_io_uring_read_arrived(hafti_io_runner_t *runner, hafti_io_descriptor_t *known,
                                    int descriptor, const void **bytes);
/* By a completion. */
void hafti_io_arrived(hafti_io_uring_state_t *state, hafti_io_arrivals_t *arrivals,
                      const struct io_uring_cqe *completion);
/* The kernel has been provided with more memory than at first: then a poll waits no longer than a
   second, and this is to be called after it. */
bool hafti_io_provides_many(const hafti_io_uring_state_t *state);
void hafti_io_provide_no_more_than_needed(hafti_io_uring_state_t *state);
/* Called before a poll, if `accept_ended`: stops requests for listeners on which no task waits. */
void hafti_io_stop_needless_arrivals(hafti_io_uring_state_t *state);
/* Before the descriptor is closed. */
void hafti_io_close_arrivals(hafti_io_uring_state_t *state, hafti_io_arrivals_t *arrivals);
/* After a send that has found the connection broken: the error is the one that came by itself, if
   nobody has been told of that, and then this call is; or -EPIPE. */
HAFTI_IO_COLD ssize_t hafti_io_why_broken(hafti_io_descriptor_t *known);
/* At the end of the run. */
void hafti_io_end_all_arrivals(hafti_io_uring_state_t *state);
/* Then, or when the ring is gone, the memory that the kernel had. */
bool hafti_io_stop_providing(const hafti_io_uring_state_t *state);
void hafti_io_free_provided(hafti_io_provided_t *provided);

#endif
