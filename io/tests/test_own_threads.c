/* SPDX-License-Identifier: MIT */
/* Tasks with thread-locals of their own, a hundred of them on one thread: each finds what it has
   left in them after its waits, and nothing of another's. */
#define _GNU_SOURCE
#include "check_io.h"

#include <limits.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { TASKS = 100, TURNS = 20 };

static int run_own(int threads, void *(*body)(void *), void *argument) {
    return haft_io_run_with(&(haft_io_run_options_t){.threads = threads, .own_thread_locals = true},
                            body, argument);
}

static void *(*each)(void *);
BODY(spawn_all) {
    for (intptr_t i = 0; i < TASKS; i++)
        CHECK_EQUAL(haft_io_spawn(each, (void *)i), 0);
    return NULL;
}
static void run_each(void *(*task)(void *)) {
    each = task;
    CHECK_EQUAL(run_own(-1, spawn_all, NULL), 0);
}

static void wait_a_turn(int turn) {
    if (turn % 5 == 4)
        haft_io_sleep(HAFT_IO_MICROSECOND);
    else
        haft_io_yield();
}

/* ---- Variables ---- */

static __thread int variable = 5;
static __thread char large[3000];

static void *keeps_variables(void *argument) {
    int own = (int)(intptr_t)argument;
    CHECK(variable == 5 && large[2999] == 0);
    int *place = &variable;
    variable = 100 + own;
    large[2999] = (char)own;
    for (int turn = 0; turn < TURNS; turn++) {
        errno = own + 1000;
        wait_a_turn(turn);
        CHECK(errno == own + 1000);
        CHECK(variable == 100 + own && place == &variable && large[2999] == (char)own);
        free(malloc((size_t)(own + 1) * 16));
    }
    return NULL;
}
static void a_variable_and_errno_are_the_tasks(void) {
    variable = 9;
    run_each(keeps_variables);
    CHECK_EQUAL(variable, 9);
}

/* ---- Keys ---- */

static pthread_key_t key, keys[100];
static int destroyed;
static void destroy_value(void *value) {
    haft_io_sleep(HAFT_IO_MICROSECOND);
    CHECK(pthread_getspecific(key) == NULL);
    CHECK((intptr_t)value == variable);
    destroyed++;
}
static void *keeps_values(void *argument) {
    intptr_t own = (intptr_t)argument + 1;
    CHECK(pthread_getspecific(key) == NULL && pthread_getspecific(keys[99]) == NULL);
    variable = (int)own;
    pthread_setspecific(key, (void *)own);
    for (int i = 0; i < 100; i++)
        pthread_setspecific(keys[i], (void *)(own * 1000 + i));
    for (int turn = 0; turn < TURNS; turn++) {
        wait_a_turn(turn);
        CHECK((intptr_t)pthread_getspecific(key) == own);
        CHECK((intptr_t)pthread_getspecific(keys[99]) == own * 1000 + 99);
    }
    return NULL;
}
static void the_value_of_a_key_is_the_tasks_and_is_destroyed_at_its_end(void) {
    CHECK_EQUAL(pthread_key_create(&key, destroy_value), 0);
    for (int i = 0; i < 100; i++)
        CHECK_EQUAL(pthread_key_create(&keys[i], NULL), 0);
    destroyed = 0;
    run_each(keeps_values);
    CHECK_EQUAL(destroyed, TASKS);
    for (int i = 0; i < 100; i++)
        pthread_key_delete(keys[i]);
}

static int rounds;
static void sets_again(void *value) {
    rounds++;
    pthread_setspecific(key, value);
}
static void *sets_for_ever(void *argument) {
    pthread_setspecific(key, &rounds);
    return argument;
}
static void a_destructor_that_sets_a_value_again_is_called_four_times(void) {
    pthread_key_t before = key;
    CHECK_EQUAL(pthread_key_create(&key, sets_again), 0);
    rounds = 0;
    CHECK_EQUAL(run_own(-1, sets_for_ever, NULL), 0);
    CHECK_EQUAL(rounds, 4);
    pthread_key_delete(key);
    key = before;
}

/* ---- Cancels and failures ---- */

