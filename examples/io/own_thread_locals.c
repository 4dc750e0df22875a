/* SPDX-License-Identifier: MIT */
/*
 * Own thread-locals: a library that was written for threads keeps its connection and its last error
 * in thread-local variables. On tasks that share a thread these would be one connection for all.
 * With `own_thread_locals` each task has its own, and the library's key closes it when the task has
 * ended.
 */
#include <errno.h>
#include <haft/io.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- The library ---- */

static __thread struct {
    int questions;
    char last[64];
} connection;
static pthread_key_t closes_at_end;

static void close_connection(void *unused) {
    (void)unused;
    printf("closed after %d questions, the last of which was %s\n", connection.questions,
           connection.last);
}

static void ask(const char *question) {
    if (connection.questions++ == 0)
        pthread_setspecific(closes_at_end, &connection);
    snprintf(connection.last, sizeof connection.last, "%s", question);
    errno = connection.questions;
    haft_io_sleep(HAFT_IO_MILLISECOND); /* the other tasks ask meanwhile */
}

/* ---- The program ---- */

static void *client(void *argument) {
    const char *name = argument;
    char question[64];
    for (int i = 1; i <= 3; i++) {
        snprintf(question, sizeof question, "%s %d", name, i);
        ask(question);
        if (errno != i)
            abort();
    }
    return NULL;
}

static void *clients(void *unused) {
    haft_io_spawn(client, "red");
    haft_io_spawn(client, "green");
    haft_io_spawn(client, "blue");
    return unused;
}

int main(void) {
    if (pthread_key_create(&closes_at_end, close_connection) != 0)
        return 1;
    haft_io_run_options_t options = {.threads = -1, .own_thread_locals = true};
    int code = haft_io_run_with(&options, clients, NULL);
    if (code != 0)
        fprintf(stderr, "%s\n", haft_io_error_text(code));
    return code == -ENOTSUP ? 77 : code != 0;
}
