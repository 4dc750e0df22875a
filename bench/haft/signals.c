/* SPDX-License-Identifier: MIT */
/* Effects handled in place, without signals, and while a timer's handler performs another effect
 * that shares the slot of the cache: every signal costs the interrupted code a lookup, and itself
 * one. One operation is one perform. */
#include "../harness.h"

#include <haft.h>

#include <signal.h>
#include <sys/time.h>

/* On one line: one slot. */
#define EFFECTS                                                                                    \
    HAFT_EFFECT(get, int64_t, {});                                                                 \
    HAFT_EFFECT(tick, void, {})
EFFECTS;

typedef struct counters {
    int64_t got, ticks;
} counters_t;

static int64_t on_get(void *state, HAFT_PAYLOAD(get) * payload) {
    (void)payload;
    return ++((counters_t *)state)->got;
}

static void on_tick(void *state, HAFT_PAYLOAD(tick) * payload) {
    (void)payload;
    ((counters_t *)state)->ticks++;
}

/* Apart: while a clause runs, its handler is out of reach. */
HAFT_HANDLER(counting_ticks, NULL, HAFT_TAIL(tick, on_tick));
HAFT_HANDLER(counting, NULL, HAFT_TAIL(get, on_get));

static void tell_time(int number) {
    (void)number;
    HAFT_PERFORM(tick);
}

static void ask_for_signals(suseconds_t period) {
    setitimer(ITIMER_REAL, &(struct itimerval){{0, period}, {0, period}}, NULL);
}

static void *perform_all(void *argument) {
    benchmark_t *benchmark = argument;
    int64_t last = HAFT_PERFORM(get);
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        last = HAFT_PERFORM(get);
    benchmark_stop(benchmark);
    OPAQUE(last);
    return NULL;
}

static void *perform_under_signals(void *benchmark) {
    ask_for_signals(100);
    perform_all(benchmark);
    ask_for_signals(0);
    return NULL;
}

typedef struct measured {
    benchmark_t *benchmark;
    void *(*loop)(void *benchmark);
    counters_t counters;
} measured_t;

static void *handle_gets(void *argument) {
    measured_t *measured = argument;
    return haft_handle(&counting, &measured->counters, measured->loop, measured->benchmark);
}

static void measure(benchmark_t *benchmark, void *(*loop)(void *), void (*handler)(int)) {
    measured_t measured = {benchmark, loop, {0, 0}};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigaction(SIGALRM, &action, NULL);
    haft_handle(&counting_ticks, &measured.counters, handle_gets, &measured);
    action.sa_handler = SIG_IGN; /* what is still on its way */
    sigaction(SIGALRM, &action, NULL);
}

static void ignore_signal(int number) {
    (void)number;
}

BENCHMARK("haft/signal-free", signal_free) {
    measure(benchmark, perform_all, ignore_signal);
}

BENCHMARK("haft/signal-loaded", signal_loaded) {
    measure(benchmark, perform_under_signals, tell_time);
}

/* The cost of the signals by themselves. */
BENCHMARK("haft/signal-loaded-idle", signal_loaded_idle) {
    measure(benchmark, perform_under_signals, ignore_signal);
}
