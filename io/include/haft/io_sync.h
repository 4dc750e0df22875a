/* SPDX-License-Identifier: MIT */
/* Haft I/O: synchronisation. Part of haft/io.h, which includes it. */
#ifndef HAFT_IO_SYNC_H
#define HAFT_IO_SYNC_H

#include "io.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/*
 * These objects work between the tasks of any runs and ordinary threads: a task that waits lets
 * others run; a thread without a scheduler blocks. Waiters are served in the order in which they
 * came. A release hands the object to the first waiter; a mutex does so at the latest when that
 * waiter has once run and found it taken, so no waiter starves. An object without a function that
 * makes it is zeroed, or initialised by {0}, and needs no destruction; it must outlive its use.
 * When a wait for an event, a promise, a semaphore or a condition has been ended, neither the task
 * that ended it nor the one that waited touches the object again, so the object may lie in the
 * frame of either.
 *
 * Functions ending in `_until` give up at a deadline of haft_io_now() and return -ETIMEDOUT; with
 * HAFT_IO_FOREVER they never give up. All waits can be cancelled; a cancelled wait has taken
 * nothing.
 */

/* A list of waiters. */
typedef struct haft_io_waiting {
    struct haft_io_place *first, *last;
} haft_io_waiting_t;

typedef struct haft_io_mutex {
    uint32_t lock;
    bool held;
    bool called;
    haft_io_waiting_t waiting;
    haft_io_task_t *holder; /* for debuggers: the task that has locked it last; NULL: a thread */
} haft_io_mutex_t;

/*
 * A mutex belongs to no task: any task may unlock it, not only the one that locked it. Unlocking a
 * mutex that is not locked is an error.
 *
 * An unlock wakes the first waiter, which then takes the mutex. Tasks that run before it may lock
 * and unlock the mutex in between; if the mutex is held when the waiter's turn comes, the next
 * unlock hands it to that waiter. So a waiter is passed over only while it could not run yet, and a
 * task that locks and unlocks in a loop does not pay for a switch each time. After 256 locks in a
 * row, a lock lets the other tasks of the thread go first (haft_io_yield). A free mutex is never
 * waited for.
 */
int haft_io_mutex_lock(haft_io_mutex_t *mutex);
int haft_io_mutex_lock_until(haft_io_mutex_t *mutex, int64_t deadline);
bool haft_io_mutex_try_lock(haft_io_mutex_t *mutex);
void haft_io_mutex_unlock(haft_io_mutex_t *mutex);

typedef struct haft_io_semaphore {
    uint32_t lock;
    uint64_t count; /* may be set before the first use */
    haft_io_waiting_t waiting;
} haft_io_semaphore_t;

int haft_io_semaphore_acquire(haft_io_semaphore_t *semaphore);
int haft_io_semaphore_acquire_until(haft_io_semaphore_t *semaphore, int64_t deadline);
bool haft_io_semaphore_try_acquire(haft_io_semaphore_t *semaphore);
void haft_io_semaphore_release(haft_io_semaphore_t *semaphore);

typedef struct haft_io_condition {
    uint32_t lock;
    haft_io_waiting_t waiting;
} haft_io_condition_t;

/* Unlocks the mutex and waits for a signal, as one step; locks the mutex again before it returns or
   unwinds. */
int haft_io_condition_wait(haft_io_condition_t *condition, haft_io_mutex_t *mutex);
int haft_io_condition_wait_until(haft_io_condition_t *condition, haft_io_mutex_t *mutex,
                                 int64_t deadline);
/* Signal wakes the first waiter; broadcast wakes all. */
void haft_io_condition_signal(haft_io_condition_t *condition);
void haft_io_condition_broadcast(haft_io_condition_t *condition);

typedef struct haft_io_rwlock {
    uint32_t lock;
    bool writer;
    uint64_t readers;
    haft_io_waiting_t waiting;
    haft_io_task_t *holder; /* for debuggers: the task that has locked it last to write */
} haft_io_rwlock_t;

/* Many tasks may read at once; a writer is alone. Waiters are served in the order in which they
   came: a reader that comes while a writer waits queues behind the writer, and consecutive readers
   are let in together. The lock is not recursive: a reader that locks it again may deadlock. */
int haft_io_rwlock_read_lock(haft_io_rwlock_t *lock);
int haft_io_rwlock_read_lock_until(haft_io_rwlock_t *lock, int64_t deadline);
bool haft_io_rwlock_try_read_lock(haft_io_rwlock_t *lock);
int haft_io_rwlock_write_lock(haft_io_rwlock_t *lock);
int haft_io_rwlock_write_lock_until(haft_io_rwlock_t *lock, int64_t deadline);
bool haft_io_rwlock_try_write_lock(haft_io_rwlock_t *lock);
/* Unlocks for reading or for writing, whichever is held. Unlocking a lock that is not locked is an
   error. */
void haft_io_rwlock_unlock(haft_io_rwlock_t *lock);

typedef struct haft_io_once {
    haft_io_mutex_t mutex;
    uint32_t done;
} haft_io_once_t;

