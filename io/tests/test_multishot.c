/* SPDX-License-Identifier: MIT */
/* Accepting, where the kernel may accept more than it was asked for by the task (io_uring): nobody
   is lost, nothing is left open. The other back ends have the same behaviour anyhow. */
#include "check_io.h"

#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

enum { CLIENTS = 40 };

static const haft_io_run_options_t *options;
static int listener;
static int clients[CLIENTS];

static void listen_somewhere(void) {
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    CHECK(listener >= 0);
}

/* The system has connected it when this returns, whether or not anybody accepts. */
static int connect_plainly(void) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)haft_io_port(listener))};
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(client, (struct sockaddr *)&address, sizeof address) == 0);
    return client;
}

static void connect_all(void) {
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = connect_plainly();
        char number = (char)i;
        CHECK_EQUAL(write(clients[i], &number, 1), 1);
    }
}

static void close_all(void) {
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
}

static int64_t served;
static void serve_one(void) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_accept(listener);
    CHECK(connection >= 0);
    char number;
    struct pollfd entry = {connection, POLLIN, 0};
    CHECK_EQUAL(poll(&entry, 1, -1), 1); /* by the system, so that no cancel comes between */
    CHECK_EQUAL(read(connection, &number, 1), 1);
    served |= INT64_C(1) << number;
}
static void *serve_some(void *count) {
    for (intptr_t i = 0; i < (intptr_t)count; i++)
        serve_one();
    return NULL;
}
static void check_all_served(void) {
    CHECK_EQUAL(served, (INT64_C(1) << CLIENTS) - 1);
    served = 0;
}

/* A task waits for one of them, and does not come back for more. */
static void accept_one_of_many(void) {
    haft_io_task_t *accepting = haft_io_async(serve_some, (void *)1);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    connect_all();
    haft_io_join(accepting, NULL);
}

/* ---- Each client that has come is served ---- */

BODY(accept_late) {
    listen_somewhere();
    accept_one_of_many();
    serve_some((void *)10);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    serve_some((void *)(CLIENTS - 11));
    check_all_served();
    close_all();
    haft_io_close(listener);
    return NULL;
}
static void connections_that_came_while_nobody_waited_are_served_later(void) {
    CHECK_EQUAL(haft_io_run_with(options, accept_late, NULL), 0);
}

BODY(accept_together) {
    listen_somewhere();
    haft_io_task_t *accepting[2];
    for (int i = 0; i < 2; i++)
        accepting[i] = haft_io_async(serve_some, (void *)(CLIENTS / 2));
    haft_io_sleep(HAFT_IO_MILLISECOND);
    connect_all();
    for (int i = 0; i < 2; i++)
        haft_io_join(accepting[i], NULL);
    check_all_served();
    close_all();
    haft_io_close(listener);
    return NULL;
}
static void two_tasks_accept_from_one_listener(void) {
    if (options->threads == 1) /* `served` is of one thread */
        CHECK_EQUAL(haft_io_run_with(options, accept_together, NULL), 0);
}

