/* SPDX-License-Identifier: MIT */
/* Futexes, by the C library's `syscall`, between tasks of one thread, of several, and threads. */
#include "../../tests/check_io.h"

#include <haft/posix.h>

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PRIVATE = FUTEX_PRIVATE_FLAG };
static const struct timespec MOMENT = {.tv_nsec = HAFT_IO_MILLISECOND};

/* The result, or the negative error number; errno stays where that is none. */
static long futex_with(const void *word, int operation, uint32_t value, const void *limit,
                       const void *other, uint32_t third) {
    errno = ERANGE;
    long result = syscall(SYS_futex, word, operation, value, limit, other, third);
    CHECK_EQUAL(result, result >= 0 ? result : -1);
    if (result >= 0)
        CHECK_EQUAL(errno, ERANGE);
    return result >= 0 ? result : -errno;
}
static long futex(const void *word, int operation, uint32_t value) {
    return futex_with(word, operation, value, NULL, NULL, 0);
}
static long requeue(const void *word, int operation, uint32_t woken, uint32_t moved,
                    const void *other, uint32_t value) {
    return futex_with(word, operation, woken, (const void *)(uintptr_t)moved, other, value);
}

static uint32_t load(const uint32_t *word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
static void store(uint32_t *word, uint32_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
static void add(uint32_t *word) {
    __atomic_fetch_add(word, 1, __ATOMIC_ACQ_REL);
}

/* ---- Arguments ---- */

static struct timespec from_now(clockid_t clock, int64_t nanoseconds) {
    struct timespec time;
    clock_gettime(clock, &time);
    int64_t sum = time.tv_nsec + nanoseconds;
    return (struct timespec){time.tv_sec + sum / HAFT_IO_SECOND, sum % HAFT_IO_SECOND};
}

BODY(limits_pass) {
    static uint32_t word;
    static const struct timespec zero, past = {1, 0};
    enum { REAL = FUTEX_CLOCK_REALTIME, ANY = -1 };
    CHECK_EQUAL(futex_with(&word, FUTEX_WAIT | PRIVATE, 0, &MOMENT, NULL, 0), -ETIMEDOUT);
    CHECK_EQUAL(futex_with(&word, FUTEX_WAIT, 0, &MOMENT, NULL, 0), -ETIMEDOUT);
    CHECK_EQUAL(futex_with(&word, FUTEX_WAIT | PRIVATE, 0, &zero, NULL, 0), -ETIMEDOUT);
    CHECK_EQUAL(futex_with(&word, FUTEX_WAIT_BITSET | PRIVATE, 0, &past, NULL, 1), -ETIMEDOUT);
    CHECK_EQUAL(futex_with(&word, FUTEX_WAIT_BITSET | REAL, 0, &past, NULL, 1), -ETIMEDOUT);
    struct timespec soon = from_now(CLOCK_MONOTONIC, HAFT_IO_MILLISECOND);
    CHECK_EQUAL(futex_with(&word, FUTEX_WAIT_BITSET | PRIVATE, 0, &soon, NULL, ~0U), -ETIMEDOUT);
    soon = from_now(CLOCK_REALTIME, HAFT_IO_MILLISECOND);
    CHECK_EQUAL(futex_with(&word, FUTEX_WAIT_BITSET | PRIVATE | REAL, 0, &soon, NULL, ~0U),
                -ETIMEDOUT);
    return NULL;
}
BODY(mistakes_are_refused) {
    static uint32_t words[2];
    char *odd = (char *)words + 1;
    static const struct timespec wrong = {0, HAFT_IO_SECOND}, negative = {-1, 0};
    CHECK_EQUAL(futex(&words[0], FUTEX_WAIT | PRIVATE, 1), -EAGAIN);
    CHECK_EQUAL(futex_with(&words[0], FUTEX_WAIT_BITSET, 1, NULL, NULL, 1), -EAGAIN);
    CHECK_EQUAL(futex_with(&words[0], FUTEX_WAIT_BITSET | PRIVATE, 0, NULL, NULL, 0), -EINVAL);
    CHECK_EQUAL(futex_with(&words[0], FUTEX_WAKE_BITSET | PRIVATE, 1, NULL, NULL, 0), -EINVAL);
    CHECK_EQUAL(futex(odd, FUTEX_WAIT | PRIVATE, 0), -EINVAL);
    CHECK_EQUAL(futex(odd, FUTEX_WAKE | PRIVATE, 1), -EINVAL);
    CHECK_EQUAL(futex(NULL, FUTEX_WAIT | PRIVATE, 0), -EFAULT);
    CHECK_EQUAL(futex_with(&words[0], FUTEX_WAIT | PRIVATE, 0, &wrong, NULL, 0), -EINVAL);
    CHECK_EQUAL(futex_with(&words[0], FUTEX_WAIT | PRIVATE, 0, &negative, NULL, 0), -EINVAL);
    CHECK_EQUAL(futex_with(&words[0], FUTEX_WAIT_BITSET, 0, &wrong, NULL, 1), -EINVAL);
    CHECK_EQUAL(requeue(&words[0], FUTEX_REQUEUE, UINT32_MAX, 1, &words[1], 0), -EINVAL);
    CHECK_EQUAL(requeue(&words[0], FUTEX_REQUEUE, 1, UINT32_MAX, &words[1], 0), -EINVAL);
    CHECK_EQUAL(requeue(&words[0], FUTEX_REQUEUE, 1, 1, odd, 0), -EINVAL);
    CHECK_EQUAL(requeue(&words[0], FUTEX_CMP_REQUEUE, 1, 1, &words[1], 1), -EAGAIN);
    CHECK_EQUAL(futex(&words[0], FUTEX_WAKE | FUTEX_CLOCK_REALTIME, 1), -ENOSYS);
    CHECK_EQUAL(futex(&words[0], 127, 1), -ENOSYS);
    CHECK_EQUAL(futex(&words[0], FUTEX_WAKE, INT_MAX), 0);
    return NULL;
}
BODY(the_rest_is_the_systems) {
    errno = 0;
    CHECK_EQUAL(syscall(SYS_getpid), getpid());
    CHECK_EQUAL(syscall(-1L), -1);
    CHECK_EQUAL(errno, ENOSYS);
    int ends[2];
    char text[8];
    CHECK_EQUAL(syscall(SYS_pipe2, ends, 0), 0);
    CHECK_EQUAL(pwrite(ends[1], "", 1, 0), -1); /* a call between that changes errno */
    CHECK_EQUAL(syscall(SYS_write, ends[1], "hello", 5L), 5);
    CHECK_EQUAL(syscall(SYS_read, ends[0], text, sizeof text), 5);
    CHECK(memcmp(text, "hello", 5) == 0);
    close(ends[0]);
    close(ends[1]);
    return NULL;
}
static void arguments_and_limits_are_as_the_kernels(void) {
    limits_pass(NULL); /* by the kernel's limit */
    mistakes_are_refused(NULL);
    the_rest_is_the_systems(NULL);
    CHECK_RUNS(limits_pass);
    CHECK_RUNS(mistakes_are_refused);
    CHECK_RUNS(the_rest_is_the_systems);
    CHECK_EQUAL(haft_io_simulate(limits_pass, NULL), 0);
    CHECK_EQUAL(haft_io_simulate(mistakes_are_refused, NULL), 0);
}

/* ---- The tasks that are woken ---- */

typedef struct waiter {
    const uint32_t *word;
    int operation;
    uint32_t bits;
    uint32_t woken;
} waiter_t;

static void *wait_once(void *argument) {
    waiter_t *waiter = argument;
    CHECK_EQUAL(futex_with(waiter->word, waiter->operation, 0, NULL, NULL, waiter->bits), 0);
    add(&waiter->woken);
    return NULL;
}
static int count_woken(const waiter_t *waiters, int count) {
    int woken = 0;
    for (int i = 0; i < count; i++)
        woken += load(&waiters[i].woken) != 0;
    return woken;
}

static uint32_t first, second;

/* Six that wait for the first word, tasks or threads, in some order. */
enum { SIX = 6 };
typedef struct six {
    waiter_t waiters[SIX];
    pthread_t threads[SIX];
    haft_io_task_t *tasks[SIX];
    bool are_threads;
} six_t;

static void begin_six(six_t *six, bool are_threads, bool is_private) {
    *six = (six_t){.are_threads = are_threads};
    int operation = FUTEX_WAIT_BITSET | (is_private ? PRIVATE : 0);
    for (int i = 0; i < SIX; i++) {
        six->waiters[i] = (waiter_t){&first, operation, 1U << (i % 3), 0};
        if (are_threads)
            CHECK_EQUAL(pthread_create(&six->threads[i], NULL, wait_once, &six->waiters[i]), 0);
        else
            six->tasks[i] = haft_io_async(wait_once, &six->waiters[i]);
    }
    /* A wake for nobody, of a requeue to the same word, counts them. */
    int flag = is_private ? PRIVATE : 0;
    while (requeue(&first, FUTEX_CMP_REQUEUE | flag, 0, INT_MAX, &first, 0) < SIX)
        haft_io_sleep(HAFT_IO_MILLISECOND / 10);
}
static void await_woken(const six_t *six, int count) {
    while (count_woken(six->waiters, SIX) < count)
        haft_io_sleep(HAFT_IO_MILLISECOND / 10);
    CHECK_EQUAL(count_woken(six->waiters, SIX), count);
}
static void end_six(six_t *six) {
    await_woken(six, SIX);
    for (int i = 0; i < SIX; i++)
        if (six->are_threads)
            CHECK_EQUAL(pthread_join(six->threads[i], NULL), 0);
        else
            CHECK_EQUAL(haft_io_join(six->tasks[i], NULL), 0);
}

/* Whatever the waiters are, the counts are the same. */
static void wake_six(bool are_threads, bool is_private) {
    static six_t six;
    int flag = is_private ? PRIVATE : 0, other_flag = is_private ? 0 : PRIVATE;
    begin_six(&six, are_threads, is_private);
    CHECK_EQUAL(futex(&first, FUTEX_WAKE | other_flag, INT_MAX), 0);
    CHECK_EQUAL(futex(&second, FUTEX_WAKE | flag, INT_MAX), 0);
    CHECK_EQUAL(futex_with(&first, FUTEX_WAKE_BITSET | flag, INT_MAX, NULL, NULL, 8), 0);
    CHECK_EQUAL(futex_with(&first, FUTEX_WAKE_BITSET | flag, 1, NULL, NULL, 4), 1);
    await_woken(&six, 1);
    CHECK_EQUAL(load(&six.waiters[2].woken) + load(&six.waiters[5].woken), 1);
    CHECK_EQUAL(futex_with(&first, FUTEX_WAKE_BITSET | flag, INT_MAX, NULL, NULL, 6), 3);
    await_woken(&six, 4);
    CHECK_EQUAL(futex(&first, FUTEX_WAKE | flag, 0), 1);
    CHECK_EQUAL(futex(&first, FUTEX_WAKE | flag, 2), 1);
    CHECK_EQUAL(futex(&first, FUTEX_WAKE | flag, 2), 0);
    end_six(&six);
}
static void requeue_six(bool are_threads, bool is_private) {
    static six_t six;
    int flag = is_private ? PRIVATE : 0;
    begin_six(&six, are_threads, is_private);
    CHECK_EQUAL(requeue(&first, FUTEX_CMP_REQUEUE | flag, 1, 1, &second, 1), -EAGAIN);
    CHECK_EQUAL(requeue(&first, FUTEX_CMP_REQUEUE | flag, 1, 2, &second, 0), 3);
    await_woken(&six, 1);
    CHECK_EQUAL(futex(&second, FUTEX_WAKE | flag, 1), 1);
    await_woken(&six, 2);
    CHECK_EQUAL(requeue(&first, FUTEX_REQUEUE | flag, 1, INT_MAX, &second, 1), 3);
    await_woken(&six, 3);
    CHECK_EQUAL(futex(&first, FUTEX_WAKE | flag, INT_MAX), 0);
    CHECK_EQUAL(futex(&second, FUTEX_WAKE | flag, INT_MAX), 3);
    end_six(&six);
}
BODY(wake_tasks_and_threads) {
    for (int i = 0; i < 4; i++) {
        wake_six(i % 2 != 0, i / 2 != 0);
        requeue_six(i % 2 != 0, i / 2 != 0);
    }
    return NULL;
}
static void on_these(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, wake_tasks_and_threads, NULL), 0);
}
static void counts_are_the_same_for_tasks_and_threads(void) {
    check_everywhere(on_these);
}

