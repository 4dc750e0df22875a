/* SPDX-License-Identifier: MIT */
/*
 * Reads that get fewer bytes than they ask for, or nothing. After one of a TCP connection the back
 * end on epoll waits for the next bytes without trying, since none are left: nothing that comes
 * afterwards, or was behind, is missed.
 */
#include "check_io.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROUNDS = 20, ROOM = 100 };

/* The linker puts this in the way of the library's calls. */
static int receives;
ssize_t __real_recv(int descriptor, void *buffer, size_t size, int flags);
ssize_t __wrap_recv(int descriptor, void *buffer, size_t size, int flags);
ssize_t __wrap_recv(int descriptor, void *buffer, size_t size, int flags) {
    receives++;
    return __real_recv(descriptor, buffer, size, flags);
}

static int changes; /* of what epoll watches */
int __real_epoll_ctl(int epoll, int operation, int file, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int file, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int file, struct epoll_event *event) {
    changes++;
    return __real_epoll_ctl(epoll, operation, file, event);
}

static int ours, theirs;

static void connect_both(void) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)haft_io_port(listener))};
    theirs = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQUAL(connect(theirs, (struct sockaddr *)&address, sizeof address), 0);
    ours = haft_io_accept(listener);
    CHECK(ours >= 0);
    haft_io_close(listener);
}
static void close_both(void) {
    haft_io_close(ours);
    if (theirs >= 0)
        close(theirs);
}

static void they_send(const char *text, int flags) {
    CHECK_EQUAL(send(theirs, text, strlen(text), flags), (ssize_t)strlen(text));
}
/* The reads of a text have room for no more than that: only a further one finds that none is
   left. */
static bool exactly;
/* By each of the calls that read, in turn. */
static ssize_t read_up_to(size_t room, int turn, char *bytes) {
    if (turn % 3 == 0)
        return haft_io_read(ours, bytes, room);
    if (turn % 3 == 1)
        return haft_io_receive(ours, bytes, room, 0);
    const void *lent = NULL;
    ssize_t got = haft_io_read_lent(ours, &lent);
    if (got > 0)
        memcpy(bytes, lent, (size_t)got);
    haft_io_give_back(lent);
    return got;
}
static ssize_t read_some(int turn, char *bytes) {
    return read_up_to(ROOM, turn, bytes);
}
static void we_read(int turn, const char *text) {
    char bytes[ROOM];
    ssize_t got = read_up_to(exactly ? strlen(text) : ROOM, turn, bytes);
    CHECK_EQUAL(got, (ssize_t)strlen(text));
    CHECK(got < 0 || memcmp(bytes, text, (size_t)got) == 0);
}
/* A read waits before any byte is there. */
static void *send_later(void *text) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    they_send(text, 0);
    return NULL;
}
static void begin_to_wait_and_read(int turn) {
    haft_io_task_t *sender = haft_io_async(send_later, "first");
    we_read(turn, "first");
    haft_io_join(sender, NULL);
}
static void finish_later(void) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(shutdown(theirs, SHUT_WR), 0);
}
static void *finish(void *unused) {
    finish_later();
    return unused;
}

/* ---- What comes after it ---- */

BODY(read_what_comes) {
    connect_both();
    for (int i = 0; i < ROUNDS; i++) {
        begin_to_wait_and_read(i);
        they_send("second", 0);
        if (i % 2 == 1) /* Epoll tells of it while nobody waits. */
            haft_io_sleep(HAFT_IO_MILLISECOND);
        we_read(i + 1, "second");
    }
    close_both();
    return NULL;
}
BODY(read_to_the_end) {
    for (int i = 0; i < 3; i++) {
        char bytes[ROOM];
        connect_both(); /* The end comes while nobody waits, */
        begin_to_wait_and_read(i);
        they_send("last", 0);
        finish_later();
        we_read(i, "last");
        CHECK_EQUAL(read_some(i, bytes), 0);
        CHECK_EQUAL(read_some(i + 1, bytes), 0);
        close_both();
        connect_both(); /* or while somebody does. */
        begin_to_wait_and_read(i);
        haft_io_task_t *finishing = haft_io_async(finish, NULL);
        CHECK_EQUAL(read_some(i, bytes), 0);
        haft_io_join(finishing, NULL);
        close_both();
    }
    return NULL;
}
BODY(read_after_a_reset) {
    char bytes[ROOM];
    connect_both();
    begin_to_wait_and_read(0);
    CHECK_EQUAL(
        setsockopt(theirs, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger)),
        0);
    close(theirs);
    theirs = -1;
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_read(ours, bytes, ROOM), -ECONNRESET);
    close_both();
    return NULL;
}

/* ---- What was behind ---- */

/* A read ends before the place where urgent data was. */
BODY(read_around_urgent_data) {
    for (int i = 0; i < 2; i++) {
        connect_both();
        begin_to_wait_and_read(i);
        they_send("before", 0);
        they_send("!", MSG_OOB);
        they_send("after", 0);
        haft_io_sleep(HAFT_IO_MILLISECOND);
        we_read(i, "before");
        we_read(i, "after");
        close_both();
    }
    return NULL;
}
/* A read of a local stream ends behind the bytes that a descriptor came with. */
BODY(read_behind_descriptors) {
    int ends[2];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ours = ends[0];
    theirs = ends[1];
    begin_to_wait_and_read(0);
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = ""};
    struct msghdr message = {.msg_iov = &(struct iovec){"with", 4},
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    *CMSG_FIRSTHDR(&message) = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &theirs, sizeof theirs);
    CHECK_EQUAL(sendmsg(theirs, &message, 0), 4);
    they_send("behind", 0);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    we_read(0, "with");
    we_read(0, "behind");
    close_both();
    return NULL;
}

