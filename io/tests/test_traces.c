/* SPDX-License-Identifier: MIT */
/* The interface of traces: what is refused, which files there are, and that programs go on. */
#include "check_io.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char folder[] = "/tmp/haft-traces-XXXXXX";
static char path[64];

static const char *file(const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static size_t size_of(const char *name) {
    struct stat status;
    return stat(file(name), &status) == 0 ? (size_t)status.st_size : 0;
}

/* The events of all threads in the file: HEADER and ring_t of io/src/trace.c. */
static uint64_t events_in(const char *name) {
    size_t size = size_of(name);
    int descriptor = open(file(name), O_RDONLY);
    char *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    uint64_t rings_at = *(uint64_t *)(void *)(bytes + 32), ring = *(uint64_t *)(void *)(bytes + 40);
    uint64_t count = 0;
    for (uint64_t at = rings_at; at < size; at += ring)
        count += *(uint64_t *)(void *)(bytes + at);
    munmap(bytes, size);
    close(descriptor);
    return count;
}

static void *nothing(void *argument) {
    return argument;
}
static void *spawn_many(void *count) {
    for (int i = 0; i < *(int *)count; i++)
        haft_io_join(haft_io_async(nothing, NULL), NULL);
    return NULL;
}
static void run_many(int count) {
    CHECK_EQUAL(haft_io_run(spawn_many, &count), 0);
}

static void what_cannot_be_kept_is_refused(void) {
    const haft_io_trace_options_t few = {.events = 32}, odd = {.events = 100};
    CHECK_EQUAL(haft_io_trace_start(NULL), -EINVAL);
    CHECK_EQUAL(haft_io_trace_start_with(&few, file("none")), -EINVAL);
    CHECK_EQUAL(haft_io_trace_start_with(&odd, file("none")), -EINVAL);
    CHECK_EQUAL(haft_io_trace_start("/nowhere/at/all"), -ENOENT);
    CHECK_EQUAL(size_of("none"), 0);
    haft_io_trace_stop(); /* does nothing */
    CHECK_EQUAL(haft_io_trace_start(file("one")), 0);
    CHECK_EQUAL(haft_io_trace_start(file("two")), -EALREADY);
    haft_io_trace_stop();
    CHECK_EQUAL(haft_io_trace_start(file("one")), -EEXIST);
}

static void nothing_is_kept_before_and_after(void) {
    haft_io_trace_begin("a span");
    run_many(10);
    CHECK_EQUAL(haft_io_trace_start(file("some")), 0);
    run_many(10);
    haft_io_trace_stop();
    uint64_t kept = events_in("some");
    CHECK(kept >= 10 * 3);
    run_many(10);
    CHECK_EQUAL(events_in("some"), kept);
    CHECK_EQUAL(haft_io_trace_start(file("more")), 0);
    haft_io_trace_end("a span", -1);
    haft_io_trace_stop();
    CHECK_EQUAL(events_in("some"), kept);
    CHECK_EQUAL(events_in("more"), 1);
}

/* A ring of the least size: `count` goes on, and nothing else is written over. */
static void the_newest_replace_the_oldest(void) {
    const haft_io_trace_options_t least = {.events = 64};
    CHECK_EQUAL(haft_io_trace_start_with(&least, file("least")), 0);
    run_many(1000);
    haft_io_trace_stop();
    CHECK(events_in("least") >= 3000);
    CHECK(size_of("least") < (size_t)1 << 20);
}

static void *in_a_run(void *unused) {
    CHECK_EQUAL(haft_io_trace_start(file("within")), 0);
    haft_io_join(haft_io_async(nothing, NULL), NULL);
    haft_io_sleep(1000);
    haft_io_join(haft_io_async(nothing, NULL), NULL);
    haft_io_trace_stop();
    return unused;
}
static void a_task_may_begin_and_end_it(void) {
    CHECK_EQUAL(haft_io_run(in_a_run, NULL), 0);
    CHECK(events_in("within") >= 6);
    run_many(1);
}

static void a_child_of_fork_keeps_nothing(void) {
    if (!check_follows_children())
        return;
    CHECK_EQUAL(haft_io_trace_start(file("forked")), 0);
    run_many(1);
    uint64_t kept = events_in("forked");
    pid_t child = fork();
    if (child == 0) {
        run_many(10);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK_EQUAL(events_in("forked"), kept);
    haft_io_trace_stop();
}

static void *span_on_thread(void *unused) {
    haft_io_trace_begin("on a thread");
    haft_io_trace_end("on a thread", 0);
    return unused;
}
/* 64 threads have a part of the file; what more do is not kept, and does no harm. */
static void more_threads_than_parts(void) {
    CHECK_EQUAL(haft_io_trace_start_with(&(haft_io_trace_options_t){.events = 64}, file("threads")),
                0);
    for (int i = 0; i < 70; i++) {
        pthread_t thread;
        CHECK_EQUAL(pthread_create(&thread, NULL, span_on_thread, NULL), 0);
        pthread_join(thread, NULL);
    }
    haft_io_trace_stop();
    CHECK_EQUAL(events_in("threads"), 64 * 2);
}

/* An address that was another text's before, and more texts than there is room for. */
static void texts_may_be_any(void) {
    char *text = malloc(100);
    CHECK_EQUAL(haft_io_trace_start(file("texts")), 0);
    for (int i = 0; i < 20000; i++) {
        snprintf(text, 100, "a text of some length, which is number %d", i);
        haft_io_trace_end(text, i);
    }
    haft_io_trace_end(NULL, 0);
    haft_io_trace_stop();
    CHECK_EQUAL(events_in("texts"), 20001);
    free(text);
}

int main(void) {
    CHECK(mkdtemp(folder) != NULL);
    RUN(what_cannot_be_kept_is_refused);
    RUN(nothing_is_kept_before_and_after);
    RUN(the_newest_replace_the_oldest);
    RUN(a_task_may_begin_and_end_it);
    RUN(a_child_of_fork_keeps_nothing);
    RUN(more_threads_than_parts);
    RUN(texts_may_be_any);
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_EQUAL(system(command), 0);
    return check_end();
}
