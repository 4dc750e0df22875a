/* SPDX-License-Identifier: MIT */
/*
 * The cost of an event of a trace: each work is done by turns without a trace and in one, whose
 * file is in FOLDER, so that a machine with other work delays both alike.
 *
 *     traced FOLDER
 *
 * A line for each work: its name; nanoseconds of the thread's processor time an operation, without a
 * trace and in one, medians of many turns; events an operation. First comes a line with what a
 * reading of the processor's counter takes, by which events have their time.
 */
#define _GNU_SOURCE
#include <haft/io.h>
#include <haft/io_sync.h>
#include <haft/io_trace.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 40, WARM = 2000, EVENTS = 4096 };

static int64_t used(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}
static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

/* ---- The works ---- */

static void *yield_once_each(void *count) {
    for (int i = 0; i < *(int *)count; i++)
        haft_io_yield();
    return NULL;
}
/* Two tasks, so that each yield goes on elsewhere. */
static void yield(int count) {
    int half = count / 2;
    haft_io_task_t *other = haft_io_async(yield_once_each, &half);
    yield_once_each(&half);
    haft_io_join(other, NULL);
}

static haft_io_channel_t *there, *back;
static void *answer(void *count) {
    int64_t value;
    for (int i = 0; i < *(int *)count; i++) {
        haft_io_channel_receive(there, &value);
        haft_io_channel_send(back, &value);
    }
    return NULL;
}
static void exchange(int count) {
    int64_t value = 0;
    haft_io_task_t *other = haft_io_async(answer, &count);
    for (int i = 0; i < count; i++) {
        haft_io_channel_send(there, &value);
        haft_io_channel_receive(back, &value);
    }
    haft_io_join(other, NULL);
}

static void *do_nothing(void *unused) {
    return unused;
}
static void spawn(int count) {
    for (int i = 0; i < count; i++)
        haft_io_join(haft_io_async(do_nothing, NULL), NULL);
}

static int ends[2];
static void transfer(int count) {
    char byte = 0;
    for (int i = 0; i < count; i++) {
        haft_io_write(ends[0], &byte, 1);
        haft_io_read(ends[1], &byte, 1);
    }
}

static void span(int count) {
    for (int i = 0; i < count; i++) {
        haft_io_trace_begin("work");
        haft_io_trace_end("work", i);
    }
}

HAFT_EFFECT(traced_ask, int64_t, { int64_t value; });
HAFT_EFFECT(traced_tell, int64_t, { int64_t value; });

static void *ask_forever(void *unused) {
    (void)unused;
    for (int64_t value = 0;;)
        value = HAFT_PERFORM(traced_ask, value);
    return NULL;
}
static void resume(int count) {
    haft_fiber_t *fiber = haft_fiber_new(ask_forever, NULL);
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(traced_ask));
    for (int i = 0; i < count; i++) {
        int64_t value = ((HAFT_PAYLOAD(traced_ask) *)request.payload)->value;
        request = haft_resume(fiber, HAFT_REPLY(traced_ask, value + 1), HAFT_HANDLES(traced_ask));
    }
    haft_fiber_drop(fiber);
}

static int64_t clause_tell(void *unused, HAFT_PAYLOAD(traced_tell) * payload) {
    (void)unused;
    return payload->value + 1;
}
static void *tell(void *count) {
    int64_t value = 0;
    for (int i = 0; i < *(int *)count; i++)
        value = HAFT_PERFORM(traced_tell, value);
    return NULL;
}
HAFT_HANDLER(telling, NULL, HAFT_TAIL(traced_tell, clause_tell));
static void handle(int count) {
    haft_handle(&telling, NULL, tell, &count);
}

static const struct work {
    const char *name;
    void (*work)(int count);
    int count;
    bool effects;
} works[] = {{"a yield", yield, 20000, false},
             {"a message over a channel and one back", exchange, 10000, false},
             {"a spawn and its join", spawn, 10000, false},
             {"a write and a read of a socket", transfer, 4000, false},
             {"a span", span, 20000, false},
             {"a perform and its resume (`effects`)", resume, 20000, true},
             {"an effect in place (`effects`)", handle, 20000, true}};

/* ---- Measuring ---- */

static char path[1000];

/* Counts events of the only ring: io/src/trace.c has the format. */
static uint64_t events_so_far(void) {
    enum { RINGS_AT = 32 };
    uint64_t at = 0, count = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (pread(file, &at, sizeof at, RINGS_AT) != sizeof at ||
        pread(file, &count, sizeof count, (off_t)at) != sizeof count)
        abort();
    close(file);
    return count;
}

static double once(const struct work *what) {
    what->work(what->count / 10);
    int64_t begin = used();
    what->work(what->count);
    return (double)(used() - begin) / what->count;
}

static double once_in_a_trace(const struct work *what, double *events) {
    haft_io_trace_options_t options = {.events = EVENTS, .effects = what->effects};
    if (haft_io_trace_start_with(&options, path) != 0)
        abort();
    what->work(what->count / 10);
    uint64_t before = events_so_far();
    int64_t begin = used();
    what->work(what->count);
    int64_t end = used();
    *events = (double)(events_so_far() - before) / what->count;
    haft_io_trace_stop();
    unlink(path);
    what->work(WARM); /* ends what observes the thread */
    haft_io_sleep(HAFT_IO_MILLISECOND);
    return (double)(end - begin) / what->count;
}

static void measure(const struct work *what) {
    double plain[TURNS], traced[TURNS], events = 0;
    for (int i = 0; i < TURNS; i++) {
        plain[i] = once(what);
        traced[i] = once_in_a_trace(what, &events);
    }
    printf("%s: %.2f %.2f %.2f\n", what->name, median(plain, TURNS), median(traced, TURNS), events);
}

static uint64_t ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return 0;
#endif
}

static void measure_reading(void) {
    enum { READINGS = 100000 };
    double times[TURNS];
    uint64_t sum = 0;
    for (int i = 0; i < TURNS; i++) {
        int64_t begin = used();
        for (int j = 0; j < READINGS; j++)
            sum += ticks();
        times[i] = (double)(used() - begin) / READINGS;
    }
    printf("a reading of the counter: %.2f%s\n", median(times, TURNS), sum == 0 ? " " : "");
}

static void *measure_all(void *unused) {
    there = haft_io_channel_new(sizeof(int64_t), 0);
    back = haft_io_channel_new(sizeof(int64_t), 0);
    if (there == NULL || back == NULL || haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        abort();
    measure_reading();
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        measure(&works[i]);
    haft_io_channel_free(there);
    haft_io_channel_free(back);
    return unused;
}

int main(int count, char **arguments) {
    if (count != 2)
        return 1;
    snprintf(path, sizeof path, "%s/haft-traced.%d", arguments[1], (int)getpid());
    return haft_io_run_with(&(haft_io_run_options_t){.threads = 1}, measure_all, NULL) == 0 ? 0 : 1;
}
