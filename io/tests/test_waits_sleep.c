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
    return haft_io_read_parts(cell->ours, parts, 2);
}
static ssize_t by_read_lent(cell_t *cell) {
    HAFT_IO_GIVING_BACK const void *bytes = NULL;
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
    return haft_io_write_parts(
        cell->ours, &(struct iovec){(void *)(uintptr_t)bytes_of(cell), size_of(cell)}, 1);
}
static ssize_t by_send(cell_t *cell) {
    return haft_io_send(cell->ours, waits_bytes, 1000, 0);
}
static ssize_t by_send_message(cell_t *cell) {
    struct msghdr message = {.msg_iov = &(struct iovec){waits_bytes, 1000}, .msg_iovlen = 1};
    return haft_io_send_message(cell->ours, &message, 0);
}
static ssize_t by_exchange(cell_t *cell) {
    HAFT_IO_GIVING_BACK const void *bytes = NULL;
    ssize_t done = haft_io_exchange(cell->ours, waits_bytes, 1000, &bytes);
    return done;
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
        return haft_io_wait_for(cell->ours, events_);                                              \
    }
POLLING(in, POLLIN)
POLLING(out, POLLOUT)
POLLING(urgent, POLLPRI)
POLLING(nothing, 0)

static const way_t ways[] = {
    {"read", READS, 0, by_read},
    {"read_parts", READS, 0, by_read_parts},
    {"read_lent", READS, 0, by_read_lent},
    {"receive", READS, IS_SOCKET, by_receive},
    {"receive_from", READS, IS_SOCKET, by_receive_from},
    {"receive_message", READS, IS_SOCKET, by_receive_message},
    {"receive(MSG_ERRQUEUE)", ERRORS, IS_SOCKET, by_receive_errors},
    {"splice from", READS, IS_STREAM, by_splice_from},
    {"write", WRITES, 0, by_write},
    {"write_all", WRITES, 0, by_write_all},
    {"write_parts", WRITES, 0, by_write_parts},
    {"send", WRITES, IS_SOCKET, by_send},
    {"send_message", WRITES, IS_SOCKET, by_send_message},
    {"exchange", WRITES, NEEDS_STREAM, by_exchange},
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

int main(void) {
    check_backend();
    RUN(waits_sleep_until_something_comes);
    RUN(waits_sleep_until_they_are_cancelled);
    RUN(waits_of_what_blocks_sleep_until_their_deadline);
    return check_end();
}
