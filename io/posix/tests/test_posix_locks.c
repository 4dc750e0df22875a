/* SPDX-License-Identifier: MIT */
/* Mutexes, read-write locks and conditions of threads, between tasks of one thread, of several, and
   threads. */
#include "../../tests/check_io.h"

#include <haft/posix.h>

#include <pthread.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* ---- Locks ---- */

/* Locks whose holder waits, as the first user of a library does while it initialises it. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int inside, writing, passed;
static void *hold_mutex(void *unused) {
    errno = ERANGE;
    CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
    CHECK_EQUAL(errno, ERANGE);
    CHECK_EQUAL(inside++, 0);
    usleep(1000); /* at once in a task that is cancelled */
    inside--;
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    return unused;
}
static void *write_locked(void *unused) {
    CHECK_EQUAL(pthread_rwlock_wrlock(&rwlock), 0);
    CHECK_EQUAL(writing++, 0);
    usleep(1000);
    writing--;
    passed++;
    CHECK_EQUAL(pthread_rwlock_unlock(&rwlock), 0);
    return unused;
}
static void *read_locked(void *unused) {
    CHECK_EQUAL(pthread_rwlock_rdlock(&rwlock), 0);
    CHECK_EQUAL(writing, 0);
    usleep(1000);
    CHECK_EQUAL(writing, 0);
    passed++;
    CHECK_EQUAL(pthread_rwlock_unlock(&rwlock), 0);
    return unused;
}
static void *hold_mutex_cancelled(void *unused) {
    haft_io_spawn(hold_mutex, NULL);
    return hold_mutex(unused);
}
enum { HOLDERS = 10 };
static void *hold_all(void *with_a_thread) {
    pthread_t thread;
    passed = inside = writing = 0;
    if (with_a_thread != NULL)
        CHECK_EQUAL(pthread_create(&thread, NULL, hold_mutex, NULL), 0);
    haft_io_task_t *first = haft_io_async(hold_mutex, NULL);
    haft_io_yield();
    haft_io_scope_options_t options = {.deadline = 1};
    CHECK_EQUAL(haft_io_scope_with(&options, hold_mutex_cancelled, NULL, NULL), -ETIMEDOUT);
    haft_io_task_t *tasks[3 * HOLDERS];
    for (int i = 0; i < HOLDERS; i++) {
        tasks[3 * i] = haft_io_async(hold_mutex, NULL);
        tasks[3 * i + 1] = haft_io_async(write_locked, NULL);
        tasks[3 * i + 2] = haft_io_async(read_locked, NULL);
    }
    for (int i = 0; i < 3 * HOLDERS; i++)
        haft_io_join(tasks[i], NULL);
    haft_io_join(first, NULL);
    if (with_a_thread != NULL)
        CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_EQUAL(passed, 2 * HOLDERS);
    CHECK_EQUAL(pthread_mutex_trylock(&mutex), 0);
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    return NULL;
}
static void a_task_waits_for_a_mutex_that_another_holds_while_it_waits(void) {
    static int with;
    CHECK_EQUAL(haft_io_run(hold_all, &with), 0);
    CHECK_EQUAL(haft_io_simulate(hold_all, NULL), 0);
}

/* In a simulation a task that waits for a mutex lets time pass only for others, and is reported
   when nobody can give it back. */
static pthread_mutex_t one_of_two = PTHREAD_MUTEX_INITIALIZER,
                       other_of_two = PTHREAD_MUTEX_INITIALIZER;