static void *cancelled_soon(void *unused) {
    haft_io_spawn(serve_some, (void *)CLIENTS);
    haft_io_yield();
    for (int i = 0; i < (int)(intptr_t)unused; i++)
        haft_io_sleep(HAFT_IO_MILLISECOND / 20);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(accept_and_be_cancelled) {
    for (intptr_t turn = 0; turn < 20; turn++) {
        listen_somewhere();
        if (turn % 2 == 0)
            connect_all();
        haft_io_task_t *other = haft_io_async(serve_some, (void *)0);
        CHECK_EQUAL(haft_io_scope(cancelled_soon, (void *)(turn % 5), NULL), -ECANCELED);
        if (turn % 2 != 0)
            connect_all();
        haft_io_join(other, NULL);
        while (served != (INT64_C(1) << CLIENTS) - 1)
            serve_one();
        check_all_served();
        close_all();
        haft_io_close(listener);
    }
    return NULL;
}
static void a_cancelled_accept_leaves_the_connections_to_the_next(void) {
    if (options->threads == 1)
        CHECK_EQUAL(haft_io_run_with(options, accept_and_be_cancelled, NULL), 0);
}

/* ---- A client that was not taken is not left behind ---- */

static void check_ended(void) {
    int ended = 0;
    for (int i = 0; i < CLIENTS; i++) {
        char byte;
        ended += read(clients[i], &byte, 1) <= 0;
        close(clients[i]);
    }
    CHECK_EQUAL(ended, CLIENTS);
}

BODY(close_listener) {
    listen_somewhere();
    int port = haft_io_port(listener);
    accept_one_of_many();
    haft_io_close(listener);
    check_ended();
    listener = haft_io_listen_tcp("127.0.0.1", (uint16_t)port, 0);
    CHECK(listener >= 0); /* the port is free */
    haft_io_close(listener);
    served = 0;
    return NULL;
}
static void closing_a_listener_ends_the_connections_that_nobody_took(void) {
    CHECK_EQUAL(haft_io_run_with(options, close_listener, NULL), 0);
}

static int accepting_count;
BODY(accept_until_closed) {
    accepting_count++;
    CHECK_EQUAL(haft_io_accept(listener), -EBADF);
    return NULL;
}
BODY(close_while_accepting) {
    accepting_count = 0;
    for (int i = 0; i < 10; i++) {
        listen_somewhere();
        haft_io_task_t *accepting[] = {haft_io_async(accept_until_closed, NULL),
                                       haft_io_async(accept_until_closed, NULL)};
        while (accepting_count < 2 * (i + 1))
            haft_io_yield();
        haft_io_close(listener);
        listen_somewhere(); /* most often by the same number */
        int client = connect_plainly();
        for (int j = 0; j < 2; j++)
            haft_io_join(accepting[j], NULL);
        int connection = haft_io_accept(listener);
        CHECK(connection >= 0);
        haft_io_close(connection);
        close(client);
        haft_io_close(listener);
    }
    return NULL;
}
static void who_accepts_from_a_closed_listener_gets_none_of_the_next_of_its_number(void) {
    if (options->threads == 1) /* nobody comes too late to wait for the first */
        CHECK_EQUAL(haft_io_run_with(options, close_while_accepting, NULL), 0);
}

BODY(leave_the_rest) {
    accept_one_of_many();
    return NULL;
}
static void at_the_end_of_a_run_no_connection_is_left_open(void) {
    int before = check_descriptors();
    listen_somewhere();
    CHECK_EQUAL(haft_io_run_with(options, leave_the_rest, NULL), 0);
    close_all();
    CHECK_EQUAL(check_descriptors(), before + 1);
    close(listener);
    served = 0;
}

/* ---- Polling the listener ---- */

BODY(poll_listener) {
    listen_somewhere();
    accept_one_of_many();
    struct pollfd entry = {listener, POLLIN, 0};
    for (int i = 1; i < CLIENTS; i++) {
        if (i % 2 == 0) {
            CHECK_EQUAL(haft_io_wait_ready(listener, POLLIN), POLLIN);
        } else {
            CHECK_EQUAL(haft_io_poll(&entry, 1, HAFT_IO_FOREVER), 1);
            CHECK_EQUAL(entry.revents, POLLIN);
        }
        serve_one();
    }
    check_all_served();
    close_all();
    CHECK_EQUAL(haft_io_poll(&entry, 1, 0), 0);
    haft_io_close(listener);
    return NULL;
}
static void a_poll_tells_of_connections_that_wait(void) {
    CHECK_EQUAL(haft_io_run_with(options, poll_listener, NULL), 0);
}

static void *poll_until_closed(void *several) {
    for (;;) {
        struct pollfd entry = {listener, POLLIN, 0};
        int code = several != NULL ? haft_io_poll(&entry, 1, HAFT_IO_FOREVER)
                                   : haft_io_wait_ready(listener, POLLIN);
        if (code < 0 || (entry.revents & POLLNVAL) != 0)
            break;
        haft_io_sleep(HAFT_IO_MILLISECOND / 10);
    }
    return NULL;
}
BODY(poll_and_accept) {
    listen_somewhere();
    haft_io_task_t *accepting = haft_io_async(serve_some, (void *)CLIENTS);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_task_t *polling[] = {haft_io_async(poll_until_closed, NULL),
                                 haft_io_async(poll_until_closed, (void *)1)};
    haft_io_sleep(HAFT_IO_MILLISECOND);
    connect_all();
    haft_io_join(accepting, NULL);
    check_all_served();
    close_all();
    haft_io_close(listener);
    for (int i = 0; i < 2; i++)
        haft_io_join(polling[i], NULL);
    return NULL;
}
static void some_poll_a_listener_while_another_accepts(void) {
    if (options->threads == 1)
        CHECK_EQUAL(haft_io_run_with(options, poll_and_accept, NULL), 0);
}

/* ---- A kernel that does not know it ---- */

#ifdef WITH_URING
#    include <liburing.h>

static bool kernel_is_old;

/* Gives what is asked for by multishot a flag that no kernel knows. */
static void make_unknown(struct io_uring *ring) {
    for (unsigned i = ring->sq.sqe_head; kernel_is_old && i != ring->sq.sqe_tail; i++) {
        struct io_uring_sqe *entry = &ring->sq.sqes[i & *ring->sq.kring_mask];
        if (entry->opcode == IORING_OP_ACCEPT)
            entry->ioprio |= 1 << 14;
    }
}

int __real_io_uring_submit_and_wait(struct io_uring *ring, unsigned count);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned count);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned count) {
    make_unknown(ring);
    return __real_io_uring_submit_and_wait(ring, count);
}
int __real_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **first,
                                            unsigned count, struct __kernel_timespec *limit,
                                            sigset_t *signals);
int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **first,
                                            unsigned count, struct __kernel_timespec *limit,
                                            sigset_t *signals);
int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **first,
                                            unsigned count, struct __kernel_timespec *limit,
                                            sigset_t *signals) {
    make_unknown(ring);
    return __real_io_uring_submit_and_wait_timeout(ring, first, count, limit, signals);
}

static void a_kernel_without_multishot_accepts_one_by_one(void) {
    kernel_is_old = true;
    two_tasks_accept_from_one_listener();
    who_accepts_from_a_closed_listener_gets_none_of_the_next_of_its_number();
    kernel_is_old = false;
}
#endif

static void on_each_back_end(const haft_io_run_options_t *given) {
    options = given;
    int before = check_descriptors();
    RUN(connections_that_came_while_nobody_waited_are_served_later);
    RUN(two_tasks_accept_from_one_listener);
    RUN(a_cancelled_accept_leaves_the_connections_to_the_next);
    RUN(closing_a_listener_ends_the_connections_that_nobody_took);
    RUN(who_accepts_from_a_closed_listener_gets_none_of_the_next_of_its_number);
    RUN(at_the_end_of_a_run_no_connection_is_left_open);
    RUN(a_poll_tells_of_connections_that_wait);
    RUN(some_poll_a_listener_while_another_accepts);
#ifdef WITH_URING
    RUN(a_kernel_without_multishot_accepts_one_by_one);
#endif
    CHECK_EQUAL(check_descriptors(), before);
}

int main(void) {
    check_backend();
    check_everywhere(on_each_back_end);
    return check_end();
}
