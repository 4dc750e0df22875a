/* SPDX-License-Identifier: MIT */
/*
 * Load on a web server: its processor time a request, and how long its clients wait. The server is
 * a process of its own on the second processor, or on all of them where THREADS is in the
 * environment, which answers each request with 1 KiB; the load comes from the first.
 *
 *     load MODE PORT[/PATH] CONNECTIONS SECONDS [SERVER ARGUMENT...]
 *
 * SERVER is a program that listens at PORT; without it, the server is a loop on epoll in here,
 * which does not parse. Every connection is kept, and has one request at a time. With a PATH that
 * is asked for, and answers may have any size. If PORT is 0, a free one is added to SERVER's
 * arguments. MODE:
 *     full      as many requests as the server answers. Prints requests a second, microseconds of
 *               the server's processor time a request, the median, the 99th and the 99.9th
 *               percentile of what a client waits, in microseconds, and the microseconds a request
 *               of the processes that the process BESIDE of the environment has started, such as a
 *               database's
 *     samples   the same load: prints the microseconds a request in user mode; taking samples slows
 *               the server
 *     a number  as many requests a second: prints how many were answered, and the three
 *               percentiles, from when a request was due, so that a server that is late does not
 *               hide what it has delayed; and the median of the 99th percentiles of each 25 ms,
 *               which a pause of the whole machine in one of them does not change
 *     idle      each connection has had one request: prints the server's memory a connection, in
 *               KiB
 *     show      as full, in words; then the server gets SIGTERM, and is to end with status 0
 */
#define _GNU_SOURCE
#include "../server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { EVENTS = 128, ROOM = 16384, BODY = 1024 };
static const double PART = 0.025; /* seconds */

static int port;
static pid_t server;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static struct sockaddr_in address_of_server(void) {
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons((uint16_t)port)};
}

/* ---- The server by hand ---- */

static void watch(int epoll, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = descriptor};
    epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

static void accept_all(int epoll, int listener) {
    for (int connection; (connection = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        no_delay(connection);
        watch(epoll, connection);
    }
}

/* Bytes that end with an empty line are taken for a request. */
static void answer(int connection, const char *bytes, size_t size) {
    char request[ROOM];
    ssize_t got;
    while ((got = recv(connection, request, sizeof request, 0)) > 0)
        if (got >= 4 && memcmp(request + got - 4, "\r\n\r\n", 4) == 0 &&
            send(connection, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
            break;
    if (got >= 0)
        close(connection);
}

static void loop(void) {
    char bytes[ROOM];
    int size =
        snprintf(bytes, sizeof bytes,
                 "HTTP/1.1 200 OK\r\nDate: Fri, 27 Nov 2026 00:00:00 GMT\r\nContent-Length: %d\r\n"
                 "Content-Type: text/plain\r\n\r\n%0*d",
                 BODY, BODY, 0);
    struct sockaddr_in address = address_of_server();
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), epoll = epoll_create1(0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, SOMAXCONN) != 0)
        give_up("listen");
    watch(epoll, listener);
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == listener)
                accept_all(epoll, listener);
            else
                answer(events[i].data.fd, bytes, (size_t)size);
        }
    }
}

/* ---- Connections ---- */

typedef struct {
    int socket;
    size_t got;    /* of an answer */
    int64_t since; /* when its request was due */
} connection_t;

static char request[ROOM];
static size_t request_size;
static bool any_size;      /* may a body have */
static size_t answer_size; /* of all answers of a server */

static void make_request(const char *path) {
    any_size = path != NULL;
    request_size = (size_t)snprintf(request, sizeof request,
                                    "GET %.1000s HTTP/1.1\r\nHost: localhost:8080\r\n"
                                    "User-Agent: bench/1.0\r\nAccept: */*\r\n\r\n",
                                    any_size ? path : "/bench");
}

static void ask(connection_t *connection, int64_t since) {
    connection->since = since;
    if (send(connection->socket, request, request_size, 0) != (ssize_t)request_size)
        give_up("send");
}

static void refuse_answer(const char *bytes) {
    fprintf(stderr, "no answer as expected: %.100s\n", bytes);
    exit(1);
}

/* Length of a whole answer in a text. */
static size_t size_of(const char *bytes) {
    const char *end = strstr(bytes, "\r\n\r\n"), *length = strcasestr(bytes, "\ncontent-length:");
    if (end == NULL || length == NULL || length > end || (!any_size && atoi(length + 16) != BODY))
        refuse_answer(bytes);
    return (size_t)(end + 4 - bytes) + strtoul(length + 16, NULL, 10);
}

