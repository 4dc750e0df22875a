/* SPDX-License-Identifier: MIT */
/* Datagrams of a simulation's own network, and of pairs. */
#include "check_io.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

static const haft_io_simulation_options_t with_network = {.network = true};

/* In simulations, and where the system has to agree. */
static void check_both(void *(*body)(void *)) {
    check_seeds(body, 20, with_network);
    CHECK_RUNS(body);
}

static struct sockaddr_in local(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}
#define AT(address) (struct sockaddr *)&(address), sizeof(address)

/* Under faults there may be no descriptor. */
static int new_socket(void) {
    int socket;
    while ((socket = haft_io_socket(AF_INET, SOCK_DGRAM, 0)) == -EMFILE)
        continue;
    CHECK(socket >= 0);
    return socket;
}
static int bound(void) {
    int socket = new_socket();
    struct sockaddr_in address = local(0);
    CHECK_EQUAL(haft_io_bind(socket, AT(address)), 0);
    CHECK(haft_io_port(socket) > 0);
    return socket;
}
static int send_text(int from, int to, const char *text) {
    struct sockaddr_in address = local(haft_io_port(to));
    return (int)haft_io_send_to(from, text, strlen(text), 0, AT(address));
}
static int connect_to(int socket, int to) {
    struct sockaddr_in address = local(haft_io_port(to));
    return haft_io_connect(socket, AT(address));
}
static short events_of(int descriptor) {
    struct pollfd entry = {descriptor, POLLIN | POLLOUT, 0};
    int ready = haft_io_poll(&entry, 1, 0);
    CHECK_EQUAL(ready, entry.revents != 0);
    return entry.revents;
}

/* ---- Messages ---- */

BODY(exchange_messages) {
    HAFT_IO_SCOPED_DESCRIPTOR int one = bound(), other = bound();
    HAFT_IO_SCOPED_DESCRIPTOR int unbound = haft_io_socket(AF_INET, SOCK_DGRAM, 0);
    char bytes[20] = "";
    struct sockaddr_in from, any = {.sin_family = AF_INET};
    socklen_t size = sizeof from;
    CHECK_EQUAL(send_text(one, other, "hello"), 5);
    CHECK_EQUAL(send_text(one, other, ""), 0);
    CHECK_EQUAL(send_text(one, other, "world"), 5);
    CHECK_EQUAL(haft_io_wait_ready(other, POLLIN), POLLIN);
    CHECK_EQUAL(events_of(other), POLLIN | POLLOUT);
    CHECK_EQUAL(haft_io_read(other, bytes, 0), 0);
    CHECK_EQUAL(haft_io_receive(other, bytes, 2, MSG_PEEK), 2);
    CHECK_EQUAL(
        haft_io_receive_from(other, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &size), 5);
    CHECK(memcmp(bytes, "hello", 5) == 0 && size == sizeof from);
    CHECK(from.sin_family == AF_INET && from.sin_addr.s_addr == htonl(INADDR_LOOPBACK) &&
          ntohs(from.sin_port) == haft_io_port(one));
    CHECK_EQUAL(haft_io_receive(other, bytes, sizeof bytes, MSG_WAITALL), 0);
    CHECK_EQUAL(haft_io_read(other, bytes, 3), 3); /* the rest is lost */
    CHECK(memcmp(bytes, "wor", 3) == 0);
    CHECK_EQUAL(haft_io_receive(other, bytes, sizeof bytes, MSG_DONTWAIT), -EAGAIN);
    CHECK_EQUAL(events_of(other), POLLOUT);
    CHECK_EQUAL(send_text(one, other, "longer"), 6);
    CHECK_EQUAL(haft_io_receive(other, bytes, 2, MSG_TRUNC), 6);

    struct sockaddr_in to = local(haft_io_port(one));
    struct iovec parts[] = {{(char[]){"in "}, 3}, {(char[]){"parts"}, 5}};
    struct msghdr message = {
        .msg_name = &to, .msg_namelen = sizeof to, .msg_iov = parts, .msg_iovlen = 2};
    CHECK_EQUAL(haft_io_send_message(other, &message, 0), 8);
    struct iovec into[] = {{bytes, 2}, {bytes + 2, 3}};
    memset(&from, 0, sizeof from);
    message = (struct msghdr){
        .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = into, .msg_iovlen = 2};
    CHECK_EQUAL(haft_io_receive_message(one, &message, 0), 5);
    CHECK(memcmp(bytes, "in pa", 5) == 0 && message.msg_namelen == sizeof from);
    CHECK_EQUAL(message.msg_flags & MSG_TRUNC, MSG_TRUNC);
    CHECK_EQUAL(ntohs(from.sin_port), haft_io_port(other));
    any.sin_port = htons((uint16_t)haft_io_port(one));
    CHECK_EQUAL(haft_io_send_to(unbound, "x", 1, 0, AT(any)), 1);
    CHECK_EQUAL(haft_io_receive_from(one, bytes, 1, 0, (struct sockaddr *)&from, &size), 1);
    CHECK(from.sin_addr.s_addr == htonl(INADDR_LOOPBACK) &&
          ntohs(from.sin_port) == haft_io_port(unbound));
    return NULL;
}
static void a_datagram_is_a_message_with_a_sender(void) {
    check_both(exchange_messages);
}

