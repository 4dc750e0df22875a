/* SPDX-License-Identifier: MIT */
/* Waiting: of tasks for descriptors, times and the pool (wait.c), and by addresses (waiters.c). */
#ifndef HAFTI_POSIX_WAITS_H
#define HAFTI_POSIX_WAITS_H

#include "simulations.h"

/* ---- For descriptors, times, the pool (wait.c) ---- */

/* The deadline by the socket's SO_RCVTIMEO or SO_SNDTIMEO, or HAFT_IO_FOREVER. */
int64_t hafti_posix_socket_deadline(int socket, int option);
/* The deadline that is this duration from now, or where the clock ends; HAFT_IO_FOREVER for NULL.
   -EINVAL if it is not a valid time. */
int64_t hafti_posix_deadline(const struct timespec *duration);
/* The deadline for a time of the clock, as the clock runs now. -ENOSYS: the clock measures
   processor time, so it does not run steadily. */
int64_t hafti_posix_deadline_at(clockid_t clock, const struct timespec *time);
/* Returns 0; -EAGAIN after the deadline; -ECANCELED; -EBADF if the descriptor was closed. `turn` is
   the number of such waits for the same thing that were in vain, without another task having run
   since the caller found out, as for the effect haft_io_poll. */
int hafti_posix_wait(int descriptor, short events, int64_t deadline, unsigned turn);
/* The same for data in one descriptor and room in the other. */
int hafti_posix_wait_for_both(int from, int to, int64_t deadline, unsigned turn);
/* The same for a descriptor whose creation returned `code`. If the system call is missing, or there
   are no descriptors, this returns 0 after a moment. */
int hafti_posix_wait_without(int code, int64_t deadline);
/* The same, but no cancel ends the wait. */
int hafti_posix_wait_to_the_end(int descriptor, short events, int64_t deadline, unsigned turn);
/* Sleeps before another try of an operation whose readiness the kernel does not notify; `*pause`, 0
   at first, grows. 0, or -ECANCELED. */
int hafti_posix_pause(int64_t *pause);
/* The same for a lock that another task may hold. In a simulation time stands still for it. */
int hafti_posix_pause_for_lock(int64_t *pause);
/* Calls the function on a thread of the pool, or here if there is none. 0, or -ECANCELED: it was
   not called. */
int hafti_posix_call_blocking(void (*function)(void *), void *argument);
/* The same for a call that may block although its descriptor is ready, because another thread was
   faster: after some milliseconds it fails with EINTR, or returns a partial count. */
int hafti_posix_call_for_a_moment(void (*function)(void *), void *argument);
/* The same for a call on the descriptor. On a simulated one it cannot block, and is made here. */
static inline int hafti_posix_call_on(int descriptor, void (*function)(void *), void *argument) {
    if (!hafti_posix_may_be_simulated(descriptor))
        return hafti_posix_call_for_a_moment(function, argument);
    function(argument);
    return 0;
}
/* Like hafti_posix_call_blocking, but no cancel withdraws the call. */
void hafti_posix_block_to_the_end(void (*function)(void *), void *argument);
/* hafti_posix_call_blocking and hafti_posix_block_to_the_end, with the caller's errno and h_errno.
   A call that was not made has set both. */
void hafti_posix_call_pooled(void (*function)(void *), void *argument);
void hafti_posix_call_to_the_end(void (*function)(void *), void *argument);

/*
 * Called after a cancel has cut a wait that is to run to its end, which has returned -ECANCELED.
 * Makes the wait again where no cancel from outside reaches it, and returns its result; -ECANCELED
 * if there is no memory for that, or if a simulation cancels all tasks because none can go on.
 */
int hafti_posix_wait_again(int (*wait)(void *argument), void *argument);
/* Lets other tasks run now and then, for calls that may block but never do. */
void hafti_posix_take_turns(int descriptor);
/* Begins anew to count the calls that have not let others run. */
void hafti_posix_count_anew(void);

/* ---- By address (waiters.c) ---- */

/* The kind of object at the address; a key is the sum of both. Addresses are divisible by four. */
enum {
    HAFT_POSIX_CONDITION,
    HAFT_POSIX_LOCK = HAFT_POSIX_CONDITION, /* which lies elsewhere: mutexes, pthread_once_t */
    HAFT_POSIX_FUTEX,
    HAFT_POSIX_SHARED_FUTEX,
    HAFT_POSIX_SEMAPHORE
};

/* A waiter, in the frame of the task that waits. */
typedef struct hafti_posix_waiter {
    struct hafti_posix_waiter *next, *previous;
    uintptr_t key;
    uint32_t bits; /* of a wake, one of which it waits for */
    bool woken;
    bool parks;                 /* its thread; see parking.c */
    const haft_io_task_t *task; /* then */
    haft_io_event_t event;
} hafti_posix_waiter_t;

/* Lists the task, which is about to wait. If a word is given and differs from the value, before any
   wake that comes now, this returns false and lists nothing. */
bool hafti_posix_list(hafti_posix_waiter_t *waiter, const uint32_t *word, uint32_t value);
/* The task that parks by this key, or NULL. It waits on as long as the caller, a task of its
   thread, does not. */
const haft_io_task_t *hafti_posix_first_of(uintptr_t key);
/* Calls the function with the word of each task that parks, and wakes the task if it returns true.
   Any thread may call it. */
void hafti_posix_visit_parked(bool (*visit)(uint32_t *word));
/* Takes a task that is not to wait after all off the list: whether it was woken before. */
bool hafti_posix_unlist(hafti_posix_waiter_t *waiter);
/* Waits; no cancel ends the wait. Whether the task was woken. */
bool hafti_posix_await(hafti_posix_waiter_t *waiter, int64_t deadline);
/* The same, but pthread_cancel of the calling task ends the wait, as if the task was woken. */
bool hafti_posix_await_cut(hafti_posix_waiter_t *waiter, int64_t deadline);
/* Ends such a wait, which a signal has interrupted. False: the task is in none. */
bool hafti_posix_interrupt(hafti_posix_cut_t *cut);
/* Called by the task of main: from now on signals interrupt its waits. (interrupting.c) */
void hafti_posix_let_signals_interrupt(hafti_posix_cut_t *cut);
/* Asks the task to end, and ends its wait, if it is in such a one. Any thread may call it. */
void hafti_posix_ask_to_end(hafti_posix_cut_t *cut);
/* Wakes at most so many that wait for one of the bits, the first to come first; returns how many.
   Any thread may call it. */
int hafti_posix_wake(uintptr_t key, int most, uint32_t bits);
/* Whether one may wait by this key: false only if none was listed before the caller's last atomic
   change. Signal handlers may call it. */
bool hafti_posix_has_waiters(uintptr_t key);
/* Wakes all that wait by keys of this kind; not to be called by a task. */
void hafti_posix_wake_kind(int kind);
/* Calls the function, which does the same for threads, and then wakes and moves the rest of the
   tasks to the other key. Returns the sum, or the function's error. */
long hafti_posix_requeue(uintptr_t key, uintptr_t other, int most_woken, int most_moved,
                         long (*of_threads)(const void *), const void *argument);

#endif
