/* The calls of the C library, on tasks: what would block the thread lets the other tasks run. Each
   test is a run in which somebody else on the same thread does what the call waits for. */
#include "check_posix.h"

#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/random.h>
#include <sys/mman.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/sendfile.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>

/* ---- Reading and writing ---- */

BODY(say_hello) {
    haft_io_yield();
    CHECK_EQUAL(write(ends[1], "hello", 5), 5);
    CHECK_EQUAL(close(ends[1]), 0);
    return NULL;
}
static void read_to_the_end(void) {
    char buffer[16];
    errno = ERANGE;
    CHECK_EQUAL(read(ends[0], buffer, sizeof buffer), 5);
    CHECK_EQUAL(errno, ERANGE);
    CHECK_EQUAL(read(ends[0], buffer, sizeof buffer), 0);
    CHECK_EQUAL(close(ends[0]), 0);
    errno = 0;
    CHECK_EQUAL(read(ends[0], buffer, sizeof buffer), -1);
    CHECK_EQUAL(errno, EBADF);
}
BODY(read_streams) {
    CHECK_EQUAL(pipe(ends), 0);
    haft_io_spawn(say_hello, NULL);
    read_to_the_end();
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    haft_io_spawn(say_hello, NULL);
    read_to_the_end();
    return NULL;
}
static void a_read_waits_and_leaves_errno_alone(void) {
    CHECK_RUNS(read_streams);
}

BODY(ask_without_waiting) {
    char byte;
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQUAL(recv(ends[0], &byte, 1, MSG_DONTWAIT), -1);
    CHECK_EQUAL(errno, EAGAIN);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    CHECK_EQUAL(read(ends[0], &byte, 1), -1);
    CHECK_EQUAL(errno, EAGAIN);
    CHECK_EQUAL(accept(ends[0], NULL, NULL), -1);
    fcntl(ends[0], F_SETFL, 0);
    struct timeval limit = {0, 2000};
    CHECK_EQUAL(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    errno = 0;
    CHECK_EQUAL(recv(ends[0], &byte, 1, 0), -1);
    CHECK_EQUAL(errno, EAGAIN);
    close(ends[0]);
    close(ends[1]);
    return NULL;
}
static void who_does_not_want_to_wait_gets_eagain(void) {
    CHECK_RUNS(ask_without_waiting);
}

BODY(write_much) {
    for (int socket = 0; socket < 2; socket++) {
        CHECK_EQUAL(socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends), 0);
        haft_io_task_t *drained = haft_io_async(drain, check_number(4 * LARGE));
        struct iovec parts[] = {{large, 3}, {NULL, 0}, {large + 3, LARGE - 3}};
        CHECK_EQUAL(write(ends[1], large, LARGE), LARGE);
        CHECK_EQUAL(writev(ends[1], parts, 3), LARGE);
        CHECK_EQUAL(socket ? send(ends[1], large, LARGE, 0) : write(ends[1], large, LARGE), LARGE);
        CHECK_EQUAL(writev(ends[1], parts + 1, 2), LARGE - 3);
        CHECK_EQUAL(write(ends[1], "abc", 3), 3);
        close(ends[1]);
        haft_io_join(drained, NULL);
        close(ends[0]);
    }
    return NULL;
}
static void what_a_blocking_call_writes_is_written_in_full(void) {
    CHECK_RUNS(write_much);
}

BODY(say_it_in_parts) {
    for (int i = 0; i < 5; i++) {
        haft_io_sleep(HAFT_IO_MILLISECOND / 10);
        send(ends[1], &"parts"[i], 1, 0);
    }
    return NULL;
}
BODY(receive_all) {
    char text[6] = "";
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    haft_io_spawn(say_it_in_parts, NULL);
    CHECK_EQUAL(recv(ends[0], text, 5, MSG_WAITALL), 5);
    CHECK(strcmp(text, "parts") == 0);
    close(ends[0]);
    close(ends[1]);
    return NULL;
}
static void waitall_waits_for_all(void) {
    CHECK_RUNS(receive_all);
}

/* The first wait is ended by a part, the second by the limit of the socket: both by the same
   time. */
static int64_t limits[2];
static size_t waits;
static int wait_until_limit(void *outward, HAFT_PAYLOAD(haft_io_poll) * payload) {
    CHECK_EQUAL(payload->count, 1);
    CHECK(waits < 2);
    limits[waits++ % 2] = payload->deadline;
    if (waits == 2)
        return 0;
    char part[LARGE / 16];
    CHECK(outward != NULL ? read(ends[1], part, sizeof part) > 0 : write(ends[1], "part", 4) == 4);
    payload->entries->revents = payload->entries->events;
    return 1;
}
HAFT_HANDLER(waiting_once, NULL, HAFT_TAIL(haft_io_poll, wait_until_limit));
static void *receive_in_part(void *unused) {
    char text[8];
    CHECK_EQUAL(recv(ends[0], text, sizeof text, MSG_WAITALL), 4);
    return unused;
}
static void *send_in_part(void *unused) {
    while (send(ends[0], large, LARGE, MSG_DONTWAIT) > 0)
        continue;
    ssize_t sent = send(ends[0], large, LARGE, 0);
    CHECK(sent > 0 && sent < LARGE);
    return unused;
}
static void keep_to_limit(int option, void *(*transfer)(void *), void *outward) {
    struct timeval limit = {100, 0};
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQUAL(setsockopt(ends[0], SOL_SOCKET, option, &limit, sizeof limit), 0);
    waits = 0;
    haft_handle(&waiting_once, outward, transfer, NULL);
    CHECK_EQUAL(waits, 2);
    CHECK_EQUAL(limits[1], limits[0]);
    close(ends[0]);
    close(ends[1]);
}
BODY(keep_to_limits) {
    keep_to_limit(SO_RCVTIMEO, receive_in_part, NULL);
    keep_to_limit(SO_SNDTIMEO, send_in_part, ends);
    return NULL;
}
static void the_limit_of_a_socket_is_that_of_the_whole_call(void) {
    CHECK_RUNS(keep_to_limits);
}

/* A descriptor goes along with the first byte, once, though the rest is sent in a second try. */
BODY(receive_descriptor) {
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    CHECK_EQUAL(recvmsg(ends[0], &message, 0), 1);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    CHECK(header != NULL && header->cmsg_type == SCM_RIGHTS);
    int passed;
    memcpy(&passed, CMSG_DATA(header), sizeof passed);
    CHECK_EQUAL(write(passed, "x", 1), 1);
    close(passed);
    static char rest[LARGE];
    for (size_t got = 1; got < LARGE;) {
        message.msg_iov = &(struct iovec){rest, sizeof rest};
        message.msg_controllen = sizeof control;
        ssize_t more = recvmsg(ends[0], &message, 0);
        CHECK(more > 0);
        CHECK_EQUAL(message.msg_controllen, 0);
        got += (size_t)more;
    }
    return NULL;
}
BODY(pass_a_descriptor) {
    int other[2];
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQUAL(pipe(other), 0);
    haft_io_task_t *receiver = haft_io_async(receive_descriptor, NULL);
    haft_io_yield();
    char control[CMSG_SPACE(sizeof(int))] = "", byte;
    struct msghdr message = {.msg_iov = &(struct iovec){large, LARGE},
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &other[1], sizeof(int));
    CHECK_EQUAL(sendmsg(ends[1], &message, 0), LARGE);
    CHECK_EQUAL(read(other[0], &byte, 1), 1);
    haft_io_join(receiver, NULL);
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(other[i]);
    }
    return NULL;
}
static void a_descriptor_is_passed_once(void) {
    CHECK_RUNS(pass_a_descriptor);
}

/* One that comes along with a later piece, and one without room for it, both end what is received
   in full. */
