/* SPDX-License-Identifier: MIT */
/* A wait takes no processor time, whatever the state of the descriptor, and ends when it should. */
#define _GNU_SOURCE
#include "waits.h"

#define NEEDS_STREAM (IS_SOCKET | IS_STREAM)

static size_t size_of(const cell_t *cell) {
    return cell->state->kind == IS_NUMBER ? 8 : 4096;
}
static const void *bytes_of(const cell_t *cell) {
    static const uint64_t one = 1;
    return cell->state->kind == IS_NUMBER ? (const void *)&one : waits_bytes;
}

/* ---- Reading ---- */

static char into[4096];

static ssize_t by_read(cell_t *cell) {
    return haft_io_read(cell->ours, into, sizeof into);
}
static ssize_t by_read_parts(cell_t *cell) {
    struct iovec parts[] = {{into, 8}, {into + 8, 8}};
    return haft_io_readv(cell->ours, parts, 2);
}
static ssize_t by_read_lent(cell_t *cell) {
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    return haft_io_read_lent(cell->ours, &bytes);
}
static ssize_t by_receive(cell_t *cell) {
    return haft_io_receive(cell->ours, into, sizeof into, 0);
}
static ssize_t by_receive_from(cell_t *cell) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    return haft_io_receive_from(cell->ours, into, sizeof into, 0, (struct sockaddr *)&address,
                                &size);
}
static ssize_t by_receive_message(cell_t *cell) {
    struct msghdr message = {.msg_iov = &(struct iovec){into, sizeof into}, .msg_iovlen = 1};
    return haft_io_receive_message(cell->ours, &message, 0);
}
static ssize_t by_receive_errors(cell_t *cell) {
    return haft_io_receive(cell->ours, into, sizeof into, MSG_ERRQUEUE);
}
static ssize_t by_splice_from(cell_t *cell) {
    int ends[2];
    waits_pipe(cell, ends, false);
    return haft_io_splice(cell->ours, ends[1], 4096);
}

/* ---- Writing ---- */

static ssize_t by_write(cell_t *cell) {
    return haft_io_write(cell->ours, bytes_of(cell), size_of(cell));
}
static ssize_t by_write_all(cell_t *cell) {
    return haft_io_write_all(cell->ours, bytes_of(cell), size_of(cell));
}
static ssize_t by_write_parts(cell_t *cell) {
    return haft_io_writev(cell->ours,
                          &(struct iovec){(void *)(uintptr_t)bytes_of(cell), size_of(cell)}, 1);
}
static ssize_t by_send(cell_t *cell) {
    return haft_io_send(cell->ours, waits_bytes, 1000, 0);
}
static ssize_t by_send_message(cell_t *cell) {
    struct msghdr message = {.msg_iov = &(struct iovec){waits_bytes, 1000}, .msg_iovlen = 1};
    return haft_io_send_message(cell->ours, &message, 0);
}
static ssize_t by_send_to(cell_t *cell) {
    return haft_io_send_to(cell->ours, waits_bytes, 1, 0, (const struct sockaddr *)&cell->address,
                           cell->address_size);
}
static ssize_t by_send_message_to(cell_t *cell) {
    struct msghdr message = {.msg_name = &cell->address,
                             .msg_namelen = cell->address_size,
                             .msg_iov = &(struct iovec){waits_bytes, 1},
                             .msg_iovlen = 1};
    return haft_io_send_message(cell->ours, &message, 0);
}
static ssize_t by_send_file(cell_t *cell) {
    int file = waits_keep(cell, check_file_with("what is sent"));
    int64_t offset = 0;
    return haft_io_send_file(cell->ours, file, &offset, 12);
}
static ssize_t by_splice_to(cell_t *cell) {
    int ends[2];
    waits_pipe(cell, ends, true);
    return haft_io_splice(ends[0], cell->ours, 4096);
}

/* ---- Others ---- */

static ssize_t by_accept(cell_t *cell) {
    int connection = haft_io_accept(cell->ours);
    return connection >= 0 ? waits_keep(cell, connection) : connection;
}
static ssize_t by_connect(cell_t *cell) {
    return haft_io_connect(cell->ours, (const struct sockaddr *)&cell->address, cell->address_size);
}

