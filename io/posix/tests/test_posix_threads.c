/* SPDX-License-Identifier: MIT */
/* Threads that are tasks, in a run of one thread and of two: what programs do with threads, a
   hundred at a time. */
#include "../../tests/check_io.h"

#include <haft/posix.h>

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 100 };

static int kernel_thread(void) {
    return (int)syscall(SYS_gettid);
}

static struct timespec from_now(clockid_t clock, int milliseconds) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += milliseconds * 1000000L;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static void create_all(pthread_t threads[], void *(*function)(void *)) {
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, function, (void *)i), 0);
}
static void run_all(void *(*function)(void *)) {
    pthread_t threads[THREADS];
    create_all(threads, function);
    for (intptr_t i = 0; i < THREADS; i++) {
        void *result = NULL;
        CHECK_EQUAL(pthread_join(threads[i], &result), 0);
        CHECK_EQUAL((intptr_t)result, i);
    }
}

/* ---- Threads ---- */

static __thread int variable;
static pthread_key_t key;
static atomic_int destroyed;

static void destroy_value(void *value) {
    usleep(100);
    CHECK((intptr_t)value == variable);
    destroyed++;
}

static void *is_itself(void *argument) {
    pthread_t self = pthread_self();
    variable = 1000 + (int)(intptr_t)argument;
    pthread_setspecific(key, (void *)(intptr_t)variable);
    usleep(100);
    CHECK(pthread_equal(self, pthread_self()) != 0);
    CHECK_EQUAL(variable, 1000 + (int)(intptr_t)argument);
    CHECK(pthread_getspecific(key) == (void *)(intptr_t)variable);
    return argument;
}
static void threads_are_joined(void) {
    destroyed = 0;
    run_all(is_itself);
    CHECK_EQUAL(destroyed, THREADS);
}

static atomic_int kernel_threads, cleaned;
static void *tells_kernel_thread(void *argument) {
    if (kernel_thread() != (int)(intptr_t)argument)
        kernel_threads++;
    return NULL;
}

static void clean(void *argument) {
    CHECK(argument == &cleaned);
    cleaned++;
}
static void __attribute__((noinline)) exits(void *result) {
    pthread_cleanup_push(clean, &cleaned);
    usleep(10);
    pthread_exit(result);
    pthread_cleanup_pop(0);
}
static void *exits_inside(void *argument) {
    exits(argument);
    CHECK(false);
    return NULL;
}
static void a_thread_ends_by_pthread_exit(void) {
    cleaned = 0;
    run_all(exits_inside);
    CHECK_EQUAL(cleaned, THREADS);
}

static sem_t ended;
static void *posts(void *argument) {
    usleep(10);
    sem_post(&ended);
    return argument;
}
static void detached_threads_end_by_themselves(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    sem_init(&ended, 0, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&thread, i % 2 == 0 ? &attributes : NULL, posts, NULL), 0);
        if (i % 2 != 0)
            CHECK_EQUAL(pthread_detach(thread), 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_EQUAL(sem_wait(&ended), 0);
    pthread_attr_destroy(&attributes);
    sem_destroy(&ended);
}

static void *waits_to_be_posted(void *argument) {
    CHECK_EQUAL(sem_wait(argument), 0);
    return argument;
}
static void a_join_has_limits_and_mistakes(void) {
    pthread_t thread;
    sem_t semaphore;
    void *result;
    sem_init(&semaphore, 0, 0);
    CHECK_EQUAL(pthread_create(&thread, NULL, waits_to_be_posted, &semaphore), 0);
    CHECK_EQUAL(pthread_tryjoin_np(thread, &result), EBUSY);
    struct timespec time = from_now(CLOCK_REALTIME, 2);
    CHECK_EQUAL(pthread_timedjoin_np(thread, &result, &time), ETIMEDOUT);
    CHECK_EQUAL(pthread_join(pthread_self(), NULL), EDEADLK);
    sem_post(&semaphore);
    time = from_now(CLOCK_MONOTONIC, 60000);
    CHECK_EQUAL(pthread_clockjoin_np(thread, &result, CLOCK_MONOTONIC, &time), 0);
    CHECK(result == &semaphore);
}