static void send_with(const char *text, int passed) {
    char control[CMSG_SPACE(sizeof(int))] = "";
    struct msghdr message = {.msg_iov = &(struct iovec){(void *)(uintptr_t)text, strlen(text)},
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &passed, sizeof passed);
    CHECK_EQUAL(sendmsg(ends[1], &message, 0), (ssize_t)strlen(text));
}
BODY(send_with_later_pieces) {
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(send(ends[1], "ab", 2, 0), 2);
        haft_io_sleep(HAFT_IO_MILLISECOND);
        send_with("cd", ends[1]);
        haft_io_sleep(HAFT_IO_MILLISECOND);
        CHECK_EQUAL(send(ends[1], "ef", 2, 0), 2);
    }
    return NULL;
}
BODY(receive_later_pieces) {
    char text[7] = "";
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    haft_io_task_t *sender = haft_io_async(send_with_later_pieces, NULL);
    char control[CMSG_SPACE(sizeof(int))] = "";
    struct iovec parts[] = {{text, 3}, {text + 3, 3}};
    struct msghdr message = {.msg_iov = parts,
                             .msg_iovlen = 2,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    CHECK_EQUAL(recvmsg(ends[0], &message, MSG_WAITALL), 4);
    CHECK(strcmp(text, "abcd") == 0);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    CHECK(header != NULL && header->cmsg_type == SCM_RIGHTS);
    int passed;
    memcpy(&passed, CMSG_DATA(header), sizeof passed);
    CHECK_EQUAL(close(passed), 0);
    /* The bytes sent after it, and those of the next round, up to its descriptor. */
    message.msg_control = NULL;
    message.msg_controllen = 0;
    CHECK_EQUAL(recvmsg(ends[0], &message, MSG_WAITALL), 6);
    CHECK(strcmp(text, "efabcd") == 0);
    CHECK((message.msg_flags & MSG_CTRUNC) != 0);
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    haft_io_join(sender, NULL);
    close(ends[1]);
    CHECK_EQUAL(recvmsg(ends[0], &message, MSG_WAITALL), 2);
    CHECK_EQUAL(message.msg_controllen, 0);
    close(ends[0]);
    return NULL;
}
static void a_descriptor_of_a_later_piece_is_kept(void) {
    CHECK_RUNS(receive_later_pieces);
}

/* The sender does not read the bytes sent to it, so its close resets the connection. */
BODY(send_and_reset) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(send(ends[1], "ab", 2, 0), 2);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(send(ends[1], "cd", 2, 0), 2);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    close(ends[1]);
    return NULL;
}
BODY(receive_until_a_reset) {
    char text[7] = "";
    struct msghdr message = {.msg_iov = &(struct iovec){text, sizeof text}, .msg_iovlen = 1};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    for (int by_message = 0; by_message < 2; by_message++) {
        if (by_message == 0) {
            CHECK_EQUAL(bind(listener, (struct sockaddr *)&address, size), 0);
            CHECK_EQUAL(listen(listener, 1), 0);
            CHECK_EQUAL(getsockname(listener, (struct sockaddr *)&address, &size), 0);
        }
        ends[1] = socket(AF_INET, SOCK_STREAM, 0);
        CHECK_EQUAL(connect(ends[1], (struct sockaddr *)&address, size), 0);
        ends[0] = accept(listener, NULL, NULL);
        CHECK_EQUAL(send(ends[0], "x", 1, 0), 1);
        haft_io_task_t *sender = haft_io_async(send_and_reset, NULL);
        CHECK_EQUAL(by_message ? recvmsg(ends[0], &message, MSG_WAITALL)
                               : recv(ends[0], text, sizeof text, MSG_WAITALL),
                    4);
        CHECK(strcmp(text, "abcd") == 0);
        CHECK_EQUAL(recv(ends[0], text, sizeof text, MSG_WAITALL), -1);
        CHECK_EQUAL(errno, ECONNRESET);
        CHECK_EQUAL(recv(ends[0], text, sizeof text, MSG_WAITALL), 0);
        haft_io_join(sender, NULL);
        close(ends[0]);
    }
    close(listener);
    return NULL;
}
static void an_error_after_a_part_is_the_next_calls(void) {
    CHECK_RUNS(receive_until_a_reset);
}

/* A wrong address is the system's error. */
static bool is_fault(ssize_t code) {
    return code == -1 && errno == EFAULT;
}
BODY(give_no_memory) {
    void *volatile nothing = NULL;
    struct msghdr message = {.msg_iov = nothing, .msg_iovlen = 2};
    struct sockaddr_un from;
    char byte;
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    CHECK_EQUAL(send(ends[1], "x", 1, 0), 1);
    CHECK(is_fault(readv(ends[0], nothing, 1)));
    CHECK(is_fault(writev(ends[0], nothing, 1)));
    CHECK(is_fault(recvmsg(ends[0], nothing, 0)));
    CHECK(is_fault(sendmsg(ends[0], nothing, 0)));
    CHECK(is_fault(recvmsg(ends[0], &message, 0)));
    CHECK(is_fault(sendmsg(ends[0], &message, 0)));
    CHECK(is_fault(recvfrom(ends[0], &byte, 1, 0, (struct sockaddr *)&from, nothing)));
    message.msg_iovlen = (size_t)IOV_MAX + 1;
    CHECK_EQUAL(recvmsg(ends[0], &message, 0), -1);
    CHECK_EQUAL(errno, EMSGSIZE);
    close(ends[0]);
    close(ends[1]);
    return NULL;
}
static void what_is_no_memory_is_an_error(void) {
    if (check_bare()) /* Sanitizers and Valgrind look at it first. */
        CHECK_RUNS(give_no_memory);
}

/* ---- Beside libhaft-io's own operations, whose calls of the system come here, too ---- */

enum { SERVERS = 8, QUESTIONS = 20 };
static struct sockaddr_in served_address;
static void *serve_one(void *connection) {
    int own = (int)(intptr_t)connection;
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    ssize_t size = haft_io_read_lent(own, &bytes);
    errno = ERANGE;
    while (size > 0 && haft_io_write_all(own, bytes, (size_t)size) == 0)
        size = haft_io_read_lent(own, &bytes);
    CHECK_EQUAL(errno, ERANGE);
    CHECK_EQUAL(size, 0);
    CHECK(bytes == NULL);
    CHECK_EQUAL(close(own), 0);
    return NULL;
}
static void *call_server(void *number) {
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    char answer[sizeof(int)], question[sizeof(int)];
    CHECK_EQUAL(connect(connection, (struct sockaddr *)&served_address, sizeof served_address), 0);
    for (int i = 0; i < QUESTIONS; i++) {
        int value = (int)(intptr_t)number * QUESTIONS + i;
        memcpy(question, &value, sizeof value);
        CHECK_EQUAL(send(connection, question, 1, 0), 1);
        if (i % 2 == 0) /* in one piece, or in two */
            CHECK_EQUAL(sched_yield(), 0);
        CHECK_EQUAL(write(connection, question + 1, sizeof question - 1), sizeof question - 1);
        struct pollfd entry = {connection, POLLIN, 0};
        CHECK_EQUAL(poll(&entry, 1, -1), 1);
        CHECK_EQUAL(recv(connection, answer, sizeof answer, MSG_WAITALL), sizeof answer);
        CHECK(memcmp(answer, question, sizeof answer) == 0);
    }
    CHECK_EQUAL(shutdown(connection, SHUT_WR), 0);
    CHECK_EQUAL(read(connection, answer, 1), 0);
    CHECK_EQUAL(close(connection), 0);
    return NULL;
}
BODY(serve_callers) {
    HAFT_IO_SCOPED_DESCRIPTOR int own = haft_io_listen_tcp("127.0.0.1", 0, 0);
    served_address = (struct sockaddr_in){.sin_family = AF_INET,
                                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                          .sin_port = htons((uint16_t)haft_io_port(own))};
    for (int i = 0; i < SERVERS; i++)
        haft_io_spawn(call_server, check_number(i));
    for (int i = 0; i < SERVERS; i++)
        haft_io_spawn(serve_one, check_number(haft_io_accept(own)));
    return NULL;
}
static void serve_on(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, serve_callers, NULL), 0);
}
static void operations_go_on_beside_callers_of_the_systems_functions(void) {
    check_everywhere(serve_on);
}

/* ---- Connections ---- */

static struct sockaddr_in address;
static int listener;