BODY(exchange_over_ipv6) {
    HAFT_IO_SCOPED_DESCRIPTOR int one = bound();
    HAFT_IO_SCOPED_DESCRIPTOR int other = haft_io_socket(AF_INET6, SOCK_DGRAM, 0);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6}, from;
    socklen_t size = sizeof from;
    char bytes[20] = "";
    CHECK_EQUAL(haft_io_bind(other, AT(any)), 0);
    CHECK_EQUAL(send_text(one, other, "four"), 4);
    CHECK_EQUAL(
        haft_io_receive_from(other, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &size), 4);
    CHECK(size == sizeof from && from.sin6_family == AF_INET6);
    char text[INET6_ADDRSTRLEN];
    inet_ntop(AF_INET6, &from.sin6_addr, text, sizeof text);
    CHECK_SAME_TEXT(text, "::ffff:127.0.0.1");
    CHECK_EQUAL(haft_io_send_to(other, "six", 3, 0, AT(from)), 3);
    struct sockaddr_in from_four;
    size = sizeof from_four;
    CHECK_EQUAL(
        haft_io_receive_from(one, bytes, sizeof bytes, 0, (struct sockaddr *)&from_four, &size), 3);
    CHECK(from_four.sin_addr.s_addr == htonl(INADDR_LOOPBACK) &&
          ntohs(from_four.sin_port) == haft_io_port(other));
    CHECK_EQUAL(haft_io_send_to(one, "x", 1, 0, AT(from)), -EAFNOSUPPORT);
    return NULL;
}
static void both_families_meet(void) {
    check_both(exchange_over_ipv6);
}

/* ---- Places ---- */

BODY(take_places) {
    HAFT_IO_SCOPED_DESCRIPTOR int one = bound();
    HAFT_IO_SCOPED_DESCRIPTOR int other = haft_io_socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in taken = local(haft_io_port(one)), nowhere = local(0);
    CHECK_EQUAL(haft_io_port(other), 0);
    CHECK_EQUAL(haft_io_bind(other, AT(taken)), -EADDRINUSE);
    CHECK_EQUAL(haft_io_bind(one, AT(nowhere)), -EINVAL);
    CHECK_EQUAL(haft_io_bind(other, (struct sockaddr *)&nowhere, 3), -EINVAL);
    CHECK_EQUAL(haft_io_bind(-1, AT(nowhere)), -EBADF);
    CHECK_EQUAL(haft_io_send(other, "x", 1, 0), -EDESTADDRREQ);
    CHECK_EQUAL(haft_io_write(other, "x", 1), -EDESTADDRREQ);
    CHECK_EQUAL(haft_io_send_to(other, "x", 1, 0, AT(nowhere)), -EINVAL);
    CHECK_EQUAL(haft_io_accept(other), -EOPNOTSUPP);
    CHECK_EQUAL(haft_io_send_to(other, "x", 1, 0, AT(taken)), 1);
    CHECK(haft_io_port(other) > 0); /* chosen when it was needed */
    static char large[65508];
    CHECK_EQUAL(haft_io_send_to(other, large, 65508, 0, AT(taken)), -EMSGSIZE);
    CHECK_EQUAL(haft_io_send_to(other, large, 65507, 0, AT(taken)), 65507);
    CHECK_EQUAL(haft_io_read(one, large, sizeof large), 1);
    CHECK_EQUAL(haft_io_read(one, large, sizeof large), 65507);
    if (haft_io_seed() != 0) { /* of the system, another program may have that port of TCP */
        HAFT_IO_SCOPED_DESCRIPTOR int listener = haft_io_listen_tcp("::", ntohs(taken.sin_port), 0);
        CHECK(listener >= 0);
    }
    haft_io_close(one);
    CHECK_EQUAL(haft_io_bind((one = haft_io_socket(AF_INET, SOCK_DGRAM, 0)), AT(taken)), 0);
    CHECK_EQUAL(haft_io_shutdown(one, SHUT_WR), -ENOTCONN);
    return NULL;
}
static void ports_are_taken_chosen_and_given_back(void) {
    check_both(take_places);
}

