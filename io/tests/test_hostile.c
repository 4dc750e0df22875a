/* SPDX-License-Identifier: MIT */
/*
 * Very many connections at once whose tasks answer from lent memory, and whose peers do what
 * they like: they send a message in pieces, or more than one block of lent memory holds, close
 * halfway, reset, never read, or send nothing. Each task comes to its end, with the end of the
 * stream or an error of the connection; a peer that reads gets its own bytes back.
 *
 * A process may have too few descriptors for both sides. So the peers are a child of fork; under
 * tools, where the connections are few, they are another thread.
 */
#include "check_io.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 10000, OTHER_DESCRIPTORS = 500 };
static int count; /* of connections */

/* ---- Peers ---- */

enum kind { SPEAKS, IN_PIECES, RESETS, CLOSES_HALF, NEVER_READS, SPEAKS_MUCH, SAYS_NOTHING, KINDS };
static bool ends_in_error(int kind) {
    return kind == RESETS || kind == NEVER_READS;
}

static int peers[MOST];
static uint16_t port;
static int go[2]; /* a byte when all connections are there */

enum { LITTLE = 20, MUCH = HAFT_IO_LENT_SIZE + 1000 };
static void make_message(int peer, char *message, size_t size) {
    for (size_t i = 0; i < size; i++)
        message[i] = (char)((size_t)peer * 31 + i + i / 256);
}
static void get_back(int peer, const char *message, size_t size) {
    static __thread char bytes[MUCH];
    ssize_t got;
    for (size_t from = 0; from < size; from += (size_t)got) {
        got = haft_io_read(peers[peer], bytes, size - from);
        CHECK(got > 0 && memcmp(bytes, message + from, (size_t)got) == 0);
        if (got <= 0)
            return;
    }
}
static void get_end(int peer) {
    CHECK_EQUAL(haft_io_read(peers[peer], &(char){0}, 1), 0);
}
static void speak(int peer, size_t size) {
    char message[MUCH];
    make_message(peer, message, size);
    CHECK_EQUAL(haft_io_write_all(peers[peer], message, size), 0);
    get_back(peer, message, size);
}
static void speak_in_pieces(int peer) {
    char message[LITTLE];
    make_message(peer, message, LITTLE);
    for (int i = 0; i < LITTLE; i++) {
        CHECK_EQUAL(haft_io_write(peers[peer], message + i, 1), 1);
        haft_io_yield();
    }
    get_back(peer, message, LITTLE);
}
static void send_one(int peer) {
    char message[LITTLE];
    make_message(peer, message, LITTLE);
    CHECK_EQUAL(haft_io_write_all(peers[peer], message, LITTLE), 0);
}

static void *be_peer(void *number) {
    int peer = (int)(intptr_t)number;
    struct linger at_once = {1, 0};
    char message[LITTLE];
    switch (peer % KINDS) {
    case SPEAKS:
        for (int i = 0; i < 3; i++)
            speak(peer, LITTLE);
        break;
    case IN_PIECES:
        speak_in_pieces(peer);
        CHECK_EQUAL(shutdown(peers[peer], SHUT_WR), 0);
        get_end(peer);
        break;
    case RESETS:
        send_one(peer);
        CHECK_EQUAL(setsockopt(peers[peer], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
        break;
    case CLOSES_HALF:
        send_one(peer);
        CHECK_EQUAL(shutdown(peers[peer], SHUT_WR), 0);
        make_message(peer, message, LITTLE);
        get_back(peer, message, LITTLE);
        get_end(peer);
        break;
    case NEVER_READS: /* A close then is a reset. */
        send_one(peer);
        CHECK(haft_io_wait_ready(peers[peer], POLLIN) > 0);
        break;
    case SPEAKS_MUCH:
        speak(peer, MUCH);
        break;
    default:
        break;
    }
    CHECK_EQUAL(haft_io_close(peers[peer]), 0);
    return NULL;
}
BODY(be_all_peers) {
    for (int i = 0; i < count; i++)
        CHECK_EQUAL(haft_io_spawn(be_peer, check_number(i)), 0);
    return NULL;
}

/* From an address of its own: connections that have ended keep their ports for a minute. */
static int connect_one(void) {
    static const int yes = 1;
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    in_addr_t own = (in_addr_t)INADDR_LOOPBACK + ((in_addr_t)getpid() << 8 & 0xffff00);
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(own)};
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    setsockopt(peer, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
    CHECK_EQUAL(bind(peer, (struct sockaddr *)&from, sizeof from), 0);
    CHECK_EQUAL(connect(peer, (struct sockaddr *)&to, sizeof to), 0);
    return peer;
}
static void *connect_peers(void *unused) {
    haft_io_run_options_t options = {.backend = "epoll"};
    for (int i = 0; i < count; i++)
        peers[i] = connect_one();
    CHECK_EQUAL(read(go[0], &(char){0}, 1), 1);
    CHECK_EQUAL(haft_io_run_with(&options, be_all_peers, NULL), 0);
    return unused;
}

/* ---- The tasks that answer ---- */

static int ended, failed;
static void *answer(void *connection) {
    HAFT_IO_SCOPED_DESCRIPTOR int own = (int)(intptr_t)connection;
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    ssize_t size = haft_io_read_lent(own, &bytes);
    while (size > 0) {
        int code = haft_io_write_all(own, bytes, (size_t)size);
        size = code != 0 ? code : haft_io_read_lent(own, &bytes);
    }
    CHECK(size == 0 || size == -ECONNRESET || size == -EPIPE);
    __atomic_fetch_add(size == 0 ? &ended : &failed, 1, __ATOMIC_RELAXED);
    return NULL;
}
static void *answer_all(void *listener) {
    for (int i = 0; i < count; i++) {
        int connection = haft_io_accept(*(int *)listener);
        CHECK(connection >= 0);
        CHECK_EQUAL(haft_io_spawn(answer, check_number(connection)), 0);
    }
    CHECK_EQUAL(write(go[1], "x", 1), 1);
    return NULL;
}

static void answer_on(const haft_io_run_options_t *options) {
    int before = check_descriptors(), listener = haft_io_listen_tcp("127.0.0.1", 0, 0), status = 0;
    int resets = 0;
    pthread_t thread;
    pid_t child = 0;
    port = (uint16_t)haft_io_port(listener);
    ended = failed = 0;
    CHECK_EQUAL(pipe(go), 0);
    if (!check_bare()) {
        CHECK_EQUAL(pthread_create(&thread, NULL, connect_peers, NULL), 0);
    } else if ((child = fork()) == 0) {
        close(listener);
        connect_peers(NULL);
        _exit(check_failures != 0);
    }
    CHECK_EQUAL(haft_io_run_with(options, answer_all, &listener), 0);
    if (child == 0)
        pthread_join(thread, NULL);
    else
        CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    for (int i = 0; i < count; i++)
        resets += ends_in_error(i % KINDS);
    CHECK_EQUAL(failed, resets);
    CHECK_EQUAL(ended, count - resets);
    haft_io_close(listener);
    close(go[0]);
    close(go[1]);
    CHECK_EQUAL(check_descriptors(), before);
}
static void whatever_peers_do_each_answer_ends_and_bytes_are_ones_own(void) {
    check_everywhere(answer_on);
}

int main(void) {
    struct rlimit limit;
    check_backend();
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    count = check_times(MOST);
    if (limit.rlim_max < (rlim_t)count + OTHER_DESCRIPTORS)
        count = (int)limit.rlim_max - OTHER_DESCRIPTORS;
    RUN(whatever_peers_do_each_answer_ends_and_bytes_are_ones_own);
    return check_end();
}