/* Tasks and threads at one word: a wake for more than there are tasks goes on among the threads. */
BODY(wake_a_mixture) {
    static six_t tasks, threads;
    begin_six(&threads, true, true);
    CHECK_EQUAL(requeue(&first, FUTEX_REQUEUE | PRIVATE, 0, INT_MAX, &second, 0), SIX);
    begin_six(&tasks, false, true);
    CHECK_EQUAL(requeue(&second, FUTEX_REQUEUE | PRIVATE, 0, INT_MAX, &first, 0), SIX);
    CHECK_EQUAL(futex(&first, FUTEX_WAKE | PRIVATE, 2), 2);
    CHECK_EQUAL(futex(&first, FUTEX_WAKE | PRIVATE, SIX), SIX);
    end_six(&tasks);
    await_woken(&threads, 2);
    begin_six(&tasks, false, false);
    CHECK_EQUAL(futex(&first, FUTEX_WAKE, INT_MAX), SIX);
    end_six(&tasks);
    for (int i = 0; i < 2; i++) { /* one or more of the threads, then tasks */
        static six_t others;
        begin_six(&others, false, false);
        CHECK_EQUAL(requeue(&first, FUTEX_REQUEUE, 1, 2, &second, 0), 3);
        CHECK_EQUAL(futex(&first, FUTEX_WAKE, INT_MAX) + futex(&second, FUTEX_WAKE, INT_MAX), 5);
        end_six(&others);
    }
    CHECK_EQUAL(requeue(&first, FUTEX_CMP_REQUEUE | PRIVATE, 1, 1, &second, 0), 2);
    CHECK_EQUAL(futex(&first, FUTEX_WAKE | PRIVATE, INT_MAX), 2);
    CHECK_EQUAL(futex(&second, FUTEX_WAKE | PRIVATE, INT_MAX), 1);
    end_six(&threads);
    return NULL;
}
static void a_wake_for_more_than_the_tasks_goes_on_among_threads(void) {
    CHECK_RUNS(wake_a_mixture);
}

