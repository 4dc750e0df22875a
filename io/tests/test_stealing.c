/* SPDX-License-Identifier: MIT */
/* Runs of several threads: stealing, joins, scopes, cancels, channels and descriptors between tasks
   of different threads. */
#include "check_io.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>

static int threads_wanted = 4;

static int run_on(int threads, void *(*body)(void *), void *argument) {
    threads_wanted = threads;
    return haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, body, argument);
}
#define CHECK_RUNS_ON(threads, body) CHECK_EQUAL(run_on(threads, body, NULL), 0)

/* ---- Stealing ---- */

static atomic_int met;
static atomic_int counted;

/* Returns when as many are here at once as there are threads: each must be on one of its own. */
static void *meet(void *unused) {
    atomic_fetch_add(&met, 1);
    while (atomic_load(&met) < threads_wanted)
        sched_yield();
    return unused;
}
BODY(meet_all) {
    atomic_store(&met, 0);
    for (int i = 1; i < threads_wanted; i++)
        haft_io_spawn(meet, NULL);
    return meet(NULL);
}
static void idle_threads_take_what_a_busy_one_has_spawned(void) {
    CHECK_RUNS_ON(2, meet_all);
    CHECK_RUNS_ON(4, meet_all);
}

static void *stay_on_thread(void *unused) {
    pthread_t thread = pthread_self();
    for (int i = 0; i < 20; i++) {
        if (i % 2 == 0)
            haft_io_yield();
        else
            haft_io_sleep(HAFT_IO_MILLISECOND / 10);
        CHECK(pthread_equal(thread, pthread_self()));
    }
    return unused;
}
BODY(many_stay) {
    for (int i = 0; i < 100; i++)
        haft_io_spawn(stay_on_thread, NULL);
    return NULL;
}
static void a_task_that_has_started_stays_on_its_thread(void) {
    if (!check_moves())
        CHECK_RUNS_ON(4, many_stay);
}

static void *spawn_tree(void *depth) {
    atomic_fetch_add(&counted, 1);
    if ((intptr_t)depth == 0)
        return check_number(1);
    haft_io_task_t *left = haft_io_async(spawn_tree, check_number((intptr_t)depth - 1));
    haft_io_task_t *right = haft_io_async(spawn_tree, check_number((intptr_t)depth - 1));
    void *a = NULL, *b = NULL;
    CHECK_EQUAL(haft_io_join(left, &a), 0);
    CHECK_EQUAL(haft_io_join(right, &b), 0);
    return check_number((intptr_t)a + (intptr_t)b);
}
BODY(grow_tree) {
    intptr_t depth = RUNNING_ON_VALGRIND ? 6 : check_bare() ? 14 : 10;
    atomic_store(&counted, 0);
    CHECK_EQUAL((intptr_t)spawn_tree(check_number(depth)), 1 << depth);
    CHECK_EQUAL(atomic_load(&counted), (2 << depth) - 1);
    return NULL;
}
static void each_task_of_a_tree_runs_once_and_is_joined(void) {
    for (int threads = 1; threads <= 4; threads++)
        CHECK_RUNS_ON(threads, grow_tree);
}

static void *count_up(void *unused) {
    atomic_fetch_add(&counted, 1);
    return unused;
}
static void *spawn_more(void *unused) {
    for (int i = 0; i < 1000; i++)
        haft_io_spawn(count_up, NULL);
    return unused;
}
BODY(spawn_more_than_fits) {
    atomic_store(&counted, 0);
    for (int i = 0; i < 8; i++)
        haft_io_scope(spawn_more, NULL, NULL);
    CHECK_EQUAL(atomic_load(&counted), 8000);
    for (int i = 0; i < 8; i++)
        haft_io_spawn(spawn_more, NULL);
    return NULL;
}
static void more_than_a_queue_holds_is_run_and_waited_for(void) {
    for (int threads = 1; threads <= 4; threads++) {
        CHECK_RUNS_ON(threads, spawn_more_than_fits);
        CHECK_EQUAL(atomic_load(&counted), 16000);
    }
}

/* The other threads search in vain for a while, because each task is gone before it is worth
   stealing; and then take one that waits for them. */