static bool cleaned;
static void clean(int *place) {
    cleaned = *place == variable;
}
static void *waits_for_ever(void *argument) {
    variable = 77;
    __attribute__((cleanup(clean))) int own = variable;
    CHECK_EQUAL(own, 77);
    pthread_setspecific(key, (void *)77);
    haft_io_sleep(HAFT_IO_FOREVER);
    CHECK(false);
    return argument;
}
BODY(cancel_one) {
    haft_io_spawn(waits_for_ever, NULL);
    haft_io_yield();
    haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(cancel_in_scope) {
    CHECK_EQUAL(haft_io_scope(cancel_one, NULL, NULL), -ECANCELED);
    CHECK_EQUAL(variable, 5);
    return NULL;
}
static void a_cancelled_task_runs_its_destructors_which_wait(void) {
    destroyed = 0;
    cleaned = false;
    CHECK_EQUAL(run_own(-1, cancel_in_scope, NULL), 0);
    CHECK_EQUAL(destroyed, 1);
    CHECK(cleaned);
}

BODY(fails) {
    pthread_setspecific(key, (void *)(intptr_t)variable);
    haft_io_fail(-EPROTO, "on purpose");
    return NULL;
}
BODY(spawn_failing) {
    haft_io_spawn(fails, NULL);
    return NULL;
}
BODY(fail_in_scope) {
    CHECK_EQUAL(haft_io_scope(spawn_failing, NULL, NULL), -EPROTO);
    return NULL;
}
static void a_task_that_fails_runs_its_destructors(void) {
    destroyed = 0;
    CHECK_EQUAL(run_own(-1, fail_in_scope, NULL), 0);
    CHECK_EQUAL(destroyed, 1);
}

/* ---- What the C library knows of a thread ---- */

static pthread_t selves[TASKS];
static void *differs(void *argument) {
    intptr_t own = (intptr_t)argument;
    selves[own] = pthread_self();
    haft_io_yield();
    for (int i = 0; i < TASKS; i++)
        CHECK(i == own || !pthread_equal(selves[i], selves[own]));
    CHECK(pthread_equal(pthread_self(), selves[own]));
    CHECK_EQUAL(pthread_kill(pthread_self(), 0), 0);
    haft_io_yield();
    return NULL;
}
static void pthread_self_differs(void) {
    run_each(differs);
}

static void *keeps_locale(void *argument) {
    intptr_t own = (intptr_t)argument;
    CHECK(uselocale((locale_t)0) == LC_GLOBAL_LOCALE);
    locale_t locale = newlocale(LC_ALL_MASK, own % 2 ? "C.UTF-8" : "C", (locale_t)0);
    uselocale(locale);
    for (int turn = 0; turn < 3; turn++) {
        haft_io_yield();
        CHECK(uselocale((locale_t)0) == locale);
        CHECK_EQUAL((int)MB_CUR_MAX, own % 2 ? 6 : 1);
    }
    uselocale(LC_GLOBAL_LOCALE);
    freelocale(locale);
    return NULL;
}
static void the_locale_is_the_tasks(void) {
    run_each(keeps_locale);
}

static pthread_mutex_t recursive;
static int inside;
static void *locks(void *argument) {
    for (int turn = 0; turn < 3; turn++) {
        int code = pthread_mutex_trylock(&recursive);
        if (code == EBUSY) {
            haft_io_yield();
            continue;
        }
        CHECK_EQUAL(code, 0);
        CHECK_EQUAL(inside++, 0);
        haft_io_yield();
        CHECK_EQUAL(pthread_mutex_lock(&recursive), 0);
        haft_io_yield();
        CHECK_EQUAL(--inside, 0);
        CHECK_EQUAL(pthread_mutex_unlock(&recursive), 0);
        CHECK_EQUAL(pthread_mutex_unlock(&recursive), 0);
        CHECK_EQUAL(pthread_mutex_unlock(&recursive), EPERM);
    }
    return argument;
}
static void a_recursive_mutex_is_held_by_one_task(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);
    run_each(locks);
    CHECK_EQUAL(inside, 0);
}

BODY(is_on_it) {
    cpu_set_t allowed;
    CHECK_EQUAL(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    CHECK_EQUAL(CPU_COUNT(&allowed), 1);
    CHECK(CPU_ISSET(sched_getcpu(), &allowed));
    return NULL;
}
static void a_task_knows_on_which_processor_it_is(void) {
    cpu_set_t allowed, last;
    int number = CPU_SETSIZE - 1;
    CHECK_EQUAL(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    while (!CPU_ISSET(number, &allowed))
        number--;
    CPU_ZERO(&last);
    CPU_SET(number, &last);
    CHECK_EQUAL(sched_setaffinity(0, sizeof last, &last), 0);
    CHECK_EQUAL(run_own(1, is_on_it, NULL), 0);
    CHECK_EQUAL(sched_setaffinity(0, sizeof allowed, &allowed), 0);
}

static pthread_mutex_t robust;
BODY(ends_with_it) {
    CHECK_EQUAL(pthread_mutex_lock(&robust), 0);
    haft_io_yield();
    return NULL;
}
BODY(inherit) {
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(haft_io_join(haft_io_async(ends_with_it, NULL), NULL), 0);
        CHECK_EQUAL(pthread_mutex_lock(&robust), EOWNERDEAD);
        CHECK_EQUAL(pthread_mutex_consistent(&robust), 0);
        CHECK_EQUAL(pthread_mutex_unlock(&robust), 0);
    }
    return NULL;
}
static void a_robust_mutex_tells_that_its_task_has_ended(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &attributes);
    CHECK_EQUAL(run_own(-1, inherit, NULL), 0);
}

