/* SPDX-License-Identifier: MIT */
/*
 * The watchdog: a thread that finds tasks which hold theirs. Every half of the limit it looks at
 * each worker: the number of tasks that it has resumed and the number of its polls show whether the
 * same task runs as the last time. The thread's processor time counts, and the time for which looks
 * have found it blocked in the kernel; not the time for which it waits for a processor, or in which
 * the process is stopped. The thread that one has held for longer than the limit is interrupted by
 * a signal, whose handler looks again, and writes the task's name and its own backtrace; and so
 * again after twice the limit, four times, and on: the signal may come where a backtrace ends at
 * once (an entry of AArch64's PLT, which has no unwind information). So all that a worker does for
 * it is to store which runner is running.
 */
#include "haft/interrupted.h"
#include "inside.h"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { INTERRUPTING = SIGURG, MOST_FRAMES = 64 };

typedef struct stay {
    uint64_t stamp; /* of the task that runs */
    int64_t held;   /* how long it has held the thread */
    int64_t used;   /* the processor's time of the thread at the last look */
    int64_t looked; /* when that was */
    uint64_t told;  /* the stamp for which the thread was interrupted; any thread */
    int64_t after;  /* and after how long; 0: it was not. Any thread */
} stay_t;

typedef struct hafti_io_watchdog {
    hafti_io_crew_t *crew;
    int64_t limit;
    pthread_t thread;
    haft_io_event_t ends;
    stay_t stays[HAFTI_IO_MOST_THREADS];
} hafti_io_watchdog_t;

static struct sigaction before; /* what the program had for the signal */
static bool (*is_wanted)(void); /* a report; NULL: always */

void haft_io_watchdog_ask(bool (*function)(void)) {
    __atomic_store_n(&is_wanted, function, __ATOMIC_RELEASE);
}

/* Another for each task that a worker resumes, never 0; 0 while none runs. Any thread, also in a
   signal handler. */
static uint64_t stamp_of(const hafti_io_worker_t *worker) {
    if (__atomic_load_n(&worker->running, __ATOMIC_RELAXED) == NULL)
        return 0;
    uint32_t rounds = __atomic_load_n(&worker->rounds, __ATOMIC_RELAXED);
    return (uint64_t)rounds << 32 | (__atomic_load_n(&worker->resumed, __ATOMIC_RELAXED) + 1);
}

/* ---- On the thread that is held ---- */

/* A line made only by functions that may be called in a signal handler. */
typedef struct line {
    char bytes[256];
    size_t size;
} line_t;

static void add_words(line_t *line, const char *words) {
    enum { ENDING = sizeof "'\n" - 1 };
    while (*words != '\0' && line->size < sizeof line->bytes - ENDING)
        line->bytes[line->size++] = *words++;
}

static void add_number(line_t *line, int64_t number) {
    char digits[24];
    char *first = digits + sizeof digits;
    *--first = '\0';
    do
        *--first = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    add_words(line, first);
}

/* The program's frames; `interrupted` is where the signal has come. */
static int backtrace_of(const haft_io_task_t *task, const void *interrupted, void **addresses) {
    int count = backtrace(addresses, MOST_FRAMES), inner = 0;
    while (inner < count && addresses[inner] != interrupted)
        inner++;
    if (inner == count)
        return count;
    memmove(addresses, addresses + inner, (size_t)(count - inner) * sizeof *addresses);
    return haft_programs_frames(addresses, count - inner, (const void *)(uintptr_t)task->function,
                                false);
}

static void name_task(const stay_t *stay, const haft_io_task_t *task, const void *interrupted) {
    bool (*asked)(void) = __atomic_load_n(&is_wanted, __ATOMIC_ACQUIRE);
    if (asked != NULL && !asked())
        return;
    line_t line = {.size = 0};
    const char *name = __atomic_load_n(&task->name, __ATOMIC_RELAXED);
    add_words(&line, "haft-io: a task has held its thread for more than ");
    add_number(&line, __atomic_load_n(&stay->after, __ATOMIC_RELAXED) / HAFT_IO_MILLISECOND);
    add_words(&line, " ms: '");
    add_words(&line, name != NULL ? name : "");
    memcpy(line.bytes + line.size, "'\n", 2);
    void *addresses[MOST_FRAMES];
    int count = backtrace_of(task, interrupted, addresses);
    if (write(STDERR_FILENO, line.bytes, line.size + 2) > 0)
        backtrace_symbols_fd(addresses, count, STDERR_FILENO);
}

static void give_glimpse(const hafti_io_worker_t *worker, hafti_io_glimpse_t *glimpse,
                         const void *interrupted) {
    const hafti_io_runner_t *runner = __atomic_load_n(&worker->running, __ATOMIC_RELAXED);
    const haft_io_task_t *task = runner != NULL ? runner->task : NULL;
    const char *name = task != NULL ? __atomic_load_n(&task->name, __ATOMIC_RELAXED) : NULL;
    glimpse->task = task;
    if (task != NULL)
        glimpse->count = backtrace_of(task, interrupted, glimpse->addresses);
    for (size_t i = 0; name != NULL && name[i] != '\0' && i < sizeof glimpse->name - 1; i++)
        glimpse->name[i] = name[i];
    __atomic_store_n(&glimpse->is_done, 1, __ATOMIC_RELEASE);
}