BODY(spawn_in_vain_and_be_helped) {
    enum { BURSTS = 500, TASKS = 50 };
    for (int i = 0; i < (check_bare() ? BURSTS : 20); i++) {
        haft_io_task_t *tasks[TASKS];
        for (int j = 0; j < TASKS; j++)
            tasks[j] = haft_io_async(count_up, NULL);
        for (int j = 0; j < TASKS; j++)
            CHECK_EQUAL(haft_io_join(tasks[j], NULL), 0);
    }
    atomic_store(&counted, 0);
    haft_io_spawn(count_up, NULL);
    while (atomic_load(&counted) == 0) /* and does not let its own thread take it */
        sched_yield();
    return NULL;
}
static void a_thread_that_has_searched_in_vain_takes_what_waits(void) {
    for (int threads = 2; threads <= 4; threads++)
        CHECK_RUNS_ON(threads, spawn_in_vain_and_be_helped);
}

/* ---- Scopes, cancels, joins ---- */

static atomic_int unwound;
static void count_unwound(__attribute__((unused)) int *unused) {
    atomic_fetch_add(&unwound, 1);
}
static void *wait_in_some_way(void *argument) {
    __attribute__((cleanup(count_unwound), unused)) int guard;
    static haft_io_semaphore_t never;
    int ends[2];
    switch ((intptr_t)argument % 4) {
    case 0:
        haft_io_sleep(1000 * HAFT_IO_SECOND);
        break;
    case 1:
        haft_io_semaphore_acquire(&never);
        break;
    case 2:
        for (;;)
            haft_io_yield();
    default: {
        haft_io_pipe(ends);
        HAFT_IO_SCOPED_DESCRIPTOR int from = ends[0];
        HAFT_IO_SCOPED_DESCRIPTOR int to = ends[1];
        char byte;
        haft_io_read(from, &byte, 1);
        CHECK(to < 0);
    }
    }
    CHECK(false);
    return NULL;
}
static void *open_and_wait(void *argument) {
    haft_io_scope(wait_in_some_way, argument, NULL);
    CHECK(false);
    return NULL;
}
static void *wait_then_fail(void *after) {
    for (intptr_t i = 0; i < 24; i++)
        haft_io_spawn(i % 3 == 0 ? open_and_wait : wait_in_some_way, check_number(i));
    for (intptr_t i = 0; i < (intptr_t)after; i++)
        haft_io_yield();
    if ((intptr_t)after % 3 == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND / 4);
    if ((intptr_t)after % 2 == 0)
        haft_io_scope_cancel(haft_io_this_scope());
    else
        haft_io_fail(-EPROTO, "enough");
    return NULL;
}
BODY(cancel_often) {
    int rounds = check_times(200);
    for (int i = 0; i < rounds; i++) {
        atomic_store(&unwound, 0);
        CHECK_EQUAL(haft_io_scope(wait_then_fail, check_number(i), NULL),
                    i % 2 == 0 ? -ECANCELED : -EPROTO);
        CHECK_EQUAL(atomic_load(&unwound), 24);
    }
    return NULL;
}
static void a_cancel_reaches_tasks_of_all_threads_at_every_wait(void) {
    CHECK_RUNS_ON(2, cancel_often);
    CHECK_RUNS_ON(4, cancel_often);
}

