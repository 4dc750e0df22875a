/* A user's program, which names nothing of libhaft-posix: one task sleeps until another has woken
   it through a pipe. Prints 42, or 0 where a call has blocked the thread. */
#include <haft/io.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

static int ends[2];

static void *write_answer(void *unused) {
    char answer = 42;
    if (write(ends[1], &answer, 1) != 1)
        return NULL;
    return unused;
}

static void *ask(void *unused) {
    char answer = 0;
    struct pollfd entry;
    if (pipe(ends) != 0)
        return NULL;
    haft_io_spawn(write_answer, NULL);
    entry.fd = ends[0];
    entry.events = POLLIN;
    if (poll(&entry, 1, 2000) == 1 && read(ends[0], &answer, 1) != 1)
        return NULL;
    printf("%d\n", answer);
    return unused;
}

int main(void) {
    return haft_io_run(ask, NULL);
}
/* SPDX-License-Identifier: MIT */