/* ---- Many ---- */

enum { MANY = CHECK_THREAD_SANITIZER ? 200 : 1000 };
static uint32_t begun, ended;
BODY(wait_for_change) {
    add(&begun);
    while (load(&first) == 0)
        futex(&first, FUTEX_WAIT | PRIVATE, 0);
    add(&ended);
    return NULL;
}
BODY(wake_all) {
    while (load(&begun) < MANY)
        usleep(100);
    store(&first, 1);
    long woken = 0;
    while (load(&ended) < MANY) {
        long now = futex(&first, FUTEX_WAKE | PRIVATE, INT_MAX);
        CHECK(now >= 0);
        woken += now;
        usleep(100);
    }
    CHECK(woken <= MANY);
    return NULL;
}
static void *wait_for_waker(void *by_thread) {
    pthread_t thread;
    first = begun = ended = 0;
    if (by_thread != NULL)
        CHECK_EQUAL(pthread_create(&thread, NULL, wake_all, NULL), 0);
    else
        haft_io_spawn(wake_all, NULL);
    for (int i = 0; i < MANY; i++)
        CHECK_EQUAL(haft_io_spawn(wait_for_change, NULL), 0);
    while (load(&ended) < MANY)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    if (by_thread != NULL)
        CHECK_EQUAL(pthread_join(thread, NULL), 0);
    return NULL;
}
static void let_many_wait(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, wait_for_waker, NULL), 0);
    CHECK_EQUAL(haft_io_run_with(options, wait_for_waker, &first), 0);
}
static void many_tasks_are_woken_by_a_task_or_a_thread(void) {
    check_everywhere(let_many_wait);
    CHECK_EQUAL(haft_io_simulate(wait_for_waker, NULL), 0);
    first = 0;
}

