/* SPDX-License-Identifier: MIT */
/*
 * An operation of a run that is recorded: two tasks of one thread send each other a byte over a
 * pair of sockets, and one draws random numbers, which asks nothing of the kernel that costs much.
 *
 *     recorded FILE
 *
 * By turns without a record and into FILE, in runs of one process, so that a machine with other
 * work delays both alike. Prints, as medians, nanoseconds of the processor's time an operation with
 * its switch of tasks: as it is, recorded, and the median of what a run took more than the one
 * before it; the same for a reading of the time; and the bytes of the record for each.
 */
#define _GNU_SOURCE
#include <haft/io.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { ROUNDS = 10000, TIMES = 100000, SIZE = 1, TURNS = 30 };
static int ends[2];
static double operation, reading; /* of the run that has ended */

static double used(void) {
    struct timespec time; /* getrusage counts in ticks of some milliseconds */
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
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
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    operation = (between - begin) / (4.0 * ROUNDS);
    reading = (end - between) / TIMES;
    return now < 0 ? NULL : unused;
}

static int compare(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}
static double median(double *values) {
    qsort(values, TURNS, sizeof *values, compare);
    return values[TURNS / 2];
}

/* Figures of an operation, and of a reading: as it is, recorded, more. */
static double figures[2][3][TURNS];
static void note(int turn, int recorded) {
    figures[0][recorded][turn] = operation;
    figures[1][recorded][turn] = reading;
    for (int i = 0; i < 2; i++)
        figures[i][2][turn] = figures[i][1][turn] - figures[i][0][turn];
}

int main(int count, char **arguments) {
    struct stat status;
    if (count != 2)
        return 1;
    for (int turn = 0; turn < 2 * TURNS; turn++) {
        int recorded = turn % 2;
        haft_io_run_options_t options = {.threads = 1, .record = recorded ? arguments[1] : NULL};
        if (haft_io_run_with(&options, exchange, NULL) != 0)
            return 1;
        note(turn / 2, recorded);
    }
    for (int i = 0; i < 6; i++)
        printf("%.1f ", median(figures[i / 3][i % 3]));
    if (stat(arguments[1], &status) != 0)
        return 1;
    printf("%.1f\n", (double)status.st_size / (4.0 * ROUNDS + TIMES));
    return 0;
}
