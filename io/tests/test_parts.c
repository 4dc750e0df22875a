/* SPDX-License-Identifier: MIT */
/*
 * Calls that take several operations, and a descriptor that another task closes between two of
 * them: what is left of the call ends with an error, and the next file of the number is left alone.
 */
#include "check_io.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { SIZE = 8, MUCH = 1 << 20 };
static int ours, theirs;
static int next[2]; /* the first has the number of `ours`, if that was free */
static int parts, replaced_after;

static void make_pair(void) {
    int ends[2];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ours = ends[0];
    theirs = ends[1];
}
static void *replace(void *unused) {
    CHECK_EQUAL(haft_io_close(ours), 0);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, next), 0);
    CHECK_EQUAL(send(next[1], "next", 4, 0), 4);
    return unused;
}
/* Nothing was sent by the next file, and the bytes sent to it are still there. */
static void next_is_left_alone(void) {
    char bytes[SIZE];
    CHECK_EQUAL(recv(next[1], bytes, sizeof bytes, MSG_DONTWAIT), -1);
    CHECK_EQUAL(recv(next[0], bytes, sizeof bytes, MSG_DONTWAIT), 4);
}
static void close_all(void) {
    haft_io_close(next[0]);
    haft_io_close(next[1]);
    haft_io_close(theirs);
}

/* ---- By handlers, after each of which the descriptor may be replaced ---- */

static void end_part(void) {
    if (++parts == replaced_after)
        CHECK_EQUAL(haft_io_join(haft_io_async(replace, NULL), NULL), 0);
}
static size_t at_most_one(size_t size) {
    return size != 0 ? 1 : 0;
}
static ssize_t write_one(void *unused, HAFT_PAYLOAD(haft_io_write) * p) {
    (void)unused;
    ssize_t done = haft_io_write(p->descriptor, p->buffer, at_most_one(p->size));
    end_part();
    return done;
}
static ssize_t writev_one(void *unused, HAFT_PAYLOAD(haft_io_writev) * p) {
    (void)unused;
    size_t i = 0;
    while (i + 1 < p->count && p->parts[i].iov_len == 0)
        i++;
    ssize_t done = haft_io_write(p->descriptor, p->parts[i].iov_base, 1);
    end_part();
    return done;
}
static ssize_t read_one(void *unused, HAFT_PAYLOAD(haft_io_read) * p) {
    (void)unused;
    ssize_t done = haft_io_read(p->descriptor, p->buffer, at_most_one(p->size));
    end_part();
    return done;
}
static ssize_t receive_one(void *unused, HAFT_PAYLOAD(haft_io_receive) * p) {
    (void)unused;
    ssize_t done = haft_io_receive(p->socket, p->buffer, at_most_one(p->size), 0);
    end_part();
    return done;
}
static ssize_t receive_message_of_one(void *unused, HAFT_PAYLOAD(haft_io_receive_message) * p) {
    (void)unused;
    ssize_t done = haft_io_receive(p->socket, p->message->msg_iov->iov_base, 1, 0);
    end_part();
    return done;
}
static int accept_none(void *unused, HAFT_PAYLOAD(haft_io_accept) * p) {
    (void)unused;
    int done = parts < replaced_after ? -ECONNABORTED : haft_io_accept(p->listener);
    end_part();
    return done;
}
HAFT_HANDLER(in_parts, NULL, HAFT_TAIL(haft_io_write, write_one),
             HAFT_TAIL(haft_io_writev, writev_one), HAFT_TAIL(haft_io_read, read_one),
             HAFT_TAIL(haft_io_receive, receive_one),
             HAFT_TAIL(haft_io_receive_message, receive_message_of_one),
             HAFT_TAIL(haft_io_accept, accept_none));