BODY(call_in) {
    char answer[8];
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(connect(connection, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQUAL(send(connection, "ping", 4, 0), 4);
    CHECK_EQUAL(recv(connection, answer, sizeof answer, 0), 4);
    CHECK((fcntl(connection, F_GETFL) & O_NONBLOCK) == 0);
    CHECK_EQUAL(close(connection), 0);
    return NULL;
}
BODY(answer_calls) {
    socklen_t size = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
    CHECK_EQUAL(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQUAL(listen(listener, 5), 0);
    CHECK_EQUAL(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    for (int i = 0; i < 3; i++) {
        haft_io_task_t *caller = haft_io_async(call_in, NULL);
        struct sockaddr_in peer;
        size = sizeof peer;
        int connection = i == 0 ? accept(listener, NULL, NULL)
                                : accept4(listener, (struct sockaddr *)&peer, &size, SOCK_CLOEXEC);
        CHECK(connection >= 0);
        CHECK(i == 0 || peer.sin_family == AF_INET);
        char ping[4];
        CHECK_EQUAL(recv(connection, ping, 4, MSG_WAITALL), 4);
        CHECK_EQUAL(send(connection, "pong", 4, 0), 4);
        CHECK_EQUAL(read(connection, ping, 4), 0);
        close(connection);
        haft_io_join(caller, NULL);
    }
    close(listener);
    int refused = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(connect(refused, (struct sockaddr *)&address, sizeof address), -1);
    CHECK_EQUAL(errno, ECONNREFUSED);
    close(refused);
    return NULL;
}
static void connections_are_made_on_one_thread(void) {
    CHECK_RUNS(answer_calls);
}

BODY(send_datagram) {
    haft_io_yield();
    int sender = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK_EQUAL(sendto(sender, "dgram", 5, 0, (struct sockaddr *)&address, sizeof address), 5);
    close(sender);
    return NULL;
}
BODY(receive_datagram) {
    socklen_t size = sizeof address;
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
    int receiver = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK_EQUAL(bind(receiver, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQUAL(getsockname(receiver, (struct sockaddr *)&address, &size), 0);
    haft_io_spawn(send_datagram, NULL);
    char text[16];
    struct sockaddr_in from = {0};
    size = sizeof from;
    CHECK_EQUAL(recvfrom(receiver, text, sizeof text, MSG_WAITALL, (struct sockaddr *)&from, &size),
                5);
    CHECK_EQUAL(from.sin_family, AF_INET);
    CHECK_EQUAL(size, sizeof from);
    close(receiver);
    return NULL;
}
static void a_datagram_comes_with_its_sender(void) {
    CHECK_RUNS(receive_datagram);
}

/* More connections than the listener has room for: the rest wait until it takes some. */
enum { CALLERS = 6 };
static struct sockaddr_un local = {.sun_family = AF_UNIX};
BODY(connect_locally) {
    int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_EQUAL(connect(connection, (struct sockaddr *)&local, sizeof local), 0);
    close(connection);
    return NULL;
}
BODY(crowd_a_listener) {
    snprintf(local.sun_path + 1, sizeof local.sun_path - 1, "haft-posix-%d", (int)getpid());
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_EQUAL(bind(listener, (struct sockaddr *)&local, sizeof local), 0);
    CHECK_EQUAL(listen(listener, 0), 0);
    for (int i = 0; i < CALLERS; i++)
        haft_io_spawn(connect_locally, NULL);
    for (int i = 0; i < CALLERS; i++) {
        haft_io_sleep(HAFT_IO_MILLISECOND);
        int connection = accept(listener, NULL, NULL);
        CHECK(connection >= 0);
        close(connection);
    }
    close(listener);
    return NULL;
}
static void connecting_to_a_busy_unix_listener_waits(void) {
    CHECK_RUNS(crowd_a_listener);
}

BODY(connect_later) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(connect(connection, (struct sockaddr *)&address, sizeof address), 0);
    errno = 0;
    CHECK_EQUAL(connect(connection, (struct sockaddr *)&address, sizeof address), -1);
    CHECK_EQUAL(errno, EISCONN);
    close(connection);

    /* Begun without blocking, finished by a call that blocks. */
    connection = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int begun = connect(connection, (struct sockaddr *)&address, sizeof address);
    fcntl(connection, F_SETFL, 0);
    CHECK(begun == 0 || connect(connection, (struct sockaddr *)&address, sizeof address) == 0);
    close(connection);
    return NULL;
}
BODY(connect_twice) {
    socklen_t size = sizeof address;
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
    listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQUAL(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    int refused = socket(AF_INET, SOCK_STREAM, 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(connect(refused, (struct sockaddr *)&address, sizeof address), -1);
        CHECK_EQUAL(errno, ECONNREFUSED);
    }
    CHECK_EQUAL(listen(listener, 1), 0);
    haft_io_spawn(connect_later, NULL);
    for (int i = 0; i < 2; i++) {
        int connection = accept(listener, NULL, NULL);
        CHECK(connection >= 0);
        close(connection);
    }
    CHECK_EQUAL(connect(refused, (struct sockaddr *)&address, sizeof address), 0);
    close(refused);
    close(listener);
    return NULL;
}
static void a_second_connect_says_what_the_systems_does(void) {
    CHECK_RUNS(connect_twice);
}

BODY(accept_from_no_listener) {
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQUAL(accept(ends[0], NULL, NULL), -1);
    CHECK_EQUAL(errno, EINVAL);
    close(ends[0]);
    close(ends[1]);
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(accept(ends[0], NULL, NULL), -1);
    CHECK_EQUAL(errno, ENOTSOCK);
    close(ends[0]);
    close(ends[1]);
    return NULL;
}
static void who_does_not_listen_cannot_accept(void) {
    CHECK_RUNS(accept_from_no_listener);
}

/* ---- poll and its kin ---- */

BODY(write_a_byte) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(write(ends[1], "x", 1), 1);
    return NULL;
}
static void read_a_byte(void) {
    char byte;
    CHECK_EQUAL(read(ends[0], &byte, 1), 1);
}
BODY(wait_in_every_way) {
    int silent[2];
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(pipe(silent), 0);
    struct pollfd entries[] = {{silent[0], POLLIN, 0}, {ends[0], POLLIN, 0}};

    CHECK_EQUAL(poll(entries, 2, 0), 0);
    CHECK_EQUAL(poll(entries, 2, 1), 0);
    haft_io_spawn(write_a_byte, NULL);
    CHECK_EQUAL(poll(entries, 2, -1), 1);
    CHECK_EQUAL(entries[1].revents, POLLIN);
    read_a_byte();

    haft_io_spawn(write_a_byte, NULL);
    CHECK_EQUAL(ppoll(entries, 2, &(struct timespec){1000, 0}, NULL), 1);
    read_a_byte();
    CHECK_EQUAL(ppoll(entries, 2, &(struct timespec){0, -1}, NULL), -1);
    CHECK_EQUAL(errno, EINVAL);

    fd_set readable, writable;
    FD_ZERO(&readable);
    FD_ZERO(&writable);
    FD_SET(ends[0], &readable);
    FD_SET(silent[0], &readable);
    struct timeval limit = {0, 1000};
    CHECK_EQUAL(select(ends[1] + 1, NULL, NULL, NULL, &limit), 0);
    CHECK_EQUAL(limit.tv_usec, 0);
    haft_io_spawn(write_a_byte, NULL);
    limit.tv_sec = 1000;
    CHECK_EQUAL(select(silent[1] + 1, &readable, NULL, NULL, &limit), 1);
    CHECK(FD_ISSET(ends[0], &readable) && !FD_ISSET(silent[0], &readable));
    CHECK(limit.tv_sec >= 900 && limit.tv_sec < 1000);
    FD_SET(ends[1], &writable);
    CHECK_EQUAL(pselect(silent[1] + 1, &readable, &writable, NULL, NULL, NULL), 2);
    read_a_byte();

    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = 7};
    CHECK_EQUAL(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event), 0);
    CHECK_EQUAL(epoll_wait(epoll, &event, 1, 1), 0);
    haft_io_spawn(write_a_byte, NULL);
    CHECK_EQUAL(epoll_wait(epoll, &event, 1, -1), 1);
    CHECK_EQUAL(event.data.fd, 7);
    read_a_byte();
    close(epoll);
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(silent[i]);
    }
    CHECK_EQUAL(select(ends[0] + 1, &readable, NULL, NULL, NULL), -1);
    CHECK_EQUAL(errno, EBADF);
    return NULL;
}
static void poll_select_and_epoll_wait(void) {
    CHECK_RUNS(wait_in_every_way);
}

/* The descriptors of the process are many fewer than its limit. */
BODY(select_up_to_the_limit) {
    enum { BEHIND = 1 << 16 };
    struct {
        fd_set readable;
        unsigned char behind[BEHIND];
    } *sets = malloc(sizeof *sets);
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(write(ends[1], "x", 1), 1);
    const int counts[] = {FD_SETSIZE + BEHIND * 8, INT_MAX};
    for (int i = 0; i < 2; i++) {
        memset(sets, 0xff, sizeof *sets);
        FD_ZERO(&sets->readable);
        FD_SET(ends[0], &sets->readable);
        CHECK_EQUAL(select(counts[i], &sets->readable, NULL, NULL, &(struct timeval){0, 0}), 1);
        CHECK(FD_ISSET(ends[0], &sets->readable));
        size_t kept = 0;
        while (kept < BEHIND && sets->behind[kept] == 0xff)
            kept++;
        CHECK_EQUAL(kept, BEHIND);
    }
    free(sets);
    close(ends[0]);
    close(ends[1]);
    return NULL;
}
static void select_looks_at_no_more_than_there_can_be_descriptors(void) {
    CHECK_RUNS(select_up_to_the_limit);
}

/* A set for more descriptors than an fd_set has room for. */
/* The kernel only sees closed members for which its table of descriptors has room; here the program
   has few, and the last member of a set is beyond. A task gets the same result as an ordinary
   thread. */
typedef struct selected {
    fd_set readable;
    int members, error;
} selected_t;
static void *select_closed(void *argument) {
    selected_t *selected = argument;
    errno = 0;
    selected->members =
        select(FD_SETSIZE, &selected->readable, NULL, NULL, &(struct timeval){0, 0});
    selected->error = errno;
    return NULL;
}
BODY(select_closed_ones) {
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(write(ends[1], "x", 1), 1);
    for (int i = 0; i < 8; i++) {
        selected_t here, there;
        pthread_t thread;
        FD_ZERO(&here.readable);
        if (i % 2 != 0)
            FD_SET(FD_SETSIZE - 1, &here.readable);
        if (i / 2 % 2 != 0)
            FD_SET(ends[0], &here.readable);
        if (i / 4 != 0)
            FD_SET(ends[1] + 1, &here.readable);
        there = here;
        select_closed(&here);
        CHECK_EQUAL(pthread_create(&thread, NULL, select_closed, &there), 0);
        pthread_join(thread, NULL);
        CHECK_EQUAL(here.members, there.members);
        CHECK_EQUAL(here.error, there.error);
        CHECK(memcmp(&here.readable, &there.readable, sizeof here.readable) == 0);
    }
    close(ends[0]);
    close(ends[1]);
    return NULL;
}
static void select_reports_the_closed_ones_that_the_kernel_does(void) {
    CHECK_RUNS(select_closed_ones);
}

BODY(select_far) {
    enum { FAR = 3000 };
    static fd_mask set[FAR / NFDBITS + 1];
    if (getdtablesize() <= FAR)
        return NULL;
    CHECK_EQUAL(pipe(ends), 0);
    int far = fcntl(ends[0], F_DUPFD, FAR);
    CHECK_EQUAL(write(ends[1], "x", 1), 1);
    set[far / NFDBITS] = (fd_mask)(1UL << (far % NFDBITS));
    CHECK_EQUAL(select(far + 1, (fd_set *)(void *)set, NULL, NULL, NULL), 1);
    CHECK(set[far / NFDBITS] == (fd_mask)(1UL << (far % NFDBITS)));
    close(far);
    close(ends[0]);
    close(ends[1]);
    return NULL;
}
static void select_takes_sets_that_are_larger_than_an_fd_set(void) {
    CHECK_RUNS(select_far);
}

static volatile sig_atomic_t signals;
static int told[2]; /* a pipe that does not block */
static void count_signal(int number) {
    (void)number;
    signals++;
    if (write(told[1], "s", 1) != 1)
        abort();
}
BODY(send_signal) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    kill(getpid(), SIGUSR1);
    return NULL;
}
BODY(wait_for_a_signal) {
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    struct sigaction action = {.sa_handler = count_signal};
    sigaction(SIGUSR1, &action, NULL);
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(haft_io_pipe(told), 0);
    struct pollfd entry = {ends[0], POLLIN, 0};
    haft_io_spawn(send_signal, NULL);
    CHECK_EQUAL(ppoll(&entry, 1, NULL, &before), -1);
    CHECK_EQUAL(errno, EINTR);
    CHECK_EQUAL(signals, 1);
    raise(SIGUSR1);
    CHECK_EQUAL(pselect(0, NULL, NULL, NULL, NULL, &before), -1);
    CHECK_EQUAL(errno, EINTR);
    CHECK_EQUAL(signals, 2);
    haft_io_spawn(write_a_byte, NULL);
    CHECK_EQUAL(ppoll(&entry, 1, NULL, &before), 1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    raise(SIGUSR1);
    char bytes[8];
    CHECK_EQUAL(read(told[0], bytes, sizeof bytes), 3);
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(told[i]);
    }
    return NULL;
}
static void a_signal_that_the_mask_lets_through_ends_the_wait(void) {
    CHECK_RUNS(wait_for_a_signal);
}

/* ---- Time ---- */

static char order[16];
static int slept;
BODY(sleep_long) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1000;
    CHECK_EQUAL(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL), 0);
    order[slept++] = 'b';
    return NULL;
}
BODY(sleep_shortly) {
    CHECK_EQUAL(usleep(100), 0);
    CHECK_EQUAL(nanosleep(&(struct timespec){0, 1000}, NULL), 0);
    CHECK_EQUAL(thrd_sleep(&(struct timespec){0, 1000}, NULL), 0);
    CHECK_EQUAL(clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){0, 1000}, NULL), 0);
    CHECK_EQUAL(clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){0, -1}, NULL), EINVAL);
    CHECK_EQUAL(nanosleep(&(struct timespec){0, HAFT_IO_SECOND}, NULL), -1);
    CHECK_EQUAL(errno, EINVAL);
    const struct timespec *volatile nothing = NULL;
    CHECK_EQUAL(nanosleep(nothing, NULL), -1);
    CHECK_EQUAL(errno, EFAULT);
    CHECK_EQUAL(clock_nanosleep(CLOCK_MONOTONIC, 0, nothing, NULL), EFAULT);
    order[slept++] = 'a';
    return NULL;
}
BODY(sleep_in_turns) {
    haft_io_spawn(sleep_long, NULL);
    haft_io_spawn(sleep_shortly, NULL);
    CHECK_EQUAL(sleep(2000), 0);
    order[slept++] = 'c';
    return NULL;
}
static int64_t time_of(clockid_t clock) {
    struct timespec time;
    CHECK_EQUAL(clock_gettime(clock, &time), 0);
    return time.tv_sec * HAFT_IO_SECOND + time.tv_nsec;
}
BODY(look_at_clocks) {
    static const clockid_t clocks[] = {
        CLOCK_MONOTONIC, CLOCK_MONOTONIC_COARSE, CLOCK_MONOTONIC_RAW,
        CLOCK_BOOTTIME,  CLOCK_REALTIME,         CLOCK_REALTIME_COARSE,
        CLOCK_TAI,       CLOCK_BOOTTIME_ALARM,   CLOCK_REALTIME_ALARM};
    for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++) {
        int64_t begun = time_of(clocks[i]);
        sleep(2000);
        int64_t passed = time_of(clocks[i]) - begun;
        CHECK(passed >= 2000 * HAFT_IO_SECOND && passed < 2001 * HAFT_IO_SECOND);
    }
    return NULL;
}
BODY(look_at_dates) {
    time_t date = time(NULL), same;
    struct timeval begun, ended;
    struct timespec standard;
    CHECK_EQUAL(gettimeofday(&begun, NULL), 0);
    haft_io_sleep(3600 * HAFT_IO_SECOND);
    time_t returned = time(&same);
    CHECK_EQUAL(returned, same);
    CHECK(same - date >= 3600 && same - date <= 3601);
    CHECK_EQUAL(gettimeofday(&ended, NULL), 0);
    CHECK(ended.tv_sec - begun.tv_sec >= 3600 && ended.tv_sec - begun.tv_sec <= 3601);
    CHECK(ended.tv_usec >= 0 && ended.tv_usec < 1000000);
    CHECK_EQUAL(timespec_get(&standard, TIME_UTC), TIME_UTC);
    CHECK(standard.tv_sec - date >= 3600 && standard.tv_sec - date <= 3601);
    CHECK_EQUAL(syscall(SYS_clock_gettime, CLOCK_REALTIME, &standard), 0);
    CHECK(standard.tv_sec == same);
    CHECK_EQUAL(syscall(SYS_gettimeofday, &begun, NULL), 0);
    CHECK(begun.tv_sec == same);
    struct timezone zone = {-1, -1};
    CHECK_EQUAL(gettimeofday(&ended, &zone), 0);
    CHECK(ended.tv_sec == same && zone.tz_dsttime >= 0);
    CHECK(syscall(SYS_clock_gettime, CLOCK_REALTIME, NULL) == -1 && errno == EFAULT);
    return NULL;
}
static void *tell_date(void *date) {
    *(time_t *)date = time(NULL);
    sleep(100 * 365 * 86400U);
    return NULL;
}
static void dates_are_virtual_in_a_simulation(void) {
    time_t begun = time(NULL);
    CHECK_EQUAL(haft_io_simulate(look_at_dates, NULL), 0);
    CHECK(time(NULL) - begun < 3600);
    time_t first = 0, second = 0;
    CHECK_EQUAL(haft_io_simulate(tell_date, &first), 0);
    CHECK_EQUAL(haft_io_simulate(tell_date, &second), 0);
    CHECK_EQUAL(first, 1735689600);
    CHECK_EQUAL(second, first);
}

