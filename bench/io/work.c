/* SPDX-License-Identifier: MIT */
/*
 * The work that libhaft-io and its peers (go/, tokio/, asio/) are compared by. Each has a program
 * with these arguments, which prints the nanoseconds that one of `count` took:
 *
 *     work spawn|yield|channel|apart|skynet|chameneos|mutex|timers|cancel THREADS COUNT [moves]
 *     work nothing THREADS COUNT            sleeps once for `count` ms; prints the wake-ups of that
 *     work echo THREADS DESCRIPTOR          serves a listening socket until killed (echo.c), with
 *                                           buffers of BUFFER bytes, beside COMPUTING tasks that
 *                                           compute for a millisecond and yield, forever; both
 *                                           are variables of the environment
 *
 * With DENSE in the environment tasks have small stacks, as those of timers always have.
 *
 * spawn: tasks that do nothing, spawned by the hundred and joined. yield: two tasks in turn.
 * channel: two tasks and two channels of capacity 1, there and back. apart: the same, kept on two
 * threads. skynet: a tree of tasks, each the parent of ten, with `count` leaves. chameneos: ten
 * tasks ask a broker for a partner, over a channel that all share, and get it over one of their
 * own; `count` meetings. mutex: a thousand tasks lock it; every tenth holder yields. timers: a task
 * each, that sleeps up to half a second; every second one is cancelled. cancel: tasks that sleep
 * forever, by the hundred; the time from the call that cancels them to the end of the last.
 */
#include <haft/io.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static int64_t operations, measured_apart;

static void *do_nothing(void *argument) {
    return argument;
}

static void *spawn(void *unused) {
    enum { BATCH = 100 };
    haft_io_task_t *tasks[BATCH];
    for (int64_t i = 0; i < operations; i += BATCH) {
        for (int j = 0; j < BATCH; j++)
            tasks[j] = haft_io_async(do_nothing, NULL);
        for (int j = 0; j < BATCH; j++)
            haft_io_join(tasks[j], NULL);
    }
    return unused;
}

static void *yield_half(void *unused) {
    for (int64_t i = 0; i < operations; i += 2)
        haft_io_yield();
    return unused;
}
static void *yield(void *unused) {
    haft_io_task_t *other = haft_io_async(yield_half, NULL);
    yield_half(NULL);
    haft_io_join(other, NULL);
    return unused;
}

static haft_io_channel_t *there, *back;
static void *answer(void *unused) {
    for (int ball; haft_io_channel_receive(there, &ball) == 0;)
        haft_io_channel_send(back, &ball);
    return unused;
}
static void *channel(void *unused) {
    there = haft_io_channel_new(sizeof(int), 1);
    back = haft_io_channel_new(sizeof(int), 1);
    haft_io_task_t *other = haft_io_async(answer, NULL);
    int ball = 1;
    for (int64_t i = 0; i < operations; i++) {
        haft_io_channel_send(there, &ball);
        haft_io_channel_receive(back, &ball);
    }
    haft_io_channel_close(there);
    haft_io_join(other, NULL);
    return unused;
}

/* The other task is taken by another thread while this one holds its own. */
static int answers;
static void *answer_elsewhere(void *unused) {
    __atomic_store_n(&answers, true, __ATOMIC_RELEASE);
    return answer(unused);
}
static void *apart(void *unused) {
    there = haft_io_channel_new(sizeof(int), 1);
    back = haft_io_channel_new(sizeof(int), 1);
    haft_io_spawn(answer_elsewhere, NULL);
    while (!__atomic_load_n(&answers, __ATOMIC_ACQUIRE))
        sched_yield();
    int64_t begin = haft_io_now();
    int ball = 1;
    for (int64_t i = 0; i < operations; i++) {
        haft_io_channel_send(there, &ball);
        haft_io_channel_receive(back, &ball);
    }
    measured_apart = haft_io_now() - begin;
    haft_io_channel_close(there);
    return unused;
}

typedef struct {
    int64_t first, size;
} range_t;
static void *sum(void *argument) {
    const range_t *range = argument;
    if (range->size == 1)
        return (void *)(intptr_t)range->first;
    range_t parts[10];
    haft_io_task_t *tasks[10];
    for (int i = 0; i < 10; i++) {
        parts[i] = (range_t){range->first + i * (range->size / 10), range->size / 10};
        tasks[i] = haft_io_async(sum, &parts[i]);
    }
    int64_t total = 0;
    for (int i = 0; i < 10; i++) {
        void *part;
        if (haft_io_join(tasks[i], &part) != 0)
            abort();
        total += (intptr_t)part;
    }
    return (void *)(intptr_t)total;
}
static void *skynet(void *unused) {
    if ((intptr_t)sum(&(range_t){0, operations}) != operations * (operations - 1) / 2)
        abort();
    return unused;
}

enum { CONTESTANTS = 1000 };
static haft_io_mutex_t mutex;
static void *contend(void *unused) {
    for (int64_t i = 0; i < operations / CONTESTANTS; i++) {
        haft_io_mutex_lock(&mutex);
        if (i % 10 == 0)
            haft_io_yield();
        haft_io_mutex_unlock(&mutex);
    }
    return unused;
}
static void *contest(void *unused) {
    static haft_io_call_t calls[CONTESTANTS];
    for (int i = 0; i < CONTESTANTS; i++)
        calls[i].function = contend;
    haft_io_all(calls, CONTESTANTS);
    return unused;
}

