/* SPDX-License-Identifier: MIT */
/*
 * The watchdog: a thread that finds tasks which hold theirs. Every half of the limit it looks at each worker: how
 * many tasks it has resumed and how often it has polled says whether the same task runs as the last time.
 * The thread on which one has run for longer than the limit is interrupted by a signal, whose handler looks
 * again, and writes the task's name and its own backtrace. So a worker does nothing for it but to say
 * which runner is running.
 */
#include "internal.h"

#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INTERRUPTING = SIGURG, MOST_FRAMES = 64 };

typedef struct stay {
    uint64_t stamp; /* of the task that runs */
    int64_t since;
    uint64_t told; /* the stamp for which the thread was interrupted; any thread */
} stay_t;

typedef struct haft_io_watchdog {
    haft_io_crew_t *crew;
    int64_t limit;
    pthread_t thread;
    haft_io_event_t ends;
    char words[96];
    stay_t stays[HAFT_IO_MOST_THREADS];
} haft_io_watchdog_t;

static struct sigaction before; /* what the program had for the signal */

/* Another for each task that a worker resumes, never 0; 0 while none runs. Any thread, also in a signal handler. */
static uint64_t stamp_of(const haft_io_worker_t *worker) {
    if (__atomic_load_n(&worker->running, __ATOMIC_RELAXED) == NULL)
        return 0;
    uint32_t rounds = __atomic_load_n(&worker->rounds, __ATOMIC_RELAXED);
    return (uint64_t)rounds << 32 | (__atomic_load_n(&worker->resumed, __ATOMIC_RELAXED) + 1);
}

/* ---- On the thread that is held ---- */

static void name_task(const haft_io_watchdog_t *watchdog, const haft_io_task_t *task) {
    char line[256];
    const char *name = __atomic_load_n(&task->name, __ATOMIC_RELAXED);
    size_t size = strlen(watchdog->words);
    memcpy(line, watchdog->words, size);
    for (size_t i = 0; name != NULL && name[i] != '\0' && size < sizeof line - 2; i++)
        line[size++] = name[i];
    line[size++] = '\'';
    line[size++] = '\n';
    void *addresses[MOST_FRAMES];
    int count = backtrace(addresses, MOST_FRAMES);
    if (write(STDERR_FILENO, line, size) > 0)
        backtrace_symbols_fd(addresses, count, STDERR_FILENO);
}

static void interrupted(int number, siginfo_t *information, void *context) {
    int saved = errno;
    const haft_io_worker_t *worker = haft_io_worker();
    haft_io_watchdog_t *watchdog = worker != NULL ? worker->crew->watchdog : NULL;
    uint64_t told = 0;
    if (watchdog != NULL)
        told = __atomic_exchange_n(&watchdog->stays[worker->index].told, 0, __ATOMIC_RELAXED);
    if (told != 0 && told == stamp_of(worker)) {
        const haft_io_task_t *task = worker->running->task;
        if (task != NULL)
            name_task(watchdog, task);
    } else if (told == 0 && (before.sa_flags & SA_SIGINFO) != 0) {
        before.sa_sigaction(number, information, context);
    } else if (told == 0 && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    }
    errno = saved;
}

static void catch_signal(void) {
    void *address;
    backtrace(&address, 1); /* which loads the unwinder, the first time */
    struct sigaction action = {.sa_sigaction = interrupted,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    sigaction(INTERRUPTING, NULL, &before);
    sigaction(INTERRUPTING, &action, NULL);
}

void haft_io_watchdog_admit(const haft_io_crew_t *crew) {
    sigset_t signals;
    if (crew->watchdog == NULL)
        return;
    sigemptyset(&signals);
    sigaddset(&signals, INTERRUPTING);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

/* ---- The thread ---- */

static void look_at(haft_io_watchdog_t *watchdog, const haft_io_worker_t *worker, int64_t now) {
    stay_t *stay = &watchdog->stays[worker->index];
    uint64_t stamp = stamp_of(worker);
    if (stamp == 0 || stamp != stay->stamp) {
        stay->stamp = stamp;
        stay->since = now;
    } else if (now - stay->since >= watchdog->limit) {
        stay->since = HAFT_IO_FOREVER; /* once */
        __atomic_store_n(&stay->told, stamp, __ATOMIC_RELAXED);
        pthread_kill(worker->thread, INTERRUPTING);
    }
}

static void *watch(void *argument) {
    haft_io_watchdog_t *watchdog = argument;
    int64_t interval = watchdog->limit / 2 > 0 ? watchdog->limit / 2 : 1;
    for (int64_t now = haft_io_clock();
         haft_io_wait_event_until(&watchdog->ends, now + interval) == -ETIMEDOUT;) {
        now = haft_io_clock();
        unsigned count = __atomic_load_n(&watchdog->crew->count, __ATOMIC_ACQUIRE);
        for (unsigned i = 0; i < count; i++)
            look_at(watchdog, watchdog->crew->workers[i], now);
    }
    return NULL;
}

bool haft_io_watchdog_start(haft_io_crew_t *crew, int64_t limit) {
    static pthread_once_t catching = PTHREAD_ONCE_INIT;
    haft_io_watchdog_t *watchdog = calloc(1, sizeof *watchdog);
    if (watchdog == NULL)
        return false;
    pthread_once(&catching, catch_signal);
    watchdog->crew = crew;
    watchdog->limit = limit;
    snprintf(watchdog->words, sizeof watchdog->words,
             "haft-io: a task has held its thread for more than %lld ms: '",
             (long long)(limit / HAFT_IO_MILLISECOND));
    sigset_t all, masked;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &masked);
    bool started = pthread_create(&watchdog->thread, NULL, watch, watchdog) == 0;
    pthread_sigmask(SIG_SETMASK, &masked, NULL);
    if (started)
        crew->watchdog = watchdog;
    else
        free(watchdog);
    return started;
}

void haft_io_watchdog_stop(haft_io_crew_t *crew) {
    haft_io_set_event(&crew->watchdog->ends);
    pthread_join(crew->watchdog->thread, NULL);
}