static void *has_a_large_stack(void *argument) {
    volatile char large[24 << 20];
    pthread_attr_t attributes;
    void *low;
    size_t size;
    for (size_t i = 0; i < sizeof large; i += 4096)
        large[i] = 1;
    CHECK_EQUAL(pthread_getattr_np(pthread_self(), &attributes), 0);
    CHECK_EQUAL(pthread_attr_getstack(&attributes, &low, &size), 0);
    CHECK(size >= 31 << 20 && (char *)low < (char *)&large[0] && (char *)low + size > &large[0]);
    pthread_attr_destroy(&attributes);
    return argument;
}
static void attributes_are_heeded(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    char name[16] = "";
    cpu_set_t set;
    struct sched_param parameters;
    int policy;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 32 << 20);
    CHECK_EQUAL(pthread_create(&thread, &attributes, has_a_large_stack, NULL), 0);
    CHECK_EQUAL(pthread_setname_np(thread, "worker"), 0);
    CHECK_EQUAL(pthread_setname_np(thread, "a name of 16 bytes"), ERANGE);
    CHECK_EQUAL(pthread_getname_np(thread, name, sizeof name), 0);
    CHECK(strcmp(name, "worker") == 0);
    CHECK_EQUAL(pthread_getaffinity_np(thread, sizeof set, &set), 0);
    CHECK_EQUAL(pthread_setaffinity_np(thread, sizeof set, &set), 0);
    CHECK_EQUAL(pthread_getschedparam(thread, &policy, &parameters), 0);
    CHECK_EQUAL(pthread_setschedparam(thread, policy, &parameters), 0);
    CHECK_EQUAL(pthread_setschedparam(thread, SCHED_FIFO, &parameters), EPERM);
    CHECK_EQUAL(pthread_kill(thread, 0), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

/* ---- Locks ---- */

static pthread_mutex_t mutex;
static int depth, passed;

static void *locks(void *argument) {
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
        CHECK_EQUAL(depth++, 0);
        if (i == 1)
            usleep(1);
        else
            sched_yield();
        CHECK_EQUAL(--depth, 0);
        passed++;
        CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    }
    return argument;
}
static void *locks_twice(void *argument) {
    CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
    sched_yield();
    CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
    CHECK_EQUAL(depth++, 0);
    usleep(1);
    CHECK_EQUAL(--depth, 0);
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    sched_yield();
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    return argument;
}
static void *is_refused(void *argument) {
    CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
    sched_yield();
    CHECK_EQUAL(pthread_mutex_lock(&mutex), EDEADLK);
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    return argument;
}
static void mutexes_of_all_kinds(void) {
    static const int kinds[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                                PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
    for (int i = 0; i < 8; i++) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, kinds[i % 4]);
        if (i >= 4)
            pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&mutex, &attributes);
        passed = 0;
        run_all(locks);
        CHECK_EQUAL(passed, 3 * THREADS);
        if (kinds[i % 4] == PTHREAD_MUTEX_RECURSIVE)
            run_all(locks_twice);
        if (kinds[i % 4] == PTHREAD_MUTEX_ERRORCHECK)
            run_all(is_refused);
        pthread_mutex_destroy(&mutex);
        pthread_mutexattr_destroy(&attributes);
    }
}

/* ---- Robust mutexes ---- */

static atomic_int told;
static void *ends_as_holder(void *argument) {
    CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
    usleep(1);
    return argument;
}
/* One in two tries, and waits otherwise. The one that is told waits before it has mended. */
static void *inherits(void *argument) {
    int code = EBUSY;
    while ((intptr_t)argument % 2 == 1 && (code = pthread_mutex_trylock(&mutex)) == EBUSY)
        usleep(100);
    if (code == EBUSY)
        code = pthread_mutex_lock(&mutex);
    if (code == EOWNERDEAD) {
        told++;
        usleep(100);
        CHECK_EQUAL(pthread_mutex_consistent(&mutex), 0);
    }
    usleep(1);
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    return argument;
}
static void a_robust_mutex_tells_of_its_holders_end(void) {
    static const int protocols[] = {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT};
    for (int i = 0; i < 6; i++) {
        pthread_t holder;
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        pthread_mutexattr_setprotocol(&attributes, protocols[i % 2]);
        pthread_mutex_init(&mutex, &attributes);
        pthread_mutexattr_destroy(&attributes);
        told = 0;
        CHECK_EQUAL(pthread_create(&holder, NULL, ends_as_holder, NULL), 0);
        CHECK_EQUAL(pthread_join(holder, NULL), 0);
        run_all(inherits);
        CHECK_EQUAL(told, 1);
        pthread_mutex_destroy(&mutex);
    }
}

