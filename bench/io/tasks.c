/* SPDX-License-Identifier: MIT */
/* Tasks of libhaft-io: what each step costs, beside a perform-resume round trip of core. One run of
 * the scheduler does a slice. */
#include "../harness.h"

#include <haft/io.h>

#include <stdlib.h>

static void run_on(int threads, void *(*body)(void *), void *argument) {
    if (haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, body, argument) != 0)
        abort();
}
static void run(benchmark_t *benchmark, void *(*body)(void *)) {
    run_on(1, body, benchmark);
}

/* ---- The measure: one perform, handled and resumed ---- */

HAFT_EFFECT(io_ask, int64_t, { int64_t value; });

static void *ask_forever(void *unused) {
    (void)unused;
    for (int64_t value = 0;;)
        value = HAFT_PERFORM(io_ask, value);
    return NULL;
}

BENCHMARK("haft/round-trip", round_trip) {
    haft_fiber_t *k = haft_fiber_new(ask_forever, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(io_ask));
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        if (request.effect != HAFT_ID(io_ask))
            abort();
        int64_t value = ((HAFT_PAYLOAD(io_ask) *)request.payload)->value;
        request = haft_resume(k, HAFT_REPLY(io_ask, value + 1), HAFT_HANDLES(io_ask));
    }
    benchmark_stop(benchmark);
    haft_fiber_drop(k);
}

/* ---- Tasks ---- */

static void *do_nothing(void *argument) {
    return argument;
}

static void *spawn_and_join(void *argument) {
    benchmark_t *benchmark = argument;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        if (haft_io_join(haft_io_async(do_nothing, NULL), NULL) != 0)
            abort();
    benchmark_stop(benchmark);
    return NULL;
}
BENCHMARK("haft/io-spawn-join", spawn_join) {
    run(benchmark, spawn_and_join);
}
BENCHMARK("haft/io-spawn-join-2-threads", spawn_join_2) {
    run_on(2, spawn_and_join, benchmark);
}

/* Spawned by the hundred, joined afterwards: no switch for each. */
static void *spawn_in_batches(void *argument) {
    enum { BATCH = 100 };
    benchmark_t *benchmark = argument;
    haft_io_task_t *tasks[BATCH];
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations;) {
        int count = 0;
        for (; count < BATCH && i < benchmark->operations; count++, i++)
            tasks[count] = haft_io_async(do_nothing, NULL);
        while (count > 0)
            haft_io_join(tasks[--count], NULL);
    }
    benchmark_stop(benchmark);
    return NULL;
}
BENCHMARK("haft/io-spawn-join-batch", spawn_join_batch) {
    run(benchmark, spawn_in_batches);
}
BENCHMARK("haft/io-spawn-join-batch-2-threads", spawn_join_batch_2) {
    run_on(2, spawn_in_batches, benchmark);
}

static void *yield_half(void *argument) {
    benchmark_t *benchmark = argument;
    for (uint64_t i = 0; i < benchmark->operations; i += 2)
        haft_io_yield();
    return NULL;
}
static void *yield_by_two(void *argument) {
    benchmark_t *benchmark = argument;
    haft_io_task_t *other = haft_io_async(yield_half, benchmark);
    benchmark_start(benchmark);
    yield_half(benchmark);
    haft_io_join(other, NULL);
    benchmark_stop(benchmark);
    return NULL;
}
BENCHMARK("haft/io-yield", yield) {
    run(benchmark, yield_by_two);
}

/* The same, and spawn-join, of tasks with thread-locals of their own. */
static void run_own(benchmark_t *benchmark, void *(*body)(void *)) {
    haft_io_run_options_t options = {.threads = 1, .own_thread_locals = true};
    if (haft_io_run_with(&options, body, benchmark) != 0)
        abort();
}
BENCHMARK("haft/io-yield-own-locals", yield_own) {
    run_own(benchmark, yield_by_two);
}
BENCHMARK("haft/io-spawn-join-own-locals", spawn_join_own) {
    run_own(benchmark, spawn_and_join);
}

static void *return_at_once(void *argument) {
    return argument;
}
static void *open_scopes(void *argument) {
    benchmark_t *benchmark = argument;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        haft_io_scope(return_at_once, NULL, NULL);
    benchmark_stop(benchmark);
    return NULL;
}
BENCHMARK("haft/io-scope", scope) {
    run(benchmark, open_scopes);
}