#define POLLING(name, events_)                                                                     \
    static ssize_t by_poll_##name(cell_t *cell) {                                                  \
        return haft_io_poll(&(struct pollfd){cell->ours, events_, 0}, 1, HAFT_IO_FOREVER);         \
    }                                                                                              \
    static ssize_t by_wait_for_##name(cell_t *cell) {                                              \
        return haft_io_wait_ready(cell->ours, events_);                                            \
    }
POLLING(in, POLLIN)
POLLING(out, POLLOUT)
POLLING(urgent, POLLPRI)
POLLING(nothing, 0)

static const way_t ways[] = {
    {"read", READS, 0, by_read},
    {"readv", READS, 0, by_read_parts},
    {"read_lent", READS, 0, by_read_lent},
    {"receive", READS, IS_SOCKET, by_receive},
    {"receive_from", READS, IS_SOCKET, by_receive_from},
    {"receive_message", READS, IS_SOCKET, by_receive_message},
    {"receive(MSG_ERRQUEUE)", ERRORS, IS_SOCKET, by_receive_errors},
    {"splice from", READS, IS_STREAM, by_splice_from},
    {"write", WRITES, 0, by_write},
    {"write_all", WRITES, 0, by_write_all},
    {"writev", WRITES, 0, by_write_parts},
    {"send", WRITES, IS_SOCKET, by_send},
    {"send_message", WRITES, IS_SOCKET, by_send_message},
    {"send_to", SENDS_TO, IS_SOCKET, by_send_to},
    {"send_message to an address", SENDS_TO, IS_SOCKET, by_send_message_to},
    {"send_file", WRITES, NEEDS_STREAM, by_send_file},
    {"splice to", WRITES, NEEDS_STREAM, by_splice_to},
    {"accept", ACCEPTS, IS_SOCKET, by_accept},
    {"connect", CONNECTS, IS_SOCKET, by_connect},
    {"poll(POLLIN)", POLLS_IN, 0, by_poll_in},
    {"wait_for(POLLIN)", POLLS_IN, 0, by_wait_for_in},
    {"poll(POLLOUT)", POLLS_OUT, 0, by_poll_out},
    {"wait_for(POLLOUT)", POLLS_OUT, 0, by_wait_for_out},
    {"poll(POLLPRI)", POLLS_OTHERS, 0, by_poll_urgent},
    {"wait_for(POLLPRI)", POLLS_OTHERS, 0, by_wait_for_urgent},
    {"poll(0)", POLLS_OTHERS, 0, by_poll_nothing},
    {"wait_for(0)", POLLS_OTHERS, 0, by_wait_for_nothing},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void waits_sleep_until_something_comes(void) {
    waits_table(ways, WAYS, false, BY_EVENT);
}
static void waits_sleep_until_they_are_cancelled(void) {
    waits_table(ways, WAYS, false, BY_CANCEL);
}
static void waits_of_what_blocks_sleep_until_their_deadline(void) {
    waits_table(ways, WAYS, true, BY_DEADLINE);
}

/* ---- Beside many others ---- */

enum { MANY = 8192 }; /* MOST_ASKED in uring.c */

static void check_runs_with(void *(*main)(void *), void *argument) {
    CHECK_EQUAL(haft_io_run(main, argument), 0);
}

static void waits_sleep_and_end_beside_many_others(void) {
    waits_beside = MANY;
    waits_table(ways, WAYS, false, BY_EVENT);
    waits_beside = 0;
}

/* How many of the process's descriptors for epoll watch this one. */
static int watched_by(int descriptor) {
    char name[64], line[256], of_this[32];
    int count = 0;
    snprintf(of_this, sizeof of_this, "tfd: %8d ", descriptor);
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "/proc/self/fdinfo/%d", i);
        FILE *file = fopen(name, "r");
        while (file != NULL && fgets(line, sizeof line, file) != NULL)
            count += strncmp(line, of_this, strlen(of_this)) == 0;
        if (file != NULL)
            fclose(file);
    }
    return count;
}