/* ---- Limits, and other locks ---- */

static void *locks_with_a_limit(void *argument) {
    struct timespec time = from_now(CLOCK_REALTIME, 1);
    CHECK_EQUAL(pthread_mutex_timedlock(&mutex, &time), ETIMEDOUT);
    time = from_now(CLOCK_MONOTONIC, 1);
    CHECK_EQUAL(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &time), ETIMEDOUT);
    return argument;
}
static void a_lock_has_a_limit(void) {
    pthread_mutex_init(&mutex, NULL);
    CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
    run_all(locks_with_a_limit);
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    pthread_mutex_destroy(&mutex);
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int written;
static void *reads_and_writes(void *argument) {
    struct timespec time = from_now(CLOCK_REALTIME, 60000);
    if ((intptr_t)argument % 10 == 0) {
        CHECK_EQUAL(pthread_rwlock_timedwrlock(&rwlock, &time), 0);
        int before = written;
        usleep(10);
        CHECK_EQUAL(written, before);
        written++;
    } else {
        CHECK_EQUAL(pthread_rwlock_timedrdlock(&rwlock, &time), 0);
        usleep(10);
    }
    CHECK_EQUAL(pthread_rwlock_unlock(&rwlock), 0);
    return argument;
}
static void read_write_locks(void) {
    written = 0;
    run_all(reads_and_writes);
    CHECK_EQUAL(written, THREADS / 10);
}

/* ---- Loops that wait for another thread, and never wait ---- */

static bool is_set; /* under the mutex */
static sem_t post;
static void *sets(void *argument) {
    CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
    usleep(1);
    is_set = true;
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    return argument;
}
static void *looks_under_the_lock(void *argument) {
    for (bool seen = false; !seen;) {
        CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
        seen = is_set;
        CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    }
    return argument;
}
static void *tries(void *argument) {
    while (pthread_mutex_trylock(&mutex) != 0) {
    }
    CHECK(is_set);
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    return argument;
}
static void *posts_until(void *argument) {
    while (!*(volatile bool *)&is_set) {
        CHECK_EQUAL(sem_post(&post), 0);
        CHECK_EQUAL(sem_wait(&post), 0);
    }
    return argument;
}
static void a_loop_of_locks_lets_others_run(void) {
    static void *(*const loops[])(void *) = {looks_under_the_lock, tries, posts_until};
    pthread_mutex_init(&mutex, NULL);
    sem_init(&post, 0, 0);
    for (int i = 0; i < 3; i++) {
        pthread_t threads[2];
        is_set = false;
        bool sets_first = loops[i] == tries;
        for (int j = 0; j < 2; j++)
            CHECK_EQUAL(
                pthread_create(&threads[j], NULL, (j == 0) == sets_first ? sets : loops[i], NULL),
                0);
        for (int j = 0; j < 2; j++)
            CHECK_EQUAL(pthread_join(threads[j], NULL), 0);
    }
    pthread_mutex_destroy(&mutex);
    sem_destroy(&post);
}

static pthread_spinlock_t spin;
static void *spins(void *argument) {
    CHECK_EQUAL(pthread_spin_lock(&spin), 0);
    CHECK_EQUAL(depth++, 0);
    sched_yield();
    CHECK_EQUAL(--depth, 0);
    CHECK_EQUAL(pthread_spin_unlock(&spin), 0);
    return argument;
}
static void spin_locks(void) {
    pthread_t threads[10];
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    for (int i = 0; i < 10; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, spins, NULL), 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    pthread_spin_destroy(&spin);
}

/* ---- Conditions, barriers, once, semaphores ---- */

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int turn;
static void *takes_turns(void *argument) {
    CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
    while (turn != (intptr_t)argument)
        CHECK_EQUAL(pthread_cond_wait(&condition, &mutex), 0);
    turn++;
    CHECK_EQUAL(pthread_cond_broadcast(&condition), 0);
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    return argument;
}
static void conditions(void) {
    pthread_mutex_init(&mutex, NULL);
    turn = 0;
    run_all(takes_turns);
    CHECK_EQUAL(turn, THREADS);
    struct timespec time = from_now(CLOCK_REALTIME, 1);
    pthread_mutex_lock(&mutex);
    CHECK_EQUAL(pthread_cond_timedwait(&condition, &mutex, &time), ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
}

static pthread_barrier_t barrier;
static atomic_int arrived, serial;
static void *passes_barriers(void *argument) {
    for (int round = 1; round <= 5; round++) {
        arrived++;
        int code = pthread_barrier_wait(&barrier);
        CHECK(code == 0 || code == PTHREAD_BARRIER_SERIAL_THREAD);
        serial += code != 0;
        CHECK(arrived >= round * THREADS);
        pthread_barrier_wait(&barrier);
    }
    return argument;
}
static void barriers(void) {
    arrived = serial = 0;
    CHECK_EQUAL(pthread_barrier_init(&barrier, NULL, 0), EINVAL);
    CHECK_EQUAL(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    run_all(passes_barriers);
    CHECK_EQUAL(serial, 5);
    CHECK_EQUAL(pthread_barrier_destroy(&barrier), 0);
}

static pthread_once_t once;
static atomic_int initialised;
static void initialise(void) {
    usleep(100);
    initialised++;
}
static void *initialises(void *argument) {
    CHECK_EQUAL(pthread_once(&once, initialise), 0);
    CHECK_EQUAL(initialised, 1);
    return argument;
}
static void once_only(void) {
    once = (pthread_once_t)PTHREAD_ONCE_INIT;
    initialised = 0;
    run_all(initialises);
}

static sem_t turns;
static void *waits_for_a_turn(void *argument) {
    struct timespec time = from_now(CLOCK_REALTIME, 60000);
    CHECK_EQUAL(sem_timedwait(&turns, &time), 0);
    CHECK_EQUAL(depth++, 0);
    usleep(1);
    CHECK_EQUAL(--depth, 0);
    CHECK_EQUAL(sem_post(&turns), 0);
    return argument;
}
static void posts_on_signal(int signal) {
    (void)signal;
    sem_post(&turns);
}
static void semaphores(void) {
    for (int shared = 0; shared < 2; shared++) {
        CHECK_EQUAL(sem_init(&turns, shared, 1), 0);
        run_all(waits_for_a_turn);
        CHECK_EQUAL(sem_wait(&turns), 0);
        struct timespec time = from_now(CLOCK_REALTIME, 1);
        errno = 0;
        CHECK_EQUAL(sem_timedwait(&turns, &time), -1);
        CHECK_EQUAL(errno, ETIMEDOUT);
        sem_destroy(&turns);
    }
    CHECK_EQUAL(sem_init(&turns, 0, 0), 0);
    signal(SIGUSR1, posts_on_signal);
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, waits_to_be_posted, &turns), 0);
    sched_yield();
    raise(SIGUSR1);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    signal(SIGUSR1, SIG_DFL);
}

/* ---- Cancels, C11, children ---- */

static int ends[2];
static void *waits_in_a_read(void *argument) {
    pthread_cleanup_push(clean, &cleaned);
    char byte;
    while (read(ends[0], &byte, 1) != 0) {
    }
    pthread_cleanup_pop(0);
    return argument;
}
static void *waits_for_a_condition(void *argument) {
    pthread_cleanup_push(clean, &cleaned);
    pthread_mutex_lock(&mutex);
    for (;;)
        pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(0);
    return argument;
}
static void *sleeps(void *argument) {
    pthread_cleanup_push(clean, &cleaned);
    for (;;)
        sleep(1000);
    pthread_cleanup_pop(0);
    return argument;
}
static void *tests_itself(void *argument) {
    pthread_cleanup_push(clean, &cleaned);
    for (;;) {
        sched_yield();
        pthread_testcancel();
    }
    pthread_cleanup_pop(0);
    return argument;
}
static void a_cancel_ends_a_thread(void) {
    static void *(*const functions[])(void *) = {waits_in_a_read, sleeps, tests_itself,
                                                 waits_for_a_condition};
    CHECK_EQUAL(pipe(ends), 0);
    for (int i = 0; i < 4; i++)
        for (int late = 0; late < 2; late++) {
            pthread_t thread;
            void *result = NULL;
            cleaned = 0;
            CHECK_EQUAL(pthread_create(&thread, NULL, functions[i], NULL), 0);
            if (late != 0)
                usleep(100);
            CHECK_EQUAL(pthread_cancel(thread), 0);
            CHECK_EQUAL(pthread_join(thread, &result), 0);
            CHECK(result == PTHREAD_CANCELED && cleaned == 1);
            if (functions[i] == waits_for_a_condition)
                pthread_mutex_unlock(&mutex); /* with which it has ended */
        }
    close(ends[0]);
    close(ends[1]);
}

static int returns_a_number(void *argument) {
    struct timespec moment = {.tv_nsec = 1000};
    thrd_sleep(&moment, NULL);
    if ((intptr_t)argument % 2 == 0)
        thrd_exit((int)(intptr_t)argument);
    return (int)(intptr_t)argument;
}
static void threads_of_c11(void) {
    thrd_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK_EQUAL(thrd_create(&threads[i], returns_a_number, (void *)i), thrd_success);
    for (int i = 0; i < THREADS; i++) {
        int result = -1;
        CHECK_EQUAL(thrd_join(threads[i], &result), thrd_success);
        CHECK_EQUAL(result, i);
    }
}

#ifndef EMULATED /* qemu ends a child of fork that makes a thread */
static void *returns(void *argument) {
    usleep(1);
    return argument;
}
static void *forks(void *argument) {
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread; /* is one of the system */
        void *result = NULL;
        _exit(pthread_create(&thread, NULL, returns, &cleaned) == 0 &&
                      pthread_join(thread, &result) == 0 && result == &cleaned
                  ? 42
                  : 1);
    }
    int status = 0;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    return argument;
}
static void a_child_of_fork_has_threads(void) {
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, forks, NULL), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
}
#endif