BODY(sleep_by_polls) {
    struct pollfd none[] = {{-1, POLLIN, 0}, {-1, POLLOUT, 0}};
    int64_t begun = haft_io_now();
    CHECK_EQUAL(poll(NULL, 0, 3600000), 0);
    CHECK_EQUAL(poll(none, 2, 3600000), 0);
    CHECK_EQUAL(select(0, NULL, NULL, NULL, &(struct timeval){3600, 0}), 0);
    CHECK(haft_io_now() - begun >= 3 * 3600 * HAFT_IO_SECOND);
    return NULL;
}
static void a_poll_of_nothing_sleeps_in_virtual_time(void) {
    CHECK_EQUAL(check_io_simulate_with(NULL, sleep_by_polls, NULL), 0);
}

BODY(sleep_beyond_the_clock) {
    CHECK_EQUAL(nanosleep(&(struct timespec){INT64_MAX, 0}, NULL), 0);
    CHECK(poll(NULL, 0, 1000000) == 0 && time(NULL) > 10000000000);
    CHECK_EQUAL(
        clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &(struct timespec){INT64_MAX, 0}, NULL), 0);
    return NULL;
}
static void a_sleep_beyond_the_clock_ends_in_a_simulation(void) {
    CHECK_EQUAL(check_io_simulate_with(NULL, sleep_beyond_the_clock, NULL), 0);
}

