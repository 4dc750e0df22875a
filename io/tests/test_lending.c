/* SPDX-License-Identifier: MIT */
/* Reading into memory that is lent, also where the kernel receives more than was asked for
   (io_uring): no byte is lost or changes its place, no memory stays with the library. Streams at
   random are in test_bytes.c. */
#define _GNU_SOURCE
#include "check_io.h"

#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static const haft_io_run_options_t *options;

/* ---- A connection, whose other end writes at once ---- */

static int ends[2]; /* [0] is read */
static _Atomic int putting;

static void connect_ends(void) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    ends[1] = haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    ends[0] = haft_io_accept(listener);
    CHECK(ends[0] >= 0 && ends[1] >= 0);
    haft_io_close(listener);
}
static void close_ends(void) {
    while (putting != 0)
        haft_io_yield();
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(haft_io_close(ends[i]), 0);
}
static void put(const char *text) {
    CHECK_EQUAL(send(ends[1], text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}
static void check_lent(const void **bytes, const char *text) {
    ssize_t size = haft_io_read_lent(ends[0], bytes);
    CHECK_EQUAL(size, (ssize_t)strlen(text));
    CHECK(size > 0 && memcmp(*bytes, text, (size_t)size) == 0);
}
static void *put_later(void *text) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    put(text);
    putting--;
    return NULL;
}
static void put_soon(const char *text) {
    putting++;
    haft_io_spawn(put_later, (void *)(uintptr_t)text);
}
/* From now on the kernel gives what comes by itself, if it can. */
static void read_first(void) {
    const void *bytes = NULL;
    put_soon("first");
    check_lent(&bytes, "first");
    haft_io_give_back(bytes);
}
/* And has done so. */
static void let_arrive(const char *text) {
    put(text);
    struct pollfd entry = {ends[0], POLLIN, 0};
    poll(&entry, 1, 1);
    for (int i = 0; i < 3; i++)
        haft_io_sleep(HAFT_IO_MILLISECOND / 4);
}

/* ---- What is read ---- */

BODY(read_until_end) {
    connect_ends();
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    put("one");
    check_lent(&bytes, "one");
    put_soon("two");
    check_lent(&bytes, "two");
    put_soon("three");
    check_lent(&bytes, "three");
    shutdown(ends[1], SHUT_WR);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(haft_io_read_lent(ends[0], &bytes), 0);
        CHECK(bytes == NULL);
    }
    close_ends();
    return NULL;
}
static void bytes_come_in_memory_that_is_lent_until_the_end(void) {
    CHECK_EQUAL(haft_io_run_with(options, read_until_end, NULL), 0);
}

BODY(keep_some) {
    enum { KEPT = 20 };
    const void *kept[KEPT];
    connect_ends();
    read_first();
    for (int i = 0; i < KEPT; i++) {
        char text[] = {(char)('a' + i), 0};
        kept[i] = NULL;
        let_arrive(text);
        check_lent(&kept[i], text);
    }
    close_ends();
    for (int i = 0; i < KEPT; i++) {
        CHECK_EQUAL(*(const char *)kept[i], 'a' + i);
        haft_io_give_back(kept[i]);
    }
    return NULL;
}
static void memory_that_is_kept_stays_as_it_is(void) {
    CHECK_EQUAL(haft_io_run_with(options, keep_some, NULL), 0);
}

static const void *brought_out;
BODY(bring_one_out) {
    connect_ends();
    read_first();
    put("kept");
    check_lent(&brought_out, "kept");
    close_ends();
    return NULL;
}
static void *give_back_there(void *bytes) {
    haft_io_give_back(bytes);
    return NULL;
}
static void memory_may_outlive_the_run_and_be_given_back_on_any_thread(void) {
    CHECK_EQUAL(haft_io_run_with(options, bring_one_out, NULL), 0);
    CHECK(memcmp(brought_out, "kept", 4) == 0);
    pthread_t other;
    CHECK_EQUAL(pthread_create(&other, NULL, give_back_there, (void *)(uintptr_t)brought_out), 0);
    pthread_join(other, NULL);
    brought_out = NULL;
}

/* ---- Another way to read ---- */