static ssize_t write_all(void) {
    return haft_io_write_all(ours, "12345678", SIZE);
}
static ssize_t write_by_writer(void) {
    char memory[4];
    haft_io_writer_t writer = {.descriptor = ours, .memory = memory, .size = sizeof memory};
    return haft_io_writer_write(&writer, "12345678", SIZE);
}
static ssize_t flush_writer(void) {
    char memory[SIZE];
    haft_io_writer_t writer = {.descriptor = ours, .memory = memory, .size = sizeof memory};
    CHECK_EQUAL(haft_io_writer_write(&writer, "12345678", SIZE), 0);
    return haft_io_writer_flush(&writer);
}
static ssize_t read_all(void) {
    char bytes[SIZE];
    return haft_io_read_all(ours, bytes, sizeof bytes);
}
static ssize_t read_line(void) {
    char memory[100], *line;
    haft_io_reader_t reader = {.descriptor = ours, .memory = memory, .size = sizeof memory};
    return haft_io_reader_line(&reader, &line);
}
/* It returns how much has come. */
static ssize_t receive_all(void) {
    char bytes[SIZE];
    CHECK_EQUAL(haft_io_receive(ours, bytes, sizeof bytes, MSG_WAITALL), replaced_after);
    return -EBADF;
}
static ssize_t receive_message(void) {
    char bytes[SIZE];
    struct iovec part = {bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    CHECK_EQUAL(haft_io_receive_message(ours, &message, MSG_WAITALL), replaced_after);
    return -EBADF;
}
static ssize_t accept_one(void) {
    return haft_io_accept(ours);
}
static ssize_t (*const calls[])(void) = {write_all, write_by_writer, flush_writer,    read_all,
                                         read_line, receive_all,     receive_message, accept_one};
enum { CALLS = sizeof calls / sizeof calls[0] };

static void *call_in_parts(void *index) {
    CHECK_EQUAL(calls[(size_t)index](), -EBADF);
    return NULL;
}
static void replace_after_part(size_t index, int part) {
    make_pair();
    CHECK_EQUAL(send(theirs, "87654321", SIZE, 0), SIZE);
    int number = ours;
    parts = 0;
    replaced_after = part;
    haft_handle(&in_parts, NULL, call_in_parts, (void *)index);
    CHECK_EQUAL(parts, part);
    /* From the second part on the call keeps its file. */
    CHECK(next[0] == number || part != 1);
    next_is_left_alone();
    close_all();
}
BODY(replace_between_parts) {
    for (size_t i = 0; i < CALLS; i++)
        for (int part = 1; part <= 3; part++)
            replace_after_part(i, part);
    return NULL;
}
static void replace_between_parts_on(const haft_io_run_options_t *options) {
    int before = check_descriptors();
    CHECK_EQUAL(haft_io_run_with(options, replace_between_parts, NULL), 0);
    CHECK_EQUAL(check_descriptors(), before);
}
static void a_call_in_parts_has_one_file(void) {
    check_everywhere(replace_between_parts_on);
}

/* ---- A turn that is over ---- */

/* Before an operation that others go before, or between the parts of one call, by how much has been
   done before. */
static char much[MUCH];
static const void *lent;
static ssize_t write_one_byte(void) {
    return haft_io_write(ours, much, 1);
}
static ssize_t write_much(void) {
    return haft_io_write_all(ours, much, MUCH);
}
static ssize_t read_one_byte(void) {
    return haft_io_read(ours, much, 1);
}
static ssize_t read_lent(void) {
    lent = NULL;
    ssize_t done = haft_io_read_lent(ours, &lent);
    haft_io_give_back(lent);
    return done;
}
static ssize_t wait_for_room(void) {
    return haft_io_wait_ready(ours, POLLOUT);
}
static ssize_t (*const beside[])(void) = {write_one_byte, write_much, read_one_byte, read_lent,
                                          wait_for_room};
enum { BESIDE = sizeof beside / sizeof beside[0], WRITE_MUCH = 1, MOST_BEFORE = 80 };
static int sink;
static bool has_begun, is_closed, has_ended;
static ssize_t result;

static void *call_after_others(void *index) {
    has_begun = true;
    result = beside[(size_t)index]();
    /* A call that ended before the close has succeeded. */
    CHECK(result == -EBADF || !is_closed);
    has_ended = true;
    return NULL;
}
static void *do_much_and_call(void *index_and_before) {
    size_t index = (size_t)index_and_before % BESIDE, before = (size_t)index_and_before / BESIDE;
    for (size_t i = 0; i < before; i++)
        CHECK_EQUAL(haft_io_write(sink, "x", 1), 1);
    return call_after_others((void *)index);
}
static void replace_beside(size_t index, size_t before) {
    make_pair();
    has_begun = is_closed = has_ended = false;
    haft_io_task_t *caller = haft_io_async(do_much_and_call, (void *)(before * BESIDE + index));
    while (!has_begun)
        haft_io_yield();
    is_closed = !has_ended;
    replace(NULL);
    CHECK_EQUAL(haft_io_join(caller, NULL), 0);
    next_is_left_alone();
    close_all();
}
BODY(replace_while_others_go_first) {
    sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (size_t index = 0; index < BESIDE; index++)
        for (size_t before = 0; before < MOST_BEFORE; before++)
            replace_beside(index, before);
    haft_io_close(sink);
    return NULL;
}
static void replace_while_others_go_first_on(const haft_io_run_options_t *options) {
    if (options->threads == 1)
        CHECK_EQUAL(haft_io_run_with(options, replace_while_others_go_first, NULL), 0);
}
static void an_operation_that_others_go_before_has_the_file_that_it_was_given(void) {
    check_everywhere(replace_while_others_go_first_on);
}

/* ---- A part that is done, and whose task has not gone on ---- */

/* Several tasks that the same poll has woken: io_uring sends for them. */
static int wakers[2][2];
static char sent[64];
static void *call_when_woken(void *index) {
    CHECK_EQUAL(haft_io_read(wakers[0][0], sent, 1), 1);
    return call_after_others(index);
}
static void *replace_when_woken(void *yields) {
    CHECK_EQUAL(haft_io_read(wakers[1][0], sent, 1), 1);
    while (!has_begun)
        haft_io_yield();
    for (intptr_t i = 0; i < (intptr_t)yields; i++) {
        ssize_t got = recv(theirs, sent, sizeof sent, MSG_DONTWAIT);
        CHECK(got > 0 || errno == EAGAIN);
        haft_io_yield();
    }
    is_closed = !has_ended;
    return replace(NULL);
}
static void replace_after_yields(intptr_t yields) {
    make_pair();
    has_begun = is_closed = has_ended = false;
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, wakers[i]), 0);
    CHECK_EQUAL(haft_io_write(ours, much, 1), 1); /* so its kind is known */
    haft_io_task_t *tasks[] = {haft_io_async(call_when_woken, (void *)WRITE_MUCH),
                               haft_io_async(replace_when_woken, (void *)yields)};
    haft_io_yield();
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(send(wakers[i][1], "x", 1, 0), 1);
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(haft_io_join(tasks[i], NULL), 0);
    next_is_left_alone();
    close_all();
    for (int i = 0; i < 4; i++)
        haft_io_close(wakers[i / 2][i % 2]);
}
BODY(replace_after_each_part) {
    enum { MOST_YIELDS = 150 };
    for (intptr_t yields = 0; yields < MOST_YIELDS; yields++)
        replace_after_yields(yields);
    return NULL;
}
static void replace_after_each_part_on(const haft_io_run_options_t *options) {
    if (options->threads == 1)
        CHECK_EQUAL(haft_io_run_with(options, replace_after_each_part, NULL), 0);
}
static void what_the_kernel_has_sent_in_part_is_not_sent_on_to_the_next_file(void) {
    check_everywhere(replace_after_each_part_on);
}

