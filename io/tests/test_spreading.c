/* SPDX-License-Identifier: MIT */
/* Runs of several threads: connections are spread over them, however slowly they come. */
#include "check_io.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 3, MOST = 60 };

static int listener;
static int clients[MOST], opened;
static haft_io_task_t *servers[MOST]; /* of these, where go() ends them */
static atomic_int served, at_once[THREADS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t seen[THREADS];
static int seen_count;

/* The number of the calling thread. */
static int this_thread(void) {
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < seen_count && !pthread_equal(seen[i], pthread_self()))
        i++;
    if (i == seen_count) {
        CHECK(i < THREADS);
        seen[seen_count++] = pthread_self();
    }
    pthread_mutex_unlock(&lock);
    return i;
}

static void *serve(void *connection) {
    int thread = this_thread();
    atomic_fetch_add(&at_once[thread], 1);
    atomic_fetch_add(&served, 1);
    CHECK_EQUAL(haft_io_read((int)(intptr_t)connection, &(char){0}, 1), 0);
    atomic_fetch_sub(&at_once[thread], 1);
    CHECK_EQUAL(haft_io_close((int)(intptr_t)connection), 0);
    return NULL;
}

/* A connection, whose client is the next of `clients`. */
static int accept_one(void) {
    int client = haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    CHECK(client >= 0);
    clients[opened++] = client;
    int connection = haft_io_accept(listener);
    CHECK(connection >= 0);
    return connection;
}
static void serve_one(void) {
    int connection = accept_one();
    servers[opened - 1] = haft_io_async(serve, check_number(connection));
}
static void await_count(atomic_int *counter, int count) {
    while (atomic_load(counter) != count)
        haft_io_sleep(HAFT_IO_MILLISECOND / 10);
}
/* One after the other, each when the last has come to its wait. */
static void come(int count) {
    for (int i = 0; i < count; i++) {
        int before = atomic_load(&served);
        serve_one();
        await_count(&served, before + 1);
    }
}
static int sum(void) {
    int all = 0;
    for (int i = 0; i < THREADS; i++)
        all += atomic_load(&at_once[i]);
    return all;
}
/* The last that have come. When they are joined, no thread counts them any more. */
static void go(int count) {
    for (int i = 0; i < count; i++) {
        CHECK_EQUAL(haft_io_close(clients[--opened]), 0);
        CHECK_EQUAL(haft_io_join(servers[opened], NULL), 0);
    }
}
static void check_even(void) {
    int least = MOST, most = 0;
    for (int i = 0; i < THREADS; i++) {
        int count = atomic_load(&at_once[i]);
        least = count < least ? count : least;
        most = count > most ? count : most;
    }
    CHECK(check_moves() || most - least <= 1);
}
static void begin(void) {
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    opened = 0;
    atomic_store(&served, 0);
    seen_count = 0;
    for (int i = 0; i < THREADS; i++)
        atomic_store(&at_once[i], 0);
}

BODY(slowly) {
    begin();
    come(30);
    check_even();
    CHECK_EQUAL(sum(), 30);
    go(15);
    come(MOST - 15);
    CHECK_EQUAL(sum(), MOST);
    go(MOST);
    come(THREADS);
    check_even();
    go(THREADS);
    haft_io_close(listener);
    return NULL;
}
static void connections_that_come_slowly_are_spread(void) {
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = THREADS}, slowly, NULL), 0);
}

/* All before one of them has come to its wait. */
BODY(at_one_time) {
    begin();
    for (int i = 0; i < 30; i++)
        serve_one();
    await_count(&served, 30);
    check_even();
    go(30);
    haft_io_close(listener);
    return NULL;
}
static void connections_that_come_at_one_time_are_spread(void) {
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = THREADS}, at_one_time, NULL),
                0);
}

/* A task that is spawned so without a connection, among others that are not. */
static void *wait_for_end(void *end) {
    int thread = this_thread();
    atomic_fetch_add(&at_once[thread], 1);
    atomic_fetch_add(&served, 1);
    haft_io_event_wait(end);
    return NULL;
}
BODY(by_wish) {
    begin();
    haft_io_event_t end = {0};
    for (int i = 0; i < 30; i++) {
        const haft_io_task_options_t options = {.spread = true};
        CHECK_EQUAL(haft_io_spawn_with(&options, wait_for_end, &end), 0);
        CHECK_EQUAL(haft_io_spawn(check_nothing, NULL), 0);
        await_count(&served, i + 1);
    }
    check_even();
    haft_io_event_set(&end);
    haft_io_close(listener);
    return NULL;
}
static void tasks_are_spread_where_their_spawner_says_so(void) {
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = THREADS}, by_wish, NULL), 0);
}

static void *say_thread(void *unused) {
    (void)unused;
    return check_number(this_thread());
}
static void *wait_for_ever(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = (int)(intptr_t)argument;
    haft_io_read(connection, &(char){0}, 1);
    CHECK(false); /* it is unwound */
    return NULL;
}
static void *accept_and_leave(void *unused) {
    for (int i = 0; i < THREADS; i++)
        haft_io_spawn(wait_for_ever, check_number(accept_one()));
    haft_io_scope_cancel(haft_io_this_scope());
    return unused;
}
/* Only the first task after an accept is spread, joined or not, and one that was cancelled before
   it started ends. */
BODY(in_other_ways) {
    begin();
    int before = check_descriptors();
    for (int i = 0; i < 9; i++) {
        int connection = accept_one();
        void *result = NULL;
        CHECK_EQUAL(haft_io_join(haft_io_async(say_thread, NULL), &result), 0);
        CHECK((intptr_t)result < THREADS);
        haft_io_close(connection);
    }
    for (int i = 0; i < 9; i++)
        CHECK_EQUAL(haft_io_scope(accept_and_leave, NULL, NULL), -ECANCELED);
    while (opened != 0)
        haft_io_close(clients[--opened]);
    CHECK_EQUAL(check_descriptors(), before);
    come(9);
    check_even();
    go(9);
    haft_io_close(listener);
    return NULL;
}
static void they_are_joined_and_cancelled_as_others(void) {
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = THREADS}, in_other_ways, NULL),
                0);
}

int main(void) {
    check_backend();
    RUN(connections_that_come_slowly_are_spread);
    RUN(connections_that_come_at_one_time_are_spread);
    RUN(tasks_are_spread_where_their_spawner_says_so);
    RUN(they_are_joined_and_cancelled_as_others);
    return check_end();
}