BODY(read_in_other_ways) {
    char buffer[16];
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    struct iovec parts[2] = {{buffer, 2}, {buffer + 2, 3}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    connect_ends();
    read_first();

    let_arrive("0123456789");
    CHECK_EQUAL(haft_io_receive(ends[0], buffer, 4, MSG_PEEK), 4);
    CHECK(memcmp(buffer, "0123", 4) == 0);
    CHECK_EQUAL(haft_io_read(ends[0], buffer, 1), 1);
    CHECK_EQUAL(buffer[0], '0');
    CHECK_EQUAL(haft_io_readv(ends[0], parts, 2), 5);
    CHECK(memcmp(buffer, "12345", 5) == 0);
    check_lent(&bytes, "6789");

    read_first();
    let_arrive("abc");
    let_arrive("def");
    CHECK_EQUAL(haft_io_receive_message(ends[0], &message, MSG_PEEK), 5);
    CHECK(memcmp(buffer, "abcde", 5) == 0);
    CHECK_EQUAL(haft_io_receive_message(ends[0], &message, 0), 5);
    CHECK(memcmp(buffer, "abcde", 5) == 0);
    check_lent(&bytes, "f");

    read_first();
    let_arrive("ghi");
    put_soon("jk");
    CHECK_EQUAL(haft_io_receive(ends[0], buffer, 5, MSG_WAITALL), 5);
    CHECK(memcmp(buffer, "ghijk", 5) == 0);

    read_first();
    let_arrive("l");
    CHECK_EQUAL(haft_io_read(ends[0], buffer, 0), 0);
    CHECK_EQUAL(haft_io_read(ends[0], buffer, sizeof buffer), 1);
    shutdown(ends[1], SHUT_WR);
    CHECK_EQUAL(haft_io_read(ends[0], buffer, sizeof buffer), 0);
    close_ends();
    return NULL;
}
static void every_way_to_read_goes_on_where_the_last_one_ended(void) {
    CHECK_EQUAL(haft_io_run_with(options, read_in_other_ways, NULL), 0);
}

BODY(poll_before_reading) {
    char byte;
    connect_ends();
    for (int i = 0; i < 4; i++) {
        read_first();
        let_arrive("x");
        struct pollfd entry = {ends[0], POLLIN, 0};
        if (i % 2 == 0)
            CHECK_EQUAL(haft_io_wait_ready(ends[0], POLLIN), POLLIN);
        else
            CHECK_EQUAL(haft_io_poll(&entry, 1, HAFT_IO_FOREVER), 1);
        CHECK_EQUAL(haft_io_read(ends[0], &byte, 1), 1);
        CHECK_EQUAL(haft_io_poll(&entry, 1, 0), 0);
        put_soon("y");
        CHECK_EQUAL(haft_io_poll(&entry, 1, HAFT_IO_FOREVER), 1);
        CHECK_EQUAL(haft_io_read(ends[0], &byte, 1), 1);
        CHECK_EQUAL(byte, 'y');
    }
    close_ends();
    return NULL;
}

BODY(poll_for_several_events) {
    char byte;
    struct pollfd entry = {.events = POLLRDNORM | POLLOUT};
    connect_ends();
    entry.fd = ends[0];
    for (int i = 0; i < 2; i++) {
        read_first();
        let_arrive("x");
        if (i == 0)
            CHECK_EQUAL(haft_io_wait_ready(ends[0], POLLRDNORM), POLLRDNORM);
        CHECK_EQUAL(haft_io_wait_ready(ends[0], POLLIN | POLLOUT), POLLIN | POLLOUT);
        CHECK_EQUAL(haft_io_poll(&entry, 1, haft_io_now() + HAFT_IO_SECOND), 1);
        CHECK_EQUAL(entry.revents, POLLRDNORM | POLLOUT);
        CHECK_EQUAL(haft_io_read(ends[0], &byte, 1), 1);
    }
    close_ends();
    return NULL;
}
static void a_poll_tells_of_all_events_that_were_asked_for(void) {
    CHECK_EQUAL(haft_io_run_with(options, poll_for_several_events, NULL), 0);
}

/* ---- Tasks that wait for something else than bytes ---- */

static void *wait_for_the_end(void *unused) {
    (void)unused;
    return check_number(haft_io_wait_ready(ends[0], POLLRDHUP));
}
BODY(read_beside_a_watcher) {
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    void *events;
    char buffer[8];
    connect_ends();
    read_first();
    put_soon("one");
    haft_io_task_t *watcher = haft_io_async(wait_for_the_end, NULL);
    check_lent(&bytes, "one");
    let_arrive("two");
    CHECK_EQUAL(haft_io_read(ends[0], buffer, sizeof buffer), 3);
    CHECK(memcmp(buffer, "two", 3) == 0);
    put_soon("three");
    check_lent(&bytes, "three");
    shutdown(ends[1], SHUT_WR);
    CHECK_EQUAL(haft_io_join(watcher, &events), 0);
    CHECK((intptr_t)events > 0 && ((intptr_t)events & POLLRDHUP) != 0);
    close_ends();
    return NULL;
}
static void who_waits_for_the_end_is_not_taken_for_a_reader(void) {
    CHECK_EQUAL(haft_io_run_with(options, read_beside_a_watcher, NULL), 0);
}

/* ---- Flags and arguments ---- */

BODY(read_without_waiting) {
    char buffer[8];
    struct msghdr message = {.msg_iov = &(struct iovec){buffer, 3}, .msg_iovlen = 1};
    connect_ends();
    CHECK_EQUAL(haft_io_receive(ends[0], buffer, sizeof buffer, MSG_DONTWAIT), -EAGAIN);
    read_first();
    CHECK_EQUAL(haft_io_receive(ends[0], buffer, sizeof buffer, MSG_DONTWAIT), -EAGAIN);
    read_first();
    let_arrive("arrived");
    CHECK_EQUAL(haft_io_receive(ends[0], buffer, 4, MSG_DONTWAIT), 4);
    CHECK_EQUAL(haft_io_receive_message(ends[0], &message, MSG_DONTWAIT), 3);
    CHECK_EQUAL(haft_io_receive_message(ends[0], &message, MSG_DONTWAIT), -EAGAIN);
    close_ends();
    return NULL;
}
static void who_does_not_want_to_wait_is_told_that_there_is_nothing(void) {
    CHECK_EQUAL(haft_io_run_with(options, read_without_waiting, NULL), 0);
}

BODY(read_to_nowhere) {
    void *volatile nowhere = NULL;
    char bytes[8];
    struct iovec parts[2] = {{nowhere, 3}, {bytes, 2}};
    struct iovec *many = calloc(2000, sizeof *many);
    connect_ends();
    read_first();
    let_arrive("arrived");
    CHECK_EQUAL(haft_io_read(ends[0], nowhere, 10), -EFAULT);
    CHECK_EQUAL(haft_io_readv(ends[0], nowhere, 1), -EFAULT);
    CHECK_EQUAL(haft_io_readv(ends[0], parts, 2), -EFAULT);
    CHECK_EQUAL(haft_io_readv(ends[0], many, 2000), -EINVAL);
    CHECK_EQUAL(haft_io_receive_message(ends[0], nowhere, 0), -EFAULT);
    CHECK_EQUAL(haft_io_receive(ends[0], nowhere, 3, MSG_TRUNC), 3); /* TCP passes over these */
    CHECK_EQUAL(haft_io_read(ends[0], bytes, sizeof bytes), 4);
    CHECK(memcmp(bytes, "ived", 4) == 0);
    free(many);
    close_ends();
    return NULL;
}
/* A write must not be taken for another way to read. */
BODY(send_where_bytes_have_arrived) {
    char bytes[16];
    struct iovec parts[] = {{(char[]){"pa"}, 2}, {(char[]){"rts"}, 3}};
    struct msghdr message = {.msg_iov = &(struct iovec){(char[]){"message"}, 7}, .msg_iovlen = 1};
    connect_ends();
    read_first();
    let_arrive("arrived");
    CHECK_EQUAL(haft_io_writev(ends[0], parts, 2), 5);
    CHECK_EQUAL(haft_io_send_message(ends[0], &message, 0), 7);
    CHECK_EQUAL(haft_io_receive(ends[1], bytes, 12, MSG_WAITALL), 12);
    CHECK(memcmp(bytes, "partsmessage", 12) == 0);
    CHECK_EQUAL(haft_io_read(ends[0], bytes, sizeof bytes), 7);
    CHECK(memcmp(bytes, "arrived", 7) == 0);
    close_ends();
    return NULL;
}
static void what_is_sent_in_parts_or_as_a_message_is_sent_where_bytes_have_arrived(void) {
    CHECK_EQUAL(haft_io_run_with(options, send_where_bytes_have_arrived, NULL), 0);
}

static void what_has_arrived_cannot_be_read_to_nowhere(void) {
    if (!RUNNING_ON_VALGRIND) /* which reports such addresses itself */
        CHECK_EQUAL(haft_io_run_with(options, read_to_nowhere, NULL), 0);
}

static void a_poll_tells_of_bytes_that_have_arrived(void) {
    CHECK_EQUAL(haft_io_run_with(options, poll_before_reading, NULL), 0);
}

BODY(splice_afterwards) {
    char buffer[8];
    int pipe_ends[2];
    CHECK_EQUAL(haft_io_pipe(pipe_ends), 0);
    connect_ends();
    read_first();
    let_arrive("ahead");
    ssize_t moved = haft_io_splice(ends[0], pipe_ends[1], 100);
    if (moved == -EBUSY) {
        CHECK_EQUAL(haft_io_read(ends[0], buffer, sizeof buffer), 5);
        put("after");
        moved = haft_io_splice(ends[0], pipe_ends[1], 100);
    }
    CHECK_EQUAL(moved, 5);
    CHECK_EQUAL(haft_io_read(pipe_ends[0], buffer, sizeof buffer), 5);
    close_ends();
    haft_io_close(pipe_ends[0]);
    haft_io_close(pipe_ends[1]);
    return NULL;
}
static void a_splice_passes_over_nothing(void) {
    CHECK_EQUAL(haft_io_run_with(options, splice_afterwards, NULL), 0);
}

/* ---- Ends, errors, cancels ---- */

BODY(read_for_ever) {
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    while (haft_io_read_lent(ends[0], &bytes) > 0)
        continue;
    return NULL;
}
static void *cancel_a_reader(void *turns) {
    haft_io_spawn(read_for_ever, NULL);
    for (intptr_t i = 0; i < (intptr_t)turns; i++)
        haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(cancel_readers) {
    connect_ends();
    for (intptr_t i = 0; i < 20; i++) {
        HAFT_IO_SCOPED_LENT const void *bytes = NULL;
        CHECK_EQUAL(haft_io_scope(cancel_a_reader, (void *)(i % 5), NULL), -ECANCELED);
        put("x");
        check_lent(&bytes, "x");
    }
    close_ends();
    return NULL;
}
static void a_cancelled_read_leaves_the_bytes_to_the_next(void) {
    CHECK_EQUAL(haft_io_run_with(options, cancel_readers, NULL), 0);
}

BODY(read_when_another_reads) {
    connect_ends();
    read_first();
    haft_io_task_t *reader = haft_io_async(read_for_ever, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    const void *bytes = NULL;
    char byte;
    CHECK_EQUAL(haft_io_read_lent(ends[0], &bytes), -EBUSY);
    CHECK_EQUAL(haft_io_read(ends[0], &byte, 1), -EBUSY);
    CHECK(bytes == NULL);
    shutdown(ends[1], SHUT_WR);
    haft_io_join(reader, NULL);
    close_ends();
    return NULL;
}
static void two_readers_of_one_connection_are_told(void) {
    CHECK_EQUAL(haft_io_run_with(options, read_when_another_reads, NULL), 0);
}

BODY(read_until_closed) {
    const void *bytes = NULL;
    CHECK_EQUAL(haft_io_read_lent(ends[0], &bytes), -EBADF);
    CHECK(bytes == NULL);
    return NULL;
}
BODY(close_while_reading) {
    for (int i = 0; i < 10; i++) {
        connect_ends();
        int before = ends[1];
        if (i % 2 == 0)
            read_first();
        haft_io_task_t *reader = haft_io_async(read_until_closed, NULL);
        haft_io_sleep(HAFT_IO_MILLISECOND / 10);
        haft_io_close(ends[0]);
        connect_ends(); /* most often by the same number */
        put("not for him");
        haft_io_join(reader, NULL);
        HAFT_IO_SCOPED_LENT const void *bytes = NULL;
        check_lent(&bytes, "not for him");
        close_ends();
        haft_io_close(before);
    }
    return NULL;
}
static void who_reads_what_is_closed_gets_nothing_of_the_next_of_its_number(void) {
    if (options->threads == 1) /* nobody comes too late to wait for the first */
        CHECK_EQUAL(haft_io_run_with(options, close_while_reading, NULL), 0);
}

static void *reset_later(void *unused) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    setsockopt(ends[1], SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    haft_io_close(ends[1]);
    return unused;
}
BODY(read_what_is_reset) {
    connect_ends();
    read_first();
    haft_io_spawn(reset_later, NULL);
    const void *bytes = NULL;
    CHECK_EQUAL(haft_io_read_lent(ends[0], &bytes), -ECONNRESET);
    CHECK(bytes == NULL);
    CHECK_EQUAL(haft_io_read_lent(ends[0], &bytes), 0);
    haft_io_close(ends[0]);
    return NULL;
}
static void a_reset_is_told_once(void) {
    CHECK_EQUAL(haft_io_run_with(options, read_what_is_reset, NULL), 0);
}

BODY(leave_the_rest) {
    connect_ends();
    read_first();
    let_arrive("nobody reads this");
    return NULL;
}
static void at_the_end_of_a_run_nothing_is_left(void) {
    int before = check_descriptors();
    CHECK_EQUAL(haft_io_run_with(options, leave_the_rest, NULL), 0);
    CHECK_EQUAL(check_descriptors(), before + 2);
    close(ends[0]);
    close(ends[1]);
}

/* ---- Much at once ---- */

enum { MANY = 100, MESSAGES = 5 };
static int many[MANY][2];
static int64_t read_there;

static void *read_one_of_many(void *index) {
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    int64_t sum = 0;
    for (ssize_t size; (size = haft_io_read_lent(many[(intptr_t)index][0], &bytes)) > 0;)
        for (ssize_t i = 0; i < size; i++)
            sum += ((const char *)bytes)[i];
    __atomic_fetch_add(&read_there, sum, __ATOMIC_RELAXED);
    return NULL;
}
BODY(read_many_at_once) {
    haft_io_task_t *readers[MANY];
    int64_t sent = 0;
    read_there = 0;
    for (int i = 0; i < MANY; i++) {
        connect_ends();
        memcpy(many[i], ends, sizeof ends);
        readers[i] = haft_io_async(read_one_of_many, check_number(i));
    }
    haft_io_sleep(HAFT_IO_MILLISECOND);
    for (int j = 0; j < MESSAGES; j++) /* for which there is no memory at first */
        for (int i = 0; i < MANY; i++) {
            char byte = (char)(1 + (i + j) % 100);
            sent += byte;
            CHECK_EQUAL(write(many[i][1], &byte, 1), 1);
        }
    for (int i = 0; i < MANY; i++)
        shutdown(many[i][1], SHUT_WR);
    for (int i = 0; i < MANY; i++) {
        haft_io_join(readers[i], NULL);
        haft_io_close(many[i][0]);
        haft_io_close(many[i][1]);
    }
    CHECK_EQUAL(read_there, sent);
    return NULL;
}
static void more_than_there_is_memory_for_comes_all_the_same(void) {
    CHECK_EQUAL(haft_io_run_with(options, read_many_at_once, NULL), 0);
}

enum { FLOOD = 4000000 };
static void *write_flood(void *unused) {
    static char bytes[FLOOD];
    for (int i = 0; i < FLOOD; i++)
        bytes[i] = (char)(i * 7 >> 3);
    CHECK_EQUAL(haft_io_write_all(ends[1], bytes, FLOOD), 0);
    shutdown(ends[1], SHUT_WR);
    return unused;
}
BODY(read_slowly) {
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    connect_ends();
    read_first();
    haft_io_spawn(write_flood, NULL);
    int got = 0, wrong = 0;
    for (ssize_t size; (size = haft_io_read_lent(ends[0], &bytes)) > 0;) {
        CHECK(size <= HAFT_IO_LENT_SIZE);
        for (ssize_t i = 0; i < size; i++, got++)
            wrong += ((const char *)bytes)[i] != (char)(got * 7 >> 3);
        if (got % 16 == 0)
            haft_io_sleep(HAFT_IO_MILLISECOND / 10);
    }
    CHECK_EQUAL(got, FLOOD);
    CHECK_EQUAL(wrong, 0);
    close_ends();
    return NULL;
}
static void who_reads_slowly_gets_all_in_order(void) {
    CHECK_EQUAL(haft_io_run_with(options, read_slowly, NULL), 0);
}

/* ---- Other descriptors ---- */

BODY(read_other_descriptors) {
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    CHECK_EQUAL(haft_io_write(ends[1], "pipe", 4), 4);
    check_lent(&bytes, "pipe");
    close_ends();
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    put_soon("local");
    check_lent(&bytes, "local");
    /* Nothing is read ahead that may come with a descriptor. */
    CHECK_EQUAL(haft_io_send_descriptor(ends[1], ends[1]), 0);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    int received = haft_io_receive_descriptor(ends[0]);
    CHECK(received >= 0);
    haft_io_close(received);
    close_ends();
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    put("one");
    put("two");
    check_lent(&bytes, "one");
    check_lent(&bytes, "two");
    close_ends();
    char name[] = "/tmp/haft-lending-XXXXXX";
    ends[0] = mkstemp(name);
    CHECK_EQUAL(pwrite(ends[0], "file", 4, 0), 4);
    check_lent(&bytes, "file");
    CHECK_EQUAL(haft_io_read_lent(ends[0], &bytes), 0);
    haft_io_close(ends[0]);
    unlink(name);
    CHECK_EQUAL(haft_io_read_lent(ends[0], &bytes), -EBADF);
    CHECK_EQUAL(haft_io_read_lent(-1, &bytes), -EBADF);
    CHECK(bytes == NULL);
    return NULL;
}
static void any_descriptor_can_be_read_so(void) {
    CHECK_EQUAL(haft_io_run_with(options, read_other_descriptors, NULL), 0);
}

BODY(accept_one) {
    haft_io_close(haft_io_accept((int)(intptr_t)argument));
    return NULL;
}
BODY(read_what_is_accepted_from) {
    const void *bytes = NULL;
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    haft_io_task_t *accepting = haft_io_async(accept_one, check_number(listener));
    haft_io_sleep(HAFT_IO_MILLISECOND);
    int clients[3];
    for (int i = 0; i < 3; i++)
        clients[i] = haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    haft_io_join(accepting, NULL);
    CHECK_EQUAL(haft_io_read_lent(listener, &bytes), -ENOTCONN);
    CHECK(bytes == NULL);
    for (int i = 0; i < 3; i++)
        haft_io_close(clients[i]);
    haft_io_close(listener);
    connect_ends();
    read_first();
    let_arrive("no connection");
    CHECK_EQUAL(haft_io_accept(ends[0]), -EINVAL);
    check_lent(&bytes, "no connection");
    haft_io_give_back(bytes);
    close_ends();
    return NULL;
}
static void a_listener_has_no_bytes_and_a_connection_no_connections(void) {
    CHECK_EQUAL(haft_io_run_with(options, read_what_is_accepted_from, NULL), 0);
}

static void without_a_scheduler_it_blocks(void) {
    const void *bytes = NULL;
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(write(ends[1], "plain", 5), 5);
    check_lent(&bytes, "plain");
    close(ends[1]);
    CHECK_EQUAL(haft_io_read_lent(ends[0], &bytes), 0);
    CHECK(bytes == NULL);
    close(ends[0]);
    haft_io_give_back(NULL);
    void *memory = haft_io_lend();
    memset(memory, 1, HAFT_IO_LENT_SIZE);
    haft_io_give_back(memory);
}

BODY(read_simulated) {
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    CHECK_EQUAL(haft_io_write_all(ends[1], "simulated", 9), 0);
    haft_io_close(ends[1]);
    char text[10] = "";
    size_t got = 0;
    for (ssize_t size; (size = haft_io_read_lent(ends[0], &bytes)) > 0; got += (size_t)size)
        memcpy(text + got, bytes, (size_t)size);
    CHECK_EQUAL(strcmp(text, "simulated"), 0);
    haft_io_close(ends[0]);
    return NULL;
}
static void a_simulated_stream_is_read_so(void) {
    haft_io_simulation_options_t simulation = {.seed = 1, .short_counts = true};
    CHECK_EQUAL(haft_io_simulate_with(&simulation, read_simulated, NULL), 0);
}

/* ---- What nobody reads ---- */

enum { CONNECTIONS = CHECK_THREAD_SANITIZER ? 100 : 1000, PIECES = 12 };
static int connections[CONNECTIONS][2];
static unsigned heard;
static haft_io_event_t may_read;

/* By malloc; 0 under tools that have one of their own. */
static long allocated(void) {
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 information = mallinfo2();
    return (long)(information.uordblks + information.hblkhd);
#else
    return 0;
#endif
}
static void *hear_late(void *number) {
    int reads_from = connections[(intptr_t)number][0];
    const void *bytes = NULL;
    CHECK_EQUAL(haft_io_read_lent(reads_from, &bytes), 1);
    haft_io_give_back(bytes);
    bytes = NULL;
    __atomic_fetch_add(&heard, 1, __ATOMIC_RELAXED);
    haft_io_event_wait(&may_read);
    ssize_t got = 0;
    for (ssize_t size; got < PIECES && (size = haft_io_read_lent(reads_from, &bytes)) > 0;
         got += size)
        CHECK(memcmp(bytes, &"abcdefghijkl"[got], (size_t)size) == 0);
    haft_io_give_back(bytes);
    CHECK_EQUAL(got, PIECES);
    haft_io_close(reads_from);
    return NULL;
}
static void send_to_all(char byte) {
    for (int i = 0; i < CONNECTIONS; i++)
        CHECK_EQUAL(send(connections[i][1], &byte, 1, MSG_NOSIGNAL), 1);
    haft_io_sleep(HAFT_IO_MILLISECOND);
}
BODY(let_very_much_wait) {
    long before = allocated();
    heard = 0;
    may_read = (haft_io_event_t){0};
    for (intptr_t i = 0; i < CONNECTIONS; i++) {
        connect_ends();
        memcpy(connections[i], ends, sizeof ends);
        haft_io_spawn(hear_late, (void *)i);
    }
    haft_io_sleep(HAFT_IO_MILLISECOND);
    send_to_all('0');
    while (__atomic_load_n(&heard, __ATOMIC_RELAXED) != CONNECTIONS)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    for (int i = 0; i < PIECES; i++)
        send_to_all((char)('a' + i));
    /* The blocks that the kernel and the thread keep for what comes, and a little for each
       connection. */
    long most = (256 + 64) * 18 * 1024L + CONNECTIONS * 2048L;
    for (int i = 0; i < 200 && allocated() - before > most; i++)
        haft_io_sleep(50 * HAFT_IO_MILLISECOND);
    CHECK(allocated() - before <= most);
    haft_io_event_set(&may_read);
    for (int i = 0; i < CONNECTIONS; i++)
        haft_io_close(connections[i][1]);
    return NULL;
}
static void *hear_to_the_end(void *number) {
    int reads_from = connections[(intptr_t)number][0];
    const void *bytes = NULL;
    while (haft_io_read_lent(reads_from, &bytes) > 0)
        ;
    haft_io_close(reads_from);
    return NULL;
}
/* Memory that the kernel was given for a burst goes back while the run goes on. */
BODY(send_in_a_burst) {
    enum { SENDERS = 100, MUCH = 1 << 17 };
    static char much[MUCH];
    long before = allocated();
    for (intptr_t i = 0; i < SENDERS; i++) {
        connect_ends();
        memcpy(connections[i], ends, sizeof ends);
        haft_io_spawn(hear_to_the_end, (void *)i);
    }
    haft_io_sleep(HAFT_IO_MILLISECOND);
    for (int i = 0; i < SENDERS; i++)
        CHECK(send(connections[i][1], much, MUCH, MSG_NOSIGNAL | MSG_DONTWAIT) > 0);
    haft_io_sleep(50 * HAFT_IO_MILLISECOND);
    long most = (256 + 64) * 18 * 1024L + SENDERS * 2048L;
    for (int i = 0; i < 200 && allocated() - before > most; i++)
        haft_io_sleep(50 * HAFT_IO_MILLISECOND);
    CHECK(allocated() - before <= most);
    for (int i = 0; i < SENDERS; i++)
        haft_io_close(connections[i][1]);
    return NULL;
}
static void what_the_kernel_had_for_a_burst_goes_back(void) {
    CHECK_EQUAL(haft_io_run_with(options, send_in_a_burst, NULL), 0);
}

static void what_nobody_reads_takes_little_more_memory_than_was_sent(void) {
    CHECK_EQUAL(haft_io_run_with(options, let_very_much_wait, NULL), 0);
}

/* ---- A kernel that does not know it ---- */

#ifdef WITH_URING
#    include <liburing.h>

static enum { IS_NEW, HAS_NO_BUFFERS, HAS_NO_MULTISHOT } kernel;

int __real_hafti_io_uring_register(const struct io_uring *ring, unsigned operation, void *argument,
                                   unsigned count);
int __wrap_hafti_io_uring_register(const struct io_uring *ring, unsigned operation, void *argument,
                                   unsigned count);
int __wrap_hafti_io_uring_register(const struct io_uring *ring, unsigned operation, void *argument,
                                   unsigned count) {
    return kernel == HAS_NO_BUFFERS
               ? -EINVAL
               : __real_hafti_io_uring_register(ring, operation, argument, count);
}

/* Gives what is asked for by multishot a flag that no kernel knows. */
static void make_unknown(struct io_uring *ring) {
    for (unsigned i = ring->sq.sqe_head; kernel == HAS_NO_MULTISHOT && i != ring->sq.sqe_tail;
         i++) {
        struct io_uring_sqe *entry = &ring->sq.sqes[i & *ring->sq.kring_mask];
        if (entry->opcode == IORING_OP_RECV && (entry->flags & IOSQE_BUFFER_SELECT) != 0)
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

static void a_kernel_without_multishot_reads_one_by_one(void) {
    for (kernel = HAS_NO_BUFFERS; kernel <= HAS_NO_MULTISHOT; kernel++) {
        bytes_come_in_memory_that_is_lent_until_the_end();
        every_way_to_read_goes_on_where_the_last_one_ended();
        a_cancelled_read_leaves_the_bytes_to_the_next();
        more_than_there_is_memory_for_comes_all_the_same();
    }
    kernel = IS_NEW;
}
#endif

/* ---- Resets, as without what comes by itself ---- */

BODY(close_with_bytes_that_nobody_has_read) {
    connect_ends();
    read_first();
    let_arrive("more");
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
    CHECK_EQUAL(haft_io_read(ends[1], &(char){0}, 1), -ECONNRESET);
    CHECK_EQUAL(haft_io_close(ends[1]), 0);
    return NULL;
}
static void a_close_resets_a_connection_of_which_something_was_not_read(void) {
    CHECK_EQUAL(haft_io_run_with(options, close_with_bytes_that_nobody_has_read, NULL), 0);
}

static ssize_t by_write(void) {
    return haft_io_write(ends[0], "x", 1);
}
static ssize_t by_writev(void) {
    return haft_io_writev(ends[0], &(struct iovec){"x", 1}, 1);
}
static ssize_t by_send(void) {
    return haft_io_send(ends[0], "x", 1, 0);
}
static ssize_t by_message(void) {
    struct iovec part = {"x", 1};
    return haft_io_send_message(ends[0], &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1}, 0);
}
static ssize_t by_read(void) {
    return haft_io_read(ends[0], &(char){0}, 1);
}
static ssize_t by_peek(void) {
    return haft_io_receive(ends[0], &(char){0}, 1, MSG_PEEK);
}
static ssize_t (*const calls[])(void) = {by_write,   by_writev, by_send,
                                         by_message, by_read,   by_peek};

BODY(call_after_a_reset) {
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        connect_ends();
        read_first();
        CHECK_EQUAL(send(ends[0], "x", 1, 0), 1);
        CHECK_EQUAL(haft_io_close(ends[1]), 0); /* which has not read it */
        ends[1] = dup(STDERR_FILENO);
        for (int j = 0; j < 3; j++)
            haft_io_sleep(HAFT_IO_MILLISECOND / 4);
        CHECK_EQUAL(haft_io_wait_ready(ends[0], POLLIN) & (POLLERR | POLLHUP), POLLERR | POLLHUP);
        CHECK_EQUAL(haft_io_wait_ready(ends[0], 0), POLLERR | POLLHUP);
        struct pollfd entry = {ends[0], POLLOUT, 0};
        CHECK_EQUAL(haft_io_poll(&entry, 1, HAFT_IO_FOREVER), 1);
        CHECK_EQUAL(entry.revents, POLLERR | POLLHUP | POLLOUT);
        CHECK_EQUAL(calls[i](), -ECONNRESET);
        if (calls[i] != by_peek)
            CHECK_EQUAL(by_write(), -EPIPE);
        close_ends();
    }
    return NULL;
}
static void the_first_call_after_a_reset_is_told_of_it(void) {
    CHECK_EQUAL(haft_io_run_with(options, call_after_a_reset, NULL), 0);
}

static void on_each_back_end(const haft_io_run_options_t *given) {
    options = given;
    int before = check_descriptors();
    RUN(bytes_come_in_memory_that_is_lent_until_the_end);
    RUN(memory_that_is_kept_stays_as_it_is);
    if (!CHECK_THREAD_SANITIZER) { /* which has memory of its own, and takes its time */
        RUN(what_nobody_reads_takes_little_more_memory_than_was_sent);
        RUN(what_the_kernel_had_for_a_burst_goes_back);
    }
    RUN(memory_may_outlive_the_run_and_be_given_back_on_any_thread);
    RUN(every_way_to_read_goes_on_where_the_last_one_ended);
    RUN(a_poll_tells_of_bytes_that_have_arrived);
    RUN(a_poll_tells_of_all_events_that_were_asked_for);
    RUN(who_waits_for_the_end_is_not_taken_for_a_reader);
    RUN(what_has_arrived_cannot_be_read_to_nowhere);
    RUN(what_is_sent_in_parts_or_as_a_message_is_sent_where_bytes_have_arrived);
    RUN(who_does_not_want_to_wait_is_told_that_there_is_nothing);
    RUN(a_splice_passes_over_nothing);
    RUN(a_cancelled_read_leaves_the_bytes_to_the_next);
    RUN(two_readers_of_one_connection_are_told);
    RUN(who_reads_what_is_closed_gets_nothing_of_the_next_of_its_number);
    RUN(a_reset_is_told_once);
    RUN(a_close_resets_a_connection_of_which_something_was_not_read);
    RUN(the_first_call_after_a_reset_is_told_of_it);
    RUN(at_the_end_of_a_run_nothing_is_left);
    RUN(more_than_there_is_memory_for_comes_all_the_same);
    RUN(who_reads_slowly_gets_all_in_order);
    RUN(any_descriptor_can_be_read_so);
    RUN(a_listener_has_no_bytes_and_a_connection_no_connections);
#ifdef WITH_URING
    RUN(a_kernel_without_multishot_reads_one_by_one);
#endif
    CHECK_EQUAL(check_descriptors(), before);
}

int main(void) {
    check_backend();
    RUN(without_a_scheduler_it_blocks);
    RUN(a_simulated_stream_is_read_so);
    check_everywhere(on_each_back_end);
    return check_end();
}