static int64_t begin;
static void *sleep_a_while(void *number) {
    haft_io_sleep_until(begin + (intptr_t)number % 500 * HAFT_IO_MILLISECOND);
    return NULL;
}
static void *start_sleepers(void *first) {
    for (intptr_t i = (intptr_t)first; i < operations; i += 2)
        haft_io_spawn(sleep_a_while, (void *)(i + 1));
    return NULL;
}
static void *start_and_cancel(void *unused) {
    start_sleepers((void *)1);
    haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return unused;
}
static void *timers(void *unused) {
    begin = haft_io_now();
    start_sleepers(NULL);
    haft_io_scope(start_and_cancel, NULL, NULL);
    return unused;
}

enum { CREATURES = 10 };
typedef struct {
    int colour;
    haft_io_channel_t *partner;
} creature_t;
static haft_io_channel_t *asking;
static void *live(void *argument) {
    creature_t *self = argument;
    int other;
    while (haft_io_channel_send(asking, &self) == 0 &&
           haft_io_channel_receive(self->partner, &other) == 0)
        self->colour = self->colour == other ? other : 3 - self->colour - other;
    return NULL;
}
static void *chameneos(void *unused) {
    static creature_t creatures[CREATURES];
    asking = haft_io_channel_new(sizeof(creature_t *), CREATURES);
    for (int i = 0; i < CREATURES; i++) {
        creatures[i] = (creature_t){i % 3, haft_io_channel_new(sizeof(int), 1)};
        haft_io_spawn(live, &creatures[i]);
    }
    for (int64_t i = 0; i < operations; i++) {
        creature_t *one, *other;
        haft_io_channel_receive(asking, &one);
        haft_io_channel_receive(asking, &other);
        int colour = one->colour;
        haft_io_channel_send(one->partner, &other->colour);
        haft_io_channel_send(other->partner, &colour);
    }
    haft_io_channel_close(asking);
    for (int i = 0; i < CREATURES; i++)
        haft_io_channel_close(creatures[i].partner);
    return unused;
}

static void *sleep_for_ever(void *unused) {
    haft_io_sleep_until(HAFT_IO_FOREVER - 1);
    return unused;
}
static void *cancel_hundred(void *since) {
    for (int i = 0; i < 100; i++)
        haft_io_spawn(sleep_for_ever, NULL);
    for (int i = 0; i < 3; i++)
        haft_io_yield();
    *(int64_t *)since = haft_io_now();
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void *cancel(void *unused) {
    for (int64_t i = 0; i < operations; i += 100) {
        int64_t since;
        haft_io_scope(cancel_hundred, &since, NULL);
        measured_apart += haft_io_now() - since;
    }
    return unused;
}

static void *nothing(void *unused) {
    struct rusage before, after;
    haft_io_sleep(100 * HAFT_IO_MILLISECOND);
    getrusage(RUSAGE_SELF, &before);
    haft_io_sleep(operations * HAFT_IO_MILLISECOND);
    getrusage(RUSAGE_SELF, &after);
    measured_apart = (after.ru_nvcsw - before.ru_nvcsw) * operations;
    return unused;
}

static size_t buffer_size = 16384;
static void *echo(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = (int)(intptr_t)argument;
    char buffer[buffer_size];
    for (ssize_t got; (got = haft_io_receive(connection, buffer, buffer_size, 0)) > 0;)
        if (haft_io_write_all(connection, buffer, (size_t)got) < 0)
            break;
    return NULL;
}
static void *compute(void *unused) {
    for (;;) {
        for (int64_t end = haft_io_now() + HAFT_IO_MILLISECOND; haft_io_now() < end;)
            continue;
        haft_io_yield();
    }
    return unused;
}
static void *serve(void *unused) {
    const char *computing = getenv("COMPUTING");
    for (int i = computing != NULL ? atoi(computing) : 0; i > 0; i--)
        haft_io_spawn(compute, NULL);
    if (getenv("BUFFER") != NULL)
        buffer_size = strtoul(getenv("BUFFER"), NULL, 10);
    for (int connection; (connection = haft_io_accept((int)operations)) >= 0;) {
        setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        haft_io_spawn(echo, (void *)(intptr_t)connection);
    }
    return unused;
}

static int64_t started;
static void *(*work)(void *);
static void *measured(void *unused) {
    started = haft_io_now();
    return work(unused);
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void *(*work)(void *);
    } works[] = {{"spawn", spawn},   {"yield", yield},    {"channel", channel},
                 {"apart", apart},   {"skynet", skynet},  {"mutex", contest},
                 {"timers", timers}, {"echo", serve},     {"chameneos", chameneos},
                 {"cancel", cancel}, {"nothing", nothing}};
    bool moves = count == 5 && strcmp(arguments[4], "moves") == 0;
    operations = count == 4 || moves ? atoll(arguments[3]) : 0;
    for (size_t i = 0; i < sizeof works / sizeof works[0] && operations > 0; i++)
        if (strcmp(works[i].name, arguments[1]) == 0)
            work = works[i].work;
    if (work == NULL || operations <= 0)
        return 2;
    haft_io_run_options_t options = {.threads = atoi(arguments[2]),
                                     .stack_size = 64 * 1024,
                                     .moves = moves,
                                     .dense = work == timers || getenv("DENSE") != NULL};
    if (haft_io_run_with(&options, measured, NULL) != 0)
        return 1;
    int64_t took = measured_apart != 0 ? measured_apart : haft_io_now() - started;
    printf("%.2f\n", (double)took / (double)operations);
    return 0;
}