static void *who_am_i(void *argument) {
    benchmark_t *benchmark = argument;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        haft_io_task_t *self = haft_io_self();
        OPAQUE(self);
    }
    benchmark_stop(benchmark);
    return NULL;
}
BENCHMARK("haft/io-self", self) {
    run(benchmark, who_am_i);
}

/* ---- Synchronisation ---- */

typedef struct {
    benchmark_t *benchmark;
    haft_io_channel_t *there, *back;
    int64_t patience; /* HAFT_IO_FOREVER, or how long to wait */
    bool apart;       /* on two threads */
    bool ready;
} players_t;

static int64_t limit(const players_t *players) {
    return players->patience == HAFT_IO_FOREVER ? HAFT_IO_FOREVER
                                                : haft_io_now() + players->patience;
}

static void *answer(void *argument) {
    players_t *players = argument;
    __atomic_store_n(&players->ready, true, __ATOMIC_RELEASE);
    for (int ball; haft_io_channel_receive_until(players->there, &ball, limit(players)) == 0;)
        haft_io_channel_send_until(players->back, &ball, limit(players));
    return NULL;
}

static void *play(void *argument) {
    players_t *players = argument;
    benchmark_t *benchmark = players->benchmark;
    haft_io_spawn(answer, players);
    while (players->apart && !__atomic_load_n(&players->ready, __ATOMIC_ACQUIRE))
        continue; /* without waiting, until another thread has taken it */
    int ball = 1;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        haft_io_channel_send_until(players->there, &ball, limit(players));
        haft_io_channel_receive_until(players->back, &ball, limit(players));
    }
    benchmark_stop(benchmark);
    haft_io_channel_close(players->there);
    return NULL;
}

static void ping_pong(benchmark_t *benchmark, size_t capacity, int64_t patience, bool apart) {
    players_t players = {benchmark,
                         haft_io_channel_new(sizeof(int), capacity),
                         haft_io_channel_new(sizeof(int), capacity),
                         patience,
                         apart,
                         false};
    run_on(apart ? 2 : 1, play, &players);
    haft_io_channel_free(players.there);
    haft_io_channel_free(players.back);
}
BENCHMARK("haft/io-channel-unbuffered", channel_unbuffered) {
    ping_pong(benchmark, 0, HAFT_IO_FOREVER, false);
}
BENCHMARK("haft/io-channel-capacity-1", channel_capacity_1) {
    ping_pong(benchmark, 1, HAFT_IO_FOREVER, false);
}
BENCHMARK("haft/io-channel-2-threads", channel_2_threads) {
    ping_pong(benchmark, 1, HAFT_IO_FOREVER, true);
}
/* Each of the four waits sets a timer and cancels it. */
BENCHMARK("haft/io-channel-deadlines", channel_deadlines) {
    ping_pong(benchmark, 1, HAFT_IO_SECOND, false);
}

typedef struct {
    benchmark_t *benchmark;
    haft_io_mutex_t mutex;
} contest_t;
enum { CONTESTANTS = 1000 };

static void *contend(void *argument) {
    contest_t *contest = argument;
    for (uint64_t i = 0; i < contest->benchmark->operations / CONTESTANTS; i++) {
        haft_io_mutex_lock(&contest->mutex);
        if (i % 10 == 0)
            haft_io_yield();
        haft_io_mutex_unlock(&contest->mutex);
    }
    return NULL;
}
static void *hold_contest(void *argument) {
    contest_t *contest = argument;
    haft_io_call_t calls[CONTESTANTS];
    for (int i = 0; i < CONTESTANTS; i++)
        calls[i] = (haft_io_call_t){contend, contest, NULL};
    benchmark_start(contest->benchmark);
    for (uint64_t i = contest->benchmark->operations % CONTESTANTS; i > 0; i--) {
        haft_io_mutex_lock(&contest->mutex);
        haft_io_mutex_unlock(&contest->mutex);
    }
    haft_io_all(calls, CONTESTANTS);
    benchmark_stop(contest->benchmark);
    return NULL;
}
/* A thousand tasks; every tenth holder yields. */
BENCHMARK("haft/io-mutex-contended", mutex_contended) {
    contest_t contest = {benchmark, {.held = false}};
    run_on(1, hold_contest, &contest);
}