static int had_it;
BODY(hold_for_an_hour) {
    CHECK_EQUAL(pthread_mutex_lock(&one_of_two), 0);
    haft_io_sleep(3600 * HAFT_IO_SECOND);
    CHECK_EQUAL(pthread_mutex_unlock(&one_of_two), 0);
    return NULL;
}
BODY(have_it) {
    CHECK_EQUAL(pthread_mutex_lock(&one_of_two), 0);
    had_it++;
    CHECK_EQUAL(pthread_mutex_unlock(&one_of_two), 0);
    return NULL;
}
BODY(wait_for_an_hour) {
    int64_t begun = haft_io_now();
    haft_io_spawn(hold_for_an_hour, NULL);
    haft_io_sleep(HAFT_IO_SECOND);
    haft_io_task_t *tasks[10];
    for (int i = 0; i < 10; i++)
        tasks[i] = haft_io_async(have_it, NULL);
    for (int i = 0; i < 10; i++)
        haft_io_join(tasks[i], NULL);
    int64_t passed_time = haft_io_now() - begun;
    CHECK_EQUAL(passed_time / HAFT_IO_SECOND, 3600);
    return NULL;
}
static void unlock_it(void *held) {
    pthread_mutex_unlock(*(pthread_mutex_t **)held);
}
BODY(hold_for_ever) {
    __attribute__((cleanup(unlock_it))) pthread_mutex_t *held = &one_of_two;
    CHECK_EQUAL(pthread_mutex_lock(held), 0);
    haft_io_event_t never = {0};
    haft_io_event_wait(&never);
    return NULL;
}
BODY(wait_for_who_waits_for_ever) {
    haft_io_spawn(hold_for_ever, NULL);
    haft_io_sleep(HAFT_IO_SECOND);
    haft_io_spawn(have_it, NULL);
    return NULL;
}
static void time_stands_still_for_who_wants_a_mutex(void) {
    for (uint64_t seed = 1; seed <= 10; seed++) {
        had_it = 0;
        CHECK_EQUAL(haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = seed},
                                          wait_for_an_hour, NULL),
                    0);
        CHECK_EQUAL(had_it, 10);
    }
    had_it = 0;
    CHECK_EQUAL(haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = 1},
                                      wait_for_who_waits_for_ever, NULL),
                -EDEADLK);
    CHECK_EQUAL(had_it, 1);
}

BODY(lock_one_and_the_other) {
    CHECK_EQUAL(pthread_mutex_lock(&one_of_two), 0);
    haft_io_sleep(HAFT_IO_SECOND);
    CHECK_EQUAL(pthread_mutex_lock(&other_of_two), 0);
    return NULL;
}
BODY(lock_the_other_and_one) {
    CHECK_EQUAL(pthread_mutex_lock(&other_of_two), 0);
    haft_io_sleep(HAFT_IO_SECOND);
    CHECK_EQUAL(pthread_mutex_lock(&one_of_two), 0);
    return NULL;
}
BODY(lock_crosswise) {
    haft_io_spawn(lock_one_and_the_other, NULL);
    haft_io_spawn(lock_the_other_and_one, NULL);
    return NULL;
}
static void simulate_a_deadlock(void) {
    haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = 7}, lock_crosswise, NULL);
}
static void a_deadlock_of_mutexes_is_reported(void) {
    CHECK_ABORTS(simulate_a_deadlock, "waits for: a lock");
}

/* ---- Conditions ---- */

/* A queue as libraries have it: with room for one, and the same condition for tasks that put and
   tasks that take. */
enum { PUTTERS = 4, EACH = 500 };
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int queued, put, taken;
static int64_t sum;
static void *put_numbers(void *unused) {
    for (int i = 1; i <= EACH; i++) {
        CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
        while (queued != 0)
            CHECK_EQUAL(pthread_cond_wait(&changed, &mutex), 0);
        queued = i;
        put++;
        CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
        CHECK_EQUAL(pthread_cond_broadcast(&changed), 0);
    }
    return unused;
}
static void *take_numbers(void *unused) {
    for (int i = 1; i <= EACH; i++) {
        CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
        while (queued == 0)
            CHECK_EQUAL(pthread_cond_wait(&changed, &mutex), 0);
        sum += queued;
        queued = 0;
        taken++;
        CHECK_EQUAL(pthread_cond_broadcast(&changed), 0);
        CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    }
    return unused;
}
static void *pass_numbers(void *threads) {
    pthread_t putter, taker;
    haft_io_task_t *tasks[2 * PUTTERS];
    queued = put = taken = 0;
    sum = 0;
    if (threads != NULL) {
        CHECK_EQUAL(pthread_create(&putter, NULL, put_numbers, NULL), 0);
        CHECK_EQUAL(pthread_create(&taker, NULL, take_numbers, NULL), 0);
    }
    for (int i = 0; i < PUTTERS; i++) {
        tasks[2 * i] = haft_io_async(put_numbers, NULL);
        tasks[2 * i + 1] = haft_io_async(take_numbers, NULL);
    }
    for (int i = 0; i < 2 * PUTTERS; i++)
        CHECK_EQUAL(haft_io_join(tasks[i], NULL), 0);
    if (threads != NULL) {
        CHECK_EQUAL(pthread_join(putter, NULL), 0);
        CHECK_EQUAL(pthread_join(taker, NULL), 0);
    }
    int users = PUTTERS + (threads != NULL);
    CHECK_EQUAL(taken, users * EACH);
    CHECK_EQUAL(sum, (int64_t)users * EACH * (EACH + 1) / 2);
    return NULL;
}
static void pass_on(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, pass_numbers, NULL), 0);
    CHECK_EQUAL(haft_io_run_with(options, pass_numbers, &changed), 0);
}
static void tasks_and_threads_wait_for_one_condition(void) {
    check_everywhere(pass_on);
    CHECK_EQUAL(haft_io_simulate(pass_numbers, NULL), 0);
}