/* Reads what has come: whether the answer is whole. Until the first is, its size is not known. */
static bool is_answered(connection_t *connection, int flags) {
    static char bytes[ROOM + 1];
    ssize_t got = recv(connection->socket, bytes, ROOM, flags);
    if (got < 0 && errno == EAGAIN)
        return false;
    if (got <= 0)
        give_up("receive");
    bytes[got] = '\0';
    if (connection->got == 0 && (got < 12 || memcmp(bytes, "HTTP/1.1 200", 12) != 0))
        refuse_answer(bytes);
    if (answer_size == 0)
        answer_size = size_of(bytes);
    connection->got += (size_t)got;
    if (connection->got < answer_size)
        return false;
    if (connection->got > answer_size)
        refuse_answer(bytes);
    connection->got = 0;
    return true;
}

/* The server may not be listening yet. */
static int connect_to_server(void) {
    struct sockaddr_in address = address_of_server();
    for (int attempt = 0; attempt < 1000 && waitpid(server, NULL, WNOHANG) == 0; attempt++) {
        int connection = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(connection, (struct sockaddr *)&address, sizeof address) == 0) {
            no_delay(connection);
            return connection;
        }
        close(connection);
        usleep(10000);
    }
    give_up("connect");
    return -1;
}

/* Connects, and exchanges one request on each. */
static connection_t *connect_all(int count) {
    connection_t *all = calloc((size_t)count, sizeof *all);
    for (int i = 0; i < count; i++) {
        all[i].socket = connect_to_server();
        ask(&all[i], 0);
        while (!is_answered(&all[i], 0))
            continue;
    }
    return all;
}

/* ---- Load ---- */

typedef struct {
    uint64_t count, room;
    float *waited; /* microseconds */
} waits_t;

static void note(waits_t *waits, double wait) {
    if (waits->count == waits->room) {
        waits->room = waits->room == 0 ? 65536 : waits->room * 2;
        waits->waited = realloc(waits->waited, waits->room * sizeof *waits->waited);
        if (waits->waited == NULL)
            give_up("memory");
    }
    waits->waited[waits->count++] = (float)wait;
}

static void note_answer(waits_t *waits, const connection_t *connection) {
    note(waits, (double)(now() - connection->since) / 1e3);
}

static int compare(const void *left, const void *right) {
    float one = *(const float *)left, other = *(const float *)right;
    return (one > other) - (one < other);
}

static void sort(const waits_t *waits) {
    qsort(waits->waited, waits->count, sizeof *waits->waited, compare);
}

static double percentile(const waits_t *sorted, double share) {
    return (double)sorted->waited[(size_t)(share * (double)(sorted->count - 1))];
}

/* The parts are sorted each, in place: each has `size` of the waits, in the order of answers. */
static double usual_percentile(const waits_t *waits, double share, uint64_t size) {
    waits_t parts = {0, 0, NULL};
    for (uint64_t at = 0; size > 0 && at + size <= waits->count; at += size) {
        waits_t part = {size, size, waits->waited + at};
        sort(&part);
        note(&parts, percentile(&part, share));
    }
    if (parts.count == 0)
        return 0;
    sort(&parts);
    return percentile(&parts, 0.5);
}

static int watch_all(connection_t *all, int count) {
    int epoll = epoll_create1(0);
    for (int i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, all[i].socket, &event);
    }
    return epoll;
}

static void ask_all_the_time(connection_t *all, int count, double seconds, waits_t *waits) {
    int epoll = watch_all(all, count);
    for (int i = 0; i < count; i++)
        ask(&all[i], now());
    for (int64_t end = now() + (int64_t)(seconds * 1e9); now() < end;) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(epoll, events, EVENTS, 100);
        for (int i = 0; i < ready; i++) {
            connection_t *connection = events[i].data.ptr;
            if (!is_answered(connection, MSG_DONTWAIT))
                continue;
            note_answer(waits, connection);
            ask(connection, now());
        }
    }
}

/* Requests become due at even distances. Where no connection is free, they wait for one. */
static void ask_at(double rate, connection_t *all, int count, double seconds, waits_t *waits) {
    int epoll = watch_all(all, count), first = 0, free_ones = count;
    connection_t **queue = calloc((size_t)count, sizeof *queue);
    for (int i = 0; i < count; i++)
        queue[i] = &all[i];
    int64_t begin = now(), end = begin + (int64_t)(seconds * 1e9), asked = 0;
    for (int64_t time; (time = now()) < end;) {
        int64_t due = begin + (int64_t)((double)asked * 1e9 / rate);
        for (; free_ones > 0 && due <= time; due = begin + (int64_t)((double)asked * 1e9 / rate)) {
            ask(queue[first], due);
            first = (first + 1) % count;
            free_ones--;
            asked++;
        }
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(epoll, events, EVENTS, 0);
        for (int i = 0; i < ready; i++) {
            connection_t *connection = events[i].data.ptr;
            if (!is_answered(connection, MSG_DONTWAIT))
                continue;
            note_answer(waits, connection);
            queue[(first + free_ones++) % count] = connection;
        }
    }
    free(queue);
}