static void *wait_for_one(void *argument) {
    const cell_t *cell = argument;
    CHECK_EQUAL(haft_io_wait_ready(cell->ours, POLLIN), -EBADF);
    return NULL;
}
static void *wait_beside_many(void *argument) {
    cell_t *cells = argument;
    for (int i = 0; i < MANY; i++)
        CHECK_EQUAL(haft_io_spawn(wait_for_one, &cells[0]), 0);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_spawn(wait_for_one, &cells[1]), 0);
    for (int i = 0; i < 1000 && watched_by(cells[1].ours) == 0; i++)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(watched_by(cells[1].ours), 1);
    haft_io_close(cells[0].ours);
    haft_io_close(cells[1].ours);
    return NULL;
}

/* To cancel a request costs the kernel the more the more it was asked for. */
static void beside_many_waits_the_kernel_is_asked_for_no_more_requests(void) {
    cell_t cells[2] = {{.other = -1}, {.other = -1}};
    make_empty_pipe(&cells[0]);
    make_empty_pipe(&cells[1]);
    check_runs_with(wait_beside_many, cells);
    close(cells[0].other);
    close(cells[1].other);
}

/* ---- What was shut down before ---- */

typedef struct ending {
    int ends[2];
    ssize_t (*call)(cell_t *cell);
} ending_t;

static void *read_at_the_end(void *argument) {
    const ending_t *ending = argument;
    cell_t cell = {.ours = ending->ends[0]};
    CHECK_EQUAL(ending->call(&cell), 1);
    shutdown(ending->ends[0], SHUT_RD);
    haft_io_sleep(HAFT_IO_MILLISECOND); /* of that nobody is told */
    CHECK_EQUAL(ending->call(&cell), 0);
    CHECK_EQUAL(ending->call(&cell), 0);
    return NULL;
}
static void *send_one(void *argument) {
    const ending_t *ending = argument;
    CHECK_EQUAL(haft_io_spawn(read_at_the_end, argument), 0);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_write(ending->ends[1], "1", 1), 1);
    return NULL;
}

static void no_datagram_comes_after_a_socket_was_shut_down(void) {
    for (size_t w = 0; w < WAYS; w++)
        for (int family = 0; family < 2 && ways[w].waits == READS && ways[w].call != by_splice_from;
             family++) {
            cell_t cell = {.other = -1};
            (family == 0 ? make_udp : make_unix_datagrams)(&cell);
            ending_t ending = {{cell.ours, cell.other}, ways[w].call};
            check_runs_with(send_one, &ending);
            waits_unmake(&cell);
        }
}

static void *accept_at_the_end(void *argument) {
    const cell_t *cell = argument;
    CHECK_EQUAL(haft_io_accept(cell->ours), -EINVAL);
    return NULL;
}

static void a_listener_that_was_shut_down_accepts_nobody(void) {
    for (int i = 0; i < 4; i++) {
        cell_t cell = {.other = -1};
        (i % 2 == 0 ? make_listening : make_listening_unix)(&cell);
        waits_set_blocking(cell.ours, i / 2 != 0);
        shutdown(cell.ours, SHUT_RD);
        check_runs_with(accept_at_the_end, &cell);
        waits_unmake(&cell);
    }
}

/* ---- What cannot be done in any state ---- */

static void *write_to_numbers(void *unused) {
    struct iovec parts[] = {{waits_bytes, 4}, {waits_bytes + 4, 8}};
    for (int i = 0; i < 2; i++) {
        cell_t event = {.other = -1}, full = {.other = -1}, timer = {.other = -1};
        make_event(&event);
        make_full_event(&full);
        make_timer(&timer);
        waits_set_blocking(event.ours, i == 0);
        waits_set_blocking(full.ours, i == 0);
        waits_set_blocking(timer.ours, i == 0);
        CHECK_EQUAL(haft_io_read(event.ours, into, 7), -EINVAL);
        CHECK_EQUAL(haft_io_readv(event.ours, parts, 1), -EINVAL);
        CHECK_EQUAL(haft_io_write(full.ours, waits_bytes, 0), -EINVAL);
        CHECK_EQUAL(haft_io_write(full.ours, waits_bytes, 7), -EINVAL);
        CHECK_EQUAL(haft_io_writev(full.ours, parts, 2), -EINVAL);
        CHECK_EQUAL(haft_io_read(timer.ours, into, 7), -EINVAL);
        CHECK_EQUAL(haft_io_write(timer.ours, waits_bytes, 8), -EINVAL);
        CHECK_EQUAL(haft_io_writev(timer.ours, &parts[1], 1), -EINVAL);
        waits_unmake(&event);
        waits_unmake(&full);
        waits_unmake(&timer);
    }
    return unused;
}

