/* SPDX-License-Identifier: MIT */
/*
 * thread::park of Rust's std, which parks the thread, and not its task. Two tasks of a thread that
 * park at once are reported.
 *
 * std counts the thread's word down from EMPTY to PARKED, and waits by a futex while it is PARKED.
 * An unpark makes it NOTIFIED, and wakes if it was PARKED. With two tasks in it:
 *
 *     word of a parked task   what has happened                  what is wrong
 *     less than PARKED        another task parks                 it turns in std, and calls nothing
 *     EMPTY                   another one has taken its wake-up  a further unpark would wake nobody
 *     NOTIFIED                and there was such an unpark       it was to wake somebody
 *
 * So while a task is parked another thread looks at its word from time to time, and sets it to
 * PARKED again, or wakes the task. Then the second task, too, comes to its futex, where it is
 * reported. That repairs the word. But the thread has one token for both tasks, so the wake-up that
 * is meant for one may go to the other.
 */
#include "internal.h"
#include "../../src/system_call.h"

#include <execinfo.h>
#include <stdio.h>
#include <unistd.h>

/* ---- The thread that looks ---- */

enum { NOTIFIED = 1 };
static const uint32_t PARKED = UINT32_MAX;

static const struct timespec SHORTEST = {.tv_nsec = 10 * HAFT_IO_MILLISECOND};
static const int64_t LONGEST = 640 * HAFT_IO_MILLISECOND;

static uint32_t parked;    /* how many tasks are */
static uint32_t is_asleep; /* the thread, until a task parks */
static pthread_once_t is_started = PTHREAD_ONCE_INIT;

static bool mend(uint32_t *word) {
    uint32_t now = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (now != NOTIFIED && now != PARKED &&
           !__atomic_compare_exchange_n(word, &now, PARKED, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
    return now == NOTIFIED;
}

static void sleep_until_one_parks(void) {
    __atomic_store_n(&is_asleep, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&parked, __ATOMIC_SEQ_CST) == 0)
        hafti_io_futex(&is_asleep, FUTEX_WAIT, 1, NULL);
    __atomic_store_n(&is_asleep, 0, __ATOMIC_SEQ_CST);
}

/* Looks at the words less and less often, since most second parks come soon after the first. */
static void *look(void *unused) {
    struct timespec time = SHORTEST;
    for (;;) {
        if (__atomic_load_n(&parked, __ATOMIC_RELAXED) == 0) {
            sleep_until_one_parks();
            time = SHORTEST;
        }
        hafti_io_system_call(SYS_nanosleep, (long)&time, 0, 0, 0, 0, 0);
        hafti_posix_visit_parked(mend);
        if (time.tv_nsec < LONGEST)
            time.tv_nsec *= 2;
    }
    return unused;
}

static void start(void) {
    hafti_posix_make_thread(look);
}

/* ---- Tasks ---- */

/* Set by the Rust crate, which finds the words of std. No other word may be changed here. */
static bool (*is_of_this_thread)(const uint32_t *word);

HAFT_POSIX_EXPORT void haft_posix_know_parks(bool (*function)(const uint32_t *word)) {
    __atomic_store_n(&is_of_this_thread, function, __ATOMIC_RELEASE);
}

bool hafti_posix_is_park(const uint32_t *word, uint32_t value) {
    if (value != PARKED)
        return false;
    bool (*function)(const uint32_t *) = __atomic_load_n(&is_of_this_thread, __ATOMIC_ACQUIRE);
    return function != NULL && function(word);
}

static void tell_task(const char *which, const haft_io_task_t *task) {
    enum { MOST = 64 };
    void *addresses[MOST];
    dprintf(STDERR_FILENO, "The %s task, '%s':\n", which, haft_io_task_name(task));
    backtrace_symbols_fd(addresses, haft_io_task_backtrace(task, addresses, MOST), STDERR_FILENO);
}

static void tell(const haft_io_task_t *first, const haft_io_task_t *second) {
    static bool is_told;
    if (__atomic_exchange_n(&is_told, true, __ATOMIC_RELAXED))
        return;
    dprintf(STDERR_FILENO,
            "haft-posix: two tasks of a thread are in thread::park, which std::sync::mpsc, "
            "std::thread::scope, block_on of other crates and the like call. The thread has one "
            "token, so either may wait for ever. Use haft::channel, haft::scope and "
            "haft::block_on, let the tasks take turns by a haft::sync::Mutex, or call the code on "
            "a thread of its own. (This is told once.)\n");
    tell_task("first", first);
    tell_task("second", second);
}

const haft_io_task_t *hafti_posix_begin_park(uintptr_t key) {
    SYSTEM(pthread_once)(&is_started, start);
    const haft_io_task_t *first = hafti_posix_first_of(key), *task = haft_io_self();
    if (first != NULL)
        tell(first, task);
    __atomic_fetch_add(&parked, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&is_asleep, __ATOMIC_SEQ_CST) != 0 &&
        __atomic_exchange_n(&is_asleep, 0, __ATOMIC_SEQ_CST) != 0)
        hafti_io_futex(&is_asleep, FUTEX_WAKE, 1, NULL);
    return task;
}

void hafti_posix_end_park(void) {
    __atomic_fetch_sub(&parked, 1, __ATOMIC_SEQ_CST);
}

/* A child of fork has one thread, whose tasks do not go on. */
static void forget(void) {
    parked = is_asleep = 0;
    is_started = (pthread_once_t)PTHREAD_ONCE_INIT;
}
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, forget);
}