static unsigned char drawn[2][24];
static void *draw_bytes(void *into) {
    CHECK_EQUAL(getrandom(into, 8, 0), 8);
    CHECK_EQUAL(syscall(SYS_getrandom, (char *)into + 8, 8, 0), 8);
    CHECK_EQUAL(getentropy((char *)into + 16, 8), 0);
    return NULL;
}
static void random_bytes_are_the_seeds_in_a_simulation(void) {
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(
            haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = 7}, draw_bytes, drawn[i]),
            0);
    CHECK(memcmp(drawn[0], drawn[1], sizeof drawn[0]) == 0);
    CHECK_EQUAL(
        haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = 8}, draw_bytes, drawn[1]), 0);
    CHECK(memcmp(drawn[0], drawn[1], sizeof drawn[0]) != 0);
    CHECK_EQUAL(haft_io_run(draw_bytes, drawn[1]), 0);
}

/* Random bytes that a process draws once and keeps must not change its later runs. */
static char turns[2][8];
static size_t places;
static bool draws;
static void *note_turn(void *argument) {
    turns[draws][places++] = (char)(intptr_t)argument;
    return NULL;
}
BODY(spawn_some) {
    places = 0;
    if (draws)
        CHECK_EQUAL(getrandom(drawn[0], 16, 0), 16);
    for (int i = 0; i < 8; i++)
        haft_io_spawn(note_turn, (void *)(intptr_t)i);
    return NULL;
}
static void random_bytes_leave_the_order_as_it_is(void) {
    for (int i = 0; i < 2; i++) {
        draws = i == 1;
        CHECK_EQUAL(
            haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = 7}, spawn_some, NULL), 0);
    }
    CHECK(memcmp(turns[0], turns[1], sizeof turns[0]) == 0);
}

static void clocks_are_virtual_in_a_simulation(void) {
    int64_t begun = time_of(CLOCK_MONOTONIC), date = time_of(CLOCK_REALTIME);
    CHECK_EQUAL(haft_io_simulate(look_at_clocks, NULL), 0);
    CHECK(time_of(CLOCK_MONOTONIC) - begun < 2000 * HAFT_IO_SECOND);
    CHECK(time_of(CLOCK_REALTIME) - date < 2000 * HAFT_IO_SECOND);
}
static void a_sleep_is_the_tasks_own(void) {
    CHECK_RUNS(sleep_shortly);
    slept = 0;
    CHECK_EQUAL(haft_io_simulate(sleep_in_turns, NULL), 0);
    CHECK(strcmp(order, "abc") == 0);
}

/* A library under test, with streams that exist only in the simulation, and may break. */
BODY(answer_in_the_simulation) {
    char question[8] = "";
    CHECK_EQUAL(recv(ends[1], question, 1, MSG_PEEK), 1);
    CHECK_EQUAL(recv(ends[1], question, 2, MSG_WAITALL), 2);
    CHECK_EQUAL(strcmp(question, "??"), 0);
    CHECK_EQUAL(write(ends[1], large, LARGE / 64), LARGE / 64);
    haft_io_sleep(HAFT_IO_SECOND);
    haft_io_simulated_break(ends[1]);
    CHECK_EQUAL(close(ends[1]), 0);
    return NULL;
}
BODY(ask_in_the_simulation) {
    static char answer[LARGE];
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    haft_io_spawn(answer_in_the_simulation, NULL);
    CHECK_EQUAL(send(ends[0], "??", 2, 0), 2);
    struct pollfd entry = {ends[0], POLLIN, 0};
    for (size_t got = 0; got < LARGE / 64;) {
        CHECK_EQUAL(poll(&entry, 1, -1), 1);
        ssize_t more = read(ends[0], answer, sizeof answer);
        CHECK(more > 0);
        got += more > 0 ? (size_t)more : LARGE;
    }
    CHECK_EQUAL(read(ends[0], answer, 1), -1);
    CHECK_EQUAL(errno, ECONNRESET);
    CHECK_EQUAL(close(ends[0]), 0);
    CHECK_EQUAL(read(ends[0], answer, 1), -1);
    CHECK_EQUAL(errno, EBADF);
    CHECK_EQUAL(write(-1, answer, 1), -1);
    CHECK_EQUAL(errno, EBADF);
    return NULL;
}
static void a_library_runs_in_the_simulation(void) {
    for (uint64_t seed = 1; seed <= 20; seed++)
        CHECK_EQUAL(haft_io_simulate_with(
                        &(haft_io_simulation_options_t){.seed = seed, .short_counts = true},
                        ask_in_the_simulation, NULL),
                    0);
}

BODY(say_it_in_pieces) {
    for (int i = 0; i < 5; i++) {
        haft_io_sleep(HAFT_IO_SECOND);
        CHECK_EQUAL(send(ends[1], &"parts"[i], 1, 0), 1);
    }
    return NULL;
}
BODY(receive_all_in_the_simulation) {
    char first[3] = "", second[4] = "", control[32];
    struct iovec parts[] = {{first, 2}, {NULL, 0}, {second, 3}};
    struct msghdr message = {.msg_iov = parts,
                             .msg_iovlen = 3,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    haft_io_spawn(say_it_in_pieces, NULL);
    CHECK_EQUAL(recvmsg(ends[0], &message, MSG_WAITALL | MSG_PEEK), 5);
    CHECK_EQUAL(recvmsg(ends[0], &message, MSG_WAITALL), 5);
    CHECK_EQUAL(message.msg_controllen, 0);
    CHECK(strcmp(first, "pa") == 0 && strcmp(second, "rts") == 0);
    haft_io_spawn(say_it_in_pieces, NULL);
    CHECK_EQUAL(recvmsg(ends[0], &message, MSG_WAITALL), 5);
    CHECK(strcmp(first, "pa") == 0 && strcmp(second, "rts") == 0);
    return NULL;
}
static void waitall_waits_for_all_in_the_simulation(void) {
    for (uint64_t seed = 1; seed <= 20; seed++)
        CHECK_EQUAL(haft_io_simulate_with(
                        &(haft_io_simulation_options_t){.seed = seed, .short_counts = true},
                        receive_all_in_the_simulation, NULL),
                    0);
}

BODY(use_simulated_files) {
    char text[8] = "";
    struct iovec parts[] = {{text, 2}, {NULL, 0}, {text + 2, 3}};
    int file = haft_io_open("file", O_RDWR | O_CREAT, 0600);
    CHECK_EQUAL(write(file, "0123456789", 10), 10);
    CHECK_EQUAL(pread(file, text, 4, 2), 4);
    CHECK(strcmp(text, "2345") == 0);
    CHECK_EQUAL(pwrite(file, "ab", 2, 4), 2);
    CHECK_EQUAL(preadv(file, parts, 3, 3), 5);
    CHECK(strcmp(text, "3ab67") == 0);
    CHECK_EQUAL(pwritev(file, parts, 3, 0), 5);
    CHECK_EQUAL(preadv2(file, parts, 3, 7, 0), 3);
    CHECK(strcmp(text, "78967") == 0);
    CHECK_EQUAL(haft_io_pread(file, text, 5, 0), 5);
    CHECK(strcmp(text, "3ab67") == 0);
    CHECK_EQUAL(read(file, text, 1), 0); /* It was never elsewhere. */
    CHECK_EQUAL(fsync(file), 0);
    CHECK_EQUAL(fdatasync(file), 0);
    haft_io_simulated_fail(file, -EIO);
    CHECK_EQUAL(pread(file, text, 1, 0), -1);
    CHECK_EQUAL(errno, EIO);
    /* A call that takes no such number fails. */
    errno = 0;
    CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED);
    CHECK_EQUAL(errno, EBADF);
    CHECK_EQUAL(close(file), 0);
    CHECK_EQUAL(pread(file, text, 1, 0), -1);
    CHECK_EQUAL(errno, EBADF);
    CHECK_EQUAL(fsync(file), -1);
    CHECK_EQUAL(errno, EBADF);
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    CHECK_EQUAL(pread(ends[0], text, 1, 0), -1);
    CHECK_EQUAL(errno, ESPIPE);
    CHECK_EQUAL(close(ends[0]), 0);
    CHECK_EQUAL(close(ends[1]), 0);
    return NULL;
}
static void simulated_files_are_used_at_the_place_that_is_given(void) {
    CHECK_EQUAL(
        haft_io_simulate_with(&(haft_io_simulation_options_t){.files = true, .network = true},
                              use_simulated_files, NULL),
        0);
}

