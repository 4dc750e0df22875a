/* SPDX-License-Identifier: MIT */
/* Looked at by top.sh: `watched THREADS [PLACE] [hold]` has three tasks that wait for a byte, a
   span that goes on, one that is over, and a task that goes on and on; it ends when its standard
   input does. With `hold` a task holds its thread until then. */
#include <haft/io.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READERS = 3 };
static int pipes[READERS][2];
static _Atomic int readers;

static void *read_byte(void *unused) {
    char byte;
    haft_io_read(pipes[readers++][0], &byte, 1);
    return unused;
}

static void *take_long(void *unused) {
    haft_io_trace_begin("GET");
    haft_io_trace_begin("GET /fast");
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_trace_end("GET /fast", 200);
    haft_io_sleep(HAFT_IO_FOREVER / 2);
    return unused;
}

static void *go_on(void *unused) {
    while (haft_io_sleep(HAFT_IO_MILLISECOND) == 0)
        haft_io_yield();
    return unused;
}

static void *hold(void *unused) {
    char byte;
    ssize_t size = read(STDIN_FILENO, &byte, 1); /* the system's, which blocks the thread */
    return size == 0 ? unused : NULL;
}

static void spawn(const char *name, void *(*function)(void *)) {
    if (haft_io_spawn_with(&(haft_io_task_options_t){.name = name}, function, NULL) != 0)
        abort();
}

static void *all(void *holds) {
    char byte;
    for (int i = 0; i < READERS; i++) {
        if (haft_io_pipe(pipes[i]) != 0)
            abort();
        spawn("a \"reader\"", read_byte);
    }
    spawn("a slow one", take_long);
    spawn("a busy one", go_on);
    if (holds != NULL)
        spawn("a holder", hold);
    haft_io_sleep(2 * HAFT_IO_MILLISECOND);
    if (holds == NULL)
        haft_io_read(STDIN_FILENO, &byte, 1);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}

static void *in_a_scope(void *holds) {
    haft_io_scope(all, holds, NULL);
    return NULL;
}

int main(int count, char **arguments) {
    haft_io_run_options_t options = {.threads = atoi(arguments[1]),
                                     .top =
                                         count > 2 && *arguments[2] != '\0' ? arguments[2] : NULL};
    int code = haft_io_run_with(&options, in_a_scope, count > 3 ? arguments[3] : NULL);
    if (code != 0)
        printf("%s\n", haft_io_error_text(code));
    return code != 0;
}
