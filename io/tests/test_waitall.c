/* SPDX-License-Identifier: MIT */
/* MSG_WAITALL of haft_io_receive and haft_io_receive_message: on all back ends, and without a scheduler. */
#include "check_io.h"

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static int ends[2];
static bool passes; /* a descriptor, with the last piece */

/* In pieces, each after the reader has had time to take what was there before. */
static void *say_hello_world(void *unused) {
    static const char *const pieces[] = {"hel", "lo", " wor", "ld"};
    for (size_t i = 0; i < 4; i++) {
        char piece[8];
        struct msghdr message = {.msg_iov = &(struct iovec){piece, strlen(pieces[i])},
                                 .msg_iovlen = 1};
        strcpy(piece, pieces[i]);
        __attribute__((aligned(8))) char control[CMSG_SPACE(sizeof(int))] = {0};
        if (passes && i == 3) {
            message.msg_control = control;
            message.msg_controllen = sizeof control;
            struct cmsghdr *header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(sizeof(int));
            memcpy(CMSG_DATA(header), &(int){STDERR_FILENO}, sizeof(int));
        }
        haft_io_sleep(5 * HAFT_IO_MILLISECOND);
        CHECK_EQUAL(haft_io_send_message(ends[1], &message, 0), strlen(pieces[i]));
    }
    return unused;
}

static char first[4], second[5], third[2];
static struct iovec parts[] = {{first, 4}, {NULL, 0}, {second, 5}, {third, 2}};

static void check_parts(void) {
    CHECK(memcmp(first, "hell", 4) == 0);
    CHECK(memcmp(second, "o wor", 5) == 0);
    CHECK(memcmp(third, "ld", 2) == 0);
}

static void receive_parts(void) {
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 4};
    CHECK_EQUAL(haft_io_receive_message(ends[0], &message, MSG_WAITALL), 11);
    CHECK_EQUAL(message.msg_iovlen, 4);
    CHECK_EQUAL(parts[2].iov_len, 5);
    check_parts();
}
static void receive_bytes(void) {
    char text[11];
    CHECK_EQUAL(haft_io_receive(ends[0], text, sizeof text, MSG_WAITALL), 11);
    CHECK(memcmp(text, "hello world", 11) == 0);
}
/* What comes along with the last piece is not lost. */
static void receive_a_descriptor(void) {
    __attribute__((aligned(8))) char control[CMSG_SPACE(sizeof(int))];
    struct msghdr message = {.msg_iov = parts,
                             .msg_iovlen = 4,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    CHECK_EQUAL(haft_io_receive_message(ends[0], &message, MSG_WAITALL), 11);
    check_parts();
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    CHECK(header != NULL && header->cmsg_type == SCM_RIGHTS);
    int passed = -1;
    if (header != NULL)
        memcpy(&passed, CMSG_DATA(header), sizeof passed);
    CHECK_EQUAL(close(passed), 0);
    CHECK_EQUAL(message.msg_flags & MSG_CTRUNC, 0);
}
/* The end of the stream ends it; what there is, is returned. */
static void receive_until_the_end(void) {
    char text[20];
    struct msghdr message = {.msg_iov = &(struct iovec){text, sizeof text}, .msg_iovlen = 1};
    CHECK_EQUAL(haft_io_receive_message(ends[0], &message, MSG_WAITALL), 11);
    CHECK_EQUAL(haft_io_receive_message(ends[0], &message, MSG_WAITALL), 0);
}
static void peek_only(void) {
    char text[3];
    struct msghdr message = {.msg_iov = &(struct iovec){text, sizeof text}, .msg_iovlen = 1};
    CHECK_EQUAL(haft_io_receive_message(ends[0], &message, MSG_WAITALL | MSG_PEEK), 3);
    receive_parts();
}

static void connect_ends(bool by_tcp) {
    if (!by_tcp) {
        CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        return;
    }
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    ends[1] = haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    ends[0] = haft_io_accept(listener);
    haft_io_close(listener);
}

static void *say_and_close(void *unused) {
    say_hello_world(NULL);
    haft_io_close(ends[1]);
    ends[1] = -1;
    return unused;
}

static void receive_everything(int (*beside)(void *(*function)(void *), void (*receive)(void))) {
    for (int by_tcp = 0; by_tcp <= 1; by_tcp++) {
        connect_ends(by_tcp != 0);
        beside(say_hello_world, receive_parts);
        beside(say_hello_world, receive_bytes);
        beside(say_hello_world, peek_only);
        passes = by_tcp == 0;
        if (passes)
            beside(say_hello_world, receive_a_descriptor);
        passes = false;
        beside(say_and_close, receive_until_the_end);
        haft_io_close(ends[0]);
    }
}

static int beside_task(void *(*function)(void *), void (*receive)(void)) {
    haft_io_task_t *task = haft_io_async(function, NULL);
    receive();
    return haft_io_join(task, NULL);
}
BODY(receive_on_tasks) {
    receive_everything(beside_task);
    return NULL;
}
static void receive_in_a_run(const haft_io_options_t *options) {
    CHECK_EQUAL(haft_io_run(receive_on_tasks, NULL, options), 0);
}
static void a_task_gets_all(void) {
    check_everywhere(receive_in_a_run);
}

static int beside_thread(void *(*function)(void *), void (*receive)(void)) {
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, function, NULL), 0);
    receive();
    return pthread_join(thread, NULL);
}
static void a_thread_gets_all(void) {
    receive_everything(beside_thread);
}

/* Datagrams are whole as they are. */
BODY(receive_a_datagram) {
    char text[20];
    struct msghdr message = {.msg_iov = &(struct iovec){text, sizeof text}, .msg_iovlen = 1};
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    CHECK_EQUAL(haft_io_send(ends[1], "short", 5, 0), 5);
    CHECK_EQUAL(haft_io_receive_message(ends[0], &message, MSG_WAITALL), 5);
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    return NULL;
}
static void a_datagram_is_whole(void) {
    CHECK_RUNS(receive_a_datagram);
}

int main(void) {
    check_backend();
    RUN(a_task_gets_all);
    RUN(a_thread_gets_all);
    RUN(a_datagram_is_whole);
    return check_end();
}