/* ---- A pause between two tries ---- */

/* Datagrams for a queue that is full: what is to be sent is tried again after a pause. */
static struct sockaddr_un place = {.sun_family = AF_UNIX};
static socklen_t place_size;
static void make_place(void) {
    socklen_t size = sizeof place;
    ours = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    theirs = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK_EQUAL(bind(theirs, (struct sockaddr *)&place, sizeof place.sun_family), 0);
    CHECK_EQUAL(getsockname(theirs, (struct sockaddr *)&place, &size), 0);
    place_size = size;
}
static ssize_t send_to_full(void) {
    return haft_io_send_to(ours, "x", 1, 0, (struct sockaddr *)&place, place_size);
}
static ssize_t send_message_to_full(void) {
    struct iovec part = {"x", 1};
    struct msghdr message = {
        .msg_name = &place, .msg_namelen = place_size, .msg_iov = &part, .msg_iovlen = 1};
    return haft_io_send_message(ours, &message, 0);
}
static void *send_until_closed(void *call) {
    ssize_t (*const *send_one)(void) = call;
    ssize_t done;
    while ((done = (*send_one)()) > 0)
        continue;
    CHECK_EQUAL(done, -EBADF);
    return NULL;
}
static void replace_in_a_pause(ssize_t (*send_one)(void)) {
    make_place();
    haft_io_task_t *sender = haft_io_async(send_until_closed, &send_one);
    haft_io_sleep(10 * HAFT_IO_MILLISECOND);
    int old = ours;
    CHECK_EQUAL(haft_io_close(old), 0);
    next[0] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK_EQUAL(next[0], old);
    char byte;
    while (recv(theirs, &byte, 1, MSG_DONTWAIT) == 1)
        continue;
    CHECK_EQUAL(haft_io_join(sender, NULL), 0);
    CHECK_EQUAL(recv(theirs, &byte, 1, MSG_DONTWAIT), -1);
    haft_io_close(next[0]);
    haft_io_close(theirs);
}
BODY(replace_in_pauses) {
    replace_in_a_pause(send_to_full);
    replace_in_a_pause(send_message_to_full);
    return NULL;
}
static void replace_in_pauses_on(const haft_io_run_options_t *options) {
    if (options->threads == 1)
        CHECK_EQUAL(haft_io_run_with(options, replace_in_pauses, NULL), 0);
}
static void what_waits_for_a_queue_is_not_sent_by_the_next_file(void) {
    check_everywhere(replace_in_pauses_on);
}