#ifndef EMULATED /* whose own threads would be asked, too */
/* The C library has every thread of the system set its own. */
static void *changes_user(void *argument) {
    uid_t user = geteuid();
    usleep(1);
    CHECK_EQUAL(setresuid((uid_t)-1, user, (uid_t)-1), 0);
    CHECK_EQUAL(setegid(getegid()), 0);
    usleep(1);
    return argument;
}
static void a_thread_changes_the_processs_user(void) {
    run_all(changes_user);
}
#else
static void a_thread_changes_the_processs_user(void) {}
#endif

static void do_all(void) {
    threads_are_joined();
    a_thread_ends_by_pthread_exit();
    detached_threads_end_by_themselves();
    a_join_has_limits_and_mistakes();
    attributes_are_heeded();
    mutexes_of_all_kinds();
    a_robust_mutex_tells_of_its_holders_end();
    a_lock_has_a_limit();
    read_write_locks();
    a_loop_of_locks_lets_others_run();
    spin_locks();
    conditions();
    barriers();
    once_only();
    semaphores();
    threads_of_c11();
    a_thread_changes_the_processs_user();
}

BODY(on_one_thread) {
    pthread_t thread;
    kernel_threads = 0;
    CHECK_EQUAL(
        pthread_create(&thread, NULL, tells_kernel_thread, (void *)(intptr_t)kernel_thread()), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_EQUAL(kernel_threads, 0);
    do_all();
    a_cancel_ends_a_thread();
#ifndef EMULATED
    a_child_of_fork_has_threads();
#endif
    return NULL;
}
BODY(on_several_threads) {
    do_all();
    return NULL;
}

int main(void) {
    if (haft_posix_threads_as_tasks() == -ENOTSUP) {
        printf("left out: %s\n", haft_io_own_thread_locals_refused());
        return 77;
    }
    check_backend();
    CHECK_EQUAL(pthread_key_create(&key, destroy_value), 0);
    CHECK_EQUAL(haft_io_run(on_one_thread, NULL), 0);
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 3}, on_several_threads, NULL),
                0);
    return check_end();
}
