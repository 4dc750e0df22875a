/* SPDX-License-Identifier: MIT */
/*
 * Waiting: for descriptors, for times, and for calls of the pool. A wait that a cancel has cut
 * returns -ECANCELED; the call that makes it reports that once, by hafti_posix_answer or
 * hafti_posix_cancelled.
 */
#include "waits.h"
#include "../../src/moment.h"

int64_t hafti_posix_deadline(const struct timespec *duration) {
    if (duration == NULL)
        return HAFT_IO_FOREVER;
    if (duration->tv_sec < 0 || duration->tv_nsec < 0 || duration->tv_nsec >= HAFT_IO_SECOND)
        return -EINVAL;
    int64_t now = HAFT_PERFORM(haft_io_now);
    int64_t nanoseconds;
    if (__builtin_mul_overflow(duration->tv_sec, HAFT_IO_SECOND, &nanoseconds) ||
        __builtin_add_overflow(nanoseconds, duration->tv_nsec + now, &nanoseconds) ||
        nanoseconds == HAFT_IO_FOREVER)
        return HAFT_IO_FOREVER - 1;
    return nanoseconds;
}

int64_t hafti_posix_deadline_at(clockid_t clock, const struct timespec *time) {
    if (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME && clock != CLOCK_BOOTTIME &&
        clock != CLOCK_TAI)
        return -ENOSYS;
    if (time->tv_sec < 0 || time->tv_nsec < 0 || time->tv_nsec >= HAFT_IO_SECOND)
        return -EINVAL;
    struct timespec now;
    clock_gettime(clock, &now);
    struct timespec left = {time->tv_sec - now.tv_sec, time->tv_nsec - now.tv_nsec};
    if (left.tv_nsec < 0) {
        left.tv_nsec += HAFT_IO_SECOND;
        left.tv_sec--;
    }
    return hafti_posix_deadline(left.tv_sec >= 0 ? &left : &(struct timespec){0, 0});
}

int64_t hafti_posix_socket_deadline(int socket, int option) {
    struct timeval limit = {0, 0};
    socklen_t size = sizeof limit;
    if (SYSTEM_OF(socket, getsockopt)(socket, SOL_SOCKET, option, &limit, &size) != 0 ||
        (limit.tv_sec == 0 && limit.tv_usec == 0))
        return HAFT_IO_FOREVER;
    return hafti_posix_deadline(&(struct timespec){limit.tv_sec, limit.tv_usec * 1000});
}

static int wait_for_any(struct pollfd *entries, size_t count, int64_t deadline, unsigned turn) {
    if (hafti_posix_is_asked_to_end())
        return -ECANCELED;
    int ready = HAFT_PERFORM(haft_io_poll, entries, count, deadline, turn);
    if (ready <= 0)
        return ready < 0 ? ready : -EAGAIN;
    for (size_t i = 0; i < count; i++)
        if ((entries[i].revents & POLLNVAL) != 0)
            return -EBADF;
    return 0;
}

int hafti_posix_wait(int descriptor, short events, int64_t deadline, unsigned turn) {
    return wait_for_any(&(struct pollfd){descriptor, events, 0}, 1, deadline, turn);
}

typedef struct one_wait {
    int descriptor;
    short events;
    int64_t deadline;
    unsigned turn;
} one_wait_t;

static int wait_for_one_again(void *argument) {
    const one_wait_t *wait = argument;
    return hafti_posix_wait(wait->descriptor, wait->events, wait->deadline, wait->turn);
}

int hafti_posix_wait_to_the_end(int descriptor, short events, int64_t deadline, unsigned turn) {
    one_wait_t wait = {descriptor, events, deadline, turn};
    int code = wait_for_one_again(&wait);
    return code == -ECANCELED ? hafti_posix_wait_again(wait_for_one_again, &wait) : code;
}

/* Either descriptor may have changed, after both had been ready and the call failed all the
   same. */
int hafti_posix_wait_for_both(int from, int to, int64_t deadline, unsigned turn) {
    if (turn != 0)
        return wait_for_any((struct pollfd[]){{from, POLLIN, 0}, {to, POLLOUT, 0}}, 2, deadline,
                            turn);
    int code = hafti_posix_wait(from, POLLIN, deadline, 0);
    return code == 0 ? hafti_posix_wait(to, POLLOUT, deadline, 0) : code;
}

