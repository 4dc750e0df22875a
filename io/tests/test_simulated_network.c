/* SPDX-License-Identifier: MIT */
/* Sockets, listeners and connections of a simulation's own network. */
#include "check_io.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/un.h>

static const haft_io_simulation_options_t with_network = {.network = true};

/* ---- A server and its clients ---- */

enum { CLIENTS = 10, SENT = 6000 };

/* The operations that were done, in order. */
static char trace[1 << 16];
static size_t traced;
static void note(char what, int who) {
    if (traced + 2 < sizeof trace) {
        trace[traced++] = what;
        trace[traced++] = (char)('0' + who);
    }
}

static void *echo(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = (int)(intptr_t)argument;
    char bytes[1000];
    for (ssize_t got; (got = haft_io_read(connection, bytes, sizeof bytes)) > 0;) {
        note('e', (int)(got % 10));
        if (haft_io_write_all(connection, bytes, (size_t)got) < 0)
            break;
    }
    return NULL;
}

static void *serve(void *listener) {
    for (int connection; (connection = haft_io_accept((int)(intptr_t)listener)) >= 0;)
        haft_io_spawn(echo, check_number(connection));
    return NULL;
}

static int port;
static void *speak(void *argument) {
    int who = (int)(intptr_t)argument;
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_tcp(
        (const char *[]){"127.0.0.1", "::1", "localhost", "example.org"}[who % 4], (uint16_t)port);
    CHECK(connection >= 0);
    haft_io_sleep(who * HAFT_IO_MILLISECOND);
    char text[100], back[100];
    for (int sent = 0; sent < SENT; sent += (int)sizeof text) {
        memset(text, 'a' + (who + sent / 100) % 26, sizeof text);
        CHECK_EQUAL(haft_io_write_all(connection, text, sizeof text), 0);
        CHECK_EQUAL(haft_io_receive(connection, back, sizeof back, MSG_WAITALL), sizeof back);
        CHECK(memcmp(text, back, sizeof text) == 0);
        note('c', who);
    }
    return NULL;
}

static void *speak_all(void *unused) {
    haft_io_call_t calls[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        calls[i] = (haft_io_call_t){speak, check_number(i), NULL};
    CHECK_EQUAL(haft_io_all(calls, CLIENTS), 0);
    return unused;
}

BODY(serve_and_speak) {
    int listener = haft_io_listen_tcp("::", 0, 3);
    port = haft_io_port(listener);
    CHECK(port > 0);
    haft_io_task_t *server = haft_io_async(serve, check_number(listener));
    speak_all(NULL);
    CHECK_EQUAL(haft_io_close(listener), 0);
    CHECK_EQUAL(haft_io_join(server, NULL), 0);
    return NULL;
}

BODY(serve_and_count) {
    CHECK_EQUAL(haft_io_scope(serve_and_speak, NULL, NULL), 0);
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}

static void a_server_and_its_clients_are_the_same_for_the_same_seed(void) {
    const uint64_t seeds = (uint64_t)check_times(300);
    static char before[sizeof trace], other[sizeof trace];
    bool differs = false;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        traced = 0;
        CHECK_EQUAL(check_simulate(serve_and_count, seed, with_network), 0);
        memcpy(before, trace, sizeof before);
        size_t length = traced;
        CHECK(length > 2 * CLIENTS);
        traced = 0;
        CHECK_EQUAL(check_simulate(serve_and_count, seed, with_network), 0);
        CHECK_EQUAL(traced, length);
        CHECK(memcmp(before, trace, length) == 0);
        differs |= seed > 1 && memcmp(before, other, length) != 0;
        memcpy(other, before, sizeof other);
    }
    CHECK(differs);
}

/* ---- Places ---- */