static void *end_at_some_time(void *argument) {
    for (intptr_t i = 0; i < (intptr_t)argument % 5; i++)
        haft_io_yield();
    return argument;
}
static haft_io_task_t *joined;
static void *join_it(void *unused) {
    void *result = NULL;
    CHECK_EQUAL(haft_io_join(joined, &result), 0); /* or it is cancelled, and does not come here */
    CHECK(result != NULL);
    return unused;
}
static void *join_until_cancelled(void *argument) {
    joined = haft_io_async_with(&(haft_io_task_options_t){.scope = (haft_io_scope_t *)argument},
                                end_at_some_time, check_number(4));
    haft_io_spawn(join_it, NULL);
    haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(cancel_joins) {
    for (int i = 0; i < check_times(2000); i++)
        CHECK_EQUAL(haft_io_scope(join_until_cancelled, haft_io_this_scope(), NULL), -ECANCELED);
    return NULL;
}
static void a_join_that_is_cancelled_as_the_task_ends_leaves_nothing_behind(void) {
    CHECK_RUNS_ON(2, cancel_joins);
    CHECK_RUNS_ON(4, cancel_joins);
}

/* A task that has ended on the thread of its scope's opener, and is joined from another thread. */
static atomic_int joined_elsewhere;
static void *join_ended(void *task) {
    CHECK_EQUAL(haft_io_join(task, NULL), 0);
    atomic_fetch_add(&joined_elsewhere, 1);
    return NULL;
}
BODY(end_here_and_join_there) {
    atomic_store(&joined_elsewhere, 0);
    for (int i = 1; i <= check_times(500); i++) {
        haft_io_task_t *task = haft_io_async(end_at_some_time, check_number(1));
        for (int turn = 0; turn < 3; turn++)
            haft_io_yield();
        haft_io_spawn(join_ended, task);
        while (atomic_load(&joined_elsewhere) != i)
            sched_yield(); /* It does not wait, so another thread takes that task. */
    }
    return NULL;
}
static void what_ended_on_one_thread_is_joined_on_another(void) {
    CHECK_RUNS_ON(2, end_here_and_join_there);
    CHECK_RUNS_ON(4, end_here_and_join_there);
}

/* All are woken by one poll, and only the first of them has gone on when the cancel comes.
   (Relaxed, so that what the threads do here puts nothing of the library in order.) */
enum { WOKEN_AT_ONCE = 8 };
static int pipe_of_woken[2];
static atomic_int come, gone_on, all_cancelled;
static void *go_on_before_the_cancel(void *unused) {
    atomic_fetch_add(&come, 1);
    CHECK_EQUAL(haft_io_wait_ready(pipe_of_woken[0], POLLIN), POLLIN);
    atomic_fetch_add_explicit(&gone_on, 1, memory_order_relaxed);
    while (!atomic_load_explicit(&all_cancelled, memory_order_relaxed))
        sched_yield();
    return unused;
}
static void *wait_together(void *scope) {
    for (int i = 0; i < WOKEN_AT_ONCE; i++)
        haft_io_spawn_with(&(haft_io_task_options_t){.scope = scope}, go_on_before_the_cancel,
                           NULL);
    return NULL;
}
BODY(cancel_who_was_woken) {
    atomic_store(&come, 0);
    atomic_store(&gone_on, 0);
    atomic_store(&all_cancelled, 0);
    haft_io_spawn(wait_together, haft_io_this_scope());
    while (atomic_load(&come) < WOKEN_AT_ONCE)
        sched_yield(); /* It does not wait, so all are on the other thread. */
    CHECK_EQUAL(write(pipe_of_woken[1], "x", 1), 1);
    while (atomic_load_explicit(&gone_on, memory_order_relaxed) == 0)
        sched_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    atomic_store_explicit(&all_cancelled, 1, memory_order_relaxed);
    return NULL;
}
BODY(cancel_often_who_was_woken) {
    for (int i = 0; i < check_times(100); i++) {
        CHECK_EQUAL(haft_io_pipe(pipe_of_woken), 0);
        CHECK_EQUAL(haft_io_scope(cancel_who_was_woken, NULL, NULL), -ECANCELED);
        haft_io_close(pipe_of_woken[0]);
        haft_io_close(pipe_of_woken[1]);
    }
    return NULL;
}
static void a_cancel_may_come_to_those_that_a_poll_has_woken(void) {
    CHECK_RUNS_ON(2, cancel_often_who_was_woken);
}

/* ---- Signals ---- */

/* In a task on another thread than that of the task that waits for it. */
static void (*done_elsewhere)(void);
static atomic_int was_elsewhere;
static void *do_elsewhere(void *unused) {
    done_elsewhere();
    atomic_store(&was_elsewhere, 1);
    return unused;
}
BODY(wait_for_elsewhere) {
    haft_io_spawn(do_elsewhere, NULL);
    while (!atomic_load(&was_elsewhere))
        sched_yield(); /* It does not wait, so another thread takes that task. */
    return NULL;
}

static pthread_t own_thread;
static void look_at_mask(void) {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    CHECK_EQUAL(sigismember(&blocked, SIGTERM), !pthread_equal(pthread_self(), own_thread));
    CHECK_EQUAL(sigismember(&blocked, SIGSEGV), 0);
    CHECK_EQUAL(sigismember(&blocked, SIGBUS), 0);
}
static void look_in_pool(void *unused) {
    (void)unused;
    look_at_mask();
}
BODY(look_at_masks) {
    CHECK_EQUAL(haft_io_call_blocking(look_in_pool, NULL), 0);
    atomic_store(&was_elsewhere, 0);
    done_elsewhere = look_at_mask;
    return wait_for_elsewhere(NULL);
}
static void threads_of_the_library_block_all_signals_but_faults(void) {
    own_thread = pthread_self();
    CHECK_RUNS_ON(2, look_at_masks);
}

static int use_frames(int count) {
    volatile char frame[1024];
    frame[0] = (char)count;
    return count == 0 ? 0 : use_frames(count - 1) + frame[0];
}
static void overflow(void) {
    use_frames(1 << 20);
}
static void overflow_elsewhere(void) {
    done_elsewhere = overflow;
    haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, wait_for_elsewhere, NULL);
}
static void an_overflow_on_any_thread_is_named(void) {
    if (check_bare())
        CHECK_FAULTS(overflow_elsewhere,
                     "the fiber 'a task, see haft_io_run_options_t.stack_size' has "
                     "overflowed its stack");
}

