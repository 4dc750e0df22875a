/* SPDX-License-Identifier: MIT */
/*
 * The states of a descriptor in which an operation has to wait, and what makes the wait end; for
 * programs that have a table of operations (in C, in C++, or the C library's own calls), and run
 * each operation in each state.
 */
#ifndef HAFT_IO_TESTS_WAITS_H
#define HAFT_IO_TESTS_WAITS_H

#include "check_io.h"
#include "terminals.h"

#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>

/* In which a state makes wait what an operation does. */
enum {
    READS = 1 << 0,
    WRITES = 1 << 1,
    POLLS_IN = 1 << 2,
    POLLS_OUT = 1 << 3,
    POLLS_OTHERS = 1 << 4, /* POLLPRI, or no event */
    ERRORS = 1 << 5,       /* MSG_ERRQUEUE */
    ACCEPTS = 1 << 6,
    CONNECTS = 1 << 7,
    SENDS_TO = 1 << 8 /* an address */
};

/* The kind of a descriptor. */
enum { IS_SOCKET = 1 << 0, IS_STREAM = 1 << 1, IS_TCP = 1 << 2, IS_NUMBER = 1 << 3 };

typedef struct cell cell_t;

typedef struct state {
    const char *name;
    unsigned waits;
    void (*make)(cell_t *cell);
    void (*end)(cell_t *cell); /* the wait, by what the other end does; NULL: only a cancel does */
    int kind;
} state_t;

typedef struct way {
    const char *name;
    unsigned waits;
    int kind; /* what a descriptor is that it is for */
    ssize_t (*call)(cell_t *cell);
} way_t;

struct cell {
    const state_t *state;
    const way_t *way;
    int ours, other;
    int more[6], count; /* other descriptors, to be closed */
    struct sockaddr_storage address;
    socklen_t address_size;
    ssize_t result;
    bool ended, blocks;
};

static char waits_bytes[1 << 16];

/* ---- Descriptors ---- */

static inline int waits_keep(cell_t *cell, int descriptor) {
    cell->more[cell->count++] = descriptor;
    return descriptor;
}