BODY(refuse_what_is_not_simulated) {
    struct sockaddr_in address = local(0);
    CHECK_EQUAL(haft_io_socket(AF_UNIX, SOCK_DGRAM, 0), -EOPNOTSUPP);
    CHECK_EQUAL(haft_io_socket(AF_INET, SOCK_RAW, 0), -EOPNOTSUPP);
    int ends[2];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_SEQPACKET, 0, ends), -EOPNOTSUPP);
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    CHECK_EQUAL(haft_io_bind(ends[0], AT(address)), -ENOTSOCK);
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    HAFT_IO_SCOPED_DESCRIPTOR int udp = bound();
    CHECK_EQUAL(haft_io_receive(udp, &(char){0}, 1, MSG_OOB), -EOPNOTSUPP);
    const char *const command[] = {"true", NULL};
    CHECK_EQUAL(haft_io_process_start(command, (int[]){udp, -1, -1}), -EOPNOTSUPP);
    CHECK_EQUAL(haft_io_close(udp), 0);
    CHECK_EQUAL(haft_io_close(udp), -EBADF);
    udp = -1;
    return NULL;
}
static void what_is_not_simulated_is_refused(void) {
    check_seeds(refuse_what_is_not_simulated, 5, with_network);
}

/* ---- Connections ---- */

BODY(connect_sockets) {
    HAFT_IO_SCOPED_DESCRIPTOR int server = bound(), client = haft_io_socket(AF_INET, SOCK_DGRAM, 0);
    HAFT_IO_SCOPED_DESCRIPTOR int stranger = bound();
    char byte;
    CHECK_EQUAL(connect_to(client, server), 0);
    CHECK(haft_io_port(client) > 0);
    CHECK_EQUAL(haft_io_write(client, "a", 1), 1);
    CHECK_EQUAL(haft_io_read(server, &byte, 1), 1);
    CHECK_EQUAL(send_text(stranger, client, "s"), 1); /* lost: the socket is connected to another */
    CHECK_EQUAL(send_text(server, client, "b"), 1);
    CHECK_EQUAL(haft_io_read(client, &byte, 1), 1);
    CHECK_EQUAL(byte, 'b');
    CHECK_EQUAL(haft_io_receive(client, &byte, 1, MSG_DONTWAIT), -EAGAIN);
    CHECK_EQUAL(send_text(client, stranger, "c"), 1);
    CHECK_EQUAL(haft_io_read(stranger, &byte, 1), 1);

    haft_io_close(server);
    CHECK_EQUAL(haft_io_write(client, "a", 1), 1);
    CHECK_EQUAL(events_of(client) & POLLERR, POLLERR);
    CHECK_EQUAL(haft_io_write(client, "a", 1), -ECONNREFUSED);
    CHECK_EQUAL(haft_io_write(client, "a", 1), 1);
    CHECK_EQUAL(haft_io_read(client, &byte, 1), -ECONNREFUSED);
    CHECK_EQUAL(haft_io_receive(client, &byte, 1, MSG_DONTWAIT), -EAGAIN);
    CHECK_EQUAL(connect_to(client, stranger), 0);
    CHECK_EQUAL(haft_io_write(client, "a", 1), 1);
    CHECK_EQUAL(haft_io_shutdown(client, SHUT_WR), 0);
    CHECK_EQUAL(haft_io_write(client, "a", 1), -EPIPE);
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    CHECK_EQUAL(haft_io_connect(client, &none, sizeof none), 0);
    return NULL;
}
static void who_is_connected_is_told_that_nobody_receives(void) {
    check_both(connect_sockets);
}

static int waiting_one;
BODY(receive_in_vain) {
    char byte;
    return check_number(haft_io_read(waiting_one, &byte, 1));
}
BODY(end_waits) {
    int server = bound();
    waiting_one = haft_io_socket(AF_INET, SOCK_DGRAM, 0);
    connect_to(waiting_one, server);
    haft_io_scope_options_t soon = {.deadline = haft_io_now() + HAFT_IO_MILLISECOND};
    CHECK_EQUAL(haft_io_scope_with(&soon, receive_in_vain, NULL, NULL), -ETIMEDOUT);
    haft_io_task_t *tasks[2];
    void *results[2];
    for (int i = 0; i < 2; i++)
        tasks[i] = haft_io_async(receive_in_vain, NULL); /* two may wait */
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_close(server), 0);
    CHECK_EQUAL(haft_io_write(waiting_one, "x", 1), 1);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_close(waiting_one);
    intptr_t refused = 0;
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(haft_io_join(tasks[i], &results[i]), 0);
        refused += (intptr_t)results[i] == -ECONNREFUSED;
        CHECK((intptr_t)results[i] == -ECONNREFUSED || (intptr_t)results[i] == -EBADF);
    }
    CHECK_EQUAL(refused, 1);
    return NULL;
}
static void a_cancel_a_close_and_a_refusal_end_a_wait(void) {
    check_both(end_waits);
}