/* ---- Fairness ---- */

static atomic_int has_run, is_over;
static void *hold_thread(void *unused) {
    atomic_fetch_add(&met, 1);
    while (!atomic_load(&is_over))
        sched_yield();
    return unused;
}
static void *run_at_last(void *unused) {
    atomic_store(&has_run, 1);
    return unused;
}
/* The other thread is held, so nobody steals. */
BODY(join_for_ever) {
    atomic_store(&met, 0);
    atomic_store(&has_run, 0);
    atomic_store(&is_over, 0);
    haft_io_spawn(hold_thread, NULL);
    while (atomic_load(&met) == 0)
        sched_yield();
    haft_io_spawn(run_at_last, NULL);
    for (int i = 0; i < 100000 && !atomic_load(&has_run); i++)
        CHECK_EQUAL(haft_io_join(haft_io_async(end_at_some_time, NULL), NULL), 0);
    CHECK(atomic_load(&has_run));
    atomic_store(&is_over, 1);
    return NULL;
}
static void a_task_that_nobody_joins_gets_its_turn(void) {
    CHECK_RUNS_ON(2, join_for_ever);
}

/* The other thread is held, so all are on one. */
static int yields, first_yields, last_yields;
static void *note_yields(void *unused) {
    atomic_fetch_add(&come, 1);
    CHECK_EQUAL(haft_io_wait_ready(pipe_of_woken[0], POLLIN), POLLIN);
    first_yields = atomic_load(&gone_on) == 0 ? yields : first_yields;
    last_yields = yields;
    atomic_fetch_add(&gone_on, 1);
    return unused;
}
BODY(yield_until_all_have_gone_on) {
    atomic_store(&met, 0);
    atomic_store(&come, 0);
    atomic_store(&gone_on, 0);
    atomic_store(&is_over, 0);
    yields = 0;
    haft_io_spawn(hold_thread, NULL);
    while (atomic_load(&met) == 0)
        sched_yield();
    CHECK_EQUAL(haft_io_pipe(pipe_of_woken), 0);
    for (int i = 0; i < WOKEN_AT_ONCE; i++)
        haft_io_spawn(note_yields, NULL);
    while (atomic_load(&come) < WOKEN_AT_ONCE)
        haft_io_yield();
    CHECK_EQUAL(write(pipe_of_woken[1], "x", 1), 1);
    for (; atomic_load(&gone_on) < WOKEN_AT_ONCE; yields++)
        haft_io_yield();
    CHECK(check_moves() || first_yields == last_yields);
    haft_io_close(pipe_of_woken[0]);
    haft_io_close(pipe_of_woken[1]);
    atomic_store(&is_over, 1);
    return NULL;
}
static void who_yields_lets_all_go_first_that_a_poll_has_woken(void) {
    CHECK_RUNS_ON(2, yield_until_all_have_gone_on);
}

