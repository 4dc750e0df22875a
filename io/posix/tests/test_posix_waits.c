/* SPDX-License-Identifier: MIT */
/* The C library's calls on tasks: a wait takes no processor time, whatever the state of the
   descriptor, and ends when it should. (The table of io/tests/test_waits_sleep.c.) */
#include "../../tests/waits.h"

#include <haft/posix.h>

#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

static char into[4096];

static size_t size_of(const cell_t *cell) {
    return cell->state->kind == IS_NUMBER ? 8 : 4096;
}
static const void *bytes_of(const cell_t *cell) {
    static const uint64_t one = 1;
    return cell->state->kind == IS_NUMBER ? (const void *)&one : waits_bytes;
}
static ssize_t result_of(ssize_t done) {
    return done >= 0 ? done : -errno;
}

#define WAY(name, ...)                                                                             \
    static ssize_t name(cell_t *cell) {                                                            \
        return result_of(__VA_ARGS__);                                                             \
    }
WAY(by_read, read(cell->ours, into, sizeof into))
WAY(by_readv, readv(cell->ours, &(struct iovec){into, sizeof into}, 1))
WAY(by_recv, recv(cell->ours, into, sizeof into, 0))
WAY(by_recvfrom, recvfrom(cell->ours, into, sizeof into, 0, (struct sockaddr *)&cell->address,
                          &(socklen_t){sizeof cell->address}))
WAY(by_recvmsg,
    recvmsg(cell->ours,
            &(struct msghdr){.msg_iov = &(struct iovec){into, sizeof into}, .msg_iovlen = 1}, 0))
WAY(by_write, write(cell->ours, bytes_of(cell), size_of(cell)))
WAY(by_writev,
    writev(cell->ours, &(struct iovec){(void *)(uintptr_t)bytes_of(cell), size_of(cell)}, 1))
WAY(by_send, send(cell->ours, waits_bytes, 1000, 0))
WAY(by_sendmsg,
    sendmsg(cell->ours,
            &(struct msghdr){.msg_iov = &(struct iovec){waits_bytes, 1000}, .msg_iovlen = 1}, 0))
WAY(by_sendto, sendto(cell->ours, waits_bytes, 1, 0, (const struct sockaddr *)&cell->address,
                      cell->address_size))
WAY(by_connect, connect(cell->ours, (const struct sockaddr *)&cell->address, cell->address_size))
WAY(by_poll_in, poll(&(struct pollfd){cell->ours, POLLIN, 0}, 1, -1))
WAY(by_poll_out, poll(&(struct pollfd){cell->ours, POLLOUT, 0}, 1, -1))
WAY(by_poll_urgent, poll(&(struct pollfd){cell->ours, POLLPRI, 0}, 1, -1))
WAY(by_poll_nothing, poll(&(struct pollfd){cell->ours, 0, 0}, 1, -1))

static ssize_t by_sendfile(cell_t *cell) {
    int file = waits_keep(cell, check_file_with("what is sent"));
    return result_of(sendfile(cell->ours, file, &(off_t){0}, 12));
}
static ssize_t by_accept(cell_t *cell) {
    ssize_t connection = result_of(accept(cell->ours, NULL, NULL));
    return connection >= 0 ? waits_keep(cell, (int)connection) : connection;
}
/* With both ends of the pipe blocking: else the call would not wait. */
static ssize_t splice_with_pipe(cell_t *cell, bool outward) {
    int ends[2];
    waits_pipe(cell, ends, outward);
    waits_set_blocking(ends[!outward], true);
    return result_of(outward ? splice(ends[0], NULL, cell->ours, NULL, 4096, 0)
                             : splice(cell->ours, NULL, ends[1], NULL, 4096, 0));
}
static ssize_t by_splice_from(cell_t *cell) {
    return splice_with_pipe(cell, false);
}
static ssize_t by_splice_to(cell_t *cell) {
    return splice_with_pipe(cell, true);
}
static ssize_t by_epoll(cell_t *cell) {
    int epoll = waits_keep(cell, epoll_create1(EPOLL_CLOEXEC));
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, cell->ours, &event);
    return result_of(epoll_wait(epoll, &event, 1, -1));
}

