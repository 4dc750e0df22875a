/* SPDX-License-Identifier: MIT */
/* Traced by run.sh: tasks wait for each other, for bytes and times, are cancelled, come too late,
   and have spans; the argument is the number of threads. With a second one it does not end. */
#include <haft/io.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static haft_io_channel_t *words;

static void *say(void *unused) {
    for (int i = 0; i < 10; i++)
        haft_io_channel_send(words, &i);
    haft_io_channel_close(words);
    return unused;
}

static void *hear(void *unused) {
    int word, sum = 0;
    haft_io_trace_begin("hear all");
    while (haft_io_channel_receive(words, &word) == 0)
        sum += word;
    haft_io_trace_end("hear all", sum);
    return unused;
}

static void *sleep_long(void *unused) {
    haft_io_task_set_name("a sleeper that is cancelled");
    haft_io_sleep(HAFT_IO_SECOND * 1000);
    return unused;
}

static void *be_late(void *unused) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + HAFT_IO_MILLISECOND);
    haft_io_sleep(HAFT_IO_SECOND * 1000);
    return unused;
}

static void *read_byte(void *pipe) {
    char byte;
    haft_io_read(*(int *)pipe, &byte, 1);
    return NULL;
}

static void *write_byte(void *pipe) {
    haft_io_yield();
    haft_io_write(*(int *)pipe, "x", 1);
    return NULL;
}

/* Holds its thread for longer than others do, until it waits here. */
static __attribute__((noinline)) int compute_long(int milliseconds) {
    struct timespec begin, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 <
           milliseconds);
    return haft_io_sleep(HAFT_IO_MILLISECOND) + 1;
}
static void *be_busy(void *unused) {
    return compute_long(20) != 0 ? unused : NULL;
}

static void spawn(const char *name, void *(*function)(void *), void *argument) {
    if (haft_io_spawn_with(&(haft_io_task_options_t){.name = name}, function, argument) != 0)
        abort();
}

static void *cancel_one(void *unused) {
    spawn("a sleeper", sleep_long, NULL);
    haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return unused;
}

static void *all(void *unused) {
    int ends[2];
    if (haft_io_pipe(ends) != 0)
        abort();
    words = haft_io_channel_new(sizeof(int), 1);
    spawn("a sender", say, NULL);
    spawn("a receiver", hear, NULL);
    spawn("a late one", be_late, NULL);
    spawn("a busy one", be_busy, NULL);
    spawn("a reader", read_byte, &ends[0]);
    spawn("a writer", write_byte, &ends[1]);
    haft_io_scope_with(&(haft_io_scope_options_t){.name = "a scope that is cancelled"}, cancel_one,
                       NULL, NULL);
    haft_io_sleep(3 * HAFT_IO_MILLISECOND);
    return unused;
}

static void *in_a_scope(void *is_endless) {
    haft_io_scope(all, NULL, NULL);
    haft_io_channel_free(words);
    while (is_endless != NULL)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    return NULL;
}

int main(int count, char **arguments) {
    haft_io_run_options_t options = {.threads = count > 1 ? atoi(arguments[1]) : 1};
    return haft_io_run_with(&options, in_a_scope, count > 2 ? arguments[2] : NULL) != 0;
}