BODY(use_simulated_datagrams) {
    char text[8] = "", more[8];
    struct iovec parts[] = {{text, sizeof text}, {more, sizeof more}};
    struct mmsghdr messages[] = {{.msg_hdr = {.msg_iov = &parts[0], .msg_iovlen = 1}},
                                 {.msg_hdr = {.msg_iov = &parts[1], .msg_iovlen = 1}}};
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    CHECK_EQUAL(send(ends[1], "one", 3, 0), 3);
    CHECK_EQUAL(write(ends[1], "three", 5), 5);
    CHECK_EQUAL(recv(ends[0], text, sizeof text, MSG_WAITALL), 3);
    CHECK_EQUAL(read(ends[0], text, 2), 2); /* The rest is lost. */
    CHECK_EQUAL(sendmmsg(ends[1], messages, 2, 0), 2);
    CHECK_EQUAL(recvmmsg(ends[0], messages, 2, 0, NULL), 2);
    CHECK_EQUAL(messages[1].msg_len, sizeof more);
    CHECK_EQUAL(close(ends[0]), 0);
    CHECK_EQUAL(close(ends[1]), 0);

    struct sockaddr_in from, at = {.sin_family = AF_INET,
                                   .sin_port = htons(7000),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof from;
    ends[0] = haft_io_socket(AF_INET, SOCK_DGRAM, 0);
    ends[1] = haft_io_socket(AF_INET, SOCK_DGRAM, 0);
    CHECK_EQUAL(haft_io_bind(ends[0], (struct sockaddr *)&at, sizeof at), 0);
    CHECK_EQUAL(sendto(ends[1], "hello", 5, 0, (struct sockaddr *)&at, sizeof at), 5);
    CHECK_EQUAL(recvfrom(ends[0], text, sizeof text, 0, (struct sockaddr *)&from, &size), 5);
    CHECK_EQUAL(sendto(ends[0], "again", 5, 0, (struct sockaddr *)&from, size), 5);
    CHECK_EQUAL(recv(ends[1], text, sizeof text, 0), 5);
    CHECK_EQUAL(close(ends[0]), 0);
    CHECK_EQUAL(close(ends[1]), 0);
    return NULL;
}
static void of_simulated_datagrams_each_call_takes_one(void) {
    CHECK_EQUAL(haft_io_simulate_with(&(haft_io_simulation_options_t){.network = true},
                                      use_simulated_datagrams, NULL),
                0);
}

static volatile bool came; /* sched_yield is declared to touch nothing of this file. */
BODY(come) {
    came = true;
    return NULL;
}
BODY(spin) {
    haft_io_spawn(come, NULL);
    while (!came)
        sched_yield();
    return NULL;
}
static void who_spins_with_sched_yield_lets_tasks_run(void) {
    CHECK_RUNS(spin);
}

/* ---- Files, names, children ---- */

BODY(use_a_file) {
    char path[] = "/tmp/haft-posix-XXXXXX", text[32] = "";
    int file = mkstemp(path);
    CHECK(file >= 0);
    unlink(path);
    CHECK_EQUAL(write(file, "0123456789", 10), 10);
    CHECK_EQUAL(fsync(file), 0);
    CHECK_EQUAL(pread(file, text, 4, 3), 4);
    CHECK(strcmp(text, "3456") == 0);
    CHECK_EQUAL(pwrite(file, "xy", 2, 0), 2);
    CHECK_EQUAL(fdatasync(file), 0);
    lseek(file, 0, SEEK_SET);
    CHECK_EQUAL(readv(file, (struct iovec[]){{text, 2}, {text + 2, 20}}, 2), 10);
    CHECK(strncmp(text, "xy23456789", 10) == 0);
    CHECK_EQUAL(read(file, text, sizeof text), 0);
    CHECK_EQUAL(pread(file, text, 4, -1), -1);
    CHECK_EQUAL(errno, EINVAL);
    fcntl(file, F_SETFL, O_DSYNC);
    CHECK_EQUAL(write(file, "end", 3), 3);
    close(file);
    return NULL;
}
static void files_are_read_and_written(void) {
    CHECK_RUNS(use_a_file);
}

BODY(resolve) {
    struct addrinfo *addresses = NULL, hints = {.ai_flags = AI_NUMERICHOST};
    CHECK_EQUAL(getaddrinfo("127.0.0.1", "80", &hints, &addresses), 0);
    char host[64];
    CHECK_EQUAL(getnameinfo(addresses->ai_addr, addresses->ai_addrlen, host, sizeof host, NULL, 0,
                            NI_NUMERICHOST),
                0);
    CHECK(strcmp(host, "127.0.0.1") == 0);
    freeaddrinfo(addresses);
    CHECK_EQUAL(getaddrinfo("no number", "80", &hints, &addresses), EAI_NONAME);
    const struct hostent *entry = gethostbyname("127.0.0.1");
    CHECK(entry != NULL && entry->h_length == 4);
    struct hostent room, *found;
    char memory[1024];
    int error;
    CHECK_EQUAL(gethostbyname_r("127.0.0.1", &room, memory, sizeof memory, &found, &error), 0);
    CHECK(found == &room);
    return NULL;
}
static void names_are_resolved(void) {
    CHECK_RUNS(resolve);
}

BODY(have_children) {
    if (!check_follows_children())
        return NULL;
    int status;
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) { /* Here the calls are the system's own. */
            char byte;
            close(ends[1]);
            _exit(read(ends[0], &byte, 1) == 1 && usleep(10) == 0 ? 3 : 4);
        }
        haft_io_spawn(write_a_byte, NULL);
        CHECK_EQUAL(i == 0 ? waitpid(child, &status, 0) : wait(&status), child);
        CHECK_EQUAL(WEXITSTATUS(status), 3);
        close(ends[0]);
        close(ends[1]);
    }
    CHECK_EQUAL(wait(NULL), -1);
    CHECK_EQUAL(errno, ECHILD);
    return NULL;
}
/* Whichever thread starts it. */
BODY(start_what_ends_itself) {
    char *command[] = {"sh", "-c", "kill -TERM $$; exit 1", NULL};
    pid_t child;
    int status = 0;
    CHECK_EQUAL(WTERMSIG(system(command[2])), SIGTERM);
    FILE *stream = popen(command[2], "r");
    CHECK(stream != NULL && WTERMSIG(pclose(stream)) == SIGTERM);
    CHECK_EQUAL(posix_spawnp(&child, "sh", NULL, NULL, command, environ), 0);
    CHECK(waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGTERM);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    CHECK_EQUAL(posix_spawn(&child, "/bin/sh", NULL, &attributes, command, environ), 0);
    CHECK(waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGTERM);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    CHECK_EQUAL(posix_spawn(&child, "/bin/sh", NULL, &attributes, command, environ), 0);
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 1);
    posix_spawnattr_destroy(&attributes);
    return NULL;
}
BODY(start_what_ends_itself_everywhere) {
    haft_io_task_options_t spread = {.spread = true};
    for (int i = 0; i < 3; i++)
        haft_io_spawn_with(&spread, start_what_ends_itself, NULL);
    return NULL;
}
static void what_is_started_blocks_what_the_program_does(void) {
    start_what_ends_itself(NULL);
    haft_io_run_options_t options = {.threads = 2};
    CHECK_EQUAL(haft_io_run_with(&options, start_what_ends_itself_everywhere, NULL), 0);
}

static void the_end_of_a_child_is_waited_for_and_in_a_child_the_calls_are_the_systems(void) {
    CHECK_RUNS(have_children);
}

/* ---- Cancels, cleanups, closing, turns ---- */

static bool unwound;
static void note_unwinding(const int *unused) {
    (void)unused;
    unwound = true;
    /* In a cleanup what can be done at once is done, and what waits is refused. */
    char byte;
    CHECK_EQUAL(write(ends[1], "x", 1), 1);
    CHECK_EQUAL(read(ends[0], &byte, 1), 1);
    CHECK_EQUAL(read(ends[0], &byte, 1), -1);
    CHECK_EQUAL(errno, ECANCELED);
}
/* Rust's std does so, and many loops in C: any other error would be a mistake of the program. */
static void sleep_for_the_rest(void) {
    struct timespec rest = {1000, 0};
    CHECK_EQUAL(nanosleep(&rest, &rest), -1);
    CHECK_EQUAL(errno, EINTR);
    CHECK_EQUAL(rest.tv_sec + rest.tv_nsec, 0);
    CHECK_EQUAL(nanosleep(&rest, &rest), 0);
    rest.tv_sec = 1000;
    CHECK_EQUAL(clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest), EINTR);
    CHECK_EQUAL(rest.tv_sec + rest.tv_nsec, 0);
    CHECK_EQUAL(clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest), 0);
    rest.tv_sec = 1000;
    CHECK_EQUAL(thrd_sleep(&rest, &rest), -1);
    CHECK_EQUAL(thrd_sleep(&rest, &rest), 0);
}
/* Stands for a library in C. */
static int library_call(void) {
    char byte;
    struct pollfd entry = {ends[0], POLLIN, 0};
    CHECK_EQUAL(read(ends[0], &byte, 1), -1);
    CHECK_EQUAL(errno, ECANCELED);
    CHECK_EQUAL(poll(&entry, 1, -1), -1);
    CHECK_EQUAL(errno, ECANCELED);
    CHECK_EQUAL(nanosleep(&(struct timespec){1000, 0}, NULL), -1);
    CHECK_EQUAL(errno, ECANCELED);
    CHECK(sleep(1000) >= 999);
    sleep_for_the_rest();
    CHECK_EQUAL(getaddrinfo("localhost", "80", NULL, &(struct addrinfo *){NULL}), EAI_SYSTEM);
    CHECK_EQUAL(errno, ECANCELED);
    return 1;
}
BODY(call_a_library) {
    __attribute__((cleanup(note_unwinding))) int unused = 0;
    (void)unused;
    CHECK_EQUAL(library_call(), 1);
    CHECK(!unwound);
    haft_io_sleep(HAFT_IO_SECOND);
    CHECK(false);
    return NULL;
}
BODY(cancel_a_library) {
    CHECK_EQUAL(pipe(ends), 0);
    haft_io_scope_options_t options = {.deadline = haft_io_now() + HAFT_IO_MILLISECOND};
    CHECK_EQUAL(haft_io_scope_with(&options, call_a_library, NULL, NULL), -ETIMEDOUT);
    CHECK(unwound);
    close(ends[0]);
    close(ends[1]);
    return NULL;
}
static void a_cancel_is_an_error_in_a_library_and_unwinds_the_task_at_its_own_wait(void) {
    CHECK_RUNS(cancel_a_library);
}