/* Calls `function(argument)` unless a call through this object has already completed; while a call
   is under way, other callers wait for it. A call that is unwound does not count: the next caller
   calls again. Returns 0, -ETIMEDOUT or -ECANCELED. */
int haft_io_once_call(haft_io_once_t *once, void (*function)(void *), void *argument);
int haft_io_once_call_until(haft_io_once_t *once, void (*function)(void *), void *argument,
                            int64_t deadline);

typedef struct haft_io_barrier {
    uint32_t lock;
    uint32_t needed; /* set this before the first use, to at least 1 */
    uint32_t arrived;
    haft_io_waiting_t waiting;
} haft_io_barrier_t;

/* Waits until `needed` callers have arrived; then all go on, and the next round begins. Returns 1
   to the caller that arrived last and 0 to the others. A caller that gives up or is cancelled
   counts as not arrived, unless the last one arrives on another thread at the same moment. */
int haft_io_barrier_wait(haft_io_barrier_t *barrier);
int haft_io_barrier_wait_until(haft_io_barrier_t *barrier, int64_t deadline);

typedef struct haft_io_event {
    uint32_t lock;
    bool set;
    haft_io_waiting_t waiting;
} haft_io_event_t;

/* An event is either set or not. A wait for it ends when it is set, or at once if it is set
   already. */
void haft_io_event_set(haft_io_event_t *event);
void haft_io_event_clear(haft_io_event_t *event);
int haft_io_event_wait(haft_io_event_t *event);
int haft_io_event_wait_until(haft_io_event_t *event, int64_t deadline);
/* Like haft_io_event_wait, but no cancel ends this wait. */
void haft_io_event_wait_to_the_end(haft_io_event_t *event);
typedef struct haft_io_promise {
    haft_io_event_t kept;
    void *value;
} haft_io_promise_t;

/* A promise is a value that is set once, by haft_io_promise_set; setting it twice is an error.
   `value` of haft_io_promise_wait may be NULL. */
void haft_io_promise_set(haft_io_promise_t *promise, void *value);
int haft_io_promise_wait(haft_io_promise_t *promise, void **value);
int haft_io_promise_wait_until(haft_io_promise_t *promise, void **value, int64_t deadline);

/*
 * A channel carries values of `size` bytes, in order. A send waits while `capacity` values are
 * inside; with capacity 0 it waits until a receiver takes the value. haft_io_channel_new returns
 * NULL if there is no memory. Free the channel when no task uses it any more; values inside are
 * lost. Once a send, receive or close has woken a waiter it does not touch the channel again, so
 * the waiter may free the channel. The exception is haft_io_select, which looks at its channels
 * once more after its wait: free these only after it has returned.
 */
typedef struct haft_io_channel haft_io_channel_t;
haft_io_channel_t *haft_io_channel_new(size_t size, size_t capacity);
void haft_io_channel_free(haft_io_channel_t *channel);

/* Returns 0, or -EPIPE when the channel has been closed. */
int haft_io_channel_send(haft_io_channel_t *channel, const void *value);
int haft_io_channel_send_until(haft_io_channel_t *channel, const void *value, int64_t deadline);
/* Returns 0, or -EPIPE when the channel has been closed and is empty. */
int haft_io_channel_receive(haft_io_channel_t *channel, void *value);
int haft_io_channel_receive_until(haft_io_channel_t *channel, void *value, int64_t deadline);
/* The same without waiting: they return -EAGAIN where the others would wait. */
int haft_io_channel_try_send(haft_io_channel_t *channel, const void *value);
int haft_io_channel_try_receive(haft_io_channel_t *channel, void *value);
/* Closes the channel: sends, also those that wait, return -EPIPE; values inside can still be
   received, and then receives return -EPIPE. Closing a channel again does nothing. */
void haft_io_channel_close(haft_io_channel_t *channel);

typedef struct haft_io_select_case {
    haft_io_channel_t
        *channel;     /* NULL: this case is never chosen; a loop sets it so for a channel that was
                         closed */
    const void *send; /* the value to send, or NULL: receive */
    void *receive;    /* where to put the received value */
    int code;         /* out, for the case that was chosen: 0 or -EPIPE, or as below */
    /* Or, where `channel` is NULL: */
    haft_io_event_t *event; /* waits until it is set */
    int descriptor;         /* waits for any of `events`, as in poll(2); `code` is the events that
                               have come */
    short events;
    const sigset_t *signals; /* waits for any of these, see haft_io_signal_wait; `code` is the
                                signal's number */
} haft_io_select_case_t;

/* Waits until one of the cases can be done, does it, and returns its index. If several can be done
   at once, calls vary their choice, so that no case is passed over again and again; in a simulation
   the seed decides. Descriptors and signals are for tasks only (-EOPNOTSUPP elsewhere). -ENOMEM:
   there is no memory to wait for more than 16 cases, or for descriptors. */
int haft_io_select(haft_io_select_case_t *choices, size_t count);
int haft_io_select_until(haft_io_select_case_t *choices, size_t count, int64_t deadline);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
