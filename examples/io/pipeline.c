/* SPDX-License-Identifier: MIT */
/*
 * Pipeline: three programs, each with its own process, joined by pipes as in `printf | sort | uniq
 * -c`. A task feeds the first one, another reads the output of the last one, and one task waits for
 * each process. If a process cannot be started, or fails, the other tasks are cancelled, and their
 * descriptors are closed.
 */
#include <errno.h>
#include <haft/io.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { PROGRAMS = 3 };
static const char *const programs[PROGRAMS][3] = {{"tr", "a-z", "A-Z"}, {"sort"}, {"uniq", "-c"}};
static pid_t processes[PROGRAMS];

static void *wait_for(void *argument) {
    const pid_t *process = argument;
    int status;
    int code = haft_io_process_wait(*process, &status);
    if (code < 0 || status != 0)
        haft_io_fail(code < 0 ? code : -EIO, programs[process - processes][0]);
    return NULL;
}

static void *feed(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int to = (int)(intptr_t)argument;
    static const char *const words[] = {"pear\n", "apple\n", "pear\n",
                                        "plum\n", "apple\n", "pear\n"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        haft_io_write_all(to, words[i], strlen(words[i]));
    return NULL;
}

static void *show(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int from = (int)(intptr_t)argument;
    char buffer[256];
    for (ssize_t got; (got = haft_io_read(from, buffer, sizeof buffer)) > 0;)
        fwrite(buffer, 1, (size_t)got, stdout);
    return NULL;
}

/* Starts the program between two descriptors, of which it takes ownership. */
static void start(int index, int in, int out) {
    HAFT_IO_SCOPED_DESCRIPTOR int reads = in, writes = out;
    const char *arguments[4] = {programs[index][0], programs[index][1], programs[index][2], NULL};
    processes[index] = haft_io_process_start(arguments, (int[]){reads, writes, -1});
    if (processes[index] < 0)
        haft_io_fail(processes[index], arguments[0]);
    haft_io_spawn(wait_for, &processes[index]);
}

static void *run_pipeline(void *unused) {
    int ends[2];
    haft_io_pipe(ends);
    haft_io_spawn(feed, (void *)(intptr_t)ends[1]);
    for (int i = 0; i < PROGRAMS; i++) {
        int in = ends[0];
        haft_io_pipe(ends);
        start(i, in, ends[1]);
    }
    haft_io_spawn(show, (void *)(intptr_t)ends[0]);
    return unused;
}

static void *report(void *unused) {
    haft_io_failures_t failures;
    haft_io_scope_options_t options = {.name = "pipeline", .failures = &failures};
    int code = haft_io_scope_with(&options, run_pipeline, NULL, NULL);
    if (code != 0)
        printf("%s: %s\n", failures.failures[0].message, haft_io_error_text(code));
    return unused;
}

int main(void) {
    return haft_io_run(report, NULL);
}