BODY(read_what_is_closed) {
    char byte;
    CHECK_EQUAL(read(ends[0], &byte, 1), -1);
    CHECK_EQUAL(errno, EBADF);
    return NULL;
}
BODY(close_what_is_read) {
    CHECK_EQUAL(pipe(ends), 0);
    haft_io_task_t *reader = haft_io_async(read_what_is_closed, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(close(ends[0]), 0);
    haft_io_join(reader, NULL);
    /* The number is another file's now, also for the waits of libhaft-io. */
    close(ends[1]);
    CHECK_EQUAL(pipe(ends), 0);
    haft_io_spawn(write_a_byte, NULL);
    char byte;
    CHECK_EQUAL(haft_io_read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return NULL;
}
static void a_descriptor_that_is_closed_ends_the_waits_on_it(void) {
    CHECK_RUNS(close_what_is_read);
}

/* In vain if the close is missed. */
static void *close_first(void *unused) {
    CHECK_EQUAL(close(ends[0]), 0);
    return unused;
}
static void *read_to_the_close(void *closer) {
    haft_io_task_t *reader = haft_io_async(read_what_is_closed, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(pthread_create(closer, NULL, close_first, NULL), 0);
    CHECK_EQUAL(haft_io_join(reader, NULL), 0);
    return NULL;
}
BODY(read_what_a_thread_closes) {
    for (int i = 0; i < 2; i++) {
        pthread_t closer;
        CHECK_EQUAL(i == 0 ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        haft_io_scope_options_t options = {.deadline = haft_io_now() + 10 * HAFT_IO_SECOND};
        CHECK_EQUAL(haft_io_scope_with(&options, read_to_the_close, &closer, NULL), 0);
        CHECK_EQUAL(pthread_join(closer, NULL), 0);
        CHECK_EQUAL(close(ends[1]), 0);
        CHECK_EQUAL(close(ends[1]), -1);
    }
    return NULL;
}
static void a_descriptor_that_an_ordinary_thread_closes_ends_the_waits_on_it(void) {
    CHECK_RUNS(read_what_a_thread_closes);
    errno = 0;
    CHECK_EQUAL(close(-1), -1);
    CHECK_EQUAL(errno, EBADF);
}

BODY(talk_for_ever) {
    char byte = 'x';
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    came = false;
    haft_io_spawn(come, NULL);
    while (!came) {
        CHECK_EQUAL(write(ends[1], &byte, 1), 1);
        CHECK_EQUAL(read(ends[0], &byte, 1), 1);
    }
    close(ends[0]);
    close(ends[1]);
    return NULL;
}
static void who_never_has_to_wait_gives_way_all_the_same(void) {
    CHECK_RUNS(talk_for_ever);
}

/* ---- Elsewhere ---- */

static void *read_in_a_thread(void *unused) {
    char byte;
    CHECK_EQUAL(read(ends[0], &byte, 1), 1);
    return unused;
}
BODY(write_to_a_thread) {
    pthread_t thread;
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(pthread_create(&thread, NULL, read_in_a_thread, NULL), 0);
    CHECK_EQUAL(write(ends[1], "x", 1), 1);
    pthread_join(thread, NULL);
    close(ends[0]);
    close(ends[1]);
    return NULL;
}
static void outside_of_tasks_the_calls_are_the_systems(void) {
    char byte;
    CHECK(haft_posix_answers());
    CHECK_RUNS(write_to_a_thread);
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(poll(&(struct pollfd){ends[0], POLLIN, 0}, 1, 1), 0);
    CHECK_EQUAL(write(ends[1], "x", 1), 1);
    CHECK_EQUAL(read(ends[0], &byte, 1), 1);
    CHECK_EQUAL(usleep(10), 0);
    CHECK_EQUAL(close(ends[0]), 0);
    CHECK_EQUAL(close(ends[1]), 0);
    CHECK_EQUAL(close(ends[1]), -1);
    CHECK_EQUAL(errno, EBADF);
}

/* Functions that gcc calls instead of read and poll where it knows the room. */
ssize_t __read_chk(int descriptor, void *buffer, size_t size, size_t room);
int __poll_chk(struct pollfd *entries, nfds_t count, int milliseconds, size_t room);
BODY(call_fortified) {
    char byte;
    CHECK_EQUAL(pipe(ends), 0);
    struct pollfd entry = {ends[0], POLLIN, 0};
    haft_io_spawn(write_a_byte, NULL);
    CHECK_EQUAL(__poll_chk(&entry, 1, -1, sizeof entry), 1);
    CHECK_EQUAL(__read_chk(ends[0], &byte, 1, 1), 1);
    haft_io_spawn(write_a_byte, NULL);
    CHECK_EQUAL(__read_chk(ends[0], &byte, 1, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return NULL;
}
static void the_fortified_names_are_answered(void) {
    CHECK_RUNS(call_fortified);
}

/* ---- Arguments that cannot be ---- */

/* Each on a pair of sockets with nothing to read, a pipe, a listener without clients, an epoll with
   nothing. */
static struct { int pair[2], pipe[2], listener, epoll; } idle;

static const struct timespec no_time = {0, 1000000000};
#define REFUSED(name, call)                                                                        \
    static long name(void) {                                                                       \
        return (long)(call);                                                                       \
    }
REFUSED(accept_with_flags, accept4(idle.listener, NULL, NULL, 0x40))
REFUSED(accept_of_nothing_with_flags, accept4(-1, NULL, NULL, 0x40))
REFUSED(accept_of_a_pipe, accept4(idle.pipe[0], NULL, NULL, 0))
REFUSED(receive_out_of_band, recv(idle.pair[0], (char[1]){0}, 1, MSG_OOB))
REFUSED(receive_of_a_pipe, recv(idle.pipe[0], (char[1]){0}, 1, 0))
REFUSED(send_to_a_pipe, send(idle.pipe[1], "x", 1, 0))
REFUSED(receive_a_bad_message, recvmsg(idle.pair[0], NULL, 0))
REFUSED(receive_too_many_parts,
        recvmsg(idle.pair[0],
                &(struct msghdr){.msg_iov = &(struct iovec){NULL, 0}, .msg_iovlen = 2000}, 0))
#ifndef EMULATED /* An emulator does not look at the time. */
REFUSED(receive_messages_in_no_time,
        recvmmsg(idle.pair[0], &(struct mmsghdr){{0}, 0}, 1, 0, &(struct timespec){0, 1000000000}))
#endif
/* (Compilers are not to see what cannot be.) */
static volatile int too_many = 2000, fewer_than_none = -1;
static struct pollfd *volatile no_entries;
REFUSED(read_too_many, readv(idle.pipe[0], &(struct iovec){NULL, 0}, too_many))
REFUSED(read_fewer_than_none, readv(idle.pipe[0], &(struct iovec){NULL, 0}, fewer_than_none))
REFUSED(read_with_flags, preadv2(idle.pipe[0], &(struct iovec){(char[1]){0}, 1}, 1, -1, 0x4000))
REFUSED(write_with_flags, pwritev2(idle.pipe[1], &(struct iovec){(char[1]){0}, 1}, 1, -1, 0x4000))
REFUSED(read_the_wrong_end, read(idle.pipe[1], (char[1]){0}, 1))
REFUSED(read_a_pipe_at_a_place, pread(idle.pipe[0], (char[1]){0}, 1, 0))
REFUSED(poll_too_many, poll(no_entries, 1UL << 30, -1))
REFUSED(poll_in_no_time, ppoll(NULL, 0, &no_time, NULL))
REFUSED(select_in_no_time, pselect(0, NULL, NULL, NULL, &no_time, NULL))
REFUSED(select_fewer_than_none, select(-1, NULL, NULL, NULL, NULL))
REFUSED(select_in_negative_time, select(0, NULL, NULL, NULL, &(struct timeval){-1, 0}))
REFUSED(wait_for_no_events, epoll_wait(idle.epoll, &(struct epoll_event){0}, 0, -1))
REFUSED(wait_for_an_epoll_that_is_none, epoll_wait(idle.pipe[0], &(struct epoll_event){0}, 1, -1))
REFUSED(wait_for_an_epoll_that_is_closed, epoll_wait(-1, &(struct epoll_event){0}, 1, -1))
REFUSED(wait_for_signals_in_no_time, sigtimedwait(&(sigset_t){0}, NULL, &no_time))
REFUSED(sleep_no_time, nanosleep(&no_time, NULL))
REFUSED(sleep_by_no_clock, clock_nanosleep(1000, 0, &(struct timespec){1, 0}, NULL))
REFUSED(sleep_no_time_by_a_clock, clock_nanosleep(CLOCK_MONOTONIC, 0, &no_time, NULL))
REFUSED(splice_with_flags, splice(idle.pipe[0], NULL, idle.pair[0], NULL, 1, 0x4000))
REFUSED(splice_without_a_pipe, splice(idle.pair[0], NULL, idle.pair[1], NULL, 1, 0))
REFUSED(splice_a_pipe_at_a_place, splice(idle.pipe[0], &(off64_t){0}, idle.pair[0], NULL, 1, 0))
REFUSED(tee_with_flags, tee(idle.pipe[0], idle.pipe[1], 1, 0x4000))
REFUSED(tee_into_itself, tee(idle.pipe[0], idle.pipe[1], 1, 0))
REFUSED(send_a_file_that_is_none, sendfile(idle.pair[0], idle.pair[1], NULL, 1))
REFUSED(wait_with_options, waitpid(-1, NULL, 0x10000))
REFUSED(wait_for_nothing_by_id, waitid(P_ALL, 0, NULL, 0))
REFUSED(wait_for_an_id_that_is_none, waitid((idtype_t)77, 0, NULL, WEXITED))
REFUSED(lock_in_no_way, flock(idle.pipe[0], 0))
REFUSED(lock_in_an_unknown_way, lockf(idle.pipe[0], 77, 0))
REFUSED(lock_a_part_in_no_way, fcntl(idle.pipe[0], F_SETLKW, &(struct flock){.l_type = 77}))
REFUSED(open_without_a_name, open("", O_RDONLY))
REFUSED(connect_to_too_short_an_address,
        connect(idle.pair[0], &(struct sockaddr){.sa_family = AF_UNIX}, 1))
REFUSED(copy_with_flags, copy_file_range(idle.pipe[0], NULL, idle.pipe[1], NULL, 1, 1))

#define CASE(name)                                                                                 \
    { #name, name, 0, 0 }
static struct refusal {
    const char *name;
    long (*call)(void);
    long result;
    int error;
} refusals[] = {
    CASE(accept_with_flags),
    CASE(accept_of_nothing_with_flags),
    CASE(accept_of_a_pipe),
    CASE(receive_out_of_band),
    CASE(receive_of_a_pipe),
    CASE(send_to_a_pipe),
    CASE(receive_a_bad_message),
    CASE(receive_too_many_parts),
#ifndef EMULATED
    CASE(receive_messages_in_no_time),
#endif
    CASE(read_too_many),
    CASE(read_fewer_than_none),
    CASE(read_with_flags),
    CASE(write_with_flags),
    CASE(read_the_wrong_end),
    CASE(read_a_pipe_at_a_place),
    CASE(poll_too_many),
    CASE(poll_in_no_time),
    CASE(select_in_no_time),
    CASE(select_fewer_than_none),
    CASE(select_in_negative_time),
    CASE(wait_for_no_events),
    CASE(wait_for_an_epoll_that_is_none),
    CASE(wait_for_an_epoll_that_is_closed),
    CASE(wait_for_signals_in_no_time),
    CASE(sleep_no_time),
    CASE(sleep_by_no_clock),
    CASE(sleep_no_time_by_a_clock),
    CASE(splice_with_flags),
    CASE(splice_without_a_pipe),
    CASE(splice_a_pipe_at_a_place),
    CASE(tee_with_flags),
    CASE(tee_into_itself),
    CASE(send_a_file_that_is_none),
    CASE(wait_with_options),
    CASE(wait_for_nothing_by_id),
    CASE(wait_for_an_id_that_is_none),
    CASE(lock_in_no_way),
    CASE(lock_in_an_unknown_way),
    CASE(lock_a_part_in_no_way),
    CASE(open_without_a_name),
    CASE(connect_to_too_short_an_address),
    CASE(copy_with_flags),
};
#undef CASE

/* A call that waits is ended, with ECANCELED. */
static void *call_refused(void *argument) {
    struct refusal *one = argument;
    errno = 0;
    long result = one->call();
    if (result == one->result && errno == one->error)
        return NULL;
    check_failed(__FILE__, __LINE__, one->name);
    fprintf(stderr, ": %ld (%s) on a task, %ld (%s) on a thread\n", result, strerror(errno),
            one->result, strerror(one->error));
    return NULL;
}
BODY(call_all_refused) {
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        haft_io_scope_options_t options = {.deadline = haft_io_now() + 2 * HAFT_IO_SECOND};
        haft_io_scope_with(&options, call_refused, &refusals[i], NULL);
    }
    return NULL;
}
static void what_a_thread_is_refused_at_once_is_refused_on_a_task(void) {
    if (!check_bare()) /* Tools look at what system calls are given. */
        return;
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, idle.pair), 0);
    CHECK_EQUAL(pipe(idle.pipe), 0);
    idle.listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    fcntl(idle.listener, F_SETFL, 0);
    idle.epoll = epoll_create1(0);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        errno = 0;
        refusals[i].result = refusals[i].call();
        refusals[i].error = errno;
        CHECK(refusals[i].result != 0);
    }
    CHECK_RUNS(call_all_refused);
}

int main(void) {
    check_backend();
    RUN(outside_of_tasks_the_calls_are_the_systems);
    RUN(a_read_waits_and_leaves_errno_alone);
    RUN(who_does_not_want_to_wait_gets_eagain);
    RUN(what_a_blocking_call_writes_is_written_in_full);
    RUN(waitall_waits_for_all);
    RUN(the_limit_of_a_socket_is_that_of_the_whole_call);
    RUN(a_descriptor_is_passed_once);
    RUN(a_descriptor_of_a_later_piece_is_kept);
    RUN(an_error_after_a_part_is_the_next_calls);
    RUN(what_is_no_memory_is_an_error);
    RUN(operations_go_on_beside_callers_of_the_systems_functions);
    RUN(connections_are_made_on_one_thread);
    RUN(a_datagram_comes_with_its_sender);
    RUN(connecting_to_a_busy_unix_listener_waits);
    RUN(a_second_connect_says_what_the_systems_does);
    RUN(who_does_not_listen_cannot_accept);
    RUN(poll_select_and_epoll_wait);
    RUN(select_looks_at_no_more_than_there_can_be_descriptors);
    RUN(select_reports_the_closed_ones_that_the_kernel_does);
    RUN(select_takes_sets_that_are_larger_than_an_fd_set);
    RUN(a_signal_that_the_mask_lets_through_ends_the_wait);
    RUN(a_sleep_is_the_tasks_own);
    RUN(clocks_are_virtual_in_a_simulation);
    RUN(dates_are_virtual_in_a_simulation);
    RUN(a_poll_of_nothing_sleeps_in_virtual_time);
    RUN(a_sleep_beyond_the_clock_ends_in_a_simulation);
    RUN(random_bytes_are_the_seeds_in_a_simulation);
    RUN(random_bytes_leave_the_order_as_it_is);
    RUN(a_library_runs_in_the_simulation);
    RUN(waitall_waits_for_all_in_the_simulation);
    RUN(simulated_files_are_used_at_the_place_that_is_given);
    RUN(of_simulated_datagrams_each_call_takes_one);
    RUN(who_spins_with_sched_yield_lets_tasks_run);
    RUN(files_are_read_and_written);
    RUN(names_are_resolved);
    RUN(what_is_started_blocks_what_the_program_does);
    RUN(the_end_of_a_child_is_waited_for_and_in_a_child_the_calls_are_the_systems);
    RUN(a_cancel_is_an_error_in_a_library_and_unwinds_the_task_at_its_own_wait);
    RUN(a_descriptor_that_is_closed_ends_the_waits_on_it);
    RUN(a_descriptor_that_an_ordinary_thread_closes_ends_the_waits_on_it);
    RUN(who_never_has_to_wait_gives_way_all_the_same);
    RUN(the_fortified_names_are_answered);
    RUN(what_a_thread_is_refused_at_once_is_refused_on_a_task);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
