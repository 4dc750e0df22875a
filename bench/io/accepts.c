/* SPDX-License-Identifier: MIT */
/*
 * Accepting TCP connections: the server's processor time for each. The server, a process of its own
 * on the second processor, accepts and closes; the load comes from the first, so many connections
 * at a time.
 *
 *     accepts tried|once|many|epoll|io_uring AT_ONCE SECONDS
 *
 * The first three are loops by hand on io_uring: accept4 is tried, and the listener polled when
 * there is none; the kernel is asked for one connection at a time; it is asked once, for all
 * (multishot). The others are tasks on either back end.
 */
#define _GNU_SOURCE
#include <haft/io.h>

#include "../server.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int listener;

/* Without the state of TIME_WAIT, of which there would be too many. */
static void end_connection(int connection) {
    struct linger at_once = {1, 0};
    setsockopt(connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(connection);
}

/* ---- The servers ---- */

static void *serve(void *unused) {
    for (int connection; (connection = haft_io_accept(listener)) >= 0;)
        end_connection(connection);
    return unused;
}

enum how { TRIED, ONCE, MANY };

#if __has_include(<liburing.h>)
#    include <liburing.h>

static void ask(struct io_uring *ring, enum how how) {
    struct io_uring_sqe *entry = io_uring_get_sqe(ring);
    if (how == TRIED)
        io_uring_prep_poll_add(entry, listener, POLLIN);
    else if (how == ONCE)
        io_uring_prep_accept(entry, listener, NULL, NULL, SOCK_CLOEXEC);
    else
        io_uring_prep_multishot_accept(entry, listener, NULL, NULL, SOCK_CLOEXEC);
}

static void accept_all(void) {
    for (int connection; (connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;)
        end_connection(connection);
}

static void ring_loop(enum how how) {
    struct io_uring ring;
    struct io_uring_params parameters = {.flags = IORING_SETUP_SINGLE_ISSUER |
                                                  IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
                                         .cq_entries = 8192};
    if (io_uring_queue_init_params(1024, &ring, &parameters) != 0)
        exit(1);
    ask(&ring, how);
    for (;;) {
        io_uring_submit_and_wait(&ring, 1);
        struct io_uring_cqe *done;
        unsigned head, count = 0;
        bool again = how != MANY;
        io_uring_for_each_cqe(&ring, head, done) {
            if (how == TRIED)
                accept_all();
            else if (done->res >= 0)
                end_connection(done->res);
            again |= (done->flags & IORING_CQE_F_MORE) == 0;
            count++;
        }
        io_uring_cq_advance(&ring, count);
        if (again)
            ask(&ring, how);
    }
}

#else
static void ring_loop(enum how how) {
    (void)how;
    exit(1);
}
#endif

/* ---- The load ---- */

static uint64_t connect_for(int at_once, double seconds) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)haft_io_port(listener))};
    int connections[at_once];
    uint64_t count = 0;
    int64_t end = haft_io_now() + (int64_t)(seconds * 1e9);
    while (haft_io_now() < end) {
        for (int i = 0; i < at_once; i++) {
            connections[i] = socket(AF_INET, SOCK_STREAM, 0);
            if (connect(connections[i], (struct sockaddr *)&address, sizeof address) != 0 &&
                errno != ECONNRESET) {
                perror("connect");
                exit(1);
            }
        }
        for (int i = 0; i < at_once; i++) {
            char byte;
            (void)!read(connections[i], &byte, 1);
            close(connections[i]);
        }
        count += (uint64_t)at_once;
    }
    return count;
}

static double microseconds(struct timeval time) {
    return (double)time.tv_sec * 1e6 + (double)time.tv_usec;
}

int main(int count, char **arguments) {
    static const char *const hows[] = {"tried", "once", "many"};
    const char *kind = count > 1 ? arguments[1] : "tried";
    int at_once = count > 2 ? atoi(arguments[2]) : 16;
    double seconds = count > 3 ? atof(arguments[3]) : 1;
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    pid_t server = fork();
    if (server == 0) {
        pin(1);
        for (int how = TRIED; how <= MANY; how++)
            if (strcmp(kind, hows[how]) == 0)
                ring_loop((enum how)how);
        _exit(-haft_io_run_with(&(haft_io_run_options_t){.threads = 1, .backend = kind}, serve,
                                NULL));
    }
    pin(0);
    uint64_t connections = connect_for(at_once, seconds);
    kill(server, SIGKILL);
    struct rusage used;
    if (wait4(server, NULL, 0, &used) != server || connections == 0)
        return 1;
    double user = microseconds(used.ru_utime), all = user + microseconds(used.ru_stime);
    printf("%-8s %4d at once: %7.0f connections/s, %.2f us each, %.2f in user mode\n", kind,
           at_once, (double)connections / seconds, all / (double)connections,
           user / (double)connections);
    return 0;
}