BODY(drown_a_receiver) {
    HAFT_IO_SCOPED_DESCRIPTOR int one = bound(), other = bound();
    for (int i = 0; i < 40; i++)
        CHECK_EQUAL(send_text(one, other, "x"), 1);
    char byte;
    for (int i = 0; i < 32; i++)
        CHECK_EQUAL(haft_io_read(other, &byte, 1), 1);
    CHECK_EQUAL(haft_io_receive(other, &byte, 1, MSG_DONTWAIT), -EAGAIN);
    return NULL;
}
static void what_comes_to_a_full_receiver_is_lost(void) {
    check_seeds(drown_a_receiver, 5, with_network);
}

/* ---- Pairs ---- */

static int pair[2];
BODY(use_a_pair) {
    char bytes[8];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(haft_io_write(pair[i], "one", 3), 3);
        CHECK_EQUAL(haft_io_write(pair[i], "other", 5), 5);
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        CHECK_EQUAL(haft_io_receive_from(pair[1 - i], bytes, sizeof bytes, 0,
                                         (struct sockaddr *)&from, &size),
                    3);
        CHECK_EQUAL(size, 0);
        CHECK_EQUAL(haft_io_read(pair[1 - i], bytes, 2), 2);
    }
    CHECK_EQUAL(haft_io_receive(pair[0], bytes, 1, MSG_DONTWAIT), -EAGAIN);
    CHECK_EQUAL(haft_io_port(pair[0]), -EAFNOSUPPORT);
    static char much[300000];
    CHECK_EQUAL(haft_io_write(pair[0], much, sizeof much), -EMSGSIZE);
    haft_io_close(pair[1]);
    CHECK_EQUAL(haft_io_write(pair[0], "x", 1), -ECONNREFUSED);
    CHECK_EQUAL(haft_io_write(pair[0], "x", 1), -ENOTCONN);
    haft_io_close(pair[0]);
    return NULL;
}
static void a_pair_exchanges_datagrams(void) {
    check_both(use_a_pair);
}