/* ---- Modes ---- */

/* Microseconds of processor time, of those that live. */
static double used_beside(void) {
    const char *parent = getenv("BESIDE");
    char path[64];
    double used = 0;
    snprintf(path, sizeof path, "/proc/%s/task/%s/children", parent, parent);
    FILE *children = parent != NULL ? fopen(path, "r") : NULL;
    for (int child; children != NULL && fscanf(children, "%d", &child) == 1;)
        used += clock_of(child, ALL);
    if (children != NULL)
        fclose(children);
    return used;
}

static void print_memory(int connections) {
    connect_all(1);
    double before = kibibytes_of(server);
    connect_all(connections - 1);
    printf("%.2f\n", (kibibytes_of(server) - before) / (connections - 1));
}

static void print_load(const char *mode, struct perf_event_mmap_page *samples, int connections,
                       double seconds) {
    waits_t waits = {0, 0, NULL};
    connection_t *all = connect_all(connections);
    used_t before = used_by(server, samples);
    double rate = atof(mode), beside = used_beside();
    if (rate > 0)
        ask_at(rate, all, connections, seconds, &waits);
    else
        ask_all_the_time(all, connections, seconds, &waits);
    used_t used = used_between(before, used_by(server, samples));
    beside = used_beside() - beside;
    double count = (double)waits.count;
    if (waits.count == 0)
        give_up("no answers");
    if (strcmp(mode, "samples") == 0) {
        printf("%.4f\n", user_mode_of(used, samples != NULL) / count);
        return;
    }
    double usual = usual_percentile(&waits, 0.99, (uint64_t)(rate * PART));
    sort(&waits);
    double p50 = percentile(&waits, 0.5), p99 = percentile(&waits, 0.99),
           p999 = percentile(&waits, 0.999);
    if (strcmp(mode, "show") == 0)
        printf("%.0f requests a second, %.1f us of the server's processor each\n"
               "a client waits p50 %.0f us, p99 %.0f us, p99.9 %.0f us\n",
               count / seconds, used.all / count, p50, p99, p999);
    else if (rate > 0)
        printf("%.0f %.1f %.1f %.1f %.1f\n", count / seconds, p50, p99, p999, usual);
    else
        printf("%.0f %.4f %.1f %.1f %.1f %.4f\n", count / seconds, used.all / count, p50, p99, p999,
               beside / count);
}

static int end_gracefully(void) {
    int status;
    kill(server, SIGTERM);
    waitpid(server, &status, 0);
    bool is_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    printf(is_well ? "told to stop, it has ended\n" : "told to stop, it has failed\n");
    return !is_well;
}

static int free_port(void) {
    struct sockaddr_in address = address_of_server();
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        give_up("bind");
    close(listener);
    return ntohs(address.sin_port);
}

/* The command, with the port as its last argument. */
static char **with_port(int count, char **command) {
    char **longer = calloc((size_t)count + 2, sizeof *longer);
    memcpy(longer, command, (size_t)count * sizeof *longer);
    if (asprintf(&longer[count], "%d", port) < 0)
        give_up("memory");
    return longer;
}

static void start(char **command, const int wait[2]) {
    server = fork();
    if (server != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(wait[1]);
    if (read(wait[0], &(char){0}, 1) != 1)
        _exit(1);
    close(wait[0]);
    if (getenv("THREADS") == NULL)
        pin(1);
    if (command == NULL)
        loop();
    execv(command[0], command);
    _exit(127);
}

int main(int count, char **arguments) {
    if (count < 5) {
        fprintf(stderr, "usage: load MODE PORT[/PATH] CONNECTIONS SECONDS [SERVER ARGUMENT...]\n");
        return 2;
    }
    const char *mode = arguments[1];
    port = atoi(arguments[2]);
    make_request(strchr(arguments[2], '/'));
    int connections = atoi(arguments[3]), wait[2];
    allow_connections(connections);
    if (pipe2(wait, O_CLOEXEC) != 0)
        give_up("pipe");
    char **command = count > 5 ? arguments + 5 : NULL;
    if (port == 0 && command != NULL) {
        port = free_port();
        command = with_port(count - 5, command);
    }
    start(command, wait);
    pin(0);
    struct perf_event_mmap_page *samples = strcmp(mode, "samples") == 0 ? sample(server, 1) : NULL;
    if (write(wait[1], "", 1) != 1)
        give_up("the server's start");
    if (strcmp(mode, "idle") == 0)
        print_memory(connections);
    else
        print_load(mode, samples, connections, atof(arguments[4]));
    if (strcmp(mode, "show") == 0)
        return end_gracefully();
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return 0;
}