BODY(take_places) {
    int first = haft_io_listen_tcp("127.0.0.1", 80, 0);
    CHECK_EQUAL(haft_io_port(first), 80);
    CHECK_EQUAL(haft_io_listen_tcp("::", 80, 0), -EADDRINUSE);
    int second = haft_io_listen_tcp("::", 0, 0), third = haft_io_listen_tcp("::", 0, 0);
    CHECK(haft_io_port(second) > 0 && haft_io_port(second) != haft_io_port(third));
    int named = haft_io_listen_tcp("localhost", 82, 0);
    CHECK_EQUAL(haft_io_port(named), 82);
    CHECK_EQUAL(haft_io_close(named), 0);

    int local = haft_io_listen_unix("/run/service", 0);
    CHECK_EQUAL(haft_io_listen_unix("/run/service", 0), -EADDRINUSE);
    CHECK_EQUAL(haft_io_port(local), -EAFNOSUPPORT);
    CHECK_EQUAL(haft_io_connect_unix("/run/nobody"), -ECONNREFUSED);
    CHECK_EQUAL(haft_io_connect_tcp("::1", 81), -ECONNREFUSED);

    CHECK_EQUAL(haft_io_close(first), 0);
    CHECK_EQUAL(haft_io_close(first), -EBADF);
    CHECK_EQUAL(haft_io_port(first), -EBADF);
    CHECK_EQUAL(haft_io_connect_tcp("::1", 80), -ECONNREFUSED);
    CHECK_EQUAL(haft_io_close(local), 0);
    CHECK((local = haft_io_listen_unix("/run/service", 0)) >= 0);
    CHECK((first = haft_io_listen_tcp("::1", 80, 0)) >= 0);
    for (int i = 0; i < 4; i++)
        haft_io_close((const int[]){first, second, third, local}[i]);
    CHECK_EQUAL(haft_io_simulated_count(), 0); /* also of what was refused */
    return NULL;
}
static void ports_and_paths_are_taken_and_given_back(void) {
    check_seeds(take_places, 20, with_network);
}

BODY(use_sockets) {
    HAFT_IO_SCOPED_DESCRIPTOR int listener = haft_io_listen_unix("/run/service", 0);
    HAFT_IO_SCOPED_DESCRIPTOR int client = haft_io_socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_in other = {.sin_family = AF_INET};
    char byte;
    CHECK_EQUAL(haft_io_read(client, &byte, 1), -EINVAL);
    CHECK_EQUAL(haft_io_write(listener, "x", 1), -ENOTCONN);
    CHECK_EQUAL(haft_io_accept(client), -EINVAL);
    CHECK_EQUAL(haft_io_connect(client, (struct sockaddr *)&other, sizeof other), -EINVAL);
    CHECK_EQUAL(haft_io_connect(client, (struct sockaddr *)&other, 1), -EINVAL);
    CHECK_EQUAL(haft_io_socket(AF_INET, SOCK_SEQPACKET, 0), -EOPNOTSUPP);
    CHECK_EQUAL(haft_io_socket(AF_NETLINK, SOCK_STREAM, 0), -EAFNOSUPPORT);

    struct sockaddr_un whole = {AF_UNIX, "/run/service"};
    strcpy(whole.sun_path + sizeof "/run/service", "what is left there");
    HAFT_IO_SCOPED_DESCRIPTOR int connected = haft_io_socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_EQUAL(haft_io_connect(connected, (struct sockaddr *)&whole, sizeof whole), 0);
    CHECK_EQUAL(haft_io_connect(connected, (struct sockaddr *)&whole, sizeof whole), -EISCONN);
    CHECK_EQUAL(haft_io_connect(connected, (struct sockaddr *)&other, sizeof other), -EINVAL);
    CHECK_EQUAL(haft_io_wait_ready(listener, POLLIN), POLLIN);
    HAFT_IO_SCOPED_DESCRIPTOR int accepted = haft_io_accept(listener);
    CHECK_EQUAL(haft_io_write(connected, "x", 1), 1);
    CHECK_EQUAL(haft_io_read(accepted, &byte, 1), 1);
    CHECK_EQUAL(haft_io_close(connected), 0);
    connected = -1;
    CHECK_EQUAL(haft_io_read(accepted, &byte, 1), 0);
    CHECK_EQUAL(haft_io_write(accepted, "x", 1), -EPIPE);
    return NULL;
}
static void sockets_say_what_they_cannot_do(void) {
    check_seeds(use_sockets, 20, with_network);
}