/* ---- Both directions at once ---- */

/* A call in parts has the number to its end: reads meanwhile go on, and a close ends both. */
static void *read_lent_to_the_end(void *expected) {
    ssize_t done;
    while ((done = read_lent()) > 0)
        continue;
    CHECK_EQUAL(done, (intptr_t)expected);
    return NULL;
}
static void *write_to_the_end(void *expected) {
    CHECK_EQUAL(haft_io_write_all(ours, much, MUCH), (intptr_t)expected);
    return NULL;
}
static void make_connection(void) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0), small = 1;
    theirs = haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    ours = haft_io_accept(listener);
    CHECK_EQUAL(setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    haft_io_close(listener);
}
static void read_beside_parts_to(size_t end) {
    static char bytes[4096];
    bool closes = end < MUCH;
    void *expected = (void *)(intptr_t)(closes ? -EBADF : 0);
    make_connection();
    haft_io_task_t *reader = haft_io_async(read_lent_to_the_end, expected);
    haft_io_task_t *writer = haft_io_async(write_to_the_end, expected);
    for (size_t got = 0; got < end;) {
        ssize_t more = haft_io_read(theirs, bytes, sizeof bytes);
        CHECK(more > 0);
        got += (size_t)more;
        CHECK_EQUAL(haft_io_write_all(theirs, "x", 1), 0);
    }
    if (closes)
        CHECK_EQUAL(haft_io_close(ours), 0);
    else
        CHECK_EQUAL(haft_io_shutdown(theirs, SHUT_WR), 0);
    CHECK_EQUAL(haft_io_join(reader, NULL), 0);
    CHECK_EQUAL(haft_io_join(writer, NULL), 0);
    if (!closes)
        haft_io_close(ours);
    haft_io_close(theirs);
}
BODY(read_beside_parts) {
    read_beside_parts_to(MUCH);
    read_beside_parts_to(MUCH / 2);
    return NULL;
}
static void read_beside_parts_on(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, read_beside_parts, NULL), 0);
}
static void what_comes_is_read_beside_a_call_in_parts(void) {
    check_everywhere(read_beside_parts_on);
}

int main(void) {
    RUN(a_call_in_parts_has_one_file);
    RUN(an_operation_that_others_go_before_has_the_file_that_it_was_given);
    RUN(what_the_kernel_has_sent_in_part_is_not_sent_on_to_the_next_file);
    RUN(what_waits_for_a_queue_is_not_sent_by_the_next_file);
    RUN(what_comes_is_read_beside_a_call_in_parts);
    return check_end();
}