/* A thread that searches gets mail whenever it gives way to others, which the linker puts in the
   way; so never has it looked often between two of them. It comes from a thread that has no
   tasks. */
enum { MOST_DISTURBED = 1000 };
static haft_io_semaphore_t letters;
static pthread_t disturbed_thread;
static sem_t asked_for, posted;
static atomic_int disturbed, disturbs;

int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __wrap_sched_yield(void) {
    if (!atomic_load(&disturbs) || !pthread_equal(pthread_self(), disturbed_thread))
        return __real_sched_yield();
    sem_post(&asked_for);
    return sem_wait(&posted);
}
static void *post_letters(void *unused) {
    while (sem_wait(&asked_for) == 0 && atomic_load(&disturbs)) {
        haft_io_semaphore_release(&letters);
        sem_post(&posted);
    }
    return unused;
}
static void *read_letters(void *unused) {
    disturbed_thread = pthread_self();
    atomic_store(&disturbs, 1);
    while (!atomic_load(&has_run) && atomic_load(&disturbed) < MOST_DISTURBED) {
        haft_io_semaphore_acquire(&letters);
        atomic_fetch_add(&disturbed, 1);
    }
    atomic_store(&disturbs, 0);
    return unused;
}
BODY(be_stolen_from_by_who_gets_mail) {
    haft_io_task_t *reader = haft_io_async(read_letters, NULL);
    while (!atomic_load(&disturbs))
        sched_yield(); /* It does not wait, so the other thread reads. */
    haft_io_spawn(run_at_last, NULL);
    while (!atomic_load(&has_run) && atomic_load(&disturbed) < MOST_DISTURBED)
        sched_yield();
    CHECK_EQUAL(atomic_load(&has_run), 1);
    haft_io_semaphore_release(
        &letters); /* An interrupted thread does not search for a time, and asks for no mail. */
    haft_io_join(reader, NULL);
    return NULL;
}
static void who_gets_mail_often_steals_nevertheless(void) {
    pthread_t postman;
    atomic_store(&has_run, 0);
    atomic_store(&disturbed, 0);
    sem_init(&asked_for, 0, 0);
    sem_init(&posted, 0, 0);
    CHECK_EQUAL(pthread_create(&postman, NULL, post_letters, NULL), 0);
    CHECK_RUNS_ON(2, be_stolen_from_by_who_gets_mail);
    sem_post(&asked_for);
    pthread_join(postman, NULL);
}

static void *first_or_not(void *argument) {
    haft_io_sleep((intptr_t)argument * HAFT_IO_MILLISECOND / 20);
    return argument;
}
BODY(race) {
    for (int i = 0; i < check_times(100); i++) {
        haft_io_call_t calls[4];
        for (intptr_t j = 0; j < 4; j++)
            calls[j] = (haft_io_call_t){first_or_not, check_number(j % 2), NULL};
        int first = haft_io_first(calls, 4);
        CHECK(first >= 0 && first < 4);
        CHECK_EQUAL(haft_io_all(calls, 4), 0);
    }
    return NULL;
}
static void all_of_these_and_the_first_of_these_hold_between_threads(void) {
    CHECK_RUNS_ON(4, race);
}

/* ---- Synchronisation ---- */

static haft_io_mutex_t mutex;
static long total;
static void *add_under_mutex(void *unused) {
    for (int i = 0; i < check_times(2000); i++) {
        haft_io_mutex_lock(&mutex);
        total++;
        if (i % 16 == 0)
            haft_io_yield();
        haft_io_mutex_unlock(&mutex);
    }
    return unused;
}
BODY(share_mutex) {
    haft_io_call_t calls[8];
    for (int i = 0; i < 8; i++)
        calls[i] = (haft_io_call_t){add_under_mutex, NULL, NULL};
    total = 0;
    CHECK_EQUAL(haft_io_all(calls, 8), 0);
    CHECK_EQUAL(total, 8L * check_times(2000));
    return NULL;
}
static void tasks_of_several_threads_share_a_mutex(void) {
    CHECK_RUNS_ON(4, share_mutex);
}