/* A signal is for one. */
static int woken;
static void *wait_once(void *unused) {
    CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
    errno = ERANGE;
    CHECK_EQUAL(pthread_cond_wait(&changed, &mutex), 0);
    CHECK_EQUAL(errno, ERANGE);
    woken++;
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    return unused;
}
BODY(signal_one_by_one) {
    haft_io_task_t *tasks[3];
    woken = 0;
    for (int i = 0; i < 3; i++)
        tasks[i] = haft_io_async(wait_once, NULL);
    for (int i = 0; i < 3; i++) {
        haft_io_sleep(HAFT_IO_MILLISECOND);
        CHECK_EQUAL(woken, i);
        CHECK_EQUAL(pthread_cond_signal(&changed), 0);
        CHECK_EQUAL(haft_io_join(tasks[i], NULL), 0); /* in the order in which they came */
    }
    CHECK_EQUAL(pthread_cond_signal(&changed), 0);
    return NULL;
}
static void a_signal_wakes_the_first_task(void) {
    CHECK_RUNS(signal_one_by_one);
}

static struct timespec in_a_moment(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }
    return time;
}
BODY(wait_with_limits) {
    pthread_cond_t monotonic;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    CHECK_EQUAL(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC), 0);
    CHECK_EQUAL(pthread_cond_init(&monotonic, &attributes), 0);
    CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
    struct timespec time = in_a_moment(CLOCK_REALTIME);
    CHECK_EQUAL(pthread_cond_timedwait(&changed, &mutex, &time), ETIMEDOUT);
    time = in_a_moment(CLOCK_MONOTONIC);
    CHECK_EQUAL(pthread_cond_timedwait(&monotonic, &mutex, &time), ETIMEDOUT);
    time = in_a_moment(CLOCK_MONOTONIC);
    CHECK_EQUAL(pthread_cond_clockwait(&changed, &mutex, CLOCK_MONOTONIC, &time), ETIMEDOUT);
    time.tv_nsec = -1;
    CHECK_EQUAL(pthread_cond_timedwait(&changed, &mutex, &time), EINVAL);
    time = (struct timespec){-1, 0};
    CHECK_EQUAL(pthread_cond_timedwait(&changed, &mutex, &time), ETIMEDOUT);
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    CHECK_EQUAL(pthread_cond_destroy(&monotonic), 0);
    pthread_condattr_destroy(&attributes);
    return NULL;
}
BODY(signal_before_the_limit) {
    haft_io_task_t *task = haft_io_async(wait_once, NULL);
    woken = 0;
    haft_io_yield();
    CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
    CHECK_EQUAL(pthread_cond_signal(&changed), 0);
    while (woken == 0) { /* It needs the mutex, which this wait gives back. */
        struct timespec time = in_a_moment(CLOCK_REALTIME);
        CHECK_EQUAL(pthread_cond_timedwait(&changed, &mutex, &time), ETIMEDOUT);
    }
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    CHECK_EQUAL(haft_io_join(task, NULL), 0);
    return NULL;
}
static void a_wait_for_a_condition_may_have_a_limit(void) {
    CHECK_RUNS(wait_with_limits);
    CHECK_RUNS(signal_before_the_limit);
}