/* ---- A lock, as std::sync::Mutex is one: 0 free, 1 held, 2 held and waited for ---- */

static uint32_t lock_word;
static int inside, turns;
static void lock(void) {
    uint32_t is_free = 0;
    if (__atomic_compare_exchange_n(&lock_word, &is_free, 1, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(&lock_word, 2, __ATOMIC_ACQUIRE) != 0)
        futex(&lock_word, FUTEX_WAIT | PRIVATE, 2);
}
static void unlock(void) {
    if (__atomic_exchange_n(&lock_word, 0, __ATOMIC_RELEASE) == 2)
        futex(&lock_word, FUTEX_WAKE | PRIVATE, 1);
}
enum { LOCKERS = 10, LOCKS = CHECK_THREAD_SANITIZER ? 20 : 100 };
static void *lock_often(void *is_task) {
    for (int i = 0; i < LOCKS; i++) {
        lock();
        CHECK_EQUAL(inside++, 0);
        if (is_task != NULL && i % 10 == 0)
            haft_io_yield();
        turns++;
        inside--;
        unlock();
    }
    return NULL;
}
static void *lock_at_once(void *with_threads) {
    pthread_t threads[2];
    haft_io_task_t *tasks[LOCKERS];
    turns = 0;
    for (int i = 0; with_threads != NULL && i < 2; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, lock_often, NULL), 0);
    for (int i = 0; i < LOCKERS; i++)
        tasks[i] = haft_io_async(lock_often, &lock_word);
    for (int i = 0; i < LOCKERS; i++)
        CHECK_EQUAL(haft_io_join(tasks[i], NULL), 0);
    for (int i = 0; with_threads != NULL && i < 2; i++)
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    CHECK_EQUAL(turns, (LOCKERS + (with_threads != NULL ? 2 : 0)) * LOCKS);
    return NULL;
}
static void lock_on(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, lock_at_once, NULL), 0);
    CHECK_EQUAL(haft_io_run_with(options, lock_at_once, &turns), 0);
}
static void a_lock_that_is_held_over_a_wait_is_waited_for(void) {
    check_everywhere(lock_on);
    for (int i = 0; i < 10; i++)
        CHECK_EQUAL(haft_io_simulate(lock_at_once, NULL), 0);
}