static void events_and_timers_refuse_wrong_sizes_at_once(void) {
    check_runs_with(write_to_numbers, NULL);
    write_to_numbers(NULL);
}

/* ---- A connection that begins with bytes ---- */

static void *send_at_first(void *argument) {
    cell_t *cell = argument;
    const struct sockaddr *address = (const struct sockaddr *)&cell->address;
    char got[8];
    for (int i = 0; i < 4; i++) {
        int end = socket(AF_INET, SOCK_STREAM | (i % 2 == 0 ? SOCK_NONBLOCK : 0), 0);
        struct msghdr message = {.msg_name = &cell->address,
                                 .msg_namelen = cell->address_size,
                                 .msg_iov = &(struct iovec){waits_bytes, 5},
                                 .msg_iovlen = 1};
        ssize_t sent = i / 2 == 0 ? haft_io_send_to(end, waits_bytes, 5, MSG_FASTOPEN, address,
                                                    cell->address_size)
                                  : haft_io_send_message(end, &message, MSG_FASTOPEN);
        if (sent != -EOPNOTSUPP) { /* the system's setting */
            CHECK_EQUAL(sent, 5);
            int connection = haft_io_accept(cell->ours);
            CHECK_EQUAL(haft_io_receive(connection, got, sizeof got, 0), 5);
            haft_io_close(connection);
        }
        haft_io_close(end);
    }
    return NULL;
}

static void a_send_that_connects_waits_for_the_connection(void) {
    cell_t cell = {.other = -1};
    make_listening(&cell);
    check_runs_with(send_at_first, &cell);
    send_at_first(&cell);
    waits_unmake(&cell);
}

/* ---- To a pipe, from what may have nothing ---- */

static void *send_to_pipes(void *argument) {
    (void)argument;
    int from[2], to[2];
    for (int i = 0; i < 2; i++) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | (i == 0 ? SOCK_NONBLOCK : 0), 0, from) == 0);
        CHECK(pipe2(to, 0) == 0);
        if (i == 0)
            CHECK_EQUAL(haft_io_send_file(to[1], from[0], NULL, 10), -EAGAIN);
        CHECK_EQUAL(write(from[1], "some", 4), 4);
        CHECK_EQUAL(haft_io_send_file(to[1], from[0], NULL, 10), 4);
        for (int j = 0; j < 2; j++) {
            haft_io_close(from[j]);
            haft_io_close(to[j]);
        }
    }
    return NULL;
}

static void what_does_not_block_is_not_waited_for_by_send_file(void) {
    check_runs_with(send_to_pipes, NULL);
    send_to_pipes(NULL);
}

int main(void) {
    check_backend();
    RUN(waits_sleep_until_something_comes);
    RUN(waits_sleep_until_they_are_cancelled);
    RUN(waits_of_what_blocks_sleep_until_their_deadline);
    if (check_bare()) { /* the thread sanitizer follows 8,128 fibers at most; Valgrind is slow */
        RUN(waits_sleep_and_end_beside_many_others);
        RUN(beside_many_waits_the_kernel_is_asked_for_no_more_requests);
    }
    RUN(no_datagram_comes_after_a_socket_was_shut_down);
    RUN(a_listener_that_was_shut_down_accepts_nobody);
    RUN(events_and_timers_refuse_wrong_sizes_at_once);
    RUN(what_does_not_block_is_not_waited_for_by_send_file);
    RUN(a_send_that_connects_waits_for_the_connection);
    return check_end();
}
