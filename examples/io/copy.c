/* SPDX-License-Identifier: MIT */
/*
 * Copy: one function, blocking and asynchronous. `copy` reads and writes in direct style; without a
 * scheduler it blocks, and under a scheduler two copies take turns on one thread. ("Retrofitting
 * Effect Handlers onto OCaml", §3.)
 */
#include <haft/io.h>
#include <stdio.h>
#include <unistd.h>

typedef struct {
    const char *name;
    int from, to;
} copy_t;

static void *copy(void *argument) {
    const copy_t *files = argument;
    char buffer[8];
    size_t total = 0;
    for (ssize_t got; (got = haft_io_read(files->from, buffer, sizeof buffer)) > 0;) {
        haft_io_write_all(files->to, buffer, (size_t)got);
        total += (size_t)got;
    }
    printf("%s: %zu bytes\n", files->name, total);
    haft_io_close(files->from);
    haft_io_close(files->to);
    return NULL;
}

/* Types slowly. */
static void *type(void *descriptor) {
    for (int i = 0; i < 3; i++) {
        haft_io_write_all(*(int *)descriptor, "some text ", 10);
        haft_io_sleep(HAFT_IO_MILLISECOND);
    }
    haft_io_close(*(int *)descriptor);
    return NULL;
}

static void *two_copies(void *unused) {
    int slow[2], fast[2];
    haft_io_pipe(slow);
    haft_io_pipe(fast);
    copy_t first = {"copied beside another, slow", slow[0], dup(STDERR_FILENO)};
    copy_t second = {"copied beside another, fast", fast[0], dup(STDERR_FILENO)};
    haft_io_write_all(fast[1], "all at once", 11);
    haft_io_close(fast[1]);
    haft_io_call_t calls[] = {{copy, &first, NULL}, {copy, &second, NULL}, {type, &slow[1], NULL}};
    haft_io_all(calls, 3);
    return unused;
}

int main(void) {
    int alone[2];
    haft_io_pipe(alone);
    type(&alone[1]);
    copy(&(copy_t){"copied alone, by blocking", alone[0], dup(STDERR_FILENO)});
    return haft_io_run(two_copies, NULL);
}