static const way_t ways[] = {
    {"read", READS, 0, by_read},
    {"readv", READS, 0, by_readv},
    {"recv", READS, IS_SOCKET, by_recv},
    {"recvfrom", READS, IS_SOCKET, by_recvfrom},
    {"recvmsg", READS, IS_SOCKET, by_recvmsg},
    {"splice from", READS, IS_STREAM, by_splice_from},
    {"write", WRITES, 0, by_write},
    {"writev", WRITES, 0, by_writev},
    {"send", WRITES, IS_SOCKET, by_send},
    {"sendmsg", WRITES, IS_SOCKET, by_sendmsg},
    {"sendto", SENDS_TO, IS_SOCKET, by_sendto},
    {"sendfile", WRITES, IS_STREAM, by_sendfile},
    {"splice to", WRITES, IS_STREAM, by_splice_to},
    {"accept", ACCEPTS, IS_SOCKET, by_accept},
    {"connect", CONNECTS, IS_SOCKET, by_connect},
    {"poll(POLLIN)", POLLS_IN, 0, by_poll_in},
    {"epoll_wait(EPOLLIN)", POLLS_IN, 0, by_epoll},
    {"poll(POLLOUT)", POLLS_OUT, 0, by_poll_out},
    {"poll(POLLPRI)", POLLS_OTHERS, 0, by_poll_urgent},
    {"poll(0)", POLLS_OTHERS, 0, by_poll_nothing},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

static bool runs_to_its_end(const state_t *state, const way_t *way) {
    bool transfers = way->call == by_read || way->call == by_readv || way->call == by_write ||
                     way->call == by_writev;
    return way->call == by_epoll ||
           (transfers && (state->make == make_event || state->make == make_full_event));
}

static void calls_sleep_until_something_comes(void) {
    waits_table(ways, WAYS, true, BY_EVENT);
}
static void calls_sleep_until_they_are_cancelled(void) {
    waits_table(ways, WAYS, true, BY_CANCEL);
}

/* ---- Odd ends ---- */

static void connect_both(int ends[2]) {
    cell_t cell = {.other = -1};
    make_tcp(&cell);
    ends[0] = cell.ours;
    ends[1] = cell.other;
    waits_set_blocking(ends[0], true);
}

static void *send_the_rest(void *argument) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(send(*(int *)argument, "45678", 5, 0), 5);
    return NULL;
}

BODY(receive_eight) {
    ssize_t (*const calls[])(cell_t *) = {by_read, by_readv, by_recv, by_recvfrom, by_recvmsg};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        int ends[2], least = 8;
        connect_both(ends);
        cell_t cell = {.ours = ends[0]};
        CHECK_EQUAL(setsockopt(ends[0], SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least), 0);
        CHECK_EQUAL(send(ends[1], "123", 3, 0), 3);
        CHECK_EQUAL(haft_io_spawn(send_the_rest, &ends[1]), 0);
        CHECK_EQUAL(calls[i](&cell), 8);
        CHECK_EQUAL(send(ends[1], "123", 3, 0), 3);
        CHECK_EQUAL(recv(ends[0], into, 2, 0), 2);
        close(ends[0]);
        close(ends[1]);
    }
    return NULL;
}

static void a_call_that_may_wait_heeds_the_low_water_mark(void) {
    CHECK_RUNS(receive_eight);
}

BODY(send_at_first) {
    cell_t cell = {.other = -1};
    make_listening(&cell);
    int end = socket(AF_INET, SOCK_STREAM, 0);
    ssize_t sent = result_of(sendto(end, "first", 5, MSG_FASTOPEN,
                                    (const struct sockaddr *)&cell.address, cell.address_size));
    if (sent != -EOPNOTSUPP) { /* the system's setting */
        CHECK_EQUAL(sent, 5);
        int connection = accept(cell.ours, NULL, NULL);
        CHECK_EQUAL(recv(connection, into, sizeof into, 0), 5);
        close(connection);
    }
    close(end);
    waits_unmake(&cell);
    return NULL;
}