static haft_io_channel_t *channels[2];
static atomic_long received;
static void *send_numbers(void *argument) {
    for (int i = 1; i <= check_times(2000); i++) {
        if (i % 3 != 0) {
            CHECK_EQUAL(haft_io_channel_send(channels[(intptr_t)argument % 2], &i), 0);
            continue;
        }
        haft_io_select_case_t choices[] = {{.channel = channels[0], .send = &i},
                                           {.channel = channels[1], .send = &i}};
        CHECK(haft_io_select(choices, 2) >= 0);
    }
    return NULL;
}
static void *receive_numbers(void *unused) {
    for (;;) {
        int number = 0;
        haft_io_select_case_t choices[] = {{.channel = channels[0], .receive = &number},
                                           {.channel = channels[1], .receive = &number}};
        int64_t soon = haft_io_now() + HAFT_IO_MILLISECOND;
        int chosen = haft_io_select_until(choices, 2, soon);
        if (chosen == -ETIMEDOUT)
            continue;
        if (choices[chosen].code == -EPIPE)
            return unused;
        atomic_fetch_add(&received, number);
    }
}
static void *send_from_four(void *unused) {
    for (intptr_t i = 0; i < 4; i++)
        haft_io_spawn(send_numbers, check_number(i));
    return unused;
}
static void *exchange(void *capacity) {
    for (int i = 0; i < 2; i++)
        channels[i] = haft_io_channel_new(sizeof(int), (size_t)(intptr_t)capacity);
    atomic_store(&received, 0);
    for (int i = 0; i < 4; i++)
        haft_io_spawn(receive_numbers, NULL);
    haft_io_scope(send_from_four, NULL, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND); /* for what is inside */
    for (int i = 0; i < 2; i++)
        haft_io_channel_close(channels[i]);
    return NULL;
}
static void channels_lose_nothing_between_threads(void) {
    for (intptr_t capacity = 0; capacity < 3; capacity++) {
        long each = check_times(2000);
        CHECK_EQUAL(run_on(4, exchange, check_number(capacity)), 0);
        if (capacity == 0)
            CHECK_EQUAL(atomic_load(&received), 4 * each * (each + 1) / 2);
        for (int i = 0, number; i < 2; i++) {
            while (haft_io_channel_receive(channels[i], &number) == 0)
                atomic_fetch_add(&received, number);
            haft_io_channel_free(channels[i]);
        }
        CHECK_EQUAL(atomic_load(&received), 4 * each * (each + 1) / 2);
    }
}

static haft_io_rwlock_t rwlock;
static haft_io_barrier_t barrier;
static haft_io_once_t once;
static long pair[2];
static void set_pair(__attribute__((unused)) void *argument) {
    pair[0] = pair[1] = 1000;
}
static void *read_and_write(void *argument) {
    CHECK_EQUAL(haft_io_once_call(&once, set_pair, NULL), 0);
    for (int i = 0; i < check_times(500); i++) {
        if (i % 4 == (intptr_t)argument % 4) {
            haft_io_rwlock_write_lock(&rwlock);
            pair[0]++;
            if (i % 8 == 0)
                haft_io_yield();
            pair[1]++;
        } else {
            haft_io_rwlock_read_lock(&rwlock);
            CHECK(pair[0] == pair[1] && pair[0] >= 1000);
        }
        haft_io_rwlock_unlock(&rwlock);
        if (i % 16 == 0)
            CHECK(haft_io_barrier_wait(&barrier) >= 0);
    }
    return NULL;
}
BODY(share_all) {
    memset(&once, 0, sizeof once);
    barrier = (haft_io_barrier_t){.needed = 8};
    haft_io_call_t calls[8];
    for (intptr_t i = 0; i < 8; i++)
        calls[i] = (haft_io_call_t){read_and_write, check_number(i), NULL};
    CHECK_EQUAL(haft_io_all(calls, 8), 0);
    return NULL;
}
static void readers_writers_barriers_and_once_hold_between_threads(void) {
    for (int threads = 1; threads <= 4; threads++)
        CHECK_RUNS_ON(threads, share_all);
}

static const char key;
static void *see_value(void *unused) {
    CHECK_EQUAL((intptr_t)haft_io_local_get(&key), 5);
    haft_io_local_set(&key, check_number(6));
    CHECK_EQUAL((intptr_t)haft_io_local_get(&key), 6);
    return unused;
}
BODY(inherit) {
    haft_io_local_set(&key, check_number(5));
    for (int i = 0; i < check_times(2000); i++)
        haft_io_spawn(see_value, NULL);
    return NULL;
}
static void values_are_inherited_by_tasks_of_other_threads(void) {
    CHECK_RUNS_ON(4, inherit);
}