static inline void waits_set_blocking(int descriptor, bool blocks) {
    int flags = fcntl(descriptor, F_GETFL);
    fcntl(descriptor, F_SETFL, blocks ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

/* Whether the descriptor has one of these events within so many milliseconds. */
static inline bool waits_has(int descriptor, short events, int milliseconds) {
    struct pollfd entry = {descriptor, events, 0};
    return poll(&entry, 1, milliseconds) == 1;
}

/* A close is to be a reset. */
static inline void waits_set_to_reset(int socket) {
    struct linger at_once = {1, 0};
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static inline struct sockaddr_in waits_loopback(void) {
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static inline void waits_small(int socket) {
    int size = 4096;
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

static inline int waits_listen(cell_t *cell, int backlog) {
    struct sockaddr_in *address = (struct sockaddr_in *)(void *)&cell->address;
    *address = waits_loopback();
    cell->address_size = sizeof *address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    waits_small(listener);
    CHECK(bind(listener, (struct sockaddr *)address, cell->address_size) == 0);
    CHECK(listen(listener, backlog) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)address, &cell->address_size) == 0);
    return listener;
}

static inline int waits_connect(const cell_t *cell) {
    int end = socket(cell->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    waits_small(end);
    int code = connect(end, (const struct sockaddr *)&cell->address, cell->address_size);
    CHECK(code == 0 || errno == EINPROGRESS);
    return end;
}

static inline void make_tcp(cell_t *cell) {
    int listener = waits_listen(cell, 1);
    cell->ours = waits_connect(cell);
    CHECK(waits_has(listener, POLLIN, 1000));
    cell->other = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(cell->other >= 0);
    close(listener);
}

static inline void make_pair(cell_t *cell, int type) {
    int ends[2];
    CHECK(socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    cell->ours = ends[0];
    cell->other = ends[1];
    waits_small(cell->ours);
    waits_small(cell->other);
}

static inline void make_unix(cell_t *cell) {
    make_pair(cell, SOCK_STREAM);
}
static inline void make_unix_datagrams(cell_t *cell) {
    make_pair(cell, SOCK_DGRAM);
}

static inline void make_udp(cell_t *cell) {
    struct sockaddr_in address = waits_loopback();
    int ends[2];
    for (int i = 0; i < 2; i++) {
        ends[i] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        CHECK(bind(ends[i], (struct sockaddr *)&address, sizeof address) == 0);
    }
    for (int i = 0; i < 2; i++) {
        socklen_t size = sizeof address;
        getsockname(ends[1 - i], (struct sockaddr *)&address, &size);
        CHECK(connect(ends[i], (struct sockaddr *)&address, sizeof address) == 0);
    }
    cell->ours = ends[0];
    cell->other = ends[1];
}

/* Writes until there is no room. True: there was some. */
static inline bool fill(int descriptor) {
    bool some = false;
    while (write(descriptor, waits_bytes, sizeof waits_bytes) > 0)
        some = true;
    return some;
}

/* ---- States of sockets ---- */

#define OF_STREAMS(name, ...)                                                                      \
    static inline void name##_tcp(cell_t *cell) {                                                  \
        make_tcp(cell);                                                                            \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    static inline void name##_unix(cell_t *cell) {                                                 \
        make_unix(cell);                                                                           \
        __VA_ARGS__;                                                                               \
    }

OF_STREAMS(make_full, fill(cell->ours))
OF_STREAMS(make_full_and_ended, fill(cell->ours); shutdown(cell->other, SHUT_WR))
OF_STREAMS(make_full_and_filled, fill(cell->ours); fill(cell->other))
OF_STREAMS(make_ending, shutdown(cell->ours, SHUT_WR))

static inline void make_ended(cell_t *cell) {
    make_ending_tcp(cell);
    shutdown(cell->other, SHUT_WR);
}

/* Something is in the error queue: when a byte was sent. */
static inline void stamp(cell_t *cell) {
    int flags = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE, none = 0;
    CHECK(setsockopt(cell->ours, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) == 0);
    CHECK(send(cell->ours, "1", 1, 0) == 1);
    CHECK(waits_has(cell->ours, 0, 1000));
    setsockopt(cell->ours, SOL_SOCKET, SO_TIMESTAMPING, &none, sizeof none);
}
static inline void make_stamped(cell_t *cell) {
    make_tcp(cell);
    stamp(cell);
}
static inline void make_stamped_and_full(cell_t *cell) {
    make_stamped(cell);
    fill(cell->ours);
}
static inline void make_stamped_datagrams(cell_t *cell) {
    make_udp(cell);
    stamp(cell);
}
static inline void make_with_bytes(cell_t *cell) {
    make_tcp(cell);
    CHECK(send(cell->other, "1", 1, 0) == 1);
}

static inline void make_urgent(cell_t *cell) {
    make_tcp(cell);
    CHECK(send(cell->other, "!", 1, MSG_OOB) == 1);
}
static inline void make_full_and_urgent(cell_t *cell) {
    make_urgent(cell);
    fill(cell->ours);
}

static inline void make_reset(cell_t *cell) {
    make_tcp(cell);
    waits_set_to_reset(cell->other);
    shutdown(cell->other, SHUT_RDWR);
    close(cell->other);
    cell->other = -1;
    int error;
    socklen_t size = sizeof error;
    getsockopt(cell->ours, SOL_SOCKET, SO_ERROR, &error, &size);
}

static inline void make_full_datagrams(cell_t *cell) {
    make_unix_datagrams(cell);
    while (send(cell->ours, "1", 1, 0) == 1)
        continue;
}

/* Receiver that is full, for a sender that is not connected to it. The system does not report when
   it has room. */
static inline void bind_anywhere(cell_t *cell, int socket) {
    sa_family_t family = AF_UNIX; /* the system chooses a name */
    CHECK(bind(socket, (const struct sockaddr *)&family, sizeof family) == 0);
    cell->address_size = sizeof cell->address;
    CHECK(getsockname(socket, (struct sockaddr *)&cell->address, &cell->address_size) == 0);
}
static inline void make_full_receiver(cell_t *cell) {
    cell->ours = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    cell->other = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bind_anywhere(cell, cell->other);
    while (sendto(cell->ours, "1", 1, 0, (const struct sockaddr *)&cell->address,
                  cell->address_size) == 1)
        continue;
}

static inline void make_listening(cell_t *cell) {
    cell->ours = waits_listen(cell, 8);
    cell->other = -1;
}
static inline void make_listening_unix(cell_t *cell) {
    cell->ours = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    cell->other = -1;
    bind_anywhere(cell, cell->ours);
    CHECK(listen(cell->ours, 8) == 0);
}

/* The listener's queue is full, so nothing answers. */
static inline void make_connecting(cell_t *cell) {
    cell->other = waits_listen(cell, 0);
    int end;
    do {
        CHECK(cell->count < 4);
        end = waits_keep(cell, waits_connect(cell));
    } while (waits_has(end, POLLOUT, 20));
    cell->ours = waits_connect(cell);
}

/* ---- States of other descriptors ---- */

static inline void make_pipe(cell_t *cell, bool outward) {
    int ends[2];
    CHECK(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
    cell->ours = ends[outward];
    cell->other = ends[!outward];
    if (outward) {
        fcntl(cell->ours, F_SETPIPE_SZ, 4096);
        fill(cell->ours);
    }
}
static inline void make_empty_pipe(cell_t *cell) {
    make_pipe(cell, false);
}
static inline void make_full_pipe(cell_t *cell) {
    make_pipe(cell, true);
}

static inline void make_fifo(cell_t *cell) {
    char path[] = "/tmp/haft-waits-XXXXXX";
    CHECK(mkdtemp(path) != NULL);
    char name[sizeof path + 2];
    snprintf(name, sizeof name, "%s/f", path);
    CHECK(mkfifo(name, 0600) == 0);
    cell->ours = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    cell->other = open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    unlink(name);
    rmdir(path);
}
/* A writer has gone, and another has come. */
static inline void make_fifo_again(cell_t *cell) {
    make_fifo(cell);
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", cell->other);
    close(cell->other);
    snprintf(path, sizeof path, "/proc/self/fd/%d", cell->ours);
    cell->other = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    CHECK(cell->other >= 0);
}

static inline void make_terminal(cell_t *cell) {
    int ends[2] = {-1, -1};
    CHECK(check_open_terminal(ends, O_NONBLOCK));
    cell->ours = ends[1];
    cell->other = ends[0];
}
static inline void make_master(cell_t *cell) {
    make_terminal(cell);
    int slave = cell->ours;
    cell->ours = cell->other;
    cell->other = slave;
}

static inline void make_event(cell_t *cell) {
    cell->ours = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    cell->other = -1;
}
static inline void make_full_event(cell_t *cell) {
    make_event(cell);
    uint64_t most = UINT64_MAX - 1;
    CHECK(write(cell->ours, &most, sizeof most) == sizeof most);
}
static inline void make_timer(cell_t *cell) {
    cell->ours = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    cell->other = -1;
}

/* ---- What ends the waits ---- */

static inline void send_byte(cell_t *cell) {
    CHECK(write(cell->other, "x\n", 2) == 2);
}
static inline void take_all(cell_t *cell) {
    static char into[1 << 16];
    (void)!send(cell->other, "x", 1, MSG_NOSIGNAL);
    while (read(cell->other, into, sizeof into) > 0)
        continue;
}
static inline void send_urgent(cell_t *cell) {
    CHECK(send(cell->other, "!", 1, MSG_OOB) == 1);
}
static inline void be_reset(cell_t *cell) {
    waits_set_to_reset(cell->other);
    close(cell->other);
    cell->other = -1;
}
static inline void close_other(cell_t *cell) {
    close(cell->other);
    cell->other = -1;
}
static inline void shut_down(cell_t *cell) {
    shutdown(cell->ours, SHUT_RD);
}
static inline void connect_to(cell_t *cell) {
    cell->other = waits_connect(cell);
}
static inline void count_one(cell_t *cell) {
    uint64_t one = 1;
    CHECK(write(cell->ours, &one, sizeof one) == sizeof one);
}
static inline void take_count(cell_t *cell) {
    uint64_t count;
    CHECK(read(cell->ours, &count, sizeof count) == sizeof count);
}
static inline void set_timer(cell_t *cell) {
    struct itimerspec at_once = {{0, 0}, {0, 1}};
    timerfd_settime(cell->ours, 0, &at_once, NULL);
}

#define TCP (IS_SOCKET | IS_STREAM | IS_TCP)
#define UNIX (IS_SOCKET | IS_STREAM)

static const state_t waits_states[] = {
    {"a TCP connection, nothing comes", READS | POLLS_IN, make_tcp, send_byte, TCP},
    {"a TCP connection, quiet", POLLS_OTHERS, make_tcp, be_reset, TCP},
    {"a TCP connection, stamped later", ERRORS, make_tcp, stamp, TCP},
    {"a TCP connection, full", WRITES | POLLS_OUT, make_full_tcp, take_all, TCP},
    {"a TCP connection, full, reset later", WRITES | POLLS_OUT | POLLS_OTHERS, make_full_tcp,
     be_reset, TCP},
    {"a TCP connection, full, its peer has ended", WRITES | POLLS_OUT, make_full_and_ended_tcp,
     take_all, TCP},
    {"a TCP connection, full, its peer has ended, reset later", WRITES | POLLS_OUT | POLLS_OTHERS,
     make_full_and_ended_tcp, be_reset, TCP},
    {"a TCP connection, full both ways", WRITES | POLLS_OUT, make_full_and_filled_tcp, take_all,
     TCP},
    {"a TCP connection, we have ended", READS | POLLS_IN, make_ending_tcp, send_byte, TCP},
    {"a TCP connection, we have ended, reset later", READS | POLLS_IN | POLLS_OTHERS,
     make_ending_tcp, be_reset, TCP},
    {"a TCP connection, both have ended", ERRORS, make_ended, NULL, TCP},
    {"a TCP connection that was reset", ERRORS, make_reset, NULL, TCP},
    {"a TCP connection, its error queue is not empty", READS, make_stamped, send_byte, TCP},
    {"a TCP connection, full, its error queue is not empty", WRITES, make_stamped_and_full,
     take_all, TCP},
    {"a TCP connection with bytes, stamped later", ERRORS, make_with_bytes, stamp, TCP},
    {"a TCP connection with bytes, reset later", POLLS_OTHERS, make_with_bytes, be_reset, TCP},
    {"a TCP connection, urgent data", READS | POLLS_IN, make_urgent, send_byte, IS_SOCKET | IS_TCP},
    {"a TCP connection, full, urgent data", WRITES | POLLS_OUT, make_full_and_urgent, take_all,
     TCP},
    {"a Unix stream, nothing comes", READS | POLLS_IN, make_unix, send_byte, UNIX},
    {"a Unix stream, quiet", POLLS_OTHERS, make_unix, close_other, UNIX},
    {"a Unix stream, full", WRITES | POLLS_OUT, make_full_unix, take_all, UNIX},
    {"a Unix stream, full, its peer has ended", WRITES | POLLS_OUT, make_full_and_ended_unix,
     take_all, UNIX},
    {"a Unix stream, full, its peer has ended, closed later", WRITES | POLLS_OUT | POLLS_OTHERS,
     make_full_and_ended_unix, close_other, UNIX},
    {"a Unix stream, full both ways", WRITES | POLLS_OUT, make_full_and_filled_unix, take_all,
     UNIX},
    {"a Unix stream, we have ended", READS | POLLS_IN, make_ending_unix, send_byte, UNIX},
    {"a Unix stream, we have ended, closed later", READS | POLLS_IN | POLLS_OTHERS,
     make_ending_unix, close_other, UNIX},
    {"a UDP socket, nothing comes", READS | POLLS_IN, make_udp, send_byte, IS_SOCKET},
    {"a UDP socket, its error queue is not empty", READS, make_stamped_datagrams, send_byte,
     IS_SOCKET},
    {"a UDP socket, shut down later", READS | POLLS_IN, make_udp, shut_down, IS_SOCKET},
    {"a Unix datagram socket, shut down later", READS | POLLS_IN, make_unix_datagrams, shut_down,
     IS_SOCKET},
    {"a Unix datagram socket, nothing comes", READS | POLLS_IN, make_unix_datagrams, send_byte,
     IS_SOCKET},
    {"a Unix datagram socket, full", WRITES | POLLS_OUT, make_full_datagrams, take_all, IS_SOCKET},
    {"a Unix datagram socket, its receiver is full", SENDS_TO, make_full_receiver, take_all,
     IS_SOCKET},
    {"a TCP listener, shut down later", ACCEPTS | POLLS_IN, make_listening, shut_down, TCP},
    {"a Unix listener, shut down later", ACCEPTS | POLLS_IN, make_listening_unix, shut_down, UNIX},
    {"a TCP listener", ACCEPTS | POLLS_IN | POLLS_OTHERS, make_listening, NULL, TCP},
    {"a TCP listener, somebody comes", ACCEPTS | POLLS_IN, make_listening, connect_to, TCP},
    {"a Unix listener, somebody comes", ACCEPTS | POLLS_IN, make_listening_unix, connect_to, UNIX},
    {"a TCP connection that is being made",
     READS | WRITES | CONNECTS | POLLS_IN | POLLS_OUT | POLLS_OTHERS, make_connecting, NULL, TCP},
    {"a pipe, empty", READS | POLLS_IN, make_empty_pipe, send_byte, 0},
    {"a pipe, empty, closed later", READS | POLLS_IN | POLLS_OTHERS, make_empty_pipe, close_other,
     0},
    {"a pipe, full", WRITES | POLLS_OUT, make_full_pipe, take_all, 0},
    {"a FIFO, empty", READS | POLLS_IN, make_fifo, send_byte, 0},
    {"a FIFO, empty, another writer", READS | POLLS_IN | POLLS_OTHERS, make_fifo_again, close_other,
     0},
    {"a terminal, no line", READS | POLLS_IN, make_terminal, send_byte, 0},
    {"a terminal, quiet", POLLS_OTHERS, make_terminal, close_other, 0},
    {"a master of a terminal, nothing is written", READS | POLLS_IN, make_master, send_byte, 0},
    {"an event descriptor, 0", READS | POLLS_IN, make_event, count_one, IS_NUMBER},
    {"an event descriptor, full", WRITES | POLLS_OUT, make_full_event, take_count, IS_NUMBER},
    {"a timer, not set", READS | POLLS_IN | POLLS_OTHERS, make_timer, NULL, IS_NUMBER},
    {"a timer, set later", READS | POLLS_IN, make_timer, set_timer, IS_NUMBER},
};

#undef TCP
#undef UNIX

/* ---- The table ---- */

enum waits_ending { BY_EVENT, BY_CANCEL, BY_DEADLINE };

typedef struct waits_run {
    cell_t *cells;
    size_t count;
    enum waits_ending ending;
    haft_io_scope_t *scope;
    size_t ended;
    double spent;
} waits_run_t;

static waits_run_t *waits_now;

/* Which waits no cancel cuts: they end by an event only. NULL: none is such. */
static bool (*waits_runs_to_its_end)(const state_t *state, const way_t *way);
static inline bool waits_is_uncut(const state_t *state, const way_t *way) {
    return waits_runs_to_its_end != NULL && waits_runs_to_its_end(state, way);
}

static void *waits_operate(void *argument) {
    cell_t *cell = (cell_t *)argument;
    cell->result = cell->way->call(cell);
    cell->ended = true;
    waits_now->ended++;
    return NULL;
}

static void *waits_spawn(void *argument) {
    waits_run_t *run = (waits_run_t *)argument;
    run->scope = haft_io_this_scope();
    for (size_t i = 0; i < run->count; i++)
        CHECK_EQUAL(haft_io_spawn(waits_operate, &run->cells[i]), 0);
    haft_io_sleep(HAFT_IO_FOREVER);
    return NULL;
}

static double waits_processor_time(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

static bool waits_has_ended(const waits_run_t *run) {
    for (size_t i = 0; i < run->count; i++)
        if (run->cells[i].state->end != NULL && !run->cells[i].ended)
            return false;
    return true;
}

static void waits_check(const cell_t *cell) {
    if (cell->state->end == NULL)
        return;
    const char *wrong = !cell->ended ? "does not end" : "has a wrong result";
    bool holds = cell->ended;
    if (holds && cell->state->end == shut_down)
        holds = cell->way->waits == READS     ? cell->result == 0
                : cell->way->waits == ACCEPTS ? cell->result == -EINVAL
                                              : cell->result > 0;
    if (!holds)
        fprintf(stderr, "%s of %s %s: %zd\n", cell->way->name, cell->state->name, wrong,
                cell->result);
    CHECK(holds);
}

static void waits_end_uncut(const waits_run_t *run) {
    haft_io_sleep(5 * HAFT_IO_MILLISECOND);
    for (size_t i = 0; i < run->count; i++) {
        cell_t *cell = &run->cells[i];
        if (run->ending == BY_EVENT || !waits_is_uncut(cell->state, cell->way))
            continue;
        CHECK(!cell->ended);
        cell->state->end(cell);
    }
}

/* Measures, and then ends the waits. */
static void *waits_watch(void *argument) {
    waits_run_t *run = (waits_run_t *)argument;
    haft_io_sleep(100 * HAFT_IO_MILLISECOND);
    for (size_t i = 0; i < run->count; i++)
        if (run->cells[i].ended) {
            fprintf(stderr, "%s of %s has not waited: %zd\n", run->cells[i].way->name,
                    run->cells[i].state->name, run->cells[i].result);
            CHECK(!run->cells[i].ended);
        }
    double before = waits_processor_time();
    haft_io_sleep(150 * HAFT_IO_MILLISECOND);
    run->spent = waits_processor_time() - before;
    if (run->ending == BY_EVENT) {
        for (size_t i = 0; i < run->count; i++)
            if (run->cells[i].state->end != NULL)
                run->cells[i].state->end(&run->cells[i]);
        for (int i = 0; i < 1000 && !waits_has_ended(run); i++) {
            haft_io_sleep(5 * HAFT_IO_MILLISECOND);
            for (size_t j = 0; j < run->count; j++)
                if (run->cells[j].state->end == take_all && !run->cells[j].ended)
                    take_all(&run->cells[j]); /* what has come since: a write of all of it */
        }
        for (size_t i = 0; i < run->count; i++)
            waits_check(&run->cells[i]);
    }
    if (run->ending != BY_DEADLINE)
        haft_io_scope_cancel(run->scope);
    waits_end_uncut(run);
    return NULL;
}

/* Beside so many others, which wait for what never comes. */
static int waits_beside;

static void *waits_for_nothing(void *end) {
    haft_io_wait_ready(*(const int *)end, POLLIN);
    return NULL;
}

static void *waits_main(void *argument) {
    waits_run_t *run = (waits_run_t *)argument;
    int ends[2];
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    for (int i = 0; i < waits_beside; i++)
        CHECK_EQUAL(haft_io_spawn(waits_for_nothing, &ends[0]), 0);
    waits_now = run;
    CHECK_EQUAL(haft_io_spawn(waits_watch, run), 0);
    const haft_io_scope_options_t options = {
        .deadline = run->ending == BY_DEADLINE ? haft_io_now() + 300 * HAFT_IO_MILLISECOND : 0};
    CHECK_EQUAL(haft_io_scope_with(&options, waits_spawn, run, NULL),
                run->ending == BY_DEADLINE ? -ETIMEDOUT : -ECANCELED);
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    return NULL;
}

/* Some room of TCP comes by itself, when the peer has acknowledged what was sent. */
static inline void waits_fill(cell_t *cells, size_t count) {
    for (bool some = true; some;) {
        some = false;
        usleep(100000);
        for (size_t i = 0; i < count; i++)
            if (cells[i].state->kind != IS_NUMBER && (cells[i].state->waits & WRITES) != 0 &&
                (cells[i].state->waits & CONNECTS) == 0)
                some |= fill(cells[i].ours);
    }
}

static inline void waits_make(cell_t *cell, const state_t *state, const way_t *way, bool blocks) {
    memset(cell, 0, sizeof *cell);
    cell->state = state;
    cell->way = way;
    cell->blocks = blocks;
    state->make(cell);
}

static inline void waits_unmake(cell_t *cell) {
    close(cell->ours);
    if (cell->other >= 0)
        close(cell->other);
    while (cell->count != 0)
        close(cell->more[--cell->count]);
}

/* A pipe for splice. */
static inline void waits_pipe(cell_t *cell, int ends[2], bool full) {
    CHECK(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
    waits_keep(cell, ends[0]);
    waits_keep(cell, ends[1]);
    if (full)
        CHECK(write(ends[1], waits_bytes, 4096) == 4096);
}

static inline bool waits_meet(const state_t *state, const way_t *way) {
    return (state->waits & way->waits) != 0 && (state->kind & way->kind) == way->kind;
}

static inline bool waits_is_terminal(const state_t *state) {
    return state->make == make_terminal || state->make == make_master;
}

/* Processor time of a run, in milliseconds. */
static inline double waits_try(cell_t *cells, size_t count, enum waits_ending ending) {
    waits_run_t run = {.cells = cells, .count = count, .ending = ending};
    waits_fill(cells, count);
    for (size_t i = 0; i < count; i++)
        waits_set_blocking(cells[i].ours, cells[i].blocks);
    static const haft_io_run_options_t one_thread = {.threads = 1};
    CHECK_EQUAL(haft_io_run_with(&one_thread, waits_main, &run), 0);
    return run.spent;
}

/* Below this all waits have slept, or looked now and then: on an idle machine that takes one
   millisecond or two, on one that has much else to do several times as much. One that spins uses
   half of the time at least, as far as the machine gives it. */
static inline double waits_most(void) {
    return check_bare() ? 15 : 1e9;
}

static inline void waits_try_alone(const state_t *state, const way_t *way, bool blocks) {
    cell_t cell;
    waits_make(&cell, state, way, blocks);
    double spent = waits_try(&cell, 1, BY_CANCEL);
    if (spent > waits_most())
        fprintf(stderr, "%s of %s spins: %.0f ms of 150\n", way->name, state->name, spent);
    waits_unmake(&cell);
}

/* How many it has made: all the ways in all the states in which they wait. */
static inline size_t waits_make_all(cell_t *cells, const way_t *ways, size_t way_count,
                                    bool blocks) {
    enum { STATES = sizeof waits_states / sizeof waits_states[0] };
    size_t count = 0;
    const bool has_terminals = check_has_terminals();
    for (size_t s = 0; s < STATES; s++)
        for (size_t w = 0; w < way_count; w++)
            if (waits_meet(&waits_states[s], &ways[w]) &&
                (has_terminals || !waits_is_terminal(&waits_states[s])) &&
                (waits_states[s].end != NULL || !waits_is_uncut(&waits_states[s], &ways[w])))
                waits_make(&cells[count++], &waits_states[s], &ways[w], blocks);
    return count;
}
static inline void waits_unmake_all(cell_t *cells, size_t count) {
    while (count != 0)
        waits_unmake(&cells[--count]);
}

/* Side by side. On a machine that has much else to do, what is to be done before the waits may
   still go on while it is measured: a wait that spins does so at each try. */
static inline void waits_table(const way_t *ways, size_t way_count, bool blocks,
                               enum waits_ending ending) {
    enum { STATES = sizeof waits_states / sizeof waits_states[0], TRIES = 3 };
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    signal(SIGPIPE, SIG_IGN);
    cell_t *cells = (cell_t *)calloc(STATES * way_count, sizeof *cells);
    size_t count = waits_make_all(cells, ways, way_count, blocks);
    double spent = waits_try(cells, count, ending);
    for (int tries = 1; spent > waits_most() && tries < TRIES; tries++) {
        waits_unmake_all(cells, count);
        waits_make_all(cells, ways, way_count, blocks);
        spent = waits_try(cells, count, ending);
    }
    if (getenv("HAFT_WAITS_TELL") != NULL)
        fprintf(stderr, "%zu waits, %.1f ms of 150\n", count, spent);
    if (spent > waits_most()) {
        for (size_t i = 0; i < count; i++)
            waits_try_alone(cells[i].state, cells[i].way, blocks);
        CHECK(spent <= waits_most());
    }
    waits_unmake_all(cells, count);
    free(cells);
}

#endif