int hafti_posix_wait_without(int code, int64_t deadline) {
    if (!hafti_io_lacks_descriptor(code) && !hafti_io_is_missing(code))
        return code;
    int64_t moment = HAFT_PERFORM(haft_io_now) + HAFTI_IO_DESCRIPTOR_PAUSE;
    code = hafti_posix_wait(-1, 0, moment < deadline ? moment : deadline, 0);
    return code == -EAGAIN && moment < deadline ? 0 : code;
}

int hafti_posix_call_blocking(void (*function)(void *), void *argument) {
    int code = HAFT_PERFORM(haft_io_call_blocking, function, argument, NULL);
    if (code != 0 && code != -ECANCELED)
        function(argument);
    return code == -ECANCELED ? code : 0;
}

typedef struct again {
    int (*wait)(void *argument);
    void *argument;
    int code;
} again_t;

static void *wait_in_shield(void *argument) {
    again_t *again = argument;
    again->code = again->wait(again->argument);
    return NULL;
}

int hafti_posix_wait_again(int (*wait)(void *argument), void *argument) {
    again_t again = {wait, argument, -ECANCELED};
    haft_io_shield(wait_in_shield, &again);
    return again.code;
}

typedef struct blocking {
    void (*function)(void *);
    void *argument;
} blocking_t;

static int block_again(void *argument) {
    const blocking_t *call = argument;
    return hafti_posix_call_blocking(call->function, call->argument);
}

void hafti_posix_block_to_the_end(void (*function)(void *), void *argument) {
    int code = hafti_posix_call_blocking(function, argument);
    if (code != 0)
        code = hafti_posix_wait_again(block_again, &(blocking_t){function, argument});
    if (code != 0)
        function(argument);
}

int hafti_posix_call_for_a_moment(void (*function)(void *), void *argument) {
    return hafti_posix_call_blocking(hafti_io_call_moment,
                                     &(hafti_io_moment_t){function, argument});
}

typedef struct pooled {
    void (*function)(void *);
    void *argument;
    int error, host_error; /* before the call: the caller's; after it: the pool thread's */
} pooled_t;

static void call_as_the_caller(void *argument) {
    pooled_t *pooled = argument;
    hafti_posix_set_error(pooled->error);
    hafti_posix_set_host_error(pooled->host_error);
    pooled->function(pooled->argument);
    pooled->error = hafti_posix_error();
    pooled->host_error = h_errno;
}

void hafti_posix_call_pooled(void (*function)(void *), void *argument) {
    pooled_t pooled = {function, argument, hafti_posix_error(), h_errno};
    int code = hafti_posix_call_blocking(call_as_the_caller, &pooled);
    if (code != 0)
        code = hafti_posix_cancelled();
    hafti_posix_set_error(code == 0 ? pooled.error : -code);
    hafti_posix_set_host_error(code == 0 ? pooled.host_error : TRY_AGAIN);
}

void hafti_posix_call_to_the_end(void (*function)(void *), void *argument) {
    pooled_t pooled = {function, argument, hafti_posix_error(), h_errno};
    hafti_posix_block_to_the_end(call_as_the_caller, &pooled);
    hafti_posix_set_error(pooled.error);
    hafti_posix_set_host_error(pooled.host_error);
}

int hafti_posix_pause(int64_t *pause) {
    enum { LONGEST = 32 * HAFT_IO_MILLISECOND };
    *pause = *pause == 0 ? HAFT_IO_MILLISECOND : *pause < LONGEST ? 2 * *pause : LONGEST;
    return HAFT_PERFORM(haft_io_sleep_until, HAFT_PERFORM(haft_io_now) + *pause);
}

int hafti_posix_pause_for_lock(int64_t *pause) {
    const haft_io_calls_t *calls = haft_io_simulated_calls();
    if (calls == NULL)
        return hafti_posix_pause(pause);
    calls->pause(*pause != 0, "a lock");
    *pause = 1;
    return 0;
}

enum { CALLS_IN_A_ROW = 64 };

static unsigned calls; /* of all threads, roughly */

void hafti_posix_count_anew(void) {
    __atomic_store_n(&calls, 0, __ATOMIC_RELAXED);
}

/* In a simulation others go first after each call, so that runs with the same seed are the same. */
void hafti_posix_take_turns(int descriptor) {
    unsigned count = __atomic_load_n(&calls, __ATOMIC_RELAXED) + 1;
    __atomic_store_n(&calls, count, __ATOMIC_RELAXED);
    if ((count % CALLS_IN_A_ROW != 0 && haft_io_seed() == 0) || !hafti_io_blocks(descriptor))
        return;
    HAFT_PERFORM(haft_io_yield); /* Completed work stays done, even if this yield is cancelled. */
}