/* ---- Descriptors ---- */

static int listener;
static void *echo(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = (int)(intptr_t)argument;
    char buffer[64];
    for (ssize_t got; (got = haft_io_read(connection, buffer, sizeof buffer)) > 0;)
        haft_io_write_all(connection, buffer, (size_t)got);
    return NULL;
}
BODY(serve) {
    for (int connection; (connection = haft_io_accept(listener)) >= 0;)
        haft_io_spawn(echo, check_number(connection));
    return NULL;
}
static void *ask(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    CHECK(connection >= 0);
    for (intptr_t i = 0; i < 5; i++) {
        intptr_t question = (intptr_t)argument * 10 + i, answer = 0;
        CHECK_EQUAL(haft_io_write_all(connection, &question, sizeof question), 0);
        CHECK_EQUAL(haft_io_read(connection, &answer, sizeof answer), sizeof answer);
        CHECK_EQUAL(answer, question);
    }
    return NULL;
}
BODY(serve_and_ask) {
    haft_io_spawn(serve, NULL);
    haft_io_call_t calls[50];
    for (int round = 0; round < check_times(20); round++) {
        for (intptr_t i = 0; i < 50; i++)
            calls[i] = (haft_io_call_t){ask, check_number(i), NULL};
        CHECK_EQUAL(haft_io_all(calls, 50), 0);
    }
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void connections_are_served_by_several_threads(void) {
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    CHECK_EQUAL(run_on(4, serve_and_ask, NULL), -ECANCELED);
    close(listener);
}

static int ends[2];
static atomic_int ended_with;
static atomic_bool begun;
static void *read_until_closed(void *unused) {
    char byte;
    atomic_store(&begun, true);
    atomic_store(&ended_with, (int)haft_io_read(ends[0], &byte, 1));
    return unused;
}
BODY(close_under_readers) {
    for (int i = 0; i < check_times(400); i++) {
        CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        atomic_store(&begun, false);
        haft_io_task_t *reader = haft_io_async(read_until_closed, NULL);
        while (!atomic_load(&begun))
            haft_io_yield();
        if (i % 2 == 0)
            haft_io_sleep(HAFT_IO_MILLISECOND / 10);
        CHECK_EQUAL(haft_io_close(ends[0]), 0);
        CHECK_EQUAL(haft_io_join(reader, NULL), 0);
        CHECK_EQUAL(atomic_load(&ended_with), -EBADF);
        CHECK_EQUAL(haft_io_close(ends[1]), 0);
    }
    return NULL;
}
static void closing_ends_a_wait_on_another_thread_with_an_error(void) {
    CHECK_RUNS_ON(2, close_under_readers);
    CHECK_RUNS_ON(4, close_under_readers);
}

/* All tasks that wait get an error, and none gets a connection of the next file of the number. */
static atomic_int waiting, refused;
static void *accept_until_closed(void *unused) {
    atomic_fetch_add(&waiting, 1);
    int connection = haft_io_accept(ends[0]);
    CHECK_EQUAL(connection, -EBADF);
    atomic_fetch_add(&refused, 1);
    return unused;
}
BODY(close_under_many) {
    static const int counts[] = {1, 64, 1000};
    for (int i = 0; i < 3; i++) {
        atomic_store(&waiting, 0);
        atomic_store(&refused, 0);
        ends[0] = haft_io_listen_tcp("127.0.0.1", 0, 0);
        for (int j = 0; j < counts[i]; j++)
            CHECK_EQUAL(haft_io_spawn(accept_until_closed, NULL), 0);
        while (atomic_load(&waiting) < counts[i])
            haft_io_sleep(HAFT_IO_MILLISECOND / 10);
        haft_io_sleep(HAFT_IO_MILLISECOND); /* most wait; the others are refused, too */
        CHECK_EQUAL(haft_io_close(ends[0]), 0);
        while (atomic_load(&refused) < counts[i])
            haft_io_sleep(HAFT_IO_MILLISECOND / 10);
    }
    return NULL;
}
static void closing_ends_the_waits_of_a_thousand(void) {
    for (int threads = 1; threads <= 3; threads++)
        CHECK_RUNS_ON(threads, close_under_many);
}

static atomic_int worked;
static void work(__attribute__((unused)) void *argument) {
    atomic_fetch_add(&worked, 1);
}
static void *call_work(void *unused) {
    for (int i = 0; i < 20; i++)
        CHECK_EQUAL(haft_io_call_blocking(work, NULL), 0);
    return unused;
}
BODY(call_from_many) {
    atomic_store(&worked, 0);
    for (int i = 0; i < 20; i++)
        haft_io_spawn(call_work, NULL);
    return NULL;
}
static void blocking_work_is_done_for_tasks_of_all_threads(void) {
    CHECK_RUNS_ON(4, call_from_many);
    CHECK_EQUAL(atomic_load(&worked), 400);
}

/* ---- Wake-ups ---- */

/* Each of the two wakes the other, which has gone to sleep meanwhile. */
static haft_io_channel_t *there, *back;
static void *answer(void *unused) {
    for (int ball; haft_io_channel_receive(there, &ball) == 0;) {
        haft_io_sleep(ball % 3 * HAFT_IO_MILLISECOND / 10);
        haft_io_channel_send(back, &ball);
    }
    return unused;
}
BODY(play) {
    there = haft_io_channel_new(sizeof(int), 0);
    back = haft_io_channel_new(sizeof(int), 0);
    haft_io_task_t *other = haft_io_async(answer, NULL);
    for (int i = 0; i < check_times(500); i++) {
        int ball = i;
        haft_io_channel_send(there, &ball);
        haft_io_channel_receive(back, &ball);
        CHECK_EQUAL(ball, i);
    }
    haft_io_channel_close(there);
    haft_io_join(other, NULL);
    haft_io_channel_free(there);
    haft_io_channel_free(back);
    return NULL;
}
static void no_wake_up_is_lost(void) {
    for (int i = 0; i < 5; i++)
        CHECK_RUNS_ON(2, play);
}

/* HAFT_STEALING_SECONDS=60 goes on for a minute: in so many short runs each of these meets many
   orders of steals, wakes, cancels and ends. */
int main(void) {
    check_backend();
    double seconds = check_campaign("HAFT_STEALING_SECONDS", 0, CHECK_RACE_SECONDS);
    double begin = (double)time(NULL);
    do {
        RUN(idle_threads_take_what_a_busy_one_has_spawned);
        RUN(a_task_that_has_started_stays_on_its_thread);
        RUN(each_task_of_a_tree_runs_once_and_is_joined);
        RUN(more_than_a_queue_holds_is_run_and_waited_for);
        RUN(a_thread_that_has_searched_in_vain_takes_what_waits);
        RUN(a_cancel_reaches_tasks_of_all_threads_at_every_wait);
        RUN(a_cancel_may_come_to_those_that_a_poll_has_woken);
        RUN(a_join_that_is_cancelled_as_the_task_ends_leaves_nothing_behind);
        RUN(what_ended_on_one_thread_is_joined_on_another);
        RUN(threads_of_the_library_block_all_signals_but_faults);
        RUN(an_overflow_on_any_thread_is_named);
        RUN(a_task_that_nobody_joins_gets_its_turn);
        RUN(who_yields_lets_all_go_first_that_a_poll_has_woken);
        RUN(who_gets_mail_often_steals_nevertheless);
        RUN(all_of_these_and_the_first_of_these_hold_between_threads);
        RUN(tasks_of_several_threads_share_a_mutex);
        RUN(readers_writers_barriers_and_once_hold_between_threads);
        RUN(channels_lose_nothing_between_threads);
        RUN(values_are_inherited_by_tasks_of_other_threads);
        RUN(connections_are_served_by_several_threads);
        RUN(closing_ends_a_wait_on_another_thread_with_an_error);
        RUN(closing_ends_the_waits_of_a_thousand);
        RUN(blocking_work_is_done_for_tasks_of_all_threads);
        RUN(no_wake_up_is_lost);
    } while (check_failures == 0 && (double)time(NULL) < begin + seconds);
    return check_end();
}