/* On the system's network, too. */
BODY(end_outputs) {
    HAFT_IO_SCOPED_DESCRIPTOR int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    HAFT_IO_SCOPED_DESCRIPTOR int client =
        haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    HAFT_IO_SCOPED_DESCRIPTOR int server = haft_io_accept(listener);
    char byte;
    CHECK_EQUAL(haft_io_write(client, "x", 1), 1);
    CHECK_EQUAL(haft_io_shutdown(client, SHUT_WR), 0);
    CHECK_EQUAL(haft_io_write(client, "x", 1), -EPIPE);
    CHECK_EQUAL(haft_io_read(server, &byte, 1), 1);
    CHECK_EQUAL(haft_io_read(server, &byte, 1), 0);
    CHECK_EQUAL(haft_io_write(server, "y", 1), 1);
    CHECK_EQUAL(haft_io_shutdown(server, SHUT_WR), 0);
    CHECK_EQUAL(haft_io_read(client, &byte, 1), 1);
    CHECK_EQUAL(haft_io_read(client, &byte, 1), 0);
    CHECK_EQUAL(haft_io_shutdown(listener, SHUT_WR), 0);
    HAFT_IO_SCOPED_DESCRIPTOR int alone = haft_io_socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(haft_io_shutdown(alone, SHUT_WR), -ENOTCONN);
    CHECK_EQUAL(haft_io_shutdown(-1, SHUT_WR), -EBADF);
    return NULL;
}
static void who_ends_its_output_still_reads(void) {
    check_seeds(end_outputs, 20, with_network);
    CHECK_RUNS(end_outputs);
}

BODY(resolve_names) {
    struct addrinfo *found = NULL;
    CHECK_EQUAL(haft_io_resolve("no.such.host.example", "80",
                                &(struct addrinfo){.ai_socktype = SOCK_STREAM}, &found),
                0);
    CHECK(found != NULL && found->ai_family == AF_INET);
    freeaddrinfo(found);
    return NULL;
}
static void each_name_is_the_one_host(void) {
    check_seeds(resolve_names, 20, with_network);
}

/* ---- Waiting ---- */

static void *read_to_the_end(void *connection) {
    char bytes[8];
    CHECK_EQUAL(haft_io_read_all(*(int *)connection, bytes, sizeof bytes), 3);
    return NULL;
}
BODY(shut_for_reading) {
    HAFT_IO_SCOPED_DESCRIPTOR int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    HAFT_IO_SCOPED_DESCRIPTOR int client =
        haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    HAFT_IO_SCOPED_DESCRIPTOR int server = haft_io_accept(listener);
    haft_io_task_t *reader = haft_io_async(read_to_the_end, &server);
    CHECK_EQUAL(haft_io_write_all(client, "abc", 3), 0);
    haft_io_sleep(10 * HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_shutdown(server, SHUT_RD), 0);
    CHECK_EQUAL(haft_io_join(reader, NULL), 0);
    CHECK_EQUAL(haft_io_write(server, "d", 1), 1);
    char byte;
    CHECK_EQUAL(haft_io_read(client, &byte, 1), 1);
    return NULL;
}
static void a_stream_that_is_shut_for_reading_ends_a_wait_to_read(void) {
    check_seeds(shut_for_reading, 20, with_network);
    CHECK_EQUAL(haft_io_run(shut_for_reading, NULL), 0);
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, shut_for_reading, NULL),
                0);
}

