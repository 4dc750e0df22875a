/* SPDX-License-Identifier: MIT */
/*
 * Connections come and go, by the hundred thousand if there is time: answered, half closed, reset,
 * given up in the middle. In the end the process has the memory and the descriptors that it had in
 * the beginning.
 *
 * HAFT_SOAK_SECONDS=600 for ten minutes on each back end, on one thread and on two.
 */
#include "check_io.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/un.h>

enum { CLIENTS = 24, LONGEST = 20000, ROUNDS = 8 };

static int tcp, local;
static uint16_t port;
static char path[64];
static int64_t round_ends;
static long connections, given_up, served;

static void count(long *counter, long change) {
    __atomic_add_fetch(counter, change, __ATOMIC_RELAXED);
}

/* ---- The server ---- */

static void *echo(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = (int)(intptr_t)argument;
    char buffer[4096];
    for (ssize_t got; (got = haft_io_read(connection, buffer, sizeof buffer)) > 0;)
        if (haft_io_write_all(connection, buffer, (size_t)got) < 0)
            break;
    count(&served, -1);
    return NULL;
}
static void *serve(void *listener) {
    for (int connection; (connection = haft_io_accept(*(int *)listener)) >= 0;) {
        count(&served, 1);
        CHECK_EQUAL(haft_io_spawn(echo, check_number(connection)), 0);
    }
    CHECK(false);
    return NULL;
}

/* ---- The clients ---- */

static int connect_to_tcp(unsigned number) {
    /* Each by an address of its own: a closed connection keeps its two ports for a minute. */
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(0x7f000001 + number % 0xfffff * 2);
    int connection = haft_io_socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connection >= 0);
    CHECK_EQUAL(haft_io_connect(connection, (struct sockaddr *)&address, sizeof address), 0);
    return connection;
}

static void send_and_read_back(int connection, size_t size, bool half_closes) {
    char text[LONGEST], answer[LONGEST];
    memset(text, (int)(size % 251), size);
    CHECK_EQUAL(haft_io_write_all(connection, text, size), 0);
    if (half_closes)
        shutdown(connection, SHUT_WR);
    size_t got = 0;
    for (ssize_t part; got < size; got += (size_t)part) {
        part = haft_io_read(connection, answer + got, sizeof answer - got);
        CHECK(part > 0);
        if (part <= 0)
            return;
    }
    CHECK(got == size && memcmp(text, answer, size) == 0);
    if (half_closes)
        CHECK_EQUAL(haft_io_read(connection, answer, 1), 0);
}

static void *ask_and_be_kept_waiting(void *number) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = connect_to_tcp((unsigned)(intptr_t)number);
    char answer[100];
    send_and_read_back(connection, 10, false);
    haft_io_read(connection, answer, sizeof answer);
    CHECK(false);
    return NULL;
}

static void come_and_go(unsigned number) {
    if (number % 4 == 0) {
        haft_io_scope_options_t limited = {.deadline = haft_io_now() + number % 23 * 50000};
        CHECK_EQUAL(haft_io_scope_with(&limited, ask_and_be_kept_waiting,
                                       check_number((intptr_t)number), NULL),
                    -ETIMEDOUT);
        count(&given_up, 1);
        return;
    }
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        number % 4 == 1 ? haft_io_connect_unix(path) : connect_to_tcp(number);
    CHECK(connection >= 0);
    send_and_read_back(connection, number % 12 == 3 ? LONGEST : 64, number % 4 == 1);
    if (number % 8 == 2) { /* a reset */
        haft_io_write(connection, "unread", 6);
        struct linger at_once = {1, 0};
        setsockopt(connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
}

static void *use_the_server(void *argument) {
    static unsigned next;
    while (haft_io_now() < round_ends && check_failures == 0) {
        come_and_go(__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED));
        count(&connections, 1);
    }
    return argument;
}

/* ---- Rounds ---- */

typedef struct figures {
    int descriptors;
    size_t heap, resident; /* in KiB */
} figures_t;

static figures_t look(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL && fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    struct mallinfo2 heap = mallinfo2();
    return (figures_t){check_descriptors(), (heap.uordblks + heap.hblkhd) / 1024,
                       (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) / 1024};
}

static double seconds;
static figures_t first, last;

static void *play_a_round(void *argument) {
    for (int i = 0; i < CLIENTS; i++)
        CHECK_EQUAL(haft_io_spawn(use_the_server, NULL), 0);
    return argument;
}
static void *play_rounds(void *argument) {
    CHECK_EQUAL(haft_io_spawn(serve, &tcp), 0);
    CHECK_EQUAL(haft_io_spawn(serve, &local), 0);
    int64_t length = (int64_t)(seconds / ROUNDS * 1e9);
    for (int i = 0; i < ROUNDS && check_failures == 0; i++) {
        round_ends = haft_io_now() + length;
        CHECK_EQUAL(haft_io_scope(play_a_round, NULL, NULL), 0);
        while (__atomic_load_n(&served, __ATOMIC_RELAXED) != 0)
            haft_io_sleep(HAFT_IO_MILLISECOND);
        last = look();
        if (i == 0)
            first = last;
        /* The other thread may be about to accept a connection that was given up, or to close. */
        for (int tries = 0; tries < 1000 && last.descriptors > first.descriptors; tries++) {
            haft_io_sleep(HAFT_IO_MILLISECOND);
            last = look();
        }
        if (i == 1) /* Stacks have been as deep as they will be. */
            first = last;
    }
    haft_io_scope_cancel(haft_io_this_scope());
    return argument;
}

static void soak(const haft_io_run_options_t *options) {
    int before = check_descriptors();
    connections = given_up = 0;
    tcp = haft_io_listen_tcp("0.0.0.0", 0, 0);
    port = (uint16_t)haft_io_port(tcp);
    snprintf(path, sizeof path, "/tmp/haft-io-soak-%d", (int)getpid());
    local = haft_io_listen_unix(path, 0);
    CHECK(tcp >= 0 && local >= 0);
    CHECK_EQUAL(haft_io_run_with(options, play_rounds, NULL), -ECANCELED);
    close(tcp);
    close(local);
    unlink(path);
    CHECK_EQUAL(check_descriptors(), before);
    CHECK_EQUAL(haft_pool_report().stacks, 0);
    printf(
        "%s, %d threads: %ld connections, %ld of them given up; descriptors %d, then %d; heap %zu "
        "KiB, then %zu; resident %zu KiB, then %zu\n",
        options->backend, options->threads, connections, given_up, first.descriptors,
        last.descriptors, first.heap, last.heap, first.resident, last.resident);
    fflush(stdout);
    CHECK(connections > 0);
    CHECK(last.descriptors <= first.descriptors);
    if (check_bare()) {
        /* Records of more tasks at once are kept: less than a block of memory that each connection
           forgets. */
        CHECK(last.heap <= first.heap + 64 + (size_t)connections * 4 / 1024);
        CHECK(last.resident <= first.resident + 4096);
    }
}

static void memory_and_descriptors_end_where_they_began(void) {
    check_everywhere(soak);
}

int main(void) {
    seconds = check_campaign("HAFT_SOAK_SECONDS", 0.5, 3);
    RUN(memory_and_descriptors_end_where_they_began);
    return check_end();
}