/* Two real threads in a program of tests: one holds a lock of the process for a moment, and tasks
   that the other simulates want it. */
static void *hold_for_a_moment(void *holds) {
    lock();
    CHECK_EQUAL(inside++, 0);
    store(holds, 1);
    usleep(20000);
    inside--;
    unlock();
    return NULL;
}
BODY(lock_once) {
    lock();
    CHECK_EQUAL(inside++, 0);
    inside--;
    unlock();
    return NULL;
}
static void a_simulation_waits_for_a_lock_that_another_thread_holds(void) {
    uint32_t holds = 0;
    pthread_t holder;
    CHECK_EQUAL(pthread_create(&holder, NULL, hold_for_a_moment, &holds), 0);
    while (load(&holds) == 0)
        usleep(100);
    CHECK_EQUAL(haft_io_simulate(lock_once, NULL), 0);
    CHECK_EQUAL(pthread_join(holder, NULL), 0);
}

/* ---- Rounds that all are let into by a requeue, as of a condition ---- */

enum { ROUNDS = 20, OF_TASKS = 8, OF_THREADS = 2 };
static uint32_t rounds, gate, arrived, passed;
BODY(go_through_rounds) {
    for (uint32_t round = 0; round < ROUNDS; round++) {
        add(&arrived);
        while (load(&rounds) == round)
            futex(&rounds, FUTEX_WAIT | PRIVATE, round);
        add(&passed);
    }
    return NULL;
}
BODY(let_rounds_begin) {
    pthread_t threads[OF_THREADS];
    rounds = arrived = passed = 0;
    for (int i = 0; i < OF_TASKS; i++)
        haft_io_spawn(go_through_rounds, NULL);
    for (int i = 0; i < OF_THREADS; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, go_through_rounds, NULL), 0);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        while (load(&arrived) < round * (OF_TASKS + OF_THREADS))
            haft_io_sleep(HAFT_IO_MILLISECOND / 10);
        store(&rounds, round);
        CHECK_EQUAL(requeue(&rounds, FUTEX_CMP_REQUEUE | PRIVATE, 1, INT_MAX, &gate, round - 1),
                    -EAGAIN);
        long moved = requeue(&rounds, FUTEX_CMP_REQUEUE | PRIVATE, 1, INT_MAX, &gate, round);
        CHECK(moved >= 0 && moved <= OF_TASKS + OF_THREADS);
        CHECK_EQUAL(futex(&gate, FUTEX_WAKE | PRIVATE, INT_MAX), moved > 1 ? moved - 1 : 0);
    }
    for (int i = 0; i < OF_THREADS; i++)
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    while (load(&passed) < ROUNDS * (OF_TASKS + OF_THREADS))
        haft_io_sleep(HAFT_IO_MILLISECOND / 10);
    return NULL;
}
static void begin_rounds(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, let_rounds_begin, NULL), 0);
}
static void a_requeue_loses_no_waiter(void) {
    check_everywhere(begin_rounds);
}

/* ---- Cancels, limits, words that change ---- */