static void interrupted(int number, siginfo_t *information, void *context) {
    int saved = errno;
    hafti_io_worker_t *worker = hafti_io_worker();
    hafti_io_glimpse_t *glimpse =
        worker != NULL ? __atomic_exchange_n(&worker->glimpse, NULL, __ATOMIC_ACQUIRE) : NULL;
    if (glimpse != NULL) {
        give_glimpse(worker, glimpse, haft_interrupted_pc(context));
        errno = saved;
        return;
    }
    hafti_io_watchdog_t *watchdog = worker != NULL ? worker->crew->watchdog : NULL;
    stay_t *stay = watchdog != NULL ? &watchdog->stays[worker->index] : NULL;
    uint64_t told = 0;
    if (stay != NULL)
        told = __atomic_exchange_n(&stay->told, 0, __ATOMIC_ACQUIRE);
    if (told != 0 && told == stamp_of(worker)) {
        const haft_io_task_t *task = worker->running->task;
        if (task != NULL)
            name_task(stay, task, haft_interrupted_pc(context));
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

void hafti_io_watchdog_catch(void) {
    static pthread_once_t catching = PTHREAD_ONCE_INIT;
    pthread_once(&catching, catch_signal);
}

/* Waits MOST milliseconds, and longer if the thread has begun to fill the glimpse by then. */
bool hafti_io_watchdog_glimpse(hafti_io_worker_t *worker, hafti_io_glimpse_t *glimpse) {
    enum { MOST = 200 }; /* milliseconds */
    static const struct timespec moment = {.tv_nsec = HAFT_IO_MILLISECOND};
    __atomic_store_n(&worker->glimpse, glimpse, __ATOMIC_RELEASE);
    bool is_asked = pthread_kill(worker->thread, INTERRUPTING) == 0;
    for (int i = 0; is_asked && i < MOST; i++) {
        if (__atomic_load_n(&glimpse->is_done, __ATOMIC_ACQUIRE))
            return true;
        nanosleep(&moment, NULL);
    }
    if (__atomic_exchange_n(&worker->glimpse, NULL, __ATOMIC_ACQ_REL) == glimpse)
        return false;
    while (!__atomic_load_n(&glimpse->is_done, __ATOMIC_ACQUIRE))
        nanosleep(&moment, NULL);
    return true;
}

void hafti_io_watchdog_admit(const hafti_io_crew_t *crew) {
    sigset_t signals;
    if (crew->watchdog == NULL && !crew->observed)
        return;
    sigemptyset(&signals);
    sigaddset(&signals, INTERRUPTING);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

/* ---- The thread ---- */

int64_t hafti_io_processor_time(const hafti_io_worker_t *worker) {
    clockid_t clock;
    struct timespec time;
    if (pthread_getcpuclockid(worker->thread, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return 0;
    return (int64_t)time.tv_sec * HAFT_IO_SECOND + time.tv_nsec;
}

/* Whether the thread sleeps in the kernel, as one does that waits for a lock, or for the disk.
   False where the system does not show it. */
static bool is_blocked(const hafti_io_worker_t *worker) {
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat",
             (int)__atomic_load_n(&worker->thread_number, __ATOMIC_RELAXED));
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0)
        close(file);
    text[size > 0 ? size : 0] = '\0';
    const char *name_end = strrchr(text, ')'); /* The name may have any characters. */
    return name_end != NULL && (name_end[2] == 'S' || name_end[2] == 'D');
}

static void look_at(hafti_io_watchdog_t *watchdog, const hafti_io_worker_t *worker, int64_t now) {
    stay_t *stay = &watchdog->stays[worker->index];
    uint64_t stamp = stamp_of(worker);
    int64_t used = stamp != 0 ? hafti_io_processor_time(worker) : 0;
    if (stamp == 0 || stamp != stay->stamp) {
        stay->stamp = stamp;
        stay->held = 0;
        stay->used = used;
        stay->looked = now;
        __atomic_store_n(&stay->after, 0, __ATOMIC_RELAXED);
        return;
    }
    /* A look that comes late, as after a stop of the process, counts once. */
    int64_t interval = watchdog->limit / 2 + 1, passed = now - stay->looked;
    int64_t held = used - stay->used;
    if (passed > 2 * interval)
        passed = 2 * interval;
    if (held < passed / 2 && is_blocked(worker))
        held = passed;
    stay->held += held;
    stay->used = used;
    stay->looked = now;
    int64_t limit = stay->after != 0 ? stay->after * 2 : watchdog->limit;
    if (stay->held >= limit) {
        __atomic_store_n(&stay->after, limit, __ATOMIC_RELAXED);
        __atomic_store_n(&stay->told, stamp, __ATOMIC_RELEASE);
        pthread_kill(worker->thread, INTERRUPTING);
    }
}

static void *watch_workers(void *argument) {
    hafti_io_watchdog_t *watchdog = argument;
    int64_t interval = watchdog->limit / 2 > 0 ? watchdog->limit / 2 : 1;
    for (int64_t now = hafti_io_clock();
         haft_io_event_wait_until(&watchdog->ends, now + interval) == -ETIMEDOUT;) {
        now = hafti_io_clock();
        unsigned count = __atomic_load_n(&watchdog->crew->count, __ATOMIC_ACQUIRE);
        for (unsigned i = 0; i < count; i++)
            look_at(watchdog, watchdog->crew->workers[i], now);
    }
    return NULL;
}

bool hafti_io_watchdog_start(hafti_io_crew_t *crew, int64_t limit) {
    hafti_io_watchdog_t *watchdog = calloc(1, sizeof *watchdog);
    if (watchdog == NULL)
        return false;
    hafti_io_watchdog_catch();
    watchdog->crew = crew;
    watchdog->limit = limit;
    bool started = hafti_io_start_thread(&watchdog->thread, watch_workers, watchdog) == 0;
    if (started)
        crew->watchdog = watchdog;
    else
        free(watchdog);
    return started;
}

void hafti_io_watchdog_stop(hafti_io_crew_t *crew) {
    haft_io_event_set(&crew->watchdog->ends);
    pthread_join(crew->watchdog->thread, NULL);
}