enum { MANY = 1000 };
BODY(send_many) {
    for (uint32_t i = 0; i < MANY; i++)
        CHECK_EQUAL(haft_io_write(pair[0], &i, sizeof i), sizeof i);
    return NULL;
}
static intptr_t sent_at_last;
BODY(send_until_closed) {
    for (uint32_t i = 0; (sent_at_last = haft_io_write(pair[0], &i, sizeof i)) > 0; i++)
        continue;
    return NULL;
}
BODY(fill_a_pair) {
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    haft_io_task_t *sender = haft_io_async(send_many, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(events_of(pair[0]), 0);
    for (uint32_t i = 0, got; i < MANY; i++) {
        CHECK_EQUAL(haft_io_read(pair[1], &got, sizeof got), sizeof got);
        CHECK_EQUAL(got, i);
    }
    CHECK_EQUAL(haft_io_join(sender, NULL), 0);
    sender = haft_io_async(send_until_closed, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_close(pair[1]);
    CHECK_EQUAL(haft_io_join(sender, NULL), 0);
    CHECK_EQUAL(sent_at_last, -ECONNREFUSED);
    haft_io_close(pair[0]);
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}
static void nothing_of_a_pair_is_lost(void) {
    check_seeds(fill_a_pair, 20, with_network);
    check_seeds(fill_a_pair, 1, (haft_io_simulation_options_t){.network = true});
}

/* ---- Faults: what programs of UDP have to survive ---- */

enum { ASKED = 200 };
typedef struct question {
    uint32_t number, answer;
} question_t;

static int server_socket;
static int64_t ended_at;
static size_t asked_again, came_twice, came_late;

static void *answer_all(void *unused) {
    question_t question;
    struct sockaddr_in from;
    for (socklen_t size = sizeof from;
         haft_io_receive_from(server_socket, &question, sizeof question, 0,
                              (struct sockaddr *)&from, &size) == sizeof question;
         size = sizeof from) {
        question.answer = question.number * question.number;
        haft_io_send_to(server_socket, &question, sizeof question, 0, AT(from));
    }
    return unused;
}
/* Until an answer to this one has come, or some time has passed. */
static bool hear(int client, uint32_t number) {
    int64_t until = haft_io_now() + 20 * HAFT_IO_MILLISECOND;
    struct pollfd entry = {client, POLLIN, 0};
    while (haft_io_poll(&entry, 1, until) > 0) {
        question_t answer;
        CHECK_EQUAL(haft_io_read(client, &answer, sizeof answer), sizeof answer);
        CHECK_EQUAL(answer.answer, answer.number * answer.number);
        if (answer.number == number)
            return true;
        came_late += answer.number + 1 < number;
        came_twice += answer.number + 1 == number;
    }
    return false;
}
BODY(ask_all) {
    server_socket = bound();
    haft_io_task_t *server = haft_io_async(answer_all, NULL);
    HAFT_IO_SCOPED_DESCRIPTOR int client = new_socket();
    CHECK_EQUAL(connect_to(client, server_socket), 0);
    for (uint32_t i = 0; i < ASKED; i++)
        for (bool again = false;; again = true) {
            question_t question = {i, 0};
            CHECK_EQUAL(haft_io_write(client, &question, sizeof question), sizeof question);
            asked_again += again;
            if (hear(client, i))
                break;
        }
    ended_at = haft_io_now();
    haft_io_close(server_socket);
    CHECK_EQUAL(haft_io_join(server, NULL), 0);
    return NULL;
}
BODY(ask_all_and_count) {
    CHECK_EQUAL(haft_io_scope(ask_all, NULL, NULL), 0);
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}
static void the_seed_loses_doubles_and_delays_datagrams(void) {
    asked_again = came_twice = came_late = 0;
    bool differs = false;
    int64_t before = 0;
    for (uint64_t seed = 1; seed <= (uint64_t)check_times(60); seed++) {
        haft_io_simulation_options_t how = {.network = true, .faults_one_in = 20};
        CHECK_EQUAL(check_simulate(ask_all_and_count, seed, how), 0);
        int64_t first = ended_at;
        CHECK_EQUAL(check_simulate(ask_all_and_count, seed, how), 0);
        CHECK_EQUAL(ended_at, first);
        differs |= before != 0 && before != first;
        before = first;
    }
    CHECK(differs && asked_again != 0 && came_twice != 0 && came_late != 0);
    asked_again = came_twice = came_late = 0;
    check_seeds(ask_all_and_count, 5, with_network);
    CHECK(asked_again == 0 && came_twice == 0 && came_late == 0);
}

BODY(leave_some_under_way) {
    int one = new_socket(), other = new_socket();
    struct sockaddr_in any = local(7000);
    CHECK_EQUAL(haft_io_bind(other, AT(any)), 0);
    for (int i = 0; i < 100; i++)
        CHECK_EQUAL(haft_io_send_to(one, "x", 1, 0, AT(any)), 1);
    return NULL;
}
static void what_is_under_way_at_the_end_is_forgotten(void) {
    check_seeds(leave_some_under_way, 20,
                (haft_io_simulation_options_t){.network = true, .faults_one_in = 3});
}

BODY(fail_when_asked) {
    HAFT_IO_SCOPED_DESCRIPTOR int one = bound();
    char byte;
    CHECK_EQUAL(send_text(one, one, "x"), 1);
    haft_io_simulated_fail(one, -ENOBUFS);
    CHECK_EQUAL(events_of(one), POLLIN | POLLOUT);
    CHECK_EQUAL(haft_io_read(one, &byte, 1), -ENOBUFS);
    CHECK_EQUAL(haft_io_read(one, &byte, 1), 1);
    return NULL;
}
static void one_operation_on_datagrams_fails_as_asked(void) {
    check_seeds(fail_when_asked, 5, with_network);
}

int main(void) {
    RUN(a_datagram_is_a_message_with_a_sender);
    RUN(both_families_meet);
    RUN(ports_are_taken_chosen_and_given_back);
    RUN(what_is_not_simulated_is_refused);
    RUN(who_is_connected_is_told_that_nobody_receives);
    RUN(a_cancel_a_close_and_a_refusal_end_a_wait);
    RUN(what_comes_to_a_full_receiver_is_lost);
    RUN(a_pair_exchanges_datagrams);
    RUN(nothing_of_a_pair_is_lost);
    RUN(the_seed_loses_doubles_and_delays_datagrams);
    RUN(what_is_under_way_at_the_end_is_forgotten);
    RUN(one_operation_on_datagrams_fails_as_asked);
    return check_end();
}
