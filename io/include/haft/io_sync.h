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
 * These work between the tasks of any runs and ordinary threads: a task that waits lets others run;
 * a thread without a scheduler blocks. Who waits first is served first: a release hands the object
 * to the first in the queue, a mutex at the latest when he has come for it once, so nobody starves. Objects that no function makes are zeroed, or
 * initialised by {0}, and need no destruction; they must outlive their use. When the wait for an event, a promise, a
 * semaphore or a condition has been ended, neither who ended it nor who waited touches the object again: it may be
 * in the frame of either.
 *
 * Functions ending in `_until` give up at a deadline of haft_io_now(), with -ETIMEDOUT; with
 * HAFT_IO_FOREVER never. All waits may be cancelled; a cancelled wait has taken nothing.
 */

/* A list of those who wait. */
typedef struct haft_io_waiting {
    struct haft_io_place *first, *last;
} haft_io_waiting_t;

typedef struct haft_io_mutex {
    uint32_t lock;
    bool held;
    bool called;
    haft_io_waiting_t waiting;
} haft_io_mutex_t;

/*
 * A mutex belongs to no task: another task than the one that locked it may unlock it. To unlock a
 * mutex that is not locked is an error.
 *
 * An unlock lets the first who waits go on and take the mutex. Others that run before him may take it, and give
 * it back; if it is held when his turn has come, the next unlock hands it to him. So he is passed over
 * only while he could not run yet, and a task that locks and unlocks in a loop costs no switch each time: after 256
 * times in a row a lock lets the other tasks of the thread go first (haft_io_yield). A mutex that is free is never
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
/* Signal wakes the first who waits; broadcast wakes all. */
void haft_io_condition_signal(haft_io_condition_t *condition);
void haft_io_condition_broadcast(haft_io_condition_t *condition);

typedef struct haft_io_rwlock {
    uint32_t lock;
    bool writer;
    uint64_t readers;
    haft_io_waiting_t waiting;
} haft_io_rwlock_t;

/* Many may read at once, one writes alone. Who waits first is served first: a reader that comes while a
   writer waits, waits behind it; all readers in a row are let in together. Not recursive: who reads and asks
   again may wait for ever. */
int haft_io_rwlock_read_lock(haft_io_rwlock_t *lock);
int haft_io_rwlock_read_lock_until(haft_io_rwlock_t *lock, int64_t deadline);
bool haft_io_rwlock_try_read_lock(haft_io_rwlock_t *lock);
int haft_io_rwlock_write_lock(haft_io_rwlock_t *lock);
int haft_io_rwlock_write_lock_until(haft_io_rwlock_t *lock, int64_t deadline);
bool haft_io_rwlock_try_write_lock(haft_io_rwlock_t *lock);
/* Gives back whichever is held. To unlock one that is not locked is an error. */
void haft_io_rwlock_unlock(haft_io_rwlock_t *lock);

typedef struct haft_io_once {
    haft_io_mutex_t mutex;
    uint32_t done;
} haft_io_once_t;

/* Calls `function(argument)` if no call by this object has been completed; who comes meanwhile waits. A
   call that is unwound is none: the next who comes calls again. 0; -ETIMEDOUT; -ECANCELED. */
int haft_io_once_call(haft_io_once_t *once, void (*function)(void *), void *argument);
int haft_io_once_call_until(haft_io_once_t *once, void (*function)(void *), void *argument,
                            int64_t deadline);

typedef struct haft_io_barrier {
    uint32_t lock;
    uint32_t needed; /* to be set before the first use, at least 1 */
    uint32_t arrived;
    haft_io_waiting_t waiting;
} haft_io_barrier_t;

/* Waits until as many as are needed have arrived; then all go on, and the next round begins. 1 for the
   one that arrived last, 0 for the others. Who gives up, or is cancelled, has not arrived, unless the last
   arrives on another thread at the same moment. */
