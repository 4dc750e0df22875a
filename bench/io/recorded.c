/* SPDX-License-Identifier: MIT */
/*
 * An operation of a run that is recorded: two tasks of one thread send each other 64 bytes over a
 * pair of sockets, and one draws random numbers, which asks nothing of the kernel that costs much.
 *
 *     recorded FILE       records into FILE, and prints the bytes of the record, too
 *     recorded            the same without
 *
 * Prints nanoseconds of the processor's time an operation with its switch of tasks, and
 * nanoseconds a reading of the time.
 */
#define _GNU_SOURCE
#include <haft/io.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { ROUNDS = 100000, TIMES = 1000000, SIZE = 64 };
static int ends[2];

static double used(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return 1e9 * (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e3 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void *answer(void *unused) {
    char bytes[SIZE];
    for (int i = 0; i < ROUNDS; i++) {
        haft_io_read(ends[1], bytes, SIZE);
        haft_io_write(ends[1], bytes, SIZE);
    }
    return unused;
}

static void *exchange(void *unused) {
    int64_t now = 0;
    char bytes[SIZE] = {0};
    haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends);
    haft_io_task_t *task = haft_io_async(answer, NULL);
    double begin = used();
    for (int i = 0; i < ROUNDS; i++) {
        haft_io_write(ends[0], bytes, SIZE);
        haft_io_read(ends[0], bytes, SIZE);
    }
    double between = used();
    for (int i = 0; i < TIMES; i++)
        now += haft_io_now() & 1;
    double end = used();
    haft_io_join(task, NULL);
    printf("%.1f %.1f", (between - begin) / (4.0 * ROUNDS), (end - between) / TIMES);
    return now < 0 ? NULL : unused;
}

int main(int count, char **arguments) {
    struct stat status = {0};
    haft_io_run_options_t options = {.threads = 1, .record = count > 1 ? arguments[1] : NULL};
    if (haft_io_run_with(&options, exchange, NULL) != 0)
        return 1;
    if (count > 1 && stat(arguments[1], &status) == 0)
        printf(" %.1f", (double)status.st_size / (4.0 * ROUNDS + TIMES));
    printf("\n");
    return 0;
}