static void a_send_that_connects_waits_for_the_connection(void) {
    CHECK_RUNS(send_at_first);
}

BODY(send_nothing) {
    int ends[2], file = check_file_with("");
    CHECK(pipe(ends) == 0);
    CHECK_EQUAL(result_of(sendfile(ends[1], -1, NULL, 0)), -EBADF);
    CHECK_EQUAL(result_of(sendfile(-1, file, NULL, 0)), -EBADF);
    CHECK_EQUAL(result_of(sendfile(ends[1], file, &(off_t){0}, 0)), 0);
    close(ends[0]);
    close(ends[1]);
    close(file);
    return NULL;
}

static void a_sendfile_of_nothing_looks_at_its_descriptors(void) {
    CHECK_RUNS(send_nothing);
}

/* ---- Calls that need not ask for the mode of their socket ---- */

static int plain[2];

BODY(send_three) {
    haft_io_yield();
    CHECK_EQUAL(send(plain[1], "123", 3, 0), 3);
    return NULL;
}
/* Makes a socket that has been waited on, so that its mode is known. */
static void make_plain(void) {
    connect_both(plain);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(haft_io_spawn(send_three, NULL), 0);
        CHECK_EQUAL(i % 2 == 0 ? recv(plain[0], into, sizeof into, 0)
                               : read(plain[0], into, sizeof into),
                    3);
    }
}
static void unmake_plain(void) {
    close(plain[0]);
    close(plain[1]);
}
static void check_reads_at_once(int error) {
    CHECK_EQUAL(result_of(recv(plain[0], into, sizeof into, 0)), -error);
    CHECK_EQUAL(result_of(read(plain[0], into, sizeof into)), -error);
}

