/* SPDX-License-Identifier: MIT */
/* The flags of haft_io_receive, haft_io_receive_from and haft_io_receive_message: MSG_WAITALL, and
   every combination of flags and kinds of socket against the system's own call; on all back ends,
   and without a scheduler. */
#include "check_io.h"

#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
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
/* A descriptor that comes along with the last piece is not lost. */
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

/* A call that is not to wait gives what there is. */
static void receive_without_waiting(void) {
    char text[20];
    struct msghdr message = {.msg_iov = &(struct iovec){text, sizeof text}, .msg_iovlen = 1};
    CHECK_EQUAL(haft_io_write(ends[1], "hello", 5), 5);
    CHECK_EQUAL(haft_io_receive(ends[0], text, sizeof text, MSG_WAITALL | MSG_DONTWAIT), 5);
    CHECK_EQUAL(haft_io_write(ends[1], "hello", 5), 5);
    CHECK_EQUAL(haft_io_receive_message(ends[0], &message, MSG_WAITALL | MSG_DONTWAIT), 5);
    CHECK_EQUAL(haft_io_receive(ends[0], text, sizeof text, MSG_WAITALL | MSG_DONTWAIT), -EAGAIN);
}

/* So does an error, which is the next call's, as of TCP in the system. */
static void receive_until_the_reset(void) {
    char text[20];
    struct msghdr message = {.msg_iov = &(struct iovec){text, sizeof text}, .msg_iovlen = 1};
    CHECK_EQUAL(haft_io_receive_message(ends[0], &message, MSG_WAITALL), 11);
    CHECK_EQUAL(haft_io_receive(ends[0], text, sizeof text, MSG_WAITALL), -ECONNRESET);
    CHECK_EQUAL(haft_io_receive_message(ends[0], &message, MSG_WAITALL), 0);
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

static void read_ahead(void) {
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    CHECK_EQUAL(haft_io_write(ends[1], "first", 5), 5);
    CHECK_EQUAL(haft_io_read_lent(ends[0], &bytes), 5);
}

/* A reset: something was sent to this end that nobody has read. */
static void *say_and_reset(void *unused) {
    CHECK_EQUAL(send(ends[0], "x", 1, 0), 1);
    say_hello_world(NULL);
    haft_io_close(ends[1]);
    ends[1] = -1;
    return unused;
}

static void receive_everything(int (*beside)(void *(*function)(void *), void (*receive)(void))) {
    for (int by_tcp = 0; by_tcp <= 1; by_tcp++) {
        connect_ends(by_tcp != 0);
        receive_without_waiting();
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
    for (int ahead = 0; ahead <= 1; ahead++) { /* what arrives by itself before */
        connect_ends(true);
        if (ahead)
            read_ahead();
        beside(say_and_reset, receive_until_the_reset);
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
static void receive_in_a_run(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, receive_on_tasks, NULL), 0);
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

/* ---- Every combination ---- */

typedef enum kind { TCP, UNIX_STREAM, UDP, UNIX_DATAGRAMS, PACKETS, KINDS } kind_t;
typedef enum way { RECEIVE, RECEIVE_FROM, RECEIVE_MESSAGE, WAYS } way_t;

/* The effects of a call that receives: its result, the memory that it has written, and the bytes
   that it has left in the socket. */
typedef struct seen {
    ssize_t done;
    int message_flags;
    socklen_t address_size;
    char bytes[24], left[64];
} seen_t;

typedef struct combination {
    kind_t kind;
    way_t way;
    int flags;
    size_t size;
    bool later; /* it comes when the call is under way, or before */
    bool lent;  /* bytes have been read by haft_io_read_lent, which may have taken more */
} combination_t;

static void connect_datagrams(void) {
    struct sockaddr_in addresses[2];
    socklen_t size = sizeof addresses[0];
    for (int i = 0; i < 2; i++) {
        addresses[i] =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        ends[i] = socket(AF_INET, SOCK_DGRAM, 0);
        CHECK_EQUAL(bind(ends[i], (struct sockaddr *)&addresses[i], size), 0);
        CHECK_EQUAL(getsockname(ends[i], (struct sockaddr *)&addresses[i], &size), 0);
    }
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(connect(ends[i], (struct sockaddr *)&addresses[1 - i], size), 0);
}
static void connect_kind(kind_t kind) {
    if (kind == TCP || kind == UNIX_STREAM)
        connect_ends(kind == TCP);
    else if (kind == UDP)
        connect_datagrams();
    else
        CHECK_EQUAL(socketpair(AF_UNIX, kind == PACKETS ? SOCK_SEQPACKET : SOCK_DGRAM, 0, ends), 0);
}

static void say(const char *text) {
    CHECK_EQUAL(send(ends[1], text, strlen(text), 0), (ssize_t)strlen(text));
}
static void *say_later(void *unused) {
    usleep(200);
    say("firstsecond");
    shutdown(ends[1], SHUT_WR);
    return unused;
}

/* By the library's function, or by the system's. */
static seen_t receive(const combination_t *c, bool by_system) {
    seen_t seen = {0};
    struct sockaddr_un address;
    socklen_t size = sizeof address;
    struct sockaddr *from = (struct sockaddr *)&address;
    struct msghdr message = {.msg_iov = &(struct iovec){seen.bytes, c->size}, .msg_iovlen = 1};
    if (c->way == RECEIVE)
        seen.done = by_system ? recv(ends[0], seen.bytes, c->size, c->flags)
                              : haft_io_receive(ends[0], seen.bytes, c->size, c->flags);
    else if (c->way == RECEIVE_FROM)
        seen.done = by_system
                        ? recvfrom(ends[0], seen.bytes, c->size, c->flags, from, &size)
                        : haft_io_receive_from(ends[0], seen.bytes, c->size, c->flags, from, &size);
    else
        seen.done = by_system ? recvmsg(ends[0], &message, c->flags)
                              : haft_io_receive_message(ends[0], &message, c->flags);
    if (by_system && seen.done < 0)
        seen.done = -errno;
    seen.message_flags = message.msg_flags & ~MSG_CMSG_CLOEXEC; /* which the library asks for */
    seen.address_size = size;
    return seen;
}

static void *say_one(void *unused) {
    say("x");
    return unused;
}
static void read_one_lent(void) {
    const void *bytes = NULL;
    haft_io_task_t *task = haft_io_async(say_one, NULL);
    CHECK_EQUAL(haft_io_read_lent(ends[0], &bytes), 1);
    haft_io_give_back(bytes);
    haft_io_join(task, NULL);
}
static seen_t see(const combination_t *c, bool by_system) {
    pthread_t thread;
    connect_kind(c->kind);
    if (c->lent && !by_system)
        read_one_lent();
    fcntl(ends[0], F_SETFL, 0);
    if (c->later) {
        CHECK_EQUAL(pthread_create(&thread, NULL, say_later, NULL), 0);
    } else {
        say("first");
        say("second");
        shutdown(ends[1], SHUT_WR);
    }
    if (c->lent && !by_system)
        haft_io_sleep(HAFT_IO_MILLISECOND / 10);
    seen_t seen = receive(c, by_system);
    if (c->later)
        pthread_join(thread, NULL);
    char *left = seen.left;
    for (ssize_t more; (more = haft_io_receive(ends[0], left, 20, MSG_DONTWAIT)) > 0; left += more)
        if (c->kind >= UDP) /* one from the next */
            left[more++] = '|';
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    return seen;
}

static void compare(const combination_t *c, const seen_t *expected) {
    seen_t got = see(c, false);
    if (memcmp(expected, &got, sizeof got) == 0)
        return;
    printf("kind %d, way %d, flags %x, size %d%s%s: %d '%.24s', %x, %d, '%s' left; in a thread "
           "%d '%.24s', %x, %d, '%s'\n",
           (int)c->kind, (int)c->way, (unsigned)c->flags, (int)c->size, c->later ? ", later" : "",
           c->lent ? ", lent" : "", (int)got.done, got.bytes, (unsigned)got.message_flags,
           (int)got.address_size, got.left, (int)expected->done, expected->bytes,
           (unsigned)expected->message_flags, (int)expected->address_size, expected->left);
    CHECK(!"as in a thread");
}
static void compare_all(bool lent) {
    static const int flags[] = {MSG_PEEK, MSG_WAITALL, MSG_TRUNC, MSG_DONTWAIT, MSG_OOB};
    enum { SETS = 32, CASES = 3 };
    static bool known[SETS][KINDS * WAYS * CASES];
    static seen_t expected[SETS][KINDS * WAYS * CASES];
    for (unsigned set = 0; set < SETS; set++)
        for (int i = 0; i < KINDS * WAYS * CASES; i++) {
            combination_t c = {.kind = (kind_t)(i / CASES / WAYS),
                               .way = (way_t)(i / CASES % WAYS),
                               .size = i % CASES == 0 ? 3 : 20,
                               .later = i % CASES == 2,
                               .lent = lent};
            for (size_t flag = 0; flag < sizeof flags / sizeof *flags; flag++)
                c.flags |= (set >> flag & 1) != 0 ? flags[flag] : 0;
            if ((c.later && (c.flags & (MSG_DONTWAIT | MSG_OOB)) != 0) || (lent && c.kind != TCP))
                continue;
            if (!known[set][i])
                expected[set][i] = see(&c, true);
            known[set][i] = true;
            compare(&c, &expected[set][i]);
        }
}
BODY(compare_on_tasks) {
    compare_all(false);
    compare_all(true);
    return NULL;
}
static void compare_in_a_run(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, compare_on_tasks, NULL), 0);
}
static void every_combination_of_flags_is_as_in_a_thread(void) {
    compare_all(false);
    check_everywhere(compare_in_a_run);
}

int main(void) {
    check_backend();
    RUN(a_task_gets_all);
    RUN(a_thread_gets_all);
    RUN(a_datagram_is_whole);
    RUN(every_combination_of_flags_is_as_in_a_thread);
    return check_end();
}