static void *accept_one(void *listener) {
    return check_number(haft_io_accept((int)(intptr_t)listener));
}
BODY(end_accepts) {
    HAFT_IO_SCOPED_DESCRIPTOR int listener = haft_io_listen_tcp("::", 7000, 0);
    haft_io_scope_options_t options = {.deadline = haft_io_now() + HAFT_IO_SECOND};
    CHECK_EQUAL(haft_io_scope_with(&options, accept_one, check_number(listener), NULL), -ETIMEDOUT);
    haft_io_task_t *accepting = haft_io_async(accept_one, check_number(listener));
    haft_io_sleep(HAFT_IO_SECOND);
    haft_io_close(listener);
    listener = -1;
    void *result;
    CHECK_EQUAL(haft_io_join(accepting, &result), 0);
    CHECK_EQUAL((intptr_t)result, -EBADF);
    return NULL;
}
static void a_cancel_and_a_close_end_a_waiting_accept(void) {
    check_seeds(end_accepts, 20, with_network);
}

static void *connect_one(void *unused) {
    (void)unused;
    return check_number(haft_io_connect_tcp("::1", 7000));
}
static int socket_in_line, code_in_line;
static void *connect_in_line(void *number) {
    struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                   .sin6_port = htons((uint16_t)(intptr_t)number)};
    code_in_line = haft_io_connect(socket_in_line, (struct sockaddr *)&address, sizeof address);
    return NULL;
}
/* A listener with as many connections as it has room for, which are closed with it. */
static int full_listener(uint16_t number, int ends[2]) {
    int listener = haft_io_listen_tcp("::", number, 1);
    CHECK(listener >= 0);
    for (int i = 0; i < 2; i++)
        CHECK((ends[i] = haft_io_connect_tcp("::1", number)) >= 0);
    return listener;
}
static void close_three(int listener, const int ends[2]) {
    haft_io_close(listener);
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
}
BODY(fill_a_backlog) {
    int ends[2], listener = full_listener(7000, ends);
    haft_io_scope_options_t options = {.deadline = haft_io_now() + HAFT_IO_SECOND};
    CHECK_EQUAL(haft_io_scope_with(&options, connect_one, NULL, NULL), -ETIMEDOUT);
    haft_io_task_t *connecting[2];
    for (int i = 0; i < 2; i++)
        connecting[i] = haft_io_async(connect_one, NULL);
    haft_io_sleep(HAFT_IO_SECOND);
    int accepted = haft_io_accept(listener);
    haft_io_sleep(HAFT_IO_SECOND); /* one of the two has come in */
    haft_io_close(listener);
    void *results[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(haft_io_join(connecting[i], &results[i]), 0);
    bool first = (intptr_t)results[0] >= 0;
    CHECK_EQUAL((intptr_t)results[first], -ECONNREFUSED);
    /* The accepted connection goes on; the others are reset. */
    char byte;
    CHECK_EQUAL(haft_io_write(ends[0], "x", 1), 1);
    CHECK_EQUAL(haft_io_read(accepted, &byte, 1), 1);
    CHECK_EQUAL(haft_io_read(ends[1], &byte, 1), -ECONNRESET);
    CHECK_EQUAL(haft_io_read((int)(intptr_t)results[!first], &byte, 1), -ECONNRESET);
    for (int i = 0; i < 4; i++)
        haft_io_close((const int[]){ends[0], ends[1], accepted, (int)(intptr_t)results[!first]}[i]);
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}
static void a_connect_waits_for_room_and_a_close_resets_who_was_not_accepted(void) {
    check_seeds(fill_a_backlog, 20, with_network);
}

/* Two wait to be accepted, and four for room, in turn; the first three of these give up just when
   the two are accepted. In some orders they have been given the room by then. */
static void *connect_by(void *deadline) {
    haft_io_scope_options_t options = {.deadline = (intptr_t)deadline};
    void *connection = NULL;
    int code = haft_io_scope_with(&options, connect_one, NULL, &connection);
    CHECK_EQUAL(code, deadline != NULL ? -ETIMEDOUT : 0);
    if (code == 0)
        haft_io_close((int)(intptr_t)connection);
    return NULL;
}
BODY(give_up_in_turn) {
    int ends[2], listener = full_listener(7000, ends);
    int64_t end = haft_io_now() + HAFT_IO_SECOND;
    for (int i = 0; i < 4; i++) {
        haft_io_spawn(connect_by, check_number(i < 3 ? (intptr_t)end : 0));
        haft_io_sleep(HAFT_IO_MILLISECOND);
    }
    haft_io_sleep_until(end);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(haft_io_close(haft_io_accept(listener)), 0);
    close_three(listener, ends);
    return NULL;
}
static void room_that_is_not_taken_goes_to_the_next(void) {
    check_seeds(give_up_in_turn, check_times(100), with_network);
}

BODY(close_who_was_given_room) {
    int ends[2], listener = full_listener(7000, ends);
    socket_in_line = haft_io_socket(AF_INET6, SOCK_STREAM, 0);
    haft_io_spawn(connect_in_line, check_number(7000));
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_task_t *next = haft_io_async(connect_one, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_close(haft_io_accept(listener));
    haft_io_close(socket_in_line);
    void *connection;
    CHECK_EQUAL(haft_io_join(next, &connection), 0);
    CHECK_EQUAL(code_in_line, -EBADF);
    haft_io_close((int)(intptr_t)connection);
    close_three(listener, ends);
    return NULL;
}
static void room_of_a_socket_that_is_closed_goes_to_the_next(void) {
    check_seeds(close_who_was_given_room, check_times(100), with_network);
}

static haft_io_scope_t *scope_in_line;
static void *connect_and_tell(void *number) {
    scope_in_line = haft_io_this_scope();
    return connect_in_line(number);
}
static void *connect_in_a_scope(void *number) {
    haft_io_scope(connect_and_tell, number, NULL);
    return NULL;
}
BODY(connect_elsewhere_when_cancelled) {
    int ends[2], others[2];
    int listener = full_listener(7000, ends), other = full_listener(7001, others);
    socket_in_line = haft_io_socket(AF_INET6, SOCK_STREAM, 0);
    haft_io_task_t *first = haft_io_async(connect_in_a_scope, check_number(7000));
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_scope_cancel(scope_in_line);
    haft_io_close(haft_io_accept(listener));
    haft_io_task_t *second = haft_io_async(connect_in_line, check_number(7001));
    CHECK_EQUAL(haft_io_join(first, NULL), 0);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_close(haft_io_accept(other));
    CHECK_EQUAL(haft_io_join(second, NULL), 0);
    /* The first has given up by then, or not. */
    CHECK(code_in_line == 0 || code_in_line == -EALREADY);
    haft_io_close(socket_in_line);
    close_three(listener, ends);
    close_three(other, others);
    return NULL;
}
static void a_connect_that_ends_leaves_that_of_another_task_alone(void) {
    check_seeds(connect_elsewhere_when_cancelled, check_times(100), with_network);
}

BODY(open_the_port_again) {
    int ends[2], listener = full_listener(7000, ends);
    haft_io_task_t *waiting = haft_io_async(connect_one, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_close(listener);
    HAFT_IO_SCOPED_DESCRIPTOR int again = haft_io_listen_tcp("::", 7000, 1);
    void *result;
    CHECK_EQUAL(haft_io_join(waiting, &result), 0);
    CHECK_EQUAL((intptr_t)result, -ECONNREFUSED);
    CHECK(again >= 0);
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    return NULL;
}
static void a_connect_waits_for_the_listener_that_was_there(void) {
    check_seeds(open_the_port_again, check_times(100), with_network);
}

BODY(connect_one_twice) {
    int ends[2], listener = full_listener(7000, ends);
    socket_in_line = haft_io_socket(AF_INET6, SOCK_STREAM, 0);
    haft_io_task_t *connecting = haft_io_async(connect_in_line, check_number(7000));
    haft_io_sleep(HAFT_IO_SECOND);
    connect_in_line(check_number(7000));
    CHECK_EQUAL(code_in_line, -EALREADY);
    CHECK_EQUAL(haft_io_close(haft_io_accept(listener)), 0);
    CHECK_EQUAL(haft_io_join(connecting, NULL), 0);
    CHECK_EQUAL(code_in_line, 0);
    connect_in_line(check_number(7000));
    CHECK_EQUAL(code_in_line, -EISCONN);
    haft_io_close(socket_in_line);
    close_three(listener, ends);
    return NULL;
}
static void a_second_connect_of_a_socket_that_waits_for_room_is_refused(void) {
    check_seeds(connect_one_twice, 20, with_network);
}

BODY(close_a_connecting_socket) {
    int ends[2], listener = full_listener(7000, ends);
    socket_in_line = haft_io_socket(AF_INET6, SOCK_STREAM, 0);
    haft_io_task_t *connecting = haft_io_async(connect_in_line, check_number(7000));
    haft_io_sleep(HAFT_IO_SECOND);
    CHECK_EQUAL(haft_io_close(socket_in_line), 0);
    CHECK_EQUAL(haft_io_join(connecting, NULL), 0);
    CHECK_EQUAL(code_in_line, -EBADF);
    close_three(listener, ends);
    return NULL;
}
static void a_close_ends_a_connect_that_waits_for_room(void) {
    check_seeds(close_a_connecting_socket, 20, with_network);
}

static void *connect_later(void *unused) {
    haft_io_sleep(HAFT_IO_SECOND);
    *(int *)unused = haft_io_connect_tcp("::1", 7000);
    return NULL;
}
BODY(poll_a_listener) {
    HAFT_IO_SCOPED_DESCRIPTOR int listener = haft_io_listen_tcp("::", 7000, 0);
    HAFT_IO_SCOPED_DESCRIPTOR int connection = -1;
    struct pollfd entry = {.fd = listener, .events = POLLIN};
    CHECK_EQUAL(haft_io_poll(&entry, 1, haft_io_now() + HAFT_IO_MILLISECOND), 0);
    haft_io_task_t *connecting = haft_io_async(connect_later, &connection);
    CHECK_EQUAL(haft_io_poll(&entry, 1, HAFT_IO_FOREVER), 1);
    CHECK_EQUAL(entry.revents, POLLIN);
    CHECK_EQUAL(haft_io_join(connecting, NULL), 0);
    return NULL;
}
static void a_listener_is_polled(void) {
    check_seeds(poll_a_listener, 20, with_network);
}

BODY(listen_really) {
    HAFT_IO_SCOPED_DESCRIPTOR int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    CHECK(listener >= 0 && fcntl(listener, F_GETFD) >= 0);
    return NULL;
}
static void without_the_option_sockets_are_the_systems(void) {
    CHECK_EQUAL(haft_io_simulate(listen_really, NULL), 0);
}

int main(void) {
    RUN(a_server_and_its_clients_are_the_same_for_the_same_seed);
    RUN(ports_and_paths_are_taken_and_given_back);
    RUN(sockets_say_what_they_cannot_do);
    RUN(who_ends_its_output_still_reads);
    RUN(a_stream_that_is_shut_for_reading_ends_a_wait_to_read);
    RUN(each_name_is_the_one_host);
    RUN(a_cancel_and_a_close_end_a_waiting_accept);
    RUN(a_connect_waits_for_room_and_a_close_resets_who_was_not_accepted);
    RUN(room_that_is_not_taken_goes_to_the_next);
    RUN(room_of_a_socket_that_is_closed_goes_to_the_next);
    RUN(a_connect_that_ends_leaves_that_of_another_task_alone);
    RUN(a_connect_waits_for_the_listener_that_was_there);
    RUN(a_second_connect_of_a_socket_that_waits_for_room_is_refused);
    RUN(a_close_ends_a_connect_that_waits_for_room);
    RUN(a_listener_is_polled);
    RUN(without_the_option_sockets_are_the_systems);
    return check_end();
}