BODY(wait_cancelled) {
    CHECK_EQUAL(futex(&first, FUTEX_WAIT | PRIVATE, 0), 0);
    add(&ended);
    CHECK_EQUAL(usleep(1), -1);
    CHECK_EQUAL(errno, ECANCELED);
    return NULL;
}
BODY(wake_when_there_is_one) {
    while (futex(&first, FUTEX_WAKE | PRIVATE, 1) == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    return NULL;
}
BODY(cancel_a_wait) {
    haft_io_spawn(wake_when_there_is_one, NULL);
    haft_io_scope_options_t options = {.deadline = 1};
    CHECK_EQUAL(haft_io_scope_with(&options, wait_cancelled, NULL, NULL), -ETIMEDOUT);
    CHECK_EQUAL(ended, 1);
    return NULL;
}
static void no_cancel_ends_a_wait(void) {
    first = ended = 0;
    CHECK_RUNS(cancel_a_wait);
}

BODY(wait_with_limit) {
    struct timespec late = from_now(CLOCK_MONOTONIC, 3600 * HAFT_IO_SECOND);
    CHECK_EQUAL(futex_with(&first, FUTEX_WAIT_BITSET | PRIVATE, 0, &late, NULL, 1), 0);
    add(&ended);
    return NULL;
}
BODY(limit_and_wake) {
    haft_io_task_t *task = haft_io_async(wait_with_limit, NULL);
    wake_when_there_is_one(NULL);
    CHECK_EQUAL(haft_io_join(task, NULL), 0);
    /* The one whose time is over is not counted by a wake. */
    CHECK_EQUAL(futex_with(&first, FUTEX_WAIT | PRIVATE, 0, &MOMENT, NULL, 0), -ETIMEDOUT);
    CHECK_EQUAL(futex(&first, FUTEX_WAKE | PRIVATE, 1), 0);
    return NULL;
}
static void a_wake_before_the_limit_ends_the_wait(void) {
    first = 0;
    CHECK_RUNS(limit_and_wake);
}

/* Two tasks that call std::thread::park do so: each changes the word under the other. */
BODY(wait_in_vain) {
    while (load(&second) == 0)
        CHECK_EQUAL(futex(&first, FUTEX_WAIT | PRIVATE, 1), -EAGAIN);
    return NULL;
}
BODY(set_second) {
    haft_io_yield();
    store(&second, 1);
    return NULL;
}
BODY(let_wait_in_vain) {
    second = 0;
    haft_io_spawn(wait_in_vain, NULL);
    haft_io_spawn(set_second, NULL);
    return NULL;
}
static void a_wait_for_another_value_lets_others_go_on(void) {
    first = 0;
    CHECK_RUNS(let_wait_in_vain);
    CHECK_EQUAL(haft_io_simulate(let_wait_in_vain, NULL), 0);
}

/* ---- Words of the thread ---- */

static __thread uint32_t of_thread;
static uint32_t looks;

BODY(look_often) {
    for (int i = 0; i < 8; i++) {
        add(&looks);
        haft_io_yield();
    }
    return NULL;
}
static void *wake_thread(void *word) {
    usleep(1000);
    store(word, 1);
    futex(word, FUTEX_WAKE | PRIVATE, 1);
    return NULL;
}
BODY(wait_as_thread) {
    looks = of_thread = 0;
    haft_io_spawn(look_often, NULL);
    CHECK_EQUAL(futex_with(&of_thread, FUTEX_WAIT | PRIVATE, 0, &MOMENT, NULL, 0), -ETIMEDOUT);
    CHECK_EQUAL(looks, 0);
    pthread_t waker;
    pthread_create(&waker, NULL, wake_thread, &of_thread);
    while (load(&of_thread) == 0)
        futex(&of_thread, FUTEX_WAIT | PRIVATE, 0);
    CHECK_EQUAL(looks, 0);
    pthread_join(waker, NULL);
    return NULL;
}
static void a_wait_on_a_thread_local_word_is_the_threads(void) {
    CHECK_RUNS(wait_as_thread);
}

int main(void) {
    check_backend();
    RUN(arguments_and_limits_are_as_the_kernels);
    RUN(counts_are_the_same_for_tasks_and_threads);
    RUN(a_wake_for_more_than_the_tasks_goes_on_among_threads);
    RUN(many_tasks_are_woken_by_a_task_or_a_thread);
    RUN(a_lock_that_is_held_over_a_wait_is_waited_for);
    RUN(a_simulation_waits_for_a_lock_that_another_thread_holds);
    RUN(a_requeue_loses_no_waiter);
    RUN(no_cancel_ends_a_wait);
    RUN(a_wake_before_the_limit_ends_the_wait);
    RUN(a_wait_for_another_value_lets_others_go_on);
    RUN(a_wait_on_a_thread_local_word_is_the_threads);
    return check_end();
}