int haft_io_barrier_wait(haft_io_barrier_t *barrier);
int haft_io_barrier_wait_until(haft_io_barrier_t *barrier, int64_t deadline);

typedef struct haft_io_event {
    uint32_t lock;
    bool set;
    haft_io_waiting_t waiting;
} haft_io_event_t;

/* An event is set or not; a wait for it ends when the event is set, at once if it is set
   already. */
void haft_io_event_set(haft_io_event_t *event);
void haft_io_event_clear(haft_io_event_t *event);
int haft_io_event_wait(haft_io_event_t *event);
int haft_io_event_wait_until(haft_io_event_t *event, int64_t deadline);
/* The same, but no cancel reaches this wait. */
void haft_io_event_wait_to_the_end(haft_io_event_t *event);

typedef struct haft_io_promise {
    haft_io_event_t kept;
    void *value;
} haft_io_promise_t;

/* A promise is a value that comes once. haft_io_promise_set gives the value; a second one is an error. `value` of
   haft_io_promise_wait may be NULL. */
void haft_io_promise_set(haft_io_promise_t *promise, void *value);
int haft_io_promise_wait(haft_io_promise_t *promise, void **value);
int haft_io_promise_wait_until(haft_io_promise_t *promise, void **value, int64_t deadline);

/*
 * A channel carries values of `size` bytes, in order. A send waits while `capacity` values are
 * inside; with capacity 0, it waits until a receiver takes the value. NULL: no memory. To be freed
 * when nobody uses the channel any more; values inside are forgotten. Who has let a wait end, by a send, a receive or a
 * close, does not use it any more: who has the reply may free the channel that it came by. But a haft_io_select
 * looks at its channels once more when it has waited: they are freed after it has returned.
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
/* The same without waiting: -EAGAIN where the others would wait. */
int haft_io_channel_try_send(haft_io_channel_t *channel, const void *value);
int haft_io_channel_try_receive(haft_io_channel_t *channel, void *value);
/* Closes the channel: sends, also those that wait, return -EPIPE; values inside can still be
   received, and then receives return -EPIPE. To close a channel twice does nothing. */
void haft_io_channel_close(haft_io_channel_t *channel);

typedef struct haft_io_select_case {
    haft_io_channel_t
        *channel;     /* NULL: this one is never done, so a loop leaves out one that was closed */
    const void *send; /* the value to send, or NULL: receive */
    void *receive;    /* room for the value to receive */
    int code;         /* out, of the choice that was done: 0 or -EPIPE; or as said below */
    /* Or, where `channel` is NULL: */
    haft_io_event_t *event; /* until it is set */
    int descriptor;         /* for one of `events`, as in poll(2); code: those that have come */
    short events;
    const sigset_t *signals; /* for one of these, see haft_io_signal_wait; code: its number */
} haft_io_select_case_t;

/* Waits until one of the choices can be done, does it, and returns its index. If several can be
   done at once, calls do now one and now another: none is passed over again and again. In a simulation the seed
   decides. Descriptors and signals only in a task (else -EOPNOTSUPP). -ENOMEM: there is no memory to wait for more than
   16, or for descriptors. */
int haft_io_select(haft_io_select_case_t *choices, size_t count);
int haft_io_select_until(haft_io_select_case_t *choices, size_t count, int64_t deadline);

/*
 * For libraries that let one of several tasks go on at a time: `leave` is called when the current
 * task is about to wait, or to let others go first, in any function of this header but
 * haft_io_yield, and `enter` when it could go on: it does after the event that `enter` returns was
 * set, which clears the event; at once if that is NULL. Both must not wait, nor call functions that
 * are for tasks. A gate that is NULL ends this; it lasts until the task ends, and is not inherited.
 */
typedef struct haft_io_gate {
    void (*leave)(struct haft_io_gate *gate);
    haft_io_event_t *(*enter)(struct haft_io_gate *gate);
} haft_io_gate_t;
void haft_io_gate_set(haft_io_gate_t *gate);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