/* ---- No call in vain ---- */

BODY(count_receives) {
    connect_both();
    begin_to_wait_and_read(0);
    receives = 0;
    for (int i = 0; i < ROUNDS; i++)
        begin_to_wait_and_read(0);
    CHECK_EQUAL(receives, ROUNDS);
    close_both();
    return NULL;
}

/* One finds nothing, one gets the message. */
BODY(count_receives_that_fill_the_room) {
    connect_both();
    exactly = true;
    begin_to_wait_and_read(0);
    receives = 0;
    for (int i = 0; i < ROUNDS; i++)
        begin_to_wait_and_read(0);
    CHECK_EQUAL(receives, 2 * ROUNDS);
    exactly = false;
    close_both();
    return NULL;
}

/* A task that reads without waiting until nothing is left, and then rests. */
static struct {
    haft_io_rest_t rest;
    size_t room;
    int rounds;
} at_rest;
static void *read_and_rest(void *unused) {
    char bytes[ROOM];
    ssize_t got;
    do
        got = haft_io_receive(ours, bytes, at_rest.room, MSG_DONTWAIT);
    while (got > 0);
    CHECK_EQUAL(got, -EAGAIN);
    if (at_rest.rounds-- > 0)
        haft_io_rest(&at_rest.rest, ours, HAFT_IO_FOREVER, read_and_rest, NULL);
    return unused;
}
BODY(count_changes) {
    connect_both();
    for (int i = 0; i < 2; i++) {
        at_rest.room = i == 0 ? ROOM : strlen("message");
        at_rest.rounds = ROUNDS;
        haft_io_task_t *task = haft_io_async(read_and_rest, NULL);
        haft_io_sleep(HAFT_IO_MILLISECOND);
        changes = 0;
        for (int turn = 0; turn < ROUNDS; turn++) {
            they_send("message", 0);
            haft_io_sleep(HAFT_IO_MILLISECOND);
        }
        haft_io_join(task, NULL);
        CHECK_EQUAL(changes, 0);
    }
    close_both();
    return NULL;
}

static void *(*body)(void *);
/* The back end has not been polled since they came. */
BODY(read_after_the_deadline) {
    connect_both();
    for (int turn = 0; turn < 6; turn++) {
        haft_io_task_t *sending = haft_io_async(send_later, "first");
        we_read(turn, "first");
        haft_io_join(sending, NULL);
        HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
        haft_io_deadline_set(&limit, 0);
        they_send("second", 0);
        we_read(turn, "second");
    }
    close_both();
    return NULL;
}

static void run_on(const haft_io_run_options_t *given) {

    CHECK_EQUAL(haft_io_run_with(given, body, NULL), 0);
}
#define ON_ALL(name, what)                                                                         \
    static void name(void) {                                                                       \
        body = what;                                                                               \
        check_everywhere(run_on);                                                                  \
    }
BODY(read_what_comes_exactly) {
    exactly = true;
    read_what_comes(NULL);
    read_behind_descriptors(NULL);
    read_around_urgent_data(NULL);
    exactly = false;
    return NULL;
}
ON_ALL(what_comes_after_a_short_read_is_read, read_what_comes)
ON_ALL(what_comes_after_a_read_that_took_all_is_read, read_what_comes_exactly)
ON_ALL(the_end_after_a_short_read_is_told, read_to_the_end)
ON_ALL(a_reset_after_a_short_read_is_told, read_after_a_reset)
ON_ALL(what_is_behind_urgent_data_is_read, read_around_urgent_data)
ON_ALL(what_is_behind_a_descriptor_is_read, read_behind_descriptors)
ON_ALL(what_has_come_is_read_also_when_the_time_for_it_has_passed, read_after_the_deadline)

static void on_epoll(void *(*what)(void *)) {
    CHECK_EQUAL(
        haft_io_run_with(&(haft_io_run_options_t){.threads = 1, .backend = "epoll"}, what, NULL),
        0);
}
static void a_message_is_one_receive(void) {
    on_epoll(count_receives);
}
static void a_message_that_fills_the_room_is_two(void) {
    on_epoll(count_receives_that_fill_the_room);
}
static void a_rest_of_a_drained_connection_tells_the_system_nothing(void) {
    on_epoll(count_changes);
}

int main(void) {
    RUN(what_comes_after_a_short_read_is_read);
    RUN(what_comes_after_a_read_that_took_all_is_read);
    RUN(the_end_after_a_short_read_is_told);
    RUN(a_reset_after_a_short_read_is_told);
    RUN(what_is_behind_urgent_data_is_read);
    RUN(what_is_behind_a_descriptor_is_read);
    RUN(what_has_come_is_read_also_when_the_time_for_it_has_passed);
    RUN(a_message_is_one_receive);
    RUN(a_message_that_fills_the_room_is_two);
    RUN(a_rest_of_a_drained_connection_tells_the_system_nothing);
    return check_end();
}