static void *threads_function(void *argument) {
    CHECK_EQUAL(variable, 5);
    variable = 1;
    return argument;
}
BODY(make_thread) {
    pthread_t thread;
    void *result = NULL;
    variable = 2;
    CHECK_EQUAL(pthread_create(&thread, NULL, threads_function, &result), 0);
    CHECK_EQUAL(pthread_join(thread, &result), 0);
    CHECK(result == &result && variable == 2);
    pid_t child = fork();
    if (child == 0) {
        free(malloc(100));
        _exit(variable == 2 && pthread_kill(pthread_self(), 0) == 0 ? 7 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    return NULL;
}
static void a_task_makes_threads_and_children(void) {
    CHECK_EQUAL(run_own(-1, make_thread, NULL), 0);
}

static atomic_int freed_elsewhere;
static void *memories[256];
static void *allocates(void *argument) {
    unsigned seed = (unsigned)(uintptr_t)argument + 1;
    for (int i = 0; i < 300; i++) {
        seed = seed * 1103515245 + 12345;
        size_t size = 16 + (seed >> 16) % 2000;
        char *memory = malloc(size);
        memset(memory, (int)seed, size);
        void *other = __atomic_exchange_n(&memories[seed >> 8 & 255], memory, __ATOMIC_ACQ_REL);
        free(other);
        freed_elsewhere += other != NULL;
        if (i % 7 == 0)
            haft_io_yield();
    }
    return NULL;
}
static void memory_of_one_task_is_freed_by_another(void) {
    run_each(allocates);
    for (int i = 0; i < 256; i++) {
        free(memories[i]);
        memories[i] = NULL;
    }
    CHECK(freed_elsewhere > 0);
}

/* ---- Operations, whose errors the system leaves in the task's errno ---- */

static void *writes_later(void *argument) {
    haft_io_sleep(HAFT_IO_MICROSECOND);
    CHECK_EQUAL(haft_io_write((int)(intptr_t)argument, "byte", 4), 4);
    return NULL;
}
static void *reads_what_comes_later(void *argument) {
    int ends[2];
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    for (int turn = 0; turn < TURNS; turn++) {
        char bytes[8];
        haft_io_spawn(writes_later, (void *)(intptr_t)ends[1]);
        errno = ERANGE;
        CHECK_EQUAL(haft_io_read(ends[0], bytes, sizeof bytes), 4);
        CHECK_EQUAL(errno, ERANGE);
    }
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
    errno = ERANGE;
    CHECK_EQUAL(haft_io_write(ends[1], "byte", 4), -EPIPE);
    CHECK_EQUAL(errno, ERANGE);
    CHECK_EQUAL(haft_io_close(ends[1]), 0);
    return argument;
}
static void a_read_that_finds_nothing_waits(void) {
    errno = 0;
    run_each(reads_what_comes_later);
}

/* ---- Tasks with and without ---- */

static void *shares(void *argument) {
    int before = variable;
    variable++;
    haft_io_yield();
    CHECK(variable > before);
    return argument;
}
BODY(spawn_both) {
    for (intptr_t i = 0; i < TASKS; i++) {
        CHECK_EQUAL(haft_io_spawn_with(&(haft_io_task_options_t){.own_thread_locals = true},
                                       keeps_variables, (void *)i),
                    0);
        CHECK_EQUAL(haft_io_spawn(shares, NULL), 0);
    }
    return NULL;
}
static void tasks_with_their_own_and_without_take_turns(void) {
    for (int threads = 1; threads <= 3; threads++) {
        variable = 5;
        CHECK_EQUAL(
            haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, spawn_both, NULL), 0);
    }
    variable = 5;
}

BODY(join_with_stack) {
    haft_io_task_options_t options = {.own_thread_locals = true, .stack_size = 1 << 20};
    CHECK_EQUAL(haft_io_join(haft_io_async_with(&options, keeps_variables, (void *)3), NULL), 0);
    return NULL;
}
static void a_task_with_its_own_may_have_a_stack_size(void) {
    CHECK_EQUAL(haft_io_run(join_with_stack, NULL), 0);
}

/* ---- Several threads ---- */

static atomic_int moved;
static void *moves(void *argument) {
    int own = (int)(intptr_t)argument;
    int *place = &variable;
    variable = own;
    pthread_t self = pthread_self();
    long before = syscall(SYS_gettid);
    for (int turn = 0; turn < 100; turn++) {
        errno = own + 7;
        wait_a_turn(turn);
        CHECK(errno == own + 7 && variable == own && place == &variable);
        CHECK(pthread_equal(self, pthread_self()));
        long now = syscall(SYS_gettid);
        moved += now != before;
        before = now;
        void *other = __atomic_exchange_n(&memories[turn], malloc(40), __ATOMIC_ACQ_REL);
        free(other);
    }
    pthread_setspecific(key, (void *)(intptr_t)own);
    return NULL;
}
BODY(spawn_moving) {
    haft_io_task_options_t options = {.own_thread_locals = true, .moves = true};
    for (intptr_t i = 0; i < TASKS; i++)
        CHECK_EQUAL(haft_io_spawn_with(&options, moves, (void *)(i + 1)), 0);
    return NULL;
}
static void a_task_that_moves_keeps_its_variables(void) {
    for (int threads = 2; threads <= 4; threads++)
        CHECK_EQUAL(run_own(threads, spawn_moving, NULL), 0);
    for (int i = 0; i < 256; i++) {
        free(memories[i]);
        memories[i] = NULL;
    }
}

/* ---- Many ---- */

static void *touches(void *argument) {
    variable++;
    pthread_setspecific(keys[99], argument);
    CHECK_EQUAL(variable, 6);
    haft_io_yield();
    return argument;
}
BODY(spawn_many) {
    intptr_t count = RUNNING_ON_VALGRIND ? 300 : 10000; /* whose list of mappings is slow */
    for (intptr_t i = 0; i < count; i++) {
        CHECK_EQUAL(haft_io_spawn(touches, (void *)i), 0);
        if (i % 64 == 0)
            haft_io_sleep(HAFT_IO_MICROSECOND);
    }
    return NULL;
}
static void ten_thousand_tasks_leave_no_memory(void) {
    CHECK_EQUAL(pthread_key_create(&keys[99], NULL), 0);
    /* (What is kept for tasks to come grows with the most that were there at a time.) */
    enum { RUNS = 10, MOST = 100000 };
    size_t grown = SIZE_MAX;
    for (int runs = 0; runs < RUNS && grown > MOST; runs++) {
        size_t before = mallinfo2().uordblks;
        CHECK_EQUAL(run_own(-1, spawn_many, NULL), 0);
        size_t after = mallinfo2().uordblks;
        grown = after > before ? after - before : 0;
    }
    CHECK(grown <= MOST);
}

int main(void) {
    check_backend();
    if (haft_io_own_thread_locals_refused() != NULL) {
        printf("skipped: %s\n", haft_io_own_thread_locals_refused());
        CHECK_EQUAL(run_own(-1, keeps_variables, NULL), -ENOTSUP);
        return 77;
    }
    RUN(a_variable_and_errno_are_the_tasks);
    RUN(the_value_of_a_key_is_the_tasks_and_is_destroyed_at_its_end);
    RUN(a_destructor_that_sets_a_value_again_is_called_four_times);
    RUN(a_cancelled_task_runs_its_destructors_which_wait);
    RUN(a_task_that_fails_runs_its_destructors);
    RUN(pthread_self_differs);
    RUN(the_locale_is_the_tasks);
    RUN(a_recursive_mutex_is_held_by_one_task);
    RUN(a_task_knows_on_which_processor_it_is);
    RUN(a_robust_mutex_tells_that_its_task_has_ended);
    RUN(a_task_makes_threads_and_children);
    RUN(memory_of_one_task_is_freed_by_another);
    RUN(a_read_that_finds_nothing_waits);
    RUN(tasks_with_their_own_and_without_take_turns);
    RUN(a_task_with_its_own_may_have_a_stack_size);
    RUN(a_task_that_moves_keeps_its_variables);
    RUN(ten_thousand_tasks_leave_no_memory);
    return check_end();
}
