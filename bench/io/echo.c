/* SPDX-License-Identifier: MIT */
/*
 * TCP echo: the server's processor time a message. The server is a process of its own on the second
 * processor: an epoll loop written by hand, or tasks on either back end; the load comes from the first.
 *
 *     echo loop|epoll|io_uring CONNECTIONS BYTES SECONDS
 *     echo PATH CONNECTIONS BYTES SECONDS     the server is a program with the arguments of work.c
 */
#define _GNU_SOURCE
#include <haft/io.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGEST = 16384, EVENTS = 128 };

static int listener;
static size_t buffer_size; /* of a server's task: a message, and at least 1 KiB */

static void pin(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void no_delay(int connection) {
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

/* ---- Tasks ---- */

static void *echo(void *argument) {
    int connection = (int)(intptr_t)argument;
    char buffer[buffer_size];
    for (ssize_t got; (got = haft_io_receive(connection, buffer, buffer_size, 0)) > 0;)
        if (haft_io_write_all(connection, buffer, (size_t)got) < 0)
            break;
    haft_io_close(connection);
    return NULL;
}

static void *serve(void *unused) {
    for (int connection; (connection = haft_io_accept(listener)) >= 0;) {
        no_delay(connection);
        haft_io_spawn(echo, (void *)(intptr_t)connection);
    }
    return unused;
}

/* ---- By hand: edges, reading tried first ---- */

static void watch(int epoll, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = descriptor};
    epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

static void accept_all(int epoll) {
    for (int connection; (connection = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        no_delay(connection);
        watch(epoll, connection);
    }
}

static void echo_all(int connection) {
    static char buffer[LARGEST];
    for (;;) {
        ssize_t got = recv(connection, buffer, sizeof buffer, 0);
        if (got == 0)
            close(connection);
        if (got <= 0)
            return;
        for (ssize_t sent = 0, more; sent<got; sent += more> 0 ? more : 0)
            more = send(connection, buffer + sent, (size_t)(got - sent), MSG_NOSIGNAL);
    }
}

static void loop(void) {
    int epoll = epoll_create1(0);
    struct epoll_event events[EVENTS];
    watch(epoll, listener);
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == listener)
                accept_all(epoll);
            else
                echo_all(events[i].data.fd);
        }
    }
}

/* ---- The load ---- */

static uint64_t exchange(int connections, size_t size, double seconds) {
    static char buffer[LARGEST];
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)haft_io_port(listener))};
    int epoll = epoll_create1(0);
    for (int i = 0; i < connections; i++) {
        int connection = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0)
            abort();
        no_delay(connection);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = connection};
        epoll_ctl(epoll, EPOLL_CTL_ADD, connection, &event);
        if (send(connection, buffer, size, 0) != (ssize_t)size)
            abort();
    }
    uint64_t bytes = 0;
    int64_t end = haft_io_now() + (int64_t)(seconds * 1e9);
    struct epoll_event events[EVENTS];
    while (haft_io_now() < end) {
        int count = epoll_wait(epoll, events, EVENTS, 100);
        for (int i = 0; i < count; i++) {
            ssize_t got = recv(events[i].data.fd, buffer, sizeof buffer, 0);
            if (got <= 0)
                abort();
            bytes += (uint64_t)got;
            if (send(events[i].data.fd, buffer, (size_t)got, 0) != got)
                abort();
        }
    }
    return bytes / size;
}

static void run_program(const char *path) {
    char descriptor[16];
    snprintf(descriptor, sizeof descriptor, "%d", listener);
    fcntl(listener, F_SETFD, 0);
    fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK);
    execl(path, path, "echo", "1", descriptor, (char *)NULL);
    _exit(127);
}

static double microseconds(struct timeval time) {
    return (double)time.tv_sec * 1e6 + (double)time.tv_usec;
}

int main(int count, char **arguments) {
    const char *kind = count > 1 ? arguments[1] : "loop";
    int connections = count > 2 ? atoi(arguments[2]) : 64;
    size_t size = count > 3 ? strtoul(arguments[3], NULL, 10) : 64;
    double seconds = count > 4 ? atof(arguments[4]) : 1;
    buffer_size = size > 1024 ? size : 1024;
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    pid_t server = fork();
    if (server == 0) {
        pin(1);
        if (strcmp(kind, "loop") == 0)
            loop();
        if (strchr(kind, '/') != NULL)
            run_program(kind);
        _exit(-haft_io_run(serve, NULL, &(haft_io_options_t){.threads = 1, .backend = kind}));
    }
    pin(0);
    uint64_t messages = exchange(connections, size, seconds);
    kill(server, SIGKILL);
    struct rusage used;
    if (wait4(server, NULL, 0, &used) != server || messages == 0)
        return 1;
    double user = microseconds(used.ru_utime), all = user + microseconds(used.ru_stime);
    printf(
        "%-8s %5d connections %5zu bytes: %8.0f messages/s, %.2f us a message, %.2f in user mode\n",
        kind, connections, size, (double)messages / seconds, all / (double)messages,
        user / (double)messages);
    return 0;
}