static void by_flags(void) {
    CHECK_EQUAL(fcntl(plain[0], F_SETFL, O_NONBLOCK), 0);
}
static void by_ioctl(void) {
    CHECK_EQUAL(ioctl(plain[0], FIONBIO, &(int){1}), 0);
}
static void by_system_call(void) {
    CHECK_EQUAL(syscall(SYS_fcntl, plain[0], F_SETFL, O_NONBLOCK), 0);
}
static void by_another_number(void) {
    int another = dup(plain[0]);
    CHECK_EQUAL(fcntl(another, F_SETFL, O_NONBLOCK), 0);
    close(another);
}
static void by_limit(void) {
    struct timeval limit = {0, 1000};
    CHECK_EQUAL(setsockopt(plain[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
}
BODY(change_modes) {
    void (*const changes[])(void) = {by_flags, by_ioctl, by_system_call, by_another_number,
                                     by_limit};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        make_plain();
        changes[i]();
        check_reads_at_once(EAGAIN);
        unmake_plain();
    }
    return NULL;
}
static void a_change_of_the_mode_of_a_socket_is_seen_by_the_next_read(void) {
    CHECK_RUNS(change_modes);
}

static void close_it(void) {
    close(plain[0]);
}
static void close_it_by_libhaft_io(void) {
    haft_io_close(plain[0]);
}
static void close_it_by_stream(void) {
    fclose(fdopen(plain[0], "r"));
}
static void close_it_by_system_call(void) {
    syscall(SYS_close, plain[0]);
}
static void close_its_range(void) {
    close_range((unsigned)plain[0], (unsigned)plain[0], 0);
}
static void *close_it_with_the_thread(void *argument) {
    close(plain[0]);
    return argument;
}
static void close_it_on_the_blocked_thread(void) {
    haft_io_block_thread(close_it_with_the_thread, NULL);
}
static void leave_it(void) {}
/* The number is that of a socket which does not block, and then of one which does. */
BODY(change_numbers) {
    void (*const closes[])(void) = {close_it,
                                    close_it_by_libhaft_io,
                                    close_it_by_stream,
                                    close_it_by_system_call,
                                    close_its_range,
                                    close_it_on_the_blocked_thread,
                                    leave_it};
    for (size_t i = 0; i < sizeof closes / sizeof closes[0]; i++) {
        make_plain();
        int number = plain[0], other = plain[1];
        closes[i]();
        connect_both(plain);
        waits_set_blocking(plain[0], false);
        if (plain[0] != number) {
            CHECK_EQUAL(dup2(plain[0], number), number);
            close(plain[0]);
            plain[0] = number;
        }
        check_reads_at_once(EAGAIN);
        waits_set_blocking(plain[0], true);
        for (int j = 0; j < 2; j++) {
            CHECK_EQUAL(haft_io_spawn(send_three, NULL), 0);
            CHECK_EQUAL(recv(plain[0], into, sizeof into, 0), 3);
        }
        unmake_plain();
        close(other);
    }
    return NULL;
}
static void a_number_that_is_another_sockets_is_read_as_that(void) {
    CHECK_RUNS(change_numbers);
}

static void *receive_one(void *sum) {
    char byte;
    CHECK_EQUAL(recv(plain[0], &byte, 1, 0), 1);
    *(int *)sum += byte - '0';
    return NULL;
}
BODY(share_a_socket) {
    int sum = 0;
    make_plain();
    haft_io_task_t *readers[3];
    for (int i = 0; i < 3; i++)
        readers[i] = haft_io_async(receive_one, &sum);
    haft_io_yield();
    send_three(NULL);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(haft_io_join(readers[i], NULL), 0);
    CHECK_EQUAL(sum, 1 + 2 + 3);
    unmake_plain();
    return NULL;
}
static void tasks_wait_to_read_one_socket(void) {
    CHECK_RUNS(share_a_socket);
}

BODY(read_when_cancelled) {
    CHECK_EQUAL(send(plain[1], "123", 3, 0), 3);
    haft_io_scope_cancel(haft_io_this_scope());
    CHECK_EQUAL(recv(plain[0], into, sizeof into, 0), 3);
    check_reads_at_once(ECANCELED);
    return NULL;
}
BODY(cancel_reads) {
    make_plain();
    CHECK_EQUAL(haft_io_scope(read_when_cancelled, NULL, NULL), -ECANCELED);
    CHECK_EQUAL(haft_io_spawn(send_three, NULL), 0);
    CHECK_EQUAL(recv(plain[0], into, sizeof into, 0), 3);
    unmake_plain();
    return NULL;
}
static void a_cancelled_task_reads_what_is_there(void) {
    CHECK_RUNS(cancel_reads);
}

enum { MUCH = 8 << 20 };
static char much[MUCH];

static void by_limit_of_sends(void) {
    struct timeval limit = {0, 1000};
    CHECK_EQUAL(setsockopt(plain[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit), 0);
}
static ssize_t write_by_send(void) {
    return send(plain[0], much, MUCH, 0);
}
static ssize_t write_by_write(void) {
    return write(plain[0], much, MUCH);
}
static ssize_t write_by_writev(void) {
    return writev(plain[0], &(struct iovec){much, MUCH}, 1);
}
/* Nobody reads at the other end. */
static ssize_t write_until_full(ssize_t (*by)(void)) {
    ssize_t done;
    while ((done = by()) > 0)
        continue;
    return result_of(done);
}
BODY(change_modes_for_writes) {
    void (*const changes[])(void) = {by_flags, by_ioctl, by_system_call, by_another_number,
                                     by_limit_of_sends};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        make_plain();
        changes[i]();
        CHECK_EQUAL(write_until_full(write_by_send), -EAGAIN);
        CHECK_EQUAL(write_until_full(write_by_write), -EAGAIN);
        CHECK_EQUAL(write_until_full(write_by_writev), -EAGAIN);
        unmake_plain();
    }
    return NULL;
}
static void a_change_of_the_mode_of_a_socket_is_seen_by_the_next_write(void) {
    CHECK_RUNS(change_modes_for_writes);
}

static void *write_much(void *by_send) {
    CHECK_EQUAL(by_send != NULL ? send(plain[0], much, MUCH, MSG_NOSIGNAL)
                                : write(plain[0], much, MUCH),
                MUCH);
    return NULL;
}
BODY(write_more_than_has_room) {
    make_plain();
    waits_set_blocking(plain[1], true);
    haft_io_spawn(write_much, NULL);
    haft_io_spawn(write_much, plain);
    for (size_t left = 2 * (size_t)MUCH; left != 0;) {
        ssize_t got = recv(plain[1], into, sizeof into, 0);
        CHECK(got > 0);
        left -= got > 0 ? (size_t)got : left;
    }
    unmake_plain();
    return NULL;
}
static void tasks_write_more_to_one_socket_than_it_has_room_for(void) {
    CHECK_RUNS(write_more_than_has_room);
}

static int broken_pipes;
static void count_broken_pipe(int number) {
    (void)number;
    broken_pipes++;
}
BODY(write_behind_the_end) {
    make_plain();
    CHECK_EQUAL(send(plain[0], "123", 3, MSG_NOSIGNAL), 3);
    CHECK_EQUAL(shutdown(plain[0], SHUT_WR), 0);
    CHECK_EQUAL(result_of(send(plain[0], "123", 3, MSG_NOSIGNAL)), -EPIPE);
    CHECK_EQUAL(broken_pipes, 0);
    CHECK_EQUAL(result_of(send(plain[0], "123", 3, 0)), -EPIPE);
    CHECK_EQUAL(broken_pipes, 1);
    CHECK_EQUAL(result_of(write(plain[0], "123", 3)), -EPIPE);
    CHECK_EQUAL(broken_pipes, 2);
    unmake_plain();
    return NULL;
}
static void a_write_behind_the_end_sends_the_signal_that_it_should(void) {
    signal(SIGPIPE, count_broken_pipe);
    CHECK_RUNS(write_behind_the_end);
    signal(SIGPIPE, SIG_DFL);
}

BODY(write_when_cancelled) {
    haft_io_scope_cancel(haft_io_this_scope());
    CHECK_EQUAL(send(plain[0], "123", 3, 0), 3);
    CHECK_EQUAL(write(plain[0], "456", 3), 3);
    return NULL;
}
BODY(cancel_writes) {
    make_plain();
    CHECK_EQUAL(haft_io_scope(write_when_cancelled, NULL, NULL), -ECANCELED);
    CHECK_EQUAL(recv(plain[1], into, 6, MSG_WAITALL), 6);
    unmake_plain();
    return NULL;
}
static void a_cancelled_task_writes_where_there_is_room(void) {
    CHECK_RUNS(cancel_writes);
}

int main(void) {
    waits_runs_to_its_end = runs_to_its_end;
    check_backend();
    RUN(calls_sleep_until_something_comes);
    RUN(calls_sleep_until_they_are_cancelled);
    RUN(a_send_that_connects_waits_for_the_connection);
    RUN(a_sendfile_of_nothing_looks_at_its_descriptors);
    RUN(a_change_of_the_mode_of_a_socket_is_seen_by_the_next_read);
    RUN(a_number_that_is_another_sockets_is_read_as_that);
    RUN(tasks_wait_to_read_one_socket);
    RUN(a_cancelled_task_reads_what_is_there);
    RUN(a_change_of_the_mode_of_a_socket_is_seen_by_the_next_write);
    RUN(tasks_write_more_to_one_socket_than_it_has_room_for);
    RUN(a_write_behind_the_end_sends_the_signal_that_it_should);
    RUN(a_cancelled_task_writes_where_there_is_room);
    /* From then on every call asks for the mode of its socket. */
    RUN(a_call_that_may_wait_heeds_the_low_water_mark);
    return check_end();
}
