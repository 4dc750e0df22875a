/* SPDX-License-Identifier: MIT */
/*
 * Latency beside noisy neighbours: how long 1,000 quiet connections wait for the answer of an echo
 * server of one thread, which is busy with something else as well.
 *
 *     neighbours PATH alone|flood|compute SECONDS
 *
 * The server is a program with the arguments of work.c, on the second processor; the load is on the
 * first. One quiet connection after the other sends 64 bytes and waits for them. `flood`: four more
 * connections always have 16 KiB on the way. `compute`: two tasks of the server (COMPUTING in its
 * environment) compute for a millisecond and yield, for ever. Prints the median and the 99th
 * percentile of the waits, in microseconds.
 */
#define _GNU_SOURCE
#include <haft/io.h>

#include "../server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { QUIET = 1000, FLOODS = 4, LARGE = 16384, SMALL = 64, MOST_SAMPLES = 100000 };

static int port;

static int connect_to_server(void) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)port)};
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0)
        give_up("connect");
    no_delay(connection);
    return connection;
}

/* In a process of its own, which leaves the processor to the quiet ones when they have something to
   do. */
static void flood(void) {
    static char bytes[LARGE];
    struct epoll_event events[FLOODS];
    int epoll = epoll_create1(0);
    /* The quiet ones go first, also where all of this was given a priority of real time. */
    int policy = sched_getscheduler(0);
    sched_setscheduler(0, policy,
                       &(struct sched_param){.sched_priority = sched_get_priority_min(policy)});
    setpriority(PRIO_PROCESS, 0, 19);
    for (int i = 0; i < FLOODS; i++) {
        int connection = connect_to_server();
        fcntl(connection, F_SETFL, O_NONBLOCK);
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.fd = connection};
        epoll_ctl(epoll, EPOLL_CTL_ADD, connection, &event);
    }
    for (;;) {
        int count = epoll_wait(epoll, events, FLOODS, -1);
        for (int i = 0; i < count; i++) {
            if ((events[i].events & EPOLLIN) != 0 && recv(events[i].data.fd, bytes, LARGE, 0) == 0)
                exit(0);
            if ((events[i].events & EPOLLOUT) != 0)
                send(events[i].data.fd, bytes, LARGE, MSG_NOSIGNAL);
        }
    }
}

static pid_t child(void (*run)(void)) {
    pid_t process = fork();
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run();
        _exit(127);
    }
    return process;
}

static const char *path;
static int listener;
static void serve(void) {
    char descriptor[16];
    snprintf(descriptor, sizeof descriptor, "%d", listener);
    fcntl(listener, F_SETFD, 0);
    fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK);
    pin(1);
    execl(path, path, "echo", "1", descriptor, (char *)NULL);
}

static int64_t exchange(int connection) {
    static char bytes[SMALL];
    int64_t begin = haft_io_now();
    if (send(connection, bytes, SMALL, MSG_NOSIGNAL) != SMALL ||
        recv(connection, bytes, SMALL, MSG_WAITALL) != SMALL)
        give_up("exchange");
    return haft_io_now() - begin;
}

static int compare(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

int main(int count, char **arguments) {
    static int64_t waits[MOST_SAMPLES];
    static int connections[QUIET];
    if (count != 4)
        return 2;
    path = arguments[1];
    bool floods = strcmp(arguments[2], "flood") == 0;
    if (strcmp(arguments[2], "compute") == 0)
        setenv("COMPUTING", "2", 1);
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    port = haft_io_port(listener);
    pid_t server = child(serve);
    close(listener); /* so that nobody can connect if the server ends */
    pin(0);
    for (int i = 0; i < QUIET; i++) {
        connections[i] = connect_to_server();
        exchange(connections[i]);
    }
    pid_t flooder = floods ? child(flood) : 0;
    usleep(200000);
    int samples = 0;
    for (int64_t end = haft_io_now() + (int64_t)(atof(arguments[3]) * 1e9);
         samples < MOST_SAMPLES && haft_io_now() < end; samples++) {
        waits[samples] = exchange(connections[samples % QUIET]);
        usleep(500 + (unsigned)rand() % 1000);
    }
    if (floods)
        kill(flooder, SIGKILL);
    kill(server, SIGKILL);
    qsort(waits, (size_t)samples, sizeof waits[0], compare);
    printf("%.1f %.1f\n", (double)waits[samples / 2] / 1e3,
           (double)waits[(size_t)samples * 99 / 100] / 1e3);
    return 0;
}