static void *wait_cancelled(void *unused) {
    wait_once(NULL);
    CHECK_EQUAL(usleep(1), -1);
    CHECK_EQUAL(errno, ECANCELED);
    return unused;
}
static void *signal_later(void *unused) {
    while (woken == 0) {
        pthread_mutex_lock(&mutex);
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&mutex);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return unused;
}
BODY(cancel_a_wait) {
    pthread_t thread;
    woken = 0;
    haft_io_scope_options_t options = {.deadline = 1};
    CHECK_EQUAL(pthread_create(&thread, NULL, signal_later, NULL), 0);
    CHECK_EQUAL(haft_io_scope_with(&options, wait_cancelled, NULL, NULL), -ETIMEDOUT);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_EQUAL(woken, 1);
    return NULL;
}
static void a_cancel_does_not_end_a_wait_for_a_condition(void) {
    CHECK_RUNS(cancel_a_wait);
}

/* ---- The same of C11 ---- */

static cnd_t of_c11;
static mtx_t mutex_of_c11;
static int answer_in_a_thread(void *unused) {
    (void)unused;
    CHECK_EQUAL(mtx_lock(&mutex_of_c11), thrd_success);
    queued = 0;
    CHECK_EQUAL(cnd_signal(&of_c11), thrd_success);
    CHECK_EQUAL(mtx_unlock(&mutex_of_c11), thrd_success);
    return 42;
}
BODY(answer_in_a_task) {
    haft_io_yield();
    CHECK_EQUAL(answer_in_a_thread(NULL), 42);
    CHECK_EQUAL(cnd_broadcast(&of_c11), thrd_success);
    return NULL;
}
BODY(ask_by_c11) {
    thrd_t thread;
    int result = 0;
    CHECK_EQUAL(cnd_init(&of_c11), thrd_success);
    CHECK_EQUAL(mtx_init(&mutex_of_c11, mtx_plain), thrd_success);
    for (int i = 0; i < 2; i++) {
        queued = 1;
        if (i == 0)
            CHECK_EQUAL(thrd_create(&thread, answer_in_a_thread, NULL), thrd_success);
        else
            haft_io_spawn(answer_in_a_task, NULL);
        CHECK_EQUAL(mtx_lock(&mutex_of_c11), thrd_success);
        while (queued != 0)
            CHECK_EQUAL(cnd_wait(&of_c11, &mutex_of_c11), thrd_success);
        CHECK_EQUAL(mtx_unlock(&mutex_of_c11), thrd_success);
    }
    CHECK_EQUAL(thrd_join(thread, &result), thrd_success);
    CHECK_EQUAL(result, 42);
    struct timespec time = in_a_moment(CLOCK_REALTIME);
    CHECK_EQUAL(mtx_lock(&mutex_of_c11), thrd_success);
    CHECK_EQUAL(cnd_timedwait(&of_c11, &mutex_of_c11, &time), thrd_timedout);
    CHECK_EQUAL(mtx_unlock(&mutex_of_c11), thrd_success);
    cnd_destroy(&of_c11);
    mtx_destroy(&mutex_of_c11);
    return NULL;
}
static void the_threads_of_c11_are_the_same(void) {
    CHECK_RUNS(ask_by_c11);
}

int main(void) {
    check_backend();
    RUN(a_task_waits_for_a_mutex_that_another_holds_while_it_waits);
    RUN(time_stands_still_for_who_wants_a_mutex);
    RUN(a_deadlock_of_mutexes_is_reported);
    RUN(tasks_and_threads_wait_for_one_condition);
    RUN(a_signal_wakes_the_first_task);
    RUN(a_wait_for_a_condition_may_have_a_limit);
    RUN(a_cancel_does_not_end_a_wait_for_a_condition);
    RUN(the_threads_of_c11_are_the_same);
    return check_end();
}
